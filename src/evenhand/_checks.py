"""Checks of arguments: each says what, the value, what is allowed, and the way out.

NumPy is imported where arrays are checked: the command line checks its words before it needs any.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sized
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

from evenhand import _values

if TYPE_CHECKING:
    from evenhand.typing import Array, ArrayLike, FloatArray, IntArray


MOST_CLASSES: Final = 200
"""Different labels beyond which a column is no label, unless its classes are named."""


def class_at(name: str, home: str) -> Any:
    """Return what a user named as MODULE:CLASS; the module is imported, which runs its code."""
    module, _, own = home.partition(":")
    try:
        return getattr(import_module(module), own)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} names {home!r}, which cannot be imported: {error}. Install its module, or "
            f"put its folder on PYTHONPATH."
        ) from error


def positive(name: str, value: float, hint: str = "") -> float:
    """Return ``value`` as a float if it is finite and > 0."""
    found = number(name, value)
    if not (math.isfinite(found) and found > 0):
        raise ValueError(_say(f"{name} must be finite and > 0, got {name}={value!r}.", hint))
    return found


def non_negative(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and >= 0."""
    found = number(name, value)
    if not (math.isfinite(found) and found >= 0):
        raise ValueError(f"{name} must be finite and >= 0, got {name}={value!r}.")
    return found


def open_unit(name: str, value: float, hint: str = "") -> float:
    """Return ``value`` as a float if it lies in the open interval (0, 1)."""
    found = number(name, value)
    if not 0 < found < 1:
        raise ValueError(
            _say(f"{name} must lie strictly between 0 and 1, got {name}={value!r}.", hint)
        )
    return found


def closed_unit(name: str, value: float) -> float:
    """Return ``value`` as a float if it lies in [0, 1]."""
    found = number(name, value)
    if not 0 <= found <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {name}={value!r}.")
    return found


def at_least(name: str, value: int, smallest: int, hint: str = "") -> int:
    """Return ``value`` as an int if it is a whole number >= ``smallest``."""
    whole(name, value, hint)
    if value < smallest:
        raise ValueError(_say(f"{name} must be at least {smallest}, got {name}={value!r}.", hint))
    return int(value)


MOST_DECIMALS: Final = 9
"""Decimals that numbers of a column may be said to have."""


def decimals(name: str, value: int) -> int:
    """Return ``value`` as an int if numbers can have so many decimals."""
    hint = "0 is for whole numbers; leave it out where numbers have any decimals."
    if at_least(name, value, 0, hint) > MOST_DECIMALS:
        raise ValueError(_say(f"{name} must be at most {MOST_DECIMALS}, got {value!r}.", hint))
    return int(value)


def whole(name: str, value: object, hint: str = "") -> None:
    """Refuse what is no whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        said = f"{name} must be a whole number, got {value!r:.60} ({type(value).__name__})."
        raise TypeError(_say(said, hint))


def number(name: str, value: float) -> float:
    """Return ``value`` as a float if it is a number, which may lie beyond all."""
    given: object = value
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{name} must be a number, got {value!r:.60} ({type(value).__name__}).")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # refused, or allowed, as any such number


def text(name: str, value: object) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r:.60} ({type(value).__name__}).")


def each_at_least(name: str, values: Iterable[int], smallest: int) -> None:
    """Refuse a list with something else than whole numbers >= ``smallest`` in it."""
    for value in values:
        at_least(name, value, smallest)


def per_unit(value: int, are_units: bool, *, name: str = "per_unit", whose: str = "unit=") -> None:
    """Refuse fewer rows of a unit than 1, and a number of them where a row is of no unit."""
    at_least(name, value, 1)
    if value != 1 and not are_units:
        raise ValueError(
            f"{name}={value} bounds the rows of one unit, and without {whose} each row is a "
            f"record of its own, of somebody else. Say with {whose} whose each row is, or leave "
            f"{name} out."
        )


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False; another value is not read as one of them."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {value!r}.")
    return value


def of_type(name: str, value: object, kind: type, hint: str = "") -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kind):
        said = f"{name} must be a {kind.__name__}, got {value!r:.60} ({type(value).__name__})."
        raise TypeError(_say(said, hint))


def listed_names(name: str, value: object) -> tuple[str, ...]:
    """Return names of columns as texts; one text alone is no list of them."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        whole = f" Write {name}=[{value!r}]." if isinstance(value, str) else ""
        raise TypeError(f"{name} must be a list of names of columns, got {value!r}.{whole}")
    return tuple(map(str, value))


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``; the message lists them all."""
    names = list(allowed)
    if value not in names:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}."
            f"{did_you_mean(value, names)}"
        )
    return value


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return `` Did you mean 'x'?`` for the nearest known name, or an empty string."""
    folded = {str(k).casefold(): str(k) for k in known}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def together(checks: Iterable[Callable[[], object]]) -> None:
    """Run all checks and raise one ValueError that says what each of them found.

    Examples
    --------
    >>> together([lambda: positive("sigma", 0), lambda: at_least("n", 0, 1), lambda: None])
    Traceback (most recent call last):
    ValueError: sigma must be finite and > 0, got sigma=0. n must be at least 1, got n=0.
    """
    found: list[str] = []
    for check in checks:
        try:
            check()
        except (ValueError, TypeError) as error:
            found.append(str(error))
    if found:
        raise ValueError(" ".join(found))


def same_length(**named: Sized) -> int:
    """Return the length that all arguments share."""
    lengths = {name: len(value) for name, value in named.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"These need one row each for the same records, but {said}.")
    return next(iter(lengths.values()))


def codes(name: str, values: ArrayLike, n: int | None = None) -> IntArray:
    """Return whole numbers in [0, n) as a 1-D int64 array."""
    import numpy as np

    array: Array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"{name} must hold whole numbers, got dtype {array.dtype}. Number other values by "
            f"their place among all that there are, sorted: np.searchsorted(names, {name})."
        )
    out: IntArray = array.astype(np.int64)
    if out.size and (out.min() < 0 or (n is not None and out.max() >= n)):
        upper = "" if n is None else f" and below {n}"
        raise ValueError(
            f"{name} must be at least 0{upper}, got values from {_values.quoted(int(out.min()))} "
            f"to {_values.quoted(int(out.max()))}."
        )
    return out


def histograms(counts: ArrayLike) -> Array:
    """Return votes by query and class as an array; what they add up to is not looked at."""
    import numpy as np

    array: Array = np.asarray(counts)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"counts must have shape (n_queries, n_classes) with at least 2 classes, "
            f"got {array.shape}."
        )
    return array


def rectangle(name: str, values: ArrayLike) -> Array:
    """Return an array of one row for each teacher; these are equally long."""
    import numpy as np

    try:
        return np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            f"{name} must have shape (n_teachers, n_queries), and its rows differ in length. Give "
            f"every row a value for each column."
        ) from None


def matrix(name: str, values: ArrayLike) -> FloatArray:
    """Return a finite 2-D float64 array."""
    import numpy as np

    try:
        out = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} must be a table of numbers.") from _values.cause(error)
    if out.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {out.shape}.")
    if not np.isfinite(out).all():
        row, column = np.argwhere(~np.isfinite(out))[0]
        raise ValueError(
            f"{name} must be finite, got {out[row, column]} in {_values.row(int(row))}, column "
            f"{column + 1}."
        )
    return out


def rows(name: str, values: ArrayLike) -> Array:
    """Return finite rows: a table as float64, pictures (n, channels, height, width) as they are."""
    import numpy as np

    try:
        out: Array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must hold rows of one shape, and they differ. Give every row of a table a "
            f"value for each column, and resize pictures to one size."
        ) from _values.cause(error)
    if out.ndim <= 2:
        return matrix(name, values)
    if out.ndim != 4 or out.dtype not in (np.uint8, np.float32):
        raise ValueError(
            f"{name} must be a table (n, columns), or pictures (n, channels, height, width) of "
            f"uint8 or float32, got {out.dtype} of shape {out.shape}."
        )
    if out.dtype == np.float32 and not np.isfinite(out.sum(dtype=np.float64)):
        bad = np.flatnonzero(~np.isfinite(out).reshape(len(out), -1).all(axis=1))
        if len(bad):
            raise ValueError(f"{name} must be finite, and has other pixels in {_values.rows(bad)}.")
    return out


def _say(sentence: str, hint: str) -> str:
    return f"{sentence} {hint}" if hint else sentence

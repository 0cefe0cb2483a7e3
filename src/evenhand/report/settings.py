"""Settings in words that are safe to print: plain values as they are, the rest by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from sklearn.base import BaseEstimator

DEFAULT: Final = "default"


def describe(value: Any) -> str:
    """Return a setting in words, without ever printing the contents of an array or a table.

    A setting can hold data: votes that were brought along, a fitted model, a random generator.
    So only plain values are printed, and objects by their type with their plain fields.

    Examples
    --------
    >>> import numpy as np
    >>> describe(0.05), describe(None), describe(np.arange(3))
    ('0.05', 'default', 'an ndarray of shape (3,)')
    """
    if value is None:
        return DEFAULT
    if isinstance(value, bool | int | float | str):
        return repr(value) if not isinstance(value, str) else value
    if isinstance(value, tuple | list):
        return _several(value)
    if hasattr(value, "shape") and not is_dataclass(value):
        return f"{_article(type(value).__name__)} of shape {tuple(value.shape)}"
    if isinstance(value, BaseEstimator):
        return _named(value, _changed(value))
    if is_dataclass(value) and not isinstance(value, type):
        shown = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}
        return _named(value, shown)
    return type(value).__name__


def in_words(arguments: Mapping[str, Any], unit: str) -> tuple[tuple[str, str], ...]:
    """Return every argument of an estimator with its value in words.

    Where no ids of units were given the claim is about a record, and the name of one is not read.
    """
    read = dict(arguments)
    if unit == "record" and "unit" in read:
        read["unit"] = None
    return tuple((name, describe(value)) for name, value in read.items())


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Return names in a row; one that has a comma of its own stands in quotation marks.

    Examples
    --------
    >>> listed(["age", "term, months", "job"], most=2)
    'age, “term, months” and 1 more'
    """
    more = 0 if most is None else len(names) - most
    quoted = [f"“{name}”" if "," in name else name for name in names[:most]]
    return ", ".join(quoted) + (f" and {more} more" if more > 0 else "")


def _named(value: Any, shown: dict[str, Any]) -> str:
    inside = ", ".join(f"{name}={describe(item)}" for name, item in shown.items())
    return f"{type(value).__name__}({inside})"


def _changed(estimator: Any) -> dict[str, Any]:
    """Return the parameters that differ from the class's own defaults, plain ones by value."""
    given = estimator.get_params(deep=False)
    try:
        usual = type(estimator)().get_params(deep=False)
    except TypeError:  # an estimator that cannot be made without arguments: show them all
        usual = {}
    return {
        name: value
        for name, value in given.items()
        if name not in usual or describe(value) != describe(usual[name])
    }


def _several(values: tuple[Any, ...] | list[Any]) -> str:
    if not values:
        return "none"
    if len(values) <= 20 and all(isinstance(v, bool | int | float | str) for v in values):
        return ", ".join(describe(value) for value in values)
    return f"{_article(type(values).__name__)} of {len(values)} values"


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeio' or noun.startswith('nd') else 'a'} {noun}"

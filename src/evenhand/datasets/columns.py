"""One column as numbers or as text: the only place that looks at pandas dtypes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._frames import as_pandas
from evenhand.typing import ArrayLike, FloatArray, IntArray

Kind: TypeAlias = Literal["numeric", "categorical"]
Column: TypeAlias = "pd.Series[Any]"

_NUMERIC = frozenset({"integer", "floating", "mixed-integer-float", "decimal"})
_CATEGORICAL = frozenset({"string", "boolean", "mixed-integer", "categorical"})


def as_frame(X: pd.DataFrame | ArrayLike, where: str = "table") -> pd.DataFrame:
    """Return a DataFrame whose column names are text and distinct.

    A frame of polars, pyarrow, ... becomes one of pandas; a 2-D array gets the names ``x0``,
    ``x1``, ...
    """
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        names = [str(name) for name in X.columns]
        refuse_repeated(names, where)
        return X if names == list(X.columns) else X.set_axis(names, axis="columns")
    if hasattr(X, "toarray"):
        raise TypeError(f"The {where} is a sparse matrix. Make it dense first: X.toarray().")
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"The {where} must be a DataFrame or a two-dimensional array, got shape {array.shape}."
        )
    return pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])


def refuse_repeated(names: Iterable[str], where: str) -> None:
    """Raise ValueError if a column name occurs twice."""
    repeated = sorted(name for name, n in Counter(names).items() if n > 1)
    if repeated:
        raise ValueError(
            f"The {where} has more than one column named {some(repeated)}. Columns are matched by "
            f"name: rename them so that each name occurs once."
        )


def kind_of(column: Column, where: str = "table") -> Kind | None:
    """Return what a column holds, or None if it holds no value at all.

    Numbers are numeric. Text, booleans, the pandas category dtype, and text mixed with whole
    numbers are categorical. Dates, durations, complex numbers and Python objects are refused.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return "categorical" if column.notna().any() else None
    if isinstance(dtype, pd.StringDtype):
        return "categorical" if column.notna().any() else None
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numeric" if column.notna().any() else None
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "empty":
        return None
    if inferred in _NUMERIC:
        return "numeric"
    if inferred in _CATEGORICAL:
        return "categorical"
    if "date" in inferred or "time" in inferred or inferred == "period":
        raise TypeError(
            f"Column {column.name!r} of the {where} holds dates or times ({dtype}). Say what about "
            f"them matters as a number, e.g. the days since a fixed day: "
            f"(frame[{column.name!r}] - pd.Timestamp('2020-01-01')).dt.days."
        )
    raise TypeError(
        f"Column {column.name!r} of the {where} holds {inferred} values ({dtype}). Columns hold "
        f"numbers, text or booleans: convert it, or leave it out."
    )


def kind_by_dtype(column: Column, where: str = "table") -> Kind:
    """Return what a private column is taken for: its dtype says it, and no value of it.

    A column of Python objects is categorical, also where each is a number: one more record could
    hold a text, and a kind that follows from it would tell.
    """
    dtype = column.dtype
    if pd.api.types.is_object_dtype(dtype):
        return "categorical"
    numeric = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if isinstance(dtype, pd.CategoricalDtype) or not numeric:
        kind_of(column, where)  # refuses dates and the like, by their dtype too
        return "categorical"
    if pd.api.types.is_complex_dtype(dtype):
        kind_of(column, where)
    return "numeric"


def to_numbers(column: Column, where: str = "table") -> FloatArray:
    """Return float64 values, NaN where missing; text that is no number is an error that says where.

    Numbers written as text are read. Infinite values pass through; the caller decides on them.
    """
    dtype = column.dtype
    plain = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    if plain or pd.api.types.is_bool_dtype(dtype):
        if isinstance(dtype, pd.CategoricalDtype):
            column = column.astype(object)
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    kind_of(column, where)  # refuses dates and objects in its own words
    values = column.astype(object)
    try:
        numbers: FloatArray = pd.to_numeric(values, errors="coerce").to_numpy(
            dtype=np.float64, na_value=np.nan
        )
    except OverflowError:  # whole numbers of hundreds of digits
        numbers = np.array([_nearest_float(value) for value in values], dtype=np.float64)
    wrong = np.flatnonzero(np.isnan(numbers) & column.notna().to_numpy(dtype=bool))
    if wrong.size:
        raise ValueError(
            f"Column {column.name!r} of the {where} must hold numbers, got the text "
            f"{_values.quoted(column.iloc[int(wrong[0])])} in "
            f"{_values.rows(wrong)}. Correct the value or leave it empty, or declare the column "
            f"as categorical in the schema."
        )
    return numbers


def _nearest_float(value: Any) -> float:
    """Return a number as a float, infinite beyond the largest; NaN for what is no number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def to_texts(column: Column, where: str = "table") -> tuple[IntArray, tuple[str, ...]]:
    """Return (codes, texts): the text of row i is ``texts[codes[i]]``; code -1 is a missing value.

    Only texts that occur are listed: a pandas category dtype also remembers values of rows that
    were taken away, and those rows may have been private.
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        kind_of(column, where)
    try:
        codes, values = pd.factorize(column, use_na_sentinel=True)
    except TypeError:
        raise TypeError(
            f"Column {column.name!r} of the {where} holds values that cannot be categories, "
            f"e.g. {_values.quoted(column.iloc[0])}. Columns hold numbers, text or booleans."
        ) from None
    return codes.astype(np.int64), tuple(text_of(value) for value in values)


def text_of(value: object) -> str:
    """Return the text by which a category is compared: 1, 1.0 and "1" are one category."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def natural_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Sort texts, numbers first and by size: "2" stands before "10"."""

    def key(text: str) -> tuple[bool, float, str]:
        try:
            return (False, float(text), text)
        except ValueError:
            return (True, 0.0, text)

    return tuple(sorted(set(texts), key=key))


def some(names: Iterable[object], most: int = 5) -> str:
    """List at most five names, and how many there are beyond them."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(repr(name) for name in listed[:most]) + more

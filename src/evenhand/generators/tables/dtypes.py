"""Dtypes of a user's columns as text, and back: what drawn columns are given again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks

_WHOLE: Final = re.compile(r"(u?int\d+|bool)$")
_NUMBERS: Final = re.compile(r"([Uu]?[Ii]nt|[Ff]loat)\d+$")
_PLAIN: Final = re.compile(r"([Uu]?[Ii]nt|[Ff]loat)\d+$|bool(ean)?$|str(ing)?$")
_KNOWN: Final = (
    *("int", "uint", "Int", "UInt", "float", "Float", "bool", "boolean"),
    *("str", "string", "object", "category"),
    *("string[python]", "string[pyarrow]", "large_string[pyarrow]"),
)


def holds_missing(dtype: str) -> bool:
    """Whether a column of this dtype can have missing values: NumPy's whole numbers cannot.

    Examples
    --------
    >>> [holds_missing(dtype) for dtype in ("int64", "bool", "Int64", "boolean", "str")]
    [False, False, True, True, True]
    """
    return not _WHOLE.match(dtype)


def number_range(dtype: str) -> tuple[float, float] | None:
    """Return the smallest and the largest finite number of a dtype; None if it holds no numbers.

    Examples
    --------
    >>> number_range("Int8"), number_range("uint16"), number_range("str")
    ((-128.0, 127.0), (0.0, 65535.0), None)
    """
    if not _NUMBERS.match(dtype):
        return None
    own = np.dtype(dtype.lower())
    known: Any = np.finfo(own) if own.kind == "f" else np.iinfo(own)
    return float(known.min), float(known.max)


def dtype_text(dtype: Any) -> str:
    """Write a dtype; of categories also what they are and whether they have an order.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = pd.CategoricalDtype([1, 2], ordered=True)
    >>> [dtype_text(dtype) for dtype in (np.dtype(np.int8), sizes, pd.StringDtype("python"))]
    ['int8', 'category[int64, ordered]', 'string[python]']
    """
    if isinstance(dtype, pd.CategoricalDtype):
        own = str(dtype.categories.dtype)
        return f"category[{own if _PLAIN.match(own) else 'str'}{', ordered' * bool(dtype.ordered)}]"
    if isinstance(dtype, pd.StringDtype) and str(dtype) == "string" and dtype != pd.StringDtype():
        return f"string[{dtype.storage}]"
    return str(dtype)


def frame_dtype(dtype: str) -> Any:
    """Turn the text of a dtype into what ``astype`` takes."""
    if dtype.startswith("datetime64["):
        try:
            return pd.api.types.pandas_dtype(dtype)
        except TypeError:
            raise ValueError(f"There is no dtype {dtype!r}.") from None
    _checks.one_of("dtype", dtype.rstrip("0123456789"), _KNOWN)
    return dtype


def category_dtype(dtype: str, categories: Sequence[str]) -> pd.CategoricalDtype:
    """Return what ``dtype_text`` wrote, with these categories."""
    own, _, ordered = dtype[len("category[") : -1].partition(", ")
    values: Any = pd.Index(list(categories))
    with suppress(ValueError):  # a category that was declared, and that the dtype cannot hold
        if own.lower().startswith("bool") and {*categories} <= {"True", "False"}:
            values = pd.Index(values == "True").astype(own)
        elif own.lower().startswith(("int", "uint")):
            values = pd.Index([int(text) for text in categories]).astype(own)
        elif own and not own.lower().startswith("bool"):
            values = values.astype(own)
    return pd.CategoricalDtype(values, ordered=bool(ordered))

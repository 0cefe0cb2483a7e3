"""Numbers that are written as text: one way to write each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

import numpy as np

_NUMBER: Final = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""Text that is a number, and not a code with leading zeros."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def text_of(value: object) -> str:
    """Return the text by which a category is compared: 1, 1.0 and "1" are one category.

    A function of this value alone, as it is written: Decimal("2.00") is "2.00". What one record
    holds may rename no other.
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def natural_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Sort texts, numbers first and by size: "2" stands before "10"; "nan" is no number."""

    def key(text: str) -> tuple[bool, float, str]:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        return (False, number, text) if number == number else (True, 0.0, text)

    return tuple(sorted(set(texts), key=key))


def is_numeral(text: str) -> bool:
    """Whether a text is a number, and not a code with leading zeros."""
    return _NUMBER.fullmatch(text) is not None


def numeral(text: str) -> str:
    """Return a number as it would be written had it been read as one; other texts as they are.

    Whether a file is read as numbers can hang on one row of it.

    Examples
    --------
    >>> [numeral(text) for text in ("17.0", "+17", "1e2", "2.50", "007", "A1")]
    ['17', '17', '100', '2.5', '007', 'A1']
    """
    if not is_numeral(text):
        return text
    if _WHOLE.fullmatch(text):  # int() reads 4,300 digits at most
        return "0" if text in ("-0", "+0") else text.lstrip("+")
    number = float(text)
    return str(int(number)) if number.is_integer() else repr(number)

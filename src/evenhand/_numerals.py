"""Numbers that are written as text: one way to write each."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""Text that is a number, and not a code with leading zeros."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def numeral(text: str) -> str:
    """Return a number as it would be written had it been read as one; other texts as they are.

    Whether a file is read as numbers can hang on one row of it.

    Examples
    --------
    >>> [numeral(text) for text in ("17.0", "+17", "1e2", "2.50", "007", "A1")]
    ['17', '17', '100', '2.5', '007', 'A1']
    """
    if not _NUMBER.fullmatch(text):
        return text
    if _WHOLE.fullmatch(text):  # int() reads 4,300 digits at most
        return "0" if text in ("-0", "+0") else text.lstrip("+")
    number = float(text)
    return str(int(number)) if number.is_integer() else repr(number)

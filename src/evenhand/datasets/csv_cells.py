"""Text cells of a CSV that a spreadsheet would run as a formula, written so that it does not.

A cell that begins with ``= + - @``, a tab or a carriage return gets an apostrophe in front, as
OWASP advises ("CSV injection"); numbers stay numbers. Reading takes the apostrophe away again, and
one that stood there before is doubled, so that what is written here comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Final

import pandas as pd

# Full-width signs count too: some spreadsheets read them as the plain ones.
_RUNS: Final = re.compile(r"[\s']*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def neutral(value: Any) -> Any:
    """Return a cell as a CSV may have it: text that a spreadsheet would run gets an apostrophe."""
    if isinstance(value, str) and _RUNS.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def as_written(value: Any) -> Any:
    """Return the cell that ``neutral`` was given."""
    if isinstance(value, str) and value.startswith("'") and _RUNS.match(value[1:]):
        return value[1:]
    return value


def neutral_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text cells and column names no spreadsheet runs."""
    made: dict[Hashable, Any] = {}
    for name in frame.columns:
        column = frame[name]
        plain = pd.api.types.is_numeric_dtype(column.dtype) or column.dtype.kind == "M"
        made[neutral(str(name))] = column if plain else column.astype(object).map(neutral)
    return pd.DataFrame(made, index=frame.index)

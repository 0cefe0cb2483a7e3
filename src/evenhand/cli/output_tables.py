"""Tables that a command writes: CSV or Parquet by the name, and never a formula in a cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

TEXT: Final = (".csv", ".csv.gz")
PARQUET: Final = (".parquet", ".pq")


def require_table_name(out: Path, option: str = "--out") -> None:
    """Refuse a name that says another format than what would be written."""
    name = out.name.lower()
    if out.suffix and not name.endswith((*TEXT, *PARQUET)):
        raise ValueError(
            f"{option} names {out}, and a table is written as CSV or Parquet. End the name with "
            f"{', '.join((*TEXT, *PARQUET))}."
        )


def write_table(frame: pd.DataFrame, made: Path | None, *, raw: bool = False) -> None:
    """Write a table into a file, or as CSV on stdout; ``raw`` leaves its cells as they are."""
    if made is not None and made.suffix.lower() in PARQUET:
        frame.to_parquet(made, index=False)  # no spreadsheet runs what it holds
        return
    from evenhand.datasets.cells import neutral_table

    chosen = frame if raw else neutral_table(frame)
    chosen.to_csv(sys.stdout if made is None else made, index=False)

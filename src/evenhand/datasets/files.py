"""A user's file as a table: CSV (also compressed) or Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow

from evenhand.datasets.columns import refuse_repeated

MISSING = ("", "NA", "N/A", "NaN", "nan", "?")
SEPARATORS = (",", ";", "\t")


def read_table(path: str | PathLike[str]) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or path
        Text in UTF-8 with a header and the separator comma, semicolon or tab (found from the
        header), plain or compressed by gzip; or Parquet.

    Returns
    -------
    DataFrame
        Of CSV: a column is numbers if every value in it is one, and text otherwise. A column where
        some number has a leading zero ("007") stays text: it is a code. Missing are an empty
        field, NA, N/A, NaN, nan and ?. Of Parquet: as stored. What a column means is decided later,
        by a ``Schema`` of public rows.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, has no rows, or is not a table; if a column has no name or two
        columns have the same name.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file {path}. Check the path; it is read from here: {Path.cwd()}."
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name the file in it.")
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a whole gzip file: {error}.") from None
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    is_parquet = content[:4] == b"PAR1" or path.suffix in (".parquet", ".pq")
    frame = _parquet(content, path) if is_parquet else _csv(content, path)
    if not len(frame):
        raise ValueError(f"{path} has a header and no rows.")
    return frame


def _parquet(content: bytes, path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a Parquet file: {_first_line(error)}.") from None


def _csv(content: bytes, path: Path) -> pd.DataFrame:
    if content[:2] == b"PK":
        raise ValueError(f"{path} is a zip archive or a spreadsheet. Save the table as CSV.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8: byte {error.start} cannot be read. Save the table as "
            f"CSV in UTF-8, or as Parquet."
        ) from None
    if "\0" in text:
        raise ValueError(f"{path} is not a text file. Save the table as CSV or Parquet.")
    separator = _separator(text, path)
    header = [name.strip() for name in _header(text, separator, path)]
    unnamed = [i + 1 for i, name in enumerate(header) if not name]
    if unnamed:
        raise ValueError(
            f"Column {unnamed[0]} of {path} has no name. If it numbers the rows, write the file "
            f"without it (pandas: to_csv(path, index=False)); else name it in the header."
        )
    refuse_repeated(header, f"header of {path}")
    _refuse_ragged(text, separator, len(header), path)
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            names=header,
            header=0,
            index_col=False,
            dtype=str,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=list(MISSING),
        )
    except ValueError as error:  # pandas' ParserError is one, too
        raise ValueError(f"{path} is not a table: {_first_line(error)}.") from None
    return frame.apply(_numbers_if_all_are)


def _refuse_ragged(text: str, separator: str, width: int, path: Path) -> None:
    """Raise ValueError at the first line that is too long or too short; pandas would mend it."""
    # newline="" leaves the ends of lines to the reader, which knows those of all systems.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        for values in lines:
            if values and len(values) != width:
                raise ValueError(
                    f"{path} is not a table: line {lines.line_num} has {len(values)} values, the "
                    f"header has {width} (separated by {separator!r}). Correct the line."
                )
    except csv.Error as error:
        raise ValueError(f"{path} is not a table: {error} in line {lines.line_num}.") from None


def _separator(text: str, path: Path) -> str:
    """Return the separator that splits the header into the most columns."""
    widths = {s: len(_header(text, s, path)) for s in SEPARATORS}
    return max(widths, key=lambda s: widths[s])


def _header(text: str, separator: str, path: Path) -> list[str]:
    stream = io.StringIO(text.lstrip("\r\n"), newline="")
    try:
        return next(csv.reader(stream, delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"{path} is not a table: {error} in line 1.") from None


def _numbers_if_all_are(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column as numbers if every value is one and none has a leading zero."""
    column = column.str.strip()
    if not column.notna().any() or column.str.match(r"[+-]?0\d").any():
        return column
    try:
        return pd.to_numeric(column)
    except ValueError:
        return column


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")

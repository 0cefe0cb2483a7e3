"""A user's file as a table: CSV (also compressed) or Parquet."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._arrow import pa, pq, require_arrow
from evenhand._frames import DAYS, EXACT_DIGITS, PLACES, as_pandas
from evenhand.datasets.columns import refuse_repeated
from evenhand.datasets.csv_cells import as_written

MISSING = ("", "NA", "N/A", "NaN", "nan", "?")
SEPARATORS = (",", ";", "\t", "|")

_NO_TABLES = {
    b"PK": "a workbook (.xlsx) or another zip archive",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel (.xls)",
    b"%PDF": "a PDF document",
    b"SQLite format 3\0": "a SQLite database",
    b"ARROW1": "an Arrow file",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"\x93NUMPY": "a NumPy array",
}
_NAMED = re.compile(r"sep=(.)(?=[\r\n])")
# Not "#,name" nor "#id,name": these are headers. Words, as in "#made by x,y", may be either.
_COMMENT = re.compile(r"#([# ]|[^,;\t|\r\n]*([\r\n]| [^,;\t|\r\n ])|[^\r\n]*[\r\n]+#)")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_written: ContextVar[tuple[str | None, str | None]] = ContextVar(
    "evenhand_tables_written", default=(None, None)
)


@contextmanager
def tables_written(*, separator: str | None = None, encoding: str | None = None) -> Iterator[None]:
    """Let ``read_table`` take these in this block, where it is given nothing else."""
    before = _written.get()
    token = _written.set((separator or before[0], encoding or before[1]))
    try:
        yield
    finally:
        _written.reset(token)


def read_table(
    path: str | PathLike[str], *, separator: str | None = None, encoding: str | None = None
) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or path
        Text with a header, plain or compressed by gzip, with lines that end in LF, CR LF or CR; or
        Parquet. No line is a comment. A first line ``sep=;`` of Excel names the separator.
    separator : str, optional
        One character between two values. Default: comma, semicolon, tab or bar, whichever parts the
        header into the most columns.
    encoding : str, optional
        Of the text, such as "latin-1". Default: UTF-8, or UTF-16 where the file begins as such.

    Returns
    -------
    DataFrame
        Of CSV: a column is numbers if every value in it is one, and text otherwise. Whole numbers
        some of which are missing are Int64, also where they are written as 3.0. A column where
        some number has a leading zero ("007") stays text: it is a code. Missing are an empty
        field, NA, N/A, NaN, nan and ?. An apostrophe before = + - @ is taken away, which was put
        there so that no spreadsheet runs the cell. Of Parquet: as stored; whole numbers and truth
        values some of which are missing are Int64, ... and boolean, and days (date32) are
        datetime64[s], of which ``attrs`` keep that they are days; decimals of at most 15 digits
        are float64, which holds each, and ``attrs`` keep how many decimals they have. What a
        column means is decided later, by a ``Schema`` of public rows.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, has no rows, or is not a table; if a column has no name or two
        columns have the same name; for text that is not in this encoding.
    """
    path = Path(path)
    separator, encoding = separator or _written.get()[0], encoding or _written.get()[1]
    _check_how(separator, encoding)
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
    frame = (
        _parquet(content, path)
        if is_parquet
        else _csv(_text(content, path, encoding), path, separator)
    )
    if not len(frame):
        raise ValueError(f"{path} has a header and no rows.")
    return frame


def _parquet(content: bytes, path: Path) -> pd.DataFrame:
    require_arrow()
    try:
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
        stored = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a Parquet file: {first_line(error)}.") from None
    # Of plain whole numbers and truth values pandas makes floats and objects where some miss, and
    # objects of days and of decimals.
    named = [name for name in stored.column_names if name in frame and _is_lost(stored[name])]
    known = as_pandas(stored.select(named))
    frame = frame.assign(**known)
    frame.attrs |= {which: known.attrs[which] for which in (DAYS, PLACES)}
    return frame


def _is_lost(stored: Any) -> bool:
    gaps, kind = bool(stored.null_count), stored.type
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    exact = pa.types.is_decimal(kind) and kind.precision <= EXACT_DIGITS
    return bool((gaps and plain) or pa.types.is_date32(kind) or exact)


def _check_how(separator: str | None, encoding: str | None) -> None:
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(
            f"separator must be one character between two values, got {separator!r}. Common are "
            f"{', '.join(map(repr, SEPARATORS))}."
        )
    if encoding is None:
        return
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(
            f"encoding must be one that Python knows, such as utf-8, latin-1, cp1252 or utf-16, "
            f"got {encoding!r}."
        ) from None


def _text(content: bytes, path: Path, encoding: str | None) -> str:
    """Decode a text file, or say what else it is."""
    for start, what in _NO_TABLES.items():
        if content.startswith(start):
            raise ValueError(f"{path} is {what}. Save the table as CSV or Parquet.")
    chosen = encoding or ("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    if codecs.lookup(chosen).name == "utf-8":
        chosen = "utf-8-sig"  # the mark at its beginning is no part of the first name
    try:
        text = content.decode(chosen)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in {encoding or 'UTF-8'}: byte {error.start} cannot be read. Name "
            f"its encoding (--encoding latin-1 or cp1252 for most files of Windows; "
            f"read_table(encoding=...)), or save the table in UTF-8 or as Parquet."
        ) from None
    if "\0" in text:
        raise ValueError(f"{path} is not a text file. Save the table as CSV or Parquet.")
    if text.lstrip().startswith(("{", "[{", "[[")) or path.suffix.lower() in (".json", ".jsonl"):
        raise ValueError(f"{path} holds JSON. Save the table as CSV or Parquet.")
    if not text.strip():
        raise ValueError(f"{path} is empty.")
    return text


def _csv(text: str, path: Path, separator: str | None) -> pd.DataFrame:
    if named := _NAMED.match(text):  # its line stays, empty: others keep their number
        separator, text = separator or named[1], text[named.end(1) :]
    if _COMMENT.match(text.lstrip("\r\n")):
        raise ValueError(
            f"{path} begins with a comment (#), where a table has its header. Remove all lines "
            f"that begin so; if the first of them is the header, write it without the #."
        )
    separator = separator or _separator(text, path)
    header = [as_written(name.strip()) for name in _header(text, separator, path)]
    unnamed = [i + 1 for i, name in enumerate(header) if not name]
    if unnamed == [len(header)]:
        raise ValueError(
            f"The header of {path} ends with a separator ({separator!r}), so that column "
            f"{unnamed[0]} has no name. If all lines end so, write them without it; else name the "
            f"column in the header."
        )
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
        raise ValueError(f"{path} is not a table: {first_line(error)}.") from None
    return frame.apply(numbers_if_all_are)


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
        raise _broken(path, error, lines.line_num) from None


def _broken(path: Path, error: csv.Error, line: int) -> ValueError:
    if "field limit" not in str(error):
        return ValueError(f"{path} is not a table: {error} in line {line}.")
    return ValueError(
        f"{path} is not a table: a value that begins before or in line {line} is longer than "
        f"{csv.field_size_limit():,} characters. Close a quotation mark that was left open, or "
        f"leave the column out."
    )


def _separator(text: str, path: Path) -> str:
    """Return the separator that splits the header into the most columns."""
    widths = {s: len(_header(text, s, path)) for s in SEPARATORS}
    return max(widths, key=lambda s: widths[s])


def _header(text: str, separator: str, path: Path) -> list[str]:
    stream = io.StringIO(text.lstrip("\r\n"), newline="")
    try:
        return next(csv.reader(stream, delimiter=separator))
    except csv.Error as error:
        raise _broken(path, error, 1) from None


def numbers_if_all_are(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column as numbers if every value is one and none has a leading zero."""
    column = column.str.strip()
    if column.str.startswith("'").any():
        column = column.map(as_written, na_action="ignore").str.strip()
    known = column.dropna()
    if not len(known) or known.str.match(r"[+-]?0\d").any():
        return column
    try:
        numbers = pd.to_numeric(known)
    except ValueError:
        return column
    if len(known) == len(column):
        return numbers
    if numbers.dtype.kind in "iu":
        # Not by way of floats: beyond 2 ** 53 these would be other numbers.
        numbers = numbers.astype("UInt64" if numbers.dtype.kind == "u" else "Int64")
    elif numbers.dtype.kind == "f" and (numbers.abs() < 2**53).all() and (numbers % 1 == 0).all():
        numbers = numbers.astype("Int64")  # pandas writes 3 as 3.0 where others are missing
    return numbers.reindex(column.index)


def first_line(error: Exception) -> str:
    """Return how an error of another library begins, as a part of a sentence."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")

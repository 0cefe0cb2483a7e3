"""Rows of Parquet files that are read in batches: no table of them is ever held."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._arrow import ds, fs, pa, pc, require_arrow
from evenhand._checks import MOST_CLASSES, did_you_mean
from evenhand._frames import as_pandas
from evenhand.datasets.columns import some
from evenhand.datasets.files import first_line
from evenhand.typing import Array

_PLAIN: Final = re.compile(r"(u?int\d+|bool|str)$")

PIECES_OF_SAMPLE: Final = 8
"""Row groups that a sample is read from, spread over all of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """One row group of one file."""

    fragment: Any = field(repr=False)
    """A ``pyarrow.dataset.Fragment``."""
    start: int
    n_rows: int
    """``start`` and ``n_rows``: rows before it, in the order of the paths, and in it."""
    written: tuple[int, int] = (0, 0)
    """When its file was written, in nanoseconds, and its bytes."""

    @property
    def path(self) -> str:
        """Of its file."""
        return str(self.fragment.path)

    @property
    def changed(self) -> bool:
        """Whether the file was written to since."""
        return _written(self.fragment) != self.written


def _written(fragment: Any) -> tuple[int, int]:
    (found,) = fragment.filesystem.get_file_info([fragment.path])
    return found.mtime_ns or 0, found.size or 0


@dataclass(frozen=True, eq=False)
class ParquetRows:
    """Private rows in Parquet files, for ``fit`` of what need not hold them.

    A generator of tables that asks counts of them takes it in place of a frame: ``fit(
    ParquetRows(source), label="income", sensitive="sex", budget=...)``.

    A classifier that asks teachers: ``fit(ParquetRows(source), "label", unit_ids="person",
    X_public=frame, ...)``. The label and the unit are names of columns, and the features are the
    columns of the public rows. Every teacher keeps at most ``rows_per_teacher`` rows, whatever the
    table holds.

    Parameters
    ----------
    source : str, path, or sequence of them
        A file, a folder of files (with folders in it, also such as ``year=2024``), or a URL such as
        ``s3://bucket/folder``. Files are read in the order of their paths.
    rows_per_teacher : int
        Those with the smallest keyed hash of their record or unit: a choice that depends on no
        other record of another teacher, and not on the order of the rows.
    batch_rows : int
        Rows that are decoded at a time.
    scratch : path, optional
        A folder that all workers share: the rows are dealt to files in it, and teachers trained
        from there, by the joblib backend in force (on a cluster: ``on_ray`` of
        ``evenhand.frontier.cluster``). Private rows lie in it meanwhile; a folder of its own is
        made, and removed. Default: all of it in this process, in memory.
    tasks : int
        Into how many both are divided, where there is ``scratch``; and counting, always.
    drop : sequence of str
        Columns that a generator does not learn.
    filesystem : pyarrow or fsspec file system, optional
        Where ``source`` is. Default: told by the URL, or that of this machine.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> frame = pd.DataFrame({"age": [31, 45, 28], "income": ["low", "high", "low"]})
    >>> frame.to_parquet(f"{folder}/part-0.parquet")
    >>> rows = ParquetRows(folder)
    >>> len(rows), rows.names, rows.classes("income").tolist()
    (3, ('age', 'income'), ['high', 'low'])
    """

    source: str | PathLike[str] | Sequence[str | PathLike[str]]
    _: KW_ONLY
    rows_per_teacher: int = 1000
    batch_rows: int = 65_536
    scratch: str | PathLike[str] | None = None
    tasks: int = 32
    drop: Sequence[str] = ()
    filesystem: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_arrow()
        for name in ("rows_per_teacher", "batch_rows", "tasks"):
            _checks.at_least(name, getattr(self, name), 1)
        if self.scratch is not None and not Path(self.scratch).is_dir():
            raise ValueError(
                f"scratch must be a folder that is there and that all workers share, got "
                f"{fspath(self.scratch)!r}. Make it first."
            )

    @property
    def where(self) -> str:
        """What messages call it."""
        if isinstance(self.source, str | PathLike):
            return fspath(self.source)
        return f"{len(self.source)} Parquet files"

    @cached_property
    def _dataset(self) -> Any:
        given = self.source
        one = isinstance(given, str | PathLike)
        source: Any = fspath(given) if one else [fspath(each) for each in given]  # type: ignore[arg-type, union-attr]
        try:
            system = self.filesystem
            if one and system is None and "://" in source:
                system, source = fs.FileSystem.from_uri(source)
            found = ds.dataset(source, format="parquet", partitioning="hive", filesystem=system)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is nothing at {self.where}. Check the path; it is read from here: "
                f"{Path.cwd()}."
            ) from None
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise ValueError(
                f"{self.where} cannot be read as Parquet: {first_line(error)}. Give a Parquet "
                f"file, a folder of Parquet files alone, or a URL of one."
            ) from None
        except OSError as error:
            raise OSError(
                f"{self.where} cannot be reached: {first_line(error)}. Check the address and the "
                f"credentials of this machine."
            ) from None
        if not found.files:
            raise ValueError(f"{self.where} holds no Parquet file.")
        return found

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All row groups, in the order of the paths of their files."""
        files = sorted(self._dataset.get_fragments(), key=lambda each: str(each.path))
        times = [_written(file) for file in files]
        self._refuse_other_files(files)
        found: list[Piece] = []
        start = 0
        for file, written in zip(files, times, strict=True):
            for group in file.split_by_row_group():
                n = sum(part.num_rows for part in group.row_groups)
                if n:
                    found.append(Piece(fragment=group, start=start, n_rows=n, written=written))
                start += n
        if not start:
            raise ValueError(f"{self.where} has no rows.")
        return tuple(found)

    def _refuse_other_files(self, files: Iterable[Any]) -> None:
        """Refuse files that are damaged, or have other columns than the first: all of them."""
        first, wrong = None, []
        for file in files:
            try:
                schema = file.physical_schema
            except (pa.ArrowException, OSError) as error:
                wrong.append(f"{file.path} is not a Parquet file ({first_line(error)})")
                continue
            first = first or schema
            kinds, expected = (dict(zip(s.names, s.types, strict=True)) for s in (schema, first))
            if kinds != expected:
                odd = [n for n in expected | kinds if kinds.get(n) != expected.get(n)]
                wrong.append(f"{file.path} has another column {odd[0]!r} than the first file")
        if wrong:
            raise ValueError(
                f"{self.where}: {'; '.join(wrong[:5])}"
                f"{f'; and {len(wrong) - 5} files more' if len(wrong) > 5 else ''}. All files need "
                f"the same columns of the same types: mend these, or name the good ones."
            )

    def __len__(self) -> int:
        return self.pieces[-1].start + self.pieces[-1].n_rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._dataset.schema.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of those that pandas reads as columns, and not as an index, less ``drop``."""
        self.require((name, "drop") for name in self.drop)
        away = {*self.drop, *map(str, self._stored.get("index_columns", ()))}
        return tuple(name for name in self.names if name not in away)

    @property
    def _stored(self) -> Mapping[str, Any]:
        """What pandas wrote of its dtypes."""
        return self._dataset.schema.pandas_metadata or {}

    @property
    def stretches(self) -> list[tuple[Piece, ...]]:
        """The row groups, divided over ``tasks``."""
        return [some for some in divided(self.pieces, self.tasks) if some]

    def as_stored(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return columns whose dtype cannot hold missing values as such, if pandas wrote so.

        Raises
        ------
        ValueError
            If there is one all the same, in another file.
        """
        kinds = {
            column["name"]: column["numpy_type"]
            for column in self._stored.get("columns", ())
            if column["name"] in frame.columns
            and column["pandas_type"] != "categorical"
            and _PLAIN.match(column["numpy_type"])
        }
        gaps = [name for name in kinds if kinds[name] != "str" and frame[name].isna().any()]
        if gaps:
            raise ValueError(
                f"{self.where}: the column {gaps[0]!r} has no value in some rows, and cannot miss "
                f"one by the dtype of the first file, {kinds[gaps[0]]}. Write all files with one "
                f"dtype that can, such as 'Int64' or 'boolean'."
            )
        return frame.astype(kinds)

    def require(self, named: Iterable[tuple[str, str]]) -> None:
        """Refuse columns that are not there, all of them; pairs of a name and who names it."""
        absent = [(name, why) for name, why in named if name not in self.names]
        if absent:
            listed = ", ".join(f"{name!r} ({why})" for name, why in absent)
            raise ValueError(
                f"{self.where} has no column {listed}.{did_you_mean(absent[0][0], self.names)} Its "
                f"columns: {some(self.names, 30)}."
            )

    def batches(
        self, columns: Sequence[str], pieces: Iterable[Piece] | None = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Give the rows in batches, each with the number of the rows before it.

        Raises
        ------
        ValueError
            If a file changed since its footer was read, or breaks off.
        """
        schema = self._dataset.schema
        for piece in self.pieces if pieces is None else pieces:
            done = 0
            try:
                for batch in piece.fragment.to_batches(
                    schema=schema,
                    columns=list(columns),
                    batch_size=self.batch_rows,
                    batch_readahead=0,
                    fragment_readahead=0,
                    use_threads=False,
                ):
                    if batch.num_rows:
                        yield piece.start + done, pa.Table.from_batches([batch])
                    done += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise ValueError(
                    f"{piece.path} broke off while it was read: {first_line(error)}. Write the "
                    f"file again, or leave it out; what was charged before, if anything, stays "
                    f"charged."
                ) from None
            if done != piece.n_rows or piece.changed:
                raise ValueError(
                    f"{piece.path} changed since it was first read. Fit anew when nobody writes "
                    f"to it; what was charged before, if anything, stays charged."
                )

    def sample(self, columns: Sequence[str], n_rows: int = 50_000) -> pd.DataFrame:
        """Return some rows, of row groups that are spread over the table. Private."""
        step = max(1, len(self.pieces) // PIECES_OF_SAMPLE)
        chosen = self.pieces[::step][:PIECES_OF_SAMPLE]
        each = max(1, n_rows // len(chosen))
        found = []
        for piece in chosen:
            left = each
            for _, batch in self.batches(columns, [piece]):
                found.append(batch.slice(0, left))
                left -= found[-1].num_rows
                if left <= 0:
                    break
        frame: pd.DataFrame = as_pandas(pa.concat_tables(found))
        return frame

    def classes(self, label: str) -> Array:
        """Return the different labels in order, by one pass over their column alone.

        Raises
        ------
        ValueError
            For rows without a label, and for a column of too many values.
        """
        found: set[Any] = set()
        missing: list[int] = []
        for start, batch in self.batches([label]):
            column = batch.column(0)
            gone = pc.is_null(column, nan_is_null=True)
            if pc.any(gone).as_py():
                missing += (start + np.flatnonzero(gone.to_numpy())).tolist()[:5]
            found.update(as_pandas(pc.unique(column.filter(pc.invert(gone)))).tolist())
            if len(found) > MOST_CLASSES:
                raise ValueError(
                    f"The label {label!r} has more than {MOST_CLASSES} different values. Is it "
                    f"another column? Make classes of an amount first."
                )
        if missing:
            raise ValueError(
                f"y has no label in {_values.rows(np.array(missing))}: the column {label!r} is "
                f"empty there. Leave these rows out: a teacher cannot learn from them."
            )
        values = sorted(found, key=lambda value: (str(type(value)), value))
        as_text = any(isinstance(value, str) for value in values)
        return np.array(values, dtype=object) if as_text else np.array(values)


def divided(what: Sequence[Any], n: int) -> list[Any]:
    """Return up to ``n`` stretches of about one length."""
    edges = np.linspace(0, len(what), n + 1).astype(int)
    return [what[a:b] for a, b in itertools.pairwise(edges)]

"""The private rows as a generator reads them: roles of their columns, checked and bounded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Integral
from typing import Final, Protocol, Self, TypeVar

import pandas as pd
from joblib import Parallel, delayed

from evenhand import _checks
from evenhand._frames import as_pandas
from evenhand._roles import Roles
from evenhand._units import first_records, ids_of
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.parquet import ParquetRows, Piece
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.encoded import EncodedStream, EncodedTable
from evenhand.generators.tables.made_columns import MadeColumn, made_columns
from evenhand.typing import Array


class _Addable(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


_Sum = TypeVar("_Sum", bound=_Addable)


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """Private rows with bounded contributions."""

    table: TypedTable
    """The columns that are generated, in the user's order; the unit is not among them."""
    roles: Roles
    units: Array | None
    """Whose record each row is, as ``ids_of`` names it. Shape (n,)."""
    per_unit: int
    """Rows that one unit has at most; 1 without units."""

    def __len__(self) -> int:
        return len(self.table)

    def total(self, count: Callable[[TypedTable], _Sum], columns: Sequence[str]) -> _Sum:
        """Return what ``count`` finds in all rows; it may look at these columns alone."""
        return count(self.table)

    def encoded(self, codec: TableCodec, released: Sequence[str]) -> EncodedTable | EncodedStream:
        """Return the rows as states; the columns ``released`` may lack values of theirs."""
        return EncodedTable.of(
            self.table, codec, released, units=self.units, per_unit=self.per_unit
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamedRecords(Records):
    """Private rows that are read in batches, again for each count; ``table`` are some of them."""

    rows: ParquetRows
    learnt: Callable[[pd.DataFrame], pd.DataFrame]
    """Returns of a batch as it is stored what is learnt of it."""
    made: tuple[MadeColumn, ...]
    """Columns of the rows that are not learnt."""

    @classmethod
    def of(cls, rows: ParquetRows, roles: Roles, schema: Schema | None) -> StreamedRecords:
        """Check the roles; the rows are looked at for labels and groups that are missing."""
        given = TypedTable.of(rows.as_stored(rows.sample(rows.columns)), _TABLE)
        named = _named(roles)
        _checks.together(partial(given.require, [n], f"which {what}= names") for what, n in named)
        made = () if schema is None else made_columns(given, schema, roles.conditions, None)
        learnt = rows.as_stored if schema is None else partial(_learnt, rows, schema)
        records = cls(
            table=TypedTable.of(learnt(given.frame), _TABLE),
            roles=roles,
            units=None,
            per_unit=1,
            rows=rows,
            learnt=learnt,
            made=made,
        )
        table = records.table
        _require_feature(table, roles)
        records.total(partial(_refuse_gaps, named), roles.conditions)
        return records

    def __len__(self) -> int:
        return len(self.rows)

    def total(self, count: Callable[[TypedTable], _Sum], columns: Sequence[str]) -> _Sum:
        """Add up what ``count`` finds in each batch; the joblib backend in force divides them."""
        each = delayed(_total)
        tasks = (each(self.rows, some, self.learnt, count, columns) for some in self.rows.stretches)
        parts: Iterator[_Sum] = Parallel(return_as="generator_unordered")(tasks)
        return reduce(operator.add, parts)

    def encoded(self, codec: TableCodec, released: Sequence[str]) -> EncodedStream:
        """Return what makes states of the rows for each count."""
        total = partial(self.total, columns=self.table.names)
        return EncodedStream(total=total, codec=codec, released=released)


def _total(
    rows: ParquetRows,
    pieces: Sequence[Piece],
    learnt: Callable[[pd.DataFrame], pd.DataFrame],
    count: Callable[[TypedTable], _Sum],
    columns: Sequence[str],
) -> _Sum:
    """Add up what is counted in some row groups; in another process perhaps."""
    return reduce(operator.add, map(count, _tables(rows, pieces, learnt, columns)))


def _learnt(rows: ParquetRows, schema: Schema, batch: pd.DataFrame) -> pd.DataFrame:
    return schema.learnt_of(rows.as_stored(batch), _TABLE)


def _tables(
    rows: ParquetRows,
    pieces: Sequence[Piece],
    learnt: Callable[[pd.DataFrame], pd.DataFrame],
    columns: Sequence[str],
) -> Iterator[TypedTable]:
    """Give the batches as tables, whose index numbers the rows of all files."""
    for start, batch in rows.batches(columns, pieces):
        frame = learnt(as_pandas(batch))
        yield TypedTable(frame.set_axis(range(start, start + len(frame))), _TABLE)


def read_records(frame: pd.DataFrame, roles: Roles, *, per_unit: int = 1) -> Records:
    """Check the roles and bound what one unit adds.

    Raises
    ------
    ValueError
        For a column that is not there (the nearest name is given), no rows, no feature, and
        labels, groups or units that are missing (the rows are given).
    TypeError
        For units that are neither whole numbers nor text.

    Privacy
    -------
    Of the rows of a unit the first ``per_unit`` are kept: which ones depends on the order of its
    own rows alone.
    """
    # Whoever gave the table counts its rows from the first one, also where rows are left out.
    given = TypedTable.of(frame, _TABLE)
    kept = given.frame.reset_index(drop=True)
    table, units = TypedTable(kept, given.where), None
    _refuse_gaps(_named(roles), table)
    if not len(table):
        raise ValueError("The private table has no rows.")
    if roles.unit is not None:
        ids = ids_of(kept[roles.unit])
        among = first_records(ids, per_unit)
        kept, units = kept[among], ids[among]
        table = TypedTable(kept.drop(columns=[roles.unit]), given.where)
    _require_feature(table, roles)
    return Records(
        table=table,
        roles=roles,
        units=units,
        per_unit=per_unit if units is not None else 1,
    )


def _require_feature(table: TypedTable, roles: Roles) -> None:
    if not set(table.names) - set(roles.conditions):
        raise ValueError("No column is left beside the label and the sensitive ones.")


def _named(roles: Roles) -> list[tuple[str, str]]:
    """Return the roles with the columns that have them."""
    several = {"label": [roles.label], "sensitive": roles.sensitive, "unit": [roles.unit]}
    return [(what, name) for what, names in several.items() for name in names if name is not None]


def _refuse_gaps(named: Sequence[tuple[str, str]], table: TypedTable) -> int:
    """Raise for columns with a role that are not there, or have a missing value."""
    _checks.together(partial(_require_whole, table, what, name) for what, name in named)
    return 0


def first_of_units(frame: pd.DataFrame, unit: str, per_unit: int) -> pd.DataFrame:
    """Return the rows that a fit reads: of each unit the first ones."""
    return frame[first_records(ids_of(frame[unit]), per_unit)]


def _require_whole(table: TypedTable, what: str, name: str) -> None:
    table.require([name], f"which {what}= names")
    start = int(table.frame.index[0]) if len(table) else 0
    table[name].refuse_missing(f"{what} column", f"{_WAYS_OUT[what]}.", start=start)


def as_roles(label: str, sensitive: str | Sequence[str], unit: str | None) -> Roles:
    """Take one sensitive column or several."""
    if not isinstance(label, str | Integral):
        raise TypeError(f"label must name one column, got {label!r}.")
    one = isinstance(sensitive, str | Integral)
    named = (str(sensitive),) if one else _checks.listed_names("sensitive", sensitive)
    if not named:
        raise ValueError("sensitive names no column. Name at least one, e.g. sensitive='sex'.")
    # A frame may call its columns 0, 1, 2: to us all names are text.
    whose = None if unit is None else str(unit)
    return Roles(label=str(label), sensitive=named, unit=whose)


_TABLE: Final = "private table"

_WAYS_OUT: Final = {
    "label": "Leave these rows out",
    "sensitive": "Leave these rows out, make them a group with fillna('unknown'), or predict them "
    "from public rows with reference=",
    "unit": "Give each of these rows an id of its own",
}

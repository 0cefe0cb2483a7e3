"""Private rows as states that are counted: arrays in memory, or made anew of each batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from evenhand._units import Digests
from evenhand.datasets.columns import TypedTable
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.merged_states import by_ranges
from evenhand.typing import Array, BoolArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Clique:
    """Columns to count together, in parts of the conditions, (n_conditions,)."""

    columns: tuple[int, ...]
    parts: IntArray


class CountedRows(Protocol):
    """What a method of counts asks of private rows; whether they are in memory it does not see."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """States of each feature."""

    @property
    def per_unit(self) -> int:
        """Records that one unit has at most; 1 without units."""

    def counts(self, cliques: Sequence[Clique]) -> list[IntArray]:
        """Count the rows by part and by the states of each clique's columns. Private."""

    def merged(self, ranges: Mapping[int, IntArray]) -> CountedRows:
        """Return the same rows, with states of some features merged into ranges."""

    def one_in(self, n: int, key: bytes) -> EncodedTable:
        """Return the rows themselves, in memory: each one with a chance of 1 in ``n``. Private.

        By a keyed hash of its position: under a key that nobody knows a coin of its own for each.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedTable:
    """The private rows as a method reads them."""

    codes: IntArray
    """State of each feature. Shape (n, n_features)."""
    condition: IntArray
    """Combination of label and group of each row. Shape (n,)."""
    sizes: tuple[int, ...]
    """States of each feature."""
    units: Array | None
    """Whose row it is."""
    per_unit: int

    @classmethod
    def of(
        cls,
        table: TypedTable,
        codec: TableCodec,
        released: Sequence[str],
        *,
        units: Array | None = None,
        per_unit: int = 1,
    ) -> EncodedTable:
        """Read the rows by a codec, of which the columns ``released`` may lack values of theirs."""
        cells = {
            c.name: c.cells(table.pop(c.name), released=c.name in released) for c in codec.columns
        }
        # A row whose label or group was not named has no condition: a matter of this row alone.
        named = np.logical_and.reduce([values >= 0 for values in cells.values()])
        if not named.all():
            cells = {name: values[named] for name, values in cells.items()}
        condition = codec.conditions.code([cells[name] for name in codec.given])
        # Column by column in memory: they are counted so.
        codes = np.empty((len(condition), len(codec.features)), dtype=np.int64, order="F")
        for i, name in enumerate(codec.features):
            codes[:, i] = codec[name].states(cells.pop(name))
        return cls(
            codes=codes,
            condition=condition,
            sizes=_sizes(codec),
            units=None if units is None else units[named],
            per_unit=per_unit,
        )

    def joined(self, codec: TableCodec) -> EncodedTable:
        """Return the same rows with cells joined to the bins of ``codec``; these are used up."""
        for i, name in enumerate(codec.features):
            self.codes[:, i] = codec[name].states(self.codes[:, i])
        return replace(self, sizes=_sizes(codec))

    def counts(self, cliques: Sequence[Clique]) -> list[IntArray]:
        """See ``CountedRows``."""
        return [self._count(clique) for clique in cliques]

    def merged(self, ranges: Mapping[int, IntArray]) -> EncodedTable:
        """See ``CountedRows``."""
        if not ranges:
            return self
        return replace(
            self, codes=by_ranges(self.codes, ranges), sizes=_merged_sizes(self.sizes, ranges)
        )

    def one_in(self, n: int, key: bytes) -> EncodedTable:
        """See ``CountedRows``."""
        if n == 1:
            return self
        rows = _chosen(np.arange(len(self.codes)), n, key)
        units = None if self.units is None else self.units[rows]
        return replace(self, codes=self.codes[rows], condition=self.condition[rows], units=units)

    def _count(self, clique: Clique) -> IntArray:
        shape = _shape(clique, self.sizes)
        at = clique.parts[self.condition]
        for i in clique.columns:
            at = at * self.sizes[i] + self.codes[:, i]
        counted = np.bincount(at, minlength=math.prod(shape))
        return counted.reshape(shape).astype(np.int64, copy=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedStream:
    """Private rows that are read again for each count."""

    total: Callable[[Callable[[TypedTable], Any]], Any] = field(repr=False)
    """Adds up what is counted of the tables in which the rows come."""
    codec: TableCodec
    released: Sequence[str]
    """See ``EncodedTable.of``."""
    per_unit: int = 1
    ranges: Mapping[int, IntArray] = field(default_factory=dict)
    """Of features whose states are merged, see ``CountedRows.merged``."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """States of each feature."""
        return _merged_sizes(_sizes(self.codec), self.ranges)

    def joined(self, codec: TableCodec) -> EncodedStream:
        """Return the same rows with cells joined to the bins of ``codec``."""
        return replace(self, codec=codec)

    def counts(self, cliques: Sequence[Clique]) -> list[IntArray]:
        """See ``CountedRows``."""
        count = partial(_counts_of, self.codec, self.released, self.ranges, cliques)
        counted: IntArray = self.total(count)
        shapes = [_shape(clique, self.sizes) for clique in cliques]
        parts = np.split(counted, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def merged(self, ranges: Mapping[int, IntArray]) -> EncodedStream:
        """See ``CountedRows``."""
        return replace(self, ranges=ranges)

    def one_in(self, n: int, key: bytes) -> EncodedTable:
        """See ``CountedRows``."""
        some: _Batches = self.total(
            partial(_some_of, self.codec, self.released, self.ranges, n, key)
        )
        first, *more = [table for _, table in sorted(some.tables, key=itemgetter(0))]
        return replace(
            first,
            codes=np.asfortranarray(np.concatenate([t.codes for t in (first, *more)])),
            condition=np.concatenate([t.condition for t in (first, *more)]),
        )


@dataclass(frozen=True, eq=False)
class _Batches:
    """Rows of batches, each with the number of its first one."""

    tables: list[tuple[int, EncodedTable]]

    def __add__(self, other: _Batches) -> _Batches:
        return _Batches([*self.tables, *other.tables])


def _some_of(
    codec: TableCodec,
    released: Sequence[str],
    ranges: Mapping[int, IntArray],
    n: int,
    key: bytes,
    table: TypedTable,
) -> _Batches:
    numbers = table.frame.index.to_numpy()
    if n > 1:
        rows = _chosen(numbers, n, key)
        table = TypedTable(table.frame[rows], table.where)
    return _Batches([(int(numbers[0]), EncodedTable.of(table, codec, released).merged(ranges))])


def _chosen(positions: IntArray, n: int, key: bytes) -> BoolArray:
    """Whether the hash of each position is one in ``n``."""
    chosen: BoolArray = (
        Digests.of(map(str, positions.tolist()), key, b"evenhand.records").modulo(n) == 0
    )
    return chosen


def _counts_of(
    codec: TableCodec,
    released: Sequence[str],
    ranges: Mapping[int, IntArray],
    cliques: Sequence[Clique],
    table: TypedTable,
) -> IntArray:
    counts = EncodedTable.of(table, codec, released).merged(ranges).counts(cliques)
    return np.concatenate([count.reshape(-1) for count in counts])


def _sizes(codec: TableCodec) -> tuple[int, ...]:
    return tuple(codec[name].n_states for name in codec.features)


def _merged_sizes(sizes: Sequence[int], ranges: Mapping[int, IntArray]) -> tuple[int, ...]:
    return tuple(int(ranges[i].max()) + 1 if i in ranges else n for i, n in enumerate(sizes))


def _shape(clique: Clique, sizes: Sequence[int]) -> tuple[int, ...]:
    return (int(clique.parts.max()) + 1, *(sizes[i] for i in clique.columns))

"""Single numbers that many records have: named by noisy counts, and told apart by label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from evenhand.datasets.columns import TypedTable
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.bins import MOST_SINGLE
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.encoded import Clique, CountedRows
from evenhand.generators.tables.records import Records
from evenhand.generators.tables.released_schema import ColumnHistograms, threshold
from evenhand.typing import FloatArray, IntArray

NAMES: Final = "counts of single numbers"
LABELS: Final = "counts of single numbers by label"

_WIDEST: Final = 2**18
"""Numbers between the bounds: of more none is counted, for each may need noise of its own."""

_RARE: Final = 4
"""Records of a number that are not counted: noise would be drawn for each that only one has."""

_MOST: Final = 128
"""Numbers of a column that are named, the commonest: where all are common none stands out."""

_WORTH: Final = 1.0
"""Of the noise on its counts by label and group, that a state must tell of labels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counted:
    """The numbers of few decimals that occur in each column, ascending, and in how many rows."""

    found: Mapping[str, tuple[FloatArray, IntArray]] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Sequence[ColumnSchema], table: TypedTable) -> _Counted:
        found = {}
        for column in columns:
            assert column.bounds is not None
            numbers, (low, high) = column.numbers(table[column.name]), column.bounds
            exact = numbers == np.round(numbers, _decimals(column) or 0)
            exact &= (low <= numbers) & (numbers <= high)
            values, counts = np.unique(numbers[exact], return_counts=True)
            found[column.name] = values, counts.astype(np.int64)
        return cls(found=found)

    def __add__(self, other: _Counted) -> _Counted:
        found = {}
        for name, (values, counts) in self.found.items():
            more, theirs = other.found[name]
            both, at = np.unique(np.concatenate([values, more]), return_inverse=True)
            total = np.bincount(at, np.concatenate([counts, theirs]), len(both))
            found[name] = both, total.astype(np.int64)
        return _Counted(found=found)


def wide_columns(codec: TableCodec) -> list[ColumnSchema]:
    """Return the columns between whose bounds numbers are many, and not too many to count."""
    return [c.schema for c in codec.columns if _decimals(c.schema) is not None]


def _decimals(column: ColumnSchema) -> int | None:
    """Return the most decimals with which numbers are counted, whole ones at least; None: none."""
    if column.bounds is None:
        return None
    for decimals in range(column.decimals or 0, -1, -1):
        low, high = (end * 10**decimals for end in column.bounds)
        if MOST_SINGLE < math.floor(high) - math.ceil(low) + 1 <= _WIDEST:
            return decimals
    return None


def name_values(
    records: Records, columns: Sequence[ColumnSchema], plan: BudgetPlan, delta: float
) -> dict[str, FloatArray]:
    """Return the numbers of each column that stand out of noisy counts.

    Whole ones, and in columns of declared decimals others, as fine as they are not too many.

    The cells of a column of amounts follow from its bounds alone, and what many records have in
    common, such as a limit, a price or a code, is lost in a cell with its neighbors.

    Parameters
    ----------
    records : Records
    columns : sequence of ColumnSchema
        With bounds; at least one. Which these are must be public or released.
    plan : BudgetPlan
        With a share for ``NAMES``.
    delta : float
        With what probability naming may fail.

    Privacy
    -------
    One Gaussian release of ``ColumnHistograms`` of the numbers that more than four records have, by
    how many more. A record moves each of these counts by 1 at most, and a number that has one by
    the records of one unit alone has at most as many as these; so a number is named from
    ``threshold`` on: there the claim is argued for names of categories, of which it asks no more.
    """
    counted = records.total(partial(_Counted.of, columns), [column.name for column in columns])
    counter = ColumnHistograms(n_columns=len(columns), per_unit=records.per_unit)
    each = [
        (values[counts > _RARE], counts[counts > _RARE] - _RARE)
        for values, counts in (counted.found[column.name] for column in columns)
    ]
    # A cell that nobody is in: also where no number is whole something is released, and paid for.
    counts = [*(counts for _, counts in each), np.zeros(1, dtype=np.int64)]
    released = plan.release(counter, np.concatenate(counts), NAMES)
    least = threshold(released.sigma, delta, len(columns), records.per_unit)
    parts = np.split(released.values, np.cumsum([len(values) for values, _ in each]))
    found = {}
    for column, (values, _), noisy in zip(columns, each, parts, strict=False):
        common = np.argsort(-noisy, kind="stable")[:_MOST]
        if named := np.sort(common[noisy[common] >= least]).tolist():
            found[column.name] = values[named]
    return found


def with_values(codec: TableCodec, values: Mapping[str, FloatArray]) -> TableCodec:
    """Give single numbers cells of their own."""
    bins = {name: codec[name].bins for name in values}
    return codec.with_bins({name: b.with_values(values[name]) for name, b in bins.items() if b})


def told_apart(
    codec: TableCodec, data: CountedRows, plan: BudgetPlan, names: Sequence[str], *, most: int
) -> TableCodec:
    """Make states of the numbers of some columns whose labels are unlike those around them.

    Parameters
    ----------
    codec : TableCodec
    data : CountedRows
        The rows by ``codec.by_cell``.
    plan : BudgetPlan
        With a share for ``LABELS``.
    names : sequence of str
        Columns with single numbers.
    most : int
        States that a column gets for numbers.

    Privacy
    -------
    One Gaussian release of ``TableCounts``: of each column, cells by label.
    """
    labels = codec.conditions.labels()
    held = {name: bins for name in names if (bins := codec[name].bins) is not None}
    shapes = tuple(
        (int(labels.max()) + 1, len(bins.cells) + codec[name].has_missing)
        for name, bins in held.items()
    )
    counter = TableCounts(shapes=shapes, per_unit=data.per_unit)
    at = [codec.features.index(name) for name in held]
    counted = data.counts([Clique(columns=(i,), parts=labels) for i in at])
    released = plan.release(counter, np.concatenate([c.ravel() for c in counted]), LABELS)
    sigma, worth = released.sigma, _WORTH * codec.conditions.n * released.sigma
    parts = zip(held.items(), counter.apart(released.values), strict=True)
    return codec.with_bins(
        {
            name: bins.set_apart(noisy[:, : len(bins.cells)], sigma=sigma, worth=worth, most=most)
            for (name, bins), noisy in parts
        }
    )

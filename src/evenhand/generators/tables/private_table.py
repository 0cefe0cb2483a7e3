"""The private table as a payload: columns checked, released where undeclared, cut into states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.datasets import Schema
from evenhand.datasets.columns import kind_by_dtype
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.payload import Encoding
from evenhand.generators.tables.bins import Bins, Cells
from evenhand.generators.tables.codec import ColumnCode, TableCodec
from evenhand.generators.tables.column_checks import ready
from evenhand.generators.tables.records import Records
from evenhand.generators.tables.released_schema import (
    DELTA_SHARE,
    UndeclaredColumns,
    undeclared,
    without_unknown,
)
from evenhand.generators.tables.released_schema import PURPOSE as SCHEMA
from evenhand.privacy import Ledger
from evenhand.typing import Array, IntArray

BINS: Final = "counts along the numeric columns, for their bins"
SCHEMA_SHARE: Final = 0.1
BINS_SHARE: Final = 0.05
_WHERE: Final = "private table"


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedTable:
    """The private rows as a method reads them.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, n_features)
        State of each feature.
    condition : ndarray of int64, shape (n,)
        Combination of label and group of each row.
    sizes : tuple of int
        States of each feature.
    units : ndarray or None
        Whose row it is.
    per_unit : int
    """

    codes: IntArray
    condition: IntArray
    sizes: tuple[int, ...]
    units: Array | None
    per_unit: int

    @classmethod
    def of(cls, records: Records, codec: TableCodec) -> EncodedTable:
        """Read every value as its state."""
        columns = [codec[name] for name in codec.features]
        given = [codec[name].encode(records.frame[name], _WHERE) for name in codec.given]
        return cls(
            codes=np.stack([c.encode(records.frame[c.name], _WHERE) for c in columns], axis=1),
            condition=codec.conditions.code(given),
            sizes=tuple(c.n_states for c in columns),
            units=records.units,
            per_unit=records.per_unit,
        )


@dataclass(kw_only=True, eq=False)
class PrivateTable:
    """Private rows, their roles, and what is declared of their columns; see ``Payload``.

    Parameters
    ----------
    records : Records
    schema : Schema or None
        What is declared. All else is released.
    keep : sequence of str
        Columns that inspection is to let pass.
    n_bins : int
        Bins into which a numeric column is cut at most. At least 2.
    notes : tuple of str
        What was done with missing groups.
    """

    records: Records
    schema: Schema | None
    keep: Sequence[str]
    n_bins: int
    notes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = field(init=False)
    _columns: UndeclaredColumns | None = None

    def __post_init__(self) -> None:
        self.wanted = undeclared(self.records, self.schema)

    @property
    def known(self) -> int:
        """Number of states that all columns have at least, as far as it is public."""
        return sum(
            self.n_bins if self._kind(name) == "numeric" else max(2, self._n_declared(name))
            for name in self.records.frame.columns
        )

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""
        return (
            "the names, the order and the dtypes of the columns",
            *(() if self.schema is None else ("the declared schema",)),
            *(
                ("the reference rows from which missing groups are predicted",)
                if self.notes
                else ()
            ),
        )

    @property
    def delta_aside(self) -> tuple[float, str]:
        """Categories are named with a probability of failure of their own."""
        return (DELTA_SHARE if self.wanted else 0.0), "naming categories"

    def check(self, ledger: Ledger, delta: float) -> None:
        """Refuse columns that cannot be learnt, all at once."""
        first = BudgetPlan(ledger=ledger, shares={SCHEMA: SCHEMA_SHARE})
        self._columns = ready(self.records, self.schema, first, delta, self.keep)
        _checks.at_least("n_bins", self.n_bins, 2)

    def shares(self, of_method: Mapping[str, float]) -> dict[str, float]:
        """Return the public plan: what is not released leaves its part to the method."""
        first: dict[str, float] = {SCHEMA: SCHEMA_SHARE} if self.wanted else {}
        if any(self._kind(name) == "numeric" for name in self.records.frame.columns):
            first[BINS] = BINS_SHARE
        left = 1.0 - sum(first.values())
        return first | {purpose: left * part for purpose, part in of_method.items()}

    def encode(self, plan: BudgetPlan, delta: float) -> Encoding:
        """Release the schema and the bins, and read the rows by them."""
        assert self._columns is not None
        found, records = self._columns.release_schema(plan, delta), self.records
        if self.wanted:
            frame = without_unknown(records.frame, found.schema, self.wanted)
            records = replace(records, frame=frame)
        codec = TableCodec.of(found.schema, records.frame, records.roles.conditions)
        codec = _with_bins(codec, records, plan, self.n_bins)
        return Encoding(
            codec=codec,
            data=EncodedTable.of(records, codec),
            notes=(*found.notes, *self.notes),
            warnings=found.warnings,
            doubts=found.doubts,
        )

    def _kind(self, name: str) -> str:
        """Kind of a column; label and groups are categories."""
        if name in self.records.roles.conditions:
            return "categorical"
        declared = {} if self.schema is None else {c.name: c.kind for c in self.schema.columns}
        return declared.get(name) or kind_by_dtype(self.records.frame[name])

    def _n_declared(self, name: str) -> int:
        columns = () if self.schema is None else self.schema.columns
        return next((len(c.categories) for c in columns if c.name == name), 0)


def _with_bins(codec: TableCodec, records: Records, plan: BudgetPlan, n_bins: int) -> TableCodec:
    """Join the cells of numeric columns by noisy counts."""
    numeric = [c for c in codec.columns if c.bins is not None]
    if not numeric:
        return codec
    widths = tuple((1, len(_cells(c)) + c.has_missing) for c in numeric)
    counter = TableCounts(shapes=widths, per_unit=records.per_unit)
    cells = [c.encode_cells(records.frame[c.name], _WHERE) for c in numeric]
    released = plan.release(counter, counter.total([(0 * c, c) for c in cells]), BINS)
    bins = {}
    for column, noisy in zip(numeric, counter.apart(released.values), strict=True):
        fine = _cells(column)
        bins[column.name] = Bins.from_noisy(
            fine, noisy[0, : len(fine)], sigma=released.sigma, n_bins=n_bins
        )
    return codec.with_bins(bins)


def _cells(column: ColumnCode) -> Cells:
    assert column.bins is not None
    return column.bins.cells

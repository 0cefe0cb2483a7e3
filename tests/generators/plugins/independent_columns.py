"""A generator of tables of one's own: given label and group, columns are drawn independently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan, snr_of_counts
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.typing import Array, FloatArray, IntArray

COUNTS = "counts of each column by label and group"


@register
class IndependentColumns(TableSynthesizer):
    """Draw every column by its noisy counts among records of the same label and group.

    Privacy
    -------
    Sensitivity : see ``TableCounts``: a record is one cell of each table.
    Cost : one Gaussian release.
    """

    method: ClassVar[str] = "independent-columns"
    words: ClassVar[str] = "noisy counts of each column, by label and group"

    tables_: list[FloatArray]

    def _shares(self) -> Mapping[str, float]:
        return {COUNTS: 1.0}

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        n = self.conditions_.n
        counter = TableCounts(shapes=tuple((n, k) for k in data.sizes), per_unit=data.per_unit)
        counted = counter.total([(data.condition, column) for column in data.codes.T])
        released = plan.release(counter, counted, COUNTS)  # charged before its noise is drawn
        self.tables_ = counter.apart(released.values)
        self.counts_ = np.mean([table.sum(axis=1) for table in self.tables_], axis=0)
        self.counts_sigma_ = released.sigma * float(np.mean(data.sizes) / len(data.sizes)) ** 0.5
        self.snr_ = snr_of_counts(float(self.counts_.sum()), n * max(data.sizes), released.sigma)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        columns = []
        for table in self.tables_:
            held = np.cumsum(np.maximum(table, 1e-9), axis=1)[conditions]
            u = rng.random(len(conditions)) * held[:, -1]
            columns.append((held <= u[:, None]).sum(axis=1).clip(max=table.shape[1] - 1))
        return np.stack(columns, axis=1).astype(np.int64)

    def _arrays(self) -> dict[str, Array]:
        return {str(i): table for i, table in enumerate(self.tables_)}

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        self.tables_ = [arrays[str(i)] for i in range(len(arrays))]

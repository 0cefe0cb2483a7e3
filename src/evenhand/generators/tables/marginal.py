"""MarginalSynthesizer: noisy tables of counts, explained by a distribution of largest entropy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final

import numpy as np

from evenhand.generators.aggregators import TableCounts, TableDistances
from evenhand.generators.budget_plan import BudgetPlan, Released, snr_of_counts
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.tables.private_table import EncodedTable
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.tree_distribution import Forest, TreeDistribution, fit_tree
from evenhand.typing import Array, FloatArray, IntArray

OWN: Final = "counts of each column by label and group"
CHOICE: Final = "which pairs of columns depend on each other"
PAIRS: Final = "counts of the chosen pairs of columns"

_MEAN_ABS: Final = math.sqrt(2.0 / math.pi)  # E|N(0, 1)|


@register
@dataclass(eq=False, repr=False, kw_only=True)
class MarginalSynthesizer(TableSynthesizer):
    """Draw tables from noisy counts, conditioned on label and group.

    1. Every column is counted by label and group; all these tables are one Gaussian release.
    2. For every pair of columns: how far is its table from what step 1 alone explains? These
       distances are released; the tree of the largest ones that stand above the noise is chosen.
    3. The tables of the tree's pairs are one more release; without any, those of step 1 again.
    4. The distribution of largest entropy that explains the tables, each within its noise, is
       fitted; it is a tree of columns under each label and group, so rows are drawn exactly.

    The counts by label and group make every balance a matter of how often a condition is asked
    for: it is set after the noise, costs nothing and is exact.

    Parameters
    ----------
    pairs : bool
        Steps 2 and 3. Without them columns are independent given label and group.
    **others
        ``neighbors``, ``n_bins``, ``noise`` and ``random_state``, see ``TableSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one record, or one unit with all of its records that are read; or
        replace one record.
    Sensitivity : ``sqrt(m)`` for m tables of counts; ``sqrt(m (m - 1) / 2)`` for the distances
        of all pairs. Replacing costs ``sqrt(2)`` and 2 times that.
    Cost : every release is Gaussian and their ``mu**2`` sum to the budget's.

    References
    ----------
    McKenna, Miklau and Sheldon 2021 (a tree of noisy marginals, MST; the choice there is by the
    exponential mechanism). McKenna, Sheldon and Miklau 2019 (graphical models from noisy tables).

    Examples
    --------
    >>> import pandas as pd
    >>> from evenhand.datasets import Schema
    >>> from evenhand.privacy import Budget
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 4000, p=[0.3, 0.7])
    >>> hours = np.clip(rng.normal(np.where(sex == "M", 44, 38), 8), 0, 80).round().astype(int)
    >>> rich = np.where(hours + rng.normal(0, 6, 4000) > 44, "yes", "no")
    >>> frame = pd.DataFrame({"hours": hours, "sex": sex, "rich": rich})
    >>> schema = Schema.declared(
    ...     {"hours": {"bounds": (0, 80)}, "sex": ["F", "M"], "rich": ["no", "yes"]}
    ... )
    >>> made = MarginalSynthesizer(random_state=0).fit(
    ...     frame, label="rich", sensitive="sex", budget=Budget(epsilon=1.0, delta=1e-6),
    ...     schema=schema,
    ... )
    >>> made.sample(1000, random_state=0).groupby(["rich", "sex"]).size().tolist()
    [250, 250, 250, 250]
    """

    method: ClassVar[str] = "marginal"
    words: ClassVar[str] = "noisy tables of counts on a tree of columns"

    pairs: bool = True

    def _shares(self) -> Mapping[str, float]:
        return {OWN: 0.5, CHOICE: 0.05, PAIRS: 0.45} if self.pairs else {OWN: 1.0}

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        n_conditions = self.conditions_.n
        counter = TableCounts(
            shapes=tuple((n_conditions, size) for size in data.sizes), per_unit=data.per_unit
        )
        progress("counts", 0, 4)
        counted = counter.total([(data.condition, column) for column in data.codes.T])
        own = plan.release(counter, counted, OWN)
        tables = counter.apart(own.values)
        self.counts_, self.counts_sigma_ = joint_totals(tables, own.sigma)
        cells = n_conditions * round(float(np.median(data.sizes)))
        self.snr_ = snr_of_counts(float(self.counts_.sum()), cells, own.sigma)
        weights = self._known_counts()
        progress("counts", 1, 4)
        alone = Forest(parents=(-1,) * len(data.sizes), order=tuple(range(len(data.sizes))))
        self.distribution_ = fit_tree(alone, tables, own.sigma, (), 1.0, weights)
        if not self.pairs or len(data.sizes) < 2:
            return
        forest = self._choose(data, plan, weights)
        progress("counts", 2, 4)
        if not forest.edges:  # nothing depends on anything else: count the columns again
            again = plan.release(counter, counted, PAIRS)
            self.distribution_ = fit_tree(alone, *_joined(counter, own, again), (), 1.0, weights)
            return
        pairs, sigma = _pair_tables(data, forest, plan)
        progress("counts", 3, 4)
        self.distribution_ = fit_tree(forest, tables, own.sigma, pairs, sigma, weights)
        progress("counts", 4, 4)

    def _choose(self, data: EncodedTable, plan: BudgetPlan, weights: FloatArray) -> Forest:
        """Return the tree of pairs that label and group do not explain."""
        mine, _ = self.distribution_.tables(weights)
        pairs = list(combinations(range(len(data.sizes)), 2))
        counted, fixed = [], []
        for i, j in pairs:
            shape = (data.sizes[i], data.sizes[j])
            counted.append(_pair_counts(data.codes, i, j, shape))
            fixed.append((mine[i] / weights[:, None]).T @ mine[j])
        score = TableDistances(n_tables=len(pairs), per_unit=data.per_unit)
        found = plan.release(score, score.total(counted, fixed), CHOICE)
        # As in AIM (McKenna et al. 2022), less what noise would add: that of the table to come,
        # that of this distance, and the draw of the records (a count varies by its root).
        expected = TableCounts(shapes=((1, 1),) * (len(data.sizes) - 1), per_unit=data.per_unit)
        sigma = plan.mechanism(expected, PAIRS).sigma
        gains = np.zeros((len(data.sizes), len(data.sizes)))
        for (i, j), value, table in zip(pairs, found.values, fixed, strict=True):
            noise = sigma * data.sizes[i] * data.sizes[j]
            probability = float(np.sqrt(table).sum())
            gains[i, j] = gains[j, i] = value - found.sigma - _MEAN_ABS * (noise + probability)
        return Forest.heaviest(gains)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        return self.distribution_.sample(conditions, rng)

    def _arrays(self) -> dict[str, Array]:
        forest = self.distribution_.forest
        own = {f"own_{i}": table for i, table in enumerate(self.distribution_.own)}
        pairs = {f"pair_{i}": table for i, table in enumerate(self.distribution_.pairs)}
        return {
            "parents": np.array(forest.parents, dtype=np.int64),
            "order": np.array(forest.order, dtype=np.int64),
            **own,
            **pairs,
        }

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        forest = Forest(
            parents=tuple(arrays["parents"].tolist()), order=tuple(arrays["order"].tolist())
        )
        self.distribution_ = TreeDistribution(
            forest=forest,
            own=tuple(arrays[f"own_{i}"] for i in range(len(forest.order))),
            pairs=tuple(arrays[f"pair_{i}"] for i in range(len(forest.edges))),
        )


def _pair_tables(
    data: EncodedTable, forest: Forest, plan: BudgetPlan
) -> tuple[list[FloatArray], float]:
    counter = TableCounts(
        shapes=tuple((data.sizes[i], data.sizes[j]) for i, j in forest.edges),
        per_unit=data.per_unit,
    )
    counted = counter.total([(data.codes[:, i], data.codes[:, j]) for i, j in forest.edges])
    released = plan.release(counter, counted, PAIRS)
    return counter.apart(released.values), released.sigma


def _pair_counts(codes: IntArray, i: int, j: int, shape: tuple[int, int]) -> IntArray:
    """Count the states of two columns together."""
    joined = codes[:, i] * shape[1] + codes[:, j]
    counted = np.bincount(joined, minlength=shape[0] * shape[1]).reshape(shape)
    return counted.astype(np.int64)


def _joined(counter: TableCounts, one: Released, other: Released) -> tuple[list[FloatArray], float]:
    """Return the mean of two releases of the same tables, each weighed by its noise."""
    weight = other.sigma**2 / (one.sigma**2 + other.sigma**2)
    values = weight * one.values + (1.0 - weight) * other.values
    return counter.apart(values), one.sigma * math.sqrt(weight)


def joint_totals(tables: list[FloatArray], sigma: float) -> tuple[FloatArray, float]:
    """Add up the records per condition from all tables, each weighed by its noise."""
    weights = np.array([1.0 / table.shape[1] for table in tables])
    sums = np.stack([table.sum(axis=1) for table in tables])
    return weights @ sums / weights.sum(), sigma / math.sqrt(weights.sum())

"""Which pairs of columns are counted: those whose table label and group alone do not tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from evenhand.generators.aggregators import TableCounts, TableDistances
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.encoded import Clique, CountedRows
from evenhand.generators.tables.tree_distribution import JunctionTree
from evenhand.typing import FloatArray, IntArray

CHOICE: Final = "which pairs of columns depend on each other"
PAIRS: Final = "counts of the chosen pairs of columns"

NARROW, WIDE = 2, 3
"""Columns from which one may hang: where the noise leaves pairs alone, and where it leaves more."""

OF_THREE: Final = 0.5
"""Records, of all, that noise may hide in a table of three columns; set on Bank and ACS-Income."""

MEAN_ABS: Final = math.sqrt(2.0 / math.pi)  # E|N(0, 1)|


@dataclass(frozen=True, kw_only=True)
class PublicNumbers:
    """What everybody knows before pairs are counted, and the noise that goes with it."""

    n_columns: int
    """Columns that may be in a pair."""
    per_unit: int
    """Records of one unit that are read, at most."""
    plan: BudgetPlan
    weights: FloatArray
    """Records by label and group, by what was released. Shape (n_conditions,)."""

    def sigma(self, width: int) -> float:
        """Return the noise on a cell of the tables of a tree, if it has as many as it may."""
        n_tables = width * self.n_columns - width * (width + 1) // 2
        expected = TableCounts(shapes=((1, 1),) * max(n_tables, 1), per_unit=self.per_unit)
        return self.plan.mechanism(expected, PAIRS).sigma

    def most_cells(self, width: int) -> float:
        """Return the cells of the largest table that tells what it counts from its noise.

        Of columns that decide each other, 2 n records are misplaced at most. The noise on their
        table is to hide a half of that, no more.
        """
        return float(self.weights.sum()) / max(self.sigma(width) * MEAN_ABS, 1e-12)

    def usual_width(self, sizes: Sequence[int], n_labels: int) -> int:
        """Return from how many columns of so many states one hangs, if nobody says it."""
        usual = float(np.median([size for size in sizes if size > 1] or [1]))
        return WIDE if n_labels * usual**3 <= OF_THREE * self.most_cells(WIDE) else NARROW


def choose_pairs(
    data: CountedRows,
    known: PublicNumbers,
    expected: Sequence[FloatArray],
    labels: IntArray,
    width: int,
) -> tuple[JunctionTree, list[Clique], list[IntArray]]:
    """Return a tree of pairs that label and group do not explain, these, and their counts.

    Parameters
    ----------
    data : CountedRows
    known : PublicNumbers
    expected : sequence of ndarray, shape (n_conditions, states)
        Records of each state of each column, by what was released.
    labels : ndarray of int64, shape (n_conditions,)
        Of each combination of label and group.
    width : int
        Columns from which one may hang.
    """
    n, sizes, weights = len(data.sizes), np.array(data.sizes, dtype=np.float64), known.weights
    kinds = [np.zeros_like(labels), labels]
    pairs = list(combinations(range(n), 2))
    by_label = data.counts([Clique(columns=pair, parts=labels) for pair in pairs])
    counted, fixed = [], []
    for (i, j), seen in zip(pairs, by_label, strict=True):
        explained = np.zeros(seen.shape)
        joint = (expected[i] / weights[:, None])[:, :, None] * expected[j][:, None, :]
        np.add.at(explained, labels, joint)
        counted += [seen.sum(axis=0), seen]
        fixed += [explained.sum(axis=0), explained]
    score = TableDistances(n_tables=len(fixed), per_unit=data.per_unit)
    released = known.plan.release(score, score.total(counted, fixed), CHOICE)
    # As in AIM (McKenna et al. 2022), less what noise would add: that of the table to come,
    # that of this distance, and the draw of the records (a count varies by its root).
    sigma = known.sigma(width)
    hidden = [sigma * table.size + float(np.sqrt(table).sum()) for table in fixed]
    # No two distributions of n records are further apart: what is above that is noise.
    least = np.repeat([min(sizes[i], sizes[j]) for i, j in pairs], 2)
    possible = 2.0 * weights.sum() * (1.0 - 1.0 / least)
    found = np.minimum(released.values, possible)
    by_kind = (found - released.sigma - MEAN_ABS * np.array(hidden)).reshape(-1, 2)
    gains = np.zeros((n, n))
    for (i, j), gain in zip(pairs, by_kind.max(axis=1), strict=True):
        gains[i, j] = gains[j, i] = gain
    cells = sizes * float(len(weights)) ** (1 / 3)  # of three columns: times the conditions
    tree = JunctionTree.heaviest(gains, width=width, cells=cells)
    # By label wherever that stands above its noise: of what is particular to a rare label a
    # distance shows little, and models of the label live on it.
    kind = np.zeros((n, n), dtype=np.int64)
    for (i, j), own in zip(pairs, by_kind[:, 1] > 0, strict=True):
        kind[i, j] = kind[j, i] = own
    threes, within = [], set()
    most = OF_THREE * known.most_cells(width)
    for three in tree.threes:
        edges = list(combinations(three, 2))
        parts = kinds[max(kind[edge] for edge in edges)]
        if (parts.max() + 1) * math.prod(data.sizes[i] for i in three) <= most:
            threes.append(Clique(columns=three, parts=parts))
            within |= {frozenset(edge) for edge in edges}
    chosen, counts = list(threes), data.counts(threes) if threes else []
    for edge in tree.edges:
        if frozenset(edge) in within:
            continue
        pair = min(edge), max(edge)
        seen = by_label[pairs.index(pair)]
        seen = seen if kind[pair] else seen.sum(axis=0, keepdims=True)
        chosen.append(Clique(columns=edge, parts=kinds[kind[pair]]))
        counts.append(seen if edge == pair else seen.transpose(0, 2, 1))
    return tree, chosen, counts

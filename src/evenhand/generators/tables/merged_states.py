"""Columns of many states: they stand in tables of pairs by ranges of these, and are drawn within.

A table of two columns of 1,000 states has a million cells, and noise hides all of them. So where a
column has more than ``MOST_STATES``, neighbors in the order of its states are merged into ranges of
about equal records, by its own released table. Pairs are counted by ranges; within a range a state
is drawn by label and group alone, or by the group, where the odds of labels tell of the label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from evenhand.generators.budget_plan import under
from evenhand.generators.tables.tree_distribution import TreeDistribution
from evenhand.typing import Array, BoolArray, FloatArray, IntArray

MOST_STATES: Final = 64
"""A column of more states is merged; and into no more ranges than this."""

LEAST_RANGES: Final = 4

_Numbers = TypeVar("_Numbers", FloatArray, IntArray)


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedStates:
    """The ranges of some columns, and the states within them."""

    ranges: Mapping[int, IntArray]
    """Of each merged column: in which range a state is, in order. Shape (states of the column,)."""
    within: Mapping[int, FloatArray]
    """Chance of each state among those of its range, by condition. Shape (n_conditions, states of
    the column).
    """

    @classmethod
    def of(cls, expected: Sequence[FloatArray], n_ranges: int) -> MergedStates:
        """Merge the columns of which a table has too many states.

        Parameters
        ----------
        expected : sequence of ndarray, shape (n_conditions, states)
            Records of each state, of each column, without what noise took below 0.
        n_ranges : int
            Ranges of a column at most.
        """
        ranges, within = {}, {}
        for i, table in enumerate(expected):
            if table.shape[1] <= MOST_STATES:
                continue
            held = table.sum(axis=0)
            middle = (np.cumsum(held) - held / 2) / held.sum()
            cut = np.minimum(np.floor(middle * n_ranges).astype(np.int64), n_ranges - 1)
            ranges[i] = np.unique(cut, return_inverse=True)[1].astype(np.int64)
            within[i] = _within(table, ranges[i])
        return cls(ranges=ranges, within=within)

    def alike_by_label(
        self, expected: Sequence[FloatArray], singly: Mapping[int, BoolArray], n_labels: int
    ) -> MergedStates:
        """Return it with states that depend, within their range, on the group alone.

        Parameters
        ----------
        expected : sequence of ndarray, shape (n_conditions, states)
            Records of each state, of each column.
        singly : mapping of int to ndarray of bool, shape (states,)
            Which states, of some columns. What others of their range leave to them is as before.
        """
        within = dict(self.within)
        for i, own in singly.items():
            by_group = expected[i].reshape(n_labels, -1, len(own)).sum(axis=0)
            alike = np.tile(_within(by_group, self.ranges[i]), (n_labels, 1)) * own
            others = _within(within[i] * ~own, self.ranges[i], ~own)
            left = 1.0 - summed(alike, self.ranges[i])[:, self.ranges[i]]
            within[i] = alike + left * others
        return replace(self, within=within)

    def arrays(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        out: dict[str, Array] = {f"ranges_{i}": ranges for i, ranges in self.ranges.items()}
        return out | {f"within_{i}": within for i, within in self.within.items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array]) -> MergedStates:
        """Take back what ``arrays`` gave, among others."""
        return cls(
            ranges={int(name): array for name, array in under(arrays, "ranges_").items()},
            within={int(name): array for name, array in under(arrays, "within_").items()},
        )

    def tables(self, tables: Sequence[_Numbers]) -> list[_Numbers]:
        """Return the tables of all columns, (n_conditions, states), by ranges where merged."""
        return [
            summed(table, self.ranges[i]) if i in self.ranges else table
            for i, table in enumerate(tables)
        ]

    def apart(self, tables: Sequence[FloatArray]) -> list[FloatArray]:
        """Return tables of all columns, by ranges where merged, by the states within these."""
        return [
            table[:, self.ranges[i]] * self.within[i] if i in self.ranges else table
            for i, table in enumerate(tables)
        ]

    def spread(self, i: int) -> float:
        """How much wider the noise on a range of column i is than on a state, on average."""
        if i not in self.ranges:
            return 1.0
        spread: float = (len(self.ranges[i]) / (self.ranges[i].max() + 1)) ** 0.5
        return spread

    def given(
        self, likelihoods: Mapping[int, FloatArray], conditions: IntArray | None = None
    ) -> tuple[MergedStates, dict[int, FloatArray]]:
        """Return what is within ranges given an event, and its likelihoods by range.

        Parameters
        ----------
        likelihoods : mapping of int to ndarray, shape (states of the column,)
            See ``TreeDistribution.given``; of a merged column they are by condition then.
        conditions : ndarray of int64, optional
            See there.
        """
        each = slice(None) if conditions is None else conditions
        within, found = {i: w[each] for i, w in self.within.items()}, dict(likelihoods)
        for i in self.ranges.keys() & likelihoods.keys():
            joint = within[i] * likelihoods[i]
            found[i] = summed(joint, self.ranges[i])
            chance = found[i][:, self.ranges[i]]
            within[i] = np.where(chance > 0, joint / np.where(chance > 0, chance, 1.0), within[i])
        return replace(self, within=within), found

    def drawn(self, codes: IntArray, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Return rows of states, shape (n, n_columns), for rows in which ranges were drawn."""
        out = codes.copy()
        for i in sorted(self.ranges):  # the order of draws, whatever file they come back from
            ranges = self.ranges[i]
            # Cumulated over all states, a range ends at the number of the ranges before it.
            ends = np.cumsum(self.within[i], axis=1)
            for c in np.unique(conditions):
                at = np.flatnonzero(conditions == c)
                asked = codes[at, i] + rng.random(len(at))
                found = np.searchsorted(ends[c], asked, side="right")
                first, last = (np.searchsorted(ranges, codes[at, i], side=s) for s in _SIDES)
                out[at, i] = np.clip(found, first, last - 1)
        return out


_SIDES: Final = ("left", "right")


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedTree:
    """A tree in which columns stand by ranges, as a distribution over the states of all columns."""

    tree: TreeDistribution
    merged: MergedStates

    def sample(
        self,
        conditions: IntArray,
        rng: np.random.Generator,
        strata: IntArray | None = None,
        *,
        even: bool = True,
    ) -> IntArray:
        """Draw one row of states per condition, see ``TreeDistribution.sample``."""
        ranges = self.tree.sample(conditions, rng, strata, even=even)
        return self.merged.drawn(ranges, conditions, rng)

    def given(
        self, likelihoods: Mapping[int, FloatArray], conditions: IntArray | None = None
    ) -> tuple[MergedTree, FloatArray]:
        """Return it given an event, and its chance, see ``TreeDistribution.given``."""
        merged, by_range = self.merged.given(likelihoods, conditions)
        held, chances = self.tree.given(by_range, conditions)
        return replace(self, tree=held, merged=merged), chances

    def log_density(
        self, codes: IntArray, conditions: IntArray, unknown: BoolArray | None = None
    ) -> FloatArray:
        """Return the logarithm of the chance of the ranges of each row of states, (n,).

        What a state within its range tells is left out.
        """
        return self.tree.log_density(by_ranges(codes, self.merged.ranges), conditions, unknown)


def by_ranges(codes: IntArray, ranges: Mapping[int, IntArray]) -> IntArray:
    """Return rows of states, shape (n, n_columns), by ranges of the columns that have some."""
    if not ranges:
        return codes
    merged = codes.copy(order="F")
    for i, of in ranges.items():
        merged[:, i] = of[codes[:, i]]
    return merged


def summed(table: _Numbers, ranges: IntArray) -> _Numbers:
    """Add up the columns of a table, shape (n, states), by range."""
    starts = np.searchsorted(ranges, np.arange(ranges.max() + 1))
    total: _Numbers = np.add.reduceat(table, starts, axis=1)
    return total


def _within(table: FloatArray, ranges: IntArray, able: BoolArray | None = None) -> FloatArray:
    """Return the chance of each state among those of its range; without records evenly.

    Only states that are ``able`` have one, if some of a range are.
    """
    total = summed(table, ranges)[:, ranges]
    each = np.ones(len(ranges)) if able is None else able.astype(np.float64)
    even = each / np.maximum(np.bincount(ranges, each), 1.0)[ranges]
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), even)


def most_held(counts: Mapping[int, FloatArray], n: int) -> dict[int, BoolArray]:
    """Return which states of some columns are the n with most records, of columns that have any.

    Examples
    --------
    >>> most_held({0: np.array([3.0, 1.0, 2.0]), 4: np.array([0.5, 0.0])}, 2)
    {0: array([ True, False,  True])}
    """
    each = [(-of[state], i, int(state)) for i, of in counts.items() for state in np.flatnonzero(of)]
    found = {i: np.zeros(len(of), dtype=bool) for i, of in counts.items()}
    for _, i, state in sorted(each)[: max(n, 0)]:
        found[i][state] = True
    return {i: states for i, states in found.items() if states.any()}

"""Whole numbers near shares: remainders are placed at random, or the largest are rounded up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.typing import FloatArray, IntArray


@dataclass(eq=False, kw_only=True)
class Rounding:
    """Systematic rounding: each count is its share rounded down or up, and right in the mean.

    Examples
    --------
    >>> round_ = Rounding(rng=np.random.default_rng(0), n_lines=4)
    >>> sum(round_(1, np.array([1.0, 1.0])) for _ in range(4))
    array([2, 2])
    """

    rng: np.random.Generator
    """Places the remainders; where all counts are whole nothing is drawn from it."""
    n_lines: int = 1
    """How often it is asked: the places are spread evenly over these, so that their sums stand near
    the shares too.
    """
    _places: dict[Any, list[float]] = field(init=False, default_factory=dict)
    _orders: dict[int, IntArray] = field(init=False, default_factory=dict)

    def __call__(self, total: int, shares: FloatArray, *, within: int | None = None) -> IntArray:
        """Return counts that sum to ``total``; those ``within`` a part have places of their own."""
        exact = total * shares / shares.sum()
        counts: IntArray = np.floor(exact + 1e-9).astype(np.int64)
        left = total - int(counts.sum())
        if left:
            order, rest = self._order(len(shares)), np.maximum(exact - counts, 0.0)
            ends = np.cumsum(rest[order]) * (left / rest.sum())
            ends[-1] = left
            steps = np.floor(np.append(0.0, ends) + self._place(within))
            counts[order] += np.diff(steps).astype(np.int64)
        return counts

    def _order(self, n: int) -> IntArray:
        if n not in self._orders:
            self._orders[n] = self.rng.permutation(n)
        return self._orders[n]

    def _place(self, within: int | None) -> float:
        """Return a number in [0, 1): each is uniform, and together they are even."""
        places = self._places.setdefault(within, [])
        if not places:
            strata = self.rng.permutation(self.n_lines) + self.rng.random()
            places.extend((strata / self.n_lines).tolist())
        return places.pop()


def largest_remainder(total: int, shares: FloatArray) -> IntArray:
    """Return whole numbers that sum to ``total``, as near to ``shares`` as can be.

    Examples
    --------
    >>> largest_remainder(10, np.array([1.0, 1.0, 1.0]))
    array([4, 3, 3])
    """
    exact = total * shares / shares.sum()
    whole: IntArray = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole

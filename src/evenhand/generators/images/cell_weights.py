"""What a picture of each label and group counts, real or drawn, by shares that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.generators.clipping import Clipping
from evenhand.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class CellWeights:
    """Weights by which real and drawn pictures pull a critic equally hard where they are alike.

    A cell is a label with a group, or a label alone where groups play no part. Nothing of it is
    private: shares are public, or were released.

    Parameters
    ----------
    shares : ndarray of float64, shape (n_cells,)
        Share of each cell among the real pictures; positive, they sum to 1.
    conditions : ndarray of int64, shape (n_cells,)
        Condition of each cell, as the generator knows it: the cell, or its label.
    bounds : ndarray of int64, shape (n_cells,)
        Which bound on gradients is that of each cell.
    even : bool
        Real pictures weigh in proportion to one over their cell's share, the rarest ones 1
        (reweighting, Choi et al. 2020); all 1 if not.

    Notes
    -----
    A drawn picture has a condition, and perhaps no group: its gradient is cut as those of the cells
    of its condition are, in their shares. If gradients do not depend on the group, the expected
    pull of drawn pictures is that of real ones.
    """

    shares: FloatArray
    conditions: IntArray
    bounds: IntArray
    even: bool

    @property
    def weights(self) -> FloatArray:
        """Weight of a real picture of each cell, at most 1."""
        return self.shares.min() / self.shares if self.even else np.ones_like(self.shares)

    @property
    def distribution(self) -> FloatArray:
        """Probability of each condition among drawn pictures: as real ones are, or even."""
        known = _sums(self.conditions, self.shares)
        return np.full(len(known), 1.0 / len(known)) if self.even else known

    def sizes(self, n: float) -> FloatArray:
        """Pictures under each bound, of ``n`` in all."""
        return n * _sums(self.bounds, self.shares)

    def of_drawn(self, norms: FloatArray, conditions: IntArray, clipping: Clipping) -> FloatArray:
        """Return the weight of each drawn picture's gradient, cut included.

        Parameters
        ----------
        norms : ndarray, shape (n,)
            Of their gradients.
        conditions : ndarray of int64, shape (n,)
            Theirs, drawn from ``distribution``.
        clipping : Clipping
            The bounds, as they stand.
        """
        total = np.zeros(len(norms))
        of_condition = self.shares / self.distribution[self.conditions]
        for cell, weight in enumerate(self.weights):
            own = conditions == self.conditions[cell]
            bound = np.full(int(own.sum()), self.bounds[cell])
            total[own] += of_condition[cell] * weight * clipping.cut(weight * norms[own], bound)
        return total


def _sums(codes: IntArray, values: FloatArray) -> FloatArray:
    """Sum of the values of each code."""
    found: FloatArray = np.bincount(codes, values).astype(np.float64)
    return found

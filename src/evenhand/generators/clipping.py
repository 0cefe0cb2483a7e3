"""Bounds on the gradients of single records, which move with noisy counts of long gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.typing import Array, BoolArray, FloatArray, IntArray

CLIPS: Final = ("flat", "group", "global-adapt")

SHARE: Final = 0.3
"""Of a record's norm, for the mark that says that its gradient was long."""

_TOLERATED: Final = 0.1  # of the records may be longer than the bound (Global-Adapt)
_PACE: Final = 0.1  # of the bound, per step and share
_MOST: Final = 4.0  # a group's bound, in bounds of all (DP-SGD-F)
_SHORT: Final = 1.0 - 1e-9  # a breath below: products round, and the norm is a promise


@dataclass(kw_only=True, eq=False)
class Clipping:
    """How long gradients of single records are cut.

    What a record adds to a sum is one vector of norm at most 1: its gradient, cut to the bound of
    its group and counted in the longest bound, scaled into the room that the mark leaves; and the
    mark ``SHARE`` in the cell of its group, if the gradient was long. So the marks leave inside the
    release of the gradients, and the bounds of the next step follow from what has left.

    Examples
    --------
    DP-SGD-F gives a group the bound ``first * (1 + its share of long ones / the share of all)``:

    >>> clipping = Clipping.start("group", 0.5, n_groups=2)
    >>> clipping.move(SHARE * np.array([8.0, 2.0]), sizes=np.array([10.0, 10.0]))
    >>> clipping.bounds.round(2).tolist()
    [1.3, 0.7]
    """

    clip: str
    """All alike; by group, longer where many of a group are long (DP-SGD-F, Xu et al. 2021); or all
    scaled by the same factor up to a bound that follows the share of those beyond it
    (DPSGD-Global-Adapt, Esipova et al. 2023). With "flat" there is no mark.
    """
    first: float
    """Every bound, at first. Greater than 0."""
    bounds: FloatArray
    """By group, as they stand. Shape (n_groups,)."""
    memory: float = 0.0
    """Of the running mean of the noisy marks, in [0, 1): what it keeps of itself at each step. 0
    reads the last ones alone, which will do where every step sees all records.
    """

    def __post_init__(self) -> None:
        _checks.one_of("clip", self.clip, CLIPS)
        _checks.positive("clip_norm", self.first)
        if not 0.0 <= self.memory < 1.0:
            raise ValueError(f"memory must lie in [0, 1), got memory={self.memory!r}.")
        self._marks: FloatArray = np.zeros(self.n_marks)
        self._weight = 0.0

    @classmethod
    def start(cls, clip: str, first: float, *, n_groups: int, memory: float = 0.0) -> Clipping:
        """Start with the same bound for every group."""
        bounds = np.full(_checks.at_least("n_groups", n_groups, 1), first, dtype=np.float64)
        return cls(clip=clip, first=first, bounds=bounds, memory=memory)

    @property
    def share(self) -> float:
        """Of a record's norm, for its mark."""
        return 0.0 if self.clip == "flat" else SHARE

    @property
    def n_marks(self) -> int:
        """Cells that are released beside the gradient, one per group or none."""
        return 0 if self.clip == "flat" else len(self.bounds)

    # What a record adds

    def long(self, norms: FloatArray) -> BoolArray:
        """Whether gradients of these norms are marked."""
        limit = self.first if self.clip == "group" else float(self.bounds.max())
        found: BoolArray = norms > limit
        return found

    def cut(self, norms: FloatArray, groups: IntArray) -> FloatArray:
        """Return the factor that brings each gradient within the bound of its group."""
        own = self.bounds[groups]
        factors: FloatArray = own / np.maximum(norms, own)
        return factors

    def factors(self, norms: FloatArray, groups: IntArray) -> FloatArray:
        """Return the factor that brings each gradient into the room that the mark leaves."""
        room = math.sqrt(1.0 - self.share**2) * _SHORT
        return self.cut(norms, groups) * room / float(self.bounds.max())

    def vectors(
        self, gradients: Array, groups: IntArray, weights: FloatArray | float = 1.0
    ) -> FloatArray:
        """Return what each record adds, (n, n_values + n_marks).

        Parameters
        ----------
        gradients : ndarray of floats, shape (n, n_values)
        groups : ndarray of int64, shape (n,)
        weights : ndarray of shape (n,), or float
            Each gradient is multiplied by its weight before it is cut.
        """
        n, n_values = gradients.shape
        norms = weights * lengths(gradients)
        factors = weights * self.factors(norms, groups)
        out = np.zeros((n, n_values + self.n_marks))
        np.multiply(gradients, factors[:, None], out=out[:, :n_values])
        if self.n_marks:
            out[np.arange(n), n_values + groups] = self.share * self.long(norms)
        return out

    # What follows from what has left

    def mean(self, sums: FloatArray, n: float) -> FloatArray:
        """Return the mean gradient of ``n`` records from the noisy sums, in its own scale."""
        scale = float(self.bounds.max()) / (math.sqrt(1.0 - self.share**2) * n)
        return scale * sums

    def move(self, marks: FloatArray, sizes: FloatArray) -> None:
        """Set the bounds from noisy sums of marks, and from sizes of groups that are known."""
        if not self.n_marks:
            return
        self._marks = self.memory * self._marks + (1.0 - self.memory) * marks
        self._weight = self.memory * self._weight + (1.0 - self.memory)
        long = self._marks / self._weight / self.share
        of_group = np.clip(long / np.maximum(sizes, 1.0), 0.0, 1.0)
        of_all = float(np.clip(long.sum() / max(float(sizes.sum()), 1.0), 0.0, 1.0))
        if self.clip == "group":
            more = np.clip(of_group / max(of_all, 1e-3), 0.0, _MOST - 1.0)
            self.bounds = self.first * (1.0 + more)
        else:
            self.bounds = self.bounds * math.exp(_PACE * (of_all - _TOLERATED))


def lengths(rows: Array) -> FloatArray:
    """Norm of each row (n, n_values), in doubles whatever the rows are."""
    found: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return found

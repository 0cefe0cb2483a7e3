"""The Lagrangian dual of a fairness constraint: differences of means, and multipliers on them.

Fioretto et al. 2020 train a model under constraints by descending on the loss plus multipliers
times violations, and ascending on the multipliers with a step size. A difference of means over
groups is linear in what is averaged, so for given multipliers the constraint is one more term in
the loss of each row: nothing but this module knows about groups.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand.typing import FloatArray

LEAST: Final = 1.0  # records below which there is no mean
ENOUGH: Final = 0.75  # a violation that stays above this part of itself makes its next step larger
LARGER, SMALLER = 1.5, 0.5


class RowFunction(Protocol):
    """Functions of one row, shape (..., n, m); ``evenhand.fairness`` has some."""

    @property
    def on_decisions(self) -> bool:
        """Whether the constraint is about decisions; False: about probabilities."""

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the values for probabilities and one-hot classes, both (..., n, n_classes)."""

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient of ``sum(pull * values)`` in the probabilities."""

    def among(self, truth: FloatArray) -> FloatArray:
        """Return which rows count for which function, (..., n, m)."""


class GroupDifferences:
    """``E[h | A = a] - E[h]`` for each group a and function h, and the transpose of that map.

    Parameters
    ----------
    weights : ndarray of float64, shape (..., n, n_groups)
        How much of each row lies in each group: one-hot groups, probabilities, or unbiased weights
        that may be negative. A row of zeros (padding) counts nowhere if ``among`` is 0 there too.
    among : ndarray of float64, shape (..., n, m)
        How much each row counts for each function.

    Notes
    -----
    A mean over less than one record is no mean: its difference is 0, and it pulls at nothing.
    ``shares`` is the part of the rows that each mean is taken over, in the scale of a mean loss: a
    multiplier pulls at each row of a small group harder, by one over it.
    """

    def __init__(self, weights: FloatArray, among: FloatArray) -> None:
        self._weights, self._among = weights, among
        held = np.swapaxes(weights, -1, -2) @ among
        total = among.sum(axis=-2, keepdims=True)
        self.shares: FloatArray = held / weights.shape[-2]
        self.read = (held >= LEAST) & (total >= LEAST)
        self._per_group = np.divide(1.0, held, out=np.zeros_like(held), where=self.read)
        self._per_row = np.divide(1.0, total, out=np.zeros_like(total), where=total >= LEAST)

    def apart(self, values: FloatArray) -> FloatArray:
        """Return the differences (..., n_groups, m) of ``values`` (..., n, m)."""
        counted = self._among * values
        of_group = (np.swapaxes(self._weights, -1, -2) @ counted) * self._per_group
        of_all = counted.sum(axis=-2, keepdims=True) * self._per_row
        out: FloatArray = np.where(self.read, of_group - of_all, 0.0)
        return out

    def back(self, multipliers: FloatArray) -> FloatArray:
        """Return the gradient (..., n, m) of ``sum(multipliers * apart(values))`` in the values."""
        pull = np.where(self.read, multipliers, 0.0)
        spread = pull.sum(axis=-2, keepdims=True) * self._per_row
        out: FloatArray = self._among * (self._weights @ (pull * self._per_group) - spread)
        return out


class Multipliers:
    """Multipliers of ``apart <= alpha`` and ``-apart <= alpha``, moved by dual ascent.

    Parameters
    ----------
    alpha : float
        Largest difference allowed, at least 0.
    step : ndarray of float64, shape (..., n_groups, m)
        How far one unit of violation moves each multiplier at first, at least 0.

    Notes
    -----
    ``lambda <- max(0, lambda + step (violation))``, where the violation is negative inside the
    margin, so a multiplier that was too large falls again (projected dual ascent). Each step is a
    constraint's own: it grows by half while the violation falls too slowly, and is halved when the
    difference changes its sign. One step for all would run away for those that are nearly kept.
    """

    def __init__(self, *, alpha: float, step: FloatArray) -> None:
        self.alpha = _checks.non_negative("alpha", alpha)
        self.step = step
        self.above = np.zeros_like(step)
        self.below = np.zeros_like(step)
        self._before = np.full_like(step, np.nan)

    @property
    def net(self) -> FloatArray:
        """Multiplier of the signed difference, (..., n_groups, m)."""
        out: FloatArray = self.above - self.below
        return out

    def ascend(self, apart: FloatArray) -> None:
        """Move by the violations that the differences ``apart`` make."""
        outside = np.abs(apart) > self.alpha
        slow = outside & (np.abs(apart) > ENOUGH * np.abs(self._before))
        turned = outside & (np.sign(apart) * np.sign(self._before) < 0)
        factor = np.where(turned, SMALLER, np.where(slow, LARGER, 1.0))
        self.step, self._before = self.step * factor, apart
        self.above = np.maximum(0.0, self.above + self.step * (apart - self.alpha))
        self.below = np.maximum(0.0, self.below + self.step * (-apart - self.alpha))

"""A margin that is read on drawn rows, set right by decisions of the private rows, counted.

Rows that are drawn from noisy counts are not quite like the private ones: how often a student gives
each group a class is off by a point or two there, and so is the gap. One more release tells by how
much: a first student is fitted, and how many private rows of each group it gives each class is
counted with noise, by true class where the margin is about such. What a group's rates are off by is
added to those on drawn rows, shrunk by what noise and the number of its records explain, and the
student is fitted again. Groups that are too small to tell stay as they are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from evenhand._units import first_records
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.privacy import Ledger
from evenhand.students.within import Within
from evenhand.typing import Array, FloatArray, IntArray

PURPOSE: Final = "decisions of a first student, counted by group"

SHARE: Final = 0.05
"""Of the share of the counts."""

_USUAL: Final = 0.02  # standard deviation of what a rate is off by, before anything is known


@dataclass(frozen=True, kw_only=True)
class CountedDecisions:
    """How many private rows of each group were given each class, with noise."""

    counts: FloatArray
    """Shape (n_groups, n_classes), or (n_groups, n_classes, n_classes), of each true class the
    decisions. May be negative.
    """
    sigma: float
    """Standard deviation of the noise on each."""

    @classmethod
    def release(
        cls,
        decided: IntArray,
        cells: IntArray,
        shape: tuple[int, ...],
        ledger: Ledger,
        *,
        units: Array | None = None,
        per_unit: int = 1,
    ) -> Self:
        """Count decisions of a model that leaves anyway.

        Parameters
        ----------
        decided, cells : ndarray of int64, shape (n,)
            Codes of the classes that private rows are given, and of their groups, or of groups and
            true classes.
        shape : tuple
            Of ``counts``.
        ledger : Ledger
            Pays, all of it.
        units : ndarray, shape (n,), optional
            Whose rows these are; of each unit the first ``per_unit`` are counted.

        Privacy
        -------
        Neighbors : those of the ledger.
        Sensitivity : L2 ``per_unit``, for every record is in one cell; the root of 2 times that
            where one is replaced.
        Cost : what the ledger has, one Gaussian release, charged before the noise is drawn.
        """
        if units is not None:
            counted = first_records(units, per_unit)
            decided, cells = decided[counted], cells[counted]
        plan = BudgetPlan(ledger=ledger, shares={PURPOSE: 1.0})
        codes = cells * shape[-1] + decided
        released = plan.release_counts(codes, math.prod(shape), PURPOSE, per_unit=per_unit)
        return cls(counts=released.values.reshape(shape), sigma=released.sigma)

    def set_right(self, within: Within, decided: IntArray) -> Within:
        """Return a margin whose rates are moved to those of these counts.

        Parameters
        ----------
        within : Within
        decided : ndarray of int64, shape (n,)
            Codes of the classes that the same model gives the rows on which it is read.
        """
        found, n_classes = np.maximum(self.counts, 0.0), self.counts.shape[-1]
        size = np.maximum(found.sum(axis=-1, keepdims=True), 1.0)
        drawn = (within.cells(n_classes).T @ np.eye(n_classes)[decided]).reshape(found.shape)
        held = drawn.sum(axis=-1, keepdims=True)
        off = np.where(held > 0.0, found / size - drawn / np.maximum(held, 1e-9), 0.0)
        unsure = n_classes * (self.sigma / size) ** 2 + 0.25 / size
        known = _USUAL**2 / (_USUAL**2 + unsure)
        return replace(within, moved=known * off, source="counted decisions")

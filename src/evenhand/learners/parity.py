"""Logistic regressions pulled towards equal mean scores of their own groups, all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.learners.learner import GroupedRows, GroupLearner, Progress
from evenhand.learners.linear import LogisticStack, StackedLogistic
from evenhand.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class StackedParityLogistic(GroupLearner):
    """``StackedLogistic`` with a penalty on the groups' differences of mean score.

    Model ``t`` minimises over its own ``n_t`` rows ``sum_i loss_i + |w|^2 / (2 C) +
    (weight n_t / 2) sum_z (w . d_z)^2``, where ``d_z`` is the mean row of group z less the mean row
    of its other rows, so ``w . d_z`` is the group's difference of mean scores. For several classes
    the last term is summed over their scores.

    Notes
    -----
    No solver of its own. With ``D`` the rows ``d_z`` and ``M = (I + C weight n_t D'D)^(-1/2)``, the
    penalties together are ``|u|^2 / (2 C)`` in ``u = M^(-1) w``, and ``x . w = (x M) . u``: the
    plain ridge regression on the rows ``x M``, which are short along the directions that separate
    the groups. ``M`` is a function of the model's own rows.
    """

    weight: float
    """Of the penalty, at least 0; ``inf`` makes the mean scores equal."""
    C: float = 1.0
    tolerance: float = 1e-7
    """``C`` and ``tolerance``: as for ``StackedLogistic``."""

    def __post_init__(self) -> None:
        if self.weight != np.inf:
            _checks.non_negative("weight", self.weight)
        _checks.positive("C", self.C)
        _checks.positive("tolerance", self.tolerance)

    def _fit(
        self, given: GroupedRows, rng: np.random.Generator, progress: Progress | None
    ) -> LogisticStack:
        X, rows = given.X, given.rows
        shrunk = X.copy()
        bases: list[tuple[FloatArray, FloatArray]] = []
        for own in rows:
            block = X[own]
            bases.append(self._shrinkage(block, given.groups[own], given.n_groups))
            shrunk[own] = _shrink(block, *bases[-1])
        plain = StackedLogistic(C=self.C, tolerance=self.tolerance)
        stack = plain.fit(
            shrunk, given.y, rows, n_classes=given.n_classes, rng=rng, progress=progress
        )
        coef = np.stack([_shrink(u, *base) for u, base in zip(stack.coef, bases, strict=True)])
        return LogisticStack(coef=coef, intercept=stack.intercept)

    def _shrinkage(
        self, block: FloatArray, groups: IntArray, n_groups: int
    ) -> tuple[FloatArray, FloatArray]:
        """Orthonormal directions (r, d), and by how much each is shortened: 0 not, 1 to nothing."""
        apart = [
            block[groups == z].mean(axis=0) - block[groups != z].mean(axis=0)
            for z in range(n_groups)
            if 0 < (groups == z).sum() < len(block)
        ]
        if not apart or self.weight == 0:
            return np.zeros((0, block.shape[1])), np.zeros(0)
        _, length, directions = np.linalg.svd(np.array(apart), full_matrices=False)
        real = length > 1e-12 * max(1.0, float(length[0]))
        # What separates no groups is not shortened; with weight inf all the rest vanishes.
        stiff = self.C * self.weight * len(block) * length[real] ** 2
        return directions[real], 1.0 - 1.0 / np.sqrt(1.0 + stiff)


def _shrink(block: FloatArray, directions: FloatArray, by: FloatArray) -> FloatArray:
    """Multiply rows by the symmetric matrix ``I - V' diag(by) V``."""
    out: FloatArray = block - (block @ directions.T * by) @ directions
    return out

"""Teachers trained under the margin, each within its own records."""

from __future__ import annotations

from typing import Final

import numpy as np

from evenhand._display import Shown
from evenhand.fairness import DemographicParity, Tally
from evenhand.learners import LogisticStack, StackedParityLogistic
from evenhand.teachers.batched import StackedEnsemble
from evenhand.teachers.ensemble import Progress, checked, checked_groups
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, FloatArray, IntArray

WEIGHTS: Final = (0.0, 0.1, 1.0, 10.0, float("inf"))
"""Weights of the penalty that are tried, the weakest first."""

__all__ = ["WEIGHTS", "ParityTeachers"]


class ParityTeachers(Shown):
    """One logistic regression for each teacher, held back from telling its own groups apart.

    Parameters
    ----------
    fairness : DemographicParity
        The margin that a teacher's decisions on its *own* records shall keep.
    C, tolerance : float
        As for ``LogisticTeachers``.

    Notes
    -----
    A penalty on the differences of the groups' mean scores (``StackedParityLogistic``). Each
    teacher takes the weakest of five weights with which its own decisions on its own records are
    within the margin; where none is enough, the one with the smallest gap. It reads its own records
    only, and needs no group to vote. A teacher that fits its labels perfectly has their gap, and
    decisions on new rows are another matter: no promise is made about the votes.

    Examples
    --------
    >>> from evenhand.teachers import by_position
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=600)
    >>> X = rng.normal(size=(600, 2)) + groups[:, None] * [[0.0, 1.0]]
    >>> y = (X.sum(axis=1) > 0.5).astype(int)
    >>> teachers = ParityTeachers(DemographicParity(margin=0.05))
    >>> ensemble = teachers.fit(X, y, by_position(600, 10, 0), 2, rng, groups=groups, n_groups=2)
    >>> ensemble.vote([[3.0, 0.0], [-3.0, 0.0]]).sum(axis=0).tolist()
    [10, 0]
    """

    reads_groups = True

    def __init__(
        self, fairness: DemographicParity, C: float = 100.0, *, tolerance: float = 1e-7
    ) -> None:
        self.fairness = fairness
        self.C = C
        self.tolerance = tolerance

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        partition: Partition,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        *,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> StackedEnsemble:
        """Fit one teacher on each part of the private data; see ``GroupedTeachers.fit``."""
        rows, labels = checked(X, y, partition, n_classes)
        z = checked_groups(self, groups, n_groups, len(rows))
        n_teachers = partition.n_teachers
        coef: FloatArray | None = None
        smallest = np.full(n_teachers, np.inf)
        outside = np.arange(n_teachers)  # teachers still above the margin
        for done, weight in enumerate(WEIGHTS, 1):
            # How many teachers are within the margin is private: progress shows the round alone.
            if progress is not None:
                progress(done * n_teachers // (len(WEIGHTS) + 1), n_teachers)
            if not len(outside):
                continue
            own = [partition.rows(int(t)) for t in outside]
            stack = StackedParityLogistic(weight=weight, C=self.C, tolerance=self.tolerance).fit(
                rows, labels, z, own, n_classes=n_classes, n_groups=n_groups, rng=rng
            )
            if coef is None:
                coef, intercept = stack.coef.copy(), stack.intercept.copy()
            for i, t in enumerate(outside):
                gap = self._gap(stack, i, rows[own[i]], z[own[i]], n_groups, n_classes)
                if gap < smallest[t]:
                    smallest[t] = gap
                    coef[t], intercept[t] = stack.coef[i], stack.intercept[i]
            outside = outside[smallest[outside] > self.fairness.margin]
        if progress is not None:
            progress(n_teachers, n_teachers)
        assert coef is not None
        model = LogisticStack(coef=coef, intercept=intercept)
        return StackedEnsemble(model=model, n_teachers=n_teachers, n_features=rows.shape[1])

    def _gap(
        self,
        stack: LogisticStack,
        i: int,
        own: FloatArray,
        groups: IntArray,
        n_groups: int,
        n_classes: int,
    ) -> float:
        one = LogisticStack(coef=stack.coef[i : i + 1], intercept=stack.intercept[i : i + 1])
        decided = one.predict(own)[0]
        return self.fairness.gap(Tally.of(groups, decided, n_groups, n_classes).counts)

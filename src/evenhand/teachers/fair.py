"""Teachers that are held to a fairness margin, each on its own records and groups."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import numpy as np

from evenhand._stored import stored
from evenhand.fairness import DemographicParity
from evenhand.fairness.notion import Notion, require_reference
from evenhand.fairness.tally import Tally
from evenhand.learners.fair_linear import StackedFairLogistic
from evenhand.learners.learner import GroupedRows, GroupLearner, Learner, Progress
from evenhand.learners.linear import LogisticStack
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.learners.parity import StackedParityLogistic
from evenhand.teachers.stacked import (
    LogisticTeachers,
    MLPTeachers,
    NetworkTeachers,
    StackedTeachers,
)
from evenhand.typing import FloatArray

WEIGHTS: Final = (0.0, 0.1, 1.0, 10.0, float("inf"))
"""Weights of the penalty of ``ParityTeachers`` that are tried, the weakest first."""


@dataclass(eq=False, repr=False)
class _Constrained(StackedTeachers):
    """Settings of teachers under a constraint, each on its own records."""

    reads_groups = True

    fairness: Notion
    _: KW_ONLY
    step: float = 1.0

    def _regularizer(self) -> Regularizer:
        held = require_reference(self.fairness, "overall", "A teacher")
        return Regularizer(function=held, alpha=held.margin, step=self.step)


@stored
@dataclass(eq=False, repr=False)
class ConstrainedLogisticTeachers(_Constrained):
    """One logistic regression for each teacher, under the constraint on its own records.

    Parameters
    ----------
    fairness : Notion
        With ``reference="overall"``. A teacher is trained for ``|E[h | A = a] - E[h]| <= margin``
        on its own records, h being what the notion takes means of.
    C : float
        As for ``LogisticTeachers``.
    step : float
        Of the multipliers.
    steps : int
        Of the weights.
    learning_rate : float

    Notes
    -----
    Solved in NumPy (``StackedFairLogistic``). A teacher whose records are of one group is trained
    without the constraint: it has nothing to compare. Whatever a teacher reaches on its own records
    is no promise about its votes.
    """

    C: float = 1.0
    _: KW_ONLY
    steps: int = 100
    learning_rate: float = 0.05

    def learner(self) -> Learner:
        """Return the learner of these settings."""
        return StackedFairLogistic(
            function=require_reference(self.fairness, "overall", "A teacher"),
            alpha=self.fairness.margin,
            C=self.C,
            step=self.step,
            steps=self.steps,
            learning_rate=self.learning_rate,
        )


@stored
@dataclass(eq=False, repr=False)
class ConstrainedMLPTeachers(MLPTeachers, _Constrained):
    """One ReLU network for each teacher, under the constraint on its own records, in PyTorch.

    Parameters
    ----------
    fairness : Notion
        As for ``ConstrainedLogisticTeachers``.
    step : float
        Of the multipliers, which move once in each epoch.
    hidden, epochs, batch_size, learning_rate, weight_decay, device
        As for ``MLPTeachers``.
    """


@stored
@dataclass(eq=False, repr=False)
class ConstrainedNetworkTeachers(NetworkTeachers, _Constrained):
    """One network of any architecture for each teacher, under the constraint on its own records.

    For pictures, and for tables; in PyTorch.

    Parameters
    ----------
    fairness : Notion
        As for ``ConstrainedLogisticTeachers``.
    architecture, epochs, batch_size, learning_rate, weight_decay, device
        As for ``NetworkTeachers``.
    step : float
        Of the multipliers, which move once in each epoch.
    """


def constrained(teachers: Any, fairness: Notion) -> Any:
    """Return teachers under the constraint, trained as ``teachers`` would be.

    None and ``LogisticTeachers`` become ``ConstrainedLogisticTeachers``, ``MLPTeachers``
    ``ConstrainedMLPTeachers``, ``NetworkTeachers`` ``ConstrainedNetworkTeachers``; teachers that
    read groups are fair by themselves and stay.

    Raises
    ------
    ValueError
        For teachers that would not look at groups at all.
    """
    if getattr(teachers, "reads_groups", False):
        return teachers
    if teachers is None:
        return ConstrainedLogisticTeachers(fairness)
    if type(teachers) is LogisticTeachers:
        return ConstrainedLogisticTeachers(fairness, teachers.C)
    if type(teachers) is MLPTeachers:
        return ConstrainedMLPTeachers(fairness, **teachers.get_params(deep=False))
    if type(teachers) is NetworkTeachers:
        return ConstrainedNetworkTeachers(fairness, **teachers.get_params(deep=False))
    raise ValueError(
        f"{type(teachers).__name__} reads no groups, so nothing would make its teachers fair. Use "
        f"LogisticTeachers, MLPTeachers or NetworkTeachers, which are then trained under the "
        f"constraint, or BlackBoxFairTeachers(estimator) with an estimator that takes "
        f"sensitive_features."
    )


@stored
@dataclass(eq=False, repr=False)
class ParityTeachers(StackedTeachers):
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

    fairness: DemographicParity
    C: float = 100.0
    _: KW_ONLY
    tolerance: float = 1e-7

    def learner(self) -> Learner:
        """Return the learner of these settings."""
        return _WeakestPenalty(self.fairness, self.C, self.tolerance)


@dataclass(frozen=True)
class _WeakestPenalty(GroupLearner):
    """``StackedParityLogistic`` with the weakest weight that keeps each model within the margin."""

    fairness: DemographicParity
    C: float
    tolerance: float

    def _fit(
        self, given: GroupedRows, rng: np.random.Generator, progress: Progress | None
    ) -> LogisticStack:
        X, z, rows, n_models = given.X, given.groups, given.rows, len(given.rows)
        coef: FloatArray | None = None
        smallest = np.full(n_models, np.inf)
        outside = np.arange(n_models)  # models still above the margin
        for done, weight in enumerate(WEIGHTS, 1):
            # How many models are within the margin is private: progress shows the round alone.
            if progress is not None:
                progress(done * n_models // (len(WEIGHTS) + 1), n_models)
            if not len(outside):
                continue
            own = [rows[int(t)] for t in outside]
            stack = StackedParityLogistic(weight=weight, C=self.C, tolerance=self.tolerance).fit(
                X,
                given.y,
                own,
                n_classes=given.n_classes,
                rng=rng,
                groups=z,
                n_groups=given.n_groups,
            )
            if coef is None:
                coef, intercept = stack.coef.copy(), stack.intercept.copy()
            for i, t in enumerate(outside):
                one = LogisticStack(coef=stack.coef[[i]], intercept=stack.intercept[[i]])
                decided = one.predict(X[own[i]])[0]
                tally = Tally.of(z[own[i]], decided, given.n_groups, given.n_classes)
                gap = self.fairness.gap(tally.counts)
                if gap < smallest[t]:
                    smallest[t] = gap
                    coef[t], intercept[t] = stack.coef[i], stack.intercept[i]
            outside = outside[smallest[outside] > self.fairness.margin]
        if progress is not None:
            progress(n_models, n_models)
        assert coef is not None
        return LogisticStack(coef=coef, intercept=intercept)

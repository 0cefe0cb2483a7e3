"""Teachers under a fairness constraint, each on its own records and groups (SF-PATE, 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits

from evenhand.fairness import FairnessFunction
from evenhand.learners import Guide, StackedFairLogistic
from evenhand.teachers.batched import LogisticTeachers, MLPTeachers, StackedEnsemble
from evenhand.teachers.ensemble import Progress, checked, checked_groups
from evenhand.teachers.one_by_one import TASK, SklearnEnsemble
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, FloatArray, IntArray

__all__ = [
    "BlackBoxFairTeachers",
    "ConstrainedLogisticTeachers",
    "ConstrainedMLPTeachers",
    "constrained",
]


class ConstrainedLogisticTeachers(BaseEstimator):  # type: ignore[misc]  # untyped base
    """One logistic regression for each teacher, under the constraint on its own records.

    Parameters
    ----------
    function : FairnessFunction
        h; a teacher is trained for ``|E[h | A = a] - E[h]| <= alpha`` on its own records.
    alpha : float
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

    reads_groups = True

    def __init__(
        self,
        function: FairnessFunction,
        alpha: float,
        C: float = 1.0,
        *,
        step: float = 1.0,
        steps: int = 100,
        learning_rate: float = 0.05,
    ) -> None:
        self.function = function
        self.alpha = alpha
        self.C = C
        self.step = step
        self.steps = steps
        self.learning_rate = learning_rate

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
        learner = StackedFairLogistic(
            function=self.function,
            alpha=self.alpha,
            C=self.C,
            step=self.step,
            steps=self.steps,
            learning_rate=self.learning_rate,
        )
        model = learner.fit(
            rows,
            labels,
            z,
            partition.all_rows,
            n_classes=n_classes,
            n_groups=n_groups,
            rng=rng,
        )
        if progress is not None:
            progress(partition.n_teachers, partition.n_teachers)
        return StackedEnsemble(
            model=model, n_teachers=partition.n_teachers, n_features=rows.shape[1]
        )


class ConstrainedMLPTeachers(MLPTeachers):
    """One ReLU network for each teacher, under the constraint on its own records, in PyTorch.

    Parameters
    ----------
    function : FairnessFunction
        As for ``ConstrainedLogisticTeachers``.
    alpha : float
    step : float
        Of the multipliers, which move once in each epoch.
    hidden, epochs, batch_size, learning_rate, weight_decay
        As for ``MLPTeachers``.
    """

    reads_groups = True

    def __init__(
        self,
        function: FairnessFunction,
        alpha: float,
        hidden: tuple[int, ...] = (64, 64),
        *,
        step: float = 1.0,
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            hidden,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
        )
        self.function = function
        self.alpha = alpha
        self.step = step

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
        guide = Guide(
            function=self.function, alpha=self.alpha, weights=np.eye(n_groups)[z], step=self.step
        )
        model = self.learner().fit(
            rows,
            labels,
            partition.all_rows,
            n_classes=n_classes,
            rng=rng,
            progress=progress,
            guide=guide,
        )
        return StackedEnsemble(
            model=model, n_teachers=partition.n_teachers, n_features=rows.shape[1]
        )


class BlackBoxFairTeachers(BaseEstimator):  # type: ignore[misc]  # untyped base
    """One clone of any classifier that takes ``fit(X, y, sensitive_features=...)``.

    So fairlearn's reductions are teachers as they are; nothing about privacy changes.

    Parameters
    ----------
    estimator : classifier
        With ``fit(X, y, sensitive_features=groups)`` and ``predict(X)``.
    n_jobs : int or None
        Workers, as in joblib.

    Notes
    -----
    A teacher with one class answers it, one without records answers class 0, and one with records
    of a single group is handed that group alone; what its estimator cannot be fitted on, it raises.
    """

    reads_groups = True

    def __init__(self, estimator: Any, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

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
    ) -> SklearnEnsemble:
        """Fit one teacher on each part of the private data; see ``GroupedTeachers.fit``."""
        rows, labels = checked(X, y, partition, n_classes)
        z = checked_groups(self, groups, n_groups, len(rows))
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier with fit(X, y, sensitive_features=...), got "
                f"{self.estimator!r}. Pass an object, for example fairlearn's "
                f"ExponentiatedGradient(LogisticRegression(), DemographicParity())."
            )
        n_teachers = partition.n_teachers
        seeds = rng.integers(2**31, size=n_teachers)
        tasks = (
            delayed(_fit_some)(
                self.estimator,
                [
                    _Part(rows[own], labels[own], z[own], int(seeds[t]))
                    for t in range(start, min(start + TASK, n_teachers))
                    for own in (partition.rows(t),)
                ],
            )
            for start in range(0, n_teachers, TASK)
        )
        members: list[Any] = []
        for some in Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks):
            members += some
            if progress is not None:
                progress(len(members), n_teachers)
        return SklearnEnsemble(
            members=members, n_features=rows.shape[1], n_classes=n_classes, n_jobs=self.n_jobs
        )


@dataclass(frozen=True)
class _Part:
    """The records of one teacher, and its seed."""

    X: FloatArray = field(repr=False)
    y: IntArray = field(repr=False)
    groups: IntArray = field(repr=False)
    seed: int


@dataclass(frozen=True)
class _Seeded:
    """A fitted classifier whose predictions may draw: each teacher's from a seed of its own."""

    model: Any = field(repr=False)
    seed: int

    def predict(self, X: FloatArray) -> IntArray:
        """Return class codes."""
        try:
            said = self.model.predict(X, random_state=self.seed)
        except TypeError:  # a classifier that draws nothing
            said = self.model.predict(X)
        return np.asarray(said).astype(np.int64)


def constrained(teachers: Any, function: FairnessFunction, alpha: float) -> Any:
    """Return teachers under the constraint, trained as ``teachers`` would be.

    None and ``LogisticTeachers`` become ``ConstrainedLogisticTeachers``, ``MLPTeachers``
    ``ConstrainedMLPTeachers``; teachers that read groups are fair by themselves and stay.

    Raises
    ------
    ValueError
        For teachers that would not look at groups at all.
    """
    if getattr(teachers, "reads_groups", False):
        return teachers
    if teachers is None:
        return ConstrainedLogisticTeachers(function, alpha)
    if type(teachers) is LogisticTeachers:
        return ConstrainedLogisticTeachers(function, alpha, teachers.C)
    if type(teachers) is MLPTeachers:
        return ConstrainedMLPTeachers(function, alpha, **teachers.get_params(deep=False))
    raise ValueError(
        f"{type(teachers).__name__} reads no groups, so nothing would make its teachers fair. Use "
        f"LogisticTeachers or MLPTeachers, which are then trained under the constraint, or "
        f"BlackBoxFairTeachers(estimator) with an estimator that takes sensitive_features."
    )


def _fit_some(estimator: Any, parts: Sequence[_Part]) -> list[Any]:
    with threadpool_limits(limits=1):
        return [_fit_one(estimator, part) for part in parts]


def _fit_one(estimator: Any, part: _Part) -> Any:
    present = np.unique(part.y)
    if len(present) < 2:
        return int(present[0]) if len(present) else 0
    own = clone(estimator)
    own.fit(part.X, part.y, sensitive_features=part.groups)
    return _Seeded(own, part.seed)

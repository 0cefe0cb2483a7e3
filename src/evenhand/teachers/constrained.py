"""Teachers under a fairness constraint, each on its own records and groups (SF-PATE, 5.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand._display import Shown
from evenhand.fairness import FairnessFunction
from evenhand.learners import FittedModels, Regularizer, StackedFairLogistic
from evenhand.teachers.batched import LogisticTeachers, MLPTeachers, StackedEnsemble
from evenhand.teachers.ensemble import Progress, checked, checked_groups
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, FloatArray, IntArray

__all__ = [
    "ConstrainedLogisticTeachers",
    "ConstrainedMLPTeachers",
    "constrained",
]


class ConstrainedLogisticTeachers(Shown):
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
        learner = StackedFairLogistic(
            function=self.function,
            alpha=self.alpha,
            C=self.C,
            step=self.step,
            steps=self.steps,
            learning_rate=self.learning_rate,
        )

        def fit(rows: FloatArray, labels: IntArray, z: IntArray) -> FittedModels:
            parts = partition.all_rows
            return learner.fit(
                rows, labels, z, parts, n_classes=n_classes, n_groups=n_groups, rng=rng
            )

        made = _fitted(self, fit, X, y, partition, n_classes, groups, n_groups)
        if progress is not None:
            progress(partition.n_teachers, partition.n_teachers)
        return made


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

        def fit(rows: FloatArray, labels: IntArray, z: IntArray) -> FittedModels:
            regularizer = Regularizer(
                function=self.function,
                alpha=self.alpha,
                weights=np.eye(n_groups)[z],
                step=self.step,
            )
            model: FittedModels = self.learner().fit(
                rows,
                labels,
                partition.all_rows,
                n_classes=n_classes,
                rng=rng,
                progress=progress,
                regularizer=regularizer,
            )
            return model

        return _fitted(self, fit, X, y, partition, n_classes, groups, n_groups)


def _fitted(
    teachers: Any,
    fit: Callable[[FloatArray, IntArray, IntArray], FittedModels],
    X: ArrayLike,
    y: ArrayLike,
    partition: Partition,
    n_classes: int,
    groups: IntArray | None,
    n_groups: int,
) -> StackedEnsemble:
    """Fit on checked rows, labels and groups."""
    rows, labels = checked(X, y, partition, n_classes)
    model = fit(rows, labels, checked_groups(teachers, groups, n_groups, len(rows)))
    return StackedEnsemble(model=model, n_teachers=partition.n_teachers, n_features=rows.shape[1])


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

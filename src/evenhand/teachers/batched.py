"""Teachers trained all at once, as one stack of models."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator

from evenhand.learners import Progress, StackedLearner, StackedLogistic, StackedModel
from evenhand.teachers.ensemble import checked, queries
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, IntArray

__all__ = ["LogisticTeachers", "StackedEnsemble"]


@dataclass(frozen=True, kw_only=True)
class StackedEnsemble:
    """Teachers that were fitted as one stack. Prints no parameter: they are private."""

    model: StackedModel = field(repr=False)
    n_teachers: int
    n_features: int

    def vote(self, X: ArrayLike) -> IntArray:
        """Return the class code of each teacher for each row, shape (n_teachers, n_queries)."""
        return self.model.predict(queries(X, self.n_features))


class LogisticTeachers(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """One logistic regression for each teacher, all solved at once in NumPy.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, as in scikit-learn. The default is weak on purpose: the
        vote averages the variance of the teachers away, their bias stays.
    tolerance : float
        A teacher is done when no entry of its gradient is larger.

    Notes
    -----
    The same models as ``SklearnTeachers(LogisticRegression(C=C))``, several times faster
    (``benchmarks/teachers_linear.py``). A teacher with one class answers it; one without records
    answers class 0.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.teachers import by_position
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> ensemble = LogisticTeachers().fit(X, y, by_position(300, 10, 0), 2, rng)
    >>> ensemble.vote([[3.0, 0.0], [-3.0, 0.0]]).mean(axis=1).shape
    (10,)
    >>> ensemble.vote([[3.0, 0.0], [-3.0, 0.0]]).sum(axis=0).tolist()
    [10, 0]
    """

    def __init__(self, C: float = 100.0, *, tolerance: float = 1e-7) -> None:
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
    ) -> StackedEnsemble:
        """Fit one teacher on each part of the private data; see ``Teachers.fit``."""
        learner = StackedLogistic(C=self.C, tolerance=self.tolerance)
        return fit_stack(learner, X, y, partition, n_classes, rng, progress)


def fit_stack(
    learner: StackedLearner,
    X: ArrayLike,
    y: ArrayLike,
    partition: Partition,
    n_classes: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> StackedEnsemble:
    """Fit ``learner`` on the parts of the partition."""
    rows, labels = checked(X, y, partition, n_classes)
    model = learner.fit(
        rows, labels, partition.all_rows, n_classes=n_classes, rng=rng, progress=progress
    )
    return StackedEnsemble(model=model, n_teachers=partition.n_teachers, n_features=rows.shape[1])

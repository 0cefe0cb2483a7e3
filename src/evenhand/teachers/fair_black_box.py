"""Teachers that are any fair classifier, each fitted on its own records and groups."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand._display import Shown
from evenhand.teachers.ensemble import Progress, checked, checked_groups
from evenhand.teachers.one_by_one import SklearnEnsemble, fit_each, seeded
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, FloatArray, IntArray

__all__ = ["BlackBoxFairTeachers"]


class BlackBoxFairTeachers(Shown):
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
        seeds = rng.integers(2**31, size=partition.n_teachers)

        def part(t: int) -> tuple[Any, ...]:
            own = partition.rows(t)
            return self.estimator, rows[own], labels[own], z[own], int(seeds[t])

        members = fit_each(_fit_one, part, partition.n_teachers, self.n_jobs, progress)
        return SklearnEnsemble(
            members=members, n_features=rows.shape[1], n_classes=n_classes, n_jobs=self.n_jobs
        )


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


def _fit_one(estimator: Any, X: FloatArray, y: IntArray, groups: IntArray, seed: int) -> Any:
    present = np.unique(y)
    if len(present) < 2:
        return int(present[0]) if len(present) else 0
    own = seeded(estimator, seed)
    with warnings.catch_warnings():
        # Fairlearn 0.15 fills Series in ways that pandas 3 deprecates.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"fairlearn\.")
        own.fit(X, y, sensitive_features=groups)
    return _Seeded(own, seed)

"""Teachers that are any scikit-learn classifier, fitted one by one through joblib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from evenhand import _values
from evenhand._display import Shown
from evenhand._stored import stored
from evenhand.learners.learner import Progress
from evenhand.teachers.ensemble import FittedByRecords, PrivateRecords, queries
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

TASK: Final = 8  # teachers in one joblib task, so that starting a task costs little beside it


@dataclass(frozen=True, kw_only=True)
class SklearnEnsemble:
    """Fitted scikit-learn classifiers and constants. Prints no parameter: they are private."""

    members: Sequence[Any] = field(repr=False)  # a classifier, or the one class as an int
    shape: tuple[int, ...]  # of a row
    n_classes: int
    n_jobs: int | None = None

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return len(self.members)

    def vote(self, X: ArrayLike) -> IntArray:
        """Return the class code of each teacher for each row, shape (n_teachers, n_queries)."""
        rows = queries(X, self.shape)
        tasks = (
            delayed(_vote_some)(self.members[start : start + TASK], rows, self.n_classes)
            for start in range(0, self.n_teachers, TASK)
        )
        return np.concatenate(Parallel(n_jobs=self.n_jobs)(tasks))

    def scores(self, X: ArrayLike) -> FloatArray:
        """Return each teacher's score of class 1, positive where it votes for it; two classes.

        Raises
        ------
        ValueError
            For more than two classes, or a classifier without ``predict_proba``.
        """
        if self.n_classes != 2:
            raise ValueError(
                f"A score of class 1 ranks rows for two classes only; these teachers have "
                f"{self.n_classes}."
            )
        rows = queries(X, self.shape)
        out = np.empty((self.n_teachers, len(rows)))
        with threadpool_limits(limits=1), _values.warnings_withheld():
            for t, member in enumerate(self.members):
                if isinstance(member, int):
                    out[t] = member - 0.5
                    continue
                if not hasattr(member, "predict_proba"):
                    raise ValueError(
                        f"{type(member).__name__} gives votes and no scores: it has no "
                        f"predict_proba. Use a classifier that has one."
                    )
                out[t] = member.predict_proba(rows)[:, 1] - 0.5
        return out


@stored
class SklearnTeachers(FittedByRecords, Shown):
    """One clone of a scikit-learn classifier for each teacher.

    Parameters
    ----------
    estimator : classifier or None
        Any scikit-learn classifier or pipeline. None takes ``LogisticRegression(C=100)``.
        Whatever it fits (scalers, feature selection) it fits on the teacher's own records, which
        is free.
    n_jobs : int or None
        Workers, as in joblib. Each uses one thread, and the votes do not depend on the number.

    Notes
    -----
    The joblib backend in force is used as it is, so ``with evenhand.frontier.cluster.on_ray()``
    trains the teachers on a cluster. A worker is sent the records of its own teachers only.

    Every ``random_state`` parameter of the estimator is set for each teacher from ``(rng, t)``. A
    teacher with one class answers it; one without records answers class 0.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> SklearnTeachers(DecisionTreeClassifier(max_depth=4)).set_params(estimator__max_depth=2)
    SklearnTeachers(estimator=DecisionTreeClassifier(max_depth=2))
    """

    def __init__(self, estimator: Any = None, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    def _fit(self, given: PrivateRecords) -> SklearnEnsemble:
        partition, n_teachers = given.partition, given.partition.n_teachers
        estimator, fit_one = self._estimator(), _fit_fair if self.reads_groups else _fit_one
        seeds = self._seeds(given.rng, n_teachers)

        def part(t: int) -> tuple[Any, ...]:
            own = partition.rows(t)
            of_own = (given.groups[own],) if self.reads_groups else ()
            return estimator, given.X[own], given.y[own], int(seeds[t]), *of_own

        members = _fit_each(fit_one, part, n_teachers, self.n_jobs, given.progress)
        return SklearnEnsemble(
            members=members,
            shape=given.X.shape[1:],
            n_classes=given.n_classes,
            n_jobs=self.n_jobs,
        )

    def _seeds(self, rng: np.random.Generator, n: int) -> Array:
        return rng.integers(2**32, size=n, dtype=np.uint64)

    def _estimator(self) -> Any:
        if self.estimator is None:
            return LogisticRegression(C=100.0, max_iter=1000)
        missing = [name for name in ("fit", "predict") if not hasattr(self.estimator, name)]
        if missing or isinstance(self.estimator, type):
            raise TypeError(
                f"estimator must be a scikit-learn classifier, got {self.estimator!r}. "
                "Pass an object, for example DecisionTreeClassifier(max_depth=4)."
            )
        return self.estimator


class BlackBoxFairTeachers(SklearnTeachers):
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

    def _seeds(self, rng: np.random.Generator, n: int) -> Array:
        return rng.integers(2**31, size=n)

    def _estimator(self) -> Any:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier with fit(X, y, sensitive_features=...), got "
                f"{self.estimator!r}. Pass an object, for example fairlearn's "
                f"ExponentiatedGradient(LogisticRegression(), DemographicParity())."
            )
        return self.estimator


def _fit_each(
    fit_one: Callable[..., Any],
    part: Callable[[int], tuple[Any, ...]],
    n_teachers: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Any]:
    """Return ``fit_one(*part(t))`` of each teacher; a worker is sent the parts of its own alone."""
    tasks = (
        delayed(_fit_some)(fit_one, [part(t) for t in range(start, min(start + TASK, n_teachers))])
        for start in range(0, n_teachers, TASK)
    )
    members: list[Any] = []
    for some in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        members += some
        if progress is not None:
            progress(len(members), n_teachers)
    return members


def _fit_some(fit_one: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> list[Any]:
    # One thread: hundreds of small fits on several threads each wait for each other.
    with threadpool_limits(limits=1), _values.warnings_withheld():
        return [fit_one(*part) for part in parts]


def _seeded(estimator: Any, seed: int) -> Any:
    """Return a clone whose every ``random_state`` is drawn from the seed."""
    own = clone(estimator)
    draws = np.random.default_rng(seed)
    return own.set_params(
        **{
            name: int(draws.integers(2**31))
            for name in sorted(own.get_params(deep=True))
            if name == "random_state" or name.endswith("__random_state")
        }
    )


def _fit_one(estimator: Any, X: FloatArray, y: IntArray, seed: int) -> Any:
    present = np.unique(y)
    if len(present) < 2:
        return int(present[0]) if len(present) else 0
    return _seeded(estimator, seed).fit(X, y)


@dataclass(frozen=True)
class _FixedSeed:
    """A fitted classifier whose predictions may draw: each teacher's from a seed of its own."""

    model: Any = field(repr=False)
    seed: int

    def predict(self, X: FloatArray) -> IntArray:
        """Return class codes."""
        try:
            predicted = self.model.predict(X, random_state=self.seed)
        except TypeError:  # a classifier that draws nothing
            predicted = self.model.predict(X)
        return np.asarray(predicted).astype(np.int64)


def _fit_fair(estimator: Any, X: FloatArray, y: IntArray, seed: int, groups: IntArray) -> Any:
    present = np.unique(y)
    if len(present) < 2:
        return int(present[0]) if len(present) else 0
    own = _seeded(estimator, seed)
    with warnings.catch_warnings():
        # Fairlearn 0.15 fills Series in ways that pandas 3 deprecates.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"fairlearn\.")
        own.fit(X, y, sensitive_features=groups)
    return _FixedSeed(own, seed)


def _vote_some(members: Sequence[Any], X: FloatArray, n_classes: int) -> IntArray:
    votes = np.empty((len(members), len(X)), dtype=np.int64)
    with threadpool_limits(limits=1), _values.warnings_withheld():
        for i, member in enumerate(members):
            if isinstance(member, int):
                votes[i] = member
                continue
            predicted = np.asarray(member.predict(X))
            if not np.issubdtype(predicted.dtype, np.integer):
                raise ValueError(
                    f"estimator must predict class codes, got dtype {predicted.dtype}. "
                    "Is it a regressor?"
                )
            votes[i] = predicted
    if votes.size and not (votes.min() >= 0 and votes.max() < n_classes):
        raise ValueError(
            f"estimator must predict the class codes it was fitted on, 0 to {n_classes - 1}, "
            f"got {votes.min()} to {votes.max()}."
        )
    return votes

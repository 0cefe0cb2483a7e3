"""What every kind of teachers offers: fit on a partition, then vote."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from evenhand import _checks
from evenhand.learners.learner import Progress
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, IntArray

__all__ = [
    "Ensemble",
    "GroupedTeachers",
    "Progress",
    "Teachers",
    "checked",
    "checked_groups",
]


class Ensemble(Protocol):
    """Fitted teachers. Everything in it is private; only noisy counts of its votes may leave."""

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""

    def vote(self, X: ArrayLike) -> IntArray:
        """Return the class code of each teacher for each row, shape (n_teachers, n_queries)."""


class Teachers(Protocol):
    """Settings from which an ensemble is fitted.

    Privacy
    -------
    Teacher ``t`` is a function of its own records, of public values, and of ``(rng, t)``.
    Changing the records of one teacher therefore changes at most one vote for each query.
    ``TeachersContract`` in ``evenhand.testing`` checks this, bit for bit.
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        partition: Partition,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> Ensemble:
        """Fit one teacher on each part of the private data.

        Parameters
        ----------
        X : array, shape (n_records, d)
            Private rows, finite numbers, encoded without looking at private data. Teachers that
            read pictures also take (n_records, channels, height, width), uint8 or float32.
        y : array of int, shape (n_records,)
            Private labels, codes in [0, n_classes).
        partition : Partition
            Which teacher learns from which row.
        n_classes : int
            At least 2; public.
        rng : numpy Generator
            Seeds initial weights and batch orders, a share of its own for each teacher.
        progress : callable or None
            Called with (teachers done, teachers in all).
        """


class GroupedTeachers(Protocol):
    """Teachers that also read the group of every private record.

    Privacy
    -------
    The group is part of the record: teacher ``t`` reads the groups of its own records only, and
    replacing a record, its group included, still changes at most one vote for each query.
    """

    @property
    def reads_groups(self) -> bool:
        """Whether ``fit`` needs ``groups``."""

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
    ) -> Ensemble:
        """Fit one teacher on each part of the private data; the rest as ``Teachers.fit``.

        Parameters
        ----------
        groups : array of int or None, shape (n_records,)
            Codes of the private records' groups, in [0, n_groups).
        n_groups : int
            Public.
        """


def checked(
    X: ArrayLike, y: ArrayLike, partition: Partition, n_classes: int
) -> tuple[Any, IntArray]:
    """Return the private rows and labels as arrays, after checking them against the partition."""
    _checks.at_least("n_classes", n_classes, 2)
    rows = _checks.rows("X", X)
    labels = _checks.codes("y", y, n_classes)
    _checks.same_length(X=rows, y=labels, partition=partition.teacher)
    return rows, labels


def checked_groups(
    teachers: Any, groups: ArrayLike | None, n_groups: int, n_records: int
) -> IntArray:
    """Return the groups of the private rows as codes; zeros where none are needed and given."""
    if groups is None:
        if teachers.reads_groups:
            raise ValueError(
                f"{type(teachers).__name__} reads the group of every private record, and groups= "
                f"is missing. In an estimator, pass sensitive_features= to fit."
            )
        return np.zeros(n_records, dtype=np.int64)
    codes = _checks.codes("groups", groups, _checks.at_least("n_groups", n_groups, 1))
    if len(codes) != n_records:
        raise ValueError(
            f"groups must have one code for each of {n_records} rows, got {len(codes)}."
        )
    return codes


def tables_only(teachers: Any, rows: Any) -> Any:
    """Return rows of numbers; refuse pictures, which these teachers do not read."""
    if rows.ndim > 2:
        raise ValueError(
            f"{type(teachers).__name__} reads tables, and X holds pictures of shape "
            f"{rows.shape[1:]}. Use a network that reads pictures, for example "
            f"NetworkTeachers(Convolutional()), or features of the pictures."
        )
    return rows


def queries(X: ArrayLike, shape: tuple[int, ...]) -> Any:
    """Return the public rows as an array, each of the shape that the teachers were fitted on."""
    rows = _checks.rows("X", X)
    if rows.shape[1:] != shape:
        if rows.ndim == 2 and len(shape) == 1:
            raise ValueError(
                f"X must have the {shape[0]} columns the teachers were fitted on, "
                f"got {rows.shape[1]}. Encode private and public rows with the same encoder."
            )
        raise ValueError(
            f"X must hold rows of shape {shape}, on which the teachers were fitted, got "
            f"{rows.shape[1:]}."
        )
    return rows

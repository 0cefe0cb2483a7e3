"""What every kind of teachers offers: fit on a partition, then vote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from evenhand import _checks
from evenhand.learners.learner import Progress
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, IntArray


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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrivateRecords:
    """What teachers are fitted on: the arguments of ``Teachers.fit``. Prints nothing."""

    X: Any
    y: Any
    partition: Partition
    n_classes: int
    rng: np.random.Generator
    progress: Progress | None = None
    """``X``, ``y``, ``partition``, ``n_classes``, ``rng`` and ``progress``: as for
    ``Teachers.fit``.
    """
    groups: Any = None
    """Codes of the private records' groups, in [0, n_groups). Array of int or None of shape
    (n_records,).
    """
    n_groups: int = 1
    """Public."""

    def checked(self, teachers: Any) -> PrivateRecords:
        """Return the same as arrays that fit each other and the partition.

        ``groups`` are zeros where the teachers do not need them and none are given.
        """
        _checks.at_least("n_classes", self.n_classes, 2)
        rows = _checks.rows("X", self.X)
        labels = _checks.codes("y", self.y, self.n_classes)
        _checks.same_length(X=rows, y=labels, partition=self.partition.teacher)
        return replace(self, X=rows, y=labels, groups=self._checked_groups(teachers, len(rows)))

    def _checked_groups(self, teachers: Any, n_records: int) -> IntArray:
        if self.groups is None:
            if teachers.reads_groups:
                raise ValueError(
                    f"{type(teachers).__name__} reads the group of every private record, and "
                    f"groups= is missing. In an estimator, pass sensitive_features= to fit."
                )
            return np.zeros(n_records, dtype=np.int64)
        codes = _checks.codes("groups", self.groups, _checks.at_least("n_groups", self.n_groups, 1))
        if len(codes) != n_records:
            raise ValueError(
                f"groups must have one code for each of {n_records} rows, got {len(codes)}."
            )
        return codes


class FittedByRecords:
    """Base of teachers: a subclass writes ``_fit`` of one value. ``Teachers`` is all it must be.

    Privacy
    -------
    Where ``reads_groups``, the group is part of the record: teacher ``t`` reads the groups of its
    own records only, and replacing a record, its group included, still changes at most one vote for
    each query.
    """

    reads_groups: Any = False
    """Whether ``fit`` needs ``groups``."""
    reads_rows: ClassVar[bool] = True
    """Whether ``_fit`` reads rows and labels: they are then arrays, and were checked."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        partition: Partition,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        *,
        groups: ArrayLike | None = None,
        n_groups: int = 1,
    ) -> Any:
        """Fit one teacher on each part of the private data: see ``PrivateRecords``."""
        given = PrivateRecords(
            X=X,
            y=y,
            partition=partition,
            n_classes=n_classes,
            rng=rng,
            progress=progress,
            groups=groups,
            n_groups=n_groups,
        )
        return self._fit(given.checked(self) if self.reads_rows else given)

    def _fit(self, given: PrivateRecords) -> Ensemble:
        raise NotImplementedError


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

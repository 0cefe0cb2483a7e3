"""Counts per group and class: the only thing a group metric or a gate reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand.fairness.clusters import Clusters
from evenhand.typing import REJECTED, ArrayLike, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitCounts:
    """A table of counts by unit: whose records hang together, so that an interval knows it."""

    unit: IntArray
    group: IntArray
    """``unit`` and ``group``: codes, shape (n,); no pair stands twice."""
    counts: IntArray
    """Of each pair, shape (n, ...), as a table of groups."""
    n_groups: int

    @classmethod
    def of(
        cls,
        units: IntArray,
        groups: IntArray,
        cells: IntArray,
        n_groups: int,
        shape: tuple[int, ...],
    ) -> UnitCounts:
        """Count cells (n,) of a table of that shape; units are whole numbers (n,)."""
        pairs, place = np.unique(units * n_groups + groups, return_inverse=True)
        counts = _counted(place, cells, len(pairs), shape)
        return cls(unit=pairs // n_groups, group=pairs % n_groups, counts=counts, n_groups=n_groups)

    def clusters(
        self, counted: Callable[[IntArray], tuple[IntArray, IntArray]], group: int | None = None
    ) -> Clusters:
        """Return successes and trials as they are counted in a table, of one group or of all."""
        of = slice(None) if group is None else self.group == group
        found = counted(self.counts[of])
        successes, trials = (c if c.ndim == 2 else c[:, None] for c in found)
        return Clusters(
            unit=self.unit[of],
            group=self.group[of],
            successes=successes,
            trials=trials,
            n_groups=self.n_groups,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counts:
    """A table whose first axis is groups and whose others are classes."""

    counts: IntArray
    by_unit: UnitCounts | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups, empty ones included."""
        return int(self.counts.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, empty ones included."""
        return int(self.counts.shape[1])

    @property
    def totals(self) -> IntArray:
        """Answers per group, shape (n_groups,)."""
        totals: IntArray = self.counts.sum(axis=tuple(range(1, self.counts.ndim)))
        return totals


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally(_Counts):
    """How often each group was given each class.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_groups, n_classes)
        Answers per group and class, each >= 0. Stored read-only.
    by_unit : UnitCounts, optional
        Of units with several records: intervals then take units as independent, not records.

    Examples
    --------
    >>> tally = Tally.of([0, 0, 0, 1, 1], [1, 0, -1, 1, 1], n_groups=3, n_classes=2)
    >>> tally.counts
    array([[1, 1], [0, 2], [0, 0]])
    >>> tally.rates
    array([[0.5, 0.5], [0. , 1. ], [nan, nan]])
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", _table("counts", self.counts, ndim=2))

    @classmethod
    def of(
        cls,
        groups: ArrayLike,
        labels: ArrayLike,
        n_groups: int,
        n_classes: int,
        *,
        units: IntArray | None = None,
    ) -> Tally:
        """Count ``labels`` (n,) per group; REJECTED (-1) is not an answer and is left out.

        ``units`` (n,) are codes of whose record a row is, where some have several.
        """
        z = _checks.codes("groups", groups, n_groups)
        k = answers("labels", labels, n_classes)
        _checks.same_length(groups=z, labels=k)
        return cls(**_tables(z, k, k != REJECTED, n_groups, (n_classes,), units))

    @property
    def rates(self) -> FloatArray:
        """P(class | group), shape (n_groups, n_classes); NaN for a group without answers."""
        return ratio(self.counts, self.totals[:, None])

    @property
    def overall(self) -> FloatArray:
        """P(class) over all groups, shape (n_classes,); NaN without any answer."""
        return ratio(self.counts.sum(axis=0), self.counts.sum())

    @property
    def rest(self) -> FloatArray:
        """P(class | not group), shape (n_groups, n_classes); NaN if the others have no answer."""
        others = self.counts.sum(axis=0) - self.counts
        return ratio(others, others.sum(axis=1)[:, None])


@dataclass(frozen=True, kw_only=True, eq=False)
class JointTally(_Counts):
    """How often each group had each true class and was given each class.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_groups, n_classes, n_classes)
        Answers per group, true class and predicted class, in this order. Stored read-only.
    by_unit : UnitCounts, optional
        As for ``Tally``.

    Examples
    --------
    >>> joint = JointTally.of([0, 0, 1], [1, 0, 1], [1, 1, 0], n_groups=2, n_classes=2)
    >>> joint.errors, joint.totals
    (array([1, 1]), array([2, 1]))
    """

    def __post_init__(self) -> None:
        counts = _table("counts", self.counts, ndim=3)
        if counts.shape[1] != counts.shape[2]:
            raise ValueError(
                f"counts must have as many true as predicted classes, got shape {counts.shape}."
            )
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(
        cls,
        groups: ArrayLike,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        n_groups: int,
        n_classes: int,
        *,
        units: IntArray | None = None,
    ) -> JointTally:
        """Count (group, true, predicted); rows whose prediction is REJECTED (-1) are left out.

        ``units`` as for ``Tally.of``.
        """
        z = _checks.codes("groups", groups, n_groups)
        y = _checks.codes("y_true", y_true, n_classes)
        k = answers("y_pred", y_pred, n_classes)
        _checks.same_length(groups=z, y_true=y, y_pred=k)
        shape = (n_classes, n_classes)
        return cls(**_tables(z, y * n_classes + k, k != REJECTED, n_groups, shape, units))

    @property
    def errors(self) -> IntArray:
        """Wrong answers per group, shape (n_groups,)."""
        right = np.trace(self.counts, axis1=1, axis2=2)
        errors: IntArray = self.totals - right
        return errors

    @property
    def predicted(self) -> Tally:
        """The same answers, whatever the truth."""
        of = self.by_unit
        return Tally(
            counts=self.counts.sum(axis=1),
            by_unit=None if of is None else replace(of, counts=of.counts.sum(axis=1)),
        )


def _tables(
    groups: IntArray,
    cells: IntArray,
    kept: BoolArray,
    n_groups: int,
    shape: tuple[int, ...],
    units: IntArray | None,
) -> dict[str, Any]:
    """Count the cells of the rows that are kept, by group, and by unit if there are units."""
    groups, cells = groups[kept], cells[kept]
    return {
        "counts": _counted(groups, cells, n_groups, shape),
        "by_unit": (
            None if units is None else UnitCounts.of(units[kept], groups, cells, n_groups, shape)
        ),
    }


def _counted(rows: IntArray, cells: IntArray, n_rows: int, shape: tuple[int, ...]) -> IntArray:
    size = math.prod(shape)
    flat = np.bincount(rows * size + cells, minlength=n_rows * size)
    return flat.astype(np.int64).reshape(n_rows, *shape)


def answers(name: str, labels: ArrayLike, n_classes: int) -> IntArray:
    """Return labels in [0, n_classes) or REJECTED (-1) as a 1-D int64 array."""
    array = np.asarray(labels)
    if array.ndim == 1 and array.size and np.issubdtype(array.dtype, np.integer):
        outside = (array < REJECTED) | (array >= n_classes)
        if outside.any():
            raise ValueError(
                f"{name} must lie between 0 and {n_classes - 1}, or be REJECTED (-1); got "
                f"{_values.quoted(array[outside][0])} in "
                f"{_values.row(int(np.flatnonzero(outside)[0]))}."
            )
        return array.astype(np.int64)
    return _checks.codes(name, labels, n_classes)


def ratio(part: ArrayLike, whole: ArrayLike) -> FloatArray:
    """Divide, with NaN where the whole is empty."""
    over, under = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    out: FloatArray = np.full(over.shape, np.nan)
    np.divide(over, under, out=out, where=under > 0)
    return out


def _table(name: str, values: ArrayLike, ndim: int) -> IntArray:
    array = np.asarray(values)
    if array.ndim != ndim or 0 in array.shape:
        raise ValueError(f"{name} must be a full {ndim}-D table, got shape {array.shape}.")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must hold whole numbers, got dtype {array.dtype}.")
    if (array < 0).any():
        raise ValueError(f"{name} must be at least 0, got {array.min()}.")
    out: IntArray = array.astype(np.int64)  # a copy, so that the caller's array stays writable
    out.setflags(write=False)
    return out

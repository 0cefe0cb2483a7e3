"""The rows of every teacher out of a stream: at most so many each, and none chosen by another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.typing import Array, BoolArray, FloatArray, IntArray

SLACK: Final = 0.25
"""Room beside the rows that are kept in the end, as a share of them."""

_LAST: Final = np.uint64(2**64 - 1)
_MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Rows of a stream, encoded, with whose they are. Private."""

    X: FloatArray = field(repr=False)
    """Shape (n, n_features)."""
    y: IntArray = field(repr=False)
    """Class codes. Shape (n,)."""
    teacher: IntArray = field(repr=False)
    """Shape (n,)."""
    priority: Array = field(repr=False)
    """The keyed hash by which rows are kept: the smallest of a teacher. Shape (n,)."""
    place: IntArray = field(repr=False)
    """Rows of the stream before each. Shape (n,)."""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def columns(self) -> tuple[Array, ...]:
        """All of it, in the order of the parameters."""
        return self.X, self.y, self.teacher, self.priority, self.place

    def of(self, some: Array | slice) -> Rows:
        """Return some of the rows."""
        X, y, teacher, priority, place = (column[some] for column in self.columns)
        return Rows(X=X, y=y, teacher=teacher, priority=priority, place=place)


class BoundedParts:
    """Keeps of every teacher's rows the ``most`` with the smallest keyed hash, in bounded memory.

    Parameters
    ----------
    n_teachers, most, n_features : int
    n_rows : int
        Rows that are added, at the most.
    below : float
        Share of the values of the hash from which rows are kept at all: where the number of rows is
        public, most of them need not be looked at (``enough``).

    Privacy
    -------
    Which rows a teacher keeps depends on its own rows alone, so one record moves one teacher
    still. Where the hash is that of a record's number, it depends on no value of any row. Where it
    is that of a unit, rows of one unit are alike in it; the smallest of them by their own content
    are kept, so that the order of the rows decides nothing either.

    Examples
    --------
    >>> parts = BoundedParts(2, 1, n_features=1, n_rows=3)
    >>> rows = Rows(X=np.array([[5.0], [6.0], [7.0]]), y=np.array([0, 1, 1]),
    ...             teacher=np.array([0, 1, 1]), priority=np.array([9, 4, 3], dtype=np.uint64),
    ...             place=np.arange(3))
    >>> parts.add(rows)
    >>> parts.rows().X.ravel().tolist()
    [5.0, 7.0]
    """

    def __init__(
        self, n_teachers: int, most: int, *, n_features: int, n_rows: int, below: float = 1.0
    ) -> None:
        self.n_teachers = _checks.at_least("n_teachers", n_teachers, 1)
        self.most = _checks.at_least("most", most, 1)
        kept = min(n_rows, n_teachers * most)
        room = min(n_rows, kept + max(1024, int(SLACK * kept)))
        _checks.closed_unit("below", below)
        self._limit = np.full(n_teachers, min(int(below * 2.0**64), int(_LAST)), dtype=np.uint64)
        self._used = 0
        self._held = Rows(
            X=np.empty((room, n_features)),
            y=np.empty(room, dtype=np.int64),
            teacher=np.empty(room, dtype=np.int64),
            priority=np.empty(room, dtype=np.uint64),
            place=np.empty(room, dtype=np.int64),
        )

    def wanted(self, teacher: IntArray, priority: Array) -> BoolArray:
        """Say which rows may yet be kept; the others need not be read."""
        may: BoolArray = priority <= self._limit[teacher]
        return may

    def add(self, rows: Rows) -> None:
        """Take rows that may be kept."""
        start = 0
        while start < len(rows):
            free = len(self._held) - self._used
            if not free:
                self._shrink()
                left = rows.of(slice(start, None))
                rows, start = left.of(self.wanted(left.teacher, left.priority)), 0
                continue
            some = rows.of(slice(start, start + free))
            for here, given in zip(self._held.columns, some.columns, strict=True):
                here[self._used : self._used + len(some)] = given
            self._used += len(some)
            start += len(some)

    def rows(self) -> Rows:
        """Return what is kept, in the order of the stream; nothing can be added afterwards."""
        self._shrink()
        order = np.argsort(self._held.place[: self._used], kind="stable")
        for column in self._held.columns:
            if column.ndim == 1:
                column[: self._used] = column[order]
                continue
            for j in range(column.shape[1]):  # a copy of all columns would double the memory
                column[: self._used, j] = column[order, j]
        return self._held.of(slice(0, self._used))

    def _shrink(self) -> None:
        """Let go of the rows beyond ``most`` of each teacher."""
        held = self._held.of(slice(0, self._used))
        order = np.lexsort((held.priority, held.teacher))
        teacher, priority = held.teacher[order], held.priority[order]
        if ((teacher[1:] == teacher[:-1]) & (priority[1:] == priority[:-1])).any():
            # Rows of one unit, which are alike in their hash; they are told apart by their content.
            order = np.lexsort((_content(held), held.priority, held.teacher))
        first = np.searchsorted(teacher, np.arange(self.n_teachers))
        keep = np.zeros(len(held), dtype=np.bool_)
        keep[order[np.arange(len(held)) - first[teacher] < self.most]] = True
        full = np.flatnonzero(np.append(first[1:], len(held)) - first >= self.most)
        self._limit[full] = priority[first[full] + self.most - 1]
        n = int(keep.sum())
        holes, movers = np.flatnonzero(~keep[:n]), n + np.flatnonzero(keep[n:])
        for column in self._held.columns:
            column[holes] = column[movers]
        self._used = n


def enough(n_rows: int, n_teachers: int, most: int) -> float:
    """Return below which share of the hash's values every teacher finds ``most`` rows.

    It expects six standard deviations more than that, so that one teacher in a billion has fewer:
    it keeps those that it has.

    Examples
    --------
    >>> enough(10**8, 500, 1000), enough(10**5, 500, 1000)
    (0.00604..., 1.0)
    """
    wanted = most + 6.0 * math.sqrt(most) + 20.0
    return min(1.0, wanted * n_teachers / n_rows)


def _content(rows: Rows) -> Array:
    """Return one number per row, the same for rows that hold the same values."""
    words = np.full(len(rows), 1, dtype=np.uint64)
    for values in (*rows.X.T, rows.y.astype(np.float64)):
        words ^= (values + 0.0).view(np.uint64)  # -0 is 0
        words *= _MIX[0]
        words ^= words >> np.uint64(32)
        words *= _MIX[1]
        words ^= words >> np.uint64(29)
    return words

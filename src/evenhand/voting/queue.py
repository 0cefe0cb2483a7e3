"""Which query to ask next: a public rule over public facts, so it costs nothing."""

from __future__ import annotations

from collections import deque

import numpy as np

from evenhand.fairness.gate.gate import Gate
from evenhand.typing import BoolArray, IntArray


class QueryQueue:
    """Hand out queries so that as few as possible are paid for and then refused.

    The groups of the queries and the table of given answers are public, so any order that depends
    on them alone is free. Queries for which *every* class is admissible come first, the earliest
    of them first; then those for which some class is. A query for which none is stays in the
    queue: later answers to other groups may open the gate again. So does one of a late group whose
    first block could not fit, whatever is answered to the queries that the group has left and the
    budget pays for (``Gate.can_start``).

    Parameters
    ----------
    groups : ndarray of int64, shape (n_queries,)
        Public group codes of the queries.
    gate : Gate
        The gate that the answers will meet.
    keep_order : bool, default False
        Take the queries strictly in the given order; one that may not be asked is then skipped for
        good.
    """

    def __init__(self, groups: IntArray, gate: Gate, *, keep_order: bool = False) -> None:
        self._gate = gate
        self._keep_order = keep_order
        self._groups = groups.tolist()
        self._left = _left(groups).tolist()
        self._lines = [deque(rows.tolist()) for rows in _lines(groups, gate.n_groups, keep_order)]

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def take(self, most: int) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (query, group, admissible classes), or None where no query may be asked now.

        ``most`` is how many winners can still be drawn, whatever they are of.
        """
        return self._in_order(most) if self._keep_order else self._most_open_first(most)

    def rest(self) -> list[int]:
        """Return the queries still waiting."""
        return [row for line in self._lines for row in line]

    def _classes(self, row: int, group: int, most: int) -> tuple[int, ...]:
        """Return the classes that this query may be asked for."""
        allowed = self._gate.admissible(group)
        started = allowed and self._gate.can_start(group, min(self._left[row], most))
        return allowed if started else ()

    def _in_order(self, most: int) -> tuple[int, int, tuple[int, ...]] | None:
        (line,) = self._lines
        while line:
            row = line.popleft()
            group = self._groups[row]
            if allowed := self._classes(row, group, most):
                return row, group, allowed
        return None

    def _most_open_first(self, most: int) -> tuple[int, int, tuple[int, ...]] | None:
        best: tuple[bool, int, int] | None = None
        for group, line in enumerate(self._lines):
            if not line:
                continue
            allowed = self._classes(line[0], group, most)
            if not allowed:
                continue
            rank = (len(allowed) < self._gate.n_classes, line[0], group)
            if best is None or rank < best:
                best = rank
        if best is None:
            return None
        _, row, group = best
        self._lines[group].popleft()
        return row, group, self._gate.admissible(group)


class QueueStack:
    """The queues of many settings over the same queries, which advance together.

    Parameters
    ----------
    groups : ndarray of int64, shape (n_queries,)
        Public group codes of the queries.
    n_groups, n_settings : int
    keep_order : bool
        As for ``QueryQueue``.
    """

    def __init__(
        self, groups: IntArray, n_groups: int, n_settings: int, *, keep_order: bool
    ) -> None:
        self._n, self._n_groups, self._keep_order = len(groups), n_groups, keep_order
        self._groups = np.append(groups, 0)  # the end of a line stands for no query
        self._left = np.append(_left(groups), 0)
        lines = _lines(groups, n_groups, keep_order)
        self._lines = np.full((len(lines), max(map(len, lines)) + 1), self._n)
        for line, rows in zip(self._lines, lines, strict=True):
            line[: len(rows)] = rows
        self._every = np.arange(len(lines))
        self._heads = np.zeros((n_settings, len(lines)), dtype=np.int64)

    def take(self, live: IntArray, is_open: BoolArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Take one query for each of the settings ``live``.

        ``is_open`` are the classes that may be asked for, shape (n_settings, n_groups, n_classes).
        Returns the query and its group, and whether there was one. With ``keep_order`` a query is
        taken though no class is admissible, to be passed over for good.
        """
        heads = self._lines[self._every, self._heads[live]]
        here = np.arange(len(live))
        if self._keep_order:
            line = np.zeros(len(live), dtype=np.int64)
            found = heads[:, 0] < self._n
        else:
            n_open = is_open[live].sum(axis=2)
            rank = heads + np.where(n_open < is_open.shape[2], self._n + 1, 0)
            nothing = 4 * self._n + 4
            rank[(n_open == 0) | (heads == self._n)] = nothing
            line = rank.argmin(axis=1)
            found = rank[here, line] < nothing
        self._heads[live[found], line[found]] += 1
        rows = heads[here, line]
        return rows, self._groups[rows], found

    def left(self, live: IntArray) -> IntArray:
        """Return how many queries are left of each group whose next one may be taken.

        For each of the settings ``live``, shape (len(live), n_groups); 0 of any other group.
        """
        heads = self._lines[self._every, self._heads[live]]
        found: IntArray = self._left[heads]
        if not self._keep_order:
            return found
        found = np.zeros((len(live), self._n_groups), dtype=np.int64)
        found[np.arange(len(live)), self._groups[heads[:, 0]]] = self._left[heads[:, 0]]
        return found

    def may_take(self, i: int, is_open: BoolArray) -> bool:
        """Whether setting ``i`` has a query left that may be asked now."""
        if self._keep_order:
            return False  # it passed over the others for good
        left = self._lines[self._every, self._heads[i]] < self._n
        return bool((left & is_open[i].any(axis=1)).any())

    def n_left(self, i: int) -> int:
        """Return how many queries setting ``i`` has not taken."""
        return self._n - int(self._heads[i].sum())

    def rest(self, i: int) -> IntArray:
        """Return the queries that setting ``i`` never took."""
        rows = np.concatenate([self._lines[z, head:] for z, head in enumerate(self._heads[i])])
        untaken: IntArray = rows[rows < self._n]
        return untaken


def _left(groups: IntArray) -> IntArray:
    """Return how many queries of its own group are at or behind each query."""
    left: IntArray = np.zeros(len(groups), dtype=np.int64)
    for z in np.unique(groups):
        rows = np.flatnonzero(groups == z)
        left[rows] = np.arange(len(rows), 0, -1)
    return left


def _lines(groups: IntArray, n_groups: int, keep_order: bool) -> list[IntArray]:
    """Return the queries of each group in their order, or of all where the order is kept."""
    if keep_order:
        return [np.arange(len(groups))]
    return [np.flatnonzero(groups == z) for z in range(n_groups)]

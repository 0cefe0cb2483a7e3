"""Which query to ask next: a public rule over public facts, so it costs nothing."""

from __future__ import annotations

from collections import deque

from evenhand.fairness import DemographicParityGate
from evenhand.typing import IntArray


class QueryQueue:
    """Hand out queries so that as few as possible are paid for and then refused.

    The groups of the queries and the table of given answers are public, so any order that depends
    on them alone is free. Queries for which *every* class is admissible come first, the earliest
    of them first; then those for which some class is. A query for which none is stays in the
    queue: later answers to other groups may open the gate again.

    Parameters
    ----------
    groups : ndarray of int64, shape (n_queries,)
        Public group codes of the queries.
    gate : DemographicParityGate
        The gate that the answers will meet.
    keep_order : bool, default False
        Take the queries strictly in the given order; one with no admissible class is then skipped
        for good.
    """

    def __init__(
        self, groups: IntArray, gate: DemographicParityGate, *, keep_order: bool = False
    ) -> None:
        self._gate = gate
        self._keep_order = keep_order
        self._groups = groups.tolist()
        self._next = 0
        self._waiting: list[deque[int]] = [deque() for _ in range(gate.n_groups)]
        self._left = len(groups)
        for row, group in enumerate(self._groups):
            self._waiting[group].append(row)

    def __len__(self) -> int:
        return self._left

    def take(self) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (query, group, admissible classes), or None where no query may be asked now."""
        return self._in_order() if self._keep_order else self._most_open_first()

    def rest(self) -> list[int]:
        """Return the queries still waiting."""
        if self._keep_order:
            return list(range(self._next, len(self._groups)))
        return [row for waiting in self._waiting for row in waiting]

    def _in_order(self) -> tuple[int, int, tuple[int, ...]] | None:
        while self._next < len(self._groups):
            row, group = self._next, self._groups[self._next]
            self._next += 1
            self._left -= 1
            allowed = self._gate.admissible(group)
            if allowed:
                return row, group, allowed
        return None

    def _most_open_first(self) -> tuple[int, int, tuple[int, ...]] | None:
        best: tuple[bool, int, int] | None = None
        for group, waiting in enumerate(self._waiting):
            if not waiting:
                continue
            allowed = self._gate.admissible(group)
            if not allowed:
                continue
            rank = (len(allowed) < self._gate.n_classes, waiting[0], group)
            if best is None or rank < best:
                best = rank
        if best is None:
            return None
        _, row, group = best
        self._waiting[group].popleft()
        self._left -= 1
        return row, group, self._gate.admissible(group)

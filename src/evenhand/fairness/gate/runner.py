"""Gates that run over a stream of labels: what is given, in which order, and what waits.

``GateRun`` is one gate and the requests that meet it. ``GateStack`` is many of them advanced
together, for sweeps over margins: the everyday answer, one to a group that is under comparison, is
decided for all gates at once in whole numbers. What is rare (the first group, a late group that is
withheld and released as a block, deliveries) is handed to each run itself, so there is one rule and
not two. One gate alone is asked in plain whole numbers: an array of one costs ten times as much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

import numpy as np

from evenhand import _checks
from evenhand.fairness.gate.demographic_parity import DemographicParityGate
from evenhand.fairness.gate.gate import Gate
from evenhand.fairness.gate.table_gate import TableGate
from evenhand.typing import ArrayLike, BoolArray, IntArray

Pairs: TypeAlias = list[tuple[int, int]]
"""Requests that are given now, each with its label."""

Offered: TypeAlias = tuple[Pairs, bool]
"""What is given now, and whether the offered answer waits; if neither, it is refused for good."""


class GateRun:
    """One gate, and the numbers of the requests whose answers it withholds.

    Parameters
    ----------
    gate : Gate
        Asked by nobody else from now on.

    Privacy
    -------
    As for the gate: reads released labels and public groups only.

    Examples
    --------
    >>> run = GateRun(DemographicParityGate(0.2, n_groups=2, n_classes=2, cold_start=2))
    >>> run.offer(0, group=0, label=1)
    ([(0, 1)], False)
    >>> run.offer(1, group=1, label=1), run.offer(2, group=1, label=1)
    (([], True), ([(1, 1), (2, 1)], False))
    """

    __slots__ = ("_nothing", "gate", "held")

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.held: dict[tuple[int, int], deque[int]] = {}
        """Numbers of the requests that wait, per group and label, oldest first."""
        self._nothing = (0,) * gate.n_classes

    def offer(self, request: int, group: int, label: int) -> Offered:
        """Offer an answer; returns all that is given now, earlier requests first, and if it waits.

        What is given together is one event: the margin holds after all of it.
        """
        outcome = self.gate.offer(group, label)
        pairs: Pairs = []
        if outcome.released != self._nothing:
            pairs = [
                (self.held[group, k].popleft(), k)
                for k, n in enumerate(outcome.released)
                for _ in range(n)
            ]
        if outcome.given:
            pairs.append((request, label))
        elif outcome.withheld:
            self.held.setdefault((group, label), deque()).append(request)
        return pairs, outcome.withheld

    def deliver(self) -> Pairs:
        """Return the waiting answers that may be given now, each an event of its own."""
        return [(self.held[cell].popleft(), cell[1]) for cell in self.gate.deliver()]

    def start_late(self) -> Pairs:
        """Return the answers of groups that wait, of which a block fits by now.

        The block of a group is one event. None under a gate that keeps no table of its own.
        """
        if not isinstance(self.gate, TableGate):
            return []
        return [
            (self.held[group, k].popleft(), k)
            for group in range(self.gate.n_groups)
            for k, n in enumerate(self.gate.start_late(group) or ())
            for _ in range(n)
        ]

    def forget(self, request: int, group: int, label: int) -> None:
        """Let a request that waits wait no longer: a person decided it."""
        numbers = self.held.get((group, label), deque())
        if request not in numbers:
            raise ValueError(f"Request {request} does not wait with class {label}.")
        self.gate.forget(group, label)
        numbers.remove(request)

    @property
    def waiting(self) -> list[int]:
        """Numbers of all requests that wait."""
        return [request for numbers in self.held.values() for request in numbers]


def admitted(gate: Gate, groups: ArrayLike, labels: ArrayLike) -> IntArray:
    """Offer labels to a gate one by one, and return the rows that it gave.

    Parameters
    ----------
    gate : Gate
        A new one; its table is filled.
    groups, labels : array-like of int, shape (n,)
        Group and class codes, in the order in which they are offered.

    Returns
    -------
    ndarray of int64
        Rows whose label was given, ascending; those withheld to the end are not among them.

    Privacy
    -------
    Reads the labels that it is handed and nothing else: free on released answers, private on
    private labels.

    Examples
    --------
    >>> gate = DemographicParityGate(0.2, n_groups=2, n_classes=2, cold_start=1)
    >>> admitted(gate, [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 1, 0]).tolist(), round(gate.gap, 4)
    ([0, 1, 2, 3, 5], 0.1667)
    """
    z = _checks.codes("groups", groups, gate.n_groups)
    k = _checks.codes("labels", labels, gate.n_classes)
    _checks.same_length(groups=z, labels=k)
    run = GateRun(gate)
    given: list[int] = []
    for row, (group, label) in enumerate(zip(z.tolist(), k.tolist(), strict=True)):
        given.extend(earlier for earlier, _ in run.offer(row, group, label)[0])
    given.extend(row for row, _ in run.deliver())
    return np.sort(np.array(given, dtype=np.int64))


LARGEST: Final = 2**62
"""``2 q (N + 1)**2`` must stay below it: see :func:`fits`."""


def fits(gate: Gate, n_answers: int) -> TypeGuard[DemographicParityGate]:
    """Whether a gate may stand in a stack for up to ``n_answers`` more answers.

    Its rule must be that of ``DemographicParityGate`` itself, and exact in int64.

    With N answers in the end and a margin ``p / q``, every product that is compared is at most
    ``2 q (N + 1)**2``: counts are at most N, ``p <= q``, and a difference of two products is at
    most twice the larger. A margin of four decimals is exact up to 15 million answers; one written
    with 17 digits has ``q`` near 10**17 and never fits: such a gate is asked one by one.

    Examples
    --------
    >>> [fits(DemographicParityGate(margin, 2, 2), 10_000) for margin in (0.05, 0.1 + 0.2)]
    [True, False]
    """
    if type(gate) is not DemographicParityGate or not gate.within:
        return False  # another's rule, or the way back to the margin, is asked one by one
    q = gate.notion.exact_margin.denominator
    return 2 * q * (int(gate.counts.sum()) + n_answers + 1) ** 2 < LARGEST


class GateStack:
    """Gates over the same groups and classes that advance together.

    Parameters
    ----------
    gates : sequence of DemographicParityGate
        Of one size and reference; margins and cold starts may differ. They must not be used
        elsewhere until ``finish``, which brings them up to date.

    Privacy
    -------
    As for each gate: reads released labels and public groups only.

    Examples
    --------
    >>> gates = [DemographicParityGate(m, 2, 2, cold_start=1) for m in (0.0, 0.5)]
    >>> stack = GateStack(gates)
    >>> for request, (group, label) in enumerate(((0, 0), (1, 0), (0, 1))):
    ...     given, _ = stack.offer(
    ...         np.arange(2), np.full(2, request), np.full(2, group), np.full(2, label)
    ...     )
    >>> given
    array([False,  True])
    >>> [gate.counts.tolist() for gate in stack.finish()]
    [[[1, 0], [1, 0]], [[1, 1], [1, 0]]]
    """

    def __init__(self, gates: Sequence[DemographicParityGate]) -> None:
        kinds = {(g.n_groups, g.n_classes, g.notion.reference) for g in gates}
        if len(kinds) != 1:
            raise ValueError(
                f"A stack takes gates of one size and reference, and at least one; got "
                f"{len(gates)} gates of {len(kinds)} kinds. Make one stack for each kind."
            )
        self.gates = tuple(gates)
        self._runs = [GateRun(gate) for gate in gates]
        ((self.n_groups, self.n_classes, self._reference),) = kinds
        margins = [gate.notion.exact_margin for gate in gates]
        self._p = np.array([margin.numerator for margin in margins], dtype=np.int64)
        self._q = np.array([margin.denominator for margin in margins], dtype=np.int64)
        self._counts = np.array([gate.counts for gate in gates])
        self._active = np.array([gate.active for gate in gates])
        self._sizes = self._counts.sum(axis=2)
        self._behind = np.zeros(len(gates), dtype=np.bool_)  # gates that have not counted on
        self._same = np.eye(self.n_groups, dtype=np.bool_)
        self.open: BoolArray = np.ones(self._counts.shape, dtype=np.bool_)
        """Admissible classes per gate and group, shape (n_gates, n_groups, n_classes)."""
        self._reopen(np.arange(len(gates)))

    def __len__(self) -> int:
        return len(self.gates)

    def offer(
        self, which: IntArray, requests: IntArray, groups: IntArray, labels: IntArray
    ) -> tuple[BoolArray, Mapping[int, Offered]]:
        """Offer one answer to each of the gates ``which``, all different.

        Returns
        -------
        given : ndarray of bool, shape (len(which),)
            Whether the answer, and no other with it, is given now.
        others : mapping of int to (pairs, bool)
            By position in ``which``, as ``GateRun.offer`` returns it: where a group was not under
            comparison yet, so that the answer waits, or earlier ones are given with it.
        """
        given = self.open[which, groups, labels]
        late = np.flatnonzero(~self._active[which, groups])
        given[late] = False
        at, z, k = which[given], groups[given], labels[given]
        self._counts[at, z, k] += 1
        self._sizes[at, z] += 1
        self._behind[at] = True
        others = {
            i: self._offer_late(int(which[i]), int(requests[i]), int(groups[i]), int(labels[i]))
            for i in late.tolist()
        }
        self._reopen(np.concatenate([at, which[late]]))
        return given, others

    @property
    def waits(self) -> BoolArray:
        """Groups that are not under comparison while others are, shape (n_gates, n_groups)."""
        waits: BoolArray = ~self._active & self._active.any(axis=1, keepdims=True)
        return waits

    def can_start(self, i: int, group: int, n_more: int) -> bool:
        """Whether a group of gate ``i`` could start with ``n_more`` further answers; see Gate."""
        return self._caught_up(i).gate.can_start(group, n_more)

    def deliver(self, i: int) -> Pairs:
        """Return the waiting answers of gate ``i`` that may be given now; see ``GateRun``."""
        delivered = self._caught_up(i).deliver()
        if delivered:
            self._take_from(i)
            self._reopen(np.array([i]))
        return delivered

    def waiting(self, i: int) -> list[int]:
        """Return the requests whose answer gate ``i`` still withholds."""
        return self._runs[i].waiting

    def finish(self) -> tuple[DemographicParityGate, ...]:
        """Bring the gates up to date and return them."""
        for i in np.flatnonzero(self._behind).tolist():
            self._caught_up(i)
        return self.gates

    def _offer_late(self, i: int, request: int, group: int, label: int) -> Offered:
        pairs, waits = self._caught_up(i).offer(request, group, label)
        if pairs:
            self._take_from(i)
        return pairs, waits

    def _caught_up(self, i: int) -> GateRun:
        run = self._runs[i]
        if self._behind[i]:
            self.gates[i].catch_up(self._counts[i].tolist())
            self._behind[i] = False
        return run

    def _take_from(self, i: int) -> None:
        gate = self.gates[i]
        self._counts[i] = gate.counts
        self._sizes[i] = self._counts[i].sum(axis=1)
        self._active[i] = gate.active

    def _reopen(self, at: IntArray) -> None:
        """Find the admissible classes of the gates ``at`` anew."""
        if not len(at):
            return
        pairwise = self._reference == "pairwise"
        unchosen, chosen = self._apart_by_pairs(at) if pairwise else self._apart_from_pool(at)
        n_failing = unchosen.sum(axis=2, keepdims=True)
        # A class is open if its column holds with it and every other column holds without it.
        found = ~chosen & ((n_failing == 0) | ((n_failing == 1) & unchosen))
        self.open[at] = found | ~self._active[at][:, :, None]

    def _apart_from_pool(self, at: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return columns that fail without and with one more answer, (gate, candidate, class)."""
        counts, active = self._counts[at][:, None], self._active[at][:, None, :, None]
        classes = counts.sum(axis=2, keepdims=True)
        total = self._sizes[at].sum(axis=1)[:, None, None] + 1
        size = self._sizes[at][:, None, :] + self._same  # (gate, candidate, compared)
        step = np.where(self._same, total - size, -size)[..., None]
        pool = total if self._reference == "overall" else total - size
        bound = (self._p[at][:, None, None] * size * pool // self._q[at][:, None, None])[..., None]
        difference = counts * total[..., None] - classes * size[..., None]
        unchosen = (np.abs(difference) > bound) & active
        chosen = (np.abs(difference + step) > bound) & active
        return unchosen.any(axis=2), chosen.any(axis=2)

    def _apart_by_pairs(self, at: IntArray) -> tuple[BoolArray, BoolArray]:
        """As ``_apart_from_pool``, against each other group; pairs of others do not move."""
        counts, sizes = self._counts[at], self._sizes[at]
        size = (sizes + 1)[:, :, None]  # of the candidate
        other = sizes[:, None, :]
        bound = (self._p[at][:, None, None] * size * other // self._q[at][:, None, None])[..., None]
        difference = counts[:, :, None] * other[..., None] - counts[:, None] * size[..., None]
        compared = (self._active[at][:, None, :] & ~self._same)[..., None]
        unchosen = (np.abs(difference) > bound) & compared
        chosen = (np.abs(difference + other[..., None]) > bound) & compared
        return unchosen.any(axis=2), chosen.any(axis=2)

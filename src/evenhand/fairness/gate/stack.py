"""Many gates advanced together, one array operation for all: for sweeps over margins.

The everyday answer, one to a group that is under comparison, is decided for all gates at once in
whole numbers. What is rare (the first group, a late group that is withheld and released as a
block, deliveries) is handed to the gate itself, so there is one rule and not two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evenhand.fairness.gate.demographic_parity import DemographicParityGate, Outcome
from evenhand.typing import BoolArray, IntArray

LARGEST: Final = 2**62
"""``2 q (N + 1)**2`` must stay below it: see :func:`fits`."""


def fits(gate: DemographicParityGate, n_answers: int) -> bool:
    """Whether a gate's arithmetic on up to ``n_answers`` more answers is exact in int64.

    With N answers in the end and a margin ``p / q``, every product that is compared is at most
    ``2 q (N + 1)**2``: counts are at most N, ``p <= q``, and a difference of two products is at
    most twice the larger. A margin of four decimals is exact up to 15 million answers; one written
    with 17 digits has ``q`` near 10**17 and never fits: such a gate is asked one by one.

    Examples
    --------
    >>> [fits(DemographicParityGate(margin, 2, 2), 10_000) for margin in (0.05, 0.1 + 0.2)]
    [True, False]
    """
    q = gate.notion.exact_margin.denominator
    return 2 * q * (int(gate.counts.sum()) + n_answers + 1) ** 2 < LARGEST


class GateStack:
    """Gates over the same groups and classes that advance together.

    Parameters
    ----------
    gates : sequence of DemographicParityGate
        Of one size, reference and rule; margins and cold starts may differ. They must not be used
        elsewhere until ``finish``, which brings them up to date.

    Privacy
    -------
    As for each gate: reads released labels and public groups only.

    Examples
    --------
    >>> gates = [DemographicParityGate(m, 2, 2, cold_start=1) for m in (0.0, 0.5)]
    >>> stack = GateStack(gates)
    >>> for group, label in ((0, 0), (1, 0), (0, 1)):
    ...     given, _ = stack.offer(np.arange(2), np.full(2, group), np.full(2, label))
    >>> given
    array([False,  True])
    >>> [gate.counts.tolist() for gate in stack.finish()]
    [[[1, 0], [1, 0]], [[1, 1], [1, 0]]]
    """

    def __init__(self, gates: Sequence[DemographicParityGate]) -> None:
        kinds = {(g.n_groups, g.n_classes, g.notion.reference, g.rule) for g in gates}
        if len(kinds) != 1:
            raise ValueError(
                f"A stack takes gates of one size, reference and rule, and at least one; got "
                f"{len(gates)} gates of {len(kinds)} kinds. Make one stack for each kind."
            )
        self.gates = tuple(gates)
        ((self.n_groups, self.n_classes, self._reference, self._rule),) = kinds
        margins = [gate.notion.exact_margin for gate in gates]
        self._p = np.array([margin.numerator for margin in margins], dtype=np.int64)
        self._q = np.array([margin.denominator for margin in margins], dtype=np.int64)
        self._cold_start = np.array([gate.cold_start for gate in gates], dtype=np.int64)
        self._counts = np.array([gate.counts for gate in gates])
        self._active = np.array([gate.active for gate in gates])
        self._violations = np.array([gate.violations for gate in gates], dtype=np.int64)
        self._sizes = self._counts.sum(axis=2)
        self._behind = np.zeros(len(gates), dtype=np.bool_)  # gates that have not counted on
        self._same = np.eye(self.n_groups, dtype=np.bool_)
        self.open: BoolArray = np.ones(self._counts.shape, dtype=np.bool_)
        """Admissible classes per gate and group, shape (n_gates, n_groups, n_classes)."""
        self._reopen(np.arange(len(gates)))

    def __len__(self) -> int:
        return len(self.gates)

    def offer(
        self, which: IntArray, groups: IntArray, labels: IntArray
    ) -> tuple[BoolArray, Mapping[int, Outcome]]:
        """Offer one answer to each of the gates ``which``, all different.

        Returns
        -------
        given : ndarray of bool, shape (len(which),)
            Whether the answer may be handed out now.
        others : mapping of int to Outcome
            By position in ``which``: the whole outcome where a group was not under comparison yet,
            so that the answer was withheld, or earlier ones were released with it.
        """
        given = self.open[which, groups, labels]
        late = np.flatnonzero(~self._active[which, groups])
        given[late] = False
        at, z, k = which[given], groups[given], labels[given]
        self._counts[at, z, k] += 1
        self._sizes[at, z] += 1
        self._behind[at] = True
        others = {
            i: self._ask(int(which[i]), int(groups[i]), int(labels[i])) for i in late.tolist()
        }
        for i, outcome in others.items():
            given[i] = outcome.given
        if self._rule == "published":
            self._violations[at] += self._exceeds(at)
        self._reopen(np.concatenate([at, which[late]]))
        return given, others

    def deliver(self, i: int) -> list[tuple[int, int]]:
        """Return withheld answers of gate ``i`` that may be given now; see the gate's own."""
        delivered = self._caught_up(i).deliver()
        if delivered:
            self._take_from(i)
            self._reopen(np.array([i]))
        return delivered

    def finish(self) -> tuple[DemographicParityGate, ...]:
        """Bring the gates up to date and return them."""
        for i in np.flatnonzero(self._behind).tolist():
            self._caught_up(i)
        return self.gates

    def _ask(self, i: int, group: int, label: int) -> Outcome:
        outcome = self._caught_up(i).offer(group, label)
        if outcome.given or any(outcome.released):
            self._take_from(i)
        return outcome

    def _caught_up(self, i: int) -> DemographicParityGate:
        gate = self.gates[i]
        if self._behind[i]:
            gate._catch_up(self._counts[i].tolist(), int(self._violations[i]))
            self._behind[i] = False
        return gate

    def _take_from(self, i: int) -> None:
        gate = self.gates[i]
        self._counts[i] = gate.counts
        self._sizes[i] = self._counts[i].sum(axis=1)
        self._active[i] = gate.active
        self._violations[i] = gate.violations

    def _reopen(self, at: IntArray) -> None:
        """Find the admissible classes of the gates ``at`` anew."""
        if not len(at):
            return
        if self._rule == "published":
            self.open[at] = self._published(at)
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

    def _published(self, at: IntArray) -> BoolArray:
        counts, size = self._counts[at], self._sizes[at][:, :, None]
        classes = counts.sum(axis=1, keepdims=True)
        others = size.sum(axis=1, keepdims=True) - size
        p, q = self._p[at][:, None, None], self._q[at][:, None, None]
        left = q * ((counts + 1) * others - (classes - counts) * (size + 1))
        within = (left < p * (size + 1) * others) & (others > 0)
        found: BoolArray = within | (size < self._cold_start[at][:, None, None])
        return found

    def _exceeds(self, at: IntArray) -> BoolArray:
        """Whether the table of given answers is beyond the margin, against the rest."""
        counts, size = self._counts[at], self._sizes[at][:, :, None]
        total = size.sum(axis=1, keepdims=True)
        apart = np.abs(counts * total - counts.sum(axis=1, keepdims=True) * size)
        p, q = self._p[at][:, None, None], self._q[at][:, None, None]
        # A group without answers, or alone, has both sides 0.
        found: BoolArray = (q * apart > p * size * (total - size)).any(axis=(1, 2))
        return found

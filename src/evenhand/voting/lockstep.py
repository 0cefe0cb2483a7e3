"""Many settings answered from one set of votes, each its own release, all advanced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.fairness.gate.gate import Gate
from evenhand.fairness.gate.runner import GateStack, Pairs, fits
from evenhand.privacy import GNMax, Ledger, LNMax
from evenhand.typing import BoolArray, IntArray
from evenhand.voting.aggregator import Progress, aggregate, require_same_classes
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.blocks import BLOCK, Mechanism, QueryBlocks, stages
from evenhand.voting.queue import QueueStack
from evenhand.voting.votes import Votes

LARGEST_SCALE: Final = 2.0**40
"""Noise up to it adds to votes without rounding in float64: 2**52 is 4096 scales away."""


def aggregate_many(
    votes: Votes,
    mechanisms: Sequence[Mechanism],
    ledgers: Sequence[Ledger],
    gates: Sequence[Gate],
    *,
    groups: IntArray,
    keep_order: bool = False,
    progress: Progress | None = None,
) -> list[Answers]:
    """Answer the same public queries once for every setting, as ``aggregate`` would one by one.

    Setting i has its mechanism, its ledger with its own noise, and its gate. Given the same noise
    the answers, ledgers and gates are bit for bit those of ``aggregate`` (``docs/frontier.md``
    says which tests hold them together).

    Parameters
    ----------
    votes : Votes
        Private.
    mechanisms, ledgers, gates : sequences of equal length
        One of each per setting; ledgers and gates must all be different objects.
    groups : ndarray of int64, shape (n_queries,)
        Public group codes of the queries.
    keep_order, progress
        As for ``aggregate``; progress counts queries over all settings.

    Returns
    -------
    list of Answers
        In the order of the settings.

    Raises
    ------
    BudgetExceeded
        If a budget does not cover a single query; nothing is charged in any ledger then.

    Privacy
    -------
    Cost: every setting is a release of its own, charged to its own ledger; publishing several costs
    the sum of them. No noise is shared between settings.
    """
    n = _checks.same_length(mechanisms=mechanisms, ledgers=ledgers, gates=gates)
    codes = _checks.codes("groups", groups, gates[0].n_groups if n else 1)
    _checks.same_length(votes=votes, groups=codes)
    if len({id(each) for each in (*ledgers, *gates)}) < 2 * n:
        raise ValueError(
            "Every setting needs a ledger and a gate of its own: settings that share one would "
            "change each other's answers."
        )
    for mechanism, ledger, gate in zip(mechanisms, ledgers, gates, strict=True):
        if len(votes):
            QueryBlocks(mechanism, ledger, votes.n_classes).require_one()
        require_same_classes(gate, votes)
    together: dict[str, list[int]] = {}  # by what a group is compared with
    for i, gate in enumerate(gates):
        if fits(gate, len(votes)) and _sums_exactly(mechanisms[i]):
            together.setdefault(gate.notion.reference, []).append(i)
    answers: dict[int, Answers] = {}
    for same in together.values():
        run = _Lockstep(
            votes,
            [mechanisms[i] for i in same],
            [ledgers[i] for i in same],
            GateStack([gate for i in same if fits(gate := gates[i], len(votes))]),
            codes,
            keep_order=keep_order,
        )
        answers |= zip(same, run.answers(progress), strict=True)
    return [
        answers[i]
        if i in answers
        else aggregate(
            votes, mechanisms[i], ledgers[i], gate=gates[i], groups=codes, keep_order=keep_order
        )
        for i in range(n)
    ]


def _sums_exactly(mechanism: Mechanism) -> bool:
    """Whether winners are those of votes plus noise, and such sums are exact in float64."""
    check, answer = stages(mechanism)
    if type(answer) not in (GNMax, LNMax):
        return False  # another's own rule, which is asked one query at a time
    own = answer.scale if isinstance(answer, LNMax) else answer.sigma
    return max(own, 0.0 if check is None else check.sigma) <= LARGEST_SCALE


class _Lockstep:
    """One query of every setting at a time; row i of every array belongs to setting i.

    A step asks the same questions as the loop of ``aggregate``, of all settings at once; whatever
    is rare (blocks, late groups, deliveries) is handed to each setting's own blocks and gate.
    """

    def __init__(
        self,
        votes: Votes,
        mechanisms: Sequence[Mechanism],
        ledgers: Sequence[Ledger],
        stack: GateStack,
        groups: IntArray,
        *,
        keep_order: bool,
    ) -> None:
        n, n_classes, n_settings = len(votes), votes.n_classes, len(mechanisms)
        self._counts, self._groups = votes.counts, groups
        self._blocks = [
            QueryBlocks(mechanism, ledger, n_classes)
            for mechanism, ledger in zip(mechanisms, ledgers, strict=True)
        ]
        self._gates = stack
        self._queues = QueueStack(groups, stack.n_groups, n_settings, keep_order=keep_order)
        self._reasons = np.full((n_settings, n), Reason.NOT_ASKED, dtype=np.int8)
        # What was given, in order.
        self._rows = np.zeros((n_settings, n), dtype=np.int32)
        self._labels = np.zeros((n_settings, n), dtype=np.int32)
        self._begins = np.zeros((n_settings, n), dtype=np.bool_)
        self._n_given = np.zeros(n_settings, dtype=np.int64)
        # The open block of each setting.
        self._size, self._asked, self._drawn = np.zeros((3, n_settings), dtype=np.int64)
        self._check_noise = np.zeros((n_settings, min(BLOCK, n)))
        self._answer_noise = np.zeros((n_settings, min(BLOCK, n), n_classes))
        self._threshold = np.array(
            [-np.inf if own.check is None else own.check.threshold for own in self._blocks]
        )

    def answers(self, progress: Progress | None) -> list[Answers]:
        """Ask until queries or budgets run out."""
        every = range(len(self._blocks))
        live = np.array([i for i in every if self._open(i)], dtype=np.int64)
        steps = 0
        while len(live):
            live = self._step(live)
            steps += 1
            if progress and steps % BLOCK == 0:
                total = len(self._counts) * len(every)
                progress(total - sum(map(self._queues.n_left, every)), total)
        done = [self._finish(i) for i in every]
        self._gates.finish()
        return done

    def _step(self, live: IntArray) -> IntArray:
        """Let every live setting take one query; return those that go on."""
        is_open = self._open_to(live)
        rows, groups, found = self._queues.take(live, is_open)
        stopped = live[~found]
        at, rows, groups = live[found], rows[found], groups[found]
        allowed = is_open[at, groups]
        ask = allowed.any(axis=1)  # with keep_order a query with no such class is passed over
        if not ask.all():
            at, rows, groups, allowed = at[ask], rows[ask], groups[ask], allowed[ask]
        passed = self._check(at, rows, allowed)
        at, rows, groups = at[passed], rows[passed], groups[passed]
        noisy = self._counts[rows] + self._answer_noise[at, self._drawn[at]]
        self._drawn[at] += 1
        self._offer(at, rows, groups, noisy.argmax(axis=1))
        full = self._asked[live] >= self._size[live]
        # Where nothing can be taken, what is withheld may fit by now and open the gate again.
        ended = [
            i
            for i in stopped.tolist()
            if not (self._deliver(i) and self._queues.may_take(i, self._open_to(np.array([i]))))
        ]
        over = [i for i in (*ended, *live[full].tolist()) if not (self._close(i) and self._open(i))]
        return np.setdiff1d(live, over) if over else live

    def _open_to(self, live: IntArray) -> BoolArray:
        """Return the classes that may be asked for, of all settings; brought up to date: ``live``.

        They are the admissible ones, and none of a late group that could not start any more.
        """
        left = self._queues.left(live)
        waits = self._gates.waits[live] & (left > 0)
        if not waits.any():
            return self._gates.open
        is_open = self._gates.open.copy()
        for at, group in np.argwhere(waits).tolist():
            i = int(live[at])
            most = self._blocks[i].drawable(asked=int(self._asked[i]), drawn=int(self._drawn[i]))
            if not self._gates.can_start(i, group, min(int(left[at, group]), most)):
                is_open[i, group] = False
        return is_open

    def _check(self, at: IntArray, rows: IntArray, allowed: BoolArray) -> BoolArray:
        """Ask the cheap question where there is one; return who passed."""
        largest = np.where(allowed, self._counts[rows], -1).max(axis=1)
        noise = self._check_noise[at, self._asked[at]]
        self._asked[at] += 1
        passed: BoolArray = largest + noise >= self._threshold[at]
        self._reasons[at[~passed], rows[~passed]] = Reason.NO_CONSENSUS
        return passed

    def _offer(self, at: IntArray, rows: IntArray, groups: IntArray, labels: IntArray) -> None:
        given, others = self._gates.offer(at, rows, groups, labels)
        self._reasons[at, rows] = Reason.OUTSIDE_MARGIN
        for i, (pairs, _) in others.items():
            self._give_together(int(at[i]), pairs)
        self._give(at[given], rows[given], labels[given])

    def _deliver(self, i: int) -> bool:
        delivered = self._gates.deliver(i)
        for row, label in delivered:
            self._give(i, row, label)
        return bool(delivered)

    def _give_together(self, i: int, pairs: Pairs) -> None:
        for j, (row, label) in enumerate(pairs):
            self._give(i, row, label, begins=not j)

    def _give(
        self,
        at: IntArray | int,
        rows: IntArray | int,
        labels: IntArray | int,
        *,
        begins: bool = True,
    ) -> None:
        """Write down what one setting, or each of several, gives next."""
        n = self._n_given[at]
        self._rows[at, n], self._labels[at, n], self._begins[at, n] = rows, labels, begins
        self._n_given[at] += 1

    def _open(self, i: int) -> bool:
        """Open the next block of setting ``i``; False if there is none."""
        own = self._blocks[i]
        size = own.open(self._queues.n_left(i))
        if not size:
            return False
        self._check_noise[i, : len(own.check_noise)] = own.check_noise
        self._answer_noise[i, :size] = own.answer_noise
        self._size[i], self._asked[i], self._drawn[i] = size, 0, 0
        return True

    def _close(self, i: int) -> bool:
        """Close the block of setting ``i``; False if nothing could be asked in it."""
        return self._blocks[i].close(asked=int(self._asked[i]), drawn=int(self._drawn[i]))

    def _finish(self, i: int) -> Answers:
        self._deliver(i)
        given = slice(self._n_given[i])
        return self._blocks[i].answers(
            self._rows[i, given].astype(np.int64),
            self._labels[i, given].astype(np.int64),
            np.cumsum(self._begins[i, given]) - 1,
            reasons=self._reasons[i].astype(np.int64),
            groups=self._groups,
            passed_over=self._queues.rest(i),
            waiting=self._gates.waiting(i),
        )

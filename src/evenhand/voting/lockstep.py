"""Many settings answered from one set of votes, each its own release, all advanced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.runner import GateStack, Pairs, fits
from evenhand.privacy import Ledger, LNMax
from evenhand.privacy.ledger import Grant
from evenhand.typing import REJECTED, BoolArray, IntArray
from evenhand.voting.aggregator import BLOCK, Mechanism, Progress, aggregate, stages
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.votes import Votes

LARGEST_SCALE: Final = 2.0**40
"""Noise up to it adds to votes without rounding in float64: 2**52 is 4096 scales away."""


def aggregate_many(
    votes: Votes,
    mechanisms: Sequence[Mechanism],
    ledgers: Sequence[Ledger],
    gates: Sequence[DemographicParityGate],
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
        uses = [stage for stage in stages(mechanism) if stage is not None]
        if len(votes) and not ledger.affordable(*uses):
            # Let the ledger say it: its message names the mechanism, the cost and the budget.
            ledger.reserve(dict.fromkeys(uses, 1), purpose="first query")
        if gate.n_classes != votes.n_classes:
            raise ValueError(
                f"The gate counts {gate.n_classes} classes, the votes have {votes.n_classes}."
            )
    answers: list[Answers | None] = [None] * n
    together = [
        i
        for i in range(n)
        if fits(gates[i], len(votes)) and _widest(mechanisms[i]) <= LARGEST_SCALE
    ]
    if together:
        run = _Lockstep(
            votes,
            [mechanisms[i] for i in together],
            [ledgers[i] for i in together],
            GateStack([gates[i] for i in together]),
            codes,
            keep_order=keep_order,
        )
        for i, one in zip(together, run.answers(progress), strict=True):
            answers[i] = one
    return [
        aggregate(
            votes, mechanisms[i], ledgers[i], gate=gates[i], groups=codes, keep_order=keep_order
        )
        if one is None
        else one
        for i, one in enumerate(answers)
    ]


def _widest(mechanism: Mechanism) -> float:
    """Return the largest scale of noise that it draws."""
    check, answer = stages(mechanism)
    own = answer.scale if isinstance(answer, LNMax) else answer.sigma
    return own if check is None else max(own, check.sigma)


class _Lockstep:
    """One query of every setting at a time; row i of every array belongs to setting i."""

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
        n, n_settings = len(votes), len(mechanisms)
        self._counts = votes.counts
        self._n = n
        self._groups = groups
        self._stages = [stages(mechanism) for mechanism in mechanisms]
        self._ledgers = ledgers
        self._stack = stack
        self._keep_order = keep_order
        self._next = np.zeros(n_settings, dtype=np.int64)  # with keep_order
        self._heads = np.zeros((n_settings, stack.n_groups), dtype=np.int64)  # and without
        waiting = [np.flatnonzero(groups == z) for z in range(stack.n_groups)]
        self._waiting = np.full((stack.n_groups, max(map(len, waiting)) + 1), n)
        for z, rows in enumerate(waiting):
            self._waiting[z, : len(rows)] = rows
        self._taken = np.zeros(n_settings, dtype=np.int64)
        self._labels = np.full((n_settings, n), REJECTED, dtype=np.int32)
        self._reasons = np.full((n_settings, n), Reason.NOT_ASKED, dtype=np.int8)
        self._order = np.zeros((n_settings, n), dtype=np.int32)
        self._events = np.zeros((n_settings, n), dtype=np.int32)
        self._event = np.zeros(n_settings, dtype=np.int64)
        self._n_given = np.zeros(n_settings, dtype=np.int64)
        # The open block of each setting.
        self._grants: list[Grant | None] = [None] * n_settings
        self._size = np.zeros(n_settings, dtype=np.int64)
        self._asked = np.zeros(n_settings, dtype=np.int64)
        self._drawn = np.zeros(n_settings, dtype=np.int64)
        block = min(BLOCK, n)
        self._check_noise = np.zeros((n_settings, block))
        self._answer_noise = np.zeros((n_settings, block, votes.n_classes))
        self._threshold = np.array(
            [-np.inf if check is None else check.threshold for check, _ in self._stages]
        )
        self._n_checks = np.zeros(n_settings, dtype=np.int64)
        self._n_draws = np.zeros(n_settings, dtype=np.int64)

    def answers(self, progress: Progress | None) -> list[Answers]:
        """Ask until queries or budgets run out."""
        live = np.array([i for i in range(len(self._ledgers)) if self._begin(i)], dtype=np.int64)
        steps = 0
        while len(live):
            live = self._step(live)
            steps += 1
            if progress and steps % BLOCK == 0:
                progress(int(self._taken.sum()), self._n * len(self._ledgers))
        done = [self._finish(i) for i in range(len(self._ledgers))]
        self._stack.finish()
        return done

    def _step(self, live: IntArray) -> IntArray:
        """Let every live setting take one query; return those that go on."""
        rows, groups, found = self._take(live)
        stopped = live[~found]
        at, rows, groups = live[found], rows[found], groups[found]
        if self._keep_order:  # a query with no admissible class is passed over for good
            ask = self._stack.open[at, groups].any(axis=1)
            at, rows, groups = at[ask], rows[ask], groups[ask]
        passed = self._check(at, rows, groups)
        at, rows, groups = at[passed], rows[passed], groups[passed]
        noisy = self._counts[rows] + self._answer_noise[at, self._drawn[at]]
        winners = noisy.argmax(axis=1)
        self._drawn[at] += 1
        self._offer(at, rows, groups, winners)
        full = self._asked[live] >= self._size[live]
        # Where nothing can be taken, what is withheld may fit by now and open the gate again.
        ended = [i for i in stopped.tolist() if not (self._deliver(i) and self._may_take(i))]
        over = [i for i in (*ended, *live[full].tolist()) if not (self._end(i) and self._begin(i))]
        return np.setdiff1d(live, over) if over else live

    def _take(self, live: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Return rows, groups and whether there was one, as ``QueryQueue`` takes them."""
        if self._keep_order:
            rows = self._next[live]
            found = rows < self._n
            at = live[found]
            self._next[at] += 1
            self._taken[at] += 1
            return rows, self._groups[np.minimum(rows, self._n - 1)], found
        every = np.arange(self._stack.n_groups)
        heads = self._waiting[every, self._heads[live]]
        n_open = self._stack.open[live].sum(axis=2)
        rank = heads + np.where(n_open < self._stack.n_classes, self._n + 1, 0)
        rank[(n_open == 0) | (heads == self._n)] = 4 * self._n + 4
        groups = rank.argmin(axis=1)
        here = np.arange(len(live))
        found = rank[here, groups] < 4 * self._n + 4
        at = live[found]
        self._heads[at, groups[found]] += 1
        self._taken[at] += 1
        return heads[here, groups], groups, found

    def _may_take(self, i: int) -> bool:
        """Whether a query is left that may be asked now."""
        if self._keep_order:
            return False  # it passed over the others for good
        left = self._waiting[np.arange(self._stack.n_groups), self._heads[i]] < self._n
        return bool((left & self._stack.open[i].any(axis=1)).any())

    def _check(self, at: IntArray, rows: IntArray, groups: IntArray) -> BoolArray:
        """Ask the cheap question where there is one; return who passed."""
        allowed = self._stack.open[at, groups]
        largest = np.where(allowed, self._counts[rows], -1).max(axis=1)
        noise = self._check_noise[at, self._asked[at]]
        self._asked[at] += 1
        passed: BoolArray = largest + noise >= self._threshold[at]
        self._reasons[at[~passed], rows[~passed]] = Reason.NO_CONSENSUS
        return passed

    def _offer(self, at: IntArray, rows: IntArray, groups: IntArray, labels: IntArray) -> None:
        given, others = self._stack.offer(at, rows, groups, labels)
        self._reasons[at, rows] = Reason.OUTSIDE_MARGIN
        for i, (pairs, _) in others.items():
            self._give(int(at[i]), pairs)
        at, rows = at[given], rows[given]
        self._labels[at, rows] = labels[given]
        self._reasons[at, rows] = Reason.ANSWERED
        self._order[at, self._n_given[at]] = rows
        self._events[at, self._n_given[at]] = self._event[at]
        self._n_given[at] += 1
        self._event[at] += 1

    def _deliver(self, i: int) -> bool:
        delivered = self._stack.deliver(i)
        for pair in delivered:
            self._give(i, [pair])
        return bool(delivered)

    def _give(self, i: int, pairs: Pairs) -> None:
        """Write down what setting ``i`` gives together."""
        for row, label in pairs:
            self._labels[i, row] = label
            self._reasons[i, row] = Reason.ANSWERED
            self._order[i, self._n_given[i]] = row
            self._events[i, self._n_given[i]] = self._event[i]
            self._n_given[i] += 1
        self._event[i] += bool(pairs)

    def _begin(self, i: int) -> bool:
        """Reserve and draw the next block of setting ``i``; False if there is none."""
        check, answer = self._stages[i]
        uses = (answer,) if check is None else (check, answer)
        left = self._n - int(self._taken[i])
        size = min(BLOCK, left, self._ledgers[i].affordable(*uses))
        if not size:
            return False
        grant = self._ledgers[i].reserve(
            dict.fromkeys(uses, size), purpose="answers to public queries"
        )
        n_classes = self._stack.n_classes
        if check is not None:
            self._check_noise[i, :size] = grant.draw(check, n_classes)
        self._answer_noise[i, :size] = grant.draw(answer, n_classes)
        self._grants[i] = grant
        self._size[i], self._asked[i], self._drawn[i] = size, 0, 0
        return True

    def _end(self, i: int) -> bool:
        """Settle the block of setting ``i``; False if nothing could be asked in it."""
        check, answer = self._stages[i]
        asked, drawn = int(self._asked[i]), int(self._drawn[i])
        grant = self._grants[i]
        assert grant is not None
        grant.settle({answer: drawn} if check is None else {check: asked, answer: drawn})
        self._grants[i] = None
        self._n_checks[i] += asked if check is not None else 0
        self._n_draws[i] += drawn
        return asked > 0

    def _finish(self, i: int) -> Answers:
        check, answer = self._stages[i]
        self._deliver(i)
        if self._ledgers[i].affordable(*((answer,) if check is None else (check, answer))):
            # Budget was left: these were passed over because no class was admissible.
            self._reasons[i, self._rest(i)] = Reason.NO_CLASS_ADMISSIBLE
        self._reasons[i, self._stack.waiting(i)] = Reason.WITHHELD
        given = int(self._n_given[i])
        return Answers(
            labels=self._labels[i].astype(np.int64),
            reasons=self._reasons[i].astype(np.int64),
            order=self._order[i, :given].astype(np.int64),
            events=self._events[i, :given].astype(np.int64),
            groups=self._groups,
            n_checks=int(self._n_checks[i]),
            n_draws=int(self._n_draws[i]),
            n_classes=self._stack.n_classes,
        )

    def _rest(self, i: int) -> IntArray:
        """Return the queries that setting ``i`` never took."""
        if self._keep_order:
            return np.arange(self._next[i], self._n)
        rows = np.concatenate([self._waiting[z, head:] for z, head in enumerate(self._heads[i])])
        untaken: IntArray = rows[rows < self._n]
        return untaken

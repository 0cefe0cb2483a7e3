"""From votes to answers: fairness first and free, then noise, then the gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from evenhand import _checks
from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.runner import GateRun, Pairs
from evenhand.privacy import ConfidentGNMax, GNMax, Ledger, LNMax
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.typing import REJECTED, BoolArray, IntArray
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.queue import QueryQueue
from evenhand.voting.votes import Votes

Mechanism: TypeAlias = GNMax | LNMax | ConfidentGNMax
Progress: TypeAlias = Callable[[int, int], None]

BLOCK = 1024
"""Queries reserved at once: one charge (one transaction, on a database) covers a whole block."""


def aggregate(
    votes: Votes,
    mechanism: Mechanism,
    ledger: Ledger,
    *,
    gate: DemographicParityGate | None = None,
    groups: IntArray | None = None,
    keep_order: bool = False,
    progress: Progress | None = None,
) -> Answers:
    """Answer public queries until they or the budget run out.

    Per query (Algorithm 1 of FairPATE with the repairs of ``docs/guarantees.md``):

    1. the table of given answers is public, so the classes A that the query's group may still
       receive are known *before* asking; no class, no question, no cost;
    2. noisy threshold over the classes in A: ``max_{k in A} n_k + noise >= T``;
    3. noisy winner over *all* classes, charged in full whatever comes out;
    4. the gate: a winner outside A is refused, an answer to a new group is withheld until a block
       of that group's answers fits the margin.

    Parameters
    ----------
    votes : Votes
        The teachers' votes. Private.
    mechanism : GNMax, LNMax or ConfidentGNMax
        How a winner is drawn; only ``ConfidentGNMax`` has step 2.
    ledger : Ledger
        Pays for every draw before it is made; its budget ends the asking.
    gate : DemographicParityGate, optional
        Without it every drawn winner is an answer (plain PATE).
    groups : ndarray of int64, shape (n_queries,)
        Public group codes of the queries; needed with a gate.
    keep_order : bool, default False
        Ask in the given order. By default queries for which every class is admissible come first.
    progress : callable, optional
        Called as ``progress(n_considered, n_queries)`` after every block.

    Returns
    -------
    Answers
        Labels or ``REJECTED`` with the reason, all of it public.

    Raises
    ------
    BudgetExceeded
        If the budget does not cover a single query.

    Privacy
    -------
    Cost: ``mu^2 = n_checks * mu_check^2 + n_draws * mu_answer^2``, charged block by block in full
    before any noise of the block exists; what a public refusal did not use is refunded. Stopping
    depends on data-independent costs and public outcomes alone (a Gaussian-DP filter).
    """
    check, answer = stages(mechanism)
    uses = (answer,) if check is None else (check, answer)
    if len(votes) and not ledger.affordable(*uses):
        # Let the ledger say it: its message names the mechanism, the cost and the budget.
        ledger.reserve(dict.fromkeys(uses, 1), purpose="first query")
    if gate is None:
        return _answer_all(votes, check, answer, ledger, progress)
    if groups is None:
        raise ValueError("A gate needs groups=, the public group code of every query.")
    _checks.same_length(votes=votes, groups=groups)
    if gate.n_classes != votes.n_classes:
        raise ValueError(
            f"The gate counts {gate.n_classes} classes, the votes have {votes.n_classes}."
        )
    run = _GatedRun(votes, _checks.codes("groups", groups, gate.n_groups), gate)
    queue = QueryQueue(run.groups, gate, keep_order=keep_order)
    while size := min(BLOCK, len(queue), ledger.affordable(*uses)):
        if not run.block(size, queue, check, answer, ledger):
            break  # no query may be asked now, and nothing more can be delivered
        if progress:
            progress(len(votes) - len(queue), len(votes))
    return run.finish(queue, spent_out=not ledger.affordable(*uses))


def stages(mechanism: Mechanism) -> tuple[NoisyThreshold | None, GNMax | LNMax]:
    """Return the cheap first stage, if there is one, and the stage that draws the winner."""
    if isinstance(mechanism, ConfidentGNMax):
        return mechanism.check, mechanism.answer
    return None, mechanism


def _answer_all(
    votes: Votes,
    check: NoisyThreshold | None,
    answer: GNMax | LNMax,
    ledger: Ledger,
    progress: Progress | None,
) -> Answers:
    """Ask in the given order without a gate; whole blocks at once."""
    n, n_classes = len(votes), votes.n_classes
    labels = np.full(n, REJECTED, dtype=np.int64)
    reasons = np.full(n, Reason.NOT_ASKED, dtype=np.int64)
    uses = (answer,) if check is None else (check, answer)
    at, n_draws = 0, 0
    while size := min(BLOCK, n - at, ledger.affordable(*uses)):
        rows = np.arange(at, at + size)
        winners, passed = answer_block(
            votes.counts[rows], check, answer, ledger, purpose="answers to public queries"
        )
        reasons[rows] = np.where(passed, Reason.ANSWERED, Reason.NO_CONSENSUS)
        labels[rows] = winners
        n_draws += int(passed.sum())
        at += size
        if progress:
            progress(at, n)
    order = np.flatnonzero(labels != REJECTED)
    return Answers(
        labels=labels,
        reasons=reasons,
        order=order,
        events=np.arange(len(order)),
        groups=None,
        n_checks=at if check is not None else 0,
        n_draws=n_draws,
        n_classes=n_classes,
    )


def answer_block(
    counts: IntArray,
    check: NoisyThreshold | None,
    answer: GNMax | LNMax,
    ledger: Ledger,
    *,
    purpose: str,
) -> tuple[IntArray, BoolArray]:
    """Answer all rows under one charge: winners, REJECTED where the check failed, and who passed.

    Refuses with ``BudgetExceeded`` before anything is charged or drawn.
    """
    n, n_classes = len(counts), int(counts.shape[1])
    uses = (answer,) if check is None else (check, answer)
    labels = np.full(n, REJECTED, dtype=np.int64)
    passed: BoolArray = np.ones(n, dtype=bool)
    with ledger.reserve(dict.fromkeys(uses, n), purpose=purpose) as grant:
        if check is not None:
            passed = check.decide(counts, grant.draw(check, n_classes))
        drawn = int(passed.sum())
        noise = grant.draw(answer, n_classes)[:drawn]
        labels[passed] = answer.decide(counts[passed], noise)
        grant.settle({answer: drawn} if check is None else {check: n, answer: drawn})
    return labels, passed


class _GatedRun:
    """The sequential part: one query at a time, because each answer moves the gate."""

    def __init__(self, votes: Votes, groups: IntArray, gate: DemographicParityGate) -> None:
        self._counts: list[list[int]] = votes.counts.tolist()  # plain numbers are faster one by one
        self.n_classes = votes.n_classes
        self.groups = groups
        self._gate = GateRun(gate)
        self._labels = np.full(len(votes), REJECTED, dtype=np.int64)
        self._reasons = np.full(len(votes), Reason.NOT_ASKED, dtype=np.int64)
        self._order: list[int] = []
        self._events: list[int] = []
        self._event = 0
        self.n_checks = 0
        self.n_draws = 0

    def block(
        self,
        size: int,
        queue: QueryQueue,
        check: NoisyThreshold | None,
        answer: GNMax | LNMax,
        ledger: Ledger,
    ) -> bool:
        """Ask up to ``size`` queries under one charge; False if none could be asked."""
        uses = (answer,) if check is None else (check, answer)
        asked = drawn = 0
        n_classes = self.n_classes
        with ledger.reserve(
            dict.fromkeys(uses, size), purpose="answers to public queries"
        ) as grant:
            check_noise = [] if check is None else grant.draw(check, n_classes).tolist()
            answer_noise = grant.draw(answer, n_classes).tolist()
            while asked < size and (taken := queue.take() or self._deliver_and_take(queue)):
                row, group, allowed = taken
                counts = self._counts[row]
                asked += 1
                if check is not None and not check.decide_row(
                    counts, check_noise[asked - 1], admissible=allowed
                ):
                    self._reasons[row] = Reason.NO_CONSENSUS
                    continue
                winner = answer.decide_row(counts, answer_noise[drawn])
                drawn += 1
                pairs, _ = self._gate.offer(row, group, winner)
                self._reasons[row] = Reason.OUTSIDE_MARGIN
                self._give(pairs)
            grant.settle({answer: drawn} if check is None else {check: asked, answer: drawn})
        self.n_checks += asked if check is not None else 0
        self.n_draws += drawn
        return asked > 0

    def finish(self, queue: QueryQueue, *, spent_out: bool) -> Answers:
        """Hand out what may still be handed out, and say what became of the rest."""
        self._deliver()
        if not spent_out:
            # Budget was left: these were passed over because no class was admissible.
            self._reasons[queue.rest()] = Reason.NO_CLASS_ADMISSIBLE
        self._reasons[self._gate.waiting] = Reason.WITHHELD
        return Answers(
            labels=self._labels,
            reasons=self._reasons,
            order=np.array(self._order, dtype=np.int64),
            events=np.array(self._events, dtype=np.int64),
            groups=self.groups,
            n_checks=self.n_checks,
            n_draws=self.n_draws,
            n_classes=self.n_classes,
        )

    def _deliver(self) -> bool:
        """Hand out withheld answers that fit by now; they are paid for already."""
        delivered = self._gate.deliver()
        for pair in delivered:
            self._give([pair])
        return bool(delivered)

    def _deliver_and_take(self, queue: QueryQueue) -> tuple[int, int, tuple[int, ...]] | None:
        return queue.take() if self._deliver() else None

    def _give(self, pairs: Pairs) -> None:
        """Write down what is given together: the margin is promised after each such event."""
        for row, label in pairs:
            self._labels[row] = label
            self._reasons[row] = Reason.ANSWERED
            self._order.append(row)
            self._events.append(self._event)
        self._event += bool(pairs)

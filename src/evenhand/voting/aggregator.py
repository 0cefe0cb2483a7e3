"""From votes to answers: fairness first and free, then noise, then the gate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TypeAlias

import numpy as np

from evenhand import _checks
from evenhand.fairness.gate.gate import Gate
from evenhand.fairness.gate.runner import GateRun, Pairs
from evenhand.privacy import Ledger
from evenhand.typing import REJECTED, IntArray
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.blocks import Mechanism, QueryBlocks
from evenhand.voting.queue import QueryQueue
from evenhand.voting.votes import Votes

Progress: TypeAlias = Callable[[int, int], None]


def aggregate(
    votes: Votes,
    mechanism: Mechanism,
    ledger: Ledger,
    *,
    gate: Gate | None = None,
    groups: IntArray | None = None,
    keep_order: bool = False,
    progress: Progress | None = None,
) -> Answers:
    """Answer public queries until they or the budget run out.

    Per query (Algorithm 1 of FairPATE with the repairs of ``docs/guarantees.md``):

    1. the table of given answers is public, so the classes A that the query's group may still
       receive are known *before* asking; no class, no question, no cost; nor is a late group asked
       whose first block could not fit any more, whatever the answers that can still be drawn;
    2. noisy threshold over the classes in A: ``max_{k in A} n_k + noise >= T``; where calibration
       rows tell the gate of true classes, over all classes, as those rows were asked: else the
       truth behind an answer would depend on A;
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
    gate : Gate, optional
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
    blocks = QueryBlocks(mechanism, ledger, votes.n_classes)
    if len(votes):
        blocks.require_one()
    if gate is None:
        return _answer_all(votes, blocks, progress)
    if groups is None:
        raise ValueError("A gate needs groups=, the public group code of every query.")
    _checks.same_length(votes=votes, groups=groups)
    require_same_classes(gate, votes)
    codes = _checks.codes("groups", groups, gate.n_groups)
    queue = QueryQueue(codes, gate, keep_order=keep_order)
    return _answer_gated(votes, codes, blocks, GateRun(gate), queue, progress)


def require_same_classes(gate: Gate, votes: Votes) -> None:
    """Refuse a gate that counts other classes than the votes have."""
    if gate.n_classes != votes.n_classes:
        raise ValueError(
            f"The gate counts {gate.n_classes} classes, the votes have {votes.n_classes}."
        )


def _answer_all(votes: Votes, blocks: QueryBlocks, progress: Progress | None) -> Answers:
    """Ask in the given order without a gate; whole blocks at once."""
    n = len(votes)
    labels = np.full(n, REJECTED, dtype=np.int64)
    reasons = np.full(n, Reason.NOT_ASKED, dtype=np.int64)
    at = 0
    while size := blocks.open(n - at):
        rows = slice(at, at + size)
        labels[rows], passed = blocks.decide(votes.counts[rows])
        reasons[rows] = np.where(passed, Reason.ANSWERED, Reason.NO_CONSENSUS)
        at += size
        if progress:
            progress(at, n)
    given = np.flatnonzero(labels != REJECTED)
    return blocks.answers(given, labels[given], np.arange(len(given)), reasons=reasons)


def _answer_gated(
    votes: Votes,
    groups: IntArray,
    blocks: QueryBlocks,
    gate: GateRun,
    queue: QueryQueue,
    progress: Progress | None,
) -> Answers:
    """Ask one query at a time, because each answer moves the gate."""
    counts = votes.counts.tolist()  # plain numbers are faster one by one
    reasons = np.full(len(votes), Reason.NOT_ASKED, dtype=np.int64)
    given: list[Pairs] = []  # the margin is promised after each of these events

    def deliver() -> bool:
        """Hand out withheld answers that fit by now; they are paid for already."""
        delivered = gate.deliver()
        given.extend([pair] for pair in delivered)
        return bool(delivered)

    check, answer, offer = blocks.check, blocks.answer, gate.offer
    every = None if not gate.gate.notion.needs_labels else tuple(range(votes.n_classes))
    while size := blocks.open(len(queue)):
        asked = drawn = 0
        check_noise, answer_noise = blocks.check_noise.tolist(), blocks.answer_noise.tolist()
        while asked < size:
            most = blocks.drawable(asked=asked, drawn=drawn)
            taken = queue.take(most) or (queue.take(most) if deliver() else None)
            if taken is None:
                break
            row, group, allowed = taken
            asked += 1
            if check is not None and not check.decide_row(
                counts[row], check_noise[asked - 1], admissible=every or allowed
            ):
                reasons[row] = Reason.NO_CONSENSUS
                continue
            winner = answer.decide_row(counts[row], answer_noise[drawn])
            drawn += 1
            reasons[row] = Reason.OUTSIDE_MARGIN
            given.append(offer(row, group, winner)[0])
        if not blocks.close(asked=asked, drawn=drawn):
            break  # no query may be asked now, and nothing more can be delivered
        if progress:
            progress(len(votes) - len(queue), len(votes))
    deliver()
    sizes = np.array([len(event) for event in given if event], dtype=np.int64)
    numbers = chain.from_iterable(chain.from_iterable(given))
    pairs = np.fromiter(numbers, dtype=np.int64).reshape(-1, 2)
    return blocks.answers(
        pairs[:, 0],
        pairs[:, 1],
        np.repeat(np.arange(len(sizes)), sizes),
        reasons=reasons,
        groups=groups,
        passed_over=queue.rest(),
        waiting=gate.waiting,
    )

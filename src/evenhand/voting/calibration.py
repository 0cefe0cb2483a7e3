"""Answers to labelled calibration rows, charged like any other answers."""

from __future__ import annotations

from evenhand import _checks
from evenhand.fairness.tally import JointTally
from evenhand.privacy import Ledger, NoisyHistogram
from evenhand.typing import ArrayLike, IntArray
from evenhand.voting.blocks import Mechanism, QueryBlocks
from evenhand.voting.votes import Votes


def ask_calibration(
    votes: Votes,
    labels: ArrayLike,
    groups: ArrayLike,
    mechanism: Mechanism | NoisyHistogram,
    ledger: Ledger,
    *,
    n_groups: int,
) -> JointTally:
    """Have the teachers answer labelled rows, and count truth against answer per group.

    Parameters
    ----------
    votes : Votes
        The teachers' votes on the calibration rows. Private.
    labels, groups : array-like of int, shape (n_queries,)
        Public true class and group code of each row.
    mechanism : GNMax, LNMax, ConfidentGNMax or NoisyHistogram
        The one that answers the queries: calibration says what *its* answers mean. The answer of
        a histogram is the class with most noisy votes.
    ledger : Ledger
        The one that pays for the queries, so that its guarantee is about both.
    n_groups : int
        Number of groups, those without a row included.

    Returns
    -------
    JointTally
        Public counts for ``evenhand.fairness.CalibratedJoint``. Rows that the mechanism did not
        answer (no consensus) are left out.

    Raises
    ------
    BudgetExceeded
        If the budget does not cover all rows; nothing is charged or drawn then. Rows that
        the budget picks would be no sample.

    Privacy
    -------
    Cost: all rows in full, charged before any noise is drawn; ``ConfidentGNMax`` refunds the
    answers of rows that fail its check, which is public. The same private records stand behind
    the answers to the queries: both costs add up in the ledger.

    Examples
    --------
    >>> from evenhand.privacy import Budget, GNMax, SeededNoise
    >>> votes = Votes.of([[0, 1, 1, 0], [0, 1, 1, 1], [0, 1, 0, 0]], n_classes=2)
    >>> ledger = Ledger(Budget(epsilon=50.0, delta=1e-5), noise=SeededNoise(0))
    >>> tally = ask_calibration(
    ...     votes, [0, 1, 1, 1], [0, 0, 1, 1], GNMax(sigma=0.5), ledger, n_groups=2
    ... )
    >>> tally.counts.tolist(), round(ledger.spent, 6)
    ([[[1, 0], [0, 1]], [[0, 0], [1, 1]]], 32.0)
    """
    truth = _checks.codes("labels", labels, votes.n_classes)
    z = _checks.codes("groups", groups, n_groups)
    _checks.same_length(votes=votes, labels=truth, groups=z)
    if not len(votes):
        raise ValueError("votes holds no calibration row. Give labelled rows of every group.")
    answered = _answers(votes, mechanism, ledger)
    return JointTally.of(z, truth, answered, n_groups=n_groups, n_classes=votes.n_classes)


def _answers(votes: Votes, mechanism: Mechanism | NoisyHistogram, ledger: Ledger) -> IntArray:
    purpose = "answers to calibration rows"
    if isinstance(mechanism, NoisyHistogram):
        noisy = ledger.release(mechanism, votes.counts, purpose=purpose)
        winners: IntArray = noisy.argmax(axis=1)
        return winners
    blocks = QueryBlocks(mechanism, ledger, votes.n_classes, purpose=purpose)
    blocks.charge(len(votes))
    return blocks.decide(votes.counts)[0]

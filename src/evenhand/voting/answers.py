"""Answers: what became of every query, with the reason where no label was given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from evenhand.typing import REJECTED, BoolArray, IntArray


class Reason(IntEnum):
    """Why a query has its label, or has none."""

    ANSWERED = 0
    NOT_ASKED = 1
    NO_CLASS_ADMISSIBLE = 2
    NO_CONSENSUS = 3
    OUTSIDE_MARGIN = 4
    WITHHELD = 5

    @property
    def words(self) -> str:
        """The reason as a reader of the report meets it."""
        return _WORDS[self]


_WORDS = {
    Reason.ANSWERED: "answered",
    Reason.NOT_ASKED: "not asked: the budget was spent, or the query limit reached",
    Reason.NO_CLASS_ADMISSIBLE: "skipped at no cost: no label could be given within the margin",
    Reason.NO_CONSENSUS: "refused: the noisy vote fell below the threshold",
    Reason.OUTSIDE_MARGIN: "refused: the noisy winner would have left the margin",
    Reason.WITHHELD: "withheld: its release would have left the margin",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """The public result of asking the teachers, one row per public query.

    Everything in here is public: it is what the ledger's releases and public facts determine.

    Parameters
    ----------
    labels : ndarray of int64, shape (n_queries,)
        Class codes; ``REJECTED`` (-1) where no label was given.
    reasons : ndarray of int64, shape (n_queries,)
        A :class:`Reason` for every query.
    order : ndarray of int64, shape (n_answered,)
        Rows of the answered queries in the order in which they were given.
    events : ndarray of int64, shape (n_answered,)
        Answers with the same number were given together (a late group is released in one block).
    groups : ndarray of int64 or None, shape (n_queries,)
        Group codes of the queries, None where no gate stood.
    n_checks, n_draws : int
        Noisy thresholds and noisy winners drawn, each charged to the ledger.

    Examples
    --------
    >>> answers = Answers(labels=np.array([1, -1]), reasons=np.array([0, 3]),
    ...                   order=np.array([0]), events=np.array([0]), groups=None,
    ...                   n_checks=2, n_draws=1, n_classes=2)
    >>> answers.n_asked, answers.n_answered, answers.n_rejected, answers.coverage
    (2, 1, 1, 0.5)
    """

    labels: IntArray
    reasons: IntArray
    order: IntArray
    events: IntArray
    groups: IntArray | None
    n_checks: int
    n_draws: int
    n_classes: int

    def __post_init__(self) -> None:
        answered = self.reasons == Reason.ANSWERED
        if not np.array_equal(answered, self.labels != REJECTED):
            raise ValueError("labels must be REJECTED exactly where the reason is not ANSWERED.")
        if not np.array_equal(np.sort(self.order), np.flatnonzero(answered)):
            raise ValueError("order must list every answered query exactly once.")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def answered(self) -> BoolArray:
        """Mask of the queries that carry a label."""
        mask: BoolArray = self.labels != REJECTED
        return mask

    @property
    def n_answered(self) -> int:
        """Number of queries that carry a label."""
        return int(self.answered.sum())

    @property
    def n_asked(self) -> int:
        """Number of queries for which teachers were asked, at a cost."""
        free = (self.reasons == Reason.NOT_ASKED) | (self.reasons == Reason.NO_CLASS_ADMISSIBLE)
        return int((~free).sum())

    @property
    def n_rejected(self) -> int:
        """Number of queries that were asked or considered, and carry no label."""
        return len(self) - self.n_answered - self.count(Reason.NOT_ASKED)

    @property
    def coverage(self) -> float:
        """Answered share of the queries that were considered, in [0, 1]; NaN where none was."""
        considered = len(self) - self.count(Reason.NOT_ASKED)
        return self.n_answered / considered if considered else float("nan")

    def count(self, reason: Reason) -> int:
        """Return the number of queries with this reason."""
        return int((self.reasons == reason).sum())

    def table(self) -> dict[str, int]:
        """Return the number of queries per reason in words, for those that occurred."""
        return {reason.words: self.count(reason) for reason in Reason if self.count(reason)}

    def __repr__(self) -> str:
        return (
            f"Answers(n_queries={len(self)}, n_asked={self.n_asked}, "
            f"n_answered={self.n_answered}, n_rejected={self.n_rejected})"
        )

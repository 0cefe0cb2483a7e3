"""Blocks of queries: one charge for all that a block may need, then its noise, then a refund."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from evenhand.privacy import ConfidentGNMax, GNMax, Ledger, LNMax
from evenhand.privacy.grant import Grant
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.typing import REJECTED, Array, ArrayLike, BoolArray, IntArray
from evenhand.voting.answers import Answers, Reason

Mechanism: TypeAlias = GNMax | LNMax | ConfidentGNMax

BLOCK = 1024
"""Queries reserved at once: one charge (one transaction, on a database) covers a whole block."""


def stages(mechanism: Mechanism) -> tuple[NoisyThreshold | None, GNMax | LNMax]:
    """Return the cheap first stage, if there is one, and the stage that draws the winner."""
    if isinstance(mechanism, ConfidentGNMax):
        return mechanism.check, mechanism.answer
    return None, mechanism


class QueryBlocks:
    """What every way of asking shares: how one setting pays, and what it writes down in the end.

    Parameters
    ----------
    mechanism : GNMax, LNMax or ConfidentGNMax
        How a winner is drawn; only ``ConfidentGNMax`` has a check before it.
    ledger : Ledger
        Pays for a block before any of its noise is drawn.
    n_classes : int
    purpose : str
        Stands in the ledger.

    Privacy
    -------
    A block is charged in full when it is opened. ``close`` refunds what public outcomes did not
    use: queries that were not asked, and winners of those that failed the check. After an exception
    between the two everything stays charged.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        ledger: Ledger,
        n_classes: int,
        *,
        purpose: str = "answers to public queries",
    ) -> None:
        self.check, self.answer = stages(mechanism)
        self.n_checks = self.n_draws = 0
        self.check_noise: Array = np.zeros(0)
        """Of the open block, one for each query; of none without a check."""
        self.answer_noise: Array = np.zeros((0, n_classes))
        """Of the open block, one row for each winner to be drawn."""
        self._uses = (self.answer,) if self.check is None else (self.check, self.answer)
        self._ledger, self._n_classes, self._purpose = ledger, n_classes, purpose
        self._grant: Grant | None = None

    def require_one(self) -> None:
        """Raise ``BudgetExceeded`` if the budget does not cover a single query."""
        if self.spent_out:
            # Let the ledger say it: its message names the mechanism, the cost and the budget.
            self._ledger.reserve(dict.fromkeys(self._uses, 1), purpose="first query")

    @property
    def spent_out(self) -> bool:
        """Whether the budget does not cover another query."""
        return not self._ledger.affordable(*self._uses)

    def open(self, n_left: int) -> int:
        """Open a block of at most ``n_left`` queries; returns its size, 0 if there is none."""
        size = min(BLOCK, n_left, self._ledger.affordable(*self._uses))
        if size:
            self.charge(size)
        return size

    def charge(self, size: int) -> None:
        """Open a block of exactly this size, or raise ``BudgetExceeded`` with nothing charged."""
        self._grant = self._ledger.reserve(dict.fromkeys(self._uses, size), purpose=self._purpose)
        if self.check is not None:
            self.check_noise = self._grant.draw(self.check, self._n_classes)
        self.answer_noise = self._grant.draw(self.answer, self._n_classes)

    def drawable(self, *, asked: int, drawn: int) -> int:
        """How many winners can still be drawn, in the open block and after it."""
        assert self._grant is not None, "open a block first"
        return self._grant.affordable(self._used(asked, drawn))

    def _used(self, asked: int, drawn: int) -> dict[Any, int]:
        used: dict[Any, int] = {} if self.check is None else {self.check: asked}
        return {**used, self.answer: drawn}

    def close(self, *, asked: int, drawn: int) -> bool:
        """Keep the charge of what was used; returns whether any query was asked."""
        assert self._grant is not None, "open a block first"
        self._grant.settle(self._used(asked, drawn))
        self._grant = None
        self.n_checks += asked if self.check is not None else 0
        self.n_draws += drawn
        return asked > 0

    def decide(self, counts: IntArray) -> tuple[IntArray, BoolArray]:
        """Ask the open block's queries, all at once, and close it.

        Returns winners, ``REJECTED`` where the check failed, and who passed it.
        """
        labels = np.full(len(counts), REJECTED, dtype=np.int64)
        passed: BoolArray = np.ones(len(counts), dtype=np.bool_)
        if self.check is not None:
            passed = self.check.decide(counts, self.check_noise)
        drawn = int(passed.sum())
        labels[passed] = self.answer.decide(counts[passed], self.answer_noise[:drawn])
        self.close(asked=len(counts), drawn=drawn)
        return labels, passed

    def answers(
        self,
        given: IntArray,
        labels: IntArray,
        events: IntArray,
        *,
        reasons: IntArray,
        groups: IntArray | None = None,
        passed_over: ArrayLike = (),
        waiting: ArrayLike = (),
    ) -> Answers:
        """Write down what became of every query.

        ``given`` are the answered queries in the order in which they were given, with their labels
        and the number of the event of each. ``reasons`` say why others that were asked have no
        label. ``passed_over`` were never asked, as no class was admissible; the gate still
        withholds the answers of ``waiting``.
        """
        every = np.full(len(reasons), REJECTED, dtype=np.int64)
        every[given], reasons[given] = labels, Reason.ANSWERED
        if not self.spent_out:  # else it was the budget that passed over them
            reasons[np.asarray(passed_over, dtype=np.int64)] = Reason.NO_CLASS_ADMISSIBLE
        reasons[np.asarray(waiting, dtype=np.int64)] = Reason.WITHHELD
        return Answers(
            labels=every,
            reasons=reasons,
            order=given,
            events=events,
            groups=groups,
            n_checks=self.n_checks,
            n_draws=self.n_draws,
            n_classes=self._n_classes,
        )

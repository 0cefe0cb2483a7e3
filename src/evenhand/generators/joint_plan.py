"""A plan of sums beside the steps of DP-SGD, whose costs are counted together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from evenhand.generators.budget_plan import BudgetPlan
from evenhand.privacy import Ledger, SubsampledGaussian
from evenhand.privacy.grant import Grant
from evenhand.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class JointPlan(BudgetPlan):
    """The plan of a ledger for one release: steps over samples, and what stands beside them.

    The ledger is for one release (``single=True``); inside ``set_aside`` it is that of the sums
    alone. The shares, times the budget's mu squared, are what ``steps`` hold beside its steps.
    """

    steps: SubsampledGaussian
    """All steps, with what stands beside."""
    purpose: str
    """What the ledger says of them."""
    grant: Grant | None = None
    whole: Ledger | None = None

    @property
    def account(self) -> Ledger:
        """The ledger that holds the one charge."""
        return self.whole or self.ledger

    @contextmanager
    def set_aside(self) -> Iterator[JointPlan]:
        """Charge all of it at once, and open the ledger of the sums.

        Leaving with an exception before any noise was drawn gives all of it back; afterwards all of
        it stays charged.
        """
        with self.ledger.reserve({self.steps: 1}, purpose=self.purpose) as grant:
            inner = grant.beside(self.steps)
            try:
                yield replace(self, ledger=inner, grant=grant, whole=self.ledger)
            except BaseException:
                if not inner.entries and self.steps in grant.undrawn:
                    grant.settle({self.steps: 0})
                raise

    def noise(self, length: int) -> Iterator[FloatArray]:
        """Return the noise of the steps, (length,) at each."""
        if self.grant is None:
            raise RuntimeError("Noise is drawn of what is set aside; see set_aside.")
        return self.grant.draw_by_step(self.steps, length)

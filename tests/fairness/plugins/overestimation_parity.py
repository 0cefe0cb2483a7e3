"""A notion of fairness of one's own: rows are put above their class as often in each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.fairness import RateNotion
from evenhand.fairness.rates import Rates


@dataclass(frozen=True, kw_only=True)
class OverestimationParity(RateNotion):
    """Classes are ordered; rows below the highest are put above theirs at the same rate."""

    name: ClassVar[str] = "overestimation-parity"
    words: ClassVar[str] = "how often a row is predicted a class above its own"
    symbols: ClassVar[str] = "P(Yhat>Y | Y<max)"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat > Y)`` among all true classes but the highest."""
        lower = range(n_classes - 1)
        above = [(k, j) for k in lower for j in range(k + 1, n_classes)]
        return Rates.of(n_classes, [(lower, above)])

"""What a claim leaves an attacker who asks whether a record was in the data: hits by false alarms.

Any attack on a release is a test of two neighboring data sets, and a claim of differential privacy
bounds every such test (Wasserman and Zhou 2010; Dong, Roth and Su 2022): how many it finds of those
who are in the data, at most, by how many it accuses of those who are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.privacy.guarantee import Guarantee
from evenhand.privacy.saved_claim import SavedLedger, gaussian_budget
from evenhand.typing import ArrayLike, FloatArray

if TYPE_CHECKING:
    from evenhand.privacy.ledger import Ledger

_LARGEST_EXPONENT = 700.0  # its exponential is still a float


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """Upper bounds on what an attacker finds, by a claim.

    Examples
    --------
    >>> claimed = TradeOff(epsilon=1.0, delta=1e-5)
    >>> round(float(claimed.found(0.01)), 4), round(claimed.auc, 3), round(claimed.best_guess, 3)
    (0.0272, 0.731, 0.731)
    """

    epsilon: float
    """In nats; ``inf`` where nothing is promised."""
    delta: float
    """In [0, 1]."""
    mu: float | None = None
    """The same claim in Gaussian DP, which is tighter."""
    slack: float = 0.0
    """Probability with which ``mu`` may fail."""

    @classmethod
    def of(cls, guarantee: Guarantee, ledger: Ledger | SavedLedger | None = None) -> TradeOff:
        """Read it off a claim, and off the ledger behind it where that says more.

        Parameters
        ----------
        guarantee : Guarantee
        ledger : Ledger, SavedLedger or SeparateLedgers, optional
            Of the same run. Where the claim set aside a part of delta and lost its mu with that,
            the rest of it is still Gaussian DP at the ledger's budget, if all that it charged is.
        """
        mu_squared, slack = guarantee.mu_squared, 0.0
        if mu_squared is None and ledger is not None:
            mu_squared, slack = gaussian_budget(guarantee, ledger.to_dict())
        return cls(
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            mu=None if mu_squared is None else math.sqrt(mu_squared),
            slack=slack,
        )

    def found(self, false_alarms: ArrayLike) -> FloatArray:
        """Share of the members who are found, at most, at this share of others who are accused.

        The smaller of ``Phi(Phi^-1(a) + mu)`` (Dong, Roth and Su 2022, Section 2.2) with ``slack``
        besides, where mu is known, and
        ``min(e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a))`` (Kairouz, Oh and Viswanath
        2015, Theorem 2.1). Values in [0, 1].
        """
        a = np.asarray(false_alarms, dtype=np.float64)
        if not ((a >= 0.0) & (a <= 1.0)).all():
            raise ValueError(
                f"false_alarms must be shares in [0, 1], got {false_alarms!r}. They are of those "
                f"who are not in the data."
            )
        grown = math.exp(min(self.epsilon, _LARGEST_EXPONENT)) * a + self.delta
        most = np.minimum(grown, 1.0 - math.exp(-self.epsilon) * (1.0 - self.delta - a))
        if self.mu is not None:  # both hold
            most = np.minimum(most, ndtr(ndtri(a) + self.mu) + self.slack)
        bound: FloatArray = np.clip(most, 0.0, 1.0)
        return bound

    @property
    def auc(self) -> float:
        """Area under the curve of ``found``, at most: one half where nothing can be found.

        The smaller of ``Phi(mu / sqrt 2)`` with ``slack``, and ``1 - (1 - delta)^2 / (1 +
        e^epsilon)``.
        """
        shrunk = math.exp(-self.epsilon)
        most = 1.0 - (1.0 - self.delta) ** 2 * shrunk / (1.0 + shrunk)
        if self.mu is None:
            return most
        return min(most, float(ndtr(self.mu / math.sqrt(2.0))) + self.slack)

    @property
    def best_guess(self) -> float:
        """Largest probability of a right guess where a member and another are equally likely.

        The smaller of ``Phi(mu / 2)`` with half of ``slack``, and ``(e^epsilon + delta) /
        (e^epsilon + 1)``.
        """
        # Divided through by e^epsilon, so that a large epsilon does not overflow.
        shrunk = math.exp(-self.epsilon)
        most = (1.0 + self.delta * shrunk) / (1.0 + shrunk)
        if self.mu is None:
            return most
        return min(most, float(ndtr(self.mu / 2.0)) + self.slack / 2.0)


NO_BOUND = TradeOff(epsilon=math.inf, delta=1.0)
"""Of a release whose claim does not hold."""

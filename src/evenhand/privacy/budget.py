"""The limit on all releases together: (epsilon, delta), and the Gaussian DP that it affords."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from evenhand._checks import open_unit, positive
from evenhand._stored import stored
from evenhand.privacy.gaussian import mu_from_epsilon


@stored
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much privacy loss is allowed in all.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, in nats. Greater than 0.
    delta : float
        Probability with which the bound may fail, strictly between 0 and 1. Choose it well below
        one over the number of records.

    Notes
    -----
    Inside the package the currency is ``mu_squared``: Gaussian mechanisms add theirs up exactly
    (Dong, Roth and Su 2019, Corollary 3.3), and ``mu`` is the largest one whose curve passes
    through (epsilon, delta).

    Examples
    --------
    >>> round(Budget(epsilon=3.0, delta=1e-5).mu, 3)
    0.719
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        hint = "For a run without privacy, do not use a ledger at all."
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon, hint))
        object.__setattr__(self, "delta", open_unit("delta", self.delta))

    @property
    def mu(self) -> float:
        """The Gaussian DP parameter that this budget affords."""
        return _mu(self.epsilon, self.delta)

    @property
    def mu_squared(self) -> float:
        """The sum of squared parameters that this budget affords."""
        return self.mu**2


_mu = cache(mu_from_epsilon)
"""A root search; kept outside the value, which scikit-learn compares field by field."""

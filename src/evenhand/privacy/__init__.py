"""What a release of private data costs."""

from evenhand.privacy.gaussian import (
    delta_from_mu,
    epsilon_from_mu,
    mu_from_epsilon,
    n_affordable,
    sigma_for,
)
from evenhand.privacy.renyi import ORDERS, RenyiCurve

__all__ = [
    "ORDERS",
    "RenyiCurve",
    "delta_from_mu",
    "epsilon_from_mu",
    "mu_from_epsilon",
    "n_affordable",
    "sigma_for",
]

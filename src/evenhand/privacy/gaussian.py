"""Exact Gaussian differential privacy: one number ``mu``, and epsilon(delta) for it without loss.

A release is mu-GDP if telling neighbors apart from it is no easier than telling N(0, 1) from
N(mu, 1) by one draw (Dong, Roth, Su 2019). Releases that are mu_1-GDP, ..., mu_n-GDP, chosen one
after another, are together sqrt(mu_1^2 + ... + mu_n^2)-GDP, so ``mu**2`` is the currency of the
ledger: it adds up, and a filter on its sum is free of loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, erfinv, ndtr, ndtri

from evenhand._checks import at_least, non_negative, open_unit, positive

SLACK: Final = 1e-9
"""Share of a budget left unused, so that float sums of many costs never pass it.

Adding n costs one by one errs by at most ``n * 2**-53`` of their sum: below ``SLACK`` for
9 million releases.
"""

_SQRT_HALF: Final = math.sqrt(0.5)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES, _WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0  # on [0, 1]


def delta_from_mu(mu: float, epsilon: float) -> float:
    """Return the smallest delta for which mu-GDP implies (epsilon, delta)-DP.

    ``delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``, computed without
    cancellation; the relative error is about 1e-12. Values below 1e-308 become 0.

    Parameters
    ----------
    mu : float
        Gaussian DP parameter, at least 0.
    epsilon : float
        In nats, at least 0.

    References
    ----------
    Dong, Roth, Su 2019, Corollary 2.13; Balle and Wang 2018, Theorem 8.

    Examples
    --------
    >>> round(delta_from_mu(1.0, epsilon=1.0), 6)
    0.126937
    """
    mu, epsilon = non_negative("mu", mu), non_negative("epsilon", epsilon)
    return _delta(mu, epsilon / mu) if mu else 0.0


def epsilon_from_mu(mu: float, delta: float) -> float:
    """Return the smallest epsilon for which mu-GDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    mu : float
        Gaussian DP parameter, at least 0.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    A thousand answers of GNMax at sigma 40 cost ``mu**2 = 1000 * 2 / 40**2``:

    >>> round(epsilon_from_mu(math.sqrt(1000 * 2 / 40**2), delta=1e-5), 3)
    4.983
    """
    mu, delta = non_negative("mu", mu), open_unit("delta", delta)
    if _delta(mu, 0.0) <= delta:
        return 0.0
    # Solve in s = epsilon/mu. delta(s) <= Phi(mu/2 - s), so s is at most mu/2 - Phi^-1(delta).
    high = mu / 2.0 - float(ndtri(delta)) + 1e-9
    return mu * _root(lambda s: _delta(mu, s), delta, 0.0, high)


def mu_from_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        In nats, at least 0.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> round(mu_from_epsilon(epsilon=1.0, delta=1e-5), 3)
    0.268
    """
    epsilon, delta = non_negative("epsilon", epsilon), open_unit("delta", delta)
    low = 2.0 * math.sqrt(2.0) * float(erfinv(delta))  # exact at epsilon = 0, and a lower bound
    if epsilon == 0.0:
        return low
    # delta(mu) <= Phi(mu/2 - epsilon/mu): where that equals delta, mu is still too small.
    c = -float(ndtri(delta))
    root = math.hypot(c, math.sqrt(2.0 * epsilon))
    low = max(low, 2.0 * epsilon / (c + root) if c > 0 else root - c) * (1.0 - 1e-9)
    high = 2.0 * low
    while _delta(high, epsilon / high) <= delta:
        low, high = high, 2.0 * high
    log_mu = _root(
        lambda t: _delta(math.exp(t), epsilon * math.exp(-t)), delta, math.log(low), math.log(high)
    )
    return math.exp(log_mu)


def sigma_for(
    mu_squared_budget: float,
    n_releases: int,
    l2_sensitivity: float = 1.0,
    *,
    gaussian_mu: Callable[[float], float] | None = None,
) -> float:
    """Return the smallest noise with which ``n_releases`` fit into the budget.

    The result is rounded to the safe side: ``n_affordable`` of the budget and of the cost at this
    sigma is at least ``n_releases``.

    Parameters
    ----------
    mu_squared_budget : float
        What may be spent, as mu^2; greater than 0.
    n_releases : int
        At least 1.
    l2_sensitivity : float
        Of one release, in units of sigma; ``sqrt(2)`` if one count falls and one rises by 1.
    gaussian_mu : callable, optional
        ``gaussian_mu(sigma)`` of the noise in use, for one count that moves by 1; by default
        ``1 / sigma``, which is the continuous Gaussian. Must fall as sigma grows.

    Examples
    --------
    >>> round(sigma_for(mu_from_epsilon(1.0, 1e-5) ** 2, 1000, math.sqrt(2.0)), 2)
    166.84
    """
    budget = positive("mu_squared_budget", mu_squared_budget)
    n_releases = at_least("n_releases", n_releases, 1)
    sensitivity = positive("l2_sensitivity", l2_sensitivity)
    target = math.sqrt(budget * (1.0 - 2.0 * SLACK) / n_releases) / sensitivity
    if gaussian_mu is None:
        return 1.0 / target
    low, high = 0.5 / target, 2.0 / target
    while gaussian_mu(high) > target:
        low, high = high, 2.0 * high
    while gaussian_mu(low) <= target:
        low, high = 0.5 * low, low
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_mu(middle) > target else (low, middle)
    return high


def n_affordable(mu_squared_budget: float, mu_squared_each: float) -> int:
    """Return how many releases of one cost fit into a budget, never one too many.

    A share ``SLACK`` (1e-9) of the budget is left unused: however their costs are added up in
    floating point, the sum of that many does not pass the budget.

    Parameters
    ----------
    mu_squared_budget : float
        What may still be spent, as mu^2; at least 0.
    mu_squared_each : float
        Cost of one release, as mu^2; greater than 0.

    Examples
    --------
    >>> n_affordable(mu_from_epsilon(1.0, 1e-5) ** 2, 2 / 40**2)
    57
    """
    budget = non_negative("mu_squared_budget", mu_squared_budget)
    each = positive("mu_squared_each", mu_squared_each, "A release without cost has no limit.")
    return Fraction(budget * (1.0 - SLACK)) // Fraction(each)


def _delta(mu: float, s: float) -> float:
    """Return delta at ``epsilon = mu * s``, by Mills' ratio ``R = (1 - Phi) / phi``.

    With ``x = s - mu/2`` and ``exp(epsilon) phi(x + mu) = phi(x)``,
    ``delta = phi(x) (R(x) - R(x + mu))``; and ``-R'(t) = 1 - t R(t)``.
    """
    x = s - mu / 2.0
    density = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    if mu < 1.0:  # the difference would cancel: integrate its derivative
        t = x + mu * _NODES
        return density * mu * float(_WEIGHTS @ (1.0 - t * _mills(t)))
    if x > 0.0:
        return density * float(_mills(x) - _mills(x + mu))
    return float(ndtr(-x)) - density * float(_mills(x + mu))


def _mills(x: float | np.ndarray) -> np.ndarray:
    """Return ``(1 - Phi(x)) / phi(x)``."""
    ratio: np.ndarray = math.sqrt(math.pi / 2.0) * erfcx(_SQRT_HALF * np.asarray(x))
    return ratio


def _root(delta_at: Callable[[float], float], delta: float, low: float, high: float) -> float:
    """Return where a monotone function reaches ``delta``, compared in log space."""
    log_delta = math.log(delta)

    def off(t: float) -> float:
        value = delta_at(t)
        return (math.log(value) if value > 0.0 else -1e4) - log_delta

    root: float = brentq(off, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)
    return root

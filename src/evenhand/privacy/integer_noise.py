"""Gaussian DP of a count that moves by 1 under discrete Gaussian, discrete Laplace, Laplace noise.

Notes
-----
**The lemma.** Let X be symmetric, log-concave noise on the integers, with distribution function F.
The likelihood ratio of X + 1 to X is monotone, so the best tests are thresholds, and the trade-off
function between X and X + 1 is piecewise linear with vertices ``(1 - F(k), F(k - 1))``. The region
above the trade-off function of mu-GDP is convex: once it holds the vertices, it holds the segments
between them. Hence "count + X" is mu-GDP with, and with no less than,

    mu = max over k of  d(k),     d(k) = a(k) - a(k - 1),     a(k) = Phi^-1(F(k)).

``a(-1 - k) = -a(k)`` by symmetry, so ``d(0) = 2 Phi^-1((1 + p(0)) / 2)``.

**Discrete Laplace.** ``d(0) = 2 Phi^-1(e^eps / (1 + e^eps))`` with ``eps = 1/scale``. Pure eps-DP
implies that value, so no other step is larger.

**Laplace.** ``g(t) = Phi^-1(1 - exp(-eps t) / 2)`` is concave for t > 0, because ``-log(1 - Phi)``
is convex. The steps are ``g(t) + g(1 - t)`` inside [0, 1] and ``g(t) - g(t - 1)`` outside, none
above ``2 g(1/2)``.

**Discrete Gaussian.** The largest step is d(0). Let ``h = 1/sigma``, let I(k) be the interval of
length d(k) and center s(k) between a(k - 1) and a(k), of Gaussian mass p(k), and let
``E(d, s) = 2 log q(s) - log q(s + d) - log q(s - d)`` with ``q(s) = Phi(s + d/2) - Phi(s - d/2)``.

1. ``(log q)'' = V - 1`` with V the variance of N(0, 1) on the window. V falls as the window moves
   out: its derivative is minus a third central moment, positive because the density right and left
   of the mean differ by a sign that changes once. So E rises with abs(s).
2. dE/d(log d) = D2 V + (M+ - M)^2 + (M - M-)^2 + (2 M - s) D2 M, where M, M+, M- are the means on
   the three windows and D2 is the second difference; it is positive while V <= 1/2 at the center,
   that is for d <= 2.8. For d > 2.8, E > 4.6.
3. ``p(k + 1) p(k - 1) / p(k)^2 = exp(-h^2)`` for every k. So ``E(d(k), s(k)) >= h^2`` where d has a
   local minimum and ``<= h^2`` where it has a local maximum. For h <= 2 (h^2 < 4.6) a local minimum
   can therefore not be followed, further out, by a local maximum: E would have to be both smaller
   and larger there.
4. So on k >= 0 the steps fall and then, possibly, rise for ever. Their limit is h, as
   ``a(k) ~ h k``; and ``h <= d(0)``, since ``1 = sum over k of integral over (-1/2, 1/2) of
   h phi(h (t + k)) dt >= integral of h phi(h t) dt / p(0)``, by ``cosh >= 1``. QED.

For sigma < 1/2, where step 2 does not reach, the tests compute every step with 50 digits.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import erfinv, log_expit, ndtri_exp

from evenhand._checks import positive

_NO_NOISE = "Zero noise releases the count exactly."


@lru_cache(maxsize=4096)
def discrete_gaussian_mu(sigma: float) -> float:
    """Return mu of an integer count that moves by 1, under discrete Gaussian noise.

    Exact, about ``(1 + 1 / (24 sigma^2)) / sigma``: the price of integer noise over continuous
    noise is a share ``1 / (12 sigma^2)`` of mu^2.

    Parameters
    ----------
    sigma : float
        Parameter of the noise, ``P(k) ~ exp(-k^2 / (2 sigma^2))``; greater than 0.

    References
    ----------
    Canonne, Kamath, Steinke 2020 (the distribution); the lemma on top of this module (the cost).

    Examples
    --------
    >>> round(2.0 * discrete_gaussian_mu(2.0), 6)
    1.010651
    >>> round(40.0 * discrete_gaussian_mu(40.0), 6)
    1.000026
    """
    sigma = positive("sigma", sigma, _NO_NOISE)
    if sigma < 1.0:
        k = np.arange(1.0, 12.0)
        log_tail = float(np.logaddexp.reduce(-0.5 * (k / sigma) ** 2))  # of k >= 1, over p(0)
        return _center_step(log_tail - math.log1p(2.0 * math.exp(log_tail)))
    # Poisson summation: 1/p(0) = sigma sqrt(2 pi) (1 + 2 sum of exp(-2 pi^2 sigma^2 m^2)).
    wraps = sum(math.exp(-2.0 * (math.pi * sigma * m) ** 2) for m in (1, 2))
    p_0 = 1.0 / (sigma * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * wraps))
    return 2.0 * math.sqrt(2.0) * float(erfinv(p_0))


@lru_cache(maxsize=4096)
def discrete_laplace_mu(scale: float) -> float:
    """Return mu of an integer count that moves by 1, under discrete Laplace (geometric) noise.

    Exact: ``2 Phi^-1(e^eps / (1 + e^eps))`` with ``eps = 1 / scale``, the same as for any
    eps-DP release; about ``1.2533 / scale`` for large scale.

    Parameters
    ----------
    scale : float
        Parameter of the noise, ``P(k) ~ exp(-abs(k) / scale)``; greater than 0.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan 2012 (the distribution); Dong, Roth, Su 2019, Section 2.2
    (trade-off function of pure DP).

    Examples
    --------
    >>> round(discrete_laplace_mu(10.0), 5)
    0.12531
    """
    epsilon = 1.0 / positive("scale", scale, _NO_NOISE)
    if epsilon < 1.0:
        return 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * epsilon)))
    return _center_step(float(log_expit(-epsilon)))


@lru_cache(maxsize=4096)
def laplace_mu(scale: float) -> float:
    """Return mu of a count that moves by 1, under continuous Laplace noise.

    Exact: ``2 Phi^-1(1 - exp(-eps / 2) / 2)`` with ``eps = 1 / scale``; less than pure eps-DP
    implies, by a share of 0.16 at scale 1 and 0.02 at scale 10.

    Parameters
    ----------
    scale : float
        Of the noise, density ``~ exp(-abs(x) / scale)``; greater than 0.

    References
    ----------
    Dong, Roth, Su 2019, Section 2.2 (trade-off function of the Laplace mechanism).

    Examples
    --------
    >>> round(laplace_mu(10.0), 5)
    0.12233
    """
    epsilon = 1.0 / positive("scale", scale, _NO_NOISE)
    if epsilon < 1.0:
        return 2.0 * math.sqrt(2.0) * float(erfinv(-math.expm1(-0.5 * epsilon)))
    return _center_step(-0.5 * epsilon - math.log(2.0))


def _center_step(log_tail: float) -> float:
    """Return ``-2 Phi^-1(exp(log_tail))``: the step between two equal tails, however small."""
    return -2.0 * float(ndtri_exp(log_tail))

"""Noise that many add together: each owner a share, so that nobody ever holds a clean count.

Notes
-----
**What a sum of discrete Gaussians costs.** It is not discrete Gaussian (Kairouz, Liu and Steinke
2021), but near it. Let X_1, ..., X_m be independent, each discrete Gaussian with parameter s, let S
be their sum, and Z discrete Gaussian with parameter ``sigma = s sqrt(m)``.

1. The law of S is symmetric, and log-concave, because convolution keeps log-concave sequences so.
   So the lemma of ``integer_noise`` holds for it: "count + S" is mu-GDP with mu the largest of
   ``a(k) - a(k - 1)``, where ``a(k) = Phi^-1(P(S <= k))``.
2. Let X be discrete Gaussian with variance parameter u, Y with v, and ``w = u v / (u + v)``. Then
   ``P(X + Y = k)`` is ``exp(-k^2 / (2 (u + v)))`` times the sum over x of
   ``exp(-(x - c)^2 / (2 w))`` with ``c = k u / (u + v)``. By Poisson summation this is a constant
   times ``1 + 2 sum over j >= 1 of exp(-2 pi^2 w j^2) cos(2 pi j c)``, so within ``1 - T`` and
   ``1 + T``, ``T = 2 sum of exp(-2 pi^2 w j^2)``. One after the other, with ``w = s^2 k / (k + 1)``
   for the k-th, the ratio of the laws of S and Z has a largest and a least value whose quotient is
   at most r, ``ln r = sum over k < m of ln((1 + T_k) / (1 - T_k))``. As both laws have the sum 1,
   the ratio itself lies in ``[1 / r, r]``, and so does that of their tails.
3. For p <= 1/2 the slope of Phi^-1(p) in ln p is ``Phi / phi <= sqrt(pi / 2)``. So each a(k) of S
   is within ``sqrt(pi / 2) ln r`` of that of Z (on the other half by symmetry), each step within
   twice that, and

       mu(S) <= mu(Z) + sqrt(2 pi) ln r.

For s = 2 the last term is below 1e-15 for ten owners; for s = 1 it is 5e-4. Where a share is
so small that this says nothing, mu of one share is a bound too: the others are noise on top. QED.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from evenhand._checks import at_least, positive
from evenhand.privacy.integer_noise import discrete_gaussian_mu
from evenhand.privacy.noise import DiscreteNoise
from evenhand.typing import IntArray


@lru_cache(maxsize=1024)
def sum_mu(sigma: float, n_shares: int) -> float:
    """Return mu of a count that moves by 1 under a sum of discrete Gaussian shares.

    Parameters
    ----------
    sigma : float
        Parameter of the sum: each share has ``sigma / sqrt(n_shares)``.
    n_shares : int

    Examples
    --------
    >>> round(sum_mu(40.0, 50) * 40.0, 6)
    1.000026
    >>> round(sum_mu(3.0, 9) * 3.0, 4)
    1.0063
    """
    share = positive("sigma", sigma) / math.sqrt(at_least("n_shares", n_shares, 1))
    alone = discrete_gaussian_mu(share)  # what one share costs: the others are noise on top
    k = np.arange(1.0, n_shares)
    w = share**2 * k / (k + 1)
    j = np.arange(1.0, 12.0)
    T = 2.0 * np.exp(-2.0 * (math.pi * j[:, None]) ** 2 * w).sum(axis=0)
    if (T >= 1).any():
        return alone
    log_r = float((np.log1p(T) - np.log1p(-T)).sum())
    return min(alone, discrete_gaussian_mu(sigma) + math.sqrt(2.0 * math.pi) * log_r)


class SharedNoise(DiscreteNoise):
    """Discrete Gaussian noise that owners add in shares, of which enough must stay honest.

    Parameters
    ----------
    n_owners : int
        Owners that are asked.
    n_colluding : int
        Owners that may tell the aggregator their share, or add none.
    n_dropouts : int
        Owners that may not answer. What more of them leave is not counted.

    Notes
    -----
    The shares of the ``n_honest = n_owners - n_colluding - n_dropouts`` others make the noise that
    is charged for; what is drawn beyond them is noise on top, which costs nobody privacy, and
    accuracy: the sum of all shares has ``sqrt(n_owners / n_honest)`` times the parameter.

    Examples
    --------
    >>> noise = SharedNoise(50, n_colluding=5, n_dropouts=5)
    >>> noise.n_honest, round(noise.extra, 4), round(noise.share(40.0), 4)
    (40, 1.118, 6.3246)
    """

    name = "discrete Gaussian noise in shares, one of each owner"

    def __init__(self, n_owners: int, *, n_colluding: int = 0, n_dropouts: int = 0) -> None:
        self.n_owners = at_least("n_owners", n_owners, 1)
        self.n_colluding = at_least("n_colluding", n_colluding, 0)
        self.n_dropouts = at_least("n_dropouts", n_dropouts, 0)
        if self.n_honest < 1:
            raise ValueError(
                f"Of {n_owners} owners {n_colluding} may collude and {n_dropouts} drop out: nobody "
                f"is left whose noise would protect. Ask more owners, or allow fewer of them."
            )

    @property
    def n_honest(self) -> int:
        """Owners whose shares are counted on."""
        return self.n_owners - self.n_colluding - self.n_dropouts

    @property
    def extra(self) -> float:
        """How many times the noise is what is charged for, where all owners answer honestly."""
        return math.sqrt(self.n_owners / self.n_honest)

    def share(self, sigma: float) -> float:
        """Return the parameter of the share of one owner."""
        return positive("sigma", sigma) / math.sqrt(self.n_honest)

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> IntArray:
        """Draw the shares of all owners, summed: what the aggregator would hold."""
        drawn = super().gaussian(self.share(sigma), (self.n_owners, *shape))
        total: IntArray = drawn.sum(axis=0)
        return total

    def gaussian_mu(self, sigma: float) -> float:
        """Gaussian DP parameter of one count that moves by 1, under the honest shares alone."""
        return sum_mu(sigma, self.n_honest)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> IntArray:
        """Refuse: what is shared here is Gaussian."""
        raise ValueError("Noise in shares is Gaussian. Use NoisyHistogram.")

    def laplace_mu(self, scale: float) -> float:
        """Refuse: what is shared here is Gaussian."""
        raise ValueError("Noise in shares is Gaussian. Use NoisyHistogram.")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_owners}, n_colluding={self.n_colluding}, "
            f"n_dropouts={self.n_dropouts})"
        )


class OneShare(SharedNoise):
    """The same, at one owner: draws its own share, and charges for the sum that it is a part of.

    An owner has a ledger of its own with this noise, so that it is charged before its share is
    drawn, and whoever asks it twice spends twice.

    Examples
    --------
    >>> OneShare(50).gaussian(40.0, (2,)).shape
    (2,)
    """

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> IntArray:
        """Draw the share of one owner."""
        return DiscreteNoise.gaussian(self, self.share(sigma), shape)

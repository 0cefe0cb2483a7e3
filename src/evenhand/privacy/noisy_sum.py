"""The noisy sum: bounded contributions of records or teachers, added up, plus Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand._checks import positive
from evenhand.privacy.gaussian import sigma_for
from evenhand.privacy.noise import Noise
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.typing import Array, ArrayLike, FloatArray


@dataclass(frozen=True, kw_only=True)
class NoisySum:
    """Release a vector of whole numbers after adding Gaussian noise to each.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each number. Greater than 0.
    l2_sensitivity : float
        Largest L2 distance between the vectors of two neighbors, in the same unit as ``sigma``.
        Greater than 0. Whoever makes the sum must bound every contribution so that this is true.

    Privacy
    -------
    Neighbors : those for which the sensitivity was declared.
    Sensitivity : ``l2_sensitivity``.
    Cost : ``mu = l2_sensitivity * mu_1`` with ``mu_1`` the cost of one count that moves by 1. For
        continuous noise ``mu_1 = 1 / sigma`` and this is exact (Dong, Roth and Su 2022, Theorem 1).
        For discrete noise a number that moves by k is k steps of 1, hence ``k mu_1`` (their
        Theorem 3 on groups), and the numbers together cost the root of the sum of squares
        (Corollary 2).

    Notes
    -----
    Real numbers are brought to whole ones by counting in a small unit; a contribution must be
    rounded towards zero *before* it is added, so that rounding cannot raise its norm.

    Examples
    --------
    >>> from evenhand.privacy import FloatNoise
    >>> release = NoisySum(sigma=40.0, l2_sensitivity=2.0)
    >>> round(release.mu_squared(FloatNoise()), 6)
    0.0025
    """

    neighbors: ClassVar[tuple[str, ...]] = NEIGHBORS
    delta: ClassVar[None] = None

    sigma: float
    l2_sensitivity: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        moved = positive("l2_sensitivity", self.l2_sensitivity)
        object.__setattr__(self, "l2_sensitivity", moved)

    @classmethod
    def within(cls, mu_squared: float, n: int, l2_sensitivity: float, noise: Noise) -> NoisySum:
        """Return the sum with the least noise of which ``n`` cost ``mu_squared``."""
        sigma = sigma_for(mu_squared, n, l2_sensitivity, gaussian_mu=noise.gaussian_mu)
        return cls(sigma=sigma, l2_sensitivity=l2_sensitivity)

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one sum, whatever the data are."""
        return (self.l2_sensitivity * noise.gaussian_mu(self.sigma)) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` vectors of ``n_classes`` numbers. For the ledger only."""
        return noise.gaussian(self.sigma, (n, n_classes))

    def decide(self, counts: ArrayLike, drawn: Array) -> FloatArray:
        """Return the noisy sums; they may be negative."""
        sums = np.asarray(counts)
        if not np.issubdtype(sums.dtype, np.integer):
            raise TypeError(
                f"A noisy sum is over whole numbers, got dtype {sums.dtype}. Round every "
                f"contribution towards zero, in a small unit, before it is added."
            )
        noisy: FloatArray = (sums + drawn).astype(np.float64)
        return noisy

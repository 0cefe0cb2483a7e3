"""Noisy sums over random subsets whose members may come out: what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom

from evenhand import _checks
from evenhand.privacy.gaussian import epsilon_from_mu, mu_from_epsilon
from evenhand.privacy.noise import Noise
from evenhand.privacy.relation import GROUP_LABEL
from evenhand.typing import Array


@dataclass(frozen=True, kw_only=True)
class KnownSamples:
    """Gaussian sums over Poisson samples of people whose members may be known afterwards.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise of a sum, in units of how far one neighbor moves it.
    sampling_rate : float
        Probability of a person to be in a sample, in (0, 1].
    n_steps : int
        One use is all steps.
    beside : float
        ``mu**2`` of the Gaussian releases on everybody that are charged with them.
    delta : float
        The delta at which ``mu_squared`` speaks.

    Privacy
    -------
    Neighbors : change the group label of one person.
    Cost : ``delta(epsilon) = E[delta(mu_K, epsilon)]``, ``mu_K**2 = K / noise_multiplier**2 +
        beside``, K binomial of ``n_steps`` and ``sampling_rate``: how often the person was sampled.
        Exact where samples are told.
    """

    neighbors: ClassVar[tuple[str, ...]] = (GROUP_LABEL,)

    noise_multiplier: float
    sampling_rate: float
    n_steps: int
    beside: float
    delta: float

    def delta_at(self, epsilon: float) -> float:
        """Return the least delta for which all steps together are (epsilon, delta)-private."""
        k = np.arange(self.n_steps + 1)
        often = binom.pmf(k, self.n_steps, self.sampling_rate)
        mu = np.sqrt(k / self.noise_multiplier**2 + self.beside)
        found = np.zeros_like(mu)  # without noise that moves there is nothing to tell
        told = mu > 0
        half, away = mu[told] / 2.0, epsilon / mu[told]
        found[told] = ndtr(half - away) - np.exp(epsilon + log_ndtr(-half - away))
        return float(often @ np.maximum(found, 0.0))

    def epsilon(self, delta: float) -> float:
        """Return epsilon at ``delta``, rounded up."""
        _checks.open_unit("delta", delta)
        most = epsilon_from_mu(
            math.sqrt(self.n_steps / self.noise_multiplier**2 + self.beside), delta
        )
        if self.delta_at(0.0) <= delta:
            return 0.0
        root = brentq(lambda e: self.delta_at(e) - delta, 0.0, most * 1.001 + 1e-6, xtol=1e-9)
        return min(most * (1.0 + 1e-9), float(root) * (1.0 + 1e-8) + 1e-8)

    def mu_squared(self, noise: Noise) -> float:
        """``mu**2`` of the Gaussian that costs the same epsilon at ``self.delta``."""
        return mu_from_epsilon(self.epsilon(self.delta), self.delta) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw standard noise, (n, n_classes). For the ledger only."""
        return noise.gaussian(1.0, (n, n_classes))

"""Private selection: what it costs to publish the best of a random number of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

from evenhand._checks import open_unit, positive
from evenhand.privacy.renyi import ORDERS, RenyiCurve
from evenhand.typing import FloatArray


class Repetitions(Protocol):
    """How many runs are tried: a random number that nobody may learn."""

    @property
    def mean(self) -> float:
        """Runs that are tried on average."""

    def cost(self, run: RenyiCurve) -> RenyiCurve:
        """Cost of publishing the best run, where ``run`` is the cost of each."""


@dataclass(frozen=True, kw_only=True)
class NegativeBinomialRepetitions:
    """Try a truncated negative binomial number of runs and publish the best alone.

    Parameters
    ----------
    shape : float
        eta > -1. With 1 the number is geometric, with 0 logarithmic; smaller is cheaper, and tries
        few runs more often.
    gamma : float
        In (0, 1); smaller tries more runs. ``of_mean`` finds it.

    Privacy
    -------
    Cost : at order a, with the run's curve eps and any order b > 1,
        ``eps(a) + (1 + eta) ((1 - 1/b) eps(b) + log(1/gamma) / b) + log(mean) / (a - 1)``
        (Papernot and Steinke 2022, "Hyperparameter tuning with Renyi differential privacy",
        Theorem 2), and at most the cost at any larger order. The number of runs is independent of
        the data and stays secret, as do all runs but the best.
    A run is everything that the choice reads: the model *and* its score. A score on private rows
    without noise has no cost that could be bounded, and neither has the choice by it. Settings that
    differ are one run that draws its setting at random; its cost is the greatest of theirs.

    Examples
    --------
    >>> run = gaussian_curve(0.04)
    >>> [round(NegativeBinomialRepetitions.of_mean(m, shape=1.0).cost(run).epsilon(1e-5), 2)
    ...  for m in (1.5, 10, 100)]
    [1.13, 1.72, 2.17]
    """

    shape: float
    gamma: float

    def __post_init__(self) -> None:
        shape = float(self.shape)
        if not (math.isfinite(shape) and shape > -1):
            raise ValueError(
                f"shape must be finite and > -1, got shape={self.shape!r}. 1 is the geometric "
                f"distribution, 0 the logarithmic."
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "gamma", open_unit("gamma", self.gamma))

    @classmethod
    def of_mean(cls, mean: float, *, shape: float) -> NegativeBinomialRepetitions:
        """Return the distribution that tries ``mean`` runs on average, more than 1."""
        if not (math.isfinite(mean) and mean > 1):
            raise ValueError(
                f"mean must be finite and greater than 1, got mean={mean!r}. A single run needs no "
                f"selection."
            )
        low, high = math.log(1e-300), -1e-12
        log_gamma = brentq(
            lambda t: cls(shape=shape, gamma=math.exp(t)).mean - mean, low, high, xtol=1e-14
        )
        return cls(shape=shape, gamma=math.exp(log_gamma))

    @property
    def mean(self) -> float:
        """Runs that are tried on average."""
        eta, log_gamma = self.shape, math.log(self.gamma)
        geometric = math.expm1(-log_gamma)  # 1 / gamma - 1
        if abs(eta * log_gamma) < 1e-12:  # the limit at eta = 0
            return geometric / -log_gamma
        return eta * geometric / -math.expm1(eta * log_gamma)

    def cost(self, run: RenyiCurve) -> RenyiCurve:
        """Cost of publishing the best run, where ``run`` is the cost of each."""
        once = (1 - 1 / run.orders) * run.rdp - math.log(self.gamma) / run.orders
        rdp = run.rdp + (1 + self.shape) * once.min() + math.log(self.mean) / (run.orders - 1)
        return RenyiCurve(run.orders, _least_above(rdp), run.neighbors)


@dataclass(frozen=True, kw_only=True)
class PoissonRepetitions:
    """Try a Poisson number of runs and publish the best alone; with none, something fixed.

    Parameters
    ----------
    mean : float
        Runs that are tried on average, at least 1.

    Privacy
    -------
    Cost : at order a, ``eps(a) + mean * delta + log(mean) / (a - 1)``, where a run is
        (e, delta)-DP at ``e = log(1 + 1 / (a - 1))``, which its curve bounds (Papernot and Steinke
        2022, Theorem 6). What is published when no run was tried must not depend on the data. All
        else as for ``NegativeBinomialRepetitions``.
    """

    mean: float

    def __post_init__(self) -> None:
        mean = positive("mean", self.mean)
        if mean < 1:
            raise ValueError(f"mean must be at least 1, got mean={self.mean!r}. Try a run or more.")
        object.__setattr__(self, "mean", mean)

    def cost(self, run: RenyiCurve) -> RenyiCurve:
        """Cost of publishing the best run, where ``run`` is the cost of each."""
        epsilons = np.log1p(1 / (run.orders - 1))
        deltas = np.array([_delta_of(run, float(epsilon)) for epsilon in epsilons])
        rdp = run.rdp + self.mean * deltas + math.log(self.mean) / (run.orders - 1)
        return RenyiCurve(run.orders, _least_above(rdp), run.neighbors)


def gaussian_curve(mu_squared: float, neighbors: str = "replace one") -> RenyiCurve:
    """Return the Renyi curve of a mu-GDP release: ``order * mu**2 / 2``.

    Parameters
    ----------
    mu_squared : float
        Greater than 0.
    neighbors : str
        One of ``NEIGHBORS``.

    References
    ----------
    Dong, Roth, Su 2019, Corollary B.6.
    """
    return RenyiCurve(ORDERS, ORDERS * positive("mu_squared", mu_squared) / 2, neighbors)


def _least_above(rdp: FloatArray) -> FloatArray:
    """Bound each order by all larger ones: a divergence grows with its order."""
    least: FloatArray = np.minimum.accumulate(rdp[::-1])[::-1]
    return least


def _delta_of(run: RenyiCurve, epsilon: float) -> float:
    """Return a delta at ``epsilon`` (Canonne, Kamath, Steinke 2020, Proposition 12)."""
    a = run.orders
    log_delta = (a - 1) * (run.rdp - epsilon) + (a - 1) * np.log1p(-1 / a) - np.log(a)
    return float(min(1.0, np.exp(min(0.0, float(log_delta.min())))))

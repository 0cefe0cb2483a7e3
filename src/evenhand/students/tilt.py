"""Chances of groups that agree with noisy sums: the smallest change of what was said before."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from evenhand.typing import FloatArray
from evenhand.voting import GroupMoments

SUREST: Final = 0.98
"""No chance is taken for surer than this before the sums are heard: a few hundred steps of votes
say less."""


def tilted(chances: FloatArray, moments: GroupMoments) -> FloatArray:
    """Return the chances nearest to ``chances`` whose sums are as released, up to their noise.

    Parameters
    ----------
    chances : ndarray of float64, shape (n, n_groups)
    moments : GroupMoments
        Sums of m features over each group.

    Returns
    -------
    ndarray of float64, shape (n, n_groups)
        Proportional to ``chances * exp(features @ theta)``, for the theta that minimises
        ``sum of log-normalisers - theta . sums + variance |theta|^2 / 2``.

    Notes
    -----
    That is the dual of ``min KL(q | chances) + |sums(q) - sums|^2 / (2 variance)``, so where the
    sums are exact, means of the features by q are means by true group; where they drown in noise,
    q stays as it was. With features that span h, ``E[h | group]`` by q is without bias, however
    wrong the chances were.
    """
    q = np.clip(chances, 1.0 - SUREST, SUREST)
    logs = np.log(q / q.sum(axis=1, keepdims=True))
    if logs.shape[1] == 2:  # one of two groups says all
        second = _solved(_OfTwo(logs[:, 1] - logs[:, 0], moments))[0]
        return np.stack([1.0 - second, second], axis=1)
    return _solved(_OfMany(logs, moments)).T


class _Family(Protocol):
    """Chances as a function of theta, flat."""

    n_weights: int

    def at(self, flat: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the dual, its slope, and the chances, (n_tilted, n)."""


def _solved(family: _Family) -> FloatArray:
    """Return the chances at the minimum of the dual."""
    found = minimize(
        lambda flat: family.at(flat)[:2],
        np.zeros(family.n_weights),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500},
    )
    return family.at(found.x)[2]


class _OfTwo:
    def __init__(self, odds: FloatArray, moments: GroupMoments) -> None:
        self._odds, self._moments = odds, moments
        self.n_weights = moments.features.shape[1]

    def at(self, flat: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        told = self._moments
        u = self._odds + told.features @ flat
        chance = expit(u)
        value = np.logaddexp(0.0, u).sum() - flat @ told.sums[1]
        slope = chance @ told.features - told.sums[1] + told.variance * flat
        return float(value + 0.5 * told.variance * (flat @ flat)), slope, chance[None]


class _OfMany:
    def __init__(self, logs: FloatArray, moments: GroupMoments) -> None:
        self._logs, self._moments = logs, moments
        self.n_weights = logs.shape[1] * moments.features.shape[1]

    def at(self, flat: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        told = self._moments
        theta = flat.reshape(self._logs.shape[1], -1)  # each has its own; the ridge ties them
        raised = self._logs + told.features @ theta.T
        level = logsumexp(raised, axis=1)
        chance = np.exp(raised - level[:, None]).T
        value = level.sum() - (theta * told.sums).sum()
        slope = chance @ told.features - told.sums + told.variance * theta
        return float(value + 0.5 * told.variance * (flat @ flat)), slope.ravel(), chance

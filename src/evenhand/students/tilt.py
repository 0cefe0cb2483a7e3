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


FURTHER: Final = 0.25
"""By what ridges shrink one after the other on the way to sums that agree."""

RIDGES: Final = 8


def tilted(
    chances: FloatArray, moments: GroupMoments, *, within: float | None = None
) -> FloatArray:
    """Return the chances nearest to ``chances`` whose sums are as released, up to their noise.

    Parameters
    ----------
    chances : ndarray of float64, shape (n, n_groups)
    moments : GroupMoments
        Sums of m features over each group.
    within : float, optional
        How far the sums may be from the released ones at most, in standard deviations of their
        noise (root mean square). Default: as far as the divergence from ``chances`` has it, which
        is many where the rows are many and ``chances`` wrong.

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

    That takes each row's chance for a probability that is known, and a thousand rows for a thousand
    witnesses. Where chances are a mere start, the variance is divided by 4 until the sums are
    within reach of what noise would do (the discrepancy principle of Morozov; released numbers
    alone are read).
    """
    q = np.clip(chances, 1.0 - SUREST, SUREST)
    logs = np.log(q / q.sum(axis=1, keepdims=True))
    if logs.shape[1] == 2:  # one of two groups says all
        second = _solved(_OfTwo(logs[:, 1] - logs[:, 0], moments), within)[0]
        return np.stack([1.0 - second, second], axis=1)
    return _solved(_OfMany(logs, moments), within).T


class _Family(Protocol):
    """Chances as a function of theta, flat."""

    n_weights: int
    variance: float
    """Of the noise."""

    def at(self, flat: FloatArray, ridge: float) -> tuple[float, FloatArray, FloatArray]:
        """Return the dual, its slope, and the chances, (n_tilted, n)."""


def _solved(family: _Family, within: float | None) -> FloatArray:
    """Return the chances at the minimum of the dual, for the first ridge that is small enough."""
    ridge, flat = family.variance, np.zeros(family.n_weights)
    for _ in range(1 if within is None else RIDGES):
        flat = minimize(
            _dual, flat, (family, ridge), jac=True, method="L-BFGS-B", options={"maxiter": 500}
        ).x
        # At the minimum, released sums less those of the chances are the ridge times theta.
        misfit = ridge * float(np.sqrt((flat**2).mean()))
        if within is None or misfit <= within * np.sqrt(family.variance):
            break
        ridge *= FURTHER
    return family.at(flat, ridge)[2]


def _dual(flat: FloatArray, family: _Family, ridge: float) -> tuple[float, FloatArray]:
    """Return the dual and its slope."""
    return family.at(flat, ridge)[:2]


class _OfTwo:
    def __init__(self, odds: FloatArray, moments: GroupMoments) -> None:
        self._odds, self._moments, self.variance = odds, moments, moments.variance
        self.n_weights = moments.features.shape[1]

    def at(self, flat: FloatArray, ridge: float) -> tuple[float, FloatArray, FloatArray]:
        told = self._moments
        u = self._odds + told.features @ flat
        chance = expit(u)
        value = np.logaddexp(0.0, u).sum() - flat @ told.sums[1]
        slope = chance @ told.features - told.sums[1] + ridge * flat
        return float(value + 0.5 * ridge * (flat @ flat)), slope, chance[None]


class _OfMany:
    def __init__(self, logs: FloatArray, moments: GroupMoments) -> None:
        self._logs, self._moments, self.variance = logs, moments, moments.variance
        self.n_weights = logs.shape[1] * moments.features.shape[1]

    def at(self, flat: FloatArray, ridge: float) -> tuple[float, FloatArray, FloatArray]:
        told = self._moments
        theta = flat.reshape(self._logs.shape[1], -1)  # each has its own; the ridge ties them
        raised = self._logs + told.features @ theta.T
        level = logsumexp(raised, axis=1)
        chance = np.exp(raised - level[:, None]).T
        value = level.sum() - (theta * told.sums).sum()
        slope = chance @ told.features - told.sums + ridge * theta
        return float(value + 0.5 * ridge * (flat @ flat)), slope.ravel(), chance

"""Probabilities of groups that agree with noisy sums, by the smallest change of earlier ones."""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from evenhand.learners.preconditioner import Preconditioner
from evenhand.typing import FloatArray
from evenhand.voting.group_moments import GroupMoments

SUREST: Final = 0.98
"""No probability is taken for surer than this before the sums: a few hundred steps of votes say
less."""


FURTHER: Final = 0.25
"""By what ridges shrink one after the other on the way to sums that agree."""

RIDGES: Final = 8

BY_FAR: Final = 2.0
"""A ridge is passed over if an estimate leaves sums so many times farther than they may be."""

ROUGH: Final = 1e-3
"""Gradient, as a part of that at the start, at which descent ends on the way."""

FINE: Final = 1e-2
"""The same from there on, for the ridge that is kept."""

DAMPING: Final = 1e-9
"""Of the preconditioner, in units of the mean curvature."""

TINY: Final = 1e-12

CHUNK_ROWS: Final = 1024

EVERY: Final = slice(None)

ENOUGH_ROWS: Final = 4000
"""The curvature is read from at least so many rows, where there are more."""


def exponential_tilting(
    probabilities: FloatArray, moments: GroupMoments, *, within: float | None = None
) -> FloatArray:
    """Return the nearest probabilities whose sums are as released, up to their noise.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (n, n_groups)
    moments : GroupMoments
        Sums of m features over each group.
    within : float, optional
        How far the sums may be from the released ones at most, in standard deviations of their
        noise (root mean square). Default: as far as the divergence from ``probabilities`` has it,
        which is many where the rows are many and ``probabilities`` wrong.

    Returns
    -------
    ndarray of float64, shape (n, n_groups)
        Proportional to ``probabilities * exp(features @ theta)``, for the theta that minimises
        ``sum of log-normalisers - theta . sums + variance |theta|^2 / 2``.

    Notes
    -----
    That is the dual of ``min KL(q | probabilities) + |sums(q) - sums|^2 / (2 variance)``, so where
    the sums are exact, means of the features by q are means by true group; where they drown in
    noise, q stays as it was. With features that span h, ``E[h | group]`` by q is without bias,
    however wrong the probabilities were.

    That takes each row's probability for a probability that is known, and a thousand rows for a
    thousand witnesses. Where probabilities are a mere start, the variance is divided by 4 until the
    sums are within reach of what noise would do (the discrepancy principle of Morozov; released
    numbers alone are read).
    """
    q = np.clip(probabilities, 1.0 - SUREST, SUREST)
    logs = np.log(q / q.sum(axis=1, keepdims=True))
    if logs.shape[1] == 2:  # one of two groups says all
        second = _solved(_OfTwo(logs[:, 1] - logs[:, 0], moments), within)[0]
        return np.stack([1.0 - second, second], axis=1)
    return _solved(_OfMany(logs, moments), within).T


class _Family(Protocol):
    """Probabilities as a function of theta, (m, n_families)."""

    shape: tuple[int, int]
    features: FloatArray
    variance: float
    """Of the noise."""

    def at(self, theta: FloatArray, ridge: float) -> tuple[float, FloatArray]:
        """Return the dual and its gradient."""

    def probabilities(self, theta: FloatArray, some: slice = EVERY) -> FloatArray:
        """Return the probabilities of some rows, (n_families, n_rows)."""


def _solved(family: _Family, within: float | None) -> FloatArray:
    """Return probabilities at the minimum of the dual, for the first ridge that is small enough."""
    theta = np.zeros(family.shape)
    far = 0 if within is None else _too_large(family, within)
    for i in range(far, RIDGES):
        ridge = family.variance * FURTHER**i
        theta = _descend(family, theta, ridge, ROUGH)
        # At the minimum, released sums less those of the probabilities are the ridge times theta.
        misfit = ridge * float(np.sqrt((theta**2).mean()))
        if within is None or misfit <= within * math.sqrt(family.variance):
            break
    return family.probabilities(_descend(family, theta, ridge, FINE))


def _too_large(family: _Family, within: float) -> int:
    """Return how many ridges are too large by far, as the gradient and curvature at 0 have it."""
    start = np.zeros(family.shape)
    values, directions = np.linalg.eigh(_curvature(family, start))
    apart = directions.T @ family.at(start, 0.0)[1]
    for i in range(RIDGES - 1):
        ridge = family.variance * FURTHER**i
        theta = apart / (np.maximum(values, 0.0) + ridge)[:, None]
        misfit = ridge * float(np.sqrt((theta**2).mean()))
        if misfit <= BY_FAR * within * math.sqrt(family.variance):
            return i
    return RIDGES - 1


def _curvature(family: _Family, theta: FloatArray) -> FloatArray:
    """Return about how the dual without a ridge is curved, (m, m): from a part of the rows."""
    n = len(family.features)
    some = slice(None, None, max(1, n // ENOUGH_ROWS))
    rows, p = family.features[some], family.probabilities(theta, some)
    curved: FloatArray = rows.T @ ((p * (1.0 - p)).mean(axis=0)[:, None] * rows) * (n / len(rows))
    return curved


def _descend(family: _Family, theta: FloatArray, ridge: float, precision: float) -> FloatArray:
    """Return the minimum of the dual, from ``theta`` on, preconditioned by its curvature there."""
    curved = _curvature(family, theta)
    # It need not be exact, but it must be invertible: two features may be equal.
    curved[np.diag_indices(len(curved))] += ridge + DAMPING * curved.trace() / len(curved) + TINY
    preconditioner = Preconditioner.of(curved)

    # In units of the first step, which so is tried whole: it is Newton's, about.
    here = family.at(theta, ridge)
    unit = float(np.linalg.norm(preconditioner.gradient(here[1])))
    if unit <= TINY:
        return theta

    def moved(way: FloatArray) -> FloatArray:
        out: FloatArray = theta + preconditioner.weights(unit * way.reshape(family.shape))
        return out

    def dual(way: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = family.at(moved(way), ridge) if way.any() else here
        return value / unit**2, preconditioner.gradient(gradient).ravel() / unit

    options = {"maxiter": 500, "ftol": 0.0, "gtol": precision}
    found = minimize(dual, np.zeros(theta.size), jac=True, method="L-BFGS-B", options=options)
    return moved(found.x)


class _OfTwo:
    def __init__(self, odds: FloatArray, moments: GroupMoments) -> None:
        self._odds, self._sums = odds, moments.sums[1]
        self.features, self.variance = moments.features, moments.variance
        self.shape = (self.features.shape[1], 1)

    def at(self, theta: FloatArray, ridge: float) -> tuple[float, FloatArray]:
        flat = theta[:, 0]
        value = 0.5 * ridge * float(flat @ flat) - float(flat @ self._sums)
        gradient = ridge * flat - self._sums
        for first in range(0, len(self._odds), CHUNK_ROWS):  # which are then read from the cache
            rows = self.features[first : first + CHUNK_ROWS]
            u = self._odds[first : first + CHUNK_ROWS] + rows @ flat
            small = np.exp(-np.abs(u))
            value += float((np.maximum(u, 0.0) + np.log1p(small)).sum())
            gradient += (np.where(u < 0.0, small, 1.0) / (1.0 + small)) @ rows
        return value, gradient[:, None]

    def probabilities(self, theta: FloatArray, some: slice = EVERY) -> FloatArray:
        out: FloatArray = expit(self._odds[some] + self.features[some] @ theta[:, 0])[None]
        return out


class _OfMany:
    def __init__(self, logs: FloatArray, moments: GroupMoments) -> None:
        self._logs, self._sums = logs, moments.sums.T
        self.features, self.variance = moments.features, moments.variance
        # Each group has a theta of its own; the ridge ties them.
        self.shape = (self.features.shape[1], logs.shape[1])

    def at(self, theta: FloatArray, ridge: float) -> tuple[float, FloatArray]:
        raised = self._logs + self.features @ theta
        level = logsumexp(raised, axis=1, keepdims=True)
        value = level.sum() - (theta * self._sums).sum() + 0.5 * ridge * (theta**2).sum()
        gradient = self.features.T @ np.exp(raised - level) - self._sums + ridge * theta
        return float(value), gradient

    def probabilities(self, theta: FloatArray, some: slice = EVERY) -> FloatArray:
        out: FloatArray = softmax(self._logs[some] + self.features[some] @ theta, axis=1).T
        return out

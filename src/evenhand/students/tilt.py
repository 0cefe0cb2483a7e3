"""Chances of groups that agree with noisy sums: the smallest change of what was said before."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

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
    phi, sums = moments.features, moments.sums
    n_groups = logs.shape[1]
    # One of two groups says all; of more, each has weights of its own, and the ridge ties them.
    first = 1 if n_groups == 2 else 0

    def dual(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(n_groups - first, -1)
        raised = logs.copy()
        raised[:, first:] += phi @ theta.T
        level = logsumexp(raised, axis=1)
        chance = np.exp(raised - level[:, None])
        value = level.sum() - (theta * sums[first:]).sum()
        slope = chance[:, first:].T @ phi - sums[first:]
        value += 0.5 * moments.variance * (theta**2).sum()
        return float(value), (slope + moments.variance * theta).ravel()

    start = np.zeros((n_groups - first) * phi.shape[1])
    found = minimize(dual, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    theta = found.x.reshape(n_groups - first, -1)
    raised = logs.copy()
    raised[:, first:] += phi @ theta.T
    out: FloatArray = np.exp(raised - logsumexp(raised, axis=1)[:, None])
    return out

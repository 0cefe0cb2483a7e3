"""The a-priori cost of two stages: a check that may stop a query, then an answer.

A query that fails its check pays for the check alone, so at given votes two stages together cost
less than both in full. The papers multiply the cost of the answer by the probability that it is
given. That "expected cost" is no bound: a divergence is the logarithm of a mean of exponentials,
and by Jensen's inequality more than the mean of its exponents. This is the bound.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from evenhand.privacy.local.cost import LocalCost, checked_votes
from evenhand.privacy.noisy_max import ConfidentGNMax
from evenhand.privacy.renyi import ORDERS, checked_orders
from evenhand.typing import ArrayLike, FloatArray


def two_stage_rdp(
    counts: ArrayLike,
    mechanism: ConfidentGNMax,
    orders: ArrayLike = ORDERS,
    *,
    answer: LocalCost | None = None,
    neighbors: str = "replace one",
) -> LocalCost:
    """Bound the divergence of a checked answer at these votes, check and answer together.

    With p the probability that the check passes here, p' at a neighbor and ``eps2`` the cost of the
    answer,

        eps(a) = ln(A0 + A1 exp((a - 1) eps2)) / (a - 1),
        A1 = p^a p'^(1-a),   A0 = (1-p)^a (1-p')^(1-a),

    at worst over a largest count of one vote more, the same, or one less, and over both directions.

    Parameters
    ----------
    counts : array of shape (n_queries, n_classes)
        Votes per class.
    mechanism : ConfidentGNMax
        Both stages, under continuous noise; the check looks at all classes.
    orders : array of shape (n_orders,)
        Greater than 1 and increasing.
    answer : LocalCost, optional
        Cost of the answer at these votes, in both directions (``exact_local_rdp``). By default
        ``a / sigma**2``, which holds at any votes.
    neighbors : str
        The relation between data sets, under which one vote moves.

    Returns
    -------
    LocalCost
        One row per query, ``direction="both"``. Private: computed from the votes.

    References
    ----------
    The chain rule for the joint outcome (passed or not, answer). What it replaces is the expected
    cost with which Papernot et al. 2018 plan, and FairPATE's selection of queries.

    Examples
    --------
    >>> cautious = ConfidentGNMax(threshold=200.0, sigma_check=150.0, sigma=40.0)
    >>> two_stage_rdp([[240, 10], [130, 120]], cautious)
    <private>
    """
    votes, grid = checked_votes(counts), checked_orders(orders)
    if answer is None:
        second = np.broadcast_to(grid / mechanism.sigma**2, (len(votes), grid.size))
    else:
        second = _checked_answer(answer, len(votes), grid, neighbors)
    top = votes.max(axis=1, initial=0).astype(np.float64)
    here = _log_probabilities(top, mechanism)
    worst = np.zeros((len(votes), grid.size))
    for moved in (-1.0, 0.0, 1.0):
        there = _log_probabilities(top + moved, mechanism)
        np.maximum(worst, _divergence(here, there, second, grid), out=worst)
        np.maximum(worst, _divergence(there, here, second, grid), out=worst)
    return LocalCost(worst, orders=grid, direction="both", neighbors=neighbors)


def _checked_answer(
    answer: LocalCost, n_queries: int, grid: FloatArray, neighbors: str
) -> FloatArray:
    said = (answer.direction, answer.neighbors, answer.n_queries)
    if said != ("both", neighbors, n_queries) or not np.array_equal(answer.orders, grid):
        raise ValueError(
            f"answer must be a cost in both directions for {neighbors!r}, of the same "
            f"{n_queries} queries and the same orders; got direction {said[0]!r} for {said[1]!r} "
            f"of {said[2]} queries. Compute it with exact_local_rdp(counts, sigma, orders)."
        )
    return answer.reveal_to_curator()


def _log_probabilities(top: FloatArray, mechanism: ConfidentGNMax) -> tuple[FloatArray, FloatArray]:
    """Log of the probability that the check passes, and that it does not; shape (n_queries, 1)."""
    z = ((top - mechanism.threshold) / mechanism.sigma_check)[:, np.newaxis]
    return log_ndtr(z), log_ndtr(-z)


def _divergence(
    one: tuple[FloatArray, FloatArray],
    other: tuple[FloatArray, FloatArray],
    answer: FloatArray,
    orders: FloatArray,
) -> FloatArray:
    t = orders - 1.0
    passed = orders * one[0] - t * other[0] + t * answer
    stopped = orders * one[1] - t * other[1]
    divergence: FloatArray = np.maximum(np.logaddexp(stopped, passed), 0.0) / t
    return divergence

"""The exact local cost of a Gaussian noisy max: by quadrature, over every vote that can move.

Notes
-----
``P(class j wins) = integral of phi(x - n_j) * product over i != j of Phi(x - n_i)``, in units of
sigma. The integrand is log-concave with curvature at least 1/sigma^2, so ``9 sigma`` around its
mode hold all but 1e-17 of it, and the trapezoidal rule on a step of ``sigma/8`` is exact to
rounding. A neighbor ``n - e_a + e_b`` changes two factors,

    A(x) = Phi(x - n_a + 1) / Phi(x - n_a),     B(x) = Phi(x - n_b - 1) / Phi(x - n_b),

so its probability of class j is the mean of A B under the normalized integrand: all pairs (a, b)
are one matrix product. Counts are integers, hence every Phi comes from one table. Queries with the
same votes up to renaming of classes are computed once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import erfcx, log_ndtr

from evenhand._checks import one_of, positive
from evenhand.privacy.local.cost import DIRECTIONS, LocalCost, checked_votes
from evenhand.privacy.renyi import ORDERS, checked_orders
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray

_REACH: Final = 9.0  # of the grid on both sides of a mode, in sigma; exp(-9**2 / 2) is 3e-18
_REACH_VOTES: Final = 3.0  # and in votes: a moved vote shifts the mode by at most 2
_SAFE: Final = 30.0  # above exp(30), a power sum is done in log space
_CHUNK: Final = 1 << 19  # numbers per work array: fits the cache of one core


def exact_local_rdp(
    counts: ArrayLike,
    sigma: float,
    orders: ArrayLike = ORDERS,
    *,
    direction: str = "both",
    neighbors: str = "replace one",
) -> LocalCost:
    """Return the exact Renyi divergence of each GNMax answer, at worst over one moved vote.

    Parameters
    ----------
    counts : array of shape (n_queries, n_classes)
        Votes per class.
    sigma : float
        Standard deviation of the continuous Gaussian noise on each count, in votes; at least 0.1.
    orders : array of shape (n_orders,)
        Greater than 1 and increasing.
    direction : {"both", "forward", "reverse"}
        Of the divergence between the answer at these votes and at a neighbor's; "both" takes the
        larger at each order, query by query.
    neighbors : str
        The relation between data sets, under which one vote moves.

    Returns
    -------
    LocalCost
        One row per query.

    References
    ----------
    Papernot et al. 2018 compute the bound of ``theorem6`` instead, which is larger and holds in one
    direction.

    Examples
    --------
    >>> exact_local_rdp([[240, 10], [130, 120]], sigma=40.0).total()
    <private>
    """
    votes, grid = checked_votes(counts), checked_orders(orders)
    sigma = positive("sigma", sigma)
    if sigma < 0.1:
        raise ValueError(
            f"sigma must be at least 0.1 votes here, got {sigma}: below, an answer hides nothing. "
            f"Use a larger sigma."
        )
    one_of("direction", direction, DIRECTIONS)
    # Renaming classes changes no divergence: compute every distinct sorted histogram once.
    distinct, which = np.unique(-np.sort(-votes, axis=1), axis=0, return_inverse=True)
    rdp = np.zeros((len(distinct), grid.size))
    if len(distinct):
        lattice = _Lattice.of(distinct, sigma)
        n_classes = votes.shape[1]
        rows = max(1, _CHUNK // (n_classes**2 * max(lattice.nodes.size, grid.size)))
        for start in range(0, len(distinct), rows):
            part = slice(start, start + rows)
            rdp[part] = _worst_divergence(distinct[part], lattice, grid, direction)
    return LocalCost(rdp[which.reshape(-1)], orders=grid, direction=direction, neighbors=neighbors)


@dataclass(frozen=True, kw_only=True)
class _Lattice:
    """The points ``k / per_vote``, k integer, with log Phi(k / per_vote / sigma) in a table."""

    sigma: float
    per_vote: int
    nodes: IntArray  # offsets of one grid from its center, in lattice points
    first: int  # the lattice point of table[0]
    table: FloatArray

    @staticmethod
    def of(votes: IntArray, sigma: float) -> _Lattice:
        # Up to K factors fall off together at a node: their product is sqrt(K) times narrower.
        per_sigma = 8.0 * max(1.0, math.sqrt(votes.shape[1] / 10.0))
        per_vote = math.ceil(per_sigma / sigma)
        step = max(1, math.floor(sigma * per_vote / per_sigma))
        reach = math.ceil((_REACH * sigma + _REACH_VOTES) * per_vote / step)
        nodes = np.arange(-reach, reach + 1, dtype=np.int64) * step
        # Modes lie between n_j and _above(n); the differences x - n_i stay within:
        far = int(votes.max() - votes.min()) + math.ceil(_above(votes.shape[1], sigma)) + 2
        far = far * per_vote + int(nodes[-1])
        table: FloatArray = log_ndtr(np.arange(-far, far + 1) / (per_vote * sigma))
        return _Lattice(sigma=sigma, per_vote=per_vote, nodes=nodes, first=-far, table=table)


def _above(n_classes: int, sigma: float) -> float:
    """Return how far above the largest count a mode can lie, in votes."""
    return sigma * (math.sqrt(2.0 * math.log(n_classes)) + 1.0)


def _modes(votes: IntArray, sigma: float) -> IntArray:
    """Return the mode of each integrand, rounded to a vote: shape (n, j), by bisection."""
    n = votes.astype(np.float64)
    low, high = n.copy(), np.broadcast_to(n.max(axis=1, keepdims=True), n.shape)
    high = high + _above(n.shape[1], sigma)
    others = ~np.eye(n.shape[1], dtype=bool)
    scale = math.sqrt(2.0 / math.pi) / sigma
    while (high - low).max() > 0.25:
        x = 0.5 * (low + high)
        z = (x[:, :, np.newaxis] - n[:, np.newaxis, :]) / sigma
        hazard = scale / erfcx(z / -math.sqrt(2.0))  # phi / Phi
        rising = (hazard * others).sum(axis=2) > (x - n) / sigma**2
        low, high = np.where(rising, x, low), np.where(rising, high, x)
    modes: IntArray = np.rint(0.5 * (low + high)).astype(np.int64)
    return modes


def _worst_divergence(
    votes: IntArray, lattice: _Lattice, orders: FloatArray, direction: str
) -> FloatArray:
    """Return the largest divergence over all neighbors, shape (n, n_orders)."""
    log_p, log_ratio = _log_probabilities(votes, lattice)
    row, a, b = np.nonzero(_neighbors(votes))
    log_p = log_p[row]
    log_p2 = log_p - log_ratio[row, :, a, b]
    worst = np.zeros((len(votes), orders.size))
    if row.size == 0:  # no votes at all
        return worst
    divergence = np.zeros((row.size, orders.size))
    if direction in ("forward", "both"):
        divergence = _divergence(log_p, log_p2, orders)
    if direction in ("reverse", "both"):
        np.maximum(divergence, _divergence(log_p2, log_p, orders), out=divergence)
    with_votes, start = np.unique(row, return_index=True)
    worst[with_votes] = np.maximum.reduceat(divergence, start, axis=0)
    return worst


def _neighbors(votes: IntArray) -> BoolArray:
    """Return [n, a, b]: a vote can move from class a to b, one pair for each pair of counts.

    Rows of ``votes`` fall. Classes of equal counts give the same divergence, so a and b are the
    first classes with their counts; if the counts are equal, b is the second.
    """
    n_classes = votes.shape[1]
    first = np.ones(votes.shape, dtype=bool)
    first[:, 1:] = votes[:, 1:] != votes[:, :-1]
    twin = np.eye(n_classes, k=1, dtype=bool) & ~first[:, np.newaxis, :]
    from_a = (first & (votes > 0))[:, :, np.newaxis]
    pairs: BoolArray = from_a & (first[:, np.newaxis, :] | twin) & ~np.eye(n_classes, dtype=bool)
    return pairs


def _log_probabilities(votes: IntArray, lattice: _Lattice) -> tuple[FloatArray, FloatArray]:
    """Return log P(j wins), shape (n, j), and log P/P' of each neighbor, shape (n, j, a, b)."""
    sigma, unit, table = lattice.sigma, lattice.per_vote, lattice.table
    up = table[unit:] - table[:-unit]  # log Phi(k + 1 vote) / Phi(k)
    same = np.arange(votes.shape[1])

    modes = _modes(votes, sigma)
    centers = unit * (modes[:, :, np.newaxis] - votes[:, np.newaxis, :]) - lattice.first
    at = centers[..., np.newaxis] + lattice.nodes  # (n, j, i, node): where x - n_i stands
    own = (at[:, same, same] + lattice.first) / unit  # x - n_j, in votes

    log_phi = table[at]
    log_phi[:, same, same] = own**2 / (-2.0 * sigma**2)
    log_f = log_phi.sum(axis=2)
    peak = log_f.max(axis=2, keepdims=True)
    weight = np.exp(log_f - peak)
    mass = weight.sum(axis=2, keepdims=True)
    step = float(lattice.nodes[1] - lattice.nodes[0]) / (unit * sigma * math.sqrt(2.0 * math.pi))
    log_p: FloatArray = (np.log(mass * step) + peak)[:, :, 0]
    weight /= mass

    log_a, log_b = up[at], -up[at - unit]
    log_a[:, same, same] = (2.0 * own + 1.0) / (-2.0 * sigma**2)
    log_b[:, same, same] = (2.0 * own - 1.0) / (2.0 * sigma**2)
    middle = lattice.nodes.size // 2
    mid_a, mid_b = log_a[..., middle, np.newaxis], log_b[..., middle, np.newaxis]
    factor_a = np.exp(log_a - mid_a) * weight[:, :, np.newaxis, :]
    factor_b = np.exp(log_b - mid_b)
    mean = np.matmul(factor_a, factor_b.swapaxes(2, 3))
    log_ratio: FloatArray = -(np.log(mean) + mid_a + mid_b.swapaxes(2, 3))
    return log_p, log_ratio


def _divergence(log_p: FloatArray, log_p2: FloatArray, orders: FloatArray) -> FloatArray:
    """Return D(P || P') for rows of log probabilities, shape (rows, n_orders).

    ``sum of P^a P'^(1-a) - 1`` is summed from the unlikely classes up, so that a divergence of
    1e-30 keeps its digits. Where the sum would overflow it is done in log space.
    """
    t = orders - 1.0
    rows = np.arange(len(log_p))
    top = log_p.argmax(axis=1)
    q, top_p = _rest_and_top(log_p, top)
    _, top_p2 = _rest_and_top(log_p2, top)
    log_ratio = log_p - log_p2
    log_ratio[rows, top] = top_p - top_p2

    excess = np.exp(top_p)[:, np.newaxis] * np.expm1(
        # The top probability is at least 1/K: what is cut off here is summed in log space below.
        np.minimum(np.multiply.outer(log_ratio[rows, top], t), 10.0 * _SAFE)
    )
    excess -= q[:, np.newaxis]
    for shift in range(1, log_p.shape[1]):
        j = (top + shift) % log_p.shape[1]
        power = np.multiply.outer(log_ratio[rows, j], t)
        power += log_p[rows, j, np.newaxis]
        excess += np.exp(np.minimum(power, _SAFE, out=power), out=power)
    divergence: FloatArray = np.log1p(np.maximum(excess, 0.0)) / t

    large = np.flatnonzero((log_p + t[-1] * log_ratio).max(axis=1) > _SAFE)
    peak = np.full((large.size, t.size), -np.inf)
    for p, ratio in zip(log_p[large].T, log_ratio[large].T, strict=True):
        np.maximum(peak, np.multiply.outer(ratio, t) + p[:, np.newaxis], out=peak)
    row, order = np.nonzero(peak > _SAFE)
    peak, row = peak[row, order], large[row]
    scaled = np.exp(log_p[row] + log_ratio[row] * t[order, np.newaxis] - peak[:, np.newaxis])
    divergence[row, order] = (peak + np.log(scaled.sum(axis=1))) / t[order]
    return divergence


def _rest_and_top(log_p: FloatArray, top: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of all classes but ``top``, and log of the probability of ``top``."""
    rows = np.arange(len(log_p))
    probabilities = np.exp(log_p)
    probabilities[rows, top] = 0.0
    rest = probabilities.sum(axis=1)
    # Near 1, the complement keeps digits that the direct value has lost.
    return rest, np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), log_p[rows, top])

"""The worst-case cost of one released bit: below that of the noisy count it was read from.

Notes
-----
The bit ``1[n + N(0, sigma^2) > t]`` is a coin with probability ``Phi((n - t) / sigma)``. When n
moves by 1, the divergence between the two coins depends on the margin ``m = n - t`` alone; here it
is taken at the worst m, over all real numbers, and so for every threshold, whole or not.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import log_ndtr

from evenhand._checks import at_least, positive
from evenhand.privacy.renyi import ORDERS, RenyiCurve, checked_orders
from evenhand.typing import ArrayLike, FloatArray

_GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0
_ROUND_UP: Final = 1.0 + 1e-9  # covers rounding and the last step of the search


def one_bit_rdp(
    sigma: float,
    orders: ArrayLike = ORDERS,
    max_count: int | None = None,
    *,
    neighbors: str = "replace one",
) -> RenyiCurve:
    """Return the exact worst-case Renyi cost of one bit ``1[n + N(0, sigma^2) > t]``.

    At low orders it is ``2/pi`` of the cost ``order / (2 sigma^2)`` of the noisy count itself; at
    high orders it approaches that cost.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in units of the largest move of n.
    orders : array of shape (n_orders,)
        Greater than 1 and increasing.
    max_count : int, optional
        If n and t both lie in [0, max_count], margins beyond it need not be considered; this helps
        orders above max_count only. By default every margin counts.
    neighbors : str
        The relation between data sets, under which n moves by at most 1.

    Privacy
    -------
    Both directions, all real thresholds: an upper bound for whatever t is. It prices

    - the bit of a noisy threshold, any number of classes: ``one_bit_rdp(sigma)``;
    - the answer of GNMax with *two* classes, noise sigma on both counts: their difference moves by
      2 under noise of ``sigma sqrt(2)``, hence ``one_bit_rdp(sigma / sqrt(2))``, about ``2/pi`` of
      the ``order / sigma^2`` of Papernot et al. 2018, Proposition 8.

    It does not price an answer among three or more classes.

    Examples
    --------
    As a share of the cost of the noisy count, from 2/pi to almost 1:

    >>> cost = one_bit_rdp(40.0, orders=[1.5, 128.0, 4096.0])
    >>> [round(float(share), 3) for share in cost.rdp / (cost.orders / (2 * 40.0**2))]
    [0.637, 0.775, 0.999]
    """
    sigma, grid = positive("sigma", sigma), checked_orders(orders)
    reach = math.inf if max_count is None else float(at_least("max_count", max_count, 1))
    # One direction is the mirror image of the other (m -> -1 - m, bits swapped), so it is enough to
    # look at D(n one higher || n). A small probability that grows weighs most: the worst margin is
    # negative, and beyond -order the divergence falls.
    near = np.linspace(-4.0, 2.0, 121) * sigma
    far = -np.geomspace(4.0 * sigma, 2.0 * grid[-1] + 8.0 * sigma, 200)
    margins = np.unique(np.clip(np.concatenate([near, far, [-0.5]]), -reach, reach - 1.0))
    best = _divergence(margins, grid[:, np.newaxis], sigma).argmax(axis=1)
    low = margins[np.maximum(best - 1, 0)]
    high = margins[np.minimum(best + 1, margins.size - 1)]
    for _ in range(50):  # golden section: each step keeps .618 of the bracket
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        rises = _divergence(left, grid, sigma) < _divergence(right, grid, sigma)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    rdp = np.maximum(_divergence(low, grid, sigma), _divergence(high, grid, sigma)) * _ROUND_UP
    # Reading a bit off a noisy count cannot cost more than the count.
    return RenyiCurve(grid, np.minimum(rdp, grid / (2.0 * sigma**2)), neighbors)


def _divergence(margin: FloatArray, order: FloatArray, sigma: float) -> FloatArray:
    """Return the divergence of the coins ``Phi((m + 1)/sigma)`` and ``Phi(m/sigma)``."""
    t = order - 1.0
    up, stay = (margin + 1.0) / sigma, margin / sigma
    yes, no = log_ndtr(up), log_ndtr(-up)
    yes2, no2 = log_ndtr(stay), log_ndtr(-stay)
    log_sum = np.logaddexp(yes + t * (yes - yes2), no + t * (no - no2))
    excess = _bend(t, yes, yes2) + _bend(t, no, no2)
    divergence: FloatArray = np.where(log_sum < 1.0, np.log1p(excess), log_sum) / t
    return divergence


def _bend(t: FloatArray, log_p: FloatArray, log_p2: FloatArray) -> FloatArray:
    """Return ``p (p/p')^t - p + t (p' - p)``, at least 0.

    The last term vanishes over both sides of the coin (probabilities sum to 1) and removes what is
    linear in ``r = log(p/p')``: the two bends are ``sum of p^a p'^(1-a) - 1`` without cancellation.
    """
    r, p = log_p - log_p2, np.exp(log_p)
    tr = t * r
    # p (expm1(t r) + t expm1(-r)), from the second power on
    series = p * sum((t**k + t * (-1) ** k) * r**k / math.factorial(k) for k in range(2, 8))
    direct = np.exp(np.minimum(log_p + tr, 2.0)) - p + t * (np.exp(log_p2) - p)  # above 2: log_sum
    bend: FloatArray = np.where(np.maximum(np.abs(tr), np.abs(r)) < 0.01, series, direct)
    return bend

"""What a bound on unfairness can say: noisy group attributes, and the noise of a vote.

Two results of SF-PATE in a form that can be used. Theorem 1 bounds what is lost when a model is
made fair for noisy group attributes A~ in place of the true A; its factor can be made smaller
(``alpha_from_eta``), but its eta is a supremum over all (x, y), which nobody observes. A table of
counts of (A, A~) is enough for a bound of another kind (``attribute_certificate``). Theorem 2
bounds the disparity of a vote by the distance of the *joint* distributions of all teachers' votes.
That is true, and silent about fair teachers, since teachers of nearly equal rates can vote far
apart. What the noisy vote does with given counts is known exactly (``vote_rates``).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from evenhand import _checks
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.tally import ratio
from evenhand.typing import ArrayLike, FloatArray


def alpha_from_eta(
    alpha: float,
    eta: float,
    share: float,
    noisy_share: float,
    *,
    bound: float = 1.0,
    signed: bool = False,
) -> float:
    """Fairness violation for the true attribute of a model that is ``alpha``-fair for a noisy one.

    ``alpha' = alpha + eta B / max(p, p~)`` for one group, and twice the second term where the
    fairness function may be negative. SF-PATE prints ``2 eta B / (p p~)``.

    Parameters
    ----------
    alpha : float
        Largest ``|E[h | A~ = a] - E[h]|``, at least 0.
    eta : float
        Largest ``|P(A~ = a | x, y) - P(A = a | x, y)|`` over **all** (x, y), in [0, 1]. A supremum:
        no sample bounds it.
    share, noisy_share : float
        p = P(A = a) and p~ = P(A~ = a), in (0, 1]. Over several groups, take the smallest
        ``max(p, p~)`` of a group, so pass the shares of that group.
    bound : float
        B, greater than 0: h lies in [0, B], or in [-B, B] with ``signed``.
    signed : bool, default False
        Whether h can be negative.

    Returns
    -------
    float
        Upper bound on ``|E[h | A = a] - E[h]|``, for h a function of (x, y). No smaller factor
        of eta holds in general.

    References
    ----------
    SF-PATE, Theorem 1. With p >= p~ (else exchange them) and c = E[h | A~ = a],
    ``E[h | A = a] - c = E[(h - c)(f - f~)] / p`` where f, f~ are the two conditional probabilities,
    and ``|h - c|`` is at most B for h in [0, B].

    Examples
    --------
    >>> alpha_from_eta(0.02, 0.05, 0.3, 0.25)  # as printed: 1.353
    0.18666666666666668
    """
    _checks.non_negative("alpha", alpha)
    _checks.closed_unit("eta", eta)
    for name, value in (("share", share), ("noisy_share", noisy_share)):
        _checks.closed_unit(name, value)
        if value == 0:
            raise ValueError(f"{name} must be above 0, got 0: an empty group has no expectation.")
    reach = _checks.positive("bound", bound) * (2.0 if signed else 1.0)
    return alpha + eta * reach / max(share, noisy_share)


def attribute_certificate(table: ArrayLike, *, bound: float = 1.0) -> FloatArray:
    """Bound ``|E[h | A = a] - E[h | A~ = a]|`` from a table of true and noisy attributes.

    ``B (1 - P(A = a, A~ = a) / max(p, p~))``: what the records of group a, and those that are
    said to be of it, do not share.

    Parameters
    ----------
    table : array-like of float, shape (n_groups, n_groups)
        Counts or probabilities of (true group, noisy group), at least 0.
    bound : float
        h lies in [0, B]. For h in [-B, B] pass ``2 * B``.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        In [0, B], 0 is best; NaN for a group that has no record in truth or none in noise. For
        *any* h, also one that reads A or A~, and for the distribution of this very table;
        attained. A model that is alpha-fair for A~ is ``alpha`` plus the largest of these fair
        for A.

    References
    ----------
    A usable stand-in for SF-PATE's Theorem 1. Both conditional distributions hold the records with
    ``A = A~ = a``, with weights 1/p and 1/p~, so they overlap by ``P(A = A~ = a) / max(p, p~)``.

    Examples
    --------
    >>> attribute_certificate([[90, 10], [5, 95]]).round(3)
    array([0.1  , 0.095])
    """
    counts = _square(table)
    _checks.positive("bound", bound)
    both, true, noisy = np.diagonal(counts), counts.sum(axis=1), counts.sum(axis=0)
    shared = ratio(both, np.maximum(true, noisy))
    out: FloatArray = np.where((true > 0) & (noisy > 0), bound * (1.0 - shared), np.nan)
    return out


def noisy_certificate(
    noisy_table: ArrayLike,
    *,
    sigma: float,
    level: float,
    bound: float = 1.0,
    population: bool = True,
) -> FloatArray:
    """Upper bound of ``attribute_certificate`` from counts that carry noise.

    Parameters
    ----------
    noisy_table : array-like of float, shape (n_groups, n_groups)
        Counts of (true group, noisy group), each plus independent Gaussian or discrete Gaussian
        noise of scale ``sigma``; 0 for exact counts. May be negative.
    sigma : float
        At least 0.
    level : float
        Probability, at least, that all groups' bounds hold together. In (0, 1).
    bound : float
        h lies in [0, B].
    population : bool, default True
        Bound the certificate of the distribution from which the records of the table were drawn
        independently. False: of the records of the table themselves.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        In [0, B]. B where the noise leaves nothing to say.

    Notes
    -----
    The certificate is one minus the smaller of two rates, ``P(A~=a | A=a)`` and ``P(A=a | A~=a)``.
    Each group needs lower ends of one count and upper ends of two sums of m - 1 counts; a sum of j
    noises lies beyond ``sigma sqrt(2 j ln(1/error))`` with probability at most ``error`` (both
    noises are sub-Gaussian: Canonne, Kamath and Steinke 2020, Corollary 17). With ``population``
    half of the error goes to the noise and half to exact binomial limits of the two rates.
    Bonferroni over everything.
    """
    counts = np.asarray(noisy_table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not np.isfinite(counts).all():
        raise ValueError(
            f"noisy_table must be finite, of shape (n_groups, n_groups), got {counts.shape}."
        )
    m = len(counts)
    _checks.non_negative("sigma", sigma)
    _checks.positive("bound", bound)
    error = 1.0 - _checks.open_unit("level", level)
    parts = 2 if population and sigma else 1
    reach = sigma * math.sqrt(2.0 * math.log(3 * m * parts / error)) if sigma else 0.0
    both = np.floor(np.maximum(0.0, np.diagonal(counts) - reach))
    shared = np.ones(m)
    for axis in (0, 1):
        others = counts.sum(axis=axis) - np.diagonal(counts) + reach * math.sqrt(m - 1)
        total = both + np.ceil(np.maximum(0.0, others))
        if population:
            # One-sided: the two-sided error of the same limit is twice as large.
            low, _ = clopper_pearson(both, total, error=min(1.0, 2.0 * error / (2 * m * parts)))
        else:
            low = np.nan_to_num(ratio(both, total))
        shared = np.minimum(shared, low)
    return bound * (1.0 - shared)


def vote_rates(counts: ArrayLike, *, sigma: float) -> FloatArray:
    """Probability of each class to win a vote under Gaussian noise on the counts.

    For two classes ``Phi((2 n1 - K) / (sigma sqrt 2))`` with K teachers; for more, by quadrature.

    Parameters
    ----------
    counts : array-like of int, shape (n_queries, n_classes)
        Votes per class. **Private where the teachers are**: then so is the result.
    sigma : float
        Standard deviation of the noise on each count, in votes; 0 for the plain winner, a tie
        shared equally.

    Returns
    -------
    ndarray of float64, shape (n_queries, n_classes)
        Rows sum to 1. For continuous noise; discrete noise ties with a probability of about
        ``1 / (2 sigma sqrt(pi))`` at equal counts, and the first class gets the whole of it.

    Notes
    -----
    The mean over the queries of a group is the expected rate of the noisy vote in that group: the
    exact quantity that SF-PATE's Theorem 2 bounds by a distance of joint distributions.

    Examples
    --------
    >>> vote_rates([[126, 124]], sigma=40.0).round(4)
    array([[0.5141, 0.4859]])
    """
    votes = _checks.histograms(counts)
    _checks.non_negative("sigma", sigma)
    if sigma == 0:
        top = votes == votes.max(axis=1, keepdims=True)
        return ratio(top, top.sum(axis=1, keepdims=True))
    if votes.shape[1] == 2:
        z = (votes[:, 1] - votes[:, 0]) / (sigma * math.sqrt(2.0))
        return np.stack([ndtr(-z), ndtr(z)], axis=1)
    scaled = votes / sigma
    # A noise beyond 9 sigma has a probability of 1e-19; the trapezoidal rule is exact to rounding.
    nodes = np.linspace(-9.0, 9.0, 361)
    probabilities = np.empty(votes.shape)
    for j in range(votes.shape[1]):
        at = nodes[None, :] + scaled[:, j, None]
        log_wins = np.broadcast_to(nodes**2 / -2.0, at.shape).copy()
        for i in range(votes.shape[1]):
            if i != j:
                log_wins += log_ndtr(at - scaled[:, i, None])
        probabilities[:, j] = np.exp(log_wins).sum(axis=1)
    return ratio(probabilities, probabilities.sum(axis=1, keepdims=True))


def _square(table: ArrayLike) -> FloatArray:
    counts = _checks.matrix("table", table)
    if counts.shape[0] != counts.shape[1] or not counts.size:
        raise ValueError(
            f"table must have one row per true group and one column per noisy group, both in the "
            f"same order; got shape {counts.shape}."
        )
    if (counts < 0).any():
        raise ValueError(
            f"table must be at least 0, got {counts.min()}. For counts that carry noise use "
            f"noisy_certificate."
        )
    return counts

"""An attack that can convict: lower bounds on epsilon and on mu from what was really released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.stats import beta, norm

from evenhand._checks import closed_unit, open_unit
from evenhand.typing import ArrayLike, FloatArray, IntArray

MOST_THRESHOLDS: Final = 200
_LEAST_SAMPLES: Final = 100


def audit_epsilon_lower_bound(
    samples0: ArrayLike, samples1: ArrayLike, *, delta: float, confidence: float
) -> float:
    """Return an epsilon that the mechanism exceeds or equals, with the given confidence.

    Parameters
    ----------
    samples0, samples1 : array of shape (n,)
        One number per independent run on a data set, and on a neighbor of it: the released value,
        or any score computed from what was released.
    delta : float
        Of the claim, in [0, 1).
    confidence : float
        Probability, over runs, that the bound is right; strictly between 0 and 1.

    Returns
    -------
    float
        In nats, at least 0. A mechanism whose claim is smaller than this does not keep it.

    Notes
    -----
    If a release is (epsilon, delta)-private, ``Pr[S] <= exp(epsilon) Pr'[S] + delta`` for each
    event. The first half of the samples chooses the event, a threshold on the score; the second
    half bounds both probabilities (Clopper and Pearson 1934). So the choice costs no confidence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(0, 1, 20_000), rng.normal(1, 1, 20_000)
    >>> found = audit_epsilon_lower_bound(x, y, delta=1e-2, confidence=0.999)
    >>> 1.5 < found < 2.318  # epsilon of mu = 1 at this delta
    True
    """
    delta = closed_unit("delta", delta)

    def epsilon(low: FloatArray, high: FloatArray) -> FloatArray:
        shown = low > delta
        bound: FloatArray = np.where(
            shown, np.log(np.where(shown, low - delta, 1.0) / high), -np.inf
        )
        return bound

    return _lower_bound(samples0, samples1, epsilon, confidence)


def audit_mu_lower_bound(samples0: ArrayLike, samples1: ArrayLike, *, confidence: float) -> float:
    """Return a mu of Gaussian DP that the mechanism exceeds or equals, with this confidence.

    Parameters
    ----------
    samples0, samples1, confidence
        As for ``audit_epsilon_lower_bound``.

    Returns
    -------
    float
        At least 0. A mechanism that claims ``mu``-Gaussian DP for a smaller mu does not keep it.

    Notes
    -----
    If a release is mu-Gaussian-DP, ``Pr[S] <= Phi(Phi^-1(Pr'[S]) + mu)`` for each event (Dong, Roth
    and Su 2022, Definition 4), so each event shows ``mu >= Phi^-1(Pr[S]) - Phi^-1(Pr'[S])``. An
    event of probability one half shows as much as a rare one. A bound on epsilon at a delta of 1e-5
    must see events that rare: no affordable number of runs convicts half the noise by it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(0, 1, 1000), rng.normal(1, 1, 1000)
    >>> 0.5 < audit_mu_lower_bound(x, y, confidence=0.999) < 1.0
    True
    """

    def mu(low: FloatArray, high: FloatArray) -> FloatArray:
        bound: FloatArray = norm.ppf(low) - norm.ppf(high)
        return bound

    return _lower_bound(samples0, samples1, mu, confidence)


Bound = Callable[[FloatArray, FloatArray], FloatArray]
"""From limits of an event's two probabilities, at least and at most, to the parameter."""


def _lower_bound(
    samples0: ArrayLike, samples1: ArrayLike, bound: Bound, confidence: float
) -> float:
    """Choose an event on every second sample and judge it on the others."""
    wrong = (1.0 - open_unit("confidence", confidence)) / 2.0  # one share for each probability
    x, y = _scores("samples0", samples0), _scores("samples1", samples1)
    values = np.unique(np.concatenate([x[::2], y[::2]]))
    # Midway: between two sides that lie apart, a threshold at a value has others just beyond it.
    chosen = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    if chosen.size > MOST_THRESHOLDS:
        chosen = chosen[np.linspace(0, chosen.size - 1, MOST_THRESHOLDS).astype(int)]
    first = _bounds(x[::2], y[::2], chosen, bound, wrong)
    which, threshold = np.unravel_index(first.argmax(), first.shape)
    second = _bounds(x[1::2], y[1::2], chosen[[threshold]], bound, wrong)
    return max(0.0, float(second[which, 0]))


def _bounds(
    x: FloatArray, y: FloatArray, thresholds: FloatArray, bound: Bound, wrong: float
) -> FloatArray:
    """Bound the parameter from below by four events per threshold: shape (4, n_thresholds)."""
    n, m = x.size, y.size
    reach_x = n - np.searchsorted(np.sort(x), thresholds, side="left")
    reach_y = m - np.searchsorted(np.sort(y), thresholds, side="left")
    pairs = [
        (reach_x, n, reach_y, m),
        (reach_y, m, reach_x, n),
        (n - reach_x, n, m - reach_y, m),
        (m - reach_y, m, n - reach_x, n),
    ]
    return np.array([bound(*_limits(*pair, wrong)) for pair in pairs])


def _limits(
    hits: IntArray, n: int, others: IntArray, m: int, wrong: float
) -> tuple[FloatArray, FloatArray]:
    """Two Clopper-Pearson limits: one probability is at least, the other at most."""
    low = np.where(hits > 0, beta.ppf(wrong, np.maximum(hits, 1), n - hits + 1), 0.0)
    high = np.where(others < m, beta.ppf(1 - wrong, others + 1, np.maximum(m - others, 1)), 1.0)
    return low, high


def _scores(name: str, samples: ArrayLike) -> FloatArray:
    scores = np.asarray(samples, dtype=np.float64)
    if scores.ndim != 1 or scores.size < _LEAST_SAMPLES or not np.isfinite(scores).all():
        raise ValueError(
            f"{name} must be at least {_LEAST_SAMPLES} finite numbers in one dimension, got shape "
            f"{scores.shape}."
        )
    return scores

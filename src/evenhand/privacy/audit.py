"""An attack that can convict: a lower bound on epsilon from what a mechanism really released."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.stats import beta

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
        Chance, over runs, that the bound is right; strictly between 0 and 1.

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
    wrong = (1.0 - open_unit("confidence", confidence)) / 2.0  # one share for each probability
    x, y = _scores("samples0", samples0), _scores("samples1", samples1)
    chosen = np.unique(np.concatenate([x[::2], y[::2]]))
    if chosen.size > MOST_THRESHOLDS:
        chosen = chosen[np.linspace(0, chosen.size - 1, MOST_THRESHOLDS).astype(int)]
    first = _bounds(x[::2], y[::2], chosen, delta, wrong)
    which, threshold = np.unravel_index(first.argmax(), first.shape)
    second = _bounds(x[1::2], y[1::2], chosen[[threshold]], delta, wrong)
    return max(0.0, float(second[which, 0]))


def _bounds(
    x: FloatArray, y: FloatArray, thresholds: FloatArray, delta: float, wrong: float
) -> FloatArray:
    """Bound epsilon from below by four events per threshold: shape (4, n_thresholds)."""
    n, m = x.size, y.size
    reach_x = n - np.searchsorted(np.sort(x), thresholds, side="left")
    reach_y = m - np.searchsorted(np.sort(y), thresholds, side="left")
    pairs = [
        (reach_x, n, reach_y, m),
        (reach_y, m, reach_x, n),
        (n - reach_x, n, m - reach_y, m),
        (m - reach_y, m, n - reach_x, n),
    ]
    bounds: FloatArray = np.array([_bound(*pair, delta, wrong) for pair in pairs])
    return bounds


def _bound(
    hits: IntArray, n: int, others: IntArray, m: int, delta: float, wrong: float
) -> FloatArray:
    """``log((low - delta) / high)`` of two Clopper-Pearson bounds, or minus infinity."""
    low = np.where(hits > 0, beta.ppf(wrong, np.maximum(hits, 1), n - hits + 1), 0.0)
    high = np.where(others < m, beta.ppf(1 - wrong, others + 1, np.maximum(m - others, 1)), 1.0)
    shown = low > delta
    bound: FloatArray = np.where(shown, np.log(np.where(shown, low - delta, 1.0) / high), -np.inf)
    return bound


def _scores(name: str, samples: ArrayLike) -> FloatArray:
    scores = np.asarray(samples, dtype=np.float64)
    if scores.ndim != 1 or scores.size < _LEAST_SAMPLES or not np.isfinite(scores).all():
        raise ValueError(
            f"{name} must be at least {_LEAST_SAMPLES} finite numbers in one dimension, got shape "
            f"{scores.shape}."
        )
    return scores

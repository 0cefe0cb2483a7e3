"""How sure odds of labels are: one factor on all of them, by one noisy sum over the records.

Gradients that are clipped leave odds too sure of themselves: a label that a row makes unlikely has
a long gradient when it comes, of which a part is cut, and a short one, which is not, when it does
not. Which rows come first stays nearly right, and one number sets the rest right (temperature
scaling: Platt 1999, Guo et al. 2017): log-odds l of a row become t l, for 1 / t the temperature.

For one number nothing need be cut by the label. A record weighs w(x) = min(1, c / (max l - min l)),
by its row alone, so that

    g(t) = sum_i w(x_i) (l_i[y_i] - E[l_i[y]]),   y ~ softmax(t l_i),

which falls in t, is 0 in the mean where the model is right, whatever c (conditionally unbiased,
bounded influence: Künsch, Stefanski and Carroll 1989); and a record adds at most c. It is released
at a few t at once, made to fall by isotonic regression, and its root read off. That is drawn
towards 1 as far as the noise explains how far from 1 it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from sklearn.isotonic import IsotonicRegression

from evenhand.generators.aggregators import ClippedSums
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.typing import FloatArray, IntArray

TEMPERATURE: Final = "temperature of the odds of labels"

_FACTORS: Final = np.geomspace(0.25, 1.25, 6)  # ``reproductions/table_budgets.py --choose``
_USUAL: Final = 0.35  # standard deviation of factors from 1, before anything is known


def normed(logs: FloatArray) -> FloatArray:
    """Return logarithms of chances of labels, shape (n, n_labels), of these up to a constant."""
    chances: FloatArray = logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)
    return chances


def factor_of_odds(
    logs: FloatArray,
    labels: IntArray,
    of_drawn: FloatArray,
    plan: BudgetPlan,
    *,
    n: float,
    per_unit: int,
) -> float:
    """Release by what log-odds are to be multiplied.

    Parameters
    ----------
    logs : ndarray, shape (n, n_labels)
        Of records, by what was released before.
    labels : ndarray of int64, shape (n,)
        Their own.
    of_drawn : ndarray, shape (m, n_labels)
        Of rows that are drawn, and free: they set c, to the usual range of log-odds, and how g
        falls.
    plan : BudgetPlan
        Of which the share ``TEMPERATURE`` is spent.
    n : float
        Expected number of the records, as released.
    per_unit : int
        Records of one unit, at most.

    Returns
    -------
    float
        From .25 to 1.25. A smaller one makes labels less sure.

    Privacy
    -------
    Sensitivity : 1 for adding or removing a record, in units of c times the root of the number of
        factors, beyond which nothing is added.
    Cost : one Gaussian release, of the share of the plan.
    """
    clip = max(float(np.median(np.ptp(of_drawn, axis=1))), 1e-3)
    longest = clip * len(_FACTORS) ** 0.5
    own = logs[np.arange(len(labels)), labels]
    apart = [own - (np.exp(normed(t * logs)) * logs).sum(axis=1) for t in _FACTORS]
    sums = ClippedSums(clip_norm=1.0, per_unit=per_unit)
    vectors = np.stack(apart, axis=1) * (_weights(logs, clip) / longest)[:, None]
    released = plan.release(sums, sums.total(vectors), TEMPERATURE)
    falling = IsotonicRegression(increasing=False).fit_transform(_FACTORS, released.values)
    root = float(np.interp(0.0, falling[::-1], _FACTORS[::-1]))
    usual, noise = _USUAL * n * _slope(of_drawn, clip), float(released.sigma) * longest
    known = float(usual**2 / (usual**2 + noise**2))
    return known * root + 1.0 - known


def _weights(logs: FloatArray, clip: float) -> FloatArray:
    weights: FloatArray = np.minimum(1.0, clip / np.maximum(np.ptp(logs, axis=1), 1e-12))
    return weights


def _slope(logs: FloatArray, clip: float) -> float:
    """Return how fast g falls at 1, per row."""
    chances = np.exp(logs)
    mean = (chances * logs).sum(axis=1)
    variance = (chances * (logs - mean[:, None]) ** 2).sum(axis=1)
    return float((_weights(logs, clip) * variance).mean())

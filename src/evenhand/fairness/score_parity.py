"""How far apart the laws of scores are: generalized demographic parity, with its interval."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.stats import wasserstein_distance

from evenhand import _checks
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.metrics import LEVEL
from evenhand.fairness.notions import REFERENCES
from evenhand.typing import ArrayLike, BoolArray, IntArray

SCORE_NOTION: Final = "generalized-demographic-parity"
"""What the command line and a grid call it. It is not a notion of decisions, so no margin on a
table of counts: only what is trained under a function of the score can aim for it."""


def generalized_demographic_parity(
    probabilities: ArrayLike,
    groups: ArrayLike,
    *,
    n_groups: int,
    reference: str = "rest",
    level: float = LEVEL,
) -> Estimate:
    """Largest Wasserstein distance between the laws of a class's probability; in [0, 1], best 0.

    ``max over z, k of W1(P(k | x) given Z = z, P(k | x) given the reference)``. It bounds the mean
    over all thresholds of the demographic parity gap of that threshold's decisions, and is 0 only
    if every threshold's gap is (SF-PATE, Definition 3).

    Parameters
    ----------
    probabilities : array-like of float, shape (n, n_classes)
        In [0, 1].
    groups : array-like of int, shape (n,)
        Codes.
    n_groups : int
    reference : {"rest", "pairwise", "overall"}
    level : float

    Returns
    -------
    Estimate
        NaN with fewer than two groups that have rows. The interval is finite-sample and wide: an
        empirical law is within ``sqrt(log(2 / e) / (2 n))`` of the true one everywhere but with
        probability e (Dvoretzky, Kiefer, Wolfowitz; Massart's constant), so W1 on [0, 1] moves by
        no more, and all laws that are compared share the error by Bonferroni.

    Examples
    --------
    >>> probabilities = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]] * 500
    >>> found = generalized_demographic_parity(probabilities, [0, 0, 1, 1] * 500, n_groups=2)
    >>> print(found)
    generalized_demographic_parity_rest: 0.5000, 95% interval [0.4064, 0.5936], n = 2000
    """
    p = _checks.matrix("probabilities", probabilities)
    z = _checks.codes("groups", groups, n_groups)
    _checks.same_length(probabilities=p, groups=z)
    _checks.one_of("reference", reference, REFERENCES)
    _checks.open_unit("level", level)
    if p.size and not ((p >= 0.0) & (p <= 1.0 + 1e-9)).all():
        raise ValueError(
            f"probabilities must lie in [0, 1], got values from {p.min():g} to {p.max():g}. Pass "
            f"what predict_proba returns, not scores."
        )
    columns = p[:, 1:] if p.shape[1] == 2 else p
    pairs = _pairs(z, n_groups, reference)
    # Each law that is compared, once: which of the two names it in a pair does not matter.
    laws = {part.tobytes() for pair in pairs for part in pair}
    error = (1.0 - level) / max(1, len(laws) * columns.shape[1])
    value, low, high = math.nan, 0.0, 1.0 if not pairs else 0.0
    for own, other in pairs:
        if not own.any() or not other.any():
            high = 1.0
            continue
        width = _reach(int(own.sum()), error) + _reach(int(other.sum()), error)
        for scores in columns.T:
            apart = float(wasserstein_distance(scores[own], scores[other]))
            value = float(np.fmax(value, apart))
            low, high = max(low, apart - width), min(1.0, max(high, apart + width))
    return Estimate(
        name=f"generalized_demographic_parity_{reference}",
        definition=f"max over z, k of W1 between P(k|x) given Z=z and {_OTHER[reference]}; in "
        f"[0, 1], best 0",
        value=value,
        low=low,
        high=high,
        level=level,
        n=len(z),
        n_empty=n_groups - len(np.unique(z)),
    )


_OTHER: Final = {"rest": "given Z!=z", "pairwise": "given Z=z'", "overall": "of everybody"}


def _pairs(codes: IntArray, n_groups: int, reference: str) -> list[tuple[BoolArray, BoolArray]]:
    """Return which rows are compared with which; nothing with one group."""
    each = [codes == group for group in range(n_groups)]
    if n_groups < 2:
        return []
    if reference == "overall":
        return [(own, np.ones_like(own)) for own in each]
    if reference == "rest" and n_groups > 2:
        return [(own, ~own) for own in each]
    return [(own, each[j]) for i, own in enumerate(each) for j in range(i + 1, n_groups)]


def _reach(n: int, error: float) -> float:
    """Distance of the distribution of n records from the true one, exceeded with ``error``."""
    return math.sqrt(math.log(2.0 / error) / (2.0 * n))

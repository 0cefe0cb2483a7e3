"""How far apart the distributions of scores are: generalized demographic parity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from scipy.stats import wasserstein_distance

from evenhand import _checks
from evenhand._frames import refuse_other_order
from evenhand._words import REFERENCES
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.metrics import LEVEL
from evenhand.fairness.notion import Notion
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class GeneralizedDemographicParity(Notion):
    """Parity at every threshold: the score has nearly the same distribution in each group.

    SF-PATE, Definition 3. What is trained for are moments of the scores, ``h_j = P(Yhat = k) ** j``
    for j up to ``order``; :func:`generalized_demographic_parity` measures how far apart the
    distributions are. It is no notion of decisions, so it has no margin on a table of counts: only
    what is trained under a function of the score can keep it.

    Parameters
    ----------
    margin : float
        Largest difference of a moment that is within the margin, at least 0.
    reference : {"rest", "pairwise", "overall"}
    order : int, default 2
        Number of moments, at least 1.
    """

    order: int = 2

    name: ClassVar[str] = "generalized-demographic-parity"
    words: ClassVar[str] = "the distribution of the score, in Wasserstein distance"
    needs_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.at_least("order", self.order, 1)

    @property
    def on_decisions(self) -> bool:
        """It is about probabilities."""
        return False

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the powers of the compared probabilities, one power after the other."""
        p = probabilities[..., _compared(probabilities)]
        return np.concatenate([p**j for j in range(1, self.order + 1)], axis=-1)

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient in the probabilities."""
        compared = _compared(probabilities)
        p = probabilities[..., compared]
        each = pull.reshape(*pull.shape[:-1], self.order, -1)
        out = np.zeros_like(probabilities)
        out[..., compared] = sum(
            j * p ** (j - 1) * each[..., j - 1, :] for j in range(1, self.order + 1)
        )
        return out

    def among(self, truth: FloatArray) -> FloatArray:
        """Every row counts."""
        return np.ones_like(np.tile(truth[..., _compared(truth)], self.order))


def _compared(probabilities: FloatArray) -> slice:
    """With two classes one probability says all."""
    return slice(1, 2) if probabilities.shape[-1] == 2 else slice(0, None)


def generalized_demographic_parity(
    probabilities: ArrayLike,
    groups: ArrayLike,
    *,
    n_groups: int,
    reference: str = "rest",
    level: float = LEVEL,
    units: ArrayLike | None = None,
) -> Estimate:
    """Largest Wasserstein distance between distributions of a class's probability.

    ``max over z, k of W1(P(k | x) given Z = z, P(k | x) given the reference)``, in [0, 1], best 0.
    It bounds the mean
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
    units : array-like of int, shape (n,), optional
        Codes of whose record a row is. As if all records of a unit had one score, a distribution
        is then taken of ``n**2 / sum m_u**2`` records, with ``m_u`` of each unit.

    Returns
    -------
    Estimate
        NaN with fewer than two groups that have rows. The interval is finite-sample and wide: an
        empirical distribution is within ``sqrt(log(2 / e) / (2 n))`` of the true one everywhere but
        with probability e (Dvoretzky, Kiefer, Wolfowitz; Massart's constant), so W1 on [0, 1]
        moves by no more, and all distributions that are compared share the error by Bonferroni.

    Examples
    --------
    >>> probabilities = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]] * 500
    >>> found = generalized_demographic_parity(probabilities, [0, 0, 1, 1] * 500, n_groups=2)
    >>> print(found)
    generalized_demographic_parity_rest: 0.5000, 95% interval [0.4064, 0.5936], n = 2000
    """
    refuse_other_order(probabilities=probabilities, groups=groups)
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
    whose = np.arange(len(z)) if units is None else _checks.codes("units", units)
    _checks.same_length(groups=z, units=whose)
    pairs = _pairs(z, n_groups, reference)
    # Each distribution that is compared, once: which of the two names it in a pair does not matter.
    distributions = {part.tobytes() for pair in pairs for part in pair}
    error = (1.0 - level) / max(1, len(distributions) * columns.shape[1])
    value, low, high = math.nan, 0.0, 1.0 if not pairs else 0.0
    for own, other in pairs:
        if not own.any() or not other.any():
            high = 1.0
            continue
        width = sum(_reach(whose[part], error) for part in (own, other))
        for scores in columns.T:
            apart = min(1.0, float(wasserstein_distance(scores[own], scores[other])))
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
        n_units=None if units is None else len(np.unique(whose)),
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


def _reach(units: IntArray, error: float) -> float:
    """Distance of the distribution of records (n,) from the true one, exceeded with ``error``."""
    of_units = np.unique(units, return_counts=True)[1]
    n = float(len(units)) ** 2 / float((of_units**2).sum())
    return math.sqrt(math.log(2.0 / error) / (2.0 * n))


def score_distance(scores: ArrayLike, groups: ArrayLike, *, reference: str = "overall") -> float:
    """Return the largest Wasserstein distance between distributions of scores; 0 is best.

    Parameters
    ----------
    scores : array-like of float, shape (n,)
        Of one class, finite.
    groups : array-like, shape (n,)
    reference : {"overall", "rest", "pairwise"}
        What the distribution of a group is compared with: everybody, all others, each other group.

    Examples
    --------
    >>> score_distance([0.25, 0.5, 0.75, 1.0], ["a", "a", "b", "b"], reference="pairwise")
    0.5
    """
    _checks.one_of("reference", reference, ("overall", "rest", "pairwise"))
    refuse_other_order(scores=scores, groups=groups)
    s, z = np.asarray(scores, dtype=np.float64), np.asarray(groups)
    _checks.same_length(scores=s, groups=z)
    parts = {name: s[z == name] for name in np.unique(z)}
    if len(parts) < 2:
        return 0.0
    worst = 0.0
    for name, own in parts.items():
        if reference == "pairwise":
            others = [part for other, part in parts.items() if other != name]
        else:
            others = [s if reference == "overall" else s[z != name]]
        worst = max(worst, *(float(wasserstein_distance(own, other)) for other in others))
    return worst

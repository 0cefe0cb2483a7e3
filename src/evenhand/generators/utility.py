"""How good and how fair a model is that was trained on synthetic records, by real ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand.fairness import DemographicParity, EqualizedOdds, ErrorParity, gap_of
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.tally import JointTally
from evenhand.typing import BoolArray, FloatArray, IntArray

REFERENCES: Final = ("pairwise", "overall")
_NOTIONS: Final = (DemographicParity, EqualizedOdds, ErrorParity)
_REPEATS: Final = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelUtility:
    """One model, trained on one table and measured on real rows."""

    model: str
    """Its name."""
    trained_on: str
    """``"synthetic"`` or "real"."""
    auroc: Estimate
    accuracy: Estimate
    """``auroc`` and ``accuracy``: with bootstrap intervals over the test rows; the AUROC is
    macro-averaged, each class against the rest, with more than two classes.
    """
    gaps: Mapping[str, Estimate]
    """``demographic_parity``, ``equalized_odds`` and ``error_parity`` (accuracy disparity), each
    with ``_pairwise`` (largest difference of two groups) and ``_overall`` (from everybody).
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            "model": self.model,
            "trained_on": self.trained_on,
            "auroc": self.auroc.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            **{name: gap.to_dict() for name, gap in self.gaps.items()},
        }


def measure(
    name: str,
    source: str,
    truth: IntArray,
    probabilities: FloatArray,
    groups: IntArray,
    group_names: Sequence[str],
    seed: int,
    units: IntArray | None = None,
) -> ModelUtility:
    """Compare the probabilities that a model gives to classes with the true ones, by group.

    ``units`` (n,) are codes of whose record a row is, where some have several.
    """
    predicted = probabilities.argmax(axis=1).astype(np.int64)
    size = (len(group_names), probabilities.shape[1])
    tally = JointTally.of(groups, truth, predicted, *size, units=units)
    gaps = {
        f"{kind.name.replace('-', '_')}_{reference}": gap_of(
            kind(margin=0.0, reference=reference), tally
        )
        for kind in _NOTIONS
        for reference in REFERENCES
    }
    rng = np.random.default_rng(seed)
    return ModelUtility(
        model=name,
        trained_on=source,
        auroc=bootstrap(
            _macro(truth, probabilities),
            len(truth),
            rng,
            name="auroc",
            definition="area under the ROC curve; in [0, 1], best 1, probability .5",
            units=units,
        ),
        accuracy=bootstrap(
            lambda weights: float(np.average(predicted == truth, weights=weights)),
            len(truth),
            rng,
            name="accuracy",
            definition="share of right predictions; in [0, 1], best 1",
            units=units,
        ),
        gaps=gaps,
    )


def bootstrap(
    statistic: Callable[[FloatArray], float],
    n: int,
    rng: np.random.Generator,
    *,
    name: str,
    definition: str,
    level: float = 0.95,
    units: IntArray | None = None,
) -> Estimate:
    """Return a statistic of weighted rows with its percentile interval over 200 draws of them.

    With ``units`` (n,), codes of whose row each is, units are drawn with all their rows.
    """
    value = statistic(np.ones(n))
    m, whose = (n, slice(None)) if units is None else (int(units.max()) + 1, units)
    even = np.full(m, 1.0 / m)
    drawn = [statistic(rng.multinomial(m, even)[whose].astype(np.float64)) for _ in range(_REPEATS)]
    low, high = 0.0, 1.0
    if not np.isnan(value):  # of one class only: no number, and no bound either
        low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        low, high = np.clip([min(low, value), max(high, value)], 0, 1).tolist()
    return Estimate(
        name=name,
        definition=definition,
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        n_units=None if units is None else m,
    )


def roc(
    truth: BoolArray, scores: FloatArray
) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """Return the ROC curve as a function of the weights of the rows.

    Shares of the other rows, and of those of the class, that score at least so much, from (0, 0) to
    (1, 1); rows of one score are one step, which a straight line takes. The scores are sorted once,
    for the many weights of a bootstrap. NaN without rows of both kinds.
    """
    place = np.unique(-scores, return_inverse=True)[1].reshape(-1)
    n = int(place.max()) + 1

    def curve(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(invalid="ignore"):
            others, own = (
                np.concatenate([[0.0], held / held[-1]])
                for held in (np.bincount(place, weights * of, n).cumsum() for of in (~truth, truth))
            )
        return others, own

    return curve


def auroc(truth: BoolArray, scores: FloatArray) -> Callable[[FloatArray], float]:
    """Return the area under the ROC curve as a function of the weights of the rows.

    The probability that a row of the class scores above one that is not of it, ties counting half.
    NaN without rows of both kinds.

    Examples
    --------
    >>> area = auroc(np.array([False, True, True]), np.array([0.2, 0.1, 0.9]))
    >>> area(np.ones(3)), area(np.array([1.0, 0.0, 1.0]))
    (0.5, 1.0)
    """
    curve = roc(truth, scores)

    def area(weights: FloatArray) -> float:
        others, own = curve(weights)
        return float(np.diff(others) @ (own[1:] + own[:-1])) / 2.0

    return area


def _macro(truth: IntArray, probabilities: FloatArray) -> Callable[[FloatArray], float]:
    """AUROC of the second of two classes; of more, the mean of each against the rest; or NaN."""
    which = [1] if probabilities.shape[1] == 2 else list(range(probabilities.shape[1]))
    areas = [auroc(truth == k, probabilities[:, k]) for k in which]

    def mean(weights: FloatArray) -> float:
        found = np.array([area(weights) for area in areas])
        known = found[~np.isnan(found)]
        return float(known.mean()) if len(known) else math.nan

    return mean

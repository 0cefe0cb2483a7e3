"""What an error is read beside, on the same rows: the majority class, the model without margin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.stats import norm

from evenhand import _checks
from evenhand.fairness.clusters import Clusters
from evenhand.fairness.intervals import Estimate, clopper_pearson, estimate_rate, joint_errors
from evenhand.typing import BoolArray, FloatArray, IntArray

TEST_ROWS: Final = "test rows"
RELEASED: Final = "public rows, by the released answers"
DRAWN: Final = "drawn rows, by the released answers"
DEFINITION: Final = "P(Yhat!=Y); in [0, 1], best 0"


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """The errors that a model's error is read beside, all on the same rows.

    Notes
    -----
    By true classes the gain is ``q (2 p - 1)``: q is how often just one of the two is right, p how
    often this is the model. Both have exact limits, on a joint region as differences between groups
    have (``evenhand.fairness.intervals``). The model is so called better where the sign test is
    sure at .9856 or more, for a level of .95. By released answers it is the normal one of a mean
    over rows, whose spread holds the noise; the same answers chose the model, so it is likely too
    small.
    """

    where: str
    """Which rows, and by whose word they are right: ``TEST_ROWS``, ``RELEASED`` or ``DRAWN``."""
    majority: int
    """Code of the class that is most frequent there."""
    error: Estimate
    majority_error: Estimate
    """``error`` and ``majority_error``: of the model, and of the classifier that always predicts
    the majority class.
    """
    without_margin: Estimate | None
    """Of the same model without its margin, where that costs no privacy."""
    gain: float
    """``majority_error - error``, in [-1, 1]."""
    gain_interval: tuple[float, float]
    """At the level of the estimates, for the two classifiers on the same rows."""
    without_privacy: Estimate | None = None
    """Of a model trained without privacy, where its error may be known."""

    def __post_init__(self) -> None:
        _checks.one_of("where", self.where, (TEST_ROWS, RELEASED, DRAWN))

    @property
    def no_better(self) -> bool:
        """Whether these rows do not show the model to be better than the majority class."""
        return not self.gain_interval[0] > 0

    def warning(self, classes: Sequence[str]) -> str:
        """Say that the model is no better, in words for a report; empty where it is better."""
        if not self.no_better:
            return ""
        gain, low, high = (round(value, 4) + 0.0 for value in (self.gain, *self.gain_interval))
        return (
            f"on the {self.error.n:,} {self.where}, the model is no better than always predicting "
            f"{classes[self.majority]!r}, as far as they can tell: error {self.error.value:.4f} "
            f"against {self.majority_error.value:.4f} (gain {gain:.4f}, {self.error.level:.0%} "
            f"interval {low:.4f} to {high:.4f})"
        )

    def rows(self, classes: Sequence[str]) -> list[tuple[str, Estimate]]:
        """Return the errors to read beside the model's, each with what it is of."""
        found = [(f"always predicting {classes[self.majority]!r}", self.majority_error)]
        if self.without_margin is not None:
            found.append(("the same model without its margin", self.without_margin))
        if self.without_privacy is not None:
            found.append(("a model without privacy", self.without_privacy))
        return found

    @classmethod
    def of_truth(
        cls,
        truth: IntArray,
        predicted: IntArray,
        n_classes: int,
        *,
        without_margin: IntArray | None = None,
        without_privacy: IntArray | None = None,
        where: str = TEST_ROWS,
        level: float = 0.95,
        units: IntArray | None = None,
    ) -> Yardstick:
        """Measure by class codes (n,), all rows answered and at least one.

        ``units`` (n,) are codes of whose record a row is, where some have several.

        Examples
        --------
        >>> import numpy as np
        >>> found = Yardstick.of_truth(np.array([0, 0, 0, 1]), np.zeros(4, dtype=int), 2)
        >>> found.majority_error.value, found.gain, found.no_better
        (0.25, 0.0, True)
        """
        n = _checks.same_length(truth=truth, predicted=predicted)
        majority = int(np.bincount(truth, minlength=n_classes).argmax())
        right, right_by_majority = predicted == truth, truth == majority
        apart = right != right_by_majority
        won, every = apart & right, np.ones(n, dtype=np.bool_)

        def together(successes: BoolArray, trials: BoolArray = every) -> Clusters | None:
            return None if units is None else Clusters.of_rows(units, successes, trials)

        def error_of(decisions: Any) -> Estimate:
            wrong = decisions != truth
            return estimate_rate(
                int(wrong.sum()),
                n,
                name="error_rate",
                definition=DEFINITION,
                level=level,
                clusters=together(wrong),
            )

        return cls(
            where=where,
            majority=majority,
            error=error_of(predicted),
            majority_error=_named_majority(error_of(majority)),
            without_margin=None if without_margin is None else error_of(without_margin),
            gain=float(2 * won.sum() - apart.sum()) / n,
            gain_interval=_gain_of_counts(
                (int(apart.sum()), n, together(apart)),
                (int(won.sum()), int(apart.sum()), together(won, apart)),
                error=1 - level,
            ),
            without_privacy=None if without_privacy is None else error_of(without_privacy),
        )

    @classmethod
    def of_shares(
        cls,
        shares: FloatArray,
        predicted: IntArray,
        *,
        without_margin: IntArray | None = None,
        level: float = 0.95,
    ) -> Yardstick:
        """Measure by unbiased noisy shares (n, n_classes) of what the teachers say.

        Privacy
        -------
        Free: reads released shares and decisions on public rows (post-processing).
        """
        n = len(shares)
        majority = int(shares.sum(axis=0).argmax())
        rows = np.arange(n)

        def error_of(decisions: Any) -> Estimate:
            wrong = 1.0 - shares[rows, decisions]
            mean, _, high = _mean(wrong, level)
            # A mean that noise took out of [0, 1] keeps its interval: cut to 0 as well, it would
            # pass for exact. No true error gets further from the mean by the move.
            value, reach = min(max(mean, 0.0), 1.0), high - mean
            return Estimate(
                name="error_rate",
                definition=DEFINITION,
                value=value,
                low=max(value - reach, 0.0),
                high=min(value + reach, 1.0),
                level=level,
                n=n,
            )

        constant = np.full(n, majority)
        gain, low, high = cls.gain_by_shares(shares, predicted, constant, level=level)
        return cls(
            where=RELEASED,
            majority=majority,
            error=error_of(predicted),
            majority_error=_named_majority(error_of(majority)),
            without_margin=None if without_margin is None else error_of(without_margin),
            gain=gain,
            gain_interval=(low, high),
        )

    @staticmethod
    def gain_by_shares(
        shares: FloatArray, decided: IntArray, other: IntArray, *, level: float = 0.95
    ) -> tuple[float, float, float]:
        """Return how much less often ``decided`` errs than ``other``, with a normal interval."""
        rows = np.arange(len(shares))
        return _mean(shares[rows, decided] - shares[rows, other], level)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        out = asdict(self) | {
            name: None if (found := getattr(self, name)) is None else found.to_dict()
            for name in _ERRORS
        }
        return out | {"gain_interval": list(self.gain_interval), "no_better": self.no_better}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Yardstick:
        """Read what ``to_dict`` wrote."""
        given = {name: value for name, value in values.items() if name != "no_better"}
        given |= {
            name: None if given.get(name) is None else Estimate(**given[name]) for name in _ERRORS
        }
        low, high = given["gain_interval"]
        return cls(**given | {"gain_interval": (low, high)})


_ERRORS: Final = ("error", "majority_error", "without_margin", "without_privacy")


def _named_majority(error: Estimate) -> Estimate:
    return replace(error, name="majority_error_rate")


def _gain_of_counts(
    q: tuple[int, int, Clusters | None], p: tuple[int, int, Clusters | None], *, error: float
) -> tuple[float, float]:
    """Range of ``q (2 p - 1)`` over the limits of two rates: successes, trials, their units."""

    def limits(rate: tuple[int, int, Clusters | None], errors: FloatArray) -> FloatArray:
        successes, trials, clusters = rate
        by = 1.0 if clusters is None else clusters.of_all()[0, 0]
        return np.stack(clopper_pearson(successes / by, trials / by, error=errors))

    errors_q, errors_p = joint_errors(error, independent=q[2] is None)
    gains = limits(q, errors_q)[:, None] * (2.0 * limits(p, errors_p) - 1.0)[None]
    return float(gains.min()), float(gains.max())


def _mean(values: FloatArray, level: float) -> tuple[float, float, float]:
    """Mean of independent values with its normal interval."""
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.inf
    reach = float(norm.ppf((1 + level) / 2)) * spread / math.sqrt(len(values))
    return mean, mean - reach, mean + reach

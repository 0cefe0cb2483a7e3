"""A measured rate or gap with the interval that its sample allows.

A rate gets the exact (Clopper-Pearson) interval. A difference of two independent rates p, p' gets
the range of ``p - p'`` over a joint region: both exact two-sided p-values are turned into squared
normal quantiles, and their sum may reach the chi-square quantile with two degrees of freedom. (For
large groups that is the ellipse; a plain box of two intervals is a quarter wider.) A maximum
over groups and classes gets the maximum over its differences, which share the error by Bonferroni.
No step is an approximation, so the interval covers with at least its level at every sample size,
for records drawn independently. The price is width: for two large groups about 1.3 times the
approximate interval, which misses its level in small groups.

A rate without records has the interval [0, 1]: an empty group widens an interval and never
narrows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import betaincinv
from scipy.stats import chi2

from evenhand import _checks
from evenhand._words import REFERENCES
from evenhand.fairness.tally import ratio
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray

_PIECES = 32  # boxes around a quarter of the region: exact to about 2 % of the width, from outside


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One number about a population, measured on a sample.

    Parameters
    ----------
    name : str
        Name of the definition; one definition has one name.
    definition : str
        The quantity in symbols, with its range and best value.
    value : float
        The quantity on the sample; NaN if no cell of it has records.
    low, high : float
        Interval for the quantity in the population.
    level : float
        Probability, at least, that such an interval covers; for this interval alone.
    n : int
        Records that entered.
    n_empty : int
        Rates without a record. They are left out of ``value`` and widen the interval.
    """

    name: str
    definition: str
    value: float
    low: float
    high: float
    level: float
    n: int
    n_empty: int = 0

    def __post_init__(self) -> None:
        _checks.open_unit("level", self.level)
        _checks.at_least("n", self.n, 0)
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(
                f"low and high must be ordered in [0, 1], got {self.low}, {self.high}."
            )
        if not (math.isnan(self.value) or self.low <= self.value <= self.high):
            raise ValueError(f"value must lie in [{self.low}, {self.high}], got {self.value}.")

    def __str__(self) -> str:
        said = "no records" if math.isnan(self.value) else f"{self.value:.4f}"
        return (
            f"{self.name}: {said}, {self.level:.0%} interval [{self.low:.4f}, {self.high:.4f}], "
            f"n = {self.n}" + (f", {self.n_empty} rates without records" if self.n_empty else "")
        )

    def to_dict(self) -> dict[str, object]:
        """Return JSON's types; NaN becomes None."""
        out = {field.name: getattr(self, field.name) for field in fields(self)}
        return out | {"value": None if math.isnan(self.value) else self.value}


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, *, error: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Exact two-sided interval of a binomial rate.

    Parameters
    ----------
    successes, trials : array-like of int, same shape
        ``0 <= successes <= trials``.
    error : float or array-like that broadcasts with them
        Probability, at most, that the interval misses the rate; half of it on each side. In (0, 1].

    Returns
    -------
    low, high : ndarray of float64
        In [0, 1]; 0 and 1 where there are no trials.

    Examples
    --------
    >>> low, high = clopper_pearson([0, 5, 0], [10, 10, 0], error=0.05)
    >>> high.round(4), low.round(4)
    (array([0.3085, 0.8129, 1.    ]), array([0.    , 0.1871, 0.    ]))
    """
    e = np.asarray(error, float)
    if not ((e > 0) & (e <= 1)).all():
        raise ValueError(f"error must lie in (0, 1], got error={error!r}.")
    x, n, e = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float), e)
    if ((x < 0) | (x > n)).any():
        raise ValueError("successes must lie between 0 and trials in every cell.")
    low, high = np.zeros(x.shape), np.ones(x.shape)
    some, rest = x > 0, x < n
    low[some] = betaincinv(x[some], n[some] - x[some] + 1, e[some] / 2)
    high[rest] = betaincinv(x[rest] + 1, n[rest] - x[rest], 1 - e[rest] / 2)
    return low, high


def estimate_rate(
    successes: int, trials: int, *, name: str, definition: str, level: float
) -> Estimate:
    """One binomial rate with its exact interval."""
    _checks.open_unit("level", level)
    low, high = clopper_pearson([successes], [trials], error=1 - level)
    return Estimate(
        name=name,
        definition=definition,
        value=successes / trials if trials else math.nan,
        low=float(low[0]),
        high=float(high[0]),
        level=level,
        n=int(trials),
        n_empty=int(trials == 0),
    )


def estimate_gap(
    successes: IntArray,
    trials: IntArray,
    *,
    reference: str,
    name: str,
    definition: str,
    level: float,
    n: int,
) -> Estimate:
    """Largest difference of a rate between groups, over one or more kinds of rate.

    Parameters
    ----------
    successes, trials : ndarray of int64, shape (n_groups, n_rates)
        Column j holds the counts of one kind of rate in every group.
    reference : {"rest", "pairwise", "overall"}
        What a group's rate is compared with, see ``DemographicParity``.
    name, definition, level, n
        As in ``Estimate``.
    """
    _checks.one_of("reference", reference, REFERENCES)
    _checks.open_unit("level", level)
    own = _Rates(successes, trials)
    n_groups = len(own.trials)
    if n_groups < 2:
        # One group has nobody to differ from: no number, and no bound either.
        value, low, high = math.nan, 0.0, 1.0
    elif reference == "overall":
        everybody = _Rates(
            own.successes.sum(axis=0, keepdims=True), own.trials.sum(axis=0, keepdims=True)
        )
        value, low, high = _range(
            own, everybody, np.ones((n_groups, 1), dtype=np.bool_), 1 - level, independent=False
        )
    elif reference == "rest" and n_groups > 2:
        rest = _Rates(
            own.successes.sum(axis=0) - own.successes, own.trials.sum(axis=0) - own.trials
        )
        value, low, high = _range(own, rest, np.eye(n_groups, dtype=np.bool_), 1 - level)
    else:
        # Each pair once. With two groups the rest of one is the other.
        pairs = np.triu(np.ones((n_groups, n_groups), dtype=np.bool_), k=1)
        value, low, high = _range(own, own, pairs, 1 - level)
    return Estimate(
        name=name,
        definition=definition,
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        n_empty=own.n_empty,
    )


class _Rates:
    """Counts of trials and successes, shape (n_rows, n_rates)."""

    def __init__(self, successes: IntArray, trials: IntArray) -> None:
        self.successes, self.trials = successes, trials
        self.n_empty = int((trials == 0).sum())

    def boxes(self, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intervals of each rate by itself, shape (n_errors, n_rows, n_rates).

        An error of 1 leaves the median-unbiased range.
        """
        return clopper_pearson(self.successes, self.trials, error=errors[:, None, None])


def _range(
    one: _Rates, other: _Rates, compared: BoolArray, error: float, *, independent: bool = True
) -> tuple[float, float, float]:
    """Value of the largest compared difference, and its least and greatest over all regions."""
    mask = np.broadcast_to(compared[:, :, None], (*compared.shape, one.trials.shape[1]))
    first = ratio(one.successes, one.trials)[:, None, :]
    differences = np.abs(first - ratio(other.successes, other.trials)[None, :, :])[mask]
    seen = differences[~np.isnan(differences)]
    value = float(seen.max()) if seen.size else math.nan
    errors_one, errors_other = _boxes(error / mask.sum(), independent=independent)
    low_one, high_one = one.boxes(errors_one)
    low_other, high_other = other.boxes(errors_other)
    above = high_one[:, :, None, :] - low_other[:, None, :, :]
    below = high_other[:, None, :, :] - low_one[:, :, None, :]
    # The difference lies in [-below, above]; its size is 0 at least where that holds 0.
    low = np.maximum(0.0, -np.minimum(above, below)).min(axis=0)
    high = np.maximum(above, below).max(axis=0)
    return value, float(low[mask].max()), float(high[mask].max())


def _boxes(error: float, *, independent: bool) -> tuple[FloatArray, FloatArray]:
    """Errors of the two intervals of every box; the boxes cover the joint region from outside.

    A group and everybody are not independent: one box, half of the error for each (Bonferroni).
    """
    if not independent:
        half = np.array([error / 2])
        return half, half
    radius = math.sqrt(chi2.isf(error, 2))
    angles = np.linspace(0.0, math.pi / 2, _PIECES + 1)
    across = chi2.sf((radius * np.cos(angles[:-1])) ** 2, 1)
    along = chi2.sf((radius * np.sin(angles[1:])) ** 2, 1)
    return across, along

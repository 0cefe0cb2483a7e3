"""A measured rate or gap with the interval that its sample allows.

A rate gets the exact (Clopper-Pearson) interval. A difference of two independent rates p, p' gets
the range of ``p - p'`` over a joint region: both exact two-sided p-values are turned into squared
normal quantiles, and their sum may reach the chi-square quantile with two degrees of freedom. (For
large groups that is the ellipse; a plain box of two intervals is a quarter wider.) A maximum
over groups and classes gets the maximum over its differences, which share the error by Bonferroni.
No step is an approximation, so the interval covers with at least its level at every sample size,
for records drawn independently. The price is width: for two large groups about 1.3 times the
approximate interval, which misses its level in small groups. Of units with several records it is
the units that are independent, and counts are divided by what that costs (``clusters``).

A rate without records has the interval [0, 1]: an empty group widens an interval and never
narrows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import betaincinv
from scipy.stats import chi2

from evenhand import _checks
from evenhand._words import REFERENCES
from evenhand.fairness.clusters import Clusters
from evenhand.fairness.tally import ratio
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray

_PIECES = 32  # boxes around a quarter of the region: exact to about 2 % of the width, from outside


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One number about a population, measured on a sample."""

    name: str
    """Name of the definition; one definition has one name."""
    definition: str
    """The quantity in symbols, with its range and best value."""
    value: float
    """The quantity on the sample; NaN if no cell of it has records."""
    low: float
    high: float
    """``low`` and ``high``: interval for the quantity in the population."""
    level: float
    """Probability, at least, that such an interval covers; for this interval alone."""
    n: int
    """Records that entered."""
    n_empty: int = 0
    """Rates without a record. They are left out of ``value`` and widen the interval."""
    n_units: int | None = None
    """Independent units among the records, where some have several: the level then rests on an
    estimated design effect (``clusters``). None: every record is taken as one.
    """

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
            f"n = {self.n}"
            + ("" if self.n_units is None else f" of {self.n_units} units")
            + (f", {self.n_empty} rates without records" if self.n_empty else "")
        )

    def to_dict(self) -> dict[str, object]:
        """Return JSON's types; NaN becomes None."""
        out = {field.name: getattr(self, field.name) for field in fields(self)}
        return out | {"value": None if math.isnan(self.value) else self.value}


@dataclass(frozen=True, kw_only=True, eq=False)
class CountNoise:
    """What noise may have done to counts of successes and failures."""

    successes: IntArray
    failures: IntArray
    """``successes`` and ``failures``: noisy cells that each count adds up. Shape (n_groups,
    n_rates).
    """
    limit: Callable[[int, float], float]
    """``limit(n_cells, error)``: how far the sum of so many noisy cells may be off, but with
    probability ``error``.
    """
    share: float = 0.5
    """Of the error of an interval, what is left for the noise; the rest is that of the sample."""

    def of_all(self) -> CountNoise:
        """Return the noise of the counts of everybody, groups added up."""
        return self._with(
            self.successes.sum(axis=0, keepdims=True), self.failures.sum(axis=0, keepdims=True)
        )

    def of_rest(self) -> CountNoise:
        """Return the noise of the counts of all other groups."""
        return self._with(
            self.successes.sum(axis=0) - self.successes, self.failures.sum(axis=0) - self.failures
        )

    def _with(self, successes: IntArray, failures: IntArray) -> CountNoise:
        return CountNoise(
            successes=successes, failures=failures, limit=self.limit, share=self.share
        )


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
    successes: int,
    trials: int,
    *,
    name: str,
    definition: str,
    level: float,
    noise: CountNoise | None = None,
    clusters: Clusters | None = None,
) -> Estimate:
    """One binomial rate with its exact interval; of noisy counts one that holds for them."""
    _checks.open_unit("level", level)
    error = 1 - level
    own = _Rates(np.array([[successes]]), np.array([[trials]]))
    own.effect = None if clusters is None else clusters.of_all()
    if noise is not None:
        own.allow(noise, error * noise.share / 2)
        error *= 1 - noise.share
    low, high = own.boxes(np.array([error]))
    return Estimate(
        name=name,
        definition=definition,
        value=float(own.values[0, 0]),
        low=float(low[0, 0, 0]),
        high=float(high[0, 0, 0]),
        level=level,
        n=max(0, int(trials)),
        n_empty=own.n_empty,
        n_units=None if clusters is None else clusters.n_units,
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
    noise: CountNoise | None = None,
    clusters: Clusters | None = None,
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
    noise : CountNoise, optional
        Of noisy counts; the interval then holds for sample and noise together.
    clusters : Clusters, optional
        Of units with several records; the interval then takes units as independent.
    """
    _checks.one_of("reference", reference, REFERENCES)
    _checks.open_unit("level", level)
    own = _Rates(successes, trials)
    n_groups = len(own.trials)
    error = 1 - level if noise is None else (1 - level) * (1 - noise.share)
    # Sums of noisy counts that must keep their limits together.
    n_rows = n_groups + (1 if reference == "overall" else n_groups if reference == "rest" else 0)
    of_noise = 0.0
    if noise is not None:
        of_noise = (1 - level) * noise.share / (2 * n_rows * trials.shape[1])
        own.allow(noise, of_noise)
    if clusters is not None:
        own.effect = clusters.of_groups()
    apart = clusters is None or not clusters.overlap
    if n_groups < 2:
        # One group has nobody to differ from: no number, and no bound either.
        value, low, high = math.nan, 0.0, 1.0
    elif reference == "overall":
        everybody = _Rates(
            own.successes.sum(axis=0, keepdims=True), own.trials.sum(axis=0, keepdims=True)
        )
        if noise is not None:
            everybody.allow(noise.of_all(), of_noise)
        if clusters is not None:
            everybody.effect = clusters.of_all()
        value, low, high = _range(
            own, everybody, np.ones((n_groups, 1), dtype=np.bool_), error, independent=False
        )
    elif reference == "rest" and n_groups > 2:
        rest = _Rates(
            own.successes.sum(axis=0) - own.successes, own.trials.sum(axis=0) - own.trials
        )
        if noise is not None:
            rest.allow(noise.of_rest(), of_noise)
        if clusters is not None:
            rest.effect = clusters.of_rest()
        alike = np.eye(n_groups, dtype=np.bool_)
        value, low, high = _range(own, rest, alike, error, independent=apart)
    else:
        # Each pair once. With two groups the rest of one is the other.
        pairs = np.triu(np.ones((n_groups, n_groups), dtype=np.bool_), k=1)
        value, low, high = _range(own, own, pairs, error, independent=apart)
    return Estimate(
        name=name,
        definition=definition,
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        n_empty=own.n_empty,
        n_units=None if clusters is None else clusters.n_units,
    )


class _Rates:
    """Counts of trials and successes, shape (n_rows, n_rates), and what noise did to them."""

    effect: FloatArray | None = None
    """By what they are divided, same shape, where units have several records."""

    def __init__(self, successes: IntArray, trials: IntArray) -> None:
        self.successes, self.trials = successes, trials
        self.n_empty = int((trials <= 0).sum())
        self._more_successes = self._more_failures = np.zeros(successes.shape)

    def allow(self, noise: CountNoise, error: float) -> None:
        """Let each count be off by what noise may have done, each but with probability error."""
        limit = np.vectorize(lambda n: noise.limit(int(n), error), otypes=[float])
        self._more_successes, self._more_failures = limit(noise.successes), limit(noise.failures)

    @property
    def values(self) -> FloatArray:
        """Each rate as measured; NaN without trials. Noisy counts below 0 are taken as 0."""
        counted, missed = self._parts()
        return ratio(counted, counted + missed)

    def boxes(self, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intervals of each rate by itself, shape (n_errors, n_rows, n_rates).

        An error of 1 leaves the median-unbiased range. A limit rises with the successes and falls
        with the failures, so noisy counts have the limits of their extremes.
        """
        counted, missed = self._parts()
        error = errors[:, None, None]
        fewest = np.maximum(self.successes - self._more_successes, 0)
        most = counted + self._more_successes
        few_missed = np.maximum(self.trials - self.successes - self._more_failures, 0)
        many_missed = missed + self._more_failures
        if self.effect is not None:
            fewest, most, few_missed, many_missed = (
                count / self.effect for count in (fewest, most, few_missed, many_missed)
            )
        low, _ = clopper_pearson(fewest, fewest + many_missed, error=error)
        _, high = clopper_pearson(most, most + few_missed, error=error)
        return low, high

    def _parts(self) -> tuple[IntArray, IntArray]:
        """Return successes and failures, none below 0."""
        return np.maximum(self.successes, 0), np.maximum(self.trials - self.successes, 0)


def _range(
    one: _Rates, other: _Rates, compared: BoolArray, error: float, *, independent: bool = True
) -> tuple[float, float, float]:
    """Value of the largest compared difference, and its least and greatest over all regions."""
    mask = np.broadcast_to(compared[:, :, None], (*compared.shape, one.trials.shape[1]))
    differences = np.abs(one.values[:, None, :] - other.values[None, :, :])[mask]
    seen = differences[~np.isnan(differences)]
    value = float(seen.max()) if seen.size else math.nan
    errors_one, errors_other = joint_errors(error / mask.sum(), independent=independent)
    low_one, high_one = one.boxes(errors_one)
    low_other, high_other = other.boxes(errors_other)
    above = high_one[:, :, None, :] - low_other[:, None, :, :]
    below = high_other[:, None, :, :] - low_one[:, :, None, :]
    # The difference lies in [-below, above]; its size is 0 at least where that holds 0.
    low = np.maximum(0.0, -np.minimum(above, below)).min(axis=0)
    high = np.maximum(above, below).max(axis=0)
    return value, float(low[mask].max()), float(high[mask].max())


def joint_errors(error: float, *, independent: bool = True) -> tuple[FloatArray, FloatArray]:
    """Errors of the two intervals of every box; the boxes cover the joint region from outside.

    A rate among records that another rate counted is as good as independent of it. A group and
    everybody are not: one box, half of the error for each (Bonferroni).
    """
    if not independent:
        half = np.array([error / 2])
        return half, half
    radius = math.sqrt(chi2.isf(error, 2))
    angles = np.linspace(0.0, math.pi / 2, _PIECES + 1)
    across = chi2.sf((radius * np.cos(angles[:-1])) ** 2, 1)
    along = chi2.sf((radius * np.sin(angles[1:])) ** 2, 1)
    return across, along

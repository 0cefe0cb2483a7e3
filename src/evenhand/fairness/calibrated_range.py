"""The range of a group metric over all shares and rates within their exact limits.

In each group let ``a_j`` be the share of answered class j, and ``u_j`` the probability that the
truth is in question given this answer ("it is k", "it is not k", "it is another"). A rate of the
group is

    a_s u_s / sum_j a_j u_j    (how often s is answered to those), or    sum_j a_j u_j.

Both move one way in every a and u, so their extremes over a box of limits, with ``sum a = 1``, are
found exactly by filling up. What a group is compared with is a mean of other groups' rates whose
weights have limits, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.notions import REFERENCES
from evenhand.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """One kind of rate in one group: answered classes, and how often the truth is in question.

    Parameters
    ----------
    answered, hits, trials : ndarray of int64, shape (n_classes,)
        Answered queries; calibration rows in question; calibration rows; per answered class.
    selected : int or None
        s, or None for the second form.
    sampled : bool
        Whether the answered shares are measured on a sample.
    """

    answered: IntArray
    hits: IntArray
    trials: IntArray
    selected: int | None
    sampled: bool

    @property
    def value(self) -> tuple[float, float]:
        """The rate and its denominator as measured; NaN where a share has no calibration row."""
        total = int(self.answered.sum())
        terms = []
        for share, hit, trial in zip(self.answered, self.hits, self.trials, strict=True):
            if total and not share:
                terms.append(0.0)
            else:
                terms.append(share / total * hit / trial if total and trial else math.nan)
        whole = sum(terms)
        if self.selected is None:
            return whole, 1.0
        return (terms[self.selected] / whole if whole > 0 else math.nan), whole

    def limits(self, error: float) -> Limits:
        """Range of rate and denominator, each a and u missing with probability ``error``."""
        low, high = self._shares(error)
        least, most = map(_plain, clopper_pearson(self.hits, self.trials, error=error))
        everything = range(len(low))
        bottom = -_most(low, high, [-u for u in least], 1.0, everything)
        top = _most(low, high, most, 1.0, everything)
        if self.selected is None:
            return Limits(low=min(bottom, 1.0), high=min(top, 1.0), least=1.0, most=1.0)
        s = self.selected
        others = [j for j in everything if j != s]
        share = min(high[s], 1.0 - sum(low[j] for j in others))
        hit = share * most[s]
        miss = -_most(low, high, [-u for u in least], 1.0 - share, others)
        upper = hit / (hit + miss) if hit + miss > 0 else 1.0
        share = max(low[s], 1.0 - sum(high[j] for j in others))
        hit, miss = share * least[s], _most(low, high, most, 1.0 - share, others)
        lower = hit / (hit + miss) if hit + miss > 0 else 0.0
        return Limits(low=lower, high=upper, least=bottom, most=top)

    def _shares(self, error: float) -> tuple[list[float], list[float]]:
        return _limits_of_shares(self.answered, error, sampled=self.sampled)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Range of a rate and of its denominator."""

    low: float
    high: float
    least: float
    most: float


def weighted_rate(columns: Sequence[Column], *, error: float) -> tuple[float, float, float]:
    """Value, least and greatest of the rate of everybody: all groups as one long column."""
    everybody = Column(
        answered=np.concatenate([c.answered for c in columns]),
        hits=np.concatenate([c.hits for c in columns]),
        trials=np.concatenate([c.trials for c in columns]),
        selected=None,
        sampled=columns[0].sampled,
    )
    n_limits = len(everybody.answered) * (1 + everybody.sampled)
    limits = everybody.limits(error / n_limits)
    return everybody.value[0], limits.low, limits.high


def largest_gap(
    kinds: Sequence[Sequence[Column]], *, reference: str, error: float, n_rates: int
) -> tuple[float, float, float]:
    """Value, least and greatest of the largest difference between a group and its reference.

    Parameters
    ----------
    kinds : sequence over kinds of rate of sequences over groups of Column
        Of a kind, every group has one column.
    reference : {"rest", "pairwise", "overall"}
        What a group is compared with.
    error : float
        Probability, at most, that the range misses; shared by all limits.
    n_rates : int
        How many different u there are per group and answered class, complements being the same.
    """
    _checks.one_of("reference", reference, REFERENCES)
    n_groups, n_classes = len(kinds[0]), len(kinds[0][0].answered)
    if n_groups < 2:
        return math.nan, 0.0, 1.0  # nobody to differ from: no number, and no bound either
    if reference == "rest" and n_groups == 2:
        reference = "pairwise"  # the rest of one is the other
    sampled = kinds[0][0].sampled
    weighed = reference != "pairwise"
    n_limits = n_groups * n_classes * n_rates
    if sampled:  # of two complementary shares one says both
        n_limits += n_groups * (1 if n_classes == 2 else n_classes)
        n_limits += weighed * (1 if n_groups == 2 else n_groups)
    error /= n_limits
    sizes = np.array([column.answered.sum() for column in kinds[0]])
    shares = _limits_of_shares(sizes, error, sampled=sampled)
    values, lows, highs = [math.nan], [0.0], [0.0]
    for columns in kinds:
        limits = [column.limits(error) for column in columns]
        known = [column.value for column in columns]
        for z in range(n_groups):
            others = [y for y in range(n_groups) if y != z]
            if reference == "pairwise":
                for y in others[z:]:
                    values.append(abs(known[z][0] - known[y][0]))
                    low, high = _apart(limits[z], limits[y].low, limits[y].high)
                    lows.append(low)
                    highs.append(high)
                continue
            weight_low = [shares[0][y] * limits[y].least for y in range(n_groups)]
            weight_high = [shares[1][y] * limits[y].most for y in range(n_groups)]
            least = -_mean(others, weight_low, weight_high, [-one.low for one in limits], 0.0)
            most = _mean(others, weight_low, weight_high, [one.high for one in limits], 1.0)
            low, high = _apart(limits[z], least, most)
            own, rest = 1.0, _known_mean(others, known, sizes)
            if reference == "overall":  # group - everybody = (group - rest) * weight of the rest
                low *= _part(sum(weight_low[y] for y in others), weight_high[z], 0.0)
                high *= _part(sum(weight_high[y] for y in others), weight_low[z], 1.0)
                seen = [y for y in others if not math.isnan(known[y][0])]
                of_rest = sum(sizes[y] * known[y][1] for y in seen)
                own = _part(of_rest, sizes[z] * known[z][1], math.nan)
                if own == 0.0:
                    rest = known[z][0]  # nobody else: everybody is this group
            values.append(abs(known[z][0] - rest) * own)
            lows.append(low)
            highs.append(high)
    return float(np.fmax.reduce(values)), max(lows), max(highs)


def _most(
    low: Sequence[float],
    high: Sequence[float],
    gains: Sequence[float],
    total: float,
    among: Sequence[int],
) -> float:
    """Largest ``sum a gains`` over ``low <= a <= high`` with ``sum a = total``, both ``among``.

    Each share starts at its low end; what is left goes to the largest gains first.
    """
    left = max(0.0, total - sum(low[j] for j in among))
    found = sum(low[j] * gains[j] for j in among)
    for j in sorted(among, key=lambda j: -gains[j]):
        more = min(left, high[j] - low[j])
        found += more * gains[j]
        left -= more
    return found


def _apart(own: Limits, low: float, high: float) -> tuple[float, float]:
    """Least and greatest size of a difference of two ranges."""
    above, below = own.high - low, high - own.low
    return max(0.0, -min(above, below)), max(above, below)


def _mean(
    groups: Sequence[int],
    low: Sequence[float],
    high: Sequence[float],
    rates: Sequence[float],
    unknown: float,
) -> float:
    """Largest weighted mean of rates over weights within limits: the best rates weigh most."""
    ordered = sorted(groups, key=lambda z: -rates[z])
    means = []
    for split in range(len(ordered) + 1):
        weights = [high[z] for z in ordered[:split]] + [low[z] for z in ordered[split:]]
        total = sum(weights)
        if total > 0:
            means.append(sum(w * rates[z] for w, z in zip(weights, ordered, strict=True)) / total)
    return max(means, default=unknown)


def _known_mean(
    groups: Sequence[int], known: Sequence[tuple[float, float]], sizes: IntArray
) -> float:
    """Mean of the measured rates of groups; those that are unknown are left out."""
    seen = [(sizes[z] * known[z][1], known[z][0]) for z in groups if not math.isnan(known[z][0])]
    total = sum(weight for weight, _ in seen)
    return float(sum(w * rate for w, rate in seen) / total) if total else math.nan


def _part(one: float, other: float, unknown: float) -> float:
    return one / (one + other) if one + other > 0 else unknown


def _limits_of_shares(
    counts: IntArray, error: float, *, sampled: bool
) -> tuple[list[float], list[float]]:
    """Limits of each part of a whole; unknown where nothing was counted."""
    total = counts.sum()
    if sampled or not total:
        low, high = clopper_pearson(counts, np.full(len(counts), total), error=error)
        return _plain(low), _plain(high)
    exact = _plain(counts / total)
    return exact, exact


def _plain(array: FloatArray) -> list[float]:
    """As plain numbers: one by one they are faster."""
    numbers: list[float] = array.tolist()
    return numbers

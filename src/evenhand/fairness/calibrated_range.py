"""The range of a group metric over all shares and probabilities within their exact limits.

In each group let ``a_j`` be the share of answered class j, and of the records with this answer let
``v_j`` be the part whose truth makes the answer count, ``m_j`` the part that the rate is taken
among without counting. A rate of the group is

    sum_j a_j v_j / sum_j a_j (v_j + m_j),    or    sum_j a_j v_j    among all records.

Both rise with every v and fall with every m, so their extremes over a box of limits, with
``sum a = 1``, are found exactly by filling up. What a group is compared with is a mean of other
groups' rates whose weights have limits, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand._words import REFERENCES
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import ratio
from evenhand.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """One kind of rate in one group: answered classes, and the truth of calibration rows."""

    answered: IntArray
    """Answered queries by answer. Shape (n_answers,)."""
    labelled: IntArray
    """Calibration rows by true class and answer. Shape (n_classes, n_answers)."""
    among: BoolArray
    """True classes that the rate is taken among. Shape (n_classes,)."""
    hits: BoolArray
    """Pairs that count, within ``among``. Shape (n_classes, n_answers)."""
    sampled: bool
    """Whether the answered shares are measured on a sample."""

    @property
    def value(self) -> tuple[float, float]:
        """The rate and its denominator as measured; NaN where a share has no calibration row."""
        total = self.answered.sum()
        shares = ratio(self.answered, total)
        counted, missed = (
            # A class never answered has share 0, whatever the truth would have been.
            float(np.where((shares == 0) | (part == 0), 0.0, shares * part).sum())
            for part in (self._part(self.hits), self._part(self.misses))
        )
        if self.among.all():
            return counted, 1.0
        whole = counted + missed
        return (counted / whole if whole > 0 else math.nan), whole

    def limits(self, error: float) -> Limits:
        """Range of rate and denominator, each a, v and m missing with probability ``error``."""
        low, high = _limits_of_shares(self.answered, error, sampled=self.sampled)
        least, most = self.part_limits(self.hits, error)
        everything = range(len(low))
        if self.among.all():
            bottom = -_most(low, high, [-v for v in least], 1.0, everything)
            top = _most(low, high, most, 1.0, everything)
            return Limits(low=min(bottom, 1.0), high=min(top, 1.0), least=1.0, most=1.0)
        fewest, missed = self.part_limits(self.misses, error)
        lower_whole = [min(1.0, v + m) for v, m in zip(least, fewest, strict=True)]
        upper_whole = [min(1.0, v + m) for v, m in zip(most, missed, strict=True)]
        return Limits(
            low=1.0 - _largest_part(low, high, missed, least),
            high=_largest_part(low, high, most, fewest),
            least=-_most(low, high, [-u for u in lower_whole], 1.0, everything),
            most=_most(low, high, upper_whole, 1.0, everything),
        )

    @property
    def misses(self) -> BoolArray:
        """Pairs that the rate is taken among and that do not count."""
        misses: BoolArray = self.among[:, None] & ~self.hits
        return misses

    def _part(self, members: BoolArray) -> FloatArray:
        """Part of the calibration rows of each answer whose truth is a member, as measured."""
        part = ratio((self.labelled * members).sum(axis=0), self.labelled.sum(axis=0))
        return np.where(members.any(axis=0), np.where(members.all(axis=0), 1.0, part), 0.0)

    def part_limits(self, members: BoolArray, error: float) -> tuple[list[float], list[float]]:
        """Limits of that part; exact where all true classes are members, or none."""
        hits, trials = (self.labelled * members).sum(axis=0), self.labelled.sum(axis=0)
        low, high = clopper_pearson(hits, trials, error=error)
        low[members.all(axis=0)] = 1.0
        high[~members.any(axis=0)] = 0.0
        return _plain(low), _plain(high)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Range of a rate and of its denominator."""

    low: float
    high: float
    least: float
    most: float


def weighted_rate(columns: Sequence[Column], *, error: float) -> tuple[float, float, float]:
    """Value, least and greatest of the rate of everybody: all groups as one long column."""
    everybody = _pooled(columns)
    n_limits = len(everybody.answered) * (1 + everybody.sampled)
    limits = everybody.limits(error / n_limits)
    return everybody.value[0], limits.low, limits.high


def _pooled(columns: Sequence[Column]) -> Column:
    """Return the column of several groups together: an answer of each is one of its own."""
    return Column(
        answered=np.concatenate([c.answered for c in columns]),
        labelled=np.hstack([c.labelled for c in columns]),
        among=columns[0].among,
        hits=np.hstack([c.hits for c in columns]),
        sampled=columns[0].sampled,
    )


def largest_gap(
    kinds: Sequence[Sequence[Column]], *, reference: str, error: float
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
    """
    _checks.one_of("reference", reference, REFERENCES)
    n_groups, n_classes = len(kinds[0]), len(kinds[0][0].answered)
    if n_groups < 2:
        return math.nan, 0.0, 1.0  # nobody to differ from: no number, and no bound either
    if reference == "rest" and n_groups == 2:
        reference = "pairwise"  # the rest of one is the other
    sampled = kinds[0][0].sampled
    weighed = reference != "pairwise"
    n_limits = n_truth_limits(kinds)
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
            if sampled:
                least = -_mean(others, weight_low, weight_high, [-one.low for one in limits], 0.0)
                most = _mean(others, weight_low, weight_high, [one.high for one in limits], 1.0)
            else:
                pool = _pooled([columns[y] for y in others]).limits(error)
                least, most = pool.low, pool.high
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


def columns_of(
    rates: Rates, labelled: IntArray, answered: IntArray, *, sampled: bool
) -> list[list[Column]]:
    """Return a column per kind of rate and group, of counts by group."""
    return [
        [
            Column(answered=own, labelled=truth, among=among, hits=hits, sampled=sampled)
            for own, truth in zip(answered, labelled, strict=True)
        ]
        for among, hits in zip(rates.among, rates.hits, strict=True)
    ]


def n_truth_limits(kinds: Sequence[Sequence[Column]]) -> int:
    """Count the limits of the truth given an answer, over groups: they share an error."""
    return len(kinds[0]) * _n_parts([columns[0] for columns in kinds])


def _n_parts(kinds: Sequence[Column]) -> int:
    """Count the probabilities of the truth given an answer; of two that add up to 1, one."""
    found = set()
    for kind in kinds:
        for members in (kind.hits,) if kind.among.all() else (kind.hits, kind.misses):
            for j, column in enumerate(members.T):
                if column.any() and not column.all():
                    found.add((j, (column if column[0] else ~column).tobytes()))
    return len(found)


def _largest_part(
    low: Sequence[float], high: Sequence[float], more: Sequence[float], less: Sequence[float]
) -> float:
    """Largest ``sum a more / sum a (more + less)`` over ``low <= a <= high``, ``sum a = 1``.

    Dinkelbach's method: with t the ratio so far, the shares that are best for ``more - t (more +
    less)`` have a ratio of at least t, and the same ratio only if none is larger. 1 where nothing
    is known of any record.
    """
    found = -1.0
    gains = list(more)
    while True:
        shares = _filled(low, high, gains)
        part = sum(a * v for a, v in zip(shares, more, strict=True))
        rest = sum(a * m for a, m in zip(shares, less, strict=True))
        if part <= 0.0 and found < 0.0:
            whole = -_most(low, high, [-m for m in less], 1.0, range(len(low)))
            return 0.0 if whole > 0 else 1.0
        now = part / (part + rest) if part + rest > 0 else 1.0
        if now <= found:
            return found
        found = now
        gains = [v - found * (v + m) for v, m in zip(more, less, strict=True)]


def _filled(low: Sequence[float], high: Sequence[float], gains: Sequence[float]) -> list[float]:
    """Return the shares of the largest gain that add up to 1: what is left goes to the best."""
    shares = list(low)
    left = max(0.0, 1.0 - sum(low))
    for j in sorted(range(len(low)), key=lambda j: -gains[j]):
        more = min(left, high[j] - low[j])
        shares[j] += more
        left -= more
    return shares


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

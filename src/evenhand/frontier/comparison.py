"""Two methods beside each other: by hypervolume over seeds, and by what each attains more often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from evenhand import _checks
from evenhand.frontier.pareto import REFERENCE, costs_of, front_of, scaled_to, volume_of
from evenhand.frontier.run import OBJECTIVES, Run
from evenhand.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far one method's frontier reaches beyond another's."""

    hypervolume_a: float
    interval_a: tuple[float, float]
    hypervolume_b: float
    """``hypervolume_a`` and ``hypervolume_b``: mean over seeds of the share of the reference box
    that a seed's runs dominate.
    """
    interval_b: tuple[float, float]
    """``interval_a`` and ``interval_b``: for these means over seeds, Student's t; NaN with one
    seed.
    """
    difference: float
    """``hypervolume_a - hypervolume_b``."""
    difference_interval: tuple[float, float]
    """Pairs of seeds where both methods have the same seeds, else Welch's; NaN with one seed."""
    a_more_often: float
    b_more_often: float
    """``a_more_often`` and ``b_more_often``: where in the box A's runs reach a point in more of its
    seeds than B's, the surplus summed (the integral of the positive part of the difference of the
    empirical attainment functions), and the other way round. Their difference is ``difference``:
    two methods that each lead in a region of their own show it here.
    """
    level: float
    """Of the intervals."""
    n_seeds_a: int
    n_seeds_b: int
    paired: bool
    """Whether the seeds were paired."""


def compare(
    runs_a: Sequence[Run],
    runs_b: Sequence[Run],
    objectives: Sequence[str] = OBJECTIVES,
    reference: Mapping[str, float] = REFERENCE,
    *,
    level: float = 0.95,
) -> Comparison:
    """Compare two methods by hypervolume and by attainment.

    Parameters
    ----------
    runs_a, runs_b : sequence of Run
        Of one method each, at one or more seeds, with the same settings at every seed.
    objectives : sequence of str
        One to four of ``OBJECTIVES``.
    reference : mapping of str to float
        As for ``hypervolume``.
    level : float
        Of the intervals, in (0, 1).

    Notes
    -----
    A front is read off test rows after the fact, so it is a little better than the settings on it
    would be on other rows; the more settings, the more so. Compare grids of about one size.
    """
    _checks.open_unit("level", level)
    a, b = (_by_seed(runs, objectives, reference) for runs in (runs_a, runs_b))
    for name, seeds in (("runs_a", a), ("runs_b", b)):
        if not seeds:
            raise ValueError(f"{name} is empty. Each method needs at least one run.")
    volumes_a, volumes_b = (
        np.array([volume_of(points) for points in seeds.values()]) for seeds in (a, b)
    )
    paired = list(a) == list(b)
    more_a, more_b = _surpluses(list(a.values()), list(b.values()))
    return Comparison(
        hypervolume_a=float(volumes_a.mean()),
        interval_a=_interval(volumes_a, level),
        hypervolume_b=float(volumes_b.mean()),
        interval_b=_interval(volumes_b, level),
        difference=float(volumes_a.mean() - volumes_b.mean()),
        difference_interval=(
            _interval(volumes_a - volumes_b, level)
            if paired
            else _welch(volumes_a, volumes_b, level)
        ),
        a_more_often=more_a,
        b_more_often=more_b,
        level=level,
        n_seeds_a=len(a),
        n_seeds_b=len(b),
        paired=paired,
    )


def _by_seed(
    runs: Sequence[Run], objectives: Sequence[str], reference: Mapping[str, float]
) -> dict[int, FloatArray]:
    """Return the front of every seed, in order, within the box from 0 to 1."""
    rows: dict[int, list[Run]] = {}
    for run in runs:
        rows.setdefault(run.setting.seed, []).append(run)
    out = {}
    for seed, own in sorted(rows.items()):
        scaled = scaled_to(costs_of(own, objectives), objectives, reference)
        out[seed] = _smallest(scaled)
    return out


def _surpluses(a: list[FloatArray], b: list[FloatArray]) -> tuple[float, float]:
    """Integrate the positive and the negative part of the difference of attainment functions.

    For attainment functions f and g, ``(f - g)+ = integral over t of [f >= t] - [f >= t][g >= t]``,
    and the region of ``f >= t or g >= t`` is again what a set of points dominates.
    """
    levels_a, levels_b = _levels(a), _levels(b)
    steps = sorted({Fraction(i + 1, len(x)) for x in (a, b) for i in range(len(x))})
    more_a = more_b = 0.0
    for low, high in zip([Fraction(0), *steps[:-1]], steps, strict=True):
        own = levels_a[math.ceil(high * len(a)) - 1]
        other = levels_b[math.ceil(high * len(b)) - 1]
        either = volume_of(np.concatenate([own, other]))
        more_a += float(high - low) * (either - volume_of(other))
        more_b += float(high - low) * (either - volume_of(own))
    return more_a, more_b


def _levels(fronts: list[FloatArray]) -> list[FloatArray]:
    """Return, for j = 1, 2, ..., points that dominate what at least j of the fronts dominate.

    Two regions share what the largest coordinates of each pair of points dominate.
    """
    nothing = np.empty((0, fronts[0].shape[1]))
    levels = [nothing] * len(fronts)
    for seen, own in enumerate(fronts):
        for j in range(seen, 0, -1):
            both = np.maximum(levels[j - 1][:, None, :], own[None, :, :])
            levels[j] = _smallest(np.concatenate([levels[j], both.reshape(-1, own.shape[1])]))
        levels[0] = _smallest(np.concatenate([levels[0], own]))
    return levels


def _smallest(points: FloatArray) -> FloatArray:
    """Return the front of the points, each once."""
    distinct: FloatArray = np.unique(points, axis=0)
    return distinct[front_of(distinct)]


def _interval(values: FloatArray, level: float) -> tuple[float, float]:
    """Student's interval for a mean over seeds."""
    return _around(float(values.mean()), _squared_error(values), len(values) - 1, level)


def _welch(a: FloatArray, b: FloatArray, level: float) -> tuple[float, float]:
    """Welch's interval for a difference of means over different seeds."""
    if min(len(a), len(b)) < 2:
        return (math.nan, math.nan)
    own, other = _squared_error(a), _squared_error(b)
    total = own + other
    freedom = (
        total**2 / (own**2 / (len(a) - 1) + other**2 / (len(b) - 1))
        if total
        else len(a) + len(b) - 2
    )
    return _around(float(a.mean() - b.mean()), total, freedom, level)


def _squared_error(values: FloatArray) -> float:
    """Estimate the variance of a mean; NaN from one value."""
    n = len(values)
    return float(values.var(ddof=1)) / n if n > 1 else math.nan


def _around(mean: float, variance: float, freedom: float, level: float) -> tuple[float, float]:
    if math.isnan(variance):
        return (math.nan, math.nan)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(variance)
    return (mean - half, mean + half)

"""Groups of few rows: what a margin on them costs, and the interval that they are held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand.fairness import DemographicParity
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.yardstick import Yardstick
from evenhand.students.constrained import LinearFit
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray

ENOUGH_GROUPS: Final = 2
"""Groups that must be large, for a margin that holds among them to mean something."""


@dataclass(frozen=True, kw_only=True)
class HeldGroup:
    """A group that is held to the interval of its size, because that is wider than the margin."""

    group: int
    """Its code."""
    n_rows: int
    """Its public rows."""
    limit: float
    """Largest difference of rates that it is held to."""
    gap: float
    """That of the student's decisions on the public rows."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """The groups that are held to their intervals, and what the margin would have cost.

    ``error_by_margin`` and ``error`` are by the released answers, of the student that keeps the
    margin for every group and of the one that was kept.
    """

    groups: tuple[HeldGroup, ...]
    error_by_margin: float
    error: float


COSTLY: Final = 0.01
"""Error that the margin on small groups must cost, beyond chance, before they are held apart.

A judgement: a point of error is the least that a reader of a report would act on.
"""


def reach(n_rows: int, level: float = 0.95) -> float:
    """Half of the exact interval of a rate of one half on ``n_rows`` rows: what they can tell.

    Examples
    --------
    >>> round(reach(14), 3), round(reach(400), 3)
    (0.27, 0.05)
    """
    half = n_rows // 2
    low, high = clopper_pearson([half], [n_rows], error=1 - level)
    return float(high[0] - low[0]) / 2


def limits_of(within: Within) -> FloatArray | None:
    """Return what each group is held to (n_groups,): the margin, or its interval if that is wider.

    From public sizes alone. None where no group is so small, where fewer than two are larger (the
    margin would then hold nowhere), and for notions about true classes.
    """
    margin = within.notion.margin
    if not isinstance(within.notion, DemographicParity) or margin <= 0:
        return None
    sizes = np.bincount(within.groups, minlength=within.n_groups)
    wide = np.array([reach(n) if n else 0.0 for n in sizes.tolist()])
    if not (wide > margin).any() or (sizes > 0)[wide <= margin].sum() < ENOUGH_GROUPS:
        return None
    limits: FloatArray = np.maximum(wide, margin)
    return limits


def fit_with_small_groups(
    fit: Callable[[Within, bool], LinearFit],
    within: Within,
    X: FloatArray,
    shares: FloatArray,
    rows: IntArray,
) -> tuple[LinearFit, Held | None]:
    """Fit under the margin; where that costs error because of small groups, hold these apart.

    Parameters
    ----------
    fit : callable
        ``fit(within, quiet)`` fits a student within a margin.
    within : Within
    X : ndarray of float64, shape (n, n_features)
        All public rows.
    shares : ndarray of float64, shape (len(rows), n_classes)
        What was released about the rows ``rows``: noisy shares, or labels one-hot.

    Returns
    -------
    LinearFit, Held or None
        The student under the margin for all, and None, unless no such was found, or its error by
        the released answers is larger by more than ``COSTLY``, beyond chance (95 %), than that of
        the student that holds each small group to its own interval.

    Privacy
    -------
    Free: reads released answers, public rows and their groups (post-processing).
    """
    limits = within.limits
    if limits is None and within.hold_small:
        limits = limits_of(within)
    if limits is None:
        return fit(within, False), None
    within = replace(within, limits=None)
    strict = fit(within, True)
    if strict.free is not None and strict.met and np.array_equal(strict.coef, strict.free.coef):
        return strict, None  # the margin asked for nothing
    apart = replace(within, limits=limits)
    held = fit(apart, True)
    n_classes = shares.shape[1]
    by_margin, by_limits = (
        each.classifier(n_classes).predict(X).astype(np.int64) for each in (strict, held)
    )
    gained = Yardstick.gain_by_shares(shares, by_limits[rows], by_margin[rows])
    if not held.met or (strict.met and not gained[1] > COSTLY):
        return (strict if strict.met else fit(within, False)), None
    gaps = apart.gaps(by_limits, n_classes)
    found = Held(
        groups=tuple(
            HeldGroup(
                group=int(z),
                n_rows=int((within.groups == z).sum()),
                limit=float(limits[z]),
                gap=float(gaps[z]),
            )
            for z in np.flatnonzero(limits > within.notion.margin)
        ),
        error_by_margin=_error(shares, by_margin[rows]),
        error=_error(shares, by_limits[rows]),
    )
    true_gap = within.gap(by_limits, n_classes)
    met = true_gap <= within.notion.margin
    return replace(held, gap=true_gap, met=met), found


def _error(shares: FloatArray, decided: IntArray) -> float:
    wrong: Any = 1.0 - shares[np.arange(len(shares)), decided].mean()
    return float(np.clip(wrong, 0.0, 1.0))

"""Impact ratios: how often a group is selected, as a share of the group selected most often.

The rate of a group is ``P(Yhat = positive | Z = z)``. Its impact ratio is that rate divided by the
largest rate among the groups that may be compared with; the four-fifths rule asks whether it is
below .8. Groups of less than a small share of all rows do not set the standard, as the rules of New
York City allow (6 RCNY 5-301), and are still shown.

Intervals. Each rate gets exact limits (Clopper-Pearson) that share the error by Bonferroni, and the
interval of a ratio is its range over all rates within the limits. It covers with at least its level
at every sample size, all ratios of a table together, given which groups set the standard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.tally import Tally, ratio
from evenhand.typing import FloatArray

FOUR_FIFTHS: Final = 0.8
SMALL_SHARE: Final = 0.02
"""Groups of a smaller share of the rows do not set the standard."""

_BELOW: Final = {True: "below", False: "not below", None: "cannot be said"}


@dataclass(frozen=True, kw_only=True)
class ImpactRatio:
    """One group's rate, and its share of the largest."""

    group: str
    n: int
    n_selected: int
    """``n`` and ``n_selected``: rows of the group, and those of them that were selected."""
    share: float
    """Of all rows, in [0, 1]."""
    rate: float
    """``n_selected / n``; NaN for a group without rows."""
    rate_low: float
    rate_high: float
    """``rate_low`` and ``rate_high``: exact interval of the rate, by itself."""
    ratio: float
    """The rate by the largest rate; NaN where that is 0 or unknown. Above 1 only for a group too
    small to set the standard.
    """
    ratio_low: float
    ratio_high: float
    """``ratio_low`` and ``ratio_high``: interval of the ratio; ``ratio_high`` is ``inf`` where no
    rate is known to be above 0.
    """
    small: bool
    """Whether the group is too small to set the standard."""

    @property
    def below_four_fifths(self) -> bool:
        """Whether the measured ratio is below four fifths; False where it is unknown."""
        return self.ratio < FOUR_FIFTHS

    @property
    def by_interval(self) -> str:
        """What the interval says of four fifths: below, not below, or that it cannot be said."""
        below: bool | None = None
        if self.ratio_high < FOUR_FIFTHS:
            below = True
        elif self.ratio_low >= FOUR_FIFTHS:
            below = False
        return _BELOW[below]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON's types; a number that is not finite becomes None."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        made = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }
        return made | {
            "below_four_fifths": self.below_four_fifths,
            "four_fifths_by_interval": self.by_interval,
        }


def impact_ratios(
    tally: Tally, positive: int, names: tuple[str, ...], *, level: float = 0.95
) -> tuple[ImpactRatio, ...]:
    """Return the impact ratio of each group.

    Parameters
    ----------
    tally : Tally
        Decisions by group and class.
    positive : int
        The class that counts as being selected.
    names : tuple of str
        Of the groups.
    level : float
        Of the intervals: that of each rate by itself, that of all ratios together.

    Examples
    --------
    >>> for found in impact_ratios(Tally(counts=[[400, 600], [700, 300]]), 1, ("m", "f")):
    ...     print(found.group, found.rate, found.ratio, found.by_interval)
    m 0.6 1.0 not below
    f 0.3 0.5 below
    """
    error = 1.0 - _checks.open_unit("level", level)
    _checks.same_length(groups=names, tally=tally.counts)
    n, selected = tally.totals, tally.counts[:, positive]
    rates, shares = ratio(selected, n), ratio(n, n.sum())
    standard = (shares >= SMALL_SHARE) & (n > 0)
    low, high = _limits(tally, positive, error)
    low_all, high_all = _limits(tally, positive, error / len(names))
    best = float(rates[standard].max()) if standard.any() else math.nan
    found = []
    for z, name in enumerate(names):
        others = standard & (np.arange(len(names)) != z)
        most = float(high_all[others].max()) if others.any() else 0.0
        least = float(low_all[others].max()) if others.any() else 0.0
        if standard[z]:
            most, least = max(most, float(low_all[z])), max(least, float(high_all[z]))
        found.append(
            ImpactRatio(
                group=name,
                n=int(n[z]),
                n_selected=int(selected[z]),
                share=float(shares[z]),
                rate=float(rates[z]),
                rate_low=float(low[z]),
                rate_high=float(high[z]),
                ratio=float(rates[z]) / best if best > 0 else math.nan,
                ratio_low=float(low_all[z]) / most if most > 0 else 0.0,
                ratio_high=float(high_all[z]) / least if least > 0 else math.inf,
                small=not bool(standard[z]),
            )
        )
    return tuple(found)


def _limits(tally: Tally, positive: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Return the limits of each group's rate; of units with several records, as of units."""
    selected, n = tally.counts[:, positive], tally.totals
    if (of := tally.by_unit) is None:
        return clopper_pearson(selected, n, error=error)
    clusters = of.clusters(lambda counts: (counts[:, positive], counts.sum(axis=1)))
    by = clusters.of_groups()[:, 0]
    return clopper_pearson(selected / by, n / by, error=error)

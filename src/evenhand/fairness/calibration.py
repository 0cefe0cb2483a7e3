"""Metrics that need labels, from answers without labels and a small labelled set beside them.

The answered queries say how often each group z was given each class, ``P_D(Yhat=k'|z)``. A labelled
calibration set says what the truth was when a class was given, ``P_C(Y=k | Yhat=k', z)``. Together
they are the joint distribution of truth and answer in each group,

    J_z(k, k') = P_D(Yhat=k' | z) P_C(Y=k | Yhat=k', z),

and every group metric is a function of it: ``P(Yhat=k'|Y=k,z) = J_z(k,k') / sum_j J_z(k,j)`` and
``P(Y!=Yhat|z) = 1 - sum_k J_z(k,k)``. The gaps have the names and references of ``gap_of``.

Intervals. Each rate is a function of the answered shares of its group and of one binomial rate per
answered class. All of these get exact limits (Clopper-Pearson), which share the error of the metric
by Bonferroni; the interval is the range of the metric over all values within the limits. No step is
an approximation, so an interval covers with at least its level at every size of both tables. A cell
of the calibration table without records has the limits [0, 1]: it widens the interval as far as its
answered share reaches, and makes no number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.fairness.calibrated_range import Column, columns_of, largest_gap, weighted_rate
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import ErrorParity
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import JointTally, Tally, ratio
from evenhand.typing import FloatArray

ERROR_RATE = "P(Yhat!=Y) among the answered; in [0, 1], best 0"
CONDITIONS = (
    "the answers to the calibration rows come from the same noisy mechanism as those to the "
    "queries, and are charged",
    "P(Y | Yhat, Z) is the same for the calibration rows as for the answered queries",
    "rows of each set are drawn independently",
)
"""Without these a calibrated number says nothing; print them where it is shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibratedJoint:
    """What is known about truth and answer in each group, from two tables.

    Examples
    --------
    >>> answered = Tally(counts=[[600, 400], [700, 300]])
    >>> labelled = JointTally(counts=[[[90, 10], [10, 90]], [[80, 5], [20, 95]]])
    >>> joint = CalibratedJoint(answered=answered, labelled=labelled)
    >>> print(joint.gap(ErrorParity(margin=0, reference="pairwise")))
    error_parity_pairwise: 0.0550, 95% interval [0.0000, 0.2381], n = 400
    >>> joint.rates[0].round(3)
    array([[0.931, 0.069], [0.143, 0.857]])
    """

    answered: Tally
    """Answered queries per group and class; their truth is unknown."""
    labelled: JointTally
    """Calibration rows per group, true class and answered class."""
    sampled: bool = True
    """Whether the answered queries are a sample of the queries to be judged. False where they *are*
    all of them (a gated set of answers is judged by itself): their shares are then exact, and the
    metric is what calibration expects of this set.
    """

    def __post_init__(self) -> None:
        for what in ("groups", "classes"):
            one, other = (getattr(t, f"n_{what}") for t in (self.answered, self.labelled))
            if one != other:
                raise ValueError(
                    f"answered and labelled must count the same {what}, got {one} and {other}. "
                    f"Count both with the same codes; groups and classes without rows stay in."
                )
        if not self.labelled.counts.sum():
            raise ValueError(
                "labelled holds no calibration row, so nothing is known about the truth. Give "
                "labelled rows and have the teachers answer them (ask_calibration of "
                "evenhand.voting.calibration)."
            )

    @property
    def conditions(self) -> tuple[str, ...]:
        """Under which the numbers hold, in words."""
        return CONDITIONS if self.sampled else (*CONDITIONS[:2], "calibration rows are independent")

    @property
    def joint(self) -> FloatArray:
        """``J_z(k, k')``, shape (n_groups, n_classes, n_classes): group, truth, answer.

        Each group sums to 1. NaN where the answered class has a share but no calibration row.
        """
        shares = self.answered.rates[:, None, :]
        truth = ratio(self.labelled.counts, self.labelled.counts.sum(axis=1, keepdims=True))
        # A class never answered has share 0, whatever the truth would have been.
        joint: FloatArray = np.where(shares == 0, 0.0, shares * truth)
        return joint

    @property
    def rates(self) -> FloatArray:
        """``P(Yhat=k' | Y=k, z)``, shape (n_groups, n_classes, n_classes); NaN if unknown."""
        return ratio(self.joint, self.joint.sum(axis=2, keepdims=True))

    @property
    def error_rates(self) -> FloatArray:
        """``P(Y != Yhat | z)``, shape (n_groups,); NaN if unknown."""
        rates: FloatArray = 1.0 - np.trace(self.joint, axis1=1, axis2=2)
        return rates

    @property
    def empty_cells(self) -> tuple[tuple[int, int], ...]:
        """(group, answered class) pairs without a calibration row, those never answered too."""
        empty = np.argwhere(self.labelled.counts.sum(axis=1) == 0)
        return tuple((int(z), int(k)) for z, k in empty)

    def require_every_cell(self) -> CalibratedJoint:
        """Return itself if every (group, answered class) has a calibration row.

        Raises
        ------
        ValueError
            Naming the cells that have none, for those who need numbers and not intervals.
        """
        if self.empty_cells:
            cells = ", ".join(f"(group {z}, answered {k})" for z, k in self.empty_cells)
            raise ValueError(
                f"The calibration set has no row in {cells}. Add labelled rows of these groups "
                f"until the mechanism gives them these answers, merge small groups, or report the "
                f"intervals, which hold without."
            )
        return self

    def gap(self, notion: RateNotion, *, level: float = 0.95) -> Estimate:
        """Return the gap that ``notion`` bounds, two-sided; as ``evenhand.fairness.gap_of``."""
        error = 1.0 - _checks.open_unit("level", level)
        value, low, high = largest_gap(
            self._columns(rates_of(notion, self.labelled.n_classes)),
            reference=notion.reference,
            error=error,
        )
        what = f"{notion.key}_{notion.reference}"
        return self._estimate(what, notion.definition, value, low, high, level)

    def error_rate(self, *, level: float = 0.95) -> Estimate:
        """Share of wrong answers among the answered, ``P(Yhat != Y)``, in [0, 1], best 0."""
        columns = self._columns(rates_of(ErrorParity(margin=0.0), self.labelled.n_classes))[0]
        value, low, high = weighted_rate(columns, error=1.0 - _checks.open_unit("level", level))
        return self._estimate("error_rate", ERROR_RATE, value, low, high, level)

    def _columns(self, rates: Rates) -> list[list[Column]]:
        """Return a column per kind of rate and group."""
        return columns_of(rates, self.labelled.counts, self.answered.counts, sampled=self.sampled)

    def _estimate(
        self, name: str, definition: str, value: float, low: float, high: float, level: float
    ) -> Estimate:
        return Estimate(
            name=name,
            definition=f"{definition}; by calibration, provided that " + "; ".join(self.conditions),
            value=value if math.isnan(value) else min(max(value, low), high),
            low=low,
            high=high,
            level=level,
            n=int(self.labelled.totals.sum()),
            n_empty=len(self.empty_cells),
        )


def published_rates(answered: Tally, labelled: JointTally) -> tuple[FloatArray, FloatArray]:
    """Rates of each group from the two tables, by FairPATE's decomposition as printed.

    For comparison with ``CalibratedJoint.rates`` and ``error_rates``, which are the corrected ones.
    Section 4.2 and Appendix C have

        P(Yhat=k'|Y=k,z) ~ (P_D(Yhat=k'|z) - P_C(Yhat!=k'|Y!=k,z) P_D(Yhat!=k')) / P_D(Yhat=k')
        P(Y!=Yhat|z) ~ sum over k, k' != k of P_D(Yhat=k'|z) P_C(Y=k|Yhat=k',z) P_C(Y=k)

    Neither is a probability: a perfect classifier of two equally frequent classes gets true
    positive rates of 0 and false positive rates of 1, and one that is always wrong an error rate of
    a half. The first agrees with the truth if only one class is ever answered, the second if there
    are no errors.

    Parameters
    ----------
    answered, labelled
        As for ``CalibratedJoint``.

    Returns
    -------
    rates : ndarray of float64, shape (n_groups, n_classes, n_classes)
        ``P(Yhat=k' | Y=k, z)``: group, truth, answer. NaN if unknown.
    error_rates : ndarray of float64, shape (n_groups,)

    Examples
    --------
    >>> perfect = JointTally(counts=[[[50, 0], [0, 50]]])
    >>> rates, errors = published_rates(perfect.predicted, perfect)
    >>> rates[0]
    array([[0., 1.], [1., 0.]])
    """
    joint = CalibratedJoint(answered=answered, labelled=labelled)
    counts, n_classes = labelled.counts, labelled.n_classes
    rates = np.empty(counts.shape)
    for k in range(n_classes):
        not_k = counts.sum(axis=1) - counts[:, k]  # truth is another class: (group, answer)
        elsewhere = ratio(not_k.sum(axis=1, keepdims=True) - not_k, not_k.sum(axis=1)[:, None])
        overall = answered.overall
        rates[:, k] = ratio(answered.rates - elsewhere * (1.0 - overall), overall)
    truth = ratio(counts.sum(axis=(0, 2)), counts.sum())
    weighted = joint.joint * truth[None, :, None]
    error_rates: FloatArray = weighted.sum(axis=(1, 2)) - np.trace(weighted, axis1=1, axis2=2)
    return rates, error_rates

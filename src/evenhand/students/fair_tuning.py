"""Tuning a released linear student on labelled public rows, towards the margin."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from evenhand import _checks
from evenhand.students.constrained import DEFAULT_C, SOFTNESS, LinearFit, MarginNotMet
from evenhand.students.network import SMALLER
from evenhand.students.objective import LabelLoss
from evenhand.students.within import Within
from evenhand.typing import ArrayLike, FloatArray, IntArray

ROUNDING: Final = 0.002
"""By how much the corners of ``max`` are rounded, in rates: far below any margin in use."""

FIRST_WEIGHT: Final = 0.1
LARGEST_WEIGHT: Final = 1e4
HALVINGS: Final = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class FairTuning:
    """A tuned student, and the weight of the penalty that made it."""

    fit: LinearFit
    weight: float


def fair_tune(
    coef: FloatArray,
    intercept: FloatArray,
    X: FloatArray,
    labels: ArrayLike,
    within: Within,
    n_classes: int,
    *,
    weight: float | None = None,
) -> FairTuning:
    """Minimise ``mean loss + weight max(0, Gamma - margin)`` from a trained student on.

    Parameters
    ----------
    coef, intercept : arrays, shapes (n_columns, n_features), (n_columns,)
        The trained student; one column for two classes.
    X : ndarray of float64, shape (n, n_features)
        Encoded public rows.
    labels : array-like of int, shape (n,)
        Their true classes. Public.
    within : Within
        The margin, and the groups of these rows.
    n_classes : int
    weight : float, optional
        Of the penalty, at least 0. Default: the smallest that is found to bring the gap of the hard
        decisions on these rows within the margin (tripled until it does, then halved in between);
        where none does, for half the margin, and then for none.

    Returns
    -------
    FairTuning
        ``fit.met`` is False, with a :class:`MarginNotMet` warning, if the gap stayed above the
        margin; where the weight was searched for, the fit with the smallest gap is returned.

    Privacy
    -------
    Free: reads a released student, and rows whose features, groups and labels are public.

    Notes
    -----
    Equation 1 of FairPATE (Appendix D), for a linear student. ``Gamma``, the largest difference of
    rates, is taken over smoothed decisions, and the corners of ``max`` are rounded by 0.002, so
    that it can be descended. The paper stops after some steps; here the tuned weights are pulled to
    the trained ones by the ridge of a student of labels, so few rows change it little.

    References
    ----------
    Yaghini et al. 2024, Appendix D.
    """
    if weight is not None:
        _checks.non_negative("weight", weight)
    problem = _Tuning(coef, intercept, X, _checks.codes("labels", labels, n_classes), within)
    margin = within.notion.margin
    best = _search(problem) if weight is None else problem.tuned(weight, SOFTNESS[-1], margin)
    if not best.fit.met:
        tried = "This weight" if weight is not None else "No weight that was tried"
        warnings.warn(
            f"{tried} brings the gap of the tuned student on the labelled public rows within "
            f"{within.notion.margin:g}; it is {best.fit.gap:.4f}, and the student is kept. Widen "
            f"the margin, or raise weight.",
            MarginNotMet,
            stacklevel=2,
        )
    return best


def _search(problem: _Tuning) -> FairTuning:
    """Return the smallest weight found whose hard gap is within the margin, or the best."""
    margin = problem.within.notion.margin
    best = problem.tuned(0.0, SOFTNESS[0], margin)
    if best.fit.met:
        return best
    # Smoothed decisions can be within the margin where hard ones are not: then for less of it.
    for target, softness in product((margin, SMALLER * margin, 0.0), SOFTNESS):
        low, high = 0.0, FIRST_WEIGHT
        while high <= LARGEST_WEIGHT:
            trial = problem.tuned(high, softness, target)
            best = min(best, trial, key=lambda tuning: tuning.fit.gap)
            if trial.fit.met:
                return _narrowed(problem, low, trial, softness, target)
            low, high = high, 3.0 * high
    return best


def _narrowed(
    problem: _Tuning, low: float, best: FairTuning, softness: float, target: float
) -> FairTuning:
    """Look for a smaller weight that still does, between one that does not and one that does."""
    for _ in range(HALVINGS):
        trial = problem.tuned((low + best.weight) / 2, softness, target)
        if trial.fit.met:
            best = trial
        else:
            low = trial.weight
    return best


class _Tuning:
    """The smooth problem in flat weights, for the optimiser."""

    def __init__(
        self,
        coef: FloatArray,
        intercept: FloatArray,
        X: FloatArray,
        labels: IntArray,
        within: Within,
    ) -> None:
        n_classes = 2 if len(intercept) == 1 else len(intercept)
        self.X = np.hstack([X, np.ones((len(X), 1))])
        self.start = np.vstack([coef.T, intercept[None, :]])
        self.within = within
        self.contrasts = within.contrasts()
        self.loss = LabelLoss(
            labels=labels, rows=np.arange(len(X)), n_classes=n_classes, C=DEFAULT_C
        )
        self.spread = max(float((self.X @ self.start).std(axis=0).mean()), 1e-9)

    def tuned(self, weight: float, softness: float, target: float) -> FairTuning:
        found = minimize(
            self.value,
            self.start.ravel(),
            args=(weight, softness * self.spread, target),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 400, "maxcor": 20},
        )
        W: FloatArray = np.asarray(found.x).reshape(self.start.shape)
        scores = self.X @ W
        decided = scores.argmax(axis=1) if self.loss.n_columns > 1 else scores[:, 0] > 0
        gap = self.within.gap(decided.astype(np.int64), self.loss.n_classes)
        met = gap <= self.within.notion.margin
        fit = LinearFit.of(W, gap, met=met)
        return FairTuning(fit=fit, weight=weight)

    def value(
        self, flat: FloatArray, weight: float, width: float, target: float
    ) -> tuple[float, FloatArray]:
        W = flat.reshape(self.start.shape)
        scores = self.X @ W
        value, of_scores = self.loss.loss(scores)
        penalty, push = self._penalty(scores, width, target)
        away = W - self.start
        gradient = self.X.T @ (of_scores + weight * push) + 2.0 * self.loss.ridge * away
        total = value + weight * penalty + self.loss.ridge * float((away * away).sum())
        return total, gradient.ravel()

    def _penalty(self, scores: FloatArray, width: float, target: float) -> tuple[float, FloatArray]:
        """Return the rounded ``max(0, Gamma - target)`` of smoothed decisions, and its gradient."""
        single = scores.shape[1] == 1
        smooth = expit(scores / width) if single else softmax(scores / width, axis=1)
        apart = self.contrasts @ smooth
        both = np.stack([apart, -apart]) / ROUNDING
        gap = ROUNDING * float(logsumexp(both))
        over = (gap - target) / ROUNDING
        share = np.exp(
            both - gap / ROUNDING
        )  # how much each side of each difference is the largest
        back = self.contrasts.T @ (share[0] - share[1]) * expit(over)
        if single:
            push: FloatArray = back * smooth * (1.0 - smooth) / width
        else:
            push = smooth * (back - (back * smooth).sum(axis=1, keepdims=True)) / width
        return ROUNDING * float(np.logaddexp(0.0, over)), push

"""A linear student whose own decisions on the public rows are within the margin."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from evenhand.fairness import DemographicParity, Tally
from evenhand.students.objective import Objective
from evenhand.typing import FloatArray, IntArray

SOFTNESS: Final = (0.3, 0.1, 0.03)
"""Width of the smoothed decision, in units of the spread of the free student's scores.

Wide ones are tried first: they are easier to descend, and narrow ones are nearer to decisions.
"""

STIFFNESS: Final = 100.0
"""Weight of the squared excess over the target; losses are of order one."""

TRIALS: Final = 8

DEFAULT_C: Final = 0.3
"""Inverse ridge of a student of labels. A firm ridge: released labels are noisy, and few."""


class MarginNotMet(UserWarning):
    """No student of this kind was found within the margin; the best one found is kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Within:
    """The margin that the student's decisions on the public rows shall keep.

    Parameters
    ----------
    notion : DemographicParity
    groups : ndarray of int64, shape (n,)
        Group codes of all public rows.
    n_groups : int
    """

    notion: DemographicParity
    groups: IntArray
    n_groups: int

    def contrasts(self) -> FloatArray:
        """Return rows (n_contrasts, n) whose product with decisions is one difference of rates."""
        sizes = np.bincount(self.groups, minlength=self.n_groups)
        filled = np.flatnonzero(sizes)
        share = np.zeros((len(filled), len(self.groups)))
        for i, z in enumerate(filled):
            share[i, self.groups == z] = 1.0 / sizes[z]
        weight = sizes[filled].astype(float)
        if self.notion.reference == "pairwise":
            pairs = [(i, j) for i in range(len(filled)) for j in range(i)]
            apart: FloatArray = np.zeros((len(pairs), len(self.groups)))
            for row, (i, j) in enumerate(pairs):
                apart[row] = share[i] - share[j]
            return apart
        overall = weight @ share / weight.sum()
        away: FloatArray = share - overall
        if self.notion.reference == "overall":
            return away
        # P(k|z) - P(k|not z) = (P(k|z) - P(k)) * n / n_(not z)
        away *= (weight.sum() / (weight.sum() - weight))[:, None]
        return away

    def gap(self, decisions: IntArray, n_classes: int) -> float:
        """Gap of hard decisions on the public rows."""
        return self.notion.gap(Tally.of(self.groups, decisions, self.n_groups, n_classes).counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearFit:
    """Coefficients (n_columns, n_features), intercepts, and the public gap they give."""

    coef: FloatArray
    intercept: FloatArray
    gap: float
    met: bool

    def classifier(self, n_classes: int) -> LogisticRegression:
        """Return a scikit-learn classifier with these coefficients."""
        student = LogisticRegression()
        student.coef_, student.intercept_ = self.coef, self.intercept
        student.classes_ = np.arange(n_classes)
        student.n_features_in_ = self.coef.shape[1]
        return student


def fit_linear(
    X_public: FloatArray, objective: Objective, within: Within | None, n_classes: int
) -> LinearFit:
    """Minimise ``objective``, subject to the margin on the public rows if there is one.

    The rates of decisions are smoothed (a sigmoid or softmax of the scores over a width), and the
    squared excess of each difference of rates over a target is penalised. The target is then
    moved until the gap of the *hard* decisions on the public rows is within the margin: the
    multiplier is found by the gap that it gives.

    Parameters
    ----------
    X_public : ndarray of float64, shape (n, n_features)
        All public rows, answered or not.
    objective : Objective
        What is minimised; it reads released answers only.
    within : Within or None
        The margin, and the groups of the public rows.
    n_classes : int

    Returns
    -------
    LinearFit
        ``met`` is False, with a :class:`MarginNotMet` warning, if no target gave a gap within the
        margin; the fit with the smallest gap is then returned.

    Privacy
    -------
    Free: reads released answers, public rows and their public groups (post-processing).

    Notes
    -----
    The student needs no group to predict: the constraint is in its weights. On other rows the gap
    is another number, within sampling error of this one if they come from the same population.
    """
    problem = _Problem(X_public, objective, within)
    start = problem.solve(None, np.zeros(problem.n_weights))
    if within is None:
        return problem.fit(start, float("nan"), met=True)
    margin = within.notion.margin
    gap = within.gap(problem.decide(start), n_classes)
    if gap <= margin:
        return problem.fit(start, gap, met=True)
    spread = problem.spread(start)
    closest = (gap, start)
    for softness in SOFTNESS:
        problem.width = softness * spread
        found = _search(problem, within, n_classes, start)
        if found[0] <= margin:
            return problem.fit(found[1], found[0], met=True)
        closest = min(closest, found, key=lambda pair: pair[0])
    if (shifted := _shifted(problem, within, closest[1])) is not None:
        return problem.fit(shifted[1], shifted[0], met=True)
    warnings.warn(
        f"No linear student was found whose gap on the public rows is within {margin:g}; the best "
        f"has {closest[0]:.4f} and is kept. Widen the margin, or give more public rows.",
        MarginNotMet,
        stacklevel=2,
    )
    return problem.fit(closest[1], closest[0], met=False)


def _search(
    problem: _Problem, within: Within, n_classes: int, start: FloatArray
) -> tuple[float, FloatArray]:
    """Move the target until the hard gap is just within the margin; else return the smallest."""
    margin = within.notion.margin
    best: tuple[float, FloatArray] | None = None
    closest = (np.inf, start)
    low, high, target, weights = 0.0, np.inf, margin, start
    for _ in range(TRIALS):
        weights = problem.solve(target, weights)
        gap = within.gap(problem.decide(weights), n_classes)
        closest = min(closest, (gap, weights), key=lambda pair: pair[0])
        if gap <= margin:
            low, best = target, (gap, weights)
            if gap >= 0.9 * margin:
                break
        else:
            high = target
        # Hard decisions spread more than smooth ones, or less: feel for the target both ways.
        target = (low + high) / 2 if high < np.inf else min(2 * target, target + margin)
    return closest if best is None else best


def _shifted(
    problem: _Problem, within: Within, weights: FloatArray
) -> tuple[float, FloatArray] | None:
    """Move the intercept of two classes as little as the margin needs: decisions come in steps."""
    if problem.shape[1] > 1:
        return None
    scores = np.unique(problem.X @ weights)
    cuts = (scores[1:] + scores[:-1]) / 2
    for cut in cuts[np.argsort(np.abs(cuts))]:
        moved = weights.copy()
        moved[-1] -= cut
        gap = within.gap(problem.decide(moved), 2)
        if gap <= within.notion.margin:
            return gap, moved
    return None


class _Problem:
    """The smooth problem in flat weights, for the optimiser."""

    def __init__(self, X: FloatArray, objective: Objective, within: Within | None) -> None:
        self.X = np.hstack([X, np.ones((len(X), 1))])
        self.objective = objective
        self.contrasts = None if within is None else within.contrasts()
        self.shape = (self.X.shape[1], objective.n_columns)
        self.n_weights = self.shape[0] * self.shape[1]
        self.width = 1.0  # of the smoothed decision, in units of the score

    def solve(self, target: float | None, start: FloatArray) -> FloatArray:
        found = minimize(
            self._value,
            start,
            args=(target,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 400, "maxcor": 20},
        )
        weights: FloatArray = found.x
        return weights

    def decide(self, weights: FloatArray) -> IntArray:
        scores = self.X @ weights.reshape(self.shape)
        if self.shape[1] == 1:
            decisions: IntArray = (scores[:, 0] > 0).astype(np.int64)
        else:
            decisions = scores.argmax(axis=1).astype(np.int64)
        return decisions

    def spread(self, weights: FloatArray) -> float:
        """Return the standard deviation of the scores over the public rows."""
        return max(float((self.X @ weights.reshape(self.shape)).std(axis=0).mean()), 1e-9)

    def fit(self, weights: FloatArray, gap: float, *, met: bool) -> LinearFit:
        W = weights.reshape(self.shape).T
        return LinearFit(coef=W[:, :-1].copy(), intercept=W[:, -1].copy(), gap=gap, met=met)

    def _value(self, weights: FloatArray, target: float | None) -> tuple[float, FloatArray]:
        W = weights.reshape(self.shape)
        scores = self.X @ W
        value, slope = self.objective.loss(scores)
        if target is not None and self.contrasts is not None:
            excess, push = self._excess(scores, target)
            value, slope = value + excess, slope + push
        gradient = self.X.T @ slope
        ridge = self.objective.ridge
        value += ridge * float((W[:-1] ** 2).sum())
        gradient[:-1] += 2.0 * ridge * W[:-1]
        return value, gradient.ravel()

    def _excess(self, scores: FloatArray, target: float) -> tuple[float, FloatArray]:
        """Penalty of smoothed differences of rates above ``target``, and its slope."""
        assert self.contrasts is not None
        if self.shape[1] == 1:
            smooth = expit(scores / self.width)
        else:
            smooth = softmax(scores / self.width, axis=1)
        apart = self.contrasts @ smooth
        over = np.maximum(0.0, np.abs(apart) - target) * np.sign(apart)
        back = 2.0 * STIFFNESS * (self.contrasts.T @ over)
        if self.shape[1] == 1:
            push = back * smooth * (1.0 - smooth) / self.width
        else:
            push = smooth * (back - (back * smooth).sum(axis=1, keepdims=True)) / self.width
        return STIFFNESS * float((over**2).sum()), push

"""A linear student within the margin of any notion, by the Lagrangian dual."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from evenhand import _checks
from evenhand._probabilities import decided, gradient_in_scores
from evenhand.fairness.notion import Notion, require_reference
from evenhand.learners.multipliers import GroupDifferences, Multipliers
from evenhand.students.constrained import PRECISION, LinearFit, MarginNotMet
from evenhand.students.design import DesignMatrix
from evenhand.students.objective import Objective
from evenhand.typing import FloatArray, IntArray

ROUNDS: Final = 40
"""Steps of the multipliers, at most."""

PRIMAL_STEPS: Final = 25
"""Steps of the weights (L-BFGS) between two steps of the multipliers."""

STEP: Final = 1.0
"""Default step of the multipliers. Losses, and differences of means, are of order one."""

AIM: Final = 0.9
"""Part of the margin that the multipliers aim for: ascent nears its goal from outside."""

PATIENCE: Final = 6
"""Steps of the multipliers without a better student, after which the search ends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Constraint:
    """``|E[h | A = a] - E[h]| <= margin`` for all groups a, on some rows."""

    notion: Notion
    """The functions h and the margin; ``reference="overall"``."""
    truth: FloatArray
    """True classes of the rows, one-hot; what h and ``among`` read. Zeros where h reads none. Shape
    (n, n_classes).
    """
    weights: FloatArray
    """Groups of the rows: one-hot, probabilities, or unbiased weights that may be negative. Shape
    (n, n_groups).
    """
    rows: IntArray | None = None
    """Which of the student's rows these are. Default: all of them."""

    def __post_init__(self) -> None:
        require_reference(self.notion, "overall", "The constraint")
        _checks.same_length(truth=self.truth, weights=self.weights)
        if self.rows is not None:
            _checks.same_length(rows=self.rows, weights=self.weights)

    def differences(self) -> GroupDifferences:
        """Return the differences that shall be small, as a linear map of h."""
        return GroupDifferences(self.weights, self.notion.among(self.truth))

    def apart(self, differences: GroupDifferences, probabilities: FloatArray) -> FloatArray:
        """Return them for a model's probabilities, of its decisions where h is about decisions."""
        judged = decided(probabilities) if self.notion.on_decisions else probabilities
        return differences.apart(self.notion.values(judged, self.truth))

    def violation(self, probabilities: FloatArray) -> float:
        """Return the largest difference for probabilities (n, n_classes) of these rows."""
        return float(np.abs(self.apart(self.differences(), probabilities)).max(initial=0.0))


def fit_lagrangian(
    X: FloatArray,
    objective: Objective,
    constraint: Constraint | None,
    *,
    anchor: FloatArray | None = None,
    pull: float = 0.0,
    step: float = STEP,
    rounds: int = ROUNDS,
) -> LinearFit:
    """Minimise ``objective + pull * |theta - anchor|^2`` subject to the constraint.

    SF-PATE's problem (2), solved as in Fioretto et al. 2020: some steps on the weights for fixed
    multipliers, one step on the multipliers, until no better student is found. Where h is about
    decisions, the weights follow the probabilities, and the multipliers move, and the search stops,
    by what the decisions do.

    Parameters
    ----------
    X : ndarray of float64, shape (n, n_features)
    objective : Objective
        Loss over all rows.
    constraint : Constraint or None
        None: the minimiser of the objective, and of the pull where an anchor is given.
    anchor : ndarray of float64, shape (n_columns, n_features + 1), optional
        theta*, coefficients and intercepts. Default: the minimiser of ``objective``.
    pull : float
        lambda, at least 0.
    step : float
        Of the multipliers, greater than 0.
    rounds : int
        Steps of the multipliers, at most.

    Returns
    -------
    LinearFit
        Of the students within the margin, the one with the smallest loss. If there is none: the one
        with the smallest violation, ``met`` False, and a :class:`MarginNotMet` warning.
    """
    _checks.non_negative("pull", pull)
    problem = _Problem(X, objective, constraint)
    start = np.zeros(problem.n_weights) if anchor is None else anchor.T.ravel().copy()
    free = problem.solve(start, None, steps=400)
    problem.anchor = free if anchor is None else start
    problem.pull = pull
    if pull and anchor is not None:
        free = problem.solve(problem.anchor, None, steps=400)
    if constraint is None:
        return problem.fit(free, float("nan"), met=True)
    violation = problem.violation(free)
    if violation <= constraint.notion.margin:
        return problem.fit(free, violation, met=True)
    multipliers = Multipliers(
        alpha=AIM * constraint.notion.margin, step=step * problem.differences.shares
    )
    closest, best = (violation, free), (np.inf, violation, free)
    weights, idle = free, 0
    for _ in range(rounds):
        multipliers.ascend(problem.apart(weights))
        weights = problem.solve(weights, multipliers.net, steps=PRIMAL_STEPS)
        violation = problem.violation(weights)
        closest = min(closest, (violation, weights), key=lambda pair: pair[0])
        idle += 1
        if violation <= constraint.notion.margin:
            loss = problem.loss(weights)
            if loss < best[0]:
                best, idle = (loss, violation, weights), 0
        if idle >= PATIENCE and np.isfinite(best[0]):
            break
    if np.isfinite(best[0]):
        return problem.fit(best[2], best[1], met=True)
    warnings.warn(
        f"No student with a violation of {constraint.notion.title} of at most "
        f"{constraint.notion.margin:g} was found in {rounds} steps of the multipliers; the best "
        f"has {closest[0]:.4f} and is kept. Widen the margin, or take more steps or larger ones.",
        MarginNotMet,
        stacklevel=2,
    )
    return problem.fit(closest[1], closest[0], met=False)


class _Problem:
    """The loss and the multiplied constraint in flat weights, for the optimiser."""

    def __init__(self, X: FloatArray, objective: Objective, constraint: Constraint | None) -> None:
        self.X = DesignMatrix.of(X)
        self.objective = objective
        self.constraint = constraint
        self.shape = (X.shape[1] + 1, objective.n_columns)
        self.n_weights = self.shape[0] * self.shape[1]
        self.anchor = np.zeros(self.n_weights)
        self.pull = 0.0
        if constraint is not None:
            self.differences = constraint.differences()
            self.rows = slice(None) if constraint.rows is None else constraint.rows

    def solve(self, start: FloatArray, net: FloatArray | None, *, steps: int) -> FloatArray:
        """Descend from ``start`` under multipliers ``net``."""
        pull = None if net is None else self.differences.back(net)
        found = minimize(
            self._value_in_frame,
            self.X.preconditioner.coordinates(start.reshape(self.shape)).ravel(),
            args=(pull,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxcor": 20, "ftol": PRECISION},
        )
        weights: FloatArray = self.X.preconditioner.weights(found.x.reshape(self.shape)).ravel()
        return weights

    def probabilities(self, weights: FloatArray) -> FloatArray:
        """Return the probabilities of the rows that the constraint is about."""
        scores = self.X.scores(weights.reshape(self.shape))[self.rows]
        return _probabilities(scores)

    def apart(self, weights: FloatArray) -> FloatArray:
        """Return the differences that the constraint is about."""
        assert self.constraint is not None
        return self.constraint.apart(self.differences, self.probabilities(weights))

    def violation(self, weights: FloatArray) -> float:
        """Return the largest difference."""
        return float(np.abs(self.apart(weights)).max(initial=0.0))

    def loss(self, weights: FloatArray) -> float:
        """Return what is minimised, without the multipliers."""
        return self._value(weights, None)[0]

    def fit(self, weights: FloatArray, violation: float, *, met: bool) -> LinearFit:
        """Return the weights as coefficients and intercepts."""
        return LinearFit.of(weights.reshape(self.shape), violation, met=met)

    def _value_in_frame(self, u: FloatArray, pull: FloatArray | None) -> tuple[float, FloatArray]:
        weights = self.X.preconditioner.weights(u.reshape(self.shape)).ravel()
        value, gradient = self._value(weights, pull)
        return value, self.X.preconditioner.gradient(gradient.reshape(self.shape)).ravel()

    def _value(self, weights: FloatArray, pull: FloatArray | None) -> tuple[float, FloatArray]:
        W = weights.reshape(self.shape)
        scores = self.X.scores(W)
        value, of_scores = self.objective.loss(scores)
        if pull is not None:
            assert self.constraint is not None
            term, push = _pulled(self.constraint, scores[self.rows], pull)
            value += term
            of_scores = of_scores.copy()
            of_scores[self.rows] += push
        gradient = self.X.back(of_scores)
        ridge = self.objective.ridge
        value += ridge * float((W[:-1] ** 2).sum())
        gradient[:-1] += 2.0 * ridge * W[:-1]
        if self.pull:
            away = weights - self.anchor
            value += self.pull * float(away @ away)
            gradient += 2.0 * self.pull * away.reshape(self.shape)
        return value, gradient.ravel()


def _pulled(
    constraint: Constraint, scores: FloatArray, pull: FloatArray
) -> tuple[float, FloatArray]:
    """Return ``sum(pull * h)`` and its gradient in the scores."""
    probabilities = _probabilities(scores)
    notion, truth = constraint.notion, constraint.truth
    value = float((pull * notion.values(probabilities, truth)).sum())
    back = notion.gradient(probabilities, truth, pull)
    gradient = gradient_in_scores(probabilities, back)
    return value, gradient[:, 1:] if scores.shape[1] == 1 else gradient


def _probabilities(scores: FloatArray) -> FloatArray:
    if scores.shape[1] == 1:
        p = expit(scores[:, 0])
        return np.stack([1.0 - p, p], axis=1)
    many: FloatArray = softmax(scores, axis=1)
    return many

"""A linear student whose own decisions, on public or calibration rows, are within the margin."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from evenhand.learners.preconditioner import Preconditioner
from evenhand.students.design import DesignMatrix
from evenhand.students.objective import Objective, sigmoid
from evenhand.students.within import SOURCES, Within
from evenhand.typing import Array, FloatArray, IntArray

SOFTNESS: Final = (0.3, 0.1, 0.03)
"""Width of the smoothed decision, in units of the spread of the free student's scores.

Wide ones are tried first: they are easier to descend, and narrow ones are nearer to decisions.
"""

STIFFNESS: Final = 100.0
"""Weight of the squared excess over the target; losses are of order one."""

TRIALS: Final = 8
"""How often the target is moved, per width."""

ENOUGH: Final = 0.9
"""Share of the margin from which a gap within it is near enough: more would cost accuracy."""

PRECISION: Final = 2e-9
"""Relative gain of a step below which descent ends."""

ROUGH: Final = 1e-3
"""The same on the way from no weights at all; from there on the curvature is about what it is."""

PRECISION_OF_A_MOVE: Final = 1e-7
"""The same where a target is tried; the loss then differs in its seventh figure."""

POLISHING: Final = 24
"""Steps that correct the hard differences where no target gave a gap within the margin."""

MOST_STIFF: Final = 4
"""Directions of equally large differences that a preconditioner knows of."""

DEFAULT_C: Final = 0.3
"""Inverse ridge of a student of labels. A firm ridge: released labels are noisy, and few."""


class MarginNotMet(UserWarning):
    """No student of this kind was found within the margin; the best one found is kept."""


def warn_if_above(
    within: Within,
    gap: float,
    way_out: str = "Widen the margin, or give more public rows.",
    *,
    stacklevel: int = 4,
) -> None:
    """Warn where the gap of the decisions of a student that is kept is above the margin."""
    if gap > within.notion.margin:
        warnings.warn(
            f"The student's gap {SOURCES[within.source]} is {gap:.4f}, above the margin of "
            f"{within.notion.margin:g}; it is kept. {way_out}",
            MarginNotMet,
            stacklevel=stacklevel + 1,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearFit:
    """Coefficients (n_columns, n_features), intercepts, and the public gap they give.

    ``free`` is the fit without the margin, from which one under a margin starts.
    """

    coef: FloatArray
    intercept: FloatArray
    gap: float
    met: bool
    free: LinearFit | None = None

    @classmethod
    def of(cls, weights: FloatArray, gap: float, *, met: bool) -> LinearFit:
        """Take weights (n_features + 1, n_columns), of which the last row are the intercepts."""
        return cls(coef=weights[:-1].T.copy(), intercept=weights[-1].copy(), gap=gap, met=met)

    def classifier(self, n_classes: int) -> LogisticRegression:
        """Return a scikit-learn classifier with these coefficients."""
        return linear_model(self.coef, self.intercept, np.arange(n_classes))


def linear_model(coef: FloatArray, intercept: FloatArray, classes: Array) -> LogisticRegression:
    """Return scikit-learn's classifier of these weights; of two classes they are one row."""
    linear = LogisticRegression()
    linear.coef_, linear.intercept_ = coef, intercept
    linear.classes_, linear.n_features_in_ = classes, coef.shape[1]
    return linear


def fit_linear(
    X_public: FloatArray,
    objective: Objective,
    within: Within | None,
    *,
    quiet: bool = False,
) -> LinearFit:
    """Minimise ``objective``, subject to the margin if there is one.

    The rates of decisions are smoothed (a sigmoid or softmax of the scores over a width), and the
    squared excess of each difference of rates over a target is penalised. The target is then
    moved until the gap of the *hard* decisions is within the margin: the multiplier is found by
    the gap that it gives.

    Parameters
    ----------
    X_public : ndarray of float64, shape (n, n_features)
        All public rows, answered or not.
    objective : Objective
        What is minimised; it reads released answers only.
    within : Within or None
        The margin, and the rows (with groups, and with classes for a notion that needs them) on
        which it is read. Default: the public rows themselves.
    quiet : bool
        Whether to leave the warning out.

    Returns
    -------
    LinearFit
        ``met`` is False, with a :class:`MarginNotMet` warning, if no target gave a gap within the
        margin; the fit with the smallest gap is then returned.

    Privacy
    -------
    Free: reads released answers, public rows and what is public of them (post-processing).

    Notes
    -----
    The student needs no group to predict: the constraint is in its weights. On other rows the gap
    is another number, within sampling error of this one if they come from the same population.
    """
    rows = DesignMatrix.of(X_public)
    problem = _Problem(rows, objective, within)
    start = _free(rows, objective)
    free = problem.fit(start, float("nan"), met=True)
    if within is None:
        return free
    fit = _held(problem, within, start)
    if not fit.met and not quiet:
        warnings.warn(
            f"No linear student was found whose gap {SOURCES[within.source]} is within "
            f"{within.notion.margin:g}; the best has {fit.gap:.4f} and is kept. Widen the margin, "
            f"or give more public rows.",
            MarginNotMet,
            stacklevel=2,
        )
    return replace(fit, free=free)


def _held(problem: _Problem, within: Within, start: FloatArray) -> LinearFit:
    """Move the free student at ``start`` until its gap is within the margin, or is least."""
    margin = within.notion.margin
    gap = problem.gap(start)
    if gap <= margin:
        return problem.fit(start, gap, met=True)
    spread = problem.spread(start)
    closest = (gap, start)
    for softness in SOFTNESS:
        problem.width = softness * spread
        found = _search(problem, margin, start, gap)
        if found[0] <= margin:
            return problem.fit(found[1], found[0], met=True)
        closest = min(closest, found, key=lambda pair: pair[0])
    problem.width = SOFTNESS[1] * spread
    polished = _polished(problem, margin, closest)
    kept = [polished] if polished[0] <= margin else []
    if (shifted := _shifted(problem, margin, closest[1])) is not None:
        kept.append(shifted)
    if kept:
        gap, weights = min(kept, key=lambda one: problem.loss(one[1]))
        return problem.fit(weights, gap, met=True)
    return problem.fit(polished[1], polished[0], met=False)


def _free(rows: DesignMatrix, objective: Objective) -> FloatArray:
    """Return the weights without a margin: then only the rows with an answer count."""
    if objective.rows is not None:
        rows, objective = rows.take(objective.rows), objective.alone()
    problem = _Problem(rows, objective, None)
    return problem.solve(None, problem.solve(None, np.zeros(problem.n_weights), ROUGH))


def _search(
    problem: _Problem, margin: float, start: FloatArray, gap: float
) -> tuple[float, FloatArray]:
    """Move the target until the hard gap is just within the margin; else return the smallest.

    Hard differences of rates are other numbers than smooth ones, and may even have turned round
    where the smooth ones are at the target. So the gap is taken with a sign, and is then a rising
    function of the target, which is followed by false position. At the target ``high`` the
    constraint asks nothing of the student at ``start``, whose gap is known.
    """
    wanted = (1.0 + ENOUGH) / 2 * margin
    low, high = (0.0, 0.0), (problem.smooth_gap(start), gap)
    best: tuple[float, FloatArray] | None = None
    closest = (np.inf, start)
    weights, away = start, problem.hard_differences(start)
    for _ in range(TRIALS):
        width = high[0] - low[0]
        slope = width / max(high[1] - low[1], 1e-12)
        inner = (low[0] + 0.1 * width, high[0] - 0.1 * width)
        target = min(max(low[0] + slope * (wanted - low[1]), inner[0]), inner[1])
        weights = problem.solve(target, weights)
        gap = problem.gap(weights)
        closest = min(closest, (gap, weights), key=lambda pair: pair[0])
        turned = float(np.vdot(problem.hard_differences(weights), away)) < 0
        if gap <= margin and (best is None or gap > best[0]):
            best = (gap, weights)
        if ENOUGH * margin <= gap <= margin and not turned:
            break
        if gap > margin and not turned:
            high = (target, gap)
        else:
            low = (target, -gap if turned else gap)
    return closest if best is None else best


def _polished(
    problem: _Problem, margin: float, start: tuple[float, FloatArray]
) -> tuple[float, FloatArray]:
    """Correct the hard differences themselves, by Gauss-Newton steps along the smooth ones.

    Decisions come in steps, and smooth rates are not theirs to the last record of a small group. A
    step moves the weights by what would undo the hard differences if they went as the smooth ones
    go; of all steps the one with the smallest hard gap counts.
    """
    assert problem.differences is not None
    if problem.shape[1] > 1:
        return start
    best, weights = start, start[1]
    for i in range(POLISHING):
        apart = problem.hard_differences(weights).ravel()
        directions = problem.directions(weights)
        moves = problem.X.preconditioner.gradient(directions.T)
        tangent = moves.T @ moves
        tangent[np.diag_indices(len(tangent))] += 1e-6 * tangent.trace() / len(tangent) + 1e-300
        step = problem.X.preconditioner.weights(moves @ np.linalg.solve(tangent, apart))
        weights = weights - (0.5 if i % 2 else 1.0) * step
        gap = problem.gap(weights)
        best = min(best, (gap, weights), key=lambda pair: pair[0])
        if gap <= margin:
            break
    return best


def _shifted(
    problem: _Problem, margin: float, weights: FloatArray
) -> tuple[float, FloatArray] | None:
    """Move the intercept of two classes as little as the margin needs: decisions come in steps."""
    if problem.shape[1] > 1:
        return None
    scores = problem.bound_scores(weights)[:, 0]
    steps = np.unique(scores)
    cuts = (steps[1:] + steps[:-1]) / 2
    for cut in cuts[np.argsort(np.abs(cuts))]:
        if problem.gap_of((scores > cut).astype(np.int64)) > margin:
            continue
        moved = weights.copy()
        moved[-1] -= cut
        gap = problem.gap(moved)  # rounding may have moved a score across
        if gap <= margin:
            return gap, moved
    return None


class _Problem:
    """The smooth problem in flat weights, for the optimiser."""

    def __init__(self, X: DesignMatrix, objective: Objective, within: Within | None) -> None:
        self.X = X
        self.objective = objective
        self.within = within
        self.shape = (X.n_weights, objective.n_columns)
        self.n_weights = self.shape[0] * self.shape[1]
        self.n_classes = max(2, objective.n_columns)
        self.width = 1.0  # of the smoothed decision, in units of the score
        # The rows on which the margin is read: the public rows themselves, or others.
        apart = None if within is None else within.X
        self.bound_X = self.X if apart is None else DesignMatrix(apart)
        self.differences = None if within is None else within.differences(self.n_classes)

    def solve(
        self, target: float | None, start: FloatArray, precision: float | None = None
    ) -> FloatArray:
        """Return the weights of least loss, of those whose smoothed gap is about the target."""
        if precision is None:
            precision = PRECISION if target is None else PRECISION_OF_A_MOVE
        preconditioner = self._preconditioner(target, start.reshape(self.shape))
        found = minimize(
            self._preconditioned,
            preconditioner.coordinates(start.reshape(self.shape)).ravel(),
            args=(target, preconditioner),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 400, "maxcor": 20, "ftol": precision},
        )
        weights: FloatArray = preconditioner.weights(found.x.reshape(self.shape)).ravel()
        return weights

    def _preconditioner(self, target: float | None, W: FloatArray) -> Preconditioner:
        """Return the one with which the problem is about equally curved all round at ``W``."""
        scores = self.X.scores(W)
        stiff = np.empty((0, len(W)))
        if target is not None and self.shape[1] == 1:
            stiff = self._stiff(scores if self.bound_X is self.X else self.bound_X.scores(W))
        return self.X.preconditioner_of(
            self.objective.curvature(scores), self.objective.ridge, stiff
        )

    def _stiff(self, scores: FloatArray) -> FloatArray:
        """Return the directions of the largest smoothed differences, which the penalty stiffens."""
        assert self.differences is not None
        smooth = self._smooth(scores)
        apart = self.differences.apart(smooth)
        size = np.abs(apart).reshape(len(apart), -1).max(axis=1)
        out = []
        for k in np.flatnonzero(size >= (1.0 - 1e-9) * size.max(initial=0.0))[:MOST_STIFF]:
            one = np.zeros_like(apart)
            one[k] = 1.0
            gradient = self.differences.back(one) * smooth * (1.0 - smooth) / self.width
            out.append((2.0 * STIFFNESS) ** 0.5 * self.bound_X.back(gradient)[:, 0])
        return np.array(out).reshape(len(out), self.shape[0])

    def directions(self, weights: FloatArray) -> FloatArray:
        """Return the gradient of each smoothed difference in the weights, (n, n_weights)."""
        assert self.differences is not None
        scores = self.bound_scores(weights)
        smooth = self._smooth(scores)
        density = smooth * (1.0 - smooth) / self.width
        n = self.differences.apart(smooth).size
        ones = np.eye(n).reshape(n, *self.differences.apart(smooth).shape)
        return np.array(
            [self.bound_X.back(self.differences.back(one) * density)[:, 0] for one in ones]
        )

    def bound_scores(self, weights: FloatArray) -> FloatArray:
        """Return the scores of the rows on which the margin is read."""
        return self.bound_X.scores(weights.reshape(self.shape))

    def gap(self, weights: FloatArray) -> float:
        """Return the gap of the hard decisions on these rows."""
        scores = self.bound_scores(weights)
        if self.shape[1] == 1:
            return self.gap_of((scores[:, 0] > 0).astype(np.int64))
        return self.gap_of(scores.argmax(axis=1).astype(np.int64))

    def gap_of(self, decisions: IntArray) -> float:
        assert self.within is not None
        return self.within.gap(decisions, self.n_classes)

    def loss(self, weights: FloatArray) -> float:
        """Return the loss that is minimised, without the ridge."""
        return self.objective.loss(self.X.scores(weights.reshape(self.shape)))[0]

    def hard_differences(self, weights: FloatArray) -> FloatArray:
        """Return the differences of rates of the hard decisions on these rows, with signs."""
        assert self.differences is not None
        scores = self.bound_scores(weights)
        if self.shape[1] == 1:
            return self.differences.apart((scores > 0).astype(np.float64))
        return self.differences.apart(np.eye(self.n_classes)[scores.argmax(axis=1)])

    def smooth_gap(self, weights: FloatArray) -> float:
        """Return the largest of the smoothed differences, which a target bounds."""
        assert self.differences is not None
        smooth = self._smooth(self.bound_scores(weights))
        return float(np.abs(self.differences.apart(smooth)).max(initial=0.0))

    def spread(self, weights: FloatArray) -> float:
        """Return the standard deviation of the scores over the public rows."""
        return max(float(self.X.scores(weights.reshape(self.shape)).std(axis=0).mean()), 1e-9)

    def fit(self, weights: FloatArray, gap: float, *, met: bool) -> LinearFit:
        return LinearFit.of(weights.reshape(self.shape), gap, met=met)

    def _preconditioned(
        self, u: FloatArray, target: float | None, preconditioner: Preconditioner
    ) -> tuple[float, FloatArray]:
        value, gradient = self._value(preconditioner.weights(u.reshape(self.shape)), target)
        return value, preconditioner.gradient(gradient).ravel()

    def _value(self, W: FloatArray, target: float | None) -> tuple[float, FloatArray]:
        scores = self.X.scores(W)
        value, of_scores = self.objective.loss(scores)
        pushed: FloatArray | None = None
        if target is not None:
            shared = self.bound_X is self.X
            excess, push = self._excess(scores if shared else self.bound_X.scores(W), target)
            value += excess
            if shared:
                of_scores = of_scores + push
            else:
                pushed = self.bound_X.back(push)
        gradient = self.X.back(of_scores)
        if pushed is not None:
            gradient += pushed
        ridge = self.objective.ridge
        value += ridge * float((W[:-1] ** 2).sum())
        gradient[:-1] += 2.0 * ridge * W[:-1]
        return value, gradient

    def _smooth(self, scores: FloatArray) -> FloatArray:
        if self.shape[1] == 1:
            return sigmoid(scores / self.width)
        many: FloatArray = softmax(scores / self.width, axis=1)
        return many

    def _excess(self, scores: FloatArray, target: float) -> tuple[float, FloatArray]:
        """Penalty of smoothed differences of rates above ``target``, and its gradient."""
        assert self.differences is not None
        smooth = self._smooth(scores)
        apart = self.differences.apart(smooth)
        over = np.maximum(0.0, np.abs(apart) - target) * np.sign(apart)
        back = 2.0 * STIFFNESS * self.differences.back(over)
        if self.shape[1] == 1:
            push = back * smooth * (1.0 - smooth) / self.width
        else:
            push = smooth * (back - (back * smooth).sum(axis=1, keepdims=True)) / self.width
        return STIFFNESS * float((over**2).sum()), push

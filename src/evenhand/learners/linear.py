"""Many independent logistic regressions solved at once by batched Newton steps, in plain NumPy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.learners.learner import Progress
from evenhand.typing import BoolArray, FloatArray, IntArray

CHUNK_BYTES: Final = 64_000_000  # of one stack of Hessians or designs, so memory stays bounded
ROW_STEP: Final = 16  # rows are padded to a multiple of this, so that few shapes occur
COLUMN_STEP: Final = 8  # as above, for columns
MAX_STEPS: Final = 100  # Newton needs about 10; this is a stop, not a setting
SHORTEST_STEP: Final = 2.0**-30  # below this no descent is left in double precision
MAX_INNER: Final = 200  # conjugate gradient steps inside one Newton step
TINY: Final = 1e-300  # keeps 0 / 0 at 0
JITTER: Final = 1e-12  # relative; keeps a saturated Hessian invertible without moving the optimum


@dataclass(frozen=True, kw_only=True)
class LogisticStack:
    """Fitted logistic regressions, one per partition."""

    coef: FloatArray = field(repr=False)
    """``n_scores`` is 1 for two classes (class 1 against class 0), else the number of classes.
    Shape (n_models, n_scores, d).
    """
    intercept: FloatArray = field(repr=False)
    """``-inf`` for a class that the partition does not hold: it is never predicted. Shape
    (n_models, n_scores).
    """

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.coef)

    def scores(self, X: FloatArray) -> FloatArray:
        """Return each model's score of class 1, for two classes, shape (n_models, n_rows)."""
        if self.coef.shape[1] > 1:
            raise ValueError(
                f"A score of class 1 ranks rows for two classes only; these models have "
                f"{self.coef.shape[1]}."
            )
        out: FloatArray = self.coef[:, 0] @ X.T + self.intercept
        return out

    def predict(self, X: FloatArray) -> IntArray:
        """Return the class of each row by each model, shape (n_models, n_rows)."""
        n_models, n_scores, d = self.coef.shape
        out = np.empty((n_models, len(X)), dtype=np.int64)
        step = max(1, CHUNK_BYTES // (8 * max(1, len(X)) * n_scores))
        for start in range(0, n_models, step):
            some = slice(start, start + step)
            flat = self.coef[some].reshape(-1, d) @ X.T
            scores = flat.reshape(len(self.coef[some]), n_scores, len(X))
            scores += self.intercept[some, :, None]
            out[some] = scores[:, 0] > 0 if n_scores == 1 else scores.argmax(axis=1)
        return out


@dataclass(frozen=True, kw_only=True)
class StackedLogistic:
    """L2-regularised logistic regression on each of many partitions, all at once.

    Each model minimises ``sum_i loss_i + |w|^2 / (2 C)`` over its own rows with a free intercept,
    as ``sklearn.linear_model.LogisticRegression(C=C)`` does, multinomial for more than two
    classes.

    Notes
    -----
    Two exact reductions make it fast. A column that is constant in a partition has coefficient 0
    (the free intercept takes its place); and with fewer rows than columns the coefficients lie in
    the span of the rows, whose dimension is the number of rows. Two classes take Newton steps
    with a direct solve; more classes take Newton steps with conjugate gradients.

    A model sees no other partition, not even the size of one: it is padded to a shape that
    follows from its own rows, and it stops by its own gradient. So another partition cannot move
    a single bit of it. A partition without records answers class 0; one with a single class
    answers that class.
    """

    C: float = 1.0
    """Inverse strength of the penalty, as in scikit-learn. Greater than 0."""
    tolerance: float = 1e-7
    """A model is done when no entry of its gradient is larger, in units of the largest entry of its
    column (at least 1).
    """

    def __post_init__(self) -> None:
        _checks.positive("C", self.C)
        _checks.positive("tolerance", self.tolerance)

    def fit(
        self,
        X: FloatArray,
        y: IntArray,
        rows: Sequence[IntArray],
        *,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> LogisticStack:
        """Fit one model on each set of rows; see ``Learner.fit``.

        ``groups`` are not read, and ``rng`` is not drawn from: the optimum is unique.
        """
        n_scores = 1 if n_classes == 2 else n_classes
        coef = np.zeros((len(rows), n_scores, X.shape[1]))
        intercept = np.full((len(rows), n_scores), -np.inf if n_scores > 1 else -1.0)
        shapes: dict[tuple[int, int, int], list[_Problem]] = defaultdict(list)
        done = 0
        for t, own in enumerate(rows):
            present = np.unique(y[own]) if len(own) else np.zeros(1, dtype=np.int64)
            if len(present) > 1:
                problem = _Problem.of(t, X, own, present)
                shapes[problem.shape].append(problem)
                continue
            # One class, or no record at all (then class 0): a constant score.
            if n_scores > 1:
                intercept[t, present[0]] = 0.0
            else:
                intercept[t, 0] = 1.0 if present[0] == 1 else -1.0
            done += 1
        report = _in_tenths(progress, len(rows))
        report(done)
        for shape in sorted(shapes):
            problems = shapes[shape]
            step = max(1, CHUNK_BYTES // _bytes(shape))
            for start in range(0, len(problems), step):
                self._solve(X, y, problems[start : start + step], shape, coef, intercept)
                done += len(problems[start : start + step])
                report(done)
        return LogisticStack(coef=coef, intercept=intercept)

    def _solve(
        self,
        X: FloatArray,
        y: IntArray,
        problems: Sequence[_Problem],
        shape: tuple[int, int, int],
        coef: FloatArray,
        intercept: FloatArray,
    ) -> None:
        """Fit models of one padded shape and write them into ``coef`` and ``intercept``."""
        n_rows, n_columns, n_present = shape
        design = np.zeros((len(problems), n_rows, n_columns + 1))
        weight = np.zeros((len(problems), n_rows))
        label = np.zeros((len(problems), n_rows), dtype=np.int64)
        for i, p in enumerate(problems):
            design[i, : len(p.rows), : len(p.columns)] = X[np.ix_(p.rows, p.columns)]
            design[i, : len(p.rows), -1] = 1.0
            weight[i, : len(p.rows)] = 1.0
            label[i, : len(p.rows)] = np.searchsorted(p.present, y[p.rows])
        basis = None
        if n_rows < n_columns:
            # Row space: X = R' Q', w = Q u and |w| = |u|, so the problem in u is the same and
            # small.
            basis, upper = np.linalg.qr(design[:, :, :-1].transpose(0, 2, 1))
            design = np.concatenate([upper.transpose(0, 2, 1), design[:, :, -1:]], axis=2)
        penalty = np.full(design.shape[2], 1.0 / self.C)
        penalty[-1] = 0.0
        target = label[:, :, None] == np.arange(1 if n_present == 2 else 0, n_present)
        stack = _Stack(
            design=design, weight=weight, target=target.astype(np.float64), penalty=penalty
        )
        solution = _minimise(stack, self.tolerance)
        coefficients = solution[:, :, :-1]
        if basis is not None:
            coefficients = coefficients @ basis.transpose(0, 2, 1)
        for i, p in enumerate(problems):
            if n_present == 2 and coef.shape[1] > 1:
                # Two of many classes: the binary score is that of the second over the first.
                coef[p.model, p.present[1], p.columns] = coefficients[i, 0, : len(p.columns)]
                intercept[p.model, p.present] = 0.0, solution[i, 0, -1]
                continue
            scores = p.present if coef.shape[1] > 1 else np.zeros(1, dtype=np.int64)
            coef[p.model][np.ix_(scores, p.columns)] = coefficients[i, :, : len(p.columns)]
            # A shift of all intercepts changes nothing; scikit-learn's have mean 0.
            shift = solution[i, :, -1].mean() if n_present > 2 else 0.0
            intercept[p.model, scores] = solution[i, :, -1] - shift


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """One partition: its rows, the columns that vary in it, and the classes that it holds."""

    model: int
    rows: IntArray
    columns: IntArray
    present: IntArray

    @classmethod
    def of(cls, t: int, X: FloatArray, own: IntArray, present: IntArray) -> _Problem:
        block = X[own]
        columns = np.flatnonzero((block != block[0]).any(axis=0))
        return cls(model=t, rows=own, columns=columns, present=present)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Padded rows, padded columns, classes: of this partition alone."""
        return (
            round_up(len(self.rows), ROW_STEP),
            round_up(len(self.columns), COLUMN_STEP),
            len(self.present),
        )


@dataclass(kw_only=True)
class _Stack:
    """The data of models that are still moving: padded rows carry weight 0."""

    design: FloatArray  # (n_models, n_rows, width); the last column is the intercept
    weight: FloatArray  # (n_models, n_rows)
    target: FloatArray  # (n_models, n_rows, n_scores): 1 for the class of a row
    penalty: FloatArray  # (width,); 0 for the intercept
    scale: FloatArray = field(init=False)  # (n_models, 1, width): the unit of each gradient entry

    def __post_init__(self) -> None:
        self.scale = np.maximum(1.0, np.abs(self.design).max(axis=1, keepdims=True))

    def keep(self, some: BoolArray) -> None:
        if not some.all():
            self.design, self.scale = self.design[some], self.scale[some]
            self.weight, self.target = self.weight[some], self.target[some]

    def loss(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Objective (n_models,) and probabilities (n_models, n_rows, n_scores)."""
        score = np.matmul(self.design, theta.transpose(0, 2, 1))
        row, probability = (_binary if score.shape[2] == 1 else _softmax)(score, self.target)
        value = (self.weight * row).sum(axis=1)
        return value + 0.5 * (self.penalty * theta**2).sum(axis=(1, 2)), probability

    def gradient(self, theta: FloatArray, probability: FloatArray) -> FloatArray:
        residual = self.weight[:, :, None] * (probability - self.target)
        out: FloatArray = np.matmul(residual.transpose(0, 2, 1), self.design)
        return out + self.penalty * theta

    def solve(self, gradient: FloatArray, probability: FloatArray) -> FloatArray:
        """Newton direction of two classes: one direct solve for each model."""
        curvature = self.weight * (probability * (1.0 - probability))[:, :, 0]
        # One array times its own transpose: half the work, and exactly symmetric.
        root = self.design * np.sqrt(curvature)[:, :, None]
        hessian: FloatArray = np.matmul(root.transpose(0, 2, 1), root)
        i = np.arange(len(self.penalty))
        hessian[:, i, i] += self.penalty
        hessian[:, i, i] += JITTER * (1.0 + hessian[:, i, i].max(axis=1, keepdims=True))
        direction = np.linalg.solve(hessian, -gradient.transpose(0, 2, 1))
        return np.asarray(direction.transpose(0, 2, 1), dtype=np.float64)

    def solve_cg(self, gradient: FloatArray, probability: FloatArray) -> FloatArray:
        """Newton direction of several classes, by conjugate gradients with a diagonal scale.

        Truncated at a residual of ``min(0.1, sqrt(|g|)) |g|``, which keeps fast convergence.
        """
        weighted = self.weight[:, :, None] * probability
        curvature = weighted * (1.0 - probability)
        scale = np.matmul(curvature.transpose(0, 2, 1), self.design**2) + self.penalty + 1e-12
        direction = np.zeros_like(gradient)
        residual = -gradient
        scaled = residual / scale
        search = scaled
        size = np.sqrt(_dot(residual, residual))
        goal = np.minimum(0.1, np.sqrt(size)) * size
        product = _dot(residual, scaled)
        for _ in range(MAX_INNER):
            # A model that is done keeps its direction: its step length is 0 from here on.
            open_ = np.sqrt(_dot(residual, residual)) > goal
            if not open_.any():
                break
            moved = np.matmul(self.design, search.transpose(0, 2, 1))
            mean = (probability * moved).sum(axis=2, keepdims=True)
            curved = np.matmul((weighted * (moved - mean)).transpose(0, 2, 1), self.design)
            curved += self.penalty * search
            length = np.where(open_, product, 0.0) / np.maximum(_dot(search, curved), TINY)
            direction = direction + length[:, None, None] * search
            residual = residual - length[:, None, None] * curved
            scaled = residual / scale
            after = _dot(residual, scaled)
            search = scaled + (after / np.maximum(product, TINY))[:, None, None] * search
            product = after
        return direction


def _in_tenths(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Show every tenth that is passed, and no other number: how large parts are is private."""
    left = sorted({total * tenth // 10 for tenth in range(1, 11)})

    def report(done: int) -> None:
        while progress is not None and left and left[0] <= done:
            progress(left.pop(0), total)

    return report


def _binary(score: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Loss of each row ``log(1 + e^s) - t s`` and probability of class 1, without overflow."""
    small = np.exp(-np.abs(score))
    row = np.log1p(small) + np.maximum(score, 0.0) - target * score
    return row[:, :, 0], np.where(score >= 0, 1.0, small) / (1.0 + small)


def _softmax(score: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Loss of each row ``log sum_k e^(s_k) - s_t`` and probability of each class."""
    score = score - score.max(axis=2, keepdims=True)
    raised = np.exp(score)
    total = raised.sum(axis=2, keepdims=True)
    return np.log(total[:, :, 0]) - (target * score).sum(axis=2), raised / total


def _minimise(stack: _Stack, tolerance: float) -> FloatArray:
    """Solutions (n_models, n_scores, width) by damped Newton steps; each model stops by itself."""
    n_models, n_scores, width = len(stack.design), stack.target.shape[2], len(stack.penalty)
    solution = np.zeros((n_models, n_scores, width))
    at = np.arange(n_models)
    theta = solution.copy()
    value, probability = stack.loss(theta)
    for _ in range(MAX_STEPS):
        gradient = stack.gradient(theta, probability)
        # ~(<=), not >: what is not a number has not converged.
        moving = ~(np.abs(gradient / stack.scale).max(axis=(1, 2)) <= tolerance)
        solution[at] = theta
        if not moving.any():
            return solution
        stack.keep(moving)
        at, theta, value, probability, gradient = (
            each[moving] for each in (at, theta, value, probability, gradient)
        )
        solve = stack.solve if n_scores == 1 else stack.solve_cg
        direction = solve(gradient, probability)
        theta, value, probability = _descend(stack, theta, value, gradient, direction)
    raise ValueError(
        f"The logistic regression of {len(at)} partition(s) did not converge in {MAX_STEPS} Newton "
        "steps: the columns of X have too different sizes, or C is too large. Scale the columns "
        "with public statistics, or lower C."
    )


def _descend(
    stack: _Stack,
    theta: FloatArray,
    value: FloatArray,
    gradient: FloatArray,
    direction: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Halve each model's step until its loss falls enough (Armijo)."""
    derivative = _dot(gradient, direction)
    length = np.ones(len(theta))
    slack = 1e-12 * (1.0 + np.abs(value))  # rounding of the loss near the optimum
    while True:
        trial = theta + length[:, None, None] * direction
        new, probability = stack.loss(trial)
        high = ~(new <= value + 1e-4 * length * derivative + slack) & (length > SHORTEST_STEP)
        if not high.any():
            return trial, new, probability
        length[high] /= 2.0


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    out: FloatArray = (a * b).sum(axis=(1, 2))
    return out


def round_up(n: int, step: int) -> int:
    """Return the smallest multiple of ``step`` that is at least ``n``."""
    return -(-n // step) * step


def _bytes(shape: tuple[int, int, int]) -> int:
    n_rows, n_columns, n_classes = shape
    return 8 * (n_columns + 1) * max(n_rows, min(n_rows, n_columns) + 1, n_classes)

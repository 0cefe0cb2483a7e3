"""Many logistic regressions at once, each under a fairness constraint on its own rows, in NumPy."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand._probabilities import decided, gradient_in_scores
from evenhand.learners.learner import GroupedRows, GroupLearner, Progress
from evenhand.learners.linear import LogisticStack, StackedLogistic
from evenhand.learners.multipliers import GroupDifferences, Multipliers, RowFunction
from evenhand.learners.nets.regularizer import AIM
from evenhand.typing import FloatArray

ROW_STEP: Final = 16  # rows are padded to a multiple of this, so that few shapes occur
CHUNK_BYTES: Final = 32_000_000  # of one stack of rows, so that it stays near the processor
ADAM: Final = (0.9, 0.999, 1e-8)


@dataclass(frozen=True, kw_only=True)
class StackedFairLogistic(GroupLearner):
    """Logistic regression on each of many partitions, under ``|E[h|A=a] - E[h]| <= alpha``.

    Each model starts from its free optimum (``StackedLogistic``) and takes ``steps`` steps of Adam
    on its whole partition; every ``PRIMAL`` steps its multipliers move (Fioretto et al. 2020).

    Notes
    -----
    Of all weights that a model had when its multipliers moved, those are kept whose violation on
    the model's own rows is smallest, the earliest of equals; below alpha all are equal. A model
    reads its own rows and groups only, and is padded to a shape that follows from their number.
    """

    function: RowFunction
    """The h above."""
    alpha: float
    """At least 0."""
    C: float = 1.0
    """Inverse strength of the penalty, as for ``StackedLogistic``."""
    step: float = 1.0
    """Of the multipliers, for a difference of means over all rows; greater than 0."""
    steps: int = 100
    """Of the weights."""
    learning_rate: float = 0.05
    """Of Adam, constant."""

    PRIMAL: int = field(default=5, init=False, repr=False)

    def __post_init__(self) -> None:
        _checks.non_negative("alpha", self.alpha)
        _checks.positive("C", self.C)
        _checks.positive("step", self.step)
        _checks.at_least("steps", self.steps, 1)
        _checks.positive("learning_rate", self.learning_rate)

    def _fit(
        self, given: GroupedRows, rng: np.random.Generator, progress: Progress | None
    ) -> LogisticStack:
        X, y, z, rows = given.X, given.y, given.groups, given.rows
        free = StackedLogistic(C=self.C).fit(X, y, rows, n_classes=given.n_classes, rng=rng)
        shapes: dict[int, list[int]] = defaultdict(list)
        for t, own in enumerate(rows):
            # One class or one group: there is nothing to hold equal.
            if len(own) and len(np.unique(y[own])) > 1 and len(np.unique(z[own])) > 1:
                shapes[-(-len(own) // ROW_STEP) * ROW_STEP].append(t)
        for padded in sorted(shapes):
            n_together = max(1, CHUNK_BYTES // (8 * padded * X.shape[1]))
            for start in range(0, len(shapes[padded]), n_together):
                some = shapes[padded][start : start + n_together]
                stack = _Stack(self, replace(given, rows=[rows[t] for t in some]), padded)
                stack.begin(free.coef[some], free.intercept[some])
                free.coef[some], free.intercept[some] = stack.train()
        if progress is not None:
            progress(len(rows), len(rows))
        return free


class _Stack:
    """The data and the weights of models that are trained together."""

    def __init__(self, learner: StackedFairLogistic, given: GroupedRows, padded: int) -> None:
        self.learner = learner
        n_models = len(given.rows)
        self.design = np.zeros((n_models, padded, given.X.shape[1]))
        self.truth = np.zeros((n_models, padded, given.n_classes))
        weights = np.zeros((n_models, padded, given.n_groups))
        self.inside = np.zeros((n_models, padded, 1))
        for i, own in enumerate(given.rows):
            n = len(own)
            self.design[i, :n] = given.X[own]
            self.truth[i, np.arange(n), given.y[own]] = 1.0
            weights[i, np.arange(n), given.groups[own]] = 1.0
            self.inside[i, :n] = 1.0
        self.size = self.inside.sum(axis=1, keepdims=True)
        among = learner.function.among(self.truth) * self.inside
        self.differences = GroupDifferences(weights, among)
        held = self.differences.shares * padded / self.size
        self.multipliers = Multipliers(alpha=AIM * learner.alpha, step=learner.step * held)

    def begin(self, coef: FloatArray, intercept: FloatArray) -> None:
        """Start from given weights (n_models, n_scores, d) and intercepts (n_models, n_scores)."""
        self.coef, self.intercept = coef.copy(), intercept.copy()
        # A class that a partition does not hold has an intercept of -inf, and no gradient.
        self.moments = [np.zeros_like(a) for a in (coef, coef, intercept, intercept)]

    def train(self) -> tuple[FloatArray, FloatArray]:
        """Return the weights and intercepts of the smallest violation; see the class above."""
        best = self._violations()
        kept = self.coef.copy(), self.intercept.copy()
        for step in range(1, self.learner.steps + 1):
            if step % self.learner.PRIMAL == 1:
                pull = self.differences.back(self.multipliers.net) * self.size
            self._descend(step, pull)
            if step % self.learner.PRIMAL == 0:
                now = self._violations()
                better = now < best
                best = np.where(better, now, best)
                for old, new in zip(kept, (self.coef, self.intercept), strict=True):
                    old[better] = new[better]
        return kept

    def _violations(self) -> FloatArray:
        """Move the multipliers; return each model's violation, at least alpha."""
        probabilities, function = self._probabilities(), self.learner.function
        judged = decided(probabilities) if function.on_decisions else probabilities
        apart = self.differences.apart(function.values(judged, self.truth))
        self.multipliers.ascend(apart)
        worst: FloatArray = np.maximum(np.abs(apart).max(axis=(1, 2)), self.learner.alpha)
        return worst

    def _probabilities(self) -> FloatArray:
        scores = self.design @ self.coef.transpose(0, 2, 1) + self.intercept[:, None, :]
        if scores.shape[2] == 1:
            p = 0.5 * (1.0 + np.tanh(0.5 * scores))
            return np.concatenate([1.0 - p, p], axis=2)
        raised = np.exp(scores - scores.max(axis=2, keepdims=True))
        out: FloatArray = raised / raised.sum(axis=2, keepdims=True)
        return out

    def _descend(self, step: int, pull: FloatArray) -> None:
        """Take one step of Adam on mean loss, ridge and multiplied constraint."""
        probabilities = self._probabilities()
        back = self.learner.function.gradient(probabilities, self.truth, pull)
        pushed = gradient_in_scores(probabilities, back)
        residual = (probabilities - self.truth + pushed) * self.inside / self.size
        if self.coef.shape[1] == 1:
            residual = residual[:, :, 1:]
        of_coef = residual.transpose(0, 2, 1) @ self.design
        of_coef += self.coef / (self.learner.C * self.size)
        first, second, tiny = ADAM
        for weights, gradient, at in (
            (self.coef, of_coef, 0),
            (self.intercept, residual.sum(axis=1), 2),
        ):
            m, v = self.moments[at], self.moments[at + 1]
            m += (1.0 - first) * (gradient - m)
            v += (1.0 - second) * (gradient**2 - v)
            size = np.sqrt(v / (1.0 - second**step)) + tiny
            weights -= self.learner.learning_rate * m / (1.0 - first**step) / size

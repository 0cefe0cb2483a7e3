"""What networks learn beside their labels: a fairness constraint, and nearness to a first model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand._probabilities import decided, gradient_in_scores
from evenhand.learners.multipliers import GroupDifferences, Multipliers, RowFunction
from evenhand.typing import Array, FloatArray, IntArray

AIM = 0.9
"""Part of alpha that the multipliers aim for: ascent nears its goal from outside."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Regularizer:
    """A constraint for each model on its own rows, and a network to start from and stay near."""

    function: RowFunction | None = None
    """h; the constraint is ``|E[h | A = a] - E[h]| <= alpha`` on the rows of a model. None: there
    is no constraint.
    """
    alpha: float = 0.0
    """At least 0."""
    weights: FloatArray | None = field(default=None, repr=False)
    """Groups of all rows: one-hot, probabilities, or unbiased weights. Default, for a constraint:
    the groups that ``Learner.fit`` is given. Shape (n, n_groups).
    """
    truth: FloatArray | None = field(default=None, repr=False)
    """True classes that h reads. Default: what the models learn. Shape (n, n_classes)."""
    step: float = 1.0
    """Of the multipliers, for a difference of means over all rows; greater than 0."""
    start: Any = field(default=None, repr=False)
    """A network from which every model starts, as its learner has it: a sequence of layers (weight
    and bias), or a module. Optional.
    """
    pull: float = 0.0
    """Weight of the squared distance to ``start``, beside a mean loss."""

    def __post_init__(self) -> None:
        _checks.non_negative("alpha", self.alpha)
        _checks.positive("step", self.step)
        _checks.non_negative("pull", self.pull)
        if self.function is None and self.weights is not None:
            raise ValueError(
                "The weights of groups are read by a constraint alone, and there is no function. "
                "Give both, or leave weights out."
            )

    @property
    def needs_groups(self) -> bool:
        """Whether there is a constraint, and the groups of the rows are still to be given."""
        return self.function is not None and self.weights is None

    def of(
        self, parts: Sequence[IntArray], targets: FloatArray, padded: int
    ) -> ConstraintPenalty | None:
        """Return the penalty of models that are trained together, on ``parts`` of the rows.

        None without a constraint.
        """
        if self.function is None:
            return None
        if self.weights is None:
            raise ValueError("A constraint compares groups, and their weights= are missing.")
        truth = targets if self.truth is None else self.truth
        groups = self.weights
        function, settings = self.function, (AIM * self.alpha, self.step)
        return ConstraintPenalty(function, groups, parts, truth, padded, *settings)


class ConstraintPenalty:
    """Multipliers of models that are trained together; they read probabilities as they come along.

    Parameters
    ----------
    function : RowFunction
    weights : ndarray of float64, shape (n, n_groups)
        Groups of all rows.
    parts : sequence of ndarray of int64
        Rows of each model. Together they make one table, in this order.
    truth : ndarray of float64, shape (n, n_classes)
    padded : int
        Rows to which each part is padded: the same for all, so that no part's size shapes the
        arithmetic of another.
    alpha, step : float
        Of the multipliers.

    Notes
    -----
    For given multipliers a constraint is a term in the loss of each row, so small batches feel it
    without bias. The multipliers move once in each pass, by the probabilities that the rows had
    when they were last seen in it: no further pass is needed.
    """

    def __init__(
        self,
        function: RowFunction,
        weights: FloatArray,
        parts: Sequence[IntArray],
        truth: FloatArray,
        padded: int,
        alpha: float,
        step: float,
    ) -> None:
        self._function = function
        rows = np.concatenate(parts)
        n_models, n_classes = len(parts), truth.shape[1]
        sizes = np.array([len(part) for part in parts])
        inside = np.arange(padded) < sizes[:, None]  # (n_models, padded)
        self._place = np.flatnonzero(inside)  # of the table's rows among the padded ones
        groups = np.zeros((n_models, padded, weights.shape[1]))
        groups[inside] = weights[rows]
        self._truth = np.zeros((n_models, padded, n_classes))
        self._truth[inside] = truth[rows]
        among = function.among(self._truth) * inside[:, :, None]
        self._differences = GroupDifferences(groups, among)
        held = self._differences.shares * padded / np.maximum(1, sizes)[:, None, None]
        self._multipliers = Multipliers(alpha=alpha, step=step * held)
        self._size = sizes[:, None, None].astype(np.float64)
        self._probabilities = np.full((n_models, padded, n_classes), 1.0 / n_classes)
        self._pull = np.zeros_like(among)
        self._idle = True
        self._seen: list[tuple[IntArray, Array]] = []

    def push(self, probabilities: Array, at: IntArray | None) -> Array | None:
        """Note probabilities (n_models, width, n_classes) of the rows ``at``; return a gradient.

        It is that of the multiplied constraint in the scores, per row, to be weighed as the losses
        of the rows are; None where it is 0 everywhere. With ``at=None`` these are all rows
        of each model, in their order and padded.
        """
        if at is None:
            self._probabilities[...] = probabilities
            if self._idle:
                return None
            truth, pull = self._truth, self._pull
        else:
            where = self._place.take(at)
            self._seen.append((where, probabilities.reshape(len(at), -1).copy()))
            if self._idle:
                return None
            truth, pull = (_rows(of, where, probabilities) for of in (self._truth, self._pull))
        out = gradient_in_scores(probabilities, self._function.gradient(probabilities, truth, pull))
        return out.astype(probabilities.dtype, copy=False)

    def ascend(self) -> None:
        """Move the multipliers by what the rows' probabilities were in this pass."""
        if self._seen:
            where, probabilities = (
                np.concatenate(parts) for parts in zip(*self._seen, strict=True)
            )
            self._seen.clear()
            self._probabilities.reshape(-1, probabilities.shape[1])[where] = probabilities
        judged = (
            decided(self._probabilities) if self._function.on_decisions else self._probabilities
        )
        values = self._function.values(judged, self._truth)
        self._multipliers.ascend(self._differences.apart(values))
        net = self._multipliers.net
        self._idle = not net.any()
        self._pull = self._differences.back(net) * self._size


def _rows(of: FloatArray, where: IntArray, like: Array) -> FloatArray:
    """Return some of the rows (n_models, padded, k) as (n_models, width, k); take() is quick."""
    width = of.shape[-1]
    out: FloatArray = of.reshape(-1, width).take(where, axis=0).reshape(*like.shape[:2], width)
    return out

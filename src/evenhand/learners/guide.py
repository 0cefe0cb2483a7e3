"""What networks learn beside their labels: a fairness constraint, and nearness to a first model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand.learners.dual import Differences, Multipliers, RowFunction
from evenhand.typing import Array, FloatArray, IntArray

__all__ = ["AIM", "Guide", "Guided"]

AIM = 0.9
"""Part of alpha that the multipliers aim for: ascent nears its goal from outside."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """A constraint for each model on its own rows, and a network to start from and stay near.

    Parameters
    ----------
    function : RowFunction, optional
        h; the constraint is ``|E[h | A = a] - E[h]| <= alpha`` on the rows of a model. None: there
        is no constraint.
    alpha : float
        At least 0.
    weights : ndarray of float64, shape (n, n_groups), optional
        Groups of all rows: one-hot, probabilities, or unbiased weights. Needed for a constraint.
    truth : ndarray of float64, shape (n, n_classes), optional
        True classes that h reads. Default: what the models learn.
    step : float
        Of the multipliers, for a difference of means over all rows; greater than 0.
    start : optional
        A network from which every model starts, as its learner has it: a sequence of layers (weight
        and bias), or a module.
    pull : float, default 0
        Weight of the squared distance to ``start``, beside a mean loss.
    """

    function: RowFunction | None = None
    alpha: float = 0.0
    weights: FloatArray | None = field(default=None, repr=False)
    truth: FloatArray | None = field(default=None, repr=False)
    step: float = 1.0
    start: Any = field(default=None, repr=False)
    pull: float = 0.0

    def __post_init__(self) -> None:
        _checks.non_negative("alpha", self.alpha)
        _checks.positive("step", self.step)
        _checks.non_negative("pull", self.pull)
        if (self.function is None) != (self.weights is None):
            raise ValueError(
                "A constraint needs a function and the weights of the groups; one of them is "
                "missing. Give both or neither."
            )

    def of(self, parts: Sequence[IntArray], targets: FloatArray, padded: int) -> Guided | None:
        """Return what guides models that are trained together, on ``parts`` of the rows.

        None without a constraint.
        """
        if self.function is None or self.weights is None:
            return None
        truth = targets if self.truth is None else self.truth
        groups = self.weights
        function, settings = self.function, (AIM * self.alpha, self.step)
        return Guided(function, groups, parts, truth, padded, *settings)


class Guided:
    """Multipliers of models that are trained together; told of chances as they come along.

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
    without bias. The multipliers move once in each pass, by the chances that the rows had when they
    were last seen in it: no further pass is needed.
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
        self._truth = truth[rows]
        n_models, n_classes = len(parts), truth.shape[1]
        sizes = np.array([len(part) for part in parts])
        inside = np.arange(padded) < sizes[:, None]  # (n_models, padded)
        self._inside = inside
        stacked = np.zeros((n_models, padded, weights.shape[1]))
        stacked[inside] = weights[rows]
        self._stacked_truth = np.zeros((n_models, padded, n_classes))
        self._stacked_truth[inside] = self._truth
        among = function.among(self._stacked_truth) * inside[:, :, None]
        self._differences = Differences(stacked, among)
        held = self._differences.shares * padded / np.maximum(1, sizes)[:, None, None]
        self._multipliers = Multipliers(alpha=alpha, step=step * held)
        self._size = sizes[:, None, None].astype(np.float64)
        self._chances = np.full((len(rows), n_classes), 1.0 / n_classes)
        self._pull = np.zeros((len(rows), among.shape[2]))
        self._idle = True

    def push(self, chances: Array, at: IntArray) -> Array:
        """Note chances (n_models, width, n_classes) of the table's rows ``at``; return the slope.

        The slope is that of the multiplied constraint in the scores, per row, to be weighed as the
        losses of the rows are.
        """
        self._chances[at] = chances.reshape(len(at), -1)
        if self._idle:
            return np.zeros_like(chances)
        shape = chances.shape
        truth = self._truth[at].reshape(shape)
        back = self._function.slope(chances, truth, self._pull[at].reshape(*shape[:2], -1))
        out: Array = chances * (back - (back * chances).sum(axis=-1, keepdims=True))
        return out.astype(chances.dtype, copy=False)

    def ascend(self) -> None:
        """Move the multipliers by what the rows' chances were in this pass."""
        chances = np.zeros_like(self._stacked_truth)
        chances[self._inside] = self._chances
        if self._function.on_decisions:
            winner = chances.argmax(axis=-1, keepdims=True)
            chances = (np.arange(chances.shape[-1]) == winner).astype(np.float64)
        values = self._function.values(chances, self._stacked_truth)
        self._multipliers.ascend(self._differences.apart(values))
        pull = self._differences.back(self._multipliers.net) * self._size
        self._pull = pull[self._inside]
        self._idle = not self._pull.any()

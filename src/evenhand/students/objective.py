"""What a linear student minimises: a loss that knows what kind of answers it learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from scipy.special import log_softmax, softmax

from evenhand.typing import Array, FloatArray, IntArray

FARTHEST: Final = 700.0
"""Scores beyond it are as good as sure, and their exponential would overflow."""


class Objective(Protocol):
    """Mean loss of a linear student, with its gradient."""

    @property
    def n_columns(self) -> int:
        """Columns of scores: 1 for two classes, else one per class."""

    def loss(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss at ``scores`` (n, n_columns) of *all* public rows, and its gradient."""

    def curvature(self, scores: FloatArray) -> FloatArray:
        """Curvature of the loss in each row's score, (n,), at least 0; of several, their mean.

        It need not be exact: it preconditions the descent.
        """

    @property
    def rows(self) -> IntArray | None:
        """Rows that the loss reads; None for all."""

    def alone(self) -> Objective:
        """Return the same loss as one of scores of ``rows`` only."""

    @property
    def ridge(self) -> float:
        """Weight of the squared length of the coefficients (the intercept is free)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelLoss:
    """Logistic (softmax) loss on the rows that carry a label."""

    labels: Array
    """Class codes of all public rows, or their chances; rows outside ``rows`` are not read. Shape
    (n,) or (n, n_classes).
    """
    rows: IntArray
    """Rows that carry a label."""
    n_classes: int
    C: float
    """Inverse ridge, as in scikit-learn: the sum of the losses is weighed with C."""
    weights: FloatArray | None = None
    """What each labelled row weighs. Default: 1 each. Shape (len(rows),)."""

    @property
    def n_columns(self) -> int:
        """Columns of scores."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def ridge(self) -> float:
        """Weight of the squared length of the coefficients."""
        total = len(self.rows) if self.weights is None else float(self.weights.sum())
        return 0.5 / (self.C * total)

    def loss(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Mean negative log likelihood of the labels, expected where they are chances."""
        gradient = np.zeros_like(scores)
        own, y, each = self._own, self._of_own, self._each
        z = scores[own]
        if self.n_columns == 1:
            # log(1 + e^s) and the sigmoid from one exponential that cannot overflow.
            s, y = z[:, 0], y[:, 1]
            small = np.exp(-np.abs(s))
            value = float(each @ (np.log1p(small) + np.maximum(s, 0.0) - y * s))
            gradient[own, 0] = (np.where(s >= 0, 1.0, small) / (1.0 + small) - y) * each
            return value, gradient
        value = -float(each @ (y * log_softmax(z, axis=1)).sum(axis=1))
        gradient[own] = (softmax(z, axis=1) - y) * each[:, None]
        return value, gradient

    @cached_property
    def _each(self) -> FloatArray:
        """The share of each labelled row in the mean."""
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        each: FloatArray = weights / weights.sum()
        return each

    @cached_property
    def _own(self) -> slice | IntArray:
        """The rows that carry a label; a slice is quicker where these are all."""
        every = np.array_equal(self.rows, np.arange(len(self.labels)))
        return slice(None) if every else self.rows

    @cached_property
    def _of_own(self) -> FloatArray:
        """The chance of each class on these rows."""
        labels = self.labels[self.rows]
        chances: FloatArray = np.eye(self.n_classes)[labels] if labels.ndim == 1 else labels
        return chances

    def curvature(self, scores: FloatArray) -> FloatArray:
        """``p (1 - p)`` times the row's share on rows with a label, 0 on others."""
        out = np.zeros(len(scores))
        out[self.rows] = _gradient_of_link(scores[self.rows]) * self._each
        return out

    def alone(self) -> LabelLoss:
        """Return the loss on the labelled rows alone."""
        own = np.arange(len(self.rows))
        return replace(self, labels=self.labels[self.rows], rows=own)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareLoss:
    """Squared distance between noisy vote shares and the student's probabilities.

    The noise of the shares is Gaussian and its variance is known, so least squares weighted by
    precision is the likelihood; the link keeps the student's own shares between 0 and 1.
    """

    shares: FloatArray
    """Released shares of the votes. With two classes one column carries all the noise there is.
    Shape (n, n_classes).
    """
    variance: FloatArray
    """Variance of the noise of one share of each row. Shape (n,)."""
    prior_variance: float = 0.25
    """Variance of a coefficient expected beforehand (features have unit scale): the ridge is the
    ratio of the two, as in the posterior mode under Gaussian noise.
    """

    @property
    def n_columns(self) -> int:
        """Columns of scores."""
        return 1 if self.shares.shape[1] == 2 else int(self.shares.shape[1])

    @property
    def ridge(self) -> float:
        """Weight of the squared length of the coefficients."""
        return 1.0 / (self.prior_variance * float((1.0 / self.variance).sum()))

    def loss(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Mean squared distance, each row weighted by its precision."""
        weight = self._weight
        if self.n_columns == 1:
            p = sigmoid(scores[:, 0])
            apart = p - self.shares[:, 1]
            return float(weight @ apart**2), (2.0 * weight * apart * p * (1.0 - p))[:, None]
        p = softmax(scores, axis=1)
        apart = p - self.shares
        value = float(weight @ (apart * apart).sum(axis=1))
        gradient: FloatArray = 2.0 * p * (apart - (apart * p).sum(axis=1, keepdims=True))
        return value, weight[:, None] * gradient

    def curvature(self, scores: FloatArray) -> FloatArray:
        """Of Gauss and Newton: ``2 w (p (1 - p))^2``."""
        return 2.0 * self._weight * _gradient_of_link(scores) ** 2

    @property
    def rows(self) -> None:
        """All rows were answered."""
        return None

    def alone(self) -> ShareLoss:
        """Return the loss itself."""
        return self

    @cached_property
    def _weight(self) -> FloatArray:
        weight: FloatArray = 1.0 / self.variance
        weight /= weight.sum()
        return weight


def sigmoid(scores: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-scores))``, several times faster than ``scipy.special.expit``."""
    out: FloatArray = np.exp(-np.minimum(np.maximum(scores, -FARTHEST), FARTHEST))
    out += 1.0
    return np.reciprocal(out, out=out)


def _gradient_of_link(scores: FloatArray) -> FloatArray:
    """Return ``p (1 - p)`` of each row, of several columns their mean."""
    p = sigmoid(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
    derivative: FloatArray = (p * (1.0 - p)).mean(axis=1)
    return derivative

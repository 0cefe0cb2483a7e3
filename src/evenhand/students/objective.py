"""What a linear student minimises: a loss that knows what kind of answers it learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, log_softmax, softmax

from evenhand.typing import FloatArray, IntArray


class Objective(Protocol):
    """Mean loss of a linear student, with its slope."""

    @property
    def n_columns(self) -> int:
        """Columns of scores: 1 for two classes, else one per class."""

    def loss(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss at ``scores`` (n, n_columns) of *all* public rows, and its slope."""

    @property
    def ridge(self) -> float:
        """Weight of the squared length of the coefficients (the intercept is free)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelLoss:
    """Logistic (softmax) loss on the rows that carry a label.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)
        Class codes of all public rows; rows outside ``rows`` are not read.
    rows : ndarray of int64
        Rows that carry a label.
    n_classes : int
    C : float
        Inverse ridge, as in scikit-learn: the sum of the losses is weighed with C.
    """

    labels: IntArray
    rows: IntArray
    n_classes: int
    C: float

    @property
    def n_columns(self) -> int:
        """Columns of scores."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def ridge(self) -> float:
        """Weight of the squared length of the coefficients."""
        return 0.5 / (self.C * len(self.rows))

    def loss(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Mean negative log likelihood of the labels."""
        slope = np.zeros_like(scores)
        z, y, n = scores[self.rows], self.labels[self.rows], len(self.rows)
        if self.n_columns == 1:
            # log(1 + e^s) and the sigmoid from one exponential that cannot overflow.
            s = z[:, 0]
            small = np.exp(-np.abs(s))
            value = float((np.log1p(small) + np.maximum(s, 0.0) - y * s).sum()) / n
            slope[self.rows, 0] = (np.where(s >= 0, 1.0, small) / (1.0 + small) - y) / n
            return value, slope
        value = -float(log_softmax(z, axis=1)[np.arange(n), y].sum()) / n
        slope[self.rows] = softmax(z, axis=1) / n
        slope[self.rows, y] -= 1.0 / n
        return value, slope


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareLoss:
    """Squared distance between noisy vote shares and the student's probabilities.

    The noise of the shares is Gaussian and its variance is known, so least squares weighted by
    precision is the likelihood; the link keeps the student's own shares between 0 and 1.

    Parameters
    ----------
    shares : ndarray of float64, shape (n, n_classes)
        Released shares of the votes. With two classes one column carries all the noise there is.
    variance : ndarray of float64, shape (n,)
        Variance of the noise of one share of each row.
    prior_variance : float, default 0.25
        Variance of a coefficient expected beforehand (features have unit scale): the ridge is the
        ratio of the two, as in the posterior mode under Gaussian noise.
    """

    shares: FloatArray
    variance: FloatArray
    prior_variance: float = 0.25

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
        weight = 1.0 / self.variance
        weight /= weight.sum()
        if self.n_columns == 1:
            p = expit(scores[:, 0])
            apart = p - self.shares[:, 1]
            return float(weight @ apart**2), (2.0 * weight * apart * p * (1.0 - p))[:, None]
        p = softmax(scores, axis=1)
        apart = p - self.shares
        value = float(weight @ (apart * apart).sum(axis=1))
        slope: FloatArray = 2.0 * p * (apart - (apart * p).sum(axis=1, keepdims=True))
        return value, weight[:, None] * slope

"""An additive classifier: one table of scores for each column, added up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from evenhand import _checks
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

LINKS = ("logit", "identity")


class AdditiveScores:
    """A classifier on the codes 0 and 1 whose score is a sum of steps, one function per column.

    Parameters
    ----------
    edges : sequence of array-like
        Of each column: where its steps are, ascending. None makes it a column that adds nothing.
    values : sequence of array-like
        Of each column: the score in each of its ``len(edges) + 1`` bins. A value that equals an
        edge lies above it.
    intercept : float
    link : {"logit", "identity"}
        What the sum is: the log-odds of class 1, or its probability, which is moved into [0, 1].

    Attributes
    ----------
    classes_ : ndarray, the codes 0 and 1
    n_features_in_ : int

    Examples
    --------
    >>> scores = AdditiveScores([[0.5]], [[-1.0, 2.0]], intercept=0.0, link="logit")
    >>> scores.predict([[0.0], [1.0]]), scores.predict_proba([[1.0]]).round(3).tolist()
    (array([0, 1]), [[0.119, 0.881]])
    """

    def __init__(
        self,
        edges: Sequence[ArrayLike],
        values: Sequence[ArrayLike],
        *,
        intercept: float,
        link: str,
    ) -> None:
        self.link = _checks.one_of("link", link, LINKS)
        self.edges = [np.asarray(each, dtype=np.float64) for each in edges]
        self.values = [np.asarray(each, dtype=np.float64) for each in values]
        self.intercept = float(intercept)
        _checks.same_length(edges=self.edges, values=self.values)
        for at, (cuts, steps) in enumerate(zip(self.edges, self.values, strict=True)):
            if cuts.ndim != 1 or steps.shape != (len(cuts) + 1,) or not (np.diff(cuts) > 0).all():
                raise ValueError(
                    f"Column {at} needs ascending edges and one value more than these, got "
                    f"{len(np.atleast_1d(cuts))} edges and values of shape {steps.shape}."
                )
        self.classes_: Array = np.array([0, 1])
        self.n_features_in_ = len(self.edges)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the score of class 1 above what decides, shape (n,)."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns, got shape {rows.shape}.")
        total = np.full(len(rows), self.intercept - (0.5 if self.link == "identity" else 0.0))
        for column, cuts, steps in zip(rows.T, self.edges, self.values, strict=True):
            total += steps[np.searchsorted(cuts, column, side="right")]
        return total

    def predict(self, X: ArrayLike) -> IntArray:
        """Return class codes, shape (n,)."""
        decided: IntArray = (self.decision_function(X) > 0).astype(np.int64)
        return decided

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return probabilities, shape (n, 2)."""
        score = self.decision_function(X)
        high = expit(score) if self.link == "logit" else np.clip(score + 0.5, 0.0, 1.0)
        out: FloatArray = np.stack([1.0 - high, high], axis=1)
        return out

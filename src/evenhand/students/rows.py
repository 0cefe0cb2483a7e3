"""Public rows in the form in which many linear students are fitted on them."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array

from evenhand.typing import FloatArray

SPARSE: Final = 0.2
"""Share of entries that are not 0 up to which rows are kept sparse: one-hot columns mostly are."""

CURVATURE: Final = 0.1
"""Of a logistic loss, about: p (1 - p) averaged over rows."""

DAMPING: Final = 1e-3
"""Added to the curvature, so that directions which no row has stay finite."""

WIDEST: Final = 1000
"""Columns up to which a decomposition of their second moments pays."""


class Rows:
    """Rows with an intercept, times weights and back; and a frame in which descent is quick.

    Parameters
    ----------
    X : ndarray of float64, shape (n, n_features)
        Not to be changed afterwards.
    """

    _last: ClassVar[tuple[Any, Rows] | None] = None

    def __init__(self, X: FloatArray) -> None:
        self._rows: Any = X
        self._columns: Any = X.T
        if np.count_nonzero(X) <= SPARSE * X.size:
            # Made by hand: SciPy's own way goes through coordinates, and takes as long as a fit.
            flat = np.flatnonzero(X)
            ends = np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1))])
            self._rows = csr_array((X.ravel()[flat], flat % X.shape[1], ends), shape=X.shape)
            self._columns = self._rows.T.tocsr()

    @classmethod
    def of(cls, X: FloatArray) -> Rows:
        """Return the rows of this very array: those of the last call where it was the same one.

        A fit in rounds and a sweep come back with the same public rows again and again.
        """
        last = cls._last
        if last is not None and last[0]() is X:
            return last[1]
        made = cls(X.copy())  # no hold on the array itself, which may so be let go
        cls._last = (weakref.ref(X), made)
        return made

    def scores(self, W: FloatArray) -> FloatArray:
        """Return the scores (n, n_columns) for weights (n_features + 1, n_columns)."""
        if W.shape[1] == 1:  # a product with a vector is faster
            one: FloatArray = (self._rows @ W[:-1, 0] + W[-1, 0])[:, None]
            return one
        many: FloatArray = self._rows @ W[:-1] + W[-1]
        return many

    def back(self, slope: FloatArray) -> FloatArray:
        """Return the slope of the weights for a slope (n, n_columns) of the scores."""
        out = np.empty((self._columns.shape[0] + 1, slope.shape[1]))
        if slope.shape[1] == 1:
            out[:-1, 0] = self._columns @ slope[:, 0]
        else:
            out[:-1] = self._columns @ slope
        out[-1] = slope.sum(axis=0)
        return out

    def into_frame(self, W: FloatArray) -> FloatArray:
        """Return weights in the frame in which a logistic loss is about equally curved all round.

        The frame comes from the second moments of the rows. What a minimum is does not depend on
        it; the number of steps to it does.
        """
        return W if self._frame is None else self._frame[0].T @ W

    def from_frame(self, U: FloatArray) -> FloatArray:
        """Return the weights that ``U`` stands for."""
        return U if self._frame is None else self._frame[1].T @ U

    def slope_in_frame(self, gradient: FloatArray) -> FloatArray:
        """Return the slope in the frame for a slope of the weights."""
        return gradient if self._frame is None else self._frame[1] @ gradient

    @cached_property
    def _frame(self) -> tuple[FloatArray, FloatArray] | None:
        """Lower triangular L with ``L L^T`` the expected curvature, and its inverse."""
        n, p = self._rows.shape
        if p > WIDEST:
            return None
        moments = np.empty((p + 1, p + 1))
        product = self._columns @ self._rows
        moments[:-1, :-1] = product if isinstance(product, np.ndarray) else product.toarray()
        moments[:-1, -1] = moments[-1, :-1] = self._columns @ np.ones(n)
        moments[-1, -1] = n
        curved = CURVATURE / n * moments + DAMPING * np.eye(p + 1)
        lower: FloatArray = cholesky(curved, lower=True)
        return lower, solve_triangular(lower, np.eye(p + 1), lower=True)

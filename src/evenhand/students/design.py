"""Public rows in the form in which many linear students are fitted on them."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from scipy.sparse import csr_array

from evenhand.learners.preconditioner import Preconditioner
from evenhand.typing import FloatArray, IntArray

SPARSE: Final = 0.2
"""Share of entries that are not 0 up to which rows are kept sparse: one-hot columns mostly are."""

CURVATURE: Final = 0.1
"""Of a logistic loss, about: p (1 - p) averaged over rows."""

DAMPING: Final = 1e-3
"""Added to the curvature, so that directions which no row has stay finite."""

WIDEST: Final = 1000
"""Columns up to which a decomposition of their second moments pays."""

WIDEST_BY_ROWS: Final = 300
"""Columns up to which it pays anew for every problem."""

ENOUGH_ROWS: Final = 1000
"""A problem's curvature is read from at least so many rows, where there are many."""

DAMPING_BY_ROWS: Final = 1e-4
"""As ``DAMPING``, in units of the rows' own curvature."""

TINY: Final = 1e-300


class DesignMatrix:
    """Rows with an intercept, times weights and back; and preconditioners for descent on them.

    Parameters
    ----------
    X : ndarray of float64, shape (n, n_features)
        Copied.
    """

    _last: ClassVar[tuple[Any, DesignMatrix] | None] = None

    def __init__(self, X: FloatArray) -> None:
        filled = X != 0.0
        per_row = np.count_nonzero(filled, axis=1)
        if per_row.sum() <= SPARSE * X.size:
            # Made by hand: SciPy's own way goes through coordinates, and takes as long as a fit.
            flat = np.flatnonzero(filled)
            column = (flat % X.shape[1]).astype(np.int32)
            ends = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int32)
            self._rows: Any = csr_array((X.ravel()[flat], column, ends), shape=X.shape)
            self._columns: Any = self._rows.T.tocsr()
        else:
            self._rows = X.copy()  # no hold on the array itself, which may so be let go
            self._columns = self._rows.T

    @classmethod
    def of(cls, X: FloatArray) -> DesignMatrix:
        """Return the rows of this very array: those of the last call where it was the same one.

        A fit in rounds and a sweep come back with the same public rows again and again.
        """
        last = cls._last
        if last is not None and last[0]() is X:
            return last[1]
        made = cls(X)
        cls._last = (weakref.ref(X), made)
        return made

    @property
    def n_weights(self) -> int:
        """Weights of one column of scores: one per feature, and the intercept."""
        return int(self._rows.shape[1]) + 1

    def scores(self, W: FloatArray) -> FloatArray:
        """Return the scores (n, n_columns) for weights (n_features + 1, n_columns)."""
        if W.shape[1] == 1:  # a product with a vector is faster
            one: FloatArray = (self._rows @ W[:-1, 0] + W[-1, 0])[:, None]
            return one
        many: FloatArray = self._rows @ W[:-1] + W[-1]
        return many

    def back(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient of the weights for a gradient (n, n_columns) of the scores."""
        out = np.empty((self._columns.shape[0] + 1, gradient.shape[1]))
        if gradient.shape[1] == 1:
            out[:-1, 0] = self._columns @ gradient[:, 0]
        else:
            out[:-1] = self._columns @ gradient
        out[-1] = gradient.sum(axis=0)
        return out

    def take(self, rows: IntArray) -> DesignMatrix:
        """Return some of the rows."""
        taken = DesignMatrix.__new__(DesignMatrix)
        taken._rows = self._rows[rows]
        taken._columns = taken._rows.T
        if not isinstance(taken._rows, np.ndarray):
            taken._columns = taken._columns.tocsr()
        return taken

    @cached_property
    def preconditioner(self) -> Preconditioner:
        """The one with which a logistic loss on all rows is about equally curved all round."""
        n, p = self._rows.shape
        if p > WIDEST:
            return Preconditioner()
        moments = np.empty((p + 1, p + 1))
        product = self._columns @ self._rows
        moments[:-1, :-1] = product if isinstance(product, np.ndarray) else product.toarray()
        moments[:-1, -1] = moments[-1, :-1] = self._columns @ np.ones(n)
        moments[-1, -1] = n
        return Preconditioner.of(CURVATURE / n * moments + DAMPING * np.eye(p + 1))

    def preconditioner_of(
        self, curvature: FloatArray, ridge: float, stiff: FloatArray
    ) -> Preconditioner:
        """Return the one for a loss whose curvature is known row by row.

        Parameters
        ----------
        curvature : ndarray of float64, shape (n,)
            Second derivative of the loss in each row's score, at least 0.
        ridge : float
            Weight of the squared length of the weights.
        stiff : ndarray of float64, shape (n_directions, n_features + 1)
            Directions in which the problem is stiffer, by their squares.
        """
        p = self.n_weights - 1
        if p > WIDEST_BY_ROWS:
            return self.preconditioner
        total = curvature.sum()
        seen = np.flatnonzero(curvature)
        # It need not be exact, and a part of the rows gives it nearly as well.
        seen = seen[:: max(1, len(seen) // ENOUGH_ROWS)]
        weight = curvature[seen] * (total / max(curvature[seen].sum(), TINY))
        some = self._rows[seen]
        block = np.ones((len(seen), p + 1))
        block[:, :-1] = some if isinstance(some, np.ndarray) else some.toarray()
        curved = block.T @ (weight[:, None] * block) + stiff.T @ stiff
        curved[np.diag_indices(p + 1)] += 2.0 * ridge + DAMPING_BY_ROWS * total + TINY
        return Preconditioner.of(curved)

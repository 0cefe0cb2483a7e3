"""Linear changes of variables after which a smooth problem is about equally curved all round.

They change how soon a minimum is found, and not where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from evenhand import _checks
from evenhand.typing import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Whitening:
    """An affine map of rows after which their columns are uncorrelated and about equally spread.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ [[1.0, 2.0], [0.0, 0.1]]
    >>> white = Whitening.of(X, damping=0.0).rows(X)
    >>> bool(np.allclose(white.T @ white / 500, np.eye(2)))
    True
    """

    center: FloatArray
    """Shape (d,)."""
    matrix: FloatArray
    """``(X - center) @ matrix`` are the whitened rows. Shape (d, d)."""

    @classmethod
    def of(cls, X: FloatArray, *, damping: float) -> Self:
        """Return the whitening of rows (n, d) that are public.

        ``damping`` is added to the variance of every direction: directions that few rows have are
        then not blown up, and neither is noise in them.
        """
        _checks.non_negative("damping", damping)
        center = X.mean(axis=0)
        apart = X - center
        values, directions = np.linalg.eigh(apart.T @ apart / len(X))
        spread = np.sqrt(np.maximum(values, 0.0) + damping)
        return cls(center=center, matrix=directions / np.maximum(spread, 1e-9))

    @classmethod
    def halfway(cls, X: FloatArray) -> Self:
        """Return the whitening of rows (n, d) that are public, damped by their usual variance.

        That is ``sum v^2 / sum v`` over the variances v of the directions: the mean of v by how
        much of the rows lies there, which many rare columns do not lower. A direction of it is
        halfway between being whitened and being left alone. Rows are as far from their mean as they
        were, in the mean of squares; if all are alike, the center alone is taken off.
        """
        center, apart = X.mean(axis=0), X - X.mean(axis=0)
        spread = apart.T @ apart / len(X)
        if not spread.any():
            return cls(center=center, matrix=np.eye(X.shape[1]))
        white = cls.of(X, damping=float((spread**2).sum() / np.trace(spread)))
        length = float((white.rows(X) ** 2).sum() / len(X))
        return replace(white, matrix=white.matrix * np.sqrt(np.trace(spread) / length))

    def rows(self, X: FloatArray, *, out: FloatArray | None = None) -> FloatArray:
        """Return whitened rows (n, d), written to ``out`` if given."""
        rows: FloatArray = np.matmul(X, self.matrix, out=out)
        rows -= self.center @ self.matrix
        return rows

    def layer(self, weights: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the layer for rows as they were, of one for whitened rows."""
        original: FloatArray = self.matrix @ weights
        return original, bias - self.center @ original


@dataclass(frozen=True, kw_only=True, eq=False)
class Preconditioner:
    """A linear map of the weights of a problem, by its curvature."""

    lower: FloatArray | None = None
    """Lower triangular L with ``L L^T`` the curvature. None: the weights themselves. Shape
    (n_weights, n_weights).
    """
    inverse: FloatArray | None = None
    """Its inverse. Shape (n_weights, n_weights)."""

    @classmethod
    def of(cls, curvature: FloatArray) -> Self:
        """Return the map for a symmetric positive definite curvature."""
        lower: FloatArray = cholesky(curvature, lower=True)
        return cls(lower=lower, inverse=solve_triangular(lower, np.eye(len(lower)), lower=True))

    def coordinates(self, W: FloatArray) -> FloatArray:
        """Return the coordinates ``U`` of weights (n_weights, n_columns)."""
        return W if self.lower is None else self.lower.T @ W

    def weights(self, U: FloatArray) -> FloatArray:
        """Return the weights whose coordinates are ``U``."""
        return U if self.inverse is None else self.inverse.T @ U

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient in the coordinates for a gradient of the weights."""
        return gradient if self.inverse is None else self.inverse @ gradient

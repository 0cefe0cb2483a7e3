"""A frame of the weights in which a smooth problem is about equally curved all round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from evenhand.typing import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """Coordinates for descent: they change how soon a minimum is found, and not where it is.

    Parameters
    ----------
    lower : ndarray of float64, shape (n_weights, n_weights), or None
        Lower triangular L with ``L L^T`` the curvature. None: the weights themselves.
    inverse : ndarray of float64, shape (n_weights, n_weights), or None
        Its inverse.
    """

    lower: FloatArray | None = None
    inverse: FloatArray | None = None

    @classmethod
    def of(cls, curvature: FloatArray) -> Frame:
        """Return the frame for a symmetric positive definite curvature."""
        lower: FloatArray = cholesky(curvature, lower=True)
        return cls(lower=lower, inverse=solve_triangular(lower, np.eye(len(lower)), lower=True))

    def into(self, W: FloatArray) -> FloatArray:
        """Return the coordinates of weights (n_weights, n_columns)."""
        return W if self.lower is None else self.lower.T @ W

    def weights(self, U: FloatArray) -> FloatArray:
        """Return the weights that stand at ``U``."""
        return U if self.inverse is None else self.inverse.T @ U

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient in this frame for a gradient of the weights."""
        return gradient if self.inverse is None else self.inverse @ gradient

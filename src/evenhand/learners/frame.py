"""Columns turned and scaled by second moments that everybody may know, so that descent is quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from evenhand import _checks
from evenhand.typing import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class EvenFrame:
    """An affine map of rows after which their columns are uncorrelated and about equally spread.

    Parameters
    ----------
    center : array, shape (d,)
    turn : array, shape (d, d)
        ``(X - center) @ turn`` are the rows in the frame.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ [[1.0, 2.0], [0.0, 0.1]]
    >>> inside = EvenFrame.of(X, damping=0.0).rows(X)
    >>> bool(np.allclose(inside.T @ inside / 500, np.eye(2)))
    True
    """

    center: FloatArray
    turn: FloatArray

    @classmethod
    def of(cls, X: FloatArray, *, damping: float) -> Self:
        """Return the frame of rows (n, d) that are public.

        ``damping`` is added to the variance of every direction: directions that few rows have are
        then not blown up, and neither is noise in them.
        """
        _checks.non_negative("damping", damping)
        center = X.mean(axis=0)
        apart = X - center
        values, directions = np.linalg.eigh(apart.T @ apart / len(X))
        spread = np.sqrt(np.maximum(values, 0.0) + damping)
        return cls(center=center, turn=directions / np.maximum(spread, 1e-9))

    def rows(self, X: FloatArray, *, out: FloatArray | None = None) -> FloatArray:
        """Return rows (n, d) in the frame, written to ``out`` if given."""
        rows: FloatArray = np.matmul(X, self.turn, out=out)
        rows -= self.center @ self.turn
        return rows

    def layer(self, weights: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the layer for rows as they were, of one for rows in the frame."""
        outside: FloatArray = self.turn @ weights
        return outside, bias - self.center @ outside

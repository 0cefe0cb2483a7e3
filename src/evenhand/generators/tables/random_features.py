"""Features of mixed rows with norm 1: random Fourier features of all columns, and their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.typing import FloatArray, IntArray

BANDWIDTHS: Final = (0.25, 0.5, 1.0)
"""Of the kernels, as shares of the distance between two rows that differ in every column."""

JOINT: Final = 0.5
"""Share of the squared norm of the Fourier features; the states of columns have the rest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedFeatures:
    """Map rows, or products of distributions over states, to features.

    A row is a point: an ordered column is one coordinate in [0, 1], a column of categories a corner
    of a simplex whose corners are 1 apart. ``cos(w z), sin(w z)`` at random frequencies w are the
    random Fourier features of a Gaussian kernel (Rahimi and Recht 2007), at three bandwidths;
    beside them stand the states of every column, one-hot, as DP-MERF has them for categories
    (Harder, Adamczewski and Park 2021).

    Privacy
    -------
    Drawn without looking at a record. Every row has norm 1, exactly but for rounding.
    """

    starts: IntArray
    """Where the states of each column begin among all states. Shape (n_columns + 1,)."""
    points: FloatArray
    """The coordinates of each state, 0 outside its own column's. Shape (n_states, n_coordinates).
    """
    frequencies: FloatArray
    """Shape (n_coordinates, n_frequencies)."""

    @classmethod
    def draw(
        cls,
        sizes: Sequence[int],
        ordered: Sequence[bool],
        has_missing: Sequence[bool],
        n_frequencies: int,
        rng: np.random.Generator,
    ) -> MixedFeatures:
        """Draw the frequencies for columns of these numbers of states."""
        _checks.at_least("n_frequencies", n_frequencies, 1)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        blocks = [
            _line(size, gone) if line else np.eye(size) * 0.5**0.5
            for size, line, gone in zip(sizes, ordered, has_missing, strict=True)
        ]
        points = np.zeros((starts[-1], sum(block.shape[1] for block in blocks)))
        column = 0
        for start, block in zip(starts[:-1], blocks, strict=True):
            points[start : start + len(block), column : column + block.shape[1]] = block
            column += block.shape[1]
        widths = np.resize(BANDWIDTHS, n_frequencies) * len(sizes) ** 0.5
        frequencies = rng.normal(size=(points.shape[1], n_frequencies)) / widths
        return cls(starts=starts, points=points, frequencies=frequencies)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.starts) - 1

    @property
    def n_states(self) -> int:
        """Number of states of all columns together."""
        return int(self.starts[-1])

    @property
    def n_features(self) -> int:
        """Numbers per row: two per frequency and one per state."""
        return 2 * int(self.frequencies.shape[1]) + self.n_states

    def one_hot(self, codes: IntArray) -> FloatArray:
        """States of rows (n, n_columns) as zeros and ones (n, n_states)."""
        out = np.zeros((len(codes), self.n_states))
        np.put_along_axis(out, codes + self.starts[:-1], 1.0, axis=1)
        return out

    def of(self, probabilities: FloatArray) -> FloatArray:
        """Features of rows, or of the mean points of distributions over states; (n, n_features)."""
        turned = (probabilities @ self.points) @ self.frequencies
        wave = (JOINT / self.frequencies.shape[1]) ** 0.5
        alone = ((1.0 - JOINT) / self.n_columns) ** 0.5
        return np.hstack([wave * np.cos(turned), wave * np.sin(turned), alone * probabilities])

    def pull_back(self, probabilities: FloatArray, gradient: FloatArray) -> FloatArray:
        """Gradient with respect to the probabilities, given that with respect to the features."""
        d = self.frequencies.shape[1]
        turned = (probabilities @ self.points) @ self.frequencies
        wave = (JOINT / d) ** 0.5
        alone = ((1.0 - JOINT) / self.n_columns) ** 0.5
        inner = wave * (gradient[:, d : 2 * d] * np.cos(turned) - gradient[:, :d] * np.sin(turned))
        back: FloatArray = inner @ self.frequencies.T @ self.points.T + alone * gradient[:, 2 * d :]
        return back


def _line(size: int, has_missing: bool) -> FloatArray:
    """Points of an ordered column: even along a line; "missing" beside its middle."""
    n = size - has_missing
    out = np.zeros((size, 2))
    out[:n, 0] = (np.arange(n) + 0.5) / n
    if has_missing:
        out[-1] = (0.5, 0.5)
    return out

"""A critic of rows that learns from clipped gradients of single records, in whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from evenhand import _checks
from evenhand.generators.aggregators import UNIT
from evenhand.generators.clipping import Clipping
from evenhand.typing import FloatArray, IntArray


@dataclass(kw_only=True, eq=False)
class ClippedCritic:
    """One hidden layer of ReLU on the states of a row, and a score: high for real rows.

    What a record adds is a vector of norm at most 1, its gradient and its mark (see ``Clipping``),
    and ``ClippedSums(clip_norm=1.0)`` has the sensitivity of the sum.

    The gradient of one row's score is an outer product in every layer, so its norm is known without
    writing it down (Goodfellow 2015), and with rows of zeros and ones its sum is one of whole
    numbers as soon as what comes back to the hidden layer is.
    """

    starts: IntArray
    """Where the states of each column begin."""
    weights: list[FloatArray]
    """Hidden weights (n_states, width) and bias, then the score's (width,) and bias (1,)."""
    clipping: Clipping
    """How long gradients are cut."""

    @classmethod
    def start(
        cls, sizes: Sequence[int], *, width: int, clipping: Clipping, rng: np.random.Generator
    ) -> ClippedCritic:
        """Draw the first weights."""
        _checks.at_least("width", width, 1)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        first = rng.normal(0.0, len(sizes) ** -0.5, (int(starts[-1]), width))
        last = rng.normal(0.0, width**-0.5, width)
        return cls(
            starts=starts,
            weights=[first, np.zeros(width), last, np.zeros(1)],
            clipping=clipping,
        )

    @property
    def n_weights(self) -> int:
        """Numbers of a gradient."""
        return sum(w.size for w in self.weights)

    @property
    def n_values(self) -> int:
        """Numbers that a step releases."""
        return self.n_weights + self.clipping.n_marks

    def rows(self, codes: IntArray) -> sparse.csr_array:
        """Rows of states as a sparse matrix of zeros and ones."""
        n, k = codes.shape
        places = (codes + self.starts[:-1]).ravel()
        ends = np.arange(n + 1) * k
        return sparse.csr_array((np.ones(n * k), places, ends), shape=(n, int(self.starts[-1])))

    def clipped_sum(self, x: sparse.csr_array, groups: IntArray) -> IntArray:
        """Sum the records' vectors in whole units; every one is rounded towards zero before."""
        seen = np.maximum(x @ self.weights[0] + self.weights[1], 0.0)
        back = (seen > 0) * self.weights[2]
        n_columns = len(self.starts) - 1
        square = (seen**2).sum(axis=1) + 1.0 + (back**2).sum(axis=1) * (n_columns + 1.0)
        norms = np.sqrt(square)
        scale = (self.clipping.factors(norms, groups) / UNIT)[:, None]
        back, seen = np.trunc(back * scale), np.trunc(seen * scale)
        # Whole doubles below 2**53 add up exactly, in any order.
        parts = [
            (x.T @ back).ravel(),
            back.sum(axis=0),
            seen.sum(axis=0),
            np.trunc(scale).sum(axis=0),
        ]
        if self.clipping.n_marks:
            long = self.clipping.long(norms)
            marks = np.bincount(groups, long, minlength=self.clipping.n_marks)
            parts.append(marks * math.trunc(self.clipping.share / UNIT))
        total: IntArray = np.concatenate(parts).astype(np.int64)
        return total

    def gradient(self, noisy: FloatArray, n: float) -> list[FloatArray]:
        """Return the mean gradient from a noisy sum, in its own scale."""
        flat = self.clipping.mean(noisy[: self.n_weights], n)
        parts, first = [], 0
        for w in self.weights:
            parts.append(flat[first : first + w.size].reshape(w.shape))
            first += w.size
        return parts

    def move_bounds(self, noisy: FloatArray, sizes: FloatArray) -> None:
        """Set the bounds from a noisy sum and public group sizes; reads nothing private."""
        self.clipping.move(noisy[self.n_weights :], sizes)

    def score(self, codes: IntArray) -> FloatArray:
        """Score of each row."""
        seen = np.maximum(self.rows(codes) @ self.weights[0] + self.weights[1], 0.0)
        out: FloatArray = seen @ self.weights[2] + self.weights[3]
        return out

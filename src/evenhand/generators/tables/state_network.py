"""The network that draws rows of states for conditions: its weights, and how a row is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.generators.tables.tree_distribution import draw_states
from evenhand.learners.nets.layers import Layers, layers_of, named_layers, through
from evenhand.typing import Array, FloatArray, IntArray

LEAST_SHARE: Final = 1e-4
"""Share that a state has at least in a distribution that was released with noise."""

_CHUNK: Final = 8192  # rows that are drawn at once


@dataclass(frozen=True, kw_only=True, eq=False)
class StateNetwork:
    """A ReLU network from noise and a condition to the probabilities of each column's states.

    Given the noise the columns are independent, so a row is a draw from a mixture of products.
    """

    layers: Layers
    """The first reads the noise and the condition as a unit vector, the last gives a score for
    every state of every column.
    """
    base: FloatArray
    """Added to the scores: the logarithms of the shares from which training started. Shape
    (n_conditions, n_states).
    """
    starts: IntArray
    """Where the states of each column begin. Shape (n_columns + 1,)."""

    @classmethod
    def start(
        cls,
        sizes: Sequence[int],
        base: FloatArray,
        *,
        n_noise: int,
        hidden: tuple[int, ...],
        rng: np.random.Generator,
    ) -> StateNetwork:
        """Draw first weights (He et al. 2015); the last layer starts near 0, so at ``base``."""
        _checks.at_least("n_noise", n_noise, 1)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        widths = (n_noise + len(base), *hidden, int(starts[-1]))
        layers = []
        for i, (n_in, n_out) in enumerate(pairwise(widths)):
            scale = (2.0 / n_in) ** 0.5 if i < len(hidden) else 0.3 / n_in**0.5
            layers.append((rng.normal(0.0, scale, (n_in, n_out)), np.zeros(n_out)))
        return cls(layers=tuple(layers), base=base, starts=starts)

    @property
    def n_noise(self) -> int:
        """Numbers of noise per row."""
        return len(self.layers[0][0]) - len(self.base)

    def scores(self, conditions: IntArray, noise: FloatArray) -> FloatArray:
        """Scores of all states, shape (n_rows, n_states)."""
        x = np.hstack([noise, np.eye(len(self.base))[conditions]])
        out: FloatArray = through(self.layers, x) + self.base[conditions]
        return out

    def probabilities(self, conditions: IntArray, rng: np.random.Generator) -> FloatArray:
        """Probabilities of all states for fresh noise; they sum to 1 within a column."""
        scores = self.scores(conditions, rng.normal(size=(len(conditions), self.n_noise)))
        widths = np.diff(self.starts)
        top = np.maximum.reduceat(scores, self.starts[:-1], axis=1)
        grown = np.exp(scores - np.repeat(top, widths, axis=1))
        sums = np.add.reduceat(grown, self.starts[:-1], axis=1)
        probabilities: FloatArray = grown / np.repeat(sums, widths, axis=1)
        return probabilities

    def draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a row of states for each condition, shape (n_rows, n_columns)."""
        out = np.empty((len(conditions), len(self.starts) - 1), dtype=np.int64)
        for first in range(0, len(conditions), _CHUNK):
            some = slice(first, first + _CHUNK)
            out[some] = pick(self.probabilities(conditions[some], rng), self.starts, rng)
        return out

    def towards(self, shares: FloatArray, rng: np.random.Generator) -> StateNetwork:
        """Return the same network with ``base`` moved so that its mean distribution is ``shares``.

        Shape (n_conditions, n_states). As in iterative proportional fitting the logarithm of the
        ratio is added, a few times over.
        """
        base = self.base.copy()
        made = self
        for _ in range(4):
            for c in range(len(base)):
                found = made.probabilities(np.full(2048, c), rng).mean(axis=0)
                base[c] += np.log(np.maximum(shares[c], LEAST_SHARE) / np.maximum(found, 1e-9))
            made = replace(self, base=base.copy())
        return made

    def arrays(self) -> dict[str, Array]:
        """Return the numbers by name, for a file."""
        own: dict[str, Array] = {"base": self.base, "starts": self.starts}
        return own | named_layers(self.layers, "weights")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> StateNetwork:
        """Read what ``arrays`` gave."""
        layers = layers_of(arrays, "weights")
        return cls(layers=layers, base=arrays["base"], starts=arrays["starts"])


def pick(probabilities: FloatArray, starts: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a state of every column from probabilities (n_rows, n_states)."""
    out = np.empty((len(probabilities), len(starts) - 1), dtype=np.int64)
    for j in range(out.shape[1]):
        own = probabilities[:, starts[j] : starts[j + 1]].cumsum(axis=1)
        out[:, j] = draw_states(own, rng.random(len(own)))
    return out


def log_shares(tables: Sequence[FloatArray]) -> FloatArray:
    """Return the logarithms of noisy counts as shares within each row of each table, side by side.

    Each table has shape (n_conditions, n_states of one column); what noise took below the least
    share is put there.
    """
    parts = []
    for table in tables:
        held = np.maximum(table, LEAST_SHARE * np.maximum(table.sum(axis=1, keepdims=True), 1.0))
        parts.append(np.log(held / held.sum(axis=1, keepdims=True)))
    return np.hstack(parts)

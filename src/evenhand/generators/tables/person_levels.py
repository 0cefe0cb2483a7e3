"""What visits of one person have in common: a level in each column, around which they stray.

A typical visit x of a person is drawn by its label and groups, of it a blurred look y (of each
column by itself), and then every visit given y. Whatever the blur, a visit is then distributed as x
is, with all its columns, under each label and group; and the sharper the look is, the more alike
are two visits of one person. Of a category y is its own with a probability of r, and else any; of
an ordered column x is seen as a normal score whose correlation with that of y is r.

How alike they are is one bounded number of each person and column, their mean over its pairs of
visits: whether both are in one state, or the product of both ranks, from -1 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from evenhand.generators.aggregators import FeatureSums
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.tree_distribution import BLOCK, draw_states, spread
from evenhand.typing import FloatArray, IntArray

ALIKE: Final = "how alike two visits of one person are"
ALIKE_SHARE: Final = 0.04
"""Of the part of the visits."""

MOST_STATES: Final = 1000
"""Columns of more states have no levels."""

_SURE: Final = 3.0  # deviations by which visits of one person must be more alike than others
_POINTS: Final = 16  # at which a look at a state is averaged


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonLevels:
    """Levels of persons in columns of their visits.

    Privacy
    -------
    Neighbors : add or remove one person, with all its visits.
    Sensitivity : a person adds one row to ``FeatureSums``, however many its visits are: sqrt(2).
    """

    sharpness: FloatArray
    """The r of the module's text, in [0, 1]; 0 for a column without levels. Shape (n_features,)."""
    looks: Mapping[int, FloatArray]
    """Of each column with levels: chance of a level in each state of a typical visit. Shape
    (states, states).
    """

    @classmethod
    def of(cls, sharpness: FloatArray, visits: TableSynthesizer) -> Self:
        """Make the looks from how sharp they are, by what was learnt of the visits."""
        each = enumerate(zip(_columns(visits), sharpness.tolist(), strict=False))
        return cls(sharpness=sharpness, looks={i: of.look(r) for i, (of, r) in each if r})

    @classmethod
    def released(cls, data: EncodedTable, visits: TableSynthesizer, plan: BudgetPlan) -> Self:
        """Release how alike visits are; columns where that is no accident have levels.

        Of a method that cannot draw a visit given levels nothing is released.
        """
        columns = _columns(visits)
        n = len(columns)
        if not n:
            return cls(sharpness=np.zeros(0), looks={})
        sums = FeatureSums(n_features=n, n_conditions=1)
        phi = pairs_of(data, [column.scores for column in columns]) / math.sqrt(n)
        noisy = plan.release(sums, sums.total(phi, np.zeros(len(phi), dtype=np.int64)), ALIKE)
        persons = max(float(noisy.values[-1]), 1.0)
        alike = noisy.values[:-1] * math.sqrt(n) / persons
        # Beside the noise the draw of persons: half is the most that a number in [0, 1] deviates.
        least = _SURE * math.hypot(noisy.sigma * math.sqrt(n), math.sqrt(persons) / 2) / persons
        each = zip(columns, alike.tolist(), strict=True)
        return cls.of(np.array([column.sharpness(found, least) for column, found in each]), visits)

    def drawn(self, usual: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw levels from the states of typical visits, (n, n_features): of each with levels."""
        levels = np.zeros((len(usual), len(self.looks)), dtype=np.int64)
        for at, (i, q) in enumerate(self._each):
            u = spread(usual[:, i], rng)
            for start in range(0, len(usual), BLOCK):
                rows = slice(start, start + BLOCK)
                levels[rows, at] = draw_states(q.cumsum(axis=1)[usual[rows, i]], u[rows])
        return levels

    def likelihoods(self, levels: IntArray) -> dict[int, FloatArray]:
        """Return how likely these levels are in each state, as ``states_given`` takes it."""
        return {i: q.T[level] for (i, q), level in zip(self._each, levels.T, strict=True)}

    @property
    def _each(self) -> list[tuple[int, FloatArray]]:
        return sorted(self.looks.items())


def pairs_of(data: EncodedTable, scores: Sequence[FloatArray | None]) -> FloatArray:
    """Return of each person with two visits or more how alike they are, (n_persons, n_features).

    The mean over all pairs of its visits: of the product of the scores of their states, in [-1, 1],
    or, where there are none, of whether both are in one state.
    """
    assert data.units is not None
    person = pd.factorize(data.units)[0]
    n = np.bincount(person)
    out = np.zeros((len(n), len(scores)))
    for i, score in enumerate(scores):
        if score is None:
            both, held = np.unique(person * data.sizes[i] + data.codes[:, i], return_counts=True)
            pairs = np.bincount(both // data.sizes[i], held * (held - 1))
        else:
            each = score[data.codes[:, i]]
            pairs = np.bincount(person, each) ** 2 - np.bincount(person, each**2)
        out[:, i] = pairs / np.maximum(n * (n - 1), 1)
    return out[n > 1]


def _columns(visits: TableSynthesizer) -> list[_Column]:
    if not isinstance(visits, MarginalSynthesizer):
        return []
    codec, shares = visits.codec_, np.array(visits.shares_, dtype=np.float64)
    return [
        _Column(chances=chances, shares=shares, ordered=codec[name].bins is not None)
        for name, chances in zip(codec.features, visits.chances(), strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Column:
    """A column of the visits: chances (n_conditions, states), shares of conditions, its order."""

    chances: FloatArray
    shares: FloatArray
    ordered: bool

    @property
    def scores(self) -> FloatArray | None:
        """The middle rank of each state of an ordered column, from -1 to 1; of mean 0."""
        p = self.shares @ self.chances
        return np.clip(2.0 * np.cumsum(p) - p - 1.0, -1.0, 1.0) if self.ordered else None

    def look(self, r: float) -> FloatArray:
        """Return the chance of each level in each state, (states, states)."""
        p = self.shares @ self.chances
        if not self.ordered:
            blurred: FloatArray = r * np.eye(len(p)) + (1.0 - r) * p
            return blurred
        ends = np.concatenate([[0.0], np.cumsum(p)])
        inside = ends[:-1, None] + p[:, None] * (np.arange(_POINTS) + 0.5) / _POINTS
        x, edges = (ndtri(np.clip(at, 1e-9, 1.0 - 1e-9)) for at in (inside, ends[1:-1]))
        below = ndtr((edges - r * x[..., None]) / math.sqrt(max(1.0 - r * r, 1e-12))).mean(axis=1)
        none, every = np.zeros((len(p), 1)), np.ones((len(p), 1))
        looks: FloatArray = np.diff(np.concatenate([none, below, every], axis=1), axis=1)
        return looks

    def alike(self, r: float) -> float:
        """Return how alike two visits of one person are in the mean, if a look is as sharp as r."""
        p, scores = self.chances, self.scores
        if scores is None:
            any_of = (1.0 - r) * (self.shares @ p)
            level = r * p + any_of
            both = (any_of**2) * (p**2).sum(axis=1, keepdims=True) + p**2 * r * (r + 2.0 * any_of)
        else:
            look = self.look(r)
            level, both = p @ look, ((scores * p) @ look) ** 2
        return float(self.shares @ (both / np.maximum(level, 1e-300)).sum(axis=1))

    def sharpness(self, alike: float, least: float) -> float:
        """Return the r by which visits are as alike as that, if it is above none by ``least``."""
        if self.chances.shape[1] > MOST_STATES or alike <= self.alike(0.0) + least:
            return 0.0
        r = np.linspace(0.0, 1.0, 101)
        return float(np.interp(alike, [self.alike(float(one)) for one in r], r))

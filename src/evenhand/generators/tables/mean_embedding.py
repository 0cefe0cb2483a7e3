"""MeanEmbeddingSynthesizer: one release of mean features, and a mixture fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand import _checks
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.feature_means import MEANS, FeatureMeans
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.private_table import KnownOfTable
from evenhand.generators.tables.random_features import MixedFeatures
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.tree_distribution import draw_states
from evenhand.typing import Array, FloatArray, IntArray

_CHUNK = 4096  # rows whose features are held at once
_RATE, _DECAY = 0.2, 0.5  # of Adam: largest step, and where it ends


@register
@dataclass(eq=False, repr=False, kw_only=True)
class MeanEmbeddingSynthesizer(TableSynthesizer):
    """Draw rows from a mixture whose mean features are those of the private rows, plus noise.

    1. Rows become features of norm 1 (``MixedFeatures``): random Fourier features of all columns
       together, and the states of each.
    2. Their sums by label and group, with the counts, are one Gaussian release.
    3. For every label and group a mixture of products of distributions over states is fitted to the
       noisy means, by Adam on the squared distance.

    Parameters
    ----------
    n_frequencies : int
        Random frequencies, at least 1. Each adds two released numbers per label and group.
    n_parts : int
        Parts of the mixture per label and group, at least 1.
    n_steps : int
        Of the fit, at least 1.
    **others
        ``neighbors``, ``n_bins``, ``noise`` and ``random_state``, see ``TableSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one record or unit; or replace one record.
    Sensitivity : ``sqrt(2)`` (features of norm 1, and a count), 2 for "replace one".
    Cost : one Gaussian release; the fit reads what was released.

    References
    ----------
    Harder, Adamczewski and Park 2021 (DP-MERF; there a network is fitted).
    """

    method: ClassVar[str] = "mean-embedding"
    words: ClassVar[str] = "noisy means of random features"

    n_frequencies: int = 500
    n_parts: int = 80
    n_steps: int = 120

    def _shares(self) -> Mapping[str, float]:
        return {MEANS: 1.0}

    def _foresee(self, known: KnownOfTable) -> None:
        for name in ("n_frequencies", "n_parts", "n_steps"):
            _checks.at_least(name, getattr(self, name), 1)

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        columns = [self.codec_[name] for name in self.codec_.features]
        features = MixedFeatures.draw(
            data.sizes,
            [column.bins is not None for column in columns],
            [column.has_missing for column in columns],
            self.n_frequencies,
            rng,
        )
        n_conditions = self.conditions_.n
        progress("means", 0, n_conditions + 1)
        released = FeatureMeans.release(
            data,
            lambda rows: features.of(features.one_hot(data.codes[rows])),
            n_features=features.n_features,
            n_conditions=n_conditions,
            chunk=_CHUNK,
            plan=plan,
            purpose=MEANS,
        )
        self.counts_, self.counts_sigma_ = released.counts, released.sigma
        self.snr_ = released.snr
        probabilities = []
        for c in range(n_conditions):
            progress("means", c + 1, n_conditions + 1)
            aim = released.means[c]
            probabilities.append(_fit(features, aim, self.n_parts, self.n_steps, rng))
        self.probabilities_, self.starts_ = np.stack(probabilities), features.starts
        progress("means", n_conditions + 1, n_conditions + 1)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        part = rng.integers(0, self.probabilities_.shape[1], len(conditions))
        out = np.empty((len(conditions), len(self.starts_) - 1), dtype=np.int64)
        for j in range(out.shape[1]):
            probabilities = self.probabilities_[
                conditions, part, self.starts_[j] : self.starts_[j + 1]
            ]
            out[:, j] = draw_states(probabilities.cumsum(axis=1), rng.random(len(conditions)))
        return out

    def _arrays(self) -> dict[str, Array]:
        return {"probabilities": self.probabilities_, "starts": self.starts_}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.probabilities_, self.starts_ = arrays["probabilities"], arrays["starts"]


def _fit(
    features: MixedFeatures, aim: FloatArray, n_parts: int, n_steps: int, rng: np.random.Generator
) -> FloatArray:
    """Return distributions over states, one row per part, whose mean features are near ``aim``."""
    logits = rng.normal(0.0, 1.0, (n_parts, features.n_states))
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    for step in range(1, n_steps + 1):
        probabilities = _softmax(logits, features.starts)
        apart = features.of(probabilities).mean(axis=0) - aim
        pulled = features.pull_back(probabilities, np.broadcast_to(apart, (n_parts, len(aim))))
        # d p_k / d logit_l = p_k (1[k = l] - p_l), inside each column.
        weighted = probabilities * pulled
        held = np.add.reduceat(weighted, features.starts[:-1], axis=1)
        gradient = weighted - probabilities * np.repeat(held, np.diff(features.starts), axis=1)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        rate = _RATE * _DECAY ** (step / n_steps)
        logits -= (
            rate * (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.999**step)) + 1e-12)
        )
    return _softmax(logits, features.starts)


def _softmax(logits: FloatArray, starts: IntArray) -> FloatArray:
    """Probabilities inside each column."""
    widths = np.diff(starts)
    top = np.repeat(np.maximum.reduceat(logits, starts[:-1], axis=1), widths, axis=1)
    grown = np.exp(logits - top)
    sums = np.repeat(np.add.reduceat(grown, starts[:-1], axis=1), widths, axis=1)
    probabilities: FloatArray = grown / sums
    return probabilities

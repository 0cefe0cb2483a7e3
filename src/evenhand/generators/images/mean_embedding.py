"""MeanEmbeddingImages: one release of mean features, and a network fitted to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand import _checks, _values
from evenhand.generators.feature_means import FeatureMeans
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.embedded import CHUNK, EmbeddedImages
from evenhand.generators.images.embedding_network import (
    EmbeddingFit,
    EmbeddingNetwork,
    RandomFeatures,
)
from evenhand.generators.registry import register
from evenhand.typing import Array, IntArray


@register
@dataclass(eq=False, repr=False, kw_only=True)
class MeanEmbeddingImages(EmbeddedImages):
    """Draw pictures whose mean features are those of the private ones, plus noise.

    1. Pictures become features of norm 1 (``RandomFeatures``), from all pixels.
    2. Their sums by label and group, with the counts, are one Gaussian release.
    3. A network from random numbers and a condition to pixels is fitted to the noisy means, by
       Adam on the squared distance; every label and group counts alike.

    Parameters
    ----------
    n_frequencies : int
        Random frequencies, at least 1. Each adds two released numbers per label and group.
    hidden : sequence of int
        Widths of the network between input and pixels.
    n_steps, n_samples : int
        Steps of the fit, and pictures drawn in each.
    smooth : float
        Standard deviation, in pixels, of a fixed blur of what the network draws, before it is cut
        to [0, 1]; 0 for none. Mean features hardly show the grain of a large picture, and without a
        blur photographs come out as noise with a trace of what they show; 2 suits faces of 32 x 32.
    **others
        ``mirrored``, see ``MirroredImages``; ``device``, ``condition``, ``neighbors``, ``noise``
        and ``random_state``, see ``TorchSynthesizer`` and ``ImageSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one picture or unit; or replace one picture.
    Sensitivity : ``sqrt(2)`` (features of norm 1, and a count), 2 for "replace one".
    Cost : one Gaussian release; the fit reads what was released.

    References
    ----------
    Harder, Adamczewski and Park 2021 (DP-MERF).
    """

    method: ClassVar[str] = "mean-embedding"
    words: ClassVar[str] = "noisy means of random features"
    numbers: ClassVar[tuple[str, ...]] = ("n_frequencies", "n_steps", "n_samples")
    of_fit: ClassVar[tuple[str, ...]] = ("hidden", "n_steps", "n_samples", "smooth")

    n_frequencies: int = 2000
    hidden: Sequence[int] = (256, 256)
    n_steps: int = 400
    n_samples: int = 200
    smooth: float = 0.0

    def _check_settings(self) -> None:
        super()._check_settings()
        _checks.non_negative("smooth", self.smooth)
        _checks.each_at_least("hidden", self.hidden, 1)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        features = 16.0 * self.n_frequencies * (data.pixels[0].size + CHUNK + self.n_samples)
        means = 32.0 * self.n_frequencies * self.conditions_.n
        return (
            f"{_values.count(len(data))} pictures and {self.n_frequencies} frequencies for "
            f"{self.conditions_.n} combinations of label and group",
            2.0 * data.pixels.nbytes + 2.0 * features + means,
            "n_frequencies, or the size or the number of the pictures",
        )

    def _features(self, rng: np.random.Generator) -> RandomFeatures:
        return RandomFeatures.draw(math.prod(self.codec_.size), self.n_frequencies, rng)

    def _fit_of(
        self,
        features: RandomFeatures,
        released: FeatureMeans,
        seen: IntArray,
        rng: np.random.Generator,
    ) -> EmbeddingFit:
        return EmbeddingFit(
            features,
            released.means,
            seen,
            self.codec_.size,
            hidden=tuple(self.hidden),
            n_steps=self.n_steps,
            n_samples=self.n_samples,
            rng=rng,
            smooth=self.smooth,
        )

    def _paint(
        self, learnt: Mapping[str, Array], conditions: IntArray, rng: np.random.Generator
    ) -> FloatPixels:
        return EmbeddingNetwork.of(learnt).draw(conditions, rng)

"""PublicFeatureImages: one release of a public network's mean maps, and pictures that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np

from evenhand._torch import torch
from evenhand.datasets.features.efficientnet import EfficientNetMaps
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.generators.feature_means import FeatureMeans
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.embedded import CHUNK, EmbeddedImages, squared_distance
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.learners.nets.picture_generator import (
    GeneratorTraining,
    GrowingNetwork,
    draw_pictures,
)
from evenhand.learners.nets.tensors import array, floats
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.typing import Array, IntArray

RATES: Final = (3e-3, 1e-4)
"""Of the fit, from its first step to its last."""

N_NOISE: Final = 32
RECENT: Final = 50  # steps whose mean distance is compared with the noise

OWN_PICTURES: Final = "private pictures among those that the feature extractor was trained on"
"""What the claim does not cover, in its words."""

_WEIGHT: Final = "painter: "


@register
@dataclass(eq=False, repr=False, kw_only=True)
class PublicFeatureImages(EmbeddedImages):
    """Draw pictures that look to a public network as the private ones do, on average.

    1. Pictures become the maps of blocks of EfficientNet-Lite0 and their squares
       (``EfficientNetMaps``), of length 1 in all.
    2. Their sums by label and group, with the counts, are one Gaussian release.
    3. A convolutional network from random numbers and a condition to pixels is fitted to the noisy
       means by Adam, on an estimate of the squared distance without bias; every label and group
       counts alike. It ends early where the noise explains the distance (Morozov's principle).

    Parameters
    ----------
    blocks : sequence of int
        Of EfficientNet-Lite0, 0 to 15, ascending. Later ones see larger parts, and need larger
        pictures: the default is for 16 x 16 and more.
    n_steps, n_samples : int
        Steps of the fit, at most, and pictures drawn in each.
    width : int
        Of the network, see ``GrowingNetwork``.
    **others
        ``mirrored``, see ``MirroredImages``; ``device``, ``condition``, ``neighbors``, ``noise``
        and ``random_state``, see ``TorchSynthesizer`` and ``ImageSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one picture or unit; or replace one picture.
    Sensitivity : ``sqrt(2)`` (features of norm 1, and a count), 2 for "replace one".
    Cost : one Gaussian release; the fit reads what was released.
    Public : the network, which the claim names. It was trained on photographs of ImageNet, in which
        a private picture might be: the claim is about the pictures that ``fit`` was given alone.

    Notes
    -----
    Needs the extra ``frechet``. A fit takes minutes, and what it draws is sharp, where
    ``GaussianImages`` draws what is out of focus (``reproductions/picture_budgets.py``).

    References
    ----------
    Harder, Jalali, Sutherland and Park 2023 (DP-MEPF: mean embeddings of perceptual features).
    """

    method: ClassVar[str] = "public-features"
    words: ClassVar[str] = "noisy means of a public network's maps"
    numbers: ClassVar[tuple[str, ...]] = ("n_steps", "n_samples", "width")

    record_: ExtractorRecord = field(init=False)
    weights_: dict[str, Array] = field(init=False)

    blocks: Sequence[int] = (0, 2, 4, 8)
    n_steps: int = 1200
    n_samples: int = 200
    width: int = 64

    def _features(self, size: tuple[int, int, int], rng: np.random.Generator) -> EfficientNetMaps:
        del rng  # nothing is drawn
        return EfficientNetMaps.load(size, self.blocks)

    def _foresee(self, known: EncodedImages) -> None:
        self.record_ = ExtractorRecord.of(EfficientNetMaps.load(known.pixels[0].shape, self.blocks))
        super()._foresee(known)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        n_features = self.record_.dimension
        held = 8.0 * n_features * (4.0 * CHUNK + 4.0 * self.conditions_.n)
        return (
            f"{len(data)} pictures and their {n_features:,} features",
            2.0 * data.pixels.nbytes + held + 64.0 * n_features * self.n_samples,
            "n_samples, or the size or the number of the pictures",
        )

    def _claim(self, budget: Budget, ledger: Ledger, public: Sequence[str]) -> Guarantee:
        claim = super()._claim(budget, ledger, (*public, str(self.record_)))
        return replace(claim, not_covered=(*claim.not_covered, OWN_PICTURES))

    @property
    def _painter(self) -> GrowingNetwork:
        return GrowingNetwork(
            shape=self.codec_.size,
            n_heads=self.conditions_.n,
            n_noise=N_NOISE,
            width=self.width,
            residual=True,
        )

    def _fit_to(
        self,
        features: EfficientNetMaps,
        released: FeatureMeans,
        seen: IntArray,
        rng: np.random.Generator,
        progress: Progress,
    ) -> None:
        each = max(2, self.n_samples // len(seen))
        heads, noise = np.repeat(seen, each), released.squared_noise[seen]
        # A squared length of d normal numbers has a variance of two d: three deviations more.
        explained = noise.sum() + 3.0 * (2.0 / features.dimension * (noise**2).sum()) ** 0.5
        distances: list[float] = []
        # On all threads, for its products are large.
        place = nullcontext() if self.device == "cpu" else torch.device(self.device)
        with place:
            features.network.to(self.device)
            training = GeneratorTraining(self._painter, n_steps=self.n_steps, rates=RATES, rng=rng)
            wanted = floats(released.means[seen])
            for step in range(self.n_steps):
                raw = training.draw(heads)
                pixels = raw.detach().clamp(0.0, 1.0).requires_grad_()
                found = features.of(pixels).view(len(seen), each, -1)
                distance = squared_distance(found, wanted).sum()
                (gradient,) = torch.autograd.grad(distance, pixels)
                training.follow(raw, array(gradient))
                distances.append(distance.item())
                progress("network", step + 1, self.n_steps)
                if step + 1 >= RECENT and np.mean(distances[-RECENT:]) <= explained:
                    break
            features.network.to("cpu")
        self.weights_ = dict(training.weights())

    def _draw_turned(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        return draw_pictures(self._painter, self.weights_, conditions, rng)

    def _arrays(self) -> dict[str, Array]:
        painted = {_WEIGHT + name: weight for name, weight in self.weights_.items()}
        return super()._arrays() | painted

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        self.weights_ = {name: arrays[_WEIGHT + name] for name in self._painter.shapes}
        if any(self.weights_[name].shape != s for name, s in self._painter.shapes.items()):
            raise ValueError("the network does not have the numbers that its settings say.")

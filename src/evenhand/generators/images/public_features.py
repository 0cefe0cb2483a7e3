"""PublicFeatureImages: one release of a public network's mean maps, and pictures that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks, _values
from evenhand._torch import torch
from evenhand.datasets.features.efficientnet import EfficientNetMaps
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.datasets.features.maps import NetworkMaps
from evenhand.datasets.features.random_maps import RandomMaps
from evenhand.generators.budget_plan import under
from evenhand.generators.feature_means import FeatureMeans
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.embedded import CHUNK, EmbeddedImages, squared_distance
from evenhand.generators.registry import register
from evenhand.learners.nets.picture_generator import (
    GeneratorTraining,
    GrowingNetwork,
    draw_pictures,
)
from evenhand.learners.nets.tensors import array, floats
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.typing import Array, IntArray

NETWORKS: Final[Mapping[str, type[EfficientNetMaps] | type[RandomMaps]]] = {
    "EfficientNet-Lite0": EfficientNetMaps,
    "random": RandomMaps,
}
"""Whose maps are released."""

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

    1. Pictures become the maps of blocks of a public network and their squares (``NetworkMaps``),
       of length 1 in all.
    2. Their sums by label and group, with the counts, are one Gaussian release.
    3. A convolutional network from random numbers and a condition to pixels is fitted to the noisy
       means by Adam, on an estimate of the squared distance without bias; every label and group
       counts alike. It ends early where the noise explains the distance (Morozov's principle).

    Parameters
    ----------
    network : {"EfficientNet-Lite0", "random"}
        "EfficientNet-Lite0": trained on photographs of ImageNet. "random": four convolutions with
        weights from a public seed, which were trained on nothing (``RandomMaps``).
    blocks : sequence of int, optional
        Whose maps: 0 to 15 of EfficientNet-Lite0, 0 to 3 of "random", ascending. Later ones see
        larger parts, and need larger pictures: the default, (0, 2, 4, 8) or all four, is for 16 x
        16 and more.
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
    Public : the network, which the claim names. EfficientNet-Lite0 was trained on photographs of
        ImageNet, in which a private picture might be: the claim is about the pictures that ``fit``
        was given alone.

    Notes
    -----
    EfficientNet-Lite0 needs the extra ``frechet``. A fit takes minutes, and what it draws is sharp,
    where ``GaussianImages`` draws what is out of focus (``reproductions/picture_budgets.py``).

    References
    ----------
    Harder, Jalali, Sutherland and Park 2023 (DP-MEPF: mean embeddings of perceptual features).
    """

    method: ClassVar[str] = "public-features"
    words: ClassVar[str] = "noisy means of a public network's maps"
    numbers: ClassVar[tuple[str, ...]] = ("n_steps", "n_samples", "width")
    of_fit: ClassVar[tuple[str, ...]] = numbers

    record_: ExtractorRecord = field(init=False)

    network: str = next(iter(NETWORKS))
    blocks: Sequence[int] | None = None
    n_steps: int = 1200
    n_samples: int = 200
    width: int = 64

    def _maps(self, size: tuple[int, int, int]) -> NetworkMaps:
        network = NETWORKS[_checks.one_of("network", self.network, NETWORKS)]
        return network.load(size) if self.blocks is None else network.load(size, self.blocks)

    def _features(self, rng: np.random.Generator) -> NetworkMaps:
        del rng  # nothing is drawn
        features = self._maps(self.codec_.size)
        record = str(ExtractorRecord.of(features))
        if self.is_fitted_ and record not in self.guarantee_.public:
            raise ValueError(
                f"What was released are maps of another network than the one that is installed, "
                f"{record}. Install the version that the claim names."
            )
        return features

    def _foresee(self, known: EncodedImages) -> None:
        self.record_ = ExtractorRecord.of(self._maps(known.pixels[0].shape))
        super()._foresee(known)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        n_features = self.record_.dimension
        held = 8.0 * n_features * (4.0 * CHUNK + 4.0 * self.conditions_.n)
        return (
            f"{_values.count(len(data))} pictures and their {n_features:,} features",
            2.0 * data.pixels.nbytes + held + 64.0 * n_features * self.n_samples,
            "n_samples, or the size or the number of the pictures",
        )

    def _claim(self, budget: Budget, ledger: Ledger, public: Sequence[str]) -> Guarantee:
        claim = super()._claim(budget, ledger, (*public, str(self.record_)))
        if NETWORKS[self.network] is RandomMaps:
            return claim
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

    def _fit_of(
        self,
        features: NetworkMaps,
        released: FeatureMeans,
        seen: IntArray,
        rng: np.random.Generator,
    ) -> PainterFit:
        return PainterFit(
            features,
            released,
            seen,
            painter=self._painter,
            n_steps=self.n_steps,
            n_samples=self.n_samples,
            rng=rng,
        )

    def _paint(
        self, learnt: Mapping[str, Array], conditions: IntArray, rng: np.random.Generator
    ) -> FloatPixels:
        return draw_pictures(self._painter, under(learnt, _WEIGHT), conditions, rng)

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        found = {name: weight.shape for name, weight in under(self.learnt_, _WEIGHT).items()}
        if found != self._painter.shapes:
            raise ValueError("the network does not have the numbers that its settings say.")


class PainterFit:
    """The fit of a convolutional network to released means of maps, by Adam; a ``PictureFit``.

    It ends early where noise explains the distance that is left.

    Parameters
    ----------
    features : NetworkMaps
    released : FeatureMeans
    seen : ndarray of int64
        Combinations of label and group that are fitted, each of which counts alike.
    painter : GrowingNetwork
    n_steps, n_samples : int
        Steps, at most, and pictures of each over all combinations.
    rng : Generator
        Seeds the network and its draws.
    """

    def __init__(
        self,
        features: NetworkMaps,
        released: FeatureMeans,
        seen: IntArray,
        *,
        painter: GrowingNetwork,
        n_steps: int,
        n_samples: int,
        rng: np.random.Generator,
    ) -> None:
        self.n_steps, self.done = n_steps, 0
        self._features, self._wanted = features, floats(released.means[seen])
        self._each = max(2, n_samples // len(seen))
        self._heads, noise = np.repeat(seen, self._each), released.squared_noise[seen]
        # A squared length of d normal numbers has a variance of two d: three deviations more.
        self._explained = noise.sum() + 3.0 * (2.0 / features.dimension * (noise**2).sum()) ** 0.5
        self._recent: list[float] = []
        self._training = GeneratorTraining(painter, n_steps=n_steps, rates=RATES, rng=rng)

    @property
    def ended(self) -> bool:
        """Whether no step is left, or noise explains the distance."""
        near = len(self._recent) == RECENT and np.mean(self._recent) <= self._explained
        return bool(near) or self.done >= self.n_steps

    def step(self) -> None:
        """Paint, and follow the gradient of the distance."""
        raw = self._training.draw(self._heads)
        pixels = raw.detach().clamp(0.0, 1.0).requires_grad_()
        found = self._features.of(pixels).view(len(self._wanted), self._each, -1)
        distance = squared_distance(found, self._wanted).sum()
        (gradient,) = torch.autograd.grad(distance, pixels)
        self._training.follow(raw, array(gradient))
        self._recent = [*self._recent, distance.item()][-RECENT:]
        self.done += 1

    def learnt(self) -> dict[str, Array]:
        """Return the running means of the weights."""
        return {_WEIGHT + name: weight for name, weight in self._training.weights().items()}

    def state(self) -> dict[str, Array]:
        """Return copies of what a new fit needs to go on from here, bit for bit."""
        own = {"done": np.array([self.done]), "recent": np.array(self._recent)}
        return own | self._training.state()

    def take(self, state: Mapping[str, Array]) -> None:
        """Go on where ``state`` was."""
        self._training.take(state)
        self.done, self._recent = int(state["done"].item()), state["recent"].tolist()

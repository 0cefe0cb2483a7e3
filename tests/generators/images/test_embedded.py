"""What mean embeddings of pictures share: what is released, how far a fit is, what is drawn."""

from functools import partial
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from marks import FAINT

from evenhand._extras import installed
from evenhand._torch import torch
from evenhand.generators.aggregators import FeatureSums
from evenhand.generators.feature_means import FeatureMeans
from evenhand.generators.images import MeanEmbeddingImages
from evenhand.generators.images.embedded import squared_distance
from evenhand.generators.images.public_features import PublicFeatureImages
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import pictures

pytestmark = [pytest.mark.torch, FAINT]

NEW: Final[dict[str, Any]] = {
    "random": partial(MeanEmbeddingImages, n_frequencies=300, hidden=(64,), noise=SeededNoise(0)),
    "public": partial(PublicFeatureImages, blocks=(0,), width=24, noise=SeededNoise(0)),
}
_MISSING = pytest.mark.skipif(
    not installed("efficientnet_lite_pytorch"), reason="the extra frechet is missing"
)
KINDS = pytest.mark.parametrize("kind", ["random", pytest.param("public", marks=_MISSING)])


def test_the_distance_is_without_bias_and_is_the_plain_one_less_the_variance_of_a_mean() -> None:
    # All samples of two, with repetition, of four points: the mean over them is the distance of
    # the points' own mean, by the definition of an estimate without bias.
    points = np.random.default_rng(0).normal(size=(4, 3))
    wanted = np.array([0.5, -1.0, 2.0])
    truth = ((points.mean(axis=0) - wanted) ** 2).sum()
    every = [squared_distance(points[list(rows)], wanted) for rows in product(range(4), repeat=2)]
    assert np.mean(every) == pytest.approx(truth)
    biased = [((points[list(r)].mean(0) - wanted) ** 2).sum() for r in product(range(4), repeat=2)]
    assert np.mean(biased) > 1.05 * truth
    # A second derivation: the mean of products of two different draws' distances.
    apart = points - wanted
    pairs = np.mean([apart[i] @ apart[j] for i, j in combinations(range(4), 2)])
    assert squared_distance(points, wanted) == pytest.approx(pairs)
    stacked = squared_distance(torch.tensor(np.stack([points, 2 * points])), torch.tensor(wanted))
    assert stacked.shape == (2,)
    assert stacked[0].item() == pytest.approx(pairs)


def test_noise_on_the_means_is_as_long_as_it_is_said_to_be() -> None:
    released = FeatureMeans(sums=np.zeros((2, 5)), counts=np.array([10.0, 40.0]), sigma=2.0)
    rng = np.random.default_rng(0)
    drawn = rng.normal(scale=2.0, size=(20_000, 2, 5)) / np.array([10.0, 40.0])[:, None]
    lengths = (drawn**2).sum(axis=2)
    six = 6 * lengths.std(axis=0) / 20_000**0.5  # fails once in 1e8
    assert (np.abs(lengths.mean(axis=0) - released.squared_noise) < six).all()


@KINDS
@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_no_picture_moves_the_released_sums_by_more_than_they_declare(
    kind: str, relation: str
) -> None:
    images, y, _ = pictures(8)
    images[0], images[1] = 0, 255  # the extremes
    made = NEW[kind]()
    made.codec_ = SimpleNamespace(size=(1, 8, 8))
    features = made._features(np.random.default_rng(0))
    phi = features.transform((images / 255.0)[:, None].astype(np.float32)).astype(np.float64)
    condition = (y == "stands").astype(np.int64)
    sums = FeatureSums(n_features=features.dimension, n_conditions=2)
    whole, bound = sums.total(phi, condition), sums.l2_sensitivity(relation)
    furthest = 0.0
    for i in range(8):
        rest = np.delete(np.arange(8), i)
        if relation == "add or remove one":
            neighbors = [sums.total(phi[rest], condition[rest])]
        else:
            swaps = [(np.where(np.arange(8) == i, j, np.arange(8)), j) for j in range(8)]
            others = [np.where(np.arange(8) == i, c, condition) for c in (0, 1)]
            neighbors = [sums.total(phi[rows], c) for (rows, _), c in product(swaps, others)]
        moved = [float(np.linalg.norm(whole - neighbor)) for neighbor in neighbors]
        assert max(moved) <= bound
        furthest = max(furthest, *moved)
    assert furthest > 0.99 * bound  # the bound is reached: no noise is wasted


def test_the_misfit_is_one_for_draws_from_the_pictures_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is drawn are the private pictures: the distance that is left is the noise. A squared
    # normal length over 600 numbers for each of two labels has a deviation of 1 /
    # sqrt(600) of its mean, and 200 draws each add a spread that is smaller at this epsilon.
    images, y, _ = pictures(400)
    pixels = (images / 255.0)[:, None].astype(np.float32)
    names = np.array(["lies", "stands"])

    def real(self: Any, conditions: Any, rng: np.random.Generator) -> Any:
        own = pixels[y == names[conditions[0]]]
        return own[rng.integers(0, len(own), len(conditions))]

    def fitted(epsilon: float, seed: int) -> float:
        made = NEW["random"](n_steps=1, noise=SeededNoise(seed))
        made.fit(images, y, budget=Budget(epsilon=epsilon, delta=1e-5))
        assert any("the fit is the limit" in note for note in made.notes_) == (made.misfit_ > 10)
        return made.misfit_

    far = fitted(20.0, 0)
    monkeypatch.setattr(MeanEmbeddingImages, "_draw_turned", real)
    near = np.mean([fitted(0.5, seed) for seed in range(10)])
    assert 0.8 < near < 1.2
    assert far > 20


@pytest.mark.slow
@KINDS
def test_drawn_pictures_show_their_label_and_group(kind: str) -> None:
    images, y, side = pictures(2000)
    made = NEW[kind](n_steps=350, n_samples=60, random_state=0).fit(
        images, y, sensitive_features=side, budget=Budget(epsilon=50.0, delta=1e-5)
    )
    for c, (label, group) in enumerate(product(("lies", "stands"), ("left", "right"))):
        drawn = made.sample(50, conditions={"label": label, "sensitive": group}, random_state=c)
        halves = drawn.images[:, :, :4].sum(), drawn.images[:, :, 4:].sum()
        assert (halves[0] > halves[1]) == (group == "left")
        real = images[(y == label) & (side == group)].mean(axis=0) / 255
        other = images[(y != label) & (side == group)].mean(axis=0) / 255
        mean = drawn.images.mean(axis=0)
        assert ((mean - real) ** 2).sum() < 0.8 * ((mean - other) ** 2).sum()

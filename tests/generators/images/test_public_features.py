"""Pictures by the mean maps of a public network: the release, the fit to it, and when it ends."""

import sys
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from evenhand._torch import torch
from evenhand.generators import GeneratorDamaged, load
from evenhand.generators.aggregators import FeatureSums
from evenhand.generators.feature_means import FeatureMeans
from evenhand.generators.images import public_features
from evenhand.generators.images.embedded import squared_distance
from evenhand.generators.images.public_features import PublicFeatureImages
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import ImageSynthesizerContract, pictures

pytest.importorskip("efficientnet_lite_pytorch", reason="the extra frechet is missing")

BUDGET = Budget(epsilon=5.0, delta=1e-5)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings(
        "ignore:the predicted signal-to-noise", "ignore:.*cannot be told from empty ones"
    ),
]


def new(**settings: Any) -> PublicFeatureImages:
    small = {"blocks": (0, 2), "n_steps": 40, "n_samples": 24, "width": 16}
    return PublicFeatureImages(**(small | {"noise": SeededNoise(0), "random_state": 0} | settings))


class TestPublicFeatures(ImageSynthesizerContract):
    def new(self) -> PublicFeatureImages:
        return new()


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


@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_no_picture_moves_the_released_sums_by_more_than_they_declare(relation: str) -> None:
    images, y, _ = pictures(8)
    images[0], images[1] = 0, 255  # the extremes
    features = new()._features((1, 8, 8), np.random.default_rng(0))
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


def test_the_claim_names_the_network_and_what_it_was_trained_on() -> None:
    images, y, side = pictures(300)
    claim = new(n_steps=2).fit(images, y, sensitive_features=side, budget=BUDGET).guarantee_
    (named,) = (words for words in claim.public if "EfficientNet-Lite0" in words)
    assert "maps of blocks 0, 2, and squares" in named
    assert "ImageNet" in named
    assert len(claim.public) == 4


def test_drawn_pictures_show_their_label_and_group() -> None:
    images, y, side = pictures(2000)
    made = new(n_steps=300, n_samples=60, width=24).fit(
        images, y, sensitive_features=side, budget=Budget(epsilon=50.0, delta=1e-5)
    )
    for c, (label, group) in enumerate(product(("lies", "stands"), ("left", "right"))):
        drawn = made.sample(50, conditions={"label": label, "sensitive": group}, random_state=c)
        halves = drawn.images[:, :, :4].sum(), drawn.images[:, :, 4:].sum()
        assert (halves[0] > halves[1]) == (group == "left")
        real = images[(y == label) & (side == group)].mean(axis=0) / 255
        other = images[(y != label) & (side == group)].mean(axis=0) / 255
        mean = drawn.images.mean(axis=0)
        assert ((mean - real) ** 2).sum() < 0.5 * ((mean - other) ** 2).sum()


def test_the_misfit_is_one_for_draws_from_the_pictures_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is drawn are the private pictures: the distance that is left is the noise. A squared
    # normal length over 512 numbers and more for each of two labels has a deviation of 1 /
    # sqrt(512) of its mean, and 200 draws each add a spread that is smaller at this epsilon.
    images, y, _ = pictures(400)
    pixels = (images / 255.0)[:, None].astype(np.float32)
    names = np.array(["lies", "stands"])

    def real(self: Any, conditions: Any, rng: np.random.Generator) -> Any:
        own = pixels[y == names[conditions[0]]]
        return own[rng.integers(0, len(own), len(conditions))]

    def fitted(epsilon: float, seed: int) -> float:
        made = new(n_steps=1, noise=SeededNoise(seed))
        made.fit(images, y, budget=Budget(epsilon=epsilon, delta=1e-5))
        assert any("the fit is the limit" in note for note in made.notes_) == (made.misfit_ > 10)
        return made.misfit_

    far = fitted(20.0, 0)
    monkeypatch.setattr(PublicFeatureImages, "_draw", real)
    near = np.mean([fitted(0.5, seed) for seed in range(10)])
    assert 0.8 < near < 1.2
    assert far > 20


def test_the_fit_ends_where_the_noise_explains_the_distance() -> None:
    images, y, _ = pictures(400)
    told: list[tuple[str, int]] = []
    made = new(n_steps=120).fit(
        images,
        y,
        budget=Budget(epsilon=0.05, delta=1e-5),
        progress=lambda stage, done, most: told.append((stage, done)),
    )
    steps = [done for stage, done in told if stage == "network"]
    assert public_features.RECENT <= steps[-1] < 120
    assert steps == list(range(1, steps[-1] + 1))
    assert made.misfit_ < 2.0


def test_noise_on_the_means_is_as_long_as_it_is_said_to_be() -> None:
    released = FeatureMeans(sums=np.zeros((2, 5)), counts=np.array([10.0, 40.0]), sigma=2.0)
    rng = np.random.default_rng(0)
    drawn = rng.normal(scale=2.0, size=(20_000, 2, 5)) / np.array([10.0, 40.0])[:, None]
    lengths = (drawn**2).sum(axis=2)
    six = 6 * lengths.std(axis=0) / 20_000**0.5  # fails once in 1e8
    assert (np.abs(lengths.mean(axis=0) - released.squared_noise) < six).all()


def test_a_saved_network_draws_the_same_and_a_damaged_one_is_refused(tmp_path: Any) -> None:
    images, y, side = pictures(300)
    made = new(n_steps=2).fit(images, y, sensitive_features=side, budget=BUDGET)
    made.save(tmp_path / "own")
    again = load(tmp_path / "own")
    assert again.misfit_ == made.misfit_
    assert np.array_equal(
        made.sample(5, random_state=1).images, again.sample(5, random_state=1).images
    )
    made.weights_["conv0.bias"] = np.zeros(3, dtype=np.float32)
    made.save(tmp_path / "other")
    with pytest.raises(GeneratorDamaged, match="the network does not have the numbers"):
        load(tmp_path / "other")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": ()}, "blocks must be at least one of 0 to 15"),
        ({"blocks": (0, 2, 4, 8)}, "Pictures of 8 x 8 are too small for block 8"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"width": 0}, "width must be at least 1"),
    ],
)
def test_what_cannot_be_fitted_spends_nothing(settings: dict[str, Any], message: str) -> None:
    images, y, _ = pictures(60)
    store = MemoryStore()
    with pytest.raises(ValueError, match=message):
        new(**settings).fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == ()


def test_without_the_extra_nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    images, y, _ = pictures(60)
    store = MemoryStore()
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ImportError, match=r"EfficientNetMaps needs .*\[frechet\]"):
        new().fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == ()

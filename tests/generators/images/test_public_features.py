"""Pictures by the mean maps of a public network: the claim, when the fit ends, what is refused."""

import sys
from typing import Any

import numpy as np
import pytest
from marks import FAINT

from evenhand._extras import installed
from evenhand.generators import GeneratorDamaged, load
from evenhand.generators.images import public_features
from evenhand.generators.images.public_features import PublicFeatureImages
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import ImageSynthesizerContract, pictures

BUDGET = Budget(epsilon=5.0, delta=1e-5)

pytestmark = [pytest.mark.torch, FAINT]

TRAINED = pytest.mark.skipif(
    not installed("efficientnet_lite_pytorch"), reason="the extra frechet is missing"
)


def new(**settings: Any) -> PublicFeatureImages:
    small = {"blocks": (0, 2), "n_steps": 40, "n_samples": 24, "width": 16}
    return PublicFeatureImages(**(small | {"noise": SeededNoise(0), "random_state": 0} | settings))


@TRAINED
class TestPublicFeatures(ImageSynthesizerContract):
    def new(self) -> PublicFeatureImages:
        return new()


class TestRandomFeatures(ImageSynthesizerContract):
    def new(self) -> PublicFeatureImages:
        return new(network="random")


def test_random_convolutions_need_no_extra_and_no_word_about_photographs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    images, y, side = pictures(300)
    made = new(network="random", blocks=None, n_steps=2)
    claim = made.fit(images, y, sensitive_features=side, budget=BUDGET).guarantee_
    (named,) = (words for words in claim.public if "random convolutions" in words)
    assert "maps of blocks 0, 1, 2, 3, and squares" in named
    assert "trained on nothing" in named
    assert public_features.OWN_PICTURES not in claim.not_covered


def test_what_was_released_of_one_network_is_not_fitted_by_the_other() -> None:
    images, y, _ = pictures(200)
    made = new(network="random", n_steps=2).fit(images, y, budget=BUDGET)
    made.network = "EfficientNet-Lite0"
    with pytest.raises(ValueError, match="begun with network='random'"):
        made.refit(n_steps=1)


@TRAINED
def test_the_claim_names_the_network_and_what_it_was_trained_on() -> None:
    images, y, side = pictures(300)
    claim = new(n_steps=2).fit(images, y, sensitive_features=side, budget=BUDGET).guarantee_
    (named,) = (words for words in claim.public if "EfficientNet-Lite0" in words)
    assert "maps of blocks 0, 2, and squares" in named
    assert "ImageNet" in named
    assert len(claim.public) == 4
    assert public_features.OWN_PICTURES in claim.not_covered
    assert public_features.OWN_PICTURES in str(claim)


@pytest.mark.slow
@TRAINED
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


@TRAINED
def test_a_saved_network_draws_the_same_and_a_damaged_one_is_refused(tmp_path: Any) -> None:
    images, y, side = pictures(300)
    made = new(n_steps=2).fit(images, y, sensitive_features=side, budget=BUDGET)
    made.save(tmp_path / "own")
    again = load(tmp_path / "own")
    assert again.misfit_ == made.misfit_
    assert np.array_equal(
        made.sample(5, random_state=1).images, again.sample(5, random_state=1).images
    )
    made.learnt_ = {**made.learnt_, "painter: conv0.bias": np.zeros(3, dtype=np.float32)}
    made.save(tmp_path / "other")
    with pytest.raises(GeneratorDamaged, match="the network does not have the numbers"):
        load(tmp_path / "other")


@TRAINED
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": ()}, "blocks must be a sequence of at least one of 0 to 15"),
        ({"blocks": (0, 2, 4, 8)}, "Pictures of 8 x 8 are too small for block 8"),
        (
            {"network": "random", "blocks": (4,)},
            "blocks must be a sequence .* of 0 to 3, ascending",
        ),
        (
            {"network": "lite0"},
            "network must be one of 'EfficientNet-Lite0', 'random', got 'lite0'",
        ),
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

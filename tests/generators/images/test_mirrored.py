"""Generators that take pictures to be as likely as their mirror images."""

from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from marks import FAINT

from evenhand._extras import installed
from evenhand.generators.images import MeanEmbeddingImages
from evenhand.generators.images.gaussian import GaussianImages
from evenhand.generators.images.mirrored import turned
from evenhand.generators.images.public_features import PublicFeatureImages
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import pictures

pytestmark = FAINT

NEW: Final[dict[str, Any]] = {
    "gaussian": partial(GaussianImages, n_frequencies=40, n_directions=8, n_components=4),
    "mean-embedding": partial(
        MeanEmbeddingImages, n_frequencies=100, hidden=(32,), n_steps=100, n_samples=40
    ),
    "public-features": partial(
        PublicFeatureImages, blocks=(0,), n_steps=60, n_samples=40, width=16
    ),
}
_MISSING = pytest.mark.skipif(
    not installed("efficientnet_lite_pytorch"), reason="the extra frechet is missing"
)
KINDS = pytest.mark.parametrize(
    "kind",
    [
        "gaussian",
        pytest.param("mean-embedding", marks=pytest.mark.torch),
        pytest.param("public-features", marks=[pytest.mark.torch, _MISSING]),
    ],
)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_and_its_mirror_image_are_turned_to_the_same_one(channels: int) -> None:
    rng = np.random.default_rng(0)
    bytes_ = rng.integers(0, 256, (50, channels, 6, 7))
    given = (bytes_ / 255.0).astype(np.float32)
    found = turned(given)
    assert np.array_equal(turned(given[..., ::-1]), found)  # no two halves are level here
    assert np.array_equal(turned(found), found)
    flipped = (found != given).any(axis=(1, 2, 3))
    assert 0 < flipped.sum() < 50
    assert np.array_equal(np.where(flipped[:, None, None, None], given[..., ::-1], given), found)
    # By the definition, one picture after the other: no other picture decides.
    for one, picture in zip(bytes_, given, strict=True):
        left, right = one[..., :3].sum(), one[..., 4:].sum()
        brighter = picture if left >= right else picture[..., ::-1]
        assert np.array_equal(turned(picture[None])[0], brighter)


@pytest.mark.slow
@KINDS
def test_pictures_that_differ_by_a_mirror_are_fitted_alike_and_drawn_both_ways(kind: str) -> None:
    images, y, side = pictures(300)
    slope = np.linspace(120, 0, 8).astype(np.uint8)
    left = images // 4 + slope  # the left half is far the brighter one
    mixed = np.where(np.arange(300)[:, None, None] % 3 == 0, left[:, :, ::-1], left)

    def fitted(given: Any, **more: Any) -> Any:
        made = NEW[kind](noise=SeededNoise(0), random_state=0, **more)
        budget = Budget(epsilon=50.0, delta=1e-5)
        return made.fit(given, y, sensitive_features=side, budget=budget)

    one, other = (fitted(given, mirrored=True) for given in (left, mixed))
    learnt = one._arrays()
    assert learnt.keys() == other._arrays().keys()
    assert all(np.array_equal(learnt[name], other._arrays()[name]) for name in learnt)
    drawn, plain = (made.sample(2000, random_state=1).images for made in (one, fitted(left)))
    share = [
        (a[:, :, :4].sum(axis=(1, 2)) > a[:, :, 4:].sum(axis=(1, 2))).mean() for a in (drawn, plain)
    ]
    assert abs(share[0] - 0.5) < 0.06  # five standard errors of 2,000 coins
    assert share[1] > 0.9


@KINDS
def test_what_is_neither_true_nor_false_is_refused(kind: str) -> None:
    images, y, _ = pictures(60)
    with pytest.raises(TypeError, match="mirrored must be"):
        NEW[kind](mirrored="yes").fit(images, y, budget=Budget(epsilon=5.0, delta=1e-5))

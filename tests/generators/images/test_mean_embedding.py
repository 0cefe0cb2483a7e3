"""The mean embedding of pictures: its features, what one picture moves, and the network's fit."""

import math
import sys
from typing import Any

import numpy as np
import pytest
from marks import FAINT
from scipy.ndimage import gaussian_filter1d

from evenhand.generators.images import MeanEmbeddingImages
from evenhand.generators.images.embedding_network import (
    BANDWIDTHS,
    EmbeddingFit,
    EmbeddingNetwork,
    RandomFeatures,
    _blur,
)
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import pictures

pytestmark = [pytest.mark.torch, FAINT]


def test_features_have_norm_1_and_their_products_are_the_kernels() -> None:
    # A second derivation: the mean of three Gaussian kernels. 30,000 frequencies: the spread of the
    # mean of a cosine is below 1 / sqrt(30,000) = .006; six times that fails once in 1e8.
    rng = np.random.default_rng(0)
    images = rng.random((6, 1, 4, 4)).astype(np.float32)
    phi = RandomFeatures.draw(16, 30_000, rng).transform(images)
    assert np.abs(np.linalg.norm(phi, axis=1) - 1.0).max() < 1e-9
    flat = images.reshape(6, -1)
    apart = ((flat[:, None] - flat[None]) ** 2).sum(axis=2)
    kernels = np.mean([np.exp(-apart / (2 * 16 * width**2)) for width in BANDWIDTHS], axis=0)
    assert np.abs(phi @ phi.T - kernels).max() < 0.035


def small(**settings: Any) -> MeanEmbeddingImages:
    sizes = {"n_frequencies": 30, "hidden": (8,), "n_steps": 2, "n_samples": 8}
    return MeanEmbeddingImages(**(sizes | {"noise": SeededNoise(0)} | settings))


def test_replacing_a_picture_costs_more_noise_at_the_same_claim() -> None:
    images, y, side = pictures(200)
    budget = Budget(epsilon=5.0, delta=1e-5)
    one, other = (
        small(neighbors=relation).fit(images, y, sensitive_features=side, budget=budget)
        for relation in ("add or remove one", "replace one")
    )
    assert other.counts_sigma_ == pytest.approx(math.sqrt(2.0) * one.counts_sigma_)
    # One release of everything: sigma is sqrt(2) over mu.
    assert one.counts_sigma_ == pytest.approx(math.sqrt(2.0) / budget.mu, rel=1e-6)
    assert "the number of records" in other.guarantee_.public
    assert "the number of records" not in one.guarantee_.public


def fitted(fit: EmbeddingFit) -> EmbeddingNetwork:
    while not fit.ended:
        fit.step()
    return EmbeddingNetwork.of(fit.learnt())


def test_the_network_meets_the_means_and_leaves_unseen_conditions_alone() -> None:
    rng = np.random.default_rng(0)
    features = RandomFeatures.draw(16, 200, rng)
    bright = np.clip(0.8 + 0.1 * rng.normal(size=(300, 1, 4, 4)), 0, 1).astype(np.float32)
    dark = np.clip(0.2 + 0.1 * rng.normal(size=(300, 1, 4, 4)), 0, 1).astype(np.float32)
    noise = rng.normal(size=features.dimension)  # the third condition was never seen
    aims = np.stack([features.transform(bright).mean(0), features.transform(dark).mean(0), noise])
    fit = EmbeddingFit(
        features,
        aims,
        np.array([0, 1]),
        (1, 4, 4),
        hidden=(32,),
        n_steps=150,
        n_samples=60,
        rng=rng,
    )
    drawn = fitted(fit).draw(np.repeat([0, 1], 200), rng)
    assert drawn.shape == (400, 1, 4, 4)
    assert abs(drawn[:200].mean() - 0.8) < 0.05
    assert abs(drawn[200:].mean() - 0.2) < 0.05
    found = np.stack(
        [features.transform(drawn[:200]).mean(0), features.transform(drawn[200:]).mean(0)]
    )
    assert ((found - aims[:2]) ** 2).sum() < 0.1 * ((aims[0] - aims[1]) ** 2).sum()
    assert fit.done == 150


def network(smooth: float) -> EmbeddingNetwork:
    rng = np.random.default_rng(0)
    features = RandomFeatures.draw(48, 60, rng)
    grain = rng.random((300, 1, 8, 6)).astype(np.float32)
    return fitted(
        EmbeddingFit(
            features,
            np.stack([features.transform(grain).mean(0), features.transform(1 - grain).mean(0)]),
            np.array([0, 1]),
            (1, 8, 6),
            hidden=(16,),
            n_steps=60,
            n_samples=40,
            rng=np.random.default_rng(1),
            smooth=smooth,
        )
    )


@pytest.mark.parametrize("smooth", [0.5, 1.0, 2.0])
def test_a_blur_is_a_gaussian_mean_of_neighbors(smooth: float) -> None:
    # A second derivation: SciPy's filter, far from the edges. What lies more than 4.3 deviations
    # away is left out here: 2e-5 of all weight.
    rows = np.random.default_rng(0).random((3, 40))
    theirs = gaussian_filter1d(rows, smooth, truncate=8.0)
    inner = slice(12, -12)
    assert np.abs((rows @ _blur(40, smooth).T - theirs)[:, inner]).max() < 1e-4
    assert np.allclose(_blur(40, smooth).sum(axis=1), 1.0)  # a grey picture stays as grey


def test_a_smooth_network_draws_no_grain_and_none_is_the_limit_of_little() -> None:
    plain, little, much = network(0.0), network(1e-3), network(2.0)
    for one, other in zip(plain.layers, little.layers, strict=True):
        assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(one, other, strict=True))

    # A chessboard is the finest grain: the mean of neighbors is 0, but for the edges.
    board = (-1.0) ** np.add.outer(np.arange(8), np.arange(6)) / 48**0.5

    def grain(made: EmbeddingNetwork) -> float:
        weight, bias = made.layers[-1]
        rows = np.vstack([weight, bias])
        return float(np.linalg.norm(rows @ board.ravel()) / np.linalg.norm(rows))

    assert grain(plain) > 0.05  # by chance it is one part of 48: .14
    assert grain(much) < 0.01


def test_a_network_comes_back_from_its_arrays() -> None:
    rng = np.random.default_rng(0)
    layers = (
        (rng.normal(size=(10, 5)), rng.normal(size=5)),
        (rng.normal(size=(5, 12)), rng.normal(size=12)),
    )
    made = EmbeddingNetwork(layers=layers, n_conditions=2, size=(3, 2, 2))
    again = EmbeddingNetwork.of(made.arrays())
    draws = [p.draw(np.array([0, 1, 1]), np.random.default_rng(1)) for p in (made, again)]
    assert np.array_equal(*draws)
    assert draws[0].shape == (3, 3, 2, 2)
    assert 0 <= draws[0].min() < draws[0].max() <= 1  # a logistic of floats may round to an end


def test_without_torch_nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    images, y, _ = pictures(60)
    store = MemoryStore()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r'MeanEmbeddingImages needs PyTorch.*"evenhand\[torch\]"'
    ):
        small().fit(images, y, budget=Budget(epsilon=5.0, delta=1e-5), store=store)
    assert store.entries("default") == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_frequencies": 0}, "n_frequencies must be at least 1"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"hidden": (0,)}, "hidden must be at least 1"),
        ({"smooth": -1.0}, "smooth must be finite and >= 0"),
        ({"neighbors": "change one"}, "neighbors must be one of"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, Any], message: str) -> None:
    images, y, _ = pictures(60)
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(images, y, budget=Budget(epsilon=5.0, delta=1e-5))

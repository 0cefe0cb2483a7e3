"""Generators of pictures: what their layers make, and which way they learn."""

from typing import Any

import numpy as np
import pytest
from runs import FALSE_ALARM
from scipy.stats import chisquare

from evenhand.learners.nets.picture_generator import (
    LATENTS,
    GeneratorTraining,
    GrowingNetwork,
    draw_pictures,
)
from evenhand.learners.nets.tensors import seeded

pytestmark = pytest.mark.torch


def level(h: Any) -> Any:
    return h / (h.square().mean(dim=1, keepdim=True) + 1e-8).sqrt()


@pytest.mark.parametrize(
    ("shape", "sides"), [((1, 28, 28), (7, 14, 28)), ((3, 32, 32), (4, 8, 16, 32))]
)
@pytest.mark.parametrize("residual", [False, True])
def test_a_generator_makes_what_its_layers_make_one_by_one(
    shape: tuple[int, int, int], sides: tuple[int, ...], residual: bool
) -> None:
    # A second derivation, by torch's own modules.
    import torch
    from torch import nn

    network = GrowingNetwork(shape=shape, n_heads=3, n_noise=5, width=32, residual=residual)
    weights = network.start(seeded(np.random.default_rng(0)))
    assert sum(w.numel() for w in weights.values()) == network.n_parameters
    left = dict(weights)

    def layer(name: str, kind: Any, *sizes: int, **more: Any) -> Any:
        made = kind(*sizes, **more)
        own = {key: left.pop(f"{name}.{key}") for key, _ in made.named_parameters()}
        made.load_state_dict(own)
        return made

    rectify, grow = nn.LeakyReLU(0.2), nn.Upsample(scale_factor=2)
    noise, heads = (
        torch.randn(4, 5, generator=seeded(np.random.default_rng(1))),
        torch.tensor([0, 1, 2, 1]),
    )
    h = layer("linear", nn.Linear, 8, 32 * sides[0] ** 2)(
        torch.cat([noise, torch.eye(3)[heads]], dim=1)
    )
    h = level(rectify(h.view(4, 32, sides[0], sides[0])))
    n_in = 32
    for i in range(len(sides) - 1):
        n_out, wide = max(8, n_in // 2), grow(h)
        h = layer(f"conv{i}", nn.Conv2d, n_in, n_out, 3, padding=1)(wide)
        if residual:
            h = layer(f"inner{i}", nn.Conv2d, n_out, n_out, 3, padding=1)(level(rectify(h)))
            h = h + layer(f"skip{i}", nn.Conv2d, n_in, n_out, 1, bias=False)(wide)
        h, n_in = level(rectify(h)), n_out
    h = layer(f"conv{len(sides) - 1}", nn.Conv2d, n_in, shape[0], 3, padding=1)(h)
    assert not left
    torch.testing.assert_close(network.raw(weights, noise, heads), h, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("latent", LATENTS)
@pytest.mark.parametrize("residual", [False, True])
def test_a_generator_that_follows_a_gradient_draws_one_condition_bright_and_one_dark(
    residual: bool, latent: str
) -> None:
    network = GrowingNetwork(
        shape=(1, 14, 14), n_heads=2, n_noise=4, latent=latent, width=8, residual=residual
    )
    learner = GeneratorTraining(
        network, n_steps=120, rates=(1e-2, 1e-3), memory=0.8, rng=np.random.default_rng(0)
    )
    heads = np.array([0, 1] * 4)
    up = np.where(heads == 0, 1.0, -1.0)[:, None] * np.ones((8, 196)) / 196
    for _ in range(120):  # of 25 seeds the worst was .11 away from what is asked
        learner.follow(learner.draw(heads), up)
    drawn = draw_pictures(network, learner.weights(), heads, np.random.default_rng(1))
    of_each = drawn.mean(axis=(1, 2, 3))
    assert of_each[heads == 0].max() < 0.2
    assert of_each[heads == 1].min() > 0.8


def test_coins_are_fair_and_independent_and_give_each_condition_as_many_pictures_as_they_fall() -> (
    None
):
    network = GrowingNetwork(shape=(1, 4, 4), n_heads=2, n_noise=3, latent="bernoulli", width=8)
    stream = seeded(np.random.default_rng(0))
    fell = network.inputs(8_000, stream).numpy()
    assert set(fell.ravel()) == {0.0, 1.0}
    codes = (fell @ [4, 2, 1]).astype(np.int64)
    assert chisquare(np.bincount(codes, minlength=8)).pvalue > FALSE_ALARM
    tilted = np.random.default_rng(0).binomial(1, 0.45, (8_000, 3)) @ [4, 2, 1]
    assert chisquare(np.bincount(tilted, minlength=8)).pvalue < FALSE_ALARM  # would be seen
    weights = {name: w.numpy() for name, w in network.start(stream).items()}
    heads = np.repeat([0, 1], 300)  # one of 16 is never drawn with probability 16 (7 / 8)**300
    drawn = draw_pictures(network, weights, heads, np.random.default_rng(1)).reshape(600, -1)
    for own in (drawn[:300], drawn[300:]):
        assert len(np.unique(own.round(4), axis=0)) == 8


def test_a_latent_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="Did you mean 'bernoulli'"):
        GrowingNetwork(shape=(1, 4, 4), n_heads=2, latent="bernouli")

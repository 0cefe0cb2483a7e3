"""DP-WGAN: gradients of single pictures, a round of batches as one release, known shares."""

from typing import Any

import numpy as np
import pytest

from evenhand.generators import GroupBalancedSampler
from evenhand.generators.images import DPWGANImages
from evenhand.generators.images.adversarial import STEPS
from evenhand.generators.images.critics import DenseCritic
from evenhand.generators.images.dp_wgan import BOUND, _Critic
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.images import pictures

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings(
        "ignore:the predicted signal-to-noise", "ignore:.*cannot be told from empty ones"
    ),
]

BUDGET = Budget(epsilon=4.0, delta=1e-5)
SMALL: dict[str, Any] = {"n_batches": 6, "n_steps": 5, "n_rows": 6, "critic_rows": 6, "width": 8}


def fitted(**settings: Any) -> DPWGANImages:
    images, y, side = pictures(300)
    made = DPWGANImages(**{**SMALL, "hidden": (4,), "noise": SeededNoise(0)}, **settings)
    return made.fit(images, y, sensitive_features=side, budget=BUDGET)


def test_a_round_of_all_batches_is_one_release() -> None:
    steps = [e for e in fitted().ledger_.entries if e.purpose == STEPS]
    assert [e.n_uses for e in steps] == [1, 1, 1]  # 15 updates of the critic over 6 batches
    assert len({e.mechanism for e in steps}) == 1
    assert sum(e.mu_squared for e in steps) == pytest.approx(0.98 * BUDGET.mu_squared, rel=1e-6)


def test_the_gradient_of_each_picture_is_that_of_its_score_alone() -> None:
    # A second derivation: autograd on one picture at a time.
    import torch

    critic = _Critic(DenseCritic(hidden=(5, 3)), (1, 2, 3), 4, 1e-3, np.random.default_rng(0))
    x, heads = torch.rand(7, 6), torch.tensor([0, 1, 2, 3, 0, 1, 2])
    found = critic.gradients(x, heads)
    for i in range(7):
        w = [t.detach().clone().requires_grad_() for t in critic._weights]
        h = x[i]
        for j in range(0, 4, 2):
            h = torch.nn.functional.leaky_relu(h @ w[j] + w[j + 1][0], 0.2)
        (-(h @ w[4] + w[5][0])[heads[i]]).backward()
        alone = np.concatenate([t.grad.numpy().ravel() for t in w])
        np.testing.assert_allclose(found[i], alone, atol=1e-6)


def test_the_critic_moves_by_what_left_and_by_drawn_pictures_and_is_cut() -> None:
    import torch

    critic = _Critic(DenseCritic(hidden=()), (1, 1, 2), 2, 1.0, np.random.default_rng(0))
    critic.follow(np.zeros(6), torch.zeros(2, 1, 1, 2), np.array([0, 1]), 1.0)
    for weight in critic._weights:
        assert float(weight.abs().max()) <= np.float32(BOUND)
    # Only the biases see pictures that are black: the scores of drawn ones fall.
    assert (critic._weights[1] == -np.float32(BOUND)).all()


def test_rare_groups_weigh_more_by_shares_that_are_paid_for() -> None:
    purposes = [
        e.purpose for e in fitted(sampler=GroupBalancedSampler(scope="noisy")).ledger_.entries
    ]
    assert "group shares for the sampler" in purposes
    public = GroupBalancedSampler(scope="public", shares=(0.4, 0.1, 0.4, 0.1))
    assert "the group shares of the sampler" in fitted(sampler=public).guarantee_.public
    with pytest.raises(ValueError, match=r"scope='partition' would let one picture move"):
        fitted(sampler=GroupBalancedSampler())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_batches": 0}, ValueError, "n_batches must be at least 1"),
        ({"clip_norm": 0.0}, ValueError, "clip_norm must be finite and > 0"),
        ({"hidden": (10**9,)}, MemoryError, "Lower hidden, or change n_batches"),
    ],
)
def test_what_cannot_run_is_refused(settings: dict[str, Any], error: Any, message: str) -> None:
    images, y, _ = pictures(60)
    with pytest.raises(error, match=message):
        DPWGANImages(**{**SMALL, **settings}).fit(images, y, budget=BUDGET)

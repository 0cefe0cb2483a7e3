"""DP-WGAN: gradients of single pictures, a round of batches as one release, known shares."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from marks import FAINT

from evenhand.generators import GroupBalancedSampler, load
from evenhand.generators.clipping import CLIPS, SHARE, Clipping
from evenhand.generators.images import DPWGANImages
from evenhand.generators.images.adversarial import STEPS
from evenhand.generators.images.dp_wgan import CELLS, CellWeights
from evenhand.generators.images.synthesizer import COUNTS
from evenhand.learners.nets.picture_critics import ConvCritic, DenseCritic
from evenhand.learners.nets.single_critic import BOUND, SingleCritic
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.teachers import by_position
from evenhand.testing.generators import pictures

pytestmark = [pytest.mark.torch, FAINT]

BUDGET = Budget(epsilon=4.0, delta=1e-5)
SMALL: dict[str, Any] = {"n_batches": 6, "n_steps": 5, "n_rows": 6, "critic_rows": 6, "width": 8}
SMALL |= {"hidden": (4,)}
N = 300
NOISY, PUBLIC = (
    GroupBalancedSampler(scope="noisy"),
    GroupBalancedSampler(scope="public", shares=(0.4, 0.1, 0.4, 0.1)),
)


def fitted(**settings: Any) -> DPWGANImages:
    images, y, side = pictures(N)
    made = DPWGANImages(**{**SMALL, "noise": SeededNoise(0), **settings})
    return made.fit(images, y, sensitive_features=side, budget=BUDGET)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("condition", ["label", "label+group"])
def test_a_round_of_all_batches_is_one_release_and_the_ledger_sums_to_the_claim(
    clip: str, condition: str
) -> None:
    made = fitted(clip=clip, condition=condition)
    steps = [e for e in made.ledger_.entries if e.purpose == STEPS]
    assert [e.n_uses for e in steps] == [1, 1, 1]  # 15 updates of the critic over 6 batches
    assert len({e.mechanism for e in steps}) == 1
    released = [e.purpose for e in made.ledger_.entries if e.purpose != STEPS]
    # Sizes of groups are released where the counts do not say them.
    needs = clip == "group" and condition == "label"
    assert released == ([COUNTS, CELLS] if needs else [COUNTS])
    for_steps = (0.96 if needs else 0.98) * BUDGET.mu_squared
    assert sum(e.mu_squared for e in steps) == pytest.approx(for_steps, rel=1e-6)
    spent = sum(e.mu_squared for e in made.ledger_.entries)
    assert spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    assert spent <= BUDGET.mu_squared
    assert (made.guarantee_.epsilon, made.guarantee_.delta) == (BUDGET.epsilon, BUDGET.delta)


class Door:
    """Everything that leaves a fit: what went in, and what came out or came out before."""

    def __init__(self, patch: pytest.MonkeyPatch, replay: "Door | None" = None) -> None:
        self.went_in: list[np.ndarray] = []
        self.came_out: list[np.ndarray] = []
        self._before = iter(()) if replay is None else iter(replay.came_out)
        self._fresh = replay is None
        release = Ledger.release

        def released(ledger: Ledger, mechanism: Any, counts: Any, **words: Any) -> Any:
            return self._pass(counts, lambda: release(ledger, mechanism, counts, **words))

        patch.setattr(Ledger, "release", released)

    def _pass(self, given: Any, really: Callable[[], Any]) -> Any:
        self.went_in.append(np.array(given))
        self.came_out.append(really() if self._fresh else next(self._before))
        return self.came_out[-1]

    def fit(self, images: Any, y: Any, side: Any, **settings: Any) -> DPWGANImages:
        made = DPWGANImages(**SMALL, **settings, noise=SeededNoise(0), random_state=3)
        release = made._release

        def opened(*args: Any) -> Callable[[np.ndarray], np.ndarray]:
            really = release(*args)
            return lambda total: self._pass(total, lambda: really(total))

        made._release = opened  # type: ignore[method-assign]
        return made.fit(images, y, sensitive_features=side, budget=BUDGET)


WAYS: dict[str, dict[str, Any]] = {
    "flat": {},
    "flat, on the label": {"condition": "label"},
    "group": {"clip": "group", "clip_norm": 0.3},
    "group, on the label": {"clip": "group", "clip_norm": 0.3, "condition": "label"},
    "global-adapt": {"clip": "global-adapt"},
    "global-adapt, on the label": {"clip": "global-adapt", "condition": "label"},
    "reweighted": {"sampler": NOISY, "condition": "label"},
    "reweighted by public shares, group": {"sampler": PUBLIC, "clip": "group"},
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_one_picture_moves_its_batch_within_the_sensitivity_and_nothing_else_bit_for_bit(
    way: str,
) -> None:
    images, y, side = pictures(N)
    with pytest.MonkeyPatch.context() as patch:
        first = Door(patch)
        one = first.fit(images, y, side, **WAYS[way])
    batch = by_position(N, 6, np.random.default_rng(3)).teacher  # first thing drawn from the seed
    farthest = 0.0
    for record in (0, 101):
        other_images, other_y, other_side = images.copy(), y.copy(), side.copy()
        other_images[record] = 255 - images[record]
        other_y[record] = "lies" if y[record] == "stands" else "stands"
        other_side[record] = "left" if side[record] == "right" else "right"
        with pytest.MonkeyPatch.context() as patch:
            again = Door(patch, replay=first)
            other = again.fit(other_images, other_y, other_side, **WAYS[way])
        steps = 5 * 3
        counts = len(first.went_in) - steps  # counts, and shares or sizes where these are released
        apart = [
            float(np.linalg.norm(a - b)) for a, b in zip(first.went_in, again.went_in, strict=True)
        ][counts:]
        asked = [turn % 6 == batch[record] for turn in range(steps)]
        assert [distance > 0 for distance in apart] == asked
        limit = one._sums.l2_sensitivity("replace one")
        assert max(apart) <= limit
        farthest = max(farthest, max(apart) / limit)
        # All else is a function of what left.
        for name, weight in one.weights_.items():
            assert weight.tobytes() == other.weights_[name].tobytes()
        assert one._clipping.bounds.tobytes() == other._clipping.bounds.tobytes()
    assert farthest > 0.2


@pytest.mark.parametrize(("clip", "cells"), [("group", 2), ("global-adapt", 1)])
def test_marks_count_the_long_gradients_of_each_group_in_the_batch(clip: str, cells: int) -> None:
    # A second derivation: the gradients of the first batch, from the critic as it started.
    images, y, side = pictures(N)
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    vectors = Clipping.vectors

    def spied(clipping: Clipping, gradients: Any, groups: Any, weights: Any) -> Any:
        norms = np.linalg.norm(gradients, axis=1)
        limit = clipping.first if clipping.clip == "group" else clipping.bounds.max()
        seen.append((np.bincount(groups[norms > limit], minlength=cells), groups))
        return vectors(clipping, gradients, groups, weights)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Clipping, "vectors", spied)
        door = Door(patch)
        made = door.fit(images, y, side, clip=clip, clip_norm=0.4)
    batch = by_position(N, 6, np.random.default_rng(3)).teacher
    for turn, (long, groups) in enumerate(seen):
        marks = door.went_in[1 + turn][-cells:] * made._sums.unit / SHARE
        assert marks == pytest.approx(long, abs=1e-3)
        own = (side == "right").astype(int) * (cells > 1)
        assert np.array_equal(groups, own[batch == turn % 6])
    assert 0 < sum(int(long.sum()) for long, _ in seen) < 3 * N


def test_bounds_move_with_what_left_and_flat_ones_do_not() -> None:
    assert fitted()._clipping.bounds.tolist() == [1.0]
    assert len(fitted(clip="group")._clipping.bounds) == 2
    assert fitted(clip="group")._clipping.bounds.tolist() != [1.0, 1.0]
    (bound,) = fitted(clip="global-adapt")._clipping.bounds
    assert bound != 1.0


@pytest.mark.parametrize(
    "network", [DenseCritic(hidden=(5, 3)), ConvCritic(shape=(1, 4, 6), filters=(3, 2))]
)
def test_the_gradient_of_each_picture_is_that_of_its_score_alone(network: Any) -> None:
    # A second derivation: autograd on one picture at a time.
    import torch

    critic = SingleCritic(network, (1, 4, 6), 4, 1e-3, np.random.default_rng(0))
    x, heads = torch.rand(7, 24), np.array([0, 1, 2, 3, 0, 1, 2])
    found = critic.gradients(x, heads)
    assert found.shape == (7, critic.n_weights)
    for i in range(7):
        w = [t.detach().clone().requires_grad_() for t in critic._weights]
        h = x[i : i + 1]
        for j in range(0, 4, 2):
            if w[j].ndim == 4:
                h = torch.nn.functional.conv2d(
                    h.view(1, -1, 4, 6) if j == 0 else h, w[j], w[j + 1][0], 2, 2
                )
            else:
                h = h @ w[j] + w[j + 1][0]
            h = torch.nn.functional.leaky_relu(h, 0.2)
        scores = (h.flatten(1) @ w[4] + w[5][0])[0]
        if scores.numel() == 5:  # class projection
            scores = scores[0] + scores[1:]
        scores[heads[i]].backward()
        alone = np.concatenate([t.grad.numpy().ravel() for t in w])
        np.testing.assert_allclose(found[i], alone, atol=1e-6)


def test_the_critic_climbs_and_its_weights_are_cut() -> None:
    critic = SingleCritic(DenseCritic(hidden=()), (1, 1, 2), 2, 1.0, np.random.default_rng(0))
    before = [w.numpy().copy() for w in critic._weights]
    critic.climb(np.array([0.0, 0.0, 0.0, 0.0, 1.0, -1.0]))
    for weight in critic._weights:
        assert float(weight.abs().max()) <= np.float32(BOUND)
    assert np.array_equal(critic._weights[0].numpy(), before[0])
    assert critic._weights[1].tolist() == [[np.float32(BOUND), -np.float32(BOUND)]]


def test_rare_groups_weigh_more_by_shares_that_are_paid_for() -> None:
    purposes = [e.purpose for e in fitted(sampler=NOISY).ledger_.entries]
    assert "group shares for the sampler" in purposes
    assert CELLS not in [
        e.purpose for e in fitted(sampler=NOISY, clip="group", condition="label").ledger_.entries
    ]  # the shares say it
    assert "the group shares of the sampler" in fitted(sampler=PUBLIC).guarantee_.public
    with pytest.raises(ValueError, match=r"scope='partition' would let one picture move"):
        fitted(sampler=GroupBalancedSampler())


def test_a_real_picture_weighs_by_the_share_of_its_label_and_group() -> None:
    images, y, side = pictures(N)
    seen: list[Any] = []
    vectors = Clipping.vectors

    def spied(clipping: Clipping, gradients: Any, groups: Any, weights: Any) -> Any:
        seen.append(weights)
        return vectors(clipping, gradients, groups, weights)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Clipping, "vectors", spied)
        Door(patch).fit(images, y, side, sampler=PUBLIC, condition="label")
    first = by_position(N, 6, np.random.default_rng(3)).teacher == 0
    assert seen[0] == pytest.approx(np.where(side[first] == "right", 1.0, 0.25))


@pytest.mark.parametrize("condition", ["label", "label+group"])
def test_drawn_pictures_pull_no_harder_than_clipped_ones_can(condition: str) -> None:
    import torch

    class White:
        def draw(self, heads: np.ndarray) -> Any:
            return torch.ones(len(heads), 1, 8, 8)

    made = fitted(clip="global-adapt", clip_norm=0.01, condition=condition)
    n_heads = made.conditions_.n
    critic = SingleCritic(
        DenseCritic(hidden=(4,)), (1, 8, 8), n_heads, 1e-3, np.random.default_rng(0)
    )
    each = critic.gradients(torch.ones(n_heads, 64), np.arange(n_heads))
    assert np.linalg.norm(each, axis=1).min() > 1.0
    distribution = made._known_counts() / made._known_counts().sum()
    cell = np.arange(n_heads)
    counted = CellWeights(shares=distribution, conditions=cell, bounds=0 * cell, even=False)
    down = made._of_drawn(critic, White(), counted, np.random.default_rng(0))
    assert 0 < np.linalg.norm(down) <= made._clipping.bounds.max()


def test_a_file_keeps_how_gradients_were_clipped(tmp_path: Any) -> None:
    made = fitted(clip="global-adapt", clip_norm=2.0)
    again = load(made.save(tmp_path / "generator"))
    assert again.settings() == made.settings()
    assert (again.clip, again.clip_norm, again.n_batches) == ("global-adapt", 2.0, 6)
    # No balance: at this budget a combination may not be told from an empty one.
    drawn = (m.sample(8, balance=(), random_state=0).images for m in (made, again))
    assert np.array_equal(*drawn)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_batches": 0}, ValueError, "n_batches must be at least 1"),
        ({"clip": "grup"}, ValueError, "Did you mean 'group'"),
        ({"clip": "group"}, ValueError, "bounds by group, and there is one group. Pass sensitive"),
        ({"clip_norm": 0.0}, ValueError, "clip_norm must be finite and > 0"),
        ({"hidden": (10**9,)}, MemoryError, "Lower hidden, or change n_batches"),
    ],
)
def test_what_cannot_run_is_refused(settings: dict[str, Any], error: Any, message: str) -> None:
    images, y, _ = pictures(60)
    with pytest.raises(error, match=message):
        DPWGANImages(**{**SMALL, **settings}).fit(images, y, budget=BUDGET)

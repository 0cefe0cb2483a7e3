"""The denoiser of pictures: its gradients against a loop, their bound, and what a record adds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.learners.nets.denoiser import Denoiser, NoisyAdam, PatchNetwork

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SHAPES = [(1, 8, 8), (3, 6, 5)]  # the sides of the second are no multiples of a patch


class Shrunk:
    """An expectation as simple as there is: of standard normal pixels."""

    level = (0.1, 1.0)

    def mean(self, noisy: Any, sigma: Any, heads: Any) -> Any:
        return noisy / (1.0 + sigma[:, None] ** 2)

    def spread(self, sigma: Any) -> Any:
        return (sigma[:, None] ** 2 / (1.0 + sigma[:, None] ** 2)).sqrt()


def denoiser(shape: tuple[int, int, int] = (1, 8, 8), n_draws: int = 1) -> Denoiser:
    network = PatchNetwork(shape=shape, n_heads=3, width=5, n_blocks=2)
    return Denoiser(network=network, known=Shrunk(), n_draws=n_draws)


def some(made: Denoiser, n: int, seed: int = 0) -> dict[str, Any]:
    """Records, and weights in the middle of a run."""
    rng = np.random.default_rng(seed)
    network = made.network
    return {
        "weights": network.start(rng) + 0.2 * rng.normal(size=network.n_weights),
        "pictures": rng.normal(size=(n, network.n_pixels)).astype(np.float32),
        "heads": rng.integers(0, 3, n),
        "keys": rng.integers(0, 2**63, n),
    }


def alone(made: Denoiser, record: dict[str, Any], step: int) -> np.ndarray:
    """The gradient of one record by ordinary autograd in its weights."""
    network, known = made.network, made.known
    flat = torch.tensor(record["weights"], dtype=torch.float32, requires_grad=True)
    layers, first = [], 0
    for rows, columns in network.shapes:
        layers.append(flat[first : first + rows * columns].view(rows, columns))
        first += rows * columns
    rng = np.random.default_rng([int(record["keys"][0]), step])
    loss = 0.0
    for drawn in rng.standard_normal((made.n_draws, network.n_pixels + 1)):
        sigma = torch.tensor([made.level * np.exp(made.spread * drawn[0])], dtype=torch.float32)
        clean = torch.as_tensor(record["pictures"])
        head = torch.as_tensor(record["heads"])
        noisy = clean + sigma * torch.as_tensor(drawn[1:], dtype=torch.float32)
        expected, size = known.mean(noisy, sigma, head), known.spread(sigma)
        added = made.denoise(layers, noisy, sigma, head) - expected
        loss = loss + (((added + expected - clean) / size) ** 2).mean() / made.n_draws
    (gradient,) = torch.autograd.grad(loss, flat)
    found: np.ndarray = gradient.numpy().astype(np.float64)
    return found


def of(records: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: a if name == "weights" else a[rows] for name, a in records.items()}


@pytest.mark.parametrize("n_draws", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("clip_norm", [0.05, 1e6])
def test_the_sum_is_that_of_a_loop_over_records_and_draws(
    shape: tuple[int, int, int], n_draws: int, clip_norm: float
) -> None:
    made = denoiser(shape, n_draws)
    records = some(made, 70)  # more than pass together
    found = made.clipped_sum(**records, step=4, clip_norm=clip_norm)
    wanted = np.zeros_like(found)
    for i in range(70):
        each = alone(made, of(records, [i]), 4)
        wanted += each * min(1.0, clip_norm / np.linalg.norm(each))
    assert found == pytest.approx(wanted, abs=2e-4 * float(np.abs(wanted).max()))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(0, 66),
    n_draws=st.integers(1, 3),
    clip_norm=st.floats(1e-3, 1e3),
    size=st.sampled_from([0.0, 1.0, 1e4, 1e30, np.inf, np.nan]),
    seed=st.integers(0, 2**20),
)
def test_a_record_moves_the_sum_by_the_clip_norm_at_most(
    n: int, n_draws: int, clip_norm: float, size: float, seed: int
) -> None:
    made = denoiser(n_draws=n_draws)
    records = some(made, n + 1, seed)
    at = seed % (n + 1)
    with np.errstate(all="ignore"):
        records["pictures"][at] *= np.float32(size)
    rest = np.delete(np.arange(n + 1), at)
    given_ = {"step": seed % 7, "clip_norm": clip_norm}
    whole = made.clipped_sum(**records, **given_)
    without = made.clipped_sum(**of(records, rest), **given_)
    assert np.isfinite(whole).all()
    assert np.linalg.norm(whole - without) <= clip_norm


def test_long_gradients_have_the_clip_norm_and_short_ones_stay_as_they_are() -> None:
    made = denoiser()
    records = some(made, 1)
    raw = np.linalg.norm(made.clipped_sum(**records, step=0, clip_norm=1e9))
    cut = np.linalg.norm(made.clipped_sum(**records, step=0, clip_norm=raw / 2))
    assert raw == pytest.approx(np.linalg.norm(alone(made, records, 0)), rel=1e-4)
    assert cut == pytest.approx(raw / 2, rel=2e-4)


def test_draws_follow_from_a_records_key_and_the_step_alone() -> None:
    made = denoiser()
    records = some(made, 10)
    own = made.clipped_sum(**of(records, [7]), step=1, clip_norm=1.0)
    for rows in ([7, 2], [9, 3, 7]):
        others = [row for row in rows if row != 7]
        whole = made.clipped_sum(**of(records, rows), step=1, clip_norm=1.0)
        less = made.clipped_sum(**of(records, others), step=1, clip_norm=1.0)
        assert whole - less == pytest.approx(own, abs=1e-6)
    assert not np.allclose(own, made.clipped_sum(**of(records, [7]), step=2, clip_norm=1.0))
    records["keys"] = records["keys"] + 1
    assert not np.allclose(own, made.clipped_sum(**of(records, [7]), step=1, clip_norm=1.0))


@pytest.mark.parametrize("shape", SHAPES)
def test_patches_come_back_as_the_picture(shape: tuple[int, int, int]) -> None:
    network = PatchNetwork(shape=shape, n_heads=2)
    flat = torch.arange(2.0 * network.n_pixels).view(2, -1)
    assert torch.equal(network._joined(network._cut(flat)), flat)


def test_a_patch_is_changed_by_pixels_in_reach_of_the_blocks_and_no_others() -> None:
    # One block reads the patches around: a pixel of the first patch moves the first four of nine.
    network = PatchNetwork(shape=(1, 12, 12), n_heads=1, width=4, n_blocks=1)
    layers = network.layers(np.random.default_rng(0).normal(size=network.n_weights))
    heads, sigma = torch.zeros(2, dtype=torch.int64), torch.ones(2)
    noisy = torch.zeros(2, 144)
    noisy[1, 0] = 1.0
    out, _ = network.forward(layers, network.features(noisy, torch.zeros(2, 144), sigma, heads))
    moved = ((out[0] - out[1]).abs() > 1e-5).view(3, 4, 3, 4).any(dim=3).any(dim=1)
    assert moved.tolist() == [[True, True, False], [True, True, False], [False, False, False]]


def test_nothing_is_added_before_the_first_step() -> None:
    made = denoiser()
    layers = made.network.layers(made.network.start(np.random.default_rng(0)))
    noisy = torch.as_tensor(np.random.default_rng(1).normal(size=(2, 64)), dtype=torch.float32)
    sigma, head = torch.tensor([0.5, 2.0]), torch.tensor([0, 2])
    found = made.denoise(layers, noisy, sigma, head)
    assert torch.equal(found, made.known.mean(noisy, sigma, head))


@pytest.mark.slow
def test_training_without_noise_learns_what_the_known_expectation_misses() -> None:
    # All pixels of a picture are alike: less is unknown than if each were drawn by itself.
    made, rng = denoiser(n_draws=4), np.random.default_rng(0)
    pictures = np.repeat(rng.choice([-1.0, 1.0], (200, 1)), 64, axis=1).astype(np.float32)
    heads, keys = np.zeros(200, dtype=np.int64), rng.integers(0, 2**63, 200)
    adam = NoisyAdam(weights=made.network.start(rng), rate=5e-2, n_steps=150)
    for step in range(150):
        total = made.clipped_sum(adam.weights, pictures, heads, keys, step=step, clip_norm=1e9)
        adam.follow(total / 200)
    clean, sigma = torch.as_tensor(pictures), torch.full((200,), 0.5)
    noisy = clean + 0.5 * torch.as_tensor(rng.normal(size=clean.shape), dtype=torch.float32)
    of_none = torch.as_tensor(heads)
    known = ((made.known.mean(noisy, sigma, of_none) - clean) ** 2).mean()
    layers = made.network.layers(adam.mean)
    learnt = ((made.denoise(layers, noisy, sigma, of_none) - clean) ** 2).mean()
    assert learnt < 0.85 * known


def test_adam_takes_the_steps_of_the_paper() -> None:
    # Against torch's own, at the rates that the steps have.
    rng = np.random.default_rng(0)
    start = rng.normal(size=4)
    ours = NoisyAdam(weights=start.copy(), rate=0.1, n_steps=30)
    theirs = torch.tensor(start, requires_grad=True)
    adam = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.99), eps=1e-12)
    mean = start.copy()
    for t in range(30):
        gradient = rng.normal(size=4)
        ours.follow(gradient)
        adam.param_groups[0]["lr"] = 0.1 * min(1.0, (t + 1) / 20) * (1.0 - 0.9 * t / 30)
        theirs.grad = torch.tensor(gradient)
        adam.step()
        mean += 9.0 / (t + 10.0) * (theirs.detach().numpy() - mean)  # of the first steps
    assert ours.weights == pytest.approx(theirs.detach().numpy())
    assert ours.mean == pytest.approx(mean)


@pytest.mark.parametrize("name", ["n_heads", "width", "n_blocks", "patch"])
def test_sizes_are_whole_and_at_least_1(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        PatchNetwork(**({"shape": (1, 4, 4), "n_heads": 2} | {name: 0}))

"""Gradients of single records of PyTorch networks: against a loop, in their bounds, alone."""

from typing import Any

import numpy as np
import pytest

from evenhand.baselines.fermi_descent import FERMI, FERMIState
from evenhand.learners.dpsgd import DPSGD, GroupPull, State
from evenhand.learners.nets.architectures import Convolutional, Dense, built
from evenhand.learners.nets.fairpate_networks import ColorMNISTNetwork
from evenhand.learners.nets.resnet import SmallResNet

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

CLIP = 0.7
PULL = GroupPull(margin=0.02, strength=3.0, share=0.3)
SHARES = np.array([[0.5, 0.3, 0.2]])
ARCHITECTURES = {
    "small": (Convolutional(widths=(3, 4)), (2, 6, 6)),
    "groups": (SmallResNet(widths=(4, 8), groups=2), (3, 8, 8)),
    "published": (ColorMNISTNetwork(), (1, 16, 16)),
    "rows": (Dense(hidden=(5,)), (6,)),
}


def words(n: int) -> Any:
    return WORDS.integers(2**63, size=n)


WORDS = np.random.default_rng(5)


def pictures(shape: tuple[int, ...], n: int = 20, n_classes: int = 3, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if len(shape) > 1:
        X = rng.integers(0, 256, (n, *shape), dtype=np.uint8)
    else:
        X = rng.normal(size=(n, *shape))
    return X, rng.integers(0, n_classes, n), rng.integers(0, 3, n)


def state_of(
    kind: str, architecture: Any, shape: tuple[int, ...], n_classes: int = 3, clip: float = CLIP
) -> Any:
    """A state in the middle of a run: no multiplier or share is special."""
    rng = np.random.default_rng(1)
    settings: dict[str, Any] = {"architecture": architecture, "clip_norm": clip}
    if kind == "information":
        fermi = FERMI(strength=2.0, share=0.4, **settings)
        state: Any = FERMIState.start(fermi, fermi.network(shape, n_classes, rng, words), SHARES)
        state.W = state.W + rng.normal(size=state.W.shape)
        return state
    learner = DPSGD(pull=PULL if kind == "pull" else None, **settings)
    state = State.start(learner, learner.network(shape, n_classes, rng, words), 3)
    if kind == "pull":
        state.W, state.shares = rng.normal(size=state.W.shape), np.array([0.5, 0.3, 0.2])
    return state


def pushed(state: Any, kind: str, g: int) -> np.ndarray:
    """The numbers v of a record, by their formulas."""
    if kind == "pull":
        return state.W[g] - sum(
            share * row for share, row in zip(state.shares, state.W, strict=True)
        )
    if kind == "information":
        W = state.W[0]
        return state.learner.strength * (2 * W[g] / np.sqrt(SHARES[0, g]) - (W**2).sum(axis=0))
    return np.zeros(3)


def one_by_one(state: Any, kind: str, X: Any, y: Any, g: Any, architecture: Any) -> Any:
    """Gradients (n, n_weights) by ordinary autograd of each record alone, in doubles."""
    module = built(architecture, X.shape[1:], state.network.n_classes).double()
    flat, at = torch.as_tensor(state.weights), 0
    for value in module.parameters():
        value.data = flat[at : at + value.numel()].view(value.shape).clone()
        at += value.numel()
    out = []
    for i in range(len(X)):
        row = torch.as_tensor(X[i : i + 1]).double() / (255.0 if X.dtype == np.uint8 else 1.0)
        p = module(row).softmax(dim=1)[0]
        loss = -p[y[i]].log() + p @ torch.as_tensor(pushed(state, kind, g[i]))
        module.zero_grad()
        loss.backward()
        out.append(np.concatenate([v.grad.numpy().ravel() for v in module.parameters()]))
    return np.array(out)


@pytest.mark.parametrize("kind", ["plain", "pull", "information"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_sum_is_that_of_records_clipped_one_by_one(name: str, kind: str) -> None:
    architecture, shape = ARCHITECTURES[name]
    X, y, g = pictures(shape)
    free = state_of(kind, architecture, shape, clip=1e9)
    loop = one_by_one(free, kind, X, y, g, architecture)
    norms = np.linalg.norm(loop, axis=1)
    share = {"plain": 0.0, "pull": PULL.share, "information": 0.4}[kind]
    room = float(np.median(norms))  # both kinds of record occur, clipped and not
    state = state_of(kind, architecture, shape, clip=room / np.sqrt(1 - share**2))
    state.network = free.network
    wanted = (loop * np.minimum(1.0, room / norms)[:, None]).sum(axis=0)
    found = state.clipped_sum(X, y, None if kind == "plain" else g)[: loop.shape[1]]
    np.testing.assert_allclose(found, wanted, atol=1e-4 * room)
    assert norms.min() < 0.999 * room < room < norms.max()
    # Chunks of three records, the last of them filled up, give the same.
    object.__setattr__(state.network, "n_together", 3)
    np.testing.assert_allclose(
        state.clipped_sum(X, y, None if kind == "plain" else g)[: loop.shape[1]],
        found,
        atol=1e-5 * room,
    )


@pytest.mark.parametrize("kind", ["plain", "pull", "information"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_one_record_moves_the_sum_by_at_most_the_clip_norm(name: str, kind: str) -> None:
    architecture, shape = ARCHITECTURES[name]
    state = state_of(kind, architecture, shape)
    X, y, g = pictures(shape, n=30)
    X = X.astype(np.float32)
    for i, wild in enumerate([0.0, 1.0, -1e3, 1e10, 1e25, 3e38]):
        more = np.concatenate([X[:i], np.full((1, *shape), wild, np.float32), X[i:]])
        at = np.insert(y, i, i % 3), np.insert(g, i, i % 2)
        groups = (None, None) if kind == "plain" else (at[1], g)
        moved = state.clipped_sum(more, at[0], groups[0]) - state.clipped_sum(X, y, groups[1])
        assert np.isfinite(moved).all()
        assert np.linalg.norm(moved) <= CLIP * (1 + 1e-9)
    # Some record is long, and moves all that its gradient may.
    room = {"plain": 1.0, "pull": np.sqrt(1 - PULL.share**2), "information": np.sqrt(1 - 0.4**2)}
    alone = [
        state.clipped_sum(X[i : i + 1], y[i : i + 1], None if kind == "plain" else g[i : i + 1])
        for i in range(10)
    ]
    longest = max(np.linalg.norm(part[: len(state.weights)]) for part in alone)
    assert longest == pytest.approx(CLIP * room[kind], rel=1e-4)


def test_a_record_of_no_finite_gradient_adds_nothing_to_the_weights() -> None:
    state = state_of("plain", *ARCHITECTURES["small"])
    X = np.full((1, 2, 6, 6), np.inf, np.float32)
    assert not state.clipped_sum(X, np.array([1]), None).any()
    assert not state.clipped_sum(X[:0], np.zeros(0, np.int64), None).any()


def with_dropout() -> Any:
    nn = torch.nn
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return nn.Sequential(
            *(nn.Conv2d(2, 6, 3), nn.Dropout2d(0.5), nn.ReLU()),
            *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(96, 3)),
        )


def test_dropout_draws_for_each_record_by_itself_and_is_gone_afterwards() -> None:
    module = with_dropout()
    network = DPSGD(architecture=module).network((2, 6, 6), 3, np.random.default_rng(0), words)
    row = np.random.default_rng(0).random((1, 2, 6, 6), dtype=np.float32)
    X, y = np.repeat(row, 2000, axis=0), np.zeros(2000, dtype=np.int64)
    _, p = network.clipped_sum(network.start, X, y, None, 1.0)
    assert len(np.unique(p[:, 0])) > 1000  # equal pictures, other draws
    # What a layer keeps has the mean of what went in: by 2,000 draws, within 6 standard errors.
    given = network._drawn(2000, 2000)  # type: ignore[attr-defined]
    for kept, (shape, keep) in zip(given.values(), [((6, 1, 1), 0.5), ((96,), 0.75)], strict=True):
        assert kept.shape == (2000, *shape)
        mean, error = float(kept.mean()), np.sqrt((1 / keep - 1) / kept.numel())
        assert abs(mean - 1.0) < 6 * error
    # In the released network there is none, and torch's own layers did nothing.
    trained = network.trained(network.start)
    with torch.no_grad():
        same = module.eval()(torch.as_tensor(row))
        np.testing.assert_allclose(trained(torch.as_tensor(row)), same, atol=1e-6)
    with pytest.raises(ValueError, match="draws must be secret: pass words="):
        DPSGD(architecture=module).network((2, 6, 6), 3, np.random.default_rng(0))


class Centred(torch.nn.Module):  # type: ignore[misc]
    """Takes the mean of the batch away: what one record gets depends on the others."""

    def forward(self, x: Any) -> Any:
        return x - x.mean(dim=0)


class Counting(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.seen += len(x)
        return x


class Drawing(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5, training=True)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (lambda nn: [nn.BatchNorm2d(2)], r"1 \(BatchNorm2d\)\. Replace each by torch\.nn\.GroupN"),
        (lambda nn: [nn.BatchNorm2d(2, track_running_stats=False)], "BatchNorm2d"),
        (lambda nn: [nn.InstanceNorm2d(2, track_running_stats=True)], "InstanceNorm2d"),
        (lambda nn: [Centred()], "other scores beside other records than alone"),
        (lambda nn: [Drawing()], "other scores beside other records than alone"),
        (lambda nn: [Counting()], "changes its buffer 1.seen"),
        (lambda nn: [nn.AlphaDropout(0.5)], r"knows no AlphaDropout\(p=0.5"),
        (lambda nn: [nn.Flatten(), nn.Linear(72, 2)], "one per class"),
    ],
)
def test_a_network_that_lets_records_meet_is_refused(layers: Any, message: str) -> None:
    nn = torch.nn
    extra = layers(nn)
    rest = [] if len(extra) > 1 else [nn.Flatten(), nn.Linear(72, 3)]
    module = nn.Sequential(nn.Identity(), *extra, *rest)
    with pytest.raises(ValueError, match=message):
        DPSGD(architecture=module).network((2, 6, 6), 3, np.random.default_rng(0), words)


def test_instance_and_layer_norms_read_one_record_and_are_taken() -> None:
    nn = torch.nn
    module = nn.Sequential(
        nn.InstanceNorm2d(2, affine=True), nn.LayerNorm(6), nn.Flatten(), nn.Linear(72, 3)
    )
    network = DPSGD(architecture=module).network((2, 6, 6), 3, np.random.default_rng(0))
    assert len(network.start) == 4 + 12 + 72 * 3 + 3


def test_weights_that_need_no_gradient_stay_as_they_are() -> None:
    nn = torch.nn
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(48, 3))
    module[0].requires_grad_(False)
    learner = DPSGD(architecture=module)
    network = learner.network((2, 6, 6), 3, np.random.default_rng(0))
    assert learner.n_released(network) == 48 * 3 + 3
    trained = network.trained(np.zeros(147))
    assert torch.equal(trained[0].weight, module[0].weight)
    assert not trained[2].weight.any()
    assert module[2].weight.any()  # the user's own module is as it was


def test_pictures_without_a_network_for_them_are_refused_with_the_ways_out() -> None:
    with pytest.raises(ValueError, match=r"architecture=SmallResNet\(\).*features"):
        DPSGD(hidden=(4,)).network((3, 8, 8), 2, np.random.default_rng(0))

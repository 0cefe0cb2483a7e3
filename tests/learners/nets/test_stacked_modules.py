"""Networks of any architecture as one stack: each is the one that is trained alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from evenhand import DemographicParity
from evenhand.learners.nets.architectures import Convolutional, Dense, SmallResNet
from evenhand.teachers import LogisticTeachers, by_position
from evenhand.teachers.stacked import NetworkTeachers

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from evenhand.learners.nets.module import ModuleLearner, probabilities_of  # noqa: E402
from evenhand.learners.nets.regularizer import Regularizer  # noqa: E402
from evenhand.learners.nets.stacked_modules import ModuleStack, StackedModules  # noqa: E402

SHAPE = (2, 8, 8)


def pictures(n: int = 240, seed: int = 0) -> tuple[Any, Any]:
    """Bytes; a bright upper or lower half is the class, of two."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.integers(0, 120, size=(n, *SHAPE))
    for i, k in enumerate(y):
        X[i, :, 4 * k : 4 * k + 4] += 100
    return X.astype(np.uint8), y


def parts(sizes: list[int]) -> list[Any]:
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


def same(one: ModuleStack, t: int, other: ModuleStack, u: int) -> bool:
    return all(torch.equal(value[t], other.state[name][u]) for name, value in one.state.items())


def with_batch_norm(shape: tuple[int, ...], n_classes: int) -> Any:
    nn = torch.nn
    return nn.Sequential(
        *(nn.Conv2d(shape[0], 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(4 * (shape[1] - 2) * (shape[2] - 2), n_classes)),
    )


def with_dropout(shape: tuple[int, ...], n_classes: int) -> Any:
    return torch.nn.Sequential(torch.nn.Dropout(0.3), *Convolutional().build(shape, n_classes))


KINDS = {
    "convolutional": Convolutional(widths=(4, 6)),
    "residual": SmallResNet(widths=(4, 8), groups=2),
    "dense": Dense(hidden=(9,)),
    "batch normalisation": with_batch_norm,
    "dropout": with_dropout,
}


def alone(learner: StackedModules, X: Any, y: Any, own: Any, stream: Any) -> Any:
    """Train one network as one usually does; the draws are those of the stack."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream.integers(2**31)))
        made = learner.architecture
        network = (made.build if hasattr(made, "build") else made)(X.shape[1:], 2).train()
    adam = torch.optim.Adam(network.parameters(), lr=learner.learning_rate)
    steps = -(-len(own) // learner.batch_size)
    order = np.tile(np.arange(len(own)), (learner.epochs, 1))
    if steps > 1:
        stream.permuted(order, axis=1, out=order)
    for epoch in range(learner.epochs):
        for first, last in pairwise(np.arange(steps + 1) * len(own) // steps):
            at = own[order[epoch, first:last]]
            adam.zero_grad()
            scores = network(torch.as_tensor(X[at]).float() / 255)
            torch.nn.functional.cross_entropy(scores, torch.as_tensor(y[at])).backward()
            adam.step()
    return network.eval()


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"dropout", "batch normalisation"}))
def test_each_network_is_the_one_that_a_plain_loop_trains(kind: str) -> None:
    X, y = pictures()
    rows = parts([31, 40, 17, 64, 33])
    learner = StackedModules(architecture=KINDS[kind], epochs=3, batch_size=16, learning_rate=0.003)
    stack = learner.fit(X, y, rows, n_classes=2, rng=np.random.default_rng(5))
    for t, stream in enumerate(np.random.default_rng(5).spawn(5)):
        network = alone(learner, X, y, rows[t], stream)
        for name, value in network.state_dict().items():
            # Adam's first steps divide gradients by themselves: rounding grows where they are 0.
            assert torch.allclose(stack.state[name][t], value, atol=1e-3), name
        both = [one(torch.as_tensor(X).float() / 255) for one in (network, stack.network(t))]
        assert torch.allclose(*both, atol=5e-3)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_network_is_the_same_bits_whatever_the_other_partitions_are(kind: str) -> None:
    # Other rows, other numbers of rows, and other numbers of models of one shape beside it.
    X, y = pictures()
    learner = StackedModules(architecture=KINDS[kind], epochs=2, batch_size=16)
    own = np.arange(40)
    before = learner.fit(
        X, y, [own, *parts([30] * 8)[2:], own[:0]], n_classes=2, rng=np.random.default_rng(0)
    )
    X_other, y_other = pictures(seed=1)
    X_other[own], y_other[own] = X[own], y[own]
    for sizes in ([0] * 7, [40] + [0] * 6, [30, 50, 20, 40, 1, 5, 9]):
        others = [40 + np.arange(n) for n in sizes]
        after = learner.fit(
            X_other, y_other, [own, *others], n_classes=2, rng=np.random.default_rng(0)
        )
        assert same(before, 0, after, 0)
        assert not same(before, 1, after, 1)


def test_what_a_network_draws_comes_from_its_own_stream() -> None:
    X, y = pictures(90)
    learner = StackedModules(architecture=with_dropout, epochs=2, batch_size=16)
    stacks = []
    for elsewhere in (1, 2):  # whatever else has been drawn in the process
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(elsewhere)
            rng = np.random.default_rng(0)
            stacks.append(learner.fit(X, y, parts([40, 50]), n_classes=2, rng=rng))
    assert all(same(stacks[0], t, stacks[1], t) for t in range(2))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_teachers_of_pictures_learn_and_torchs_generator_stays_as_it_was(kind: str) -> None:
    X, y = pictures(300)
    state = torch.random.get_rng_state()
    teachers = NetworkTeachers(KINDS[kind], epochs=15, batch_size=16, learning_rate=0.01)
    deal = by_position(300, 2, 0)
    votes = teachers.fit(X, y, deal, 2, np.random.default_rng(0)).vote(X[:200])
    assert (votes == y[:200]).mean() > 0.8
    assert torch.equal(torch.random.get_rng_state(), state)
    if kind != "dense":
        return
    scaled = (X / 255).astype(np.float32)  # the same pixels as numbers
    again = teachers.fit(scaled, y, deal, 2, np.random.default_rng(0)).vote(scaled[:200])
    assert (again == votes).mean() > 0.95


def test_all_start_from_the_weights_of_a_module_and_it_stays_as_it_was() -> None:
    X, y = pictures()
    module = Convolutional(widths=(2, 2)).build(SHAPE, 2)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    learner = StackedModules(architecture=module, epochs=1, learning_rate=1e-9)
    stack = learner.fit(X, y, parts([60] * 4), n_classes=2, rng=np.random.default_rng(0))
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
        assert torch.allclose(stack.state[name], value.expand(4, *value.shape), atol=1e-6)


def test_a_class_that_a_partition_does_not_hold_is_never_answered_from_it() -> None:
    X, _ = pictures()
    y = np.arange(240) % 3
    rows = [np.flatnonzero(y < 2), np.flatnonzero(y == 2), np.arange(0), np.arange(240)]
    learner = StackedModules(architecture=Dense(hidden=()), epochs=1, learning_rate=1e-6)
    said: list[set[int]] = [set(), set(), set(), set()]
    for seed in range(20):
        votes = learner.fit(X, y, rows, n_classes=3, rng=np.random.default_rng(seed)).predict(X)
        for of_all, one in zip(said, votes, strict=True):
            of_all.update(one.tolist())
    assert said == [{0, 1}, {2}, {0}, {0, 1, 2}]


class Draws(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
    """Draws by a function and not by a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.nn.Linear(128, 2)

    def forward(self, x: Any) -> Any:
        return self.last(torch.nn.functional.dropout(x.flatten(1), 0.5))


def test_what_cannot_be_trained_is_refused_and_says_why() -> None:
    X, y = pictures()
    fit = {"n_classes": 2, "rng": np.random.default_rng(0)}
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module or an architecture"):
        StackedModules(architecture="resnet")
    with pytest.raises(ValueError, match="draws by a function"):
        StackedModules(architecture=Draws(), epochs=1).fit(X, y, parts([120, 120]), **fit)
    with pytest.raises(ValueError, match="LogisticTeachers reads tables"):
        LogisticTeachers().fit(X, y, by_position(240, 4, 0), 2, np.random.default_rng(0))
    network = NetworkTeachers(Convolutional(widths=(2, 2)), epochs=1)
    teachers = network.fit(X, y, by_position(240, 4, 0), 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"rows of shape \(2, 8, 8\).*got \(2, 8, 7\)"):
        teachers.vote(X[..., :7])
    with pytest.raises(ValueError, match=r"uint8 or float32, got float64 of shape"):
        teachers.vote(X / 255)
    holed = (X / 255).astype(np.float32)
    holed[3, 0, 2, 2] = np.nan
    with pytest.raises(ValueError, match="must be finite, and has other pixels in row 4"):
        teachers.vote(holed)
    with pytest.raises(ValueError, match="resize pictures to one size"):
        teachers.vote([X[0], X[1, :, :7]])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_networks_are_trained_on_a_cuda_device_and_answer_on_the_processor() -> None:
    X, y = pictures(600)
    teachers = NetworkTeachers(Convolutional(), epochs=25, learning_rate=0.01, device="cuda")
    votes = teachers.fit(X, y, by_position(600, 5, 0), 2, np.random.default_rng(0)).vote(X)
    assert (votes == y).mean() > 0.8


@pytest.mark.slow
def test_a_constraint_is_that_of_one_network_trained_alone() -> None:
    # From one start, in whole passes: nothing is drawn, and the only difference is the stack.
    X, y = pictures(96)
    z = np.where(np.random.default_rng(3).random(96) < 0.8, y, 1 - y)  # groups lean on the class
    rows, notion = parts([40, 24, 32]), DemographicParity(margin=0.02, reference="overall")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.default_rng(4).integers(2**31)))
        network = Convolutional(widths=(4, 6)).build(SHAPE, 2)
    how: dict[str, Any] = {"epochs": 40, "batch_size": 64, "learning_rate": 0.01}
    held = Regularizer(function=notion, alpha=notion.margin, step=3.0)
    stack, free = (
        StackedModules(architecture=network, regularizer=regularizer, **how).fit(
            X, y, rows, n_classes=2, rng=np.random.default_rng(0), groups=z, n_groups=2
        )
        for regularizer in (held, None)
    )
    for t, own in enumerate(rows):
        weights = np.eye(2)[z[own]]
        learner = ModuleLearner(
            module=network, weight_decay=0.0, regularizer=replace(held, weights=weights), **how
        )
        single = learner.fit(X[own], np.eye(2)[y[own]], rng=np.random.default_rng(0))
        wanted, found = probabilities_of(single, X), probabilities_of(stack.network(t), X)
        np.testing.assert_allclose(found, wanted, atol=1e-3)
        without = probabilities_of(free.network(t), X)
        assert np.abs(found - without).max() > 0.05  # the constraint does something


def test_networks_that_compare_groups_want_them_and_start_anew() -> None:
    X, y = pictures(40)
    held = Regularizer(function=DemographicParity(margin=0.1, reference="overall"), alpha=0.1)
    learner = StackedModules(architecture=Dense(), regularizer=held, epochs=1)
    with pytest.raises(ValueError, match="groups= is missing"):
        learner.fit(X, y, parts([40]), n_classes=2, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="for one network"):
        StackedModules(architecture=Dense(), regularizer=Regularizer(start=Dense().build((3,), 2)))

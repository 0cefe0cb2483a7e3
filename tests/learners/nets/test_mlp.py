"""The stacked network trains each model as it would train alone."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from evenhand.typing import FloatArray, IntArray

torch = pytest.importorskip("torch", reason="needs the extra torch")

import evenhand.learners.nets.mlp as mlp  # noqa: E402  # after the skip
from evenhand.learners.nets.batches import Deal  # noqa: E402
from evenhand.learners.nets.mlp import StackedMLP  # noqa: E402
from evenhand.learners.nets.stack import StackedNetwork  # noqa: E402

pytestmark = pytest.mark.torch


def table(n: int = 400, d: int = 6, n_classes: int = 3) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, :n_classes] + 0.3 * rng.normal(size=(n, n_classes))).argmax(axis=1)


def parts(n: int, sizes: list[int]) -> list[IntArray]:
    order = np.random.default_rng(1).permutation(n)
    return np.split(order[: sum(sizes)], np.cumsum(sizes)[:-1])


def flat(stack: mlp.MLPStack, t: int) -> FloatArray:
    """All parameters of one model."""
    return np.concatenate([view[t].numpy().ravel() for layer in stack.layers for view in layer])


def test_the_gradient_written_by_hand_is_the_one_of_autograd() -> None:
    streams = np.random.default_rng(0).spawn(4)
    with torch.no_grad():
        model = StackedNetwork(streams, (6, 5, 4, 3))
        model.flat += 0.1 * torch.randn(model.flat.shape, generator=torch.manual_seed(0))
    x = torch.randn(4, 8, 6)
    target = torch.eye(3)[torch.randint(3, (4, 8))]
    n_valid = [8, 5, 1, 7]
    share = torch.zeros(4, 8, 1)
    for i, n in enumerate(n_valid):
        share[i, :n] = 1 / n

    views = [tuple(v.clone().requires_grad_() for v in layer) for layer in model.layers]
    loss = torch.zeros(())
    for i, n in enumerate(n_valid):
        hidden = x[i, :n]
        for weight, bias in views[:-1]:
            hidden = torch.relu(hidden @ weight[i] + bias[i])
        score = hidden @ views[-1][0][i] + views[-1][1][i]
        loss = loss + torch.nn.functional.cross_entropy(score, target[i, :n])
    loss.backward()
    with torch.no_grad():
        model.backward(x, target, share)

    for own, view in zip(model.gradients, views, strict=True):
        for mine, theirs in zip(own, view, strict=True):
            assert torch.allclose(mine, theirs.grad, atol=1e-6)


def plain_training(
    learner: StackedMLP, X: FloatArray, y: IntArray, own: IntArray, stream: Any, n_classes: int
) -> Any:
    """One model by a loop over ``nn.Module``, with the draws that the stack makes."""
    sizes = (X.shape[1], *learner.hidden, n_classes)
    modules: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        layer = torch.nn.Linear(n_in, n_out)
        bound = (6 / n_in) ** 0.5
        drawn = stream.random((n_in, n_out), dtype=np.float32)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(bound * (2 * drawn - 1)).T)
            layer.bias.zero_()
        modules += [layer, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1])
    adam = torch.optim.Adam(network.parameters(), lr=learner.learning_rate)
    steps = -(-len(own) // learner.batch_size)
    shuffled = stream.permuted(np.tile(np.arange(len(own)), (learner.epochs, 1)), axis=1)
    for epoch in range(learner.epochs):
        edges = [step * len(own) // steps for step in range(steps + 1)]
        for first, last in pairwise(edges):
            batch = own[shuffled[epoch, first:last]]
            adam.zero_grad()
            score = network(torch.as_tensor(X[batch], dtype=torch.float32))
            torch.nn.functional.cross_entropy(score, torch.as_tensor(y[batch])).backward()
            adam.step()
    return network


def test_each_model_is_the_one_that_a_plain_loop_trains() -> None:
    # A second derivation: modules, autograd and one optimizer per model, over ragged partitions.
    X, y = table()
    rows = parts(400, [31, 40, 7, 64, 33])
    learner = StackedMLP(hidden=(12, 9), epochs=4, batch_size=16, learning_rate=0.01)
    stack = learner.fit(X, y, rows, n_classes=3, rng=np.random.default_rng(5))
    streams = np.random.default_rng(5).spawn(5)
    for t, own in enumerate(rows):
        network = plain_training(learner, X, y, own, streams[t], 3)
        linears = [module for module in network if isinstance(module, torch.nn.Linear)]
        for (weight, bias), linear in zip(stack.layers, linears, strict=True):
            assert torch.allclose(weight[t], linear.weight.T, atol=2e-4)
            assert torch.allclose(bias[t, 0], linear.bias, atol=2e-4)


def test_changing_one_record_changes_exactly_one_model_bit_for_bit() -> None:
    X, y = table()
    rows = parts(400, [40] * 9)
    learner = StackedMLP(hidden=(12, 9), epochs=3, batch_size=16)
    before = learner.fit(X, y, rows, n_classes=3, rng=np.random.default_rng(0))
    for t in (0, 4, 8):
        X_other, y_other = X.copy(), y.copy()
        X_other[rows[t][3]] += 0.5
        y_other[rows[t][3]] = (y[rows[t][3]] + 1) % 3
        after = learner.fit(X_other, y_other, rows, n_classes=3, rng=np.random.default_rng(0))
        changed = [not np.array_equal(flat(before, u), flat(after, u)) for u in range(9)]
        assert changed == [u == t for u in range(9)]


@pytest.mark.parametrize("n_features", [5, 102])
def test_a_model_is_the_same_bits_in_stacks_of_any_size(n_features: int) -> None:
    # Removing a unit changes how many partitions share a shape, hence the size of the stack.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, n_features))
    y = (X[:, 0] > 0).astype(np.int64)
    rows = np.array_split(np.arange(1200), 40)
    learner = StackedMLP(hidden=(16, 16), epochs=2, batch_size=16)
    whole = learner.fit(X, y, rows, n_classes=2, rng=np.random.default_rng(0))
    for n_other in (0, 1, 2, 6, 25, 33):
        # Model 0 keeps its rows and its stream; n_other models share its shape, the rest have none.
        some = [rows[0], *rows[1 : 1 + n_other], *[rows[0][:0]] * (39 - n_other)]
        stack = learner.fit(X, y, some, n_classes=2, rng=np.random.default_rng(0))
        assert np.array_equal(flat(stack, 0), flat(whole, 0))


def test_a_much_larger_partition_beside_it_moves_no_bit_of_a_model() -> None:
    # Padding all batches to the largest could sum the same numbers in another order.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 102))
    y = (X[:, 0] > 0).astype(np.int64)
    learner = StackedMLP(hidden=(64, 64), epochs=5, batch_size=1000)
    own = np.arange(19)
    alone = learner.fit(X, y, [own, own[:0]], n_classes=2, rng=np.random.default_rng(0))
    beside = learner.fit(X, y, [own, np.arange(19, 990)], n_classes=2, rng=np.random.default_rng(0))
    assert np.array_equal(flat(alone, 0), flat(beside, 0))


def test_stacks_of_any_chunk_give_the_same_models(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    rows = parts(400, [40] * 9)
    learner = StackedMLP(hidden=(12,), epochs=2)
    whole = learner.fit(X, y, rows, n_classes=3, rng=np.random.default_rng(0))
    votes = whole.predict(X)
    monkeypatch.setattr(mlp, "CHUNK_MODELS", 2)
    monkeypatch.setattr(mlp, "CHUNK_BYTES", 50_000)
    pieces = learner.fit(X, y, rows, n_classes=3, rng=np.random.default_rng(0))
    for t in range(9):
        assert np.array_equal(flat(whole, t), flat(pieces, t))
    assert np.array_equal(votes, pieces.predict(X))


def test_a_class_that_a_partition_does_not_hold_is_never_answered_from_it() -> None:
    X, y = table()
    y = np.where(X[:, 3] > 0, y, 2)
    rows = [np.flatnonzero(y < 2), np.flatnonzero(y == 2), np.arange(400)[:0], np.arange(400)]
    learner = StackedMLP(hidden=(8,), epochs=1, learning_rate=1e-6)  # it has learned nothing yet
    said: list[set[int]] = [set(), set(), set(), set()]
    for seed in range(20):  # as it starts, a network may leave out a class that it could say
        votes = learner.fit(X, y, rows, n_classes=3, rng=np.random.default_rng(seed)).predict(X)
        for of_all, own in zip(said, votes, strict=True):
            of_all.update(own.tolist())
    assert said == [{0, 1}, {2}, {0}, {0, 1, 2}]


@pytest.mark.parametrize(("batch_size", "shape"), [(16, (3, 16)), (45, (1, 48))])
def test_every_epoch_reads_every_row_of_a_partition_once(batch_size, shape) -> None:
    X, y = table()
    own = parts(400, [45])
    assert StackedMLP(batch_size=batch_size).batches_of(45) == shape
    targets, streams = np.eye(3)[y], np.random.default_rng(0).spawn(1)
    deal = Deal(X, targets, own, streams, shape, 3)
    orders = []
    for epoch in range(3):
        read = []
        for step in range(shape[0]):
            rows, target, share, at = deal.batch(epoch, step)
            real = share[0, :, 0] > 0
            # Who reads all rows in each step is told so.
            its = np.flatnonzero(real) if at is None else at[real].numpy()
            read.extend(its.tolist())
            assert np.array_equal(rows[0][real].numpy(), X[own[0][its]].astype(np.float32))
            assert np.array_equal(target[0][real].numpy(), targets[own[0][its]].astype(np.float32))
            assert float(share.sum()) == pytest.approx(1.0)
        assert sorted(read) == list(range(45))
        orders.append(read)
    assert (orders[0] == orders[1]) == (shape[0] == 1)


def test_the_number_of_threads_of_the_caller_comes_back() -> None:
    X, y = table()
    before = torch.get_num_threads()
    StackedMLP(epochs=1).fit(X, y, parts(400, [40]), n_classes=3, rng=np.random.default_rng(0))
    assert torch.get_num_threads() == before


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="epochs must be at least 1, got epochs=0"):
        StackedMLP(epochs=0)
    with pytest.raises(ValueError, match="hidden must be at least 1, got hidden=0"):
        StackedMLP(hidden=(8, 0))
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        StackedMLP(batch_size=0)
    with pytest.raises(ValueError, match="learning_rate must be finite and > 0"):
        StackedMLP(learning_rate=0.0)
    with pytest.raises(ValueError, match="weight_decay must be finite and >= 0"):
        StackedMLP(weight_decay=-1.0)


def test_without_pytorch_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "evenhand\[torch\]"'):
        StackedMLP()

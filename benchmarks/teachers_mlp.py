"""Network teachers as one stack, beside a loop over them and beside one network on all the data."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from _harness import run

from evenhand.learners.nets.mlp import MLPStack, StackedMLP
from evenhand.teachers import by_position

SEED = 0
N_RECORDS, N_COLUMNS, N_TEACHERS, EPOCHS, BATCH = 27_133, 102, 300, 20, 32
# One network on all the data takes larger batches than a teacher can: its fastest fair case.
BATCH_OF_ONE = 1024

rng = np.random.default_rng(SEED)
X = rng.normal(size=(N_RECORDS, N_COLUMNS))
y = (X @ rng.normal(size=N_COLUMNS) + 3 * rng.normal(size=N_RECORDS) > 5).astype(np.int64)
ROWS = by_position(N_RECORDS, N_TEACHERS, SEED).all_rows
FEATURES, LABELS = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)


def ours(rows: Any = ROWS) -> MLPStack:
    learner = StackedMLP(hidden=(64, 64), epochs=EPOCHS, batch_size=BATCH, learning_rate=0.003)
    return learner.fit(X, y, rows, n_classes=2, rng=np.random.default_rng(SEED))


def train(own: np.ndarray, stream: np.random.Generator, batch: int) -> torch.nn.Module:
    """Train one network as one usually does; the draws are those of the stack."""
    sizes = (N_COLUMNS, 64, 64, 2)
    modules: list[torch.nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = torch.nn.Linear(n_in, n_out)
        drawn = torch.as_tensor(stream.random((n_in, n_out), dtype=np.float32))
        with torch.no_grad():
            layer.weight.copy_(((6 / n_in) ** 0.5 * (2 * drawn - 1)).T)
            layer.bias.zero_()
        modules += [layer, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1])
    adam = torch.optim.Adam(network.parameters(), lr=0.003, fused=True)
    features, labels = FEATURES[own], LABELS[own]
    steps = -(-len(own) // batch)
    shuffled = stream.permuted(np.tile(np.arange(len(own)), (EPOCHS, 1)), axis=1)
    for order in torch.as_tensor(shuffled):
        edges = [step * len(own) // steps for step in range(steps + 1)]
        for first, last in pairwise(edges):
            at = order[first:last]
            adam.zero_grad()
            torch.nn.functional.cross_entropy(network(features[at]), labels[at]).backward()
            adam.step()
    return network


def loop() -> list[torch.nn.Module]:
    streams = np.random.default_rng(SEED).spawn(N_TEACHERS)
    return [train(own, stream, BATCH) for own, stream in zip(ROWS, streams, strict=True)]


def one() -> torch.nn.Module:
    return train(np.arange(N_RECORDS), np.random.default_rng(SEED), BATCH_OF_ONE)


def check() -> None:
    """Both train the same networks: votes agree but for rounding."""
    stack = ours()
    networks = loop()
    with torch.no_grad():
        votes = torch.stack([network(FEATURES[:1000]).argmax(dim=1) for network in networks])
    agree = (stack.predict(X[:1000]) == votes.numpy()).mean()
    assert agree > 0.999, agree


if __name__ == "__main__":
    torch.set_num_threads(1)
    sizes = {
        "records": N_RECORDS,
        "layers": "102-64-64-2",
        "teachers": N_TEACHERS,
        "epochs": EPOCHS,
        "batch": BATCH,
    }
    run(
        "teachers_mlp, plain: a loop over teachers",
        ours=ours,
        plain=loop,
        check=check,
        sizes=sizes,
        repeats=3,
        seed=SEED,
        target="at least 5 times faster than the loop",
    )
    run(
        "teachers_mlp, plain: one network on all the data, the same rows and epochs",
        ours=ours,
        plain=one,
        check=lambda: None,
        sizes={**sizes, "batch_of_one": BATCH_OF_ONE},
        repeats=5,
        seed=SEED,
        target="at most 1.5 times slower than one network (ratio above 0.67)",
    )

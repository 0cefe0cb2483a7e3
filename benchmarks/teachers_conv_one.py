"""200 networks of FairPATE's Table 2 on parts of 64 pictures, beside one on all 12,800.

The same passes over the same pictures, in batches of the same size, by the package's own trainers.
First three of the networks are compared with those of a plain loop.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from _harness import run
from teachers_conv import N_CLASSES, train

from evenhand.learners.nets.architectures import ColorMNISTNetwork
from evenhand.learners.nets.module import ModuleLearner
from evenhand.learners.nets.stacked_modules import ModuleStack, StackedModules
from evenhand.teachers import by_position

SEED = 0
N_TEACHERS, N_EACH, EPOCHS, BATCH = 200, 64, 1, 32
N_RECORDS = N_TEACHERS * N_EACH
NETWORK = ColorMNISTNetwork()
HOW: dict[str, Any] = {"epochs": EPOCHS, "learning_rate": 0.003}
LEARNER = StackedModules(architecture=NETWORK, batch_size=BATCH, **HOW)

rng = np.random.default_rng(SEED)
X = rng.integers(0, 256, size=(N_RECORDS, 3, 28, 28)).astype(np.uint8)
y = rng.integers(N_CLASSES, size=N_RECORDS)
ROWS = by_position(N_RECORDS, N_TEACHERS, SEED).all_rows


def ours(n: int = N_TEACHERS) -> ModuleStack:
    return LEARNER.fit(X, y, ROWS[:n], n_classes=N_CLASSES, rng=np.random.default_rng(SEED))


def one(batch_size: int = BATCH, rows: int = N_RECORDS) -> torch.nn.Module:
    learner = ModuleLearner(module=NETWORK, batch_size=batch_size, weight_decay=0.0, **HOW)
    return learner.fit(X[:rows], np.eye(N_CLASSES)[y[:rows]], rng=np.random.default_rng(SEED))


def check() -> None:
    """Compare scores: where a rectifier rounds to the other side of 0 weights may move apart."""
    stack, streams = ours(3), np.random.default_rng(SEED).spawn(3)
    some = torch.as_tensor(X[:200]).float() / 255
    for t, stream in enumerate(streams):
        network = train(LEARNER, X[ROWS[t]], y[ROWS[t]], stream)
        assert torch.allclose(stack.network(t)(some), network(some), atol=0.03), t


def larger_batches(ours_s: float) -> dict[str, object]:
    start = time.process_time()
    one(256)
    took = time.process_time() - start
    return {"one_in_batches_of_256_s": round(took, 2), "ratio_to_it": round(ours_s / took, 2)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(
        "teachers_conv_one, plain: one network on all rows",
        ours=ours,
        plain=one,
        check=check,
        sizes={
            "records": N_RECORDS,
            "pixels": "3 x 28 x 28",
            "teachers": N_TEACHERS,
            "network": "ColorMNISTNetwork",
            "epochs": EPOCHS,
            "batch": BATCH,
        },
        repeats=3,
        seed=SEED,
        target="at most 1.5 times as long as one network: a ratio of at least .67",
        also=larger_batches,
        clock=time.process_time,
    )

"""A step of all critics with minibatches balanced in the partition, beside rows as they are."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch
from _harness import run

from evenhand.generators import GroupBalancedSampler
from evenhand.generators.images.teachers import AHEAD, Teachers
from evenhand.learners.nets.picture_critics import CriticTraining, DenseCritic
from evenhand.teachers import by_position

SEED = 0
N, SIDE, N_TEACHERS, BATCH, HIDDEN = 12_873, 14, 500, 12, 24

rng = np.random.default_rng(SEED)
PIXELS = rng.random((N, 1, SIDE, SIDE), dtype=np.float32)
GROUP = (rng.random(N) < 0.2).astype(np.int64)
CELLS = 2 * rng.integers(0, 2, N) + GROUP
FAKE, HEADS = torch.rand(BATCH, 1, SIDE, SIDE), np.arange(BATCH) % 4


def teachers(sampler: GroupBalancedSampler | None) -> Teachers:
    return Teachers(
        PIXELS,
        CELLS,
        CELLS,
        n_heads=4,
        partition=by_position(N, N_TEACHERS, SEED),
        network=DenseCritic(hidden=(HIDDEN,)),
        training=CriticTraining(),
        sampler=sampler,
        batch_size=BATCH,
        rng=np.random.default_rng(SEED),
    )


FAIR, PLAIN = teachers(GroupBalancedSampler()), teachers(None)


def steps(of: Teachers) -> Any:
    """Take as many steps as one drawing of rows lasts."""

    def job() -> None:
        for _ in range(AHEAD):
            of.learn(FAKE, HEADS)

    return job


def drawing(of: Teachers) -> float:
    """Processor time of drawing the rows of as many steps, alone."""
    times = []
    for _ in range(7):
        began = time.process_time()
        for t in range(N_TEACHERS):
            of._draw(of.rows_of(t), of._own[t])
        times.append(time.process_time() - began)
    return statistics.median(times)


def overhead(_: float) -> dict[str, float]:
    """Share of a step that fair drawing adds: a difference far below the noise of whole steps."""
    began = time.process_time()
    steps(PLAIN)()
    whole = time.process_time() - began
    more = drawing(FAIR) - drawing(PLAIN)
    return {"steps_s": round(whole, 4), "more_s": round(more, 4), "added": round(more / whole, 4)}


def check() -> None:
    """Every group that a teacher holds is drawn as often as any other."""
    FAIR.learn(FAKE, HEADS)
    for t in range(0, N_TEACHERS, 25):
        held = np.unique(CELLS[FAIR.rows_of(t)])
        drawn = CELLS[FAIR.rows_ahead(t).ravel()]
        shares = np.bincount(drawn, minlength=4)[held] / len(drawn)
        # 600 draws: off by more than 0.13 with a probability below 1e-9.
        assert np.abs(shares - 1 / len(held)).max() < 0.13


if __name__ == "__main__":
    torch.set_num_threads(1)
    sizes = {
        "pictures": N,
        "pixels": SIDE * SIDE,
        "teachers": N_TEACHERS,
        "critic": f"{SIDE * SIDE}-{HIDDEN}-4",
        "batch": BATCH,
        "steps": AHEAD,
    }
    run(
        "fair_sampling, plain: rows drawn evenly",
        ours=steps(FAIR),
        plain=steps(PLAIN),
        check=check,
        sizes=sizes,
        repeats=7,
        seed=SEED,
        target="less than 2 % of a step added (ratio near 1, and added below 0.02)",
        also=overhead,
    )

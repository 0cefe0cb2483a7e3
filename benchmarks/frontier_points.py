"""100,000 runs in a store: the front of four objectives, its volume and the runs for a page.

    python benchmarks/frontier_points.py [--save]

Ours reads the objectives from their index, finds the front, and reads the 5,000 runs that a page
shows. The plain version reads all runs, and asks of each whether one of the others dominates it,
as an array at a time, stopping where it is decided. Target: ours within 5 s.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from _harness import run

from evenhand.frontier import Run, RunStore, front, hypervolume
from evenhand.frontier.run import OBJECTIVES, Setting

N, N_PAGE, SEED = 100_000, 5_000, 0


def made(rng: np.random.Generator, i: int) -> Run:
    """Return a run of usual size: about 1.4 kB of JSON."""
    epsilon = float(rng.choice([0.5, 1.0, 2.0, 3.0, 5.0, 8.0]))
    gap, error = float(rng.uniform(0.0, 0.2)), float(rng.uniform(0.15, 0.25))
    group = {"rows": 5000, "error": error, "selection_rate": 0.2, "coverage": 1.0}
    return Run(
        setting=Setting(
            data="adult",
            fingerprint="made for timing",
            method="fairpate",
            arguments={"epsilon": epsilon, "margin": 0.05, "sigma": 40.0, "n_teachers": i},
            seed=i % 5,
        ),
        epsilon=epsilon,
        delta=1e-5,
        error=error,
        gap=gap,
        coverage=float(rng.uniform(0.5, 1.0)),
        error_interval=(error - 0.01, error + 0.01),
        gap_interval=(max(0.0, gap - 0.01), gap + 0.01),
        mu_squared=0.5,
        fairness_kind="in the weights, no group needed",
        groups=({"name": "women", **group}, {"name": "men", **group}),
        guarantee={"unit": "record", "neighbors": "replace one", "holds": True, "noise": "n" * 200},
        command="evenhand train " + "--option value " * 12,
        measured_on="public rows",
        seconds=1.5,
    )


def main() -> None:
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder, RunStore(Path(folder) / "runs.db") as store:
        store.add_all(made(rng, i) for i in range(N))

        def ours() -> tuple[set[str], float, int]:
            points = store.points()
            on = front(points.values)
            best = [points.keys[i] for i in np.flatnonzero(on)]
            page = dict.fromkeys([*best, *points.keys[:N_PAGE]])
            shown = store.get(list(page)[:N_PAGE])
            return set(best), hypervolume(points.values), len(shown)

        def plain() -> set[str]:
            runs = store.runs()
            costs = np.array(
                [
                    [-r.coverage if x == "coverage" else getattr(r, x) for x in OBJECTIVES]
                    for r in runs
                ]
            )
            kept = []
            for i in np.argsort(costs.sum(axis=1)):  # who dominates comes first
                p = costs[i]
                if not any((q <= p).all() and (q < p).any() for q in costs[kept]):
                    kept.append(i)
            return {runs[i].key for i in kept}

        def check() -> None:
            best, volume, n_shown = ours()
            assert best == plain()
            assert 0 < volume < 1
            assert n_shown == N_PAGE

        run(
            "front and page data of 100,000 runs",
            ours=ours,
            plain=plain,
            check=check,
            sizes={"runs": N, "objectives": 4, "page": N_PAGE},
            repeats=3,
            seed=SEED,
            target="within 5 s",
        )


if __name__ == "__main__":
    main()

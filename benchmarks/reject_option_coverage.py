"""How long a late group should wait: coverage, and groups starved, by cold start and margin.

Streams at Adult's rates, 4,000 requests, 60 seeds. A group is starved when fewer than a fifth of
its labels are given. Run: python benchmarks/reject_option_coverage.py [--save]
"""

from __future__ import annotations

import argparse

import _harness
import numpy as np

from evenhand.fairness import DemographicParity, RejectOption

N_REQUESTS, N_SEEDS, STARVED = 4000, 60, 0.2
SETTINGS = (
    *((0.01, cold) for cold in (100, 200, 500)),
    *((0.02, cold) for cold in (50, 100, 250)),
    *((0.05, cold) for cold in (50, 100)),
    *((0.1, cold) for cold in (50, 100)),
)


def shares(margin: float, cold_start: int, seed: int) -> tuple[float, np.ndarray]:
    """Return the share given of all labels, and of each group's."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(N_REQUESTS) < 0.32).astype(int)
    labels = (rng.random(N_REQUESTS) < np.where(groups == 1, 0.1136, 0.3125)).astype(int)
    option = RejectOption(
        DemographicParity(margin=margin), ["M", "F"], ["no", "yes"], cold_start=cold_start
    )
    option.decide(labels, groups)
    option.deliver()
    assert option.gap <= margin
    table = option.coverage
    return table.overall, table.given.sum(axis=1) / table.offered.sum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="append the lines to results.jsonl")
    save = parser.parse_args().save
    for margin, cold_start in SETTINGS:
        runs = [shares(margin, cold_start, seed) for seed in range(N_SEEDS)]
        overall = [one for one, _ in runs]
        by_group = np.array([each for _, each in runs])
        line = {
            **_harness.heading(
                "reject_option_coverage",
                seed=0,
                sizes={"requests": N_REQUESTS, "seeds": N_SEEDS},
            ),
            "margin": margin,
            "cold_start": cold_start,
            "coverage": round(float(np.mean(overall)), 3),
            "coverage_sd": round(float(np.std(overall)), 3),
            "coverage_by_group": by_group.mean(axis=0).round(3).tolist(),
            "runs_with_a_starved_group": int((by_group.min(axis=1) < STARVED).sum()),
        }
        _harness.report(line, save=save)


if __name__ == "__main__":
    main()

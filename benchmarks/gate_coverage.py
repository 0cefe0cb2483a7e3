"""Coverage of both rules of the gate on streams with the base rates of Adult, and where it stops.

Not a race: what each rule gives up, and what margin it leaves behind. Run:
python benchmarks/gate_coverage.py
"""

from __future__ import annotations

import json
import platform
from collections import defaultdict, deque

import numpy as np

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.published import PublishedGate
from evenhand.fairness.trace import coverage_table

SHARE_WOMEN, RATE_MEN, RATE_WOMEN = 0.32, 0.3125, 0.1136  # Adult: share of women, P(income > 50K)
MARGIN, SEEDS = 0.05, range(10)


def adult_like(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw groups (0 men, 1 women) and answers, independently."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < SHARE_WOMEN).astype(int)
    labels = (rng.random(n) < np.array([RATE_MEN, RATE_WOMEN])[groups]).astype(int)
    return groups, labels


def given_rows(
    gate: DemographicParityGate, groups: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, float]:
    """Which offered answers were given in the end, and the largest gap on the way."""
    given = np.zeros(len(groups), dtype=bool)
    held: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    worst = 0.0
    for row, (group, label) in enumerate(zip(groups.tolist(), labels.tolist(), strict=True)):
        outcome = gate.offer(group, label)
        for k, times in enumerate(outcome.released):
            for _ in range(times):
                given[held[group, k].popleft()] = True
        given[row] = outcome.given
        if outcome.withheld:
            held[group, label].append(row)
        worst = max(worst, gate.gap)
    for cell in gate.deliver():
        given[held[cell].popleft()] = True
    return given, worst


def main() -> None:
    for n in (2_000, 10_000):
        for rule, kind in (("sound", DemographicParityGate), ("published", PublishedGate)):
            runs = []
            for seed in SEEDS:
                groups, labels = adult_like(n, seed)
                gate = kind(MARGIN, 2, 2, cold_start=50)
                given, worst = given_rows(gate, groups, labels)
                table = coverage_table(groups, labels, given)
                runs.append(
                    (table.overall, *table.rates.ravel(), worst, getattr(gate, "violations", 0))
                )
            mean, spread = np.mean(runs, axis=0).round(3).tolist(), np.std(runs, axis=0)
            print(
                json.dumps(
                    {
                        "rule": rule,
                        "n": n,
                        "seeds": len(runs),
                        "machine": platform.machine(),
                        "coverage": mean[0],
                        "coverage_sd_over_seeds": round(float(spread[0]), 3),
                        "coverage_men_neg_pos_women_neg_pos": mean[1:5],
                        "largest_gap_of_any_seed": round(max(run[5] for run in runs), 4),
                        "violations_per_run": mean[6],
                    }
                )
            )


if __name__ == "__main__":
    main()

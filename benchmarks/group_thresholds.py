"""One threshold per group: a search in one variable beside the linear program, and error-parity.

Run: pip install error-parity; python benchmarks/group_thresholds.py [--save]

The package's ``RelaxedThresholdOptimizer`` (demographic parity, its tolerance the margin) solves a
convex program over points of each group's ROC curve, by true labels; it is timed where it can be
imported. The answer of ours is checked against the linear program in a variable for each row.
"""

from __future__ import annotations

import time
from typing import Any

import _harness
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from evenhand.fairness import DemographicParity
from evenhand.students.thresholds import GroupThresholds

SEED = 0
SIZE = 5_000
MARGIN = 0.02
TARGET = "at most 5 ms for 5,000 public rows, 2 groups"


def stream() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw scores, groups and labels at Adult's rates."""
    rng = np.random.default_rng(SEED)
    z = (rng.random(SIZE) < 0.32).astype(np.int64)
    p = np.clip(rng.beta(1, 2.2, SIZE) - 0.15 * z, 0.001, 0.999)
    return p, z, (rng.random(SIZE) < p).astype(np.int64)


def ours(p: np.ndarray, z: np.ndarray) -> float:
    """Return the expected right answers of the thresholds."""
    rule = GroupThresholds.fit(p, z, fairness=DemographicParity(margin=MARGIN), n_groups=2)
    return float(((2 * p - 1) * rule.probabilities(p, z)).sum())


def program(p: np.ndarray, z: np.ndarray) -> float:
    """Return those of the best decisions, by a linear program in all of them."""
    sizes = np.bincount(z)
    rate = csr_array((1.0 / sizes[z], (z, np.arange(len(p)))), shape=(2, len(p)))
    apart = csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]])) @ rate
    solved = linprog(1 - 2 * p, A_ub=apart, b_ub=[MARGIN, MARGIN], bounds=(0, 1), method="highs")
    return float(-solved.fun)


def error_parity(p: np.ndarray, z: np.ndarray, y: np.ndarray) -> float | None:
    """Return the seconds that error-parity takes; None where it cannot be imported."""
    try:
        from error_parity import RelaxedThresholdOptimizer
    except ImportError:
        return None
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        found: Any = RelaxedThresholdOptimizer(
            predictor=lambda X: X, constraint="demographic_parity", tolerance=MARGIN, seed=SEED
        )
        found.fit(X=p, y=y, group=z)
        taken.append(time.perf_counter() - started)
    return min(taken)


def main() -> None:
    """Check the answer, then time it."""
    p, z, y = stream()

    def check() -> None:
        assert abs(ours(p, z) - program(p, z)) < 1e-5

    beside = error_parity(p, z, y)
    _harness.run(
        "group_thresholds",
        ours=lambda: ours(p, z),
        plain=lambda: program(p, z),
        check=check,
        sizes={"groups": 2, "rows": SIZE},
        repeats=5,
        seed=SEED,
        target=TARGET,
        also=lambda best: {
            "milliseconds": round(1000 * best, 2),
            "error_parity_s": None if beside is None else round(beside, 3),
        },
    )


if __name__ == "__main__":
    main()

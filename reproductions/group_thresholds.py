"""Group-aware thresholds on Adult: DP-SGD and teachers, beside what users glue together today.

    python reproductions/group_thresholds.py [--seeds 5] [--save]

The reference is an Opacus MLP trained by DP-SGD whose decisions fairlearn's ThresholdOptimizer cuts
on public rows labelled by the model's own scores (five seeds): error / pairwise gap. Ours are
``DPSGDClassifier`` (logistic regression) and ``PATEClassifier`` (noisy shares), defaults, delta
1e-5, both cut by ``with_group_thresholds`` on the public rows at a pairwise margin equal to the
gap that the reference delivered. All need the group at prediction. Every seed is a split of its own
(25 % test; of the rest 20 % public) with noise from the operating system (floating-point).

A row agrees if its gap is at most the reference gap and its error at most the reference error plus
what was set out to be allowed (DP-SGD none; teachers .02 at epsilon 1, .01 at epsilon 3), each up
to the half width of its 95 % interval over seeds. "no" rows stay.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _table import commit, rule, write
from scipy import stats

from evenhand import Budget, DemographicParity, DPSGDClassifier, PATEClassifier
from evenhand.datasets import load_adult
from evenhand.fairness import fairness_report
from evenhand.privacy import FloatNoise

GLUED: dict[float, tuple[tuple[float, float], ...]] = {
    0.5: ((0.159, 0.108), (0.165, 0.059), (0.174, 0.013)),
    1.0: ((0.159, 0.109), (0.165, 0.057), (0.175, 0.011)),
    3.0: ((0.159, 0.105), (0.165, 0.058), (0.175, 0.013)),
}
METHODS: dict[str, tuple[type, dict[float, float]]] = {
    "DP-SGD": (DPSGDClassifier, {0.5: 0.0, 1.0: 0.0, 3.0: 0.0}),
    "teachers": (PATEClassifier, {1.0: 0.02, 3.0: 0.01}),
}


def measure(method: str, epsilon: float, seed: int) -> list[tuple[float, float]]:
    """Error and pairwise gap on the test part for each margin, from one fit."""
    split = load_adult().split(public=0.2, test=0.25, random_state=seed)
    more = {"n_steps": 1500} if method == "DP-SGD" else {}
    model = METHODS[method][0](
        Budget(epsilon=epsilon, delta=1e-5), noise=FloatNoise(), random_state=seed, **more
    )
    model.fit(split.private.X, split.private.y, X_public=split.public.X)
    found = []
    for _, gap in GLUED[epsilon]:
        fairness = DemographicParity(margin=gap, reference="pairwise")
        cut = model.with_group_thresholds(split.public.X, split.public.groups, fairness=fairness)
        decided = cut.predict(split.test.X, sensitive_features=split.test.groups, random_state=0)
        report = fairness_report(
            split.test.y, decided, split.test.groups, classes=(0, 1), positive=1
        )
        found.append((report["error_rate"].value, report["demographic_parity_pairwise"].value))
    return found


def main() -> None:
    """Measure every setting and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="write reproductions/results/")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for epsilon, glued in GLUED.items():
        for method in METHODS:
            found = np.array([measure(method, epsilon, s) for s in range(arguments.seeds)])
            for i, reference in enumerate(glued):
                rows.append(row_of(method, epsilon, reference, found[:, i]))
                print(as_line(rows[-1]), flush=True)
    if arguments.save:
        save(rows, arguments.seeds)


def row_of(
    method: str, epsilon: float, reference: tuple[float, float], found: np.ndarray
) -> dict[str, Any]:
    """One setting over seeds, and what it is compared with."""
    half = stats.t.ppf(0.975, len(found) - 1) / np.sqrt(len(found)) * found.std(axis=0, ddof=1)
    error, gap = found.mean(axis=0)
    allowed = METHODS[method][1].get(epsilon)
    agrees = "-"
    if allowed is not None:
        close = error <= reference[0] + allowed + half[0] and gap <= reference[1] + half[1]
        agrees = "yes" if close else "no"
    return {
        "method": method,
        "epsilon": epsilon,
        "reference": reference,
        "error": error,
        "gap": gap,
        "error_pm": half[0],
        "gap_pm": half[1],
        "allowed": allowed,
        "agrees": agrees,
    }


def as_line(row: dict[str, Any]) -> str:
    """One line of the table."""
    error, gap = row["reference"]
    allowed = "-" if row["allowed"] is None else f"+{row['allowed']:g}"
    return (
        f"| {row['epsilon']:g} | {row['method']} | {error:.3f} / {gap:.3f} | {allowed} | "
        f"{row['error']:.4f} ± {row['error_pm']:.4f} / {row['gap']:.4f} ± {row['gap_pm']:.4f} | "
        f"{row['agrees']} |"
    )


def save(rows: list[dict[str, Any]], seeds: int) -> None:
    """Write the rows as JSON and as a table."""
    at = commit()
    write(
        "group_thresholds",
        {"commit": at, "seeds": seeds, "rows": rows},
        f"# Group-aware thresholds on Adult, {seeds} seeds, commit {at}\n",
        "`python reproductions/group_thresholds.py --save`; what a row compares with, and when it "
        "agrees, stands in the script.\n",
        "| epsilon | method | glued together: error / gap | allowed | ours: error / gap "
        "| agrees? |",
        rule(6),
        *map(as_line, rows),
    )


if __name__ == "__main__":
    main()

"""DP-FERMI, clipped, on Adult, Credit and Parkinsons, beside the published points.

    python reproductions/dp_fermi_adult.py [--seeds 5] [--save]

Every seed is a split of its own (25 % test; of the rest 20 % public, which scale the columns and
tell the shares of the groups) with noise of its own from the operating system, delta 1 / n**2. A
row is one weight of the Renyi information, lambda: test error and pairwise gap, mean and half width
of a 95 % interval over seeds. The weights are fixed; none is chosen on test data, and every one is
a row. All other settings are the defaults, which were set on the training rows of Bank.

Published are three points per epsilon, error / gap, without their lambda. A published point is
reached ("yes") if some row has an error of at most the published one plus 0.002 and a gap of at
most its gap plus 0.015, or plus the half widths of our interval where they are more. "Below" is the
strict reading: some row whose mean error and mean gap are both at or below the published ones.
Which row it is, is read off after the fact, as the published frontier was. "no" rows stay.
"""

from __future__ import annotations

import time
from typing import Any

import fairpate_figure2
import numpy as np
from _table import asked, commit, interval, rule, write
from fairpate_figure2 import LOADERS

from evenhand import Budget, DPFERMIClassifier
from evenhand.datasets import Dataset

ERROR_WITHIN, GAP_WITHIN = 0.002, 0.015
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0, 100.0)

PUBLISHED = {
    (data, epsilon): points
    for (method, data, epsilon), points in fairpate_figure2.PUBLISHED.items()
    if method == fairpate_figure2.FERMI
}
"""Lowy et al. 2023, error and gap, least to most fair; all points: published_points.py."""


def run(data: Dataset, epsilon: float, weight: float, seed: int) -> tuple[float, float, float]:
    """Error and pairwise gap on the test part, and seconds of fit."""
    split = data.split(public=0.2, test=0.25, random_state=seed)
    private, public, test = split.private, split.public, split.test
    budget = Budget(epsilon=epsilon, delta=1.0 / len(private) ** 2)
    model = DPFERMIClassifier(budget, fairness_weight=weight, random_state=seed)
    start = time.perf_counter()
    model.fit(
        private.X,
        private.y,
        sensitive_features=private.groups,
        X_public=public.X,
        sensitive_features_public=public.groups,
    )
    seconds = time.perf_counter() - start
    labels = model.predict(test.X)
    favourable, groups = labels == data.positive, test.groups.to_numpy()
    rates = [favourable[groups == g].mean() for g in np.unique(groups)]
    return float(np.mean(labels != test.y.to_numpy())), float(max(rates) - min(rates)), seconds


def reaches(row: dict[str, Any], point: tuple[float, float]) -> bool:
    """Whether a row is at or below a published point, up to the tolerances."""
    close = row["error"] <= point[0] + max(ERROR_WITHIN, row["error_pm"])
    return bool(close and row["gap"] <= point[1] + max(GAP_WITHIN, row["gap_pm"]))


def below(row: dict[str, Any], point: tuple[float, float]) -> bool:
    """Whether both means of a row are at or below a published point."""
    return bool(row["error"] <= point[0] and row["gap"] <= point[1])


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per published point: the reaching row of least error, or none."""
    out = []
    for (name, epsilon), points in PUBLISHED.items():
        own = [r for r in rows if (r["data"], r["epsilon"]) == (name, epsilon)]
        for point in points:
            found = min((r for r in own if reaches(r, point)), key=lambda r: r["error"], default={})
            out.append(
                {
                    "data": name,
                    "epsilon": epsilon,
                    "published": point,
                    "weight": found.get("weight"),
                    "agrees": "yes" if found else "no",
                    "below": "yes" if any(below(r, point) for r in own) else "no",
                }
            )
    return out


def main() -> None:
    """Run, print, and save if asked to."""
    given = asked(__doc__, seeds=5, keeps=False).parse_args()
    rows = []
    for name, epsilon in PUBLISHED:
        data = LOADERS[name]()
        for weight in WEIGHTS:
            repeats = [run(data, epsilon, weight, seed) for seed in range(given.seeds)]
            errors, gaps, seconds = (list(column) for column in zip(*repeats, strict=True))
            row: dict[str, Any] = {"data": name, "epsilon": epsilon, "weight": weight}
            row["error"], row["error_pm"] = interval(errors)
            row["gap"], row["gap_pm"] = interval(gaps)
            row["seconds"] = float(np.median(seconds))
            row["repeats"] = repeats
            rows.append(row)
            print(line(row), flush=True)
    found = verdicts(rows)
    print("\n".join(map(verdict_line, found)))
    if given.save:
        save(rows, found, given.seeds)


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    return (
        f"| {row['data']} | {row['epsilon']:g} | {row['weight']:g} "
        f"| {row['error']:.4f} ± {row['error_pm']:.4f} / {row['gap']:.4f} ± {row['gap_pm']:.4f} "
        f"| {row['seconds']:.1f} |"
    )


def verdict_line(row: dict[str, Any]) -> str:
    """One published point."""
    by = "-" if row["weight"] is None else f"{row['weight']:g}"
    point = "{:.4f} / {:.4f}".format(*row["published"])
    found = f"{by} | {row['agrees']} | {row['below']}"
    return f"| {row['data']} | {row['epsilon']:g} | {point} | {found} |"


def save(rows: list[dict[str, Any]], found: list[dict[str, Any]], seeds: int) -> None:
    """Write every repeat as JSON, and the tables."""
    at = commit()
    write(
        "dp_fermi_adult",
        {"commit": at, "seeds": seeds, "rows": rows, "points": found},
        f"# DP-FERMI, clipped, {seeds} seeds, commit {at}\n",
        "| data | epsilon | published: error / gap | reached by lambda | agrees? | below? |",
        rule(6),
        *map(verdict_line, found),
        "\n| data | epsilon | lambda | ours: error / gap | seconds a fit |",
        rule(5),
        *map(line, rows),
    )


if __name__ == "__main__":
    main()

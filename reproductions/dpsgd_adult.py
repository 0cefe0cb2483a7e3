"""DP-SGD logistic regression on Adult, Credit and Parkinsons, beside the numbers to compare with.

    python reproductions/dpsgd_adult.py [--seeds 5] [--save]

Every seed is a split of its own (25 % test; of the rest 20 % public, which only scale the columns
and set group thresholds) with noise of its own from the operating system, delta 1 / n**2. A row is
one setting: test error and pairwise gap, mean and half width of a 95 % interval over seeds. A row
agrees if error and gap are at most the reference plus 0.002 and 0.015, or plus the half width of
our interval where that is more; lower is never counted against us. "no" rows stay. The reference is
an earlier measurement of the same method for penalties, thresholds glued together from packages,
and for margins the published numbers of DP-FERMI.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import dp_fermi_adult
import numpy as np
from _table import asked, commit, interval, rule, write
from fairpate_figure2 import LOADERS

from evenhand import Budget, DemographicParity, DPSGDClassifier
from evenhand.datasets import Dataset

ERROR_WITHIN, GAP_WITHIN = 0.002, 0.015

# An earlier measurement of the same method (error, gap), per penalty.
PENALTIES = (0.0, 0.25, 0.5, 1.0)
REFERENCE: dict[tuple[str, float], tuple[tuple[float, float], ...]] = {
    ("Adult", 0.5): ((0.1545, 0.184), (0.1565, 0.145), (0.1611, 0.085), (0.1781, 0.013)),
    ("Adult", 1.0): ((0.1536, 0.183), (0.1558, 0.137), (0.1631, 0.069), (0.1808, 0.005)),
    ("Adult", 3.0): ((0.1535, 0.184), (0.1559, 0.135), (0.1640, 0.062), (0.1822, 0.002)),
    ("Credit", 1.0): ((0.1803, 0.0227), (0.1805, 0.0223), (0.1805, 0.0215), (0.1826, 0.0186)),
    ("Parkinsons", 1.0): ((0.0398, 0.076), (0.0399, 0.076), (0.0395, 0.075), (0.0410, 0.070)),
}
# Group thresholds on public rows, margins 0.1, 0.05, 0.01 (need the group at prediction).
MARGINS = (0.1, 0.05, 0.01)
THRESHOLDS: dict[tuple[str, float], tuple[tuple[float, float], ...]] = {
    ("Adult", 0.5): ((0.159, 0.108), (0.165, 0.059), (0.174, 0.013)),
    ("Adult", 1.0): ((0.159, 0.109), (0.165, 0.057), (0.175, 0.011)),
    ("Adult", 3.0): ((0.159, 0.105), (0.165, 0.058), (0.175, 0.013)),
}
PUBLISHED = {key: points for key, points in dp_fermi_adult.PUBLISHED.items() if key[0] == "Adult"}
"""DP-FERMI as published. It needs no group at prediction, so it stands beside our margins."""


def measure(data: Dataset, split: Any, labels: Any) -> tuple[float, float]:
    """Error, and largest difference of the groups' rates of the favourable class."""
    wrong = float(np.mean(labels != split.test.y.to_numpy()))
    favourable = labels == data.positive
    groups = split.test.groups.to_numpy()
    rates = [favourable[groups == g].mean() for g in np.unique(groups)]
    return wrong, float(max(rates) - min(rates))


def runs(data: Dataset, epsilon: float, seed: int) -> Iterator[tuple[str, float, float, float]]:
    """All settings on one split: (setting, error, gap, CPU seconds of fit)."""
    split = data.split(public=0.2, test=0.25, random_state=seed)
    private, public, test = split.private, split.public, split.test
    budget = Budget(epsilon=epsilon, delta=1.0 / len(private) ** 2)

    def fit(**settings: Any) -> tuple[DPSGDClassifier, float]:
        model = DPSGDClassifier(budget, n_steps=1500, **settings, random_state=seed)
        start = time.process_time()
        model.fit(private.X, private.y, sensitive_features=private.groups, X_public=public.X)
        return model, time.process_time() - start

    for penalty in PENALTIES:
        model, seconds = fit(penalty=penalty)
        yield f"penalty {penalty:g}", *measure(data, split, model.predict(test.X)), seconds
        if penalty == 0.0:
            for margin in MARGINS:
                fair = model.with_group_thresholds(
                    public.X, public.groups, fairness=DemographicParity(margin=margin)
                )
                labels = fair.predict(test.X, sensitive_features=test.groups, random_state=seed)
                yield f"thresholds {margin:g}", *measure(data, split, labels), seconds
    for margin in MARGINS:
        model, seconds = fit(fairness=DemographicParity(margin=margin))
        yield f"margin {margin:g}", *measure(data, split, model.predict(test.X)), seconds


def reference_of(key: tuple[str, float], setting: str) -> tuple[float, float] | None:
    """Error and gap to compare a setting with, or None."""
    kind, value = setting.split()
    if kind == "penalty":
        return REFERENCE[key][PENALTIES.index(float(value))]
    if kind == "thresholds" and key in THRESHOLDS:
        return THRESHOLDS[key][MARGINS.index(float(value))]
    if kind == "margin" and key in PUBLISHED:
        # The published point that our margin should dominate: its second, and its fairest.
        return {0.1: PUBLISHED[key][1], 0.05: None, 0.01: PUBLISHED[key][2]}[float(value)]
    return None


def agrees(row: dict[str, Any]) -> str:
    """Yes, no, or a dash where there is nothing to compare with."""
    if row["reference"] is None:
        return "-"
    error, gap = row["reference"]
    close = row["error"] <= error + max(ERROR_WITHIN, row["error_pm"])
    level = row["gap"] <= gap + max(GAP_WITHIN, row["gap_pm"])
    return "yes" if close and level else "no"


def main() -> None:
    """Run, print, and save if asked to."""
    given = asked(__doc__, seeds=5, keeps=False).parse_args()
    rows = []
    for key in REFERENCE:
        name, epsilon = key
        data = LOADERS[name]()
        found: dict[str, list[tuple[float, float, float]]] = {}
        for seed in range(given.seeds):
            for setting, error, gap, seconds in runs(data, epsilon, seed):
                found.setdefault(setting, []).append((error, gap, seconds))
        for setting, repeats in found.items():
            errors, gaps, seconds = (list(column) for column in zip(*repeats, strict=True))
            row: dict[str, Any] = {"data": name, "epsilon": epsilon, "setting": setting}
            row["error"], row["error_pm"] = interval(errors)
            row["gap"], row["gap_pm"] = interval(gaps)
            row["seconds"] = float(np.median(seconds))
            row["reference"] = reference_of(key, setting)
            row["agrees"] = agrees(row)
            row["repeats"] = repeats
            rows.append(row)
            print(line(row), flush=True)
    if given.save:
        save(rows, given.seeds)


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    was = "-" if row["reference"] is None else "{:.4f} / {:.4f}".format(*row["reference"])
    return (
        f"| {row['data']} | {row['epsilon']:g} | {row['setting']} | {was} "
        f"| {row['error']:.4f} ± {row['error_pm']:.4f} / {row['gap']:.4f} ± {row['gap_pm']:.4f} "
        f"| {row['agrees']} | {row['seconds']:.1f} |"
    )


def save(rows: list[dict[str, Any]], seeds: int) -> None:
    """Write every repeat as JSON, and the table."""
    at = commit()
    write(
        "dpsgd_adult",
        {"commit": at, "seeds": seeds, "rows": rows},
        f"# DP-SGD logistic regression, {seeds} seeds, commit {at}\n",
        "| data | epsilon | setting | reference: error / gap | ours: error / gap | agrees? "
        "| CPU seconds a fit |",
        rule(7),
        *map(line, rows),
    )


if __name__ == "__main__":
    main()

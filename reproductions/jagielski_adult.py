"""Private post-processing for equalized odds (Jagielski et al. 2019) on Adult, beside Hardt's.

    python reproductions/jagielski_adult.py [--seeds 5] [--save]

Every seed is a split of its own (25 % test; of the rest 20 % public, which only scale the columns)
with noise of its own from the operating system, delta 1 / n**2. A quarter of epsilon pays for the
table, three quarters for DP-SGD. A row is one margin, met on the noisy table by one linear program;
all margins of a seed read the same released table, which is free. Test error and gap of equalized
odds are *expected* ones over the draws of the decisions: mean and half width of a 95 % interval.

The reference is the same without privacy: scikit-learn's logistic regression, exact counts, and
the same linear program (Hardt, Price and Srebro 2016). A row agrees if its error is at most the
reference's plus 0.005 and its gap at most the reference's plus 0.03, or plus the half widths of our
interval where they are more. "no" rows stay. The paper has no numbers for whole-record privacy; its
own protect the group alone.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _table import asked, commit, interval, rule, write
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DPPostProcessingClassifier, EqualizedOdds
from evenhand.datasets import Dataset, PublicEncoder, load_adult
from evenhand.students.derived import DerivedRule

ERROR_WITHIN, GAP_WITHIN = 0.005, 0.03
MARGINS = (0.0, 0.02, 0.05, 0.1, 1.0)  # 1.0: the model's own decisions
EPSILONS = (0.5, 1.0, 3.0)


def counts(y: Any, decided: Any, groups: Any) -> Any:
    """Count records by group, label and decision, shape (2, 2, 2)."""
    cells = np.ravel_multi_index((groups, y, decided), (2, 2, 2))
    return np.bincount(cells, minlength=8).reshape(2, 2, 2)


def odds(margin: float = 0.0) -> EqualizedOdds:
    """Return the notion of the paper with a margin."""
    return EqualizedOdds(margin=margin, reference="pairwise")


def codes(part: Any, data: Dataset) -> tuple[Any, Any]:
    """Labels as 0 and 1, groups as codes in the order of their names."""
    names = np.unique(data.groups.to_numpy())
    y = (part.y.to_numpy() == data.positive).astype(np.int64)
    return y, np.searchsorted(names, part.groups.to_numpy())


def private(data: Dataset, epsilon: float, seed: int) -> list[tuple[float, float, float]]:
    """Return expected error and gap for each margin, and seconds of the fit."""
    split = data.split(public=0.2, test=0.25, random_state=seed)
    rows = split.private
    budget = Budget(epsilon=epsilon, delta=1.0 / len(rows) ** 2)
    model = DPPostProcessingClassifier(budget, odds(MARGINS[0]), random_state=seed)
    start = time.perf_counter()
    model.fit(rows.X, rows.y, sensitive_features=rows.groups, X_public=split.public.X)
    seconds = time.perf_counter() - start
    y, groups = codes(split.test, data)
    decided = model.student_.predict(model.encoder_.transform(split.test.X)).astype(np.int64)
    table = counts(y, decided, groups)
    rules = [model.with_fairness(odds(margin)).rule_ for margin in MARGINS]
    return [(rule.error(table), rule.gap(table, odds()), seconds) for rule in rules]


def reference(data: Dataset, seed: int) -> list[tuple[float, float, float]]:
    """Do the same without privacy."""
    split = data.split(public=0.2, test=0.25, random_state=seed)
    encoder = PublicEncoder().fit(split.public.X)
    start = time.perf_counter()
    y, groups = codes(split.private, data)
    X = encoder.transform(split.private.X)
    model = LogisticRegression(max_iter=2000).fit(X, y)
    table = counts(y, model.predict(X), groups)
    rules = [DerivedRule.fit(table, odds(margin)) for margin in MARGINS]
    seconds = time.perf_counter() - start
    y, groups = codes(split.test, data)
    found = counts(y, model.predict(encoder.transform(split.test.X)), groups)
    return [(rule.error(found), rule.gap(found, odds()), seconds) for rule in rules]


def summed(repeats: list[list[tuple[float, float, float]]]) -> list[dict[str, Any]]:
    """One row per margin, from one list of margins per seed."""
    rows = []
    for margin, runs in zip(MARGINS, zip(*repeats, strict=True), strict=True):
        errors, gaps, seconds = (list(column) for column in zip(*runs, strict=True))
        row: dict[str, Any] = {"margin": margin, "seconds": float(np.median(seconds))}
        row["error"], row["error_pm"] = interval(errors)
        row["gap"], row["gap_pm"] = interval(gaps)
        row["repeats"] = runs
        rows.append(row)
    return rows


def agrees(row: dict[str, Any], exact: dict[str, Any]) -> str:
    """Yes or no."""
    close = row["error"] <= exact["error"] + max(ERROR_WITHIN, row["error_pm"])
    level = row["gap"] <= exact["gap"] + max(GAP_WITHIN, row["gap_pm"])
    return "yes" if close and level else "no"


def main() -> None:
    """Run, print, and save if asked to."""
    given = asked(__doc__, seeds=5, keeps=False).parse_args()
    data = load_adult()
    exact = summed([reference(data, seed) for seed in range(given.seeds)])
    rows = []
    for epsilon in EPSILONS:
        found = summed([private(data, epsilon, seed) for seed in range(given.seeds)])
        for row, plain in zip(found, exact, strict=True):
            row |= {"epsilon": epsilon, "reference": (plain["error"], plain["gap"])}
            row["agrees"] = agrees(row, plain)
            rows.append(row)
            print(line(row), flush=True)
    if given.save:
        save(rows, exact, given.seeds)


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    was = "{:.4f} / {:.4f}".format(*row["reference"])
    return (
        f"| {row['epsilon']:g} | {row['margin']:g} | {was} "
        f"| {row['error']:.4f} ± {row['error_pm']:.4f} / {row['gap']:.4f} ± {row['gap_pm']:.4f} "
        f"| {row['agrees']} | {row['seconds']:.1f} |"
    )


def save(rows: list[dict[str, Any]], exact: list[dict[str, Any]], seeds: int) -> None:
    """Write every repeat as JSON, and the table."""
    at = commit()
    write(
        "jagielski_adult",
        {"commit": at, "seeds": seeds, "rows": rows, "exact": exact},
        f"# Private post-processing for equalized odds on Adult, {seeds} seeds, commit {at}\n",
        "| epsilon | margin | without privacy: error / gap | ours: error / gap | agrees? "
        "| seconds a fit |",
        rule(6),
        *map(line, rows),
    )


if __name__ == "__main__":
    main()

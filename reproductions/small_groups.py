"""A margin between small groups on ACS-Income: by SEX x RAC1P, some groups have a handful of rows.

    python reproductions/small_groups.py [--seeds 3] [--save]

``FairSharesClassifier`` at epsilon 3 and delta 1e-5, all settings as they come, demographic parity
within .05 between the ten groups of sex and race. Each seed is a split of its own (25 % test, of
the rest 20 % public). Nothing was chosen by looking at test rows. "before": ``small_groups=
"margin"``, the margin for every group, whatever it costs; "held": the default, which holds a group
to the interval of its size where the margin costs more than .01 by the released answers; "merged":
``Grouping.of_public(merge_small=500)``; "no margin": ``without_margin()`` of "held". The gap is
measured on test rows, of all groups (the smallest have a handful there too) and of those with at
least 400 public rows.

A row "held" or "merged" agrees if its mean error is below that of "before" or within the half
width of its 95 % interval over seeds of it, and if no group that is held to the margin is outside
it on the public rows. "no" rows stay.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from _table import asked, commit, interval, rule, write

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.datasets import load_acs_income
from evenhand.fairness import Grouping
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.notions import parity_gaps
from evenhand.fairness.tally import Tally

MARGIN, LARGE = 0.05, 400
STATES: dict[str, tuple[str, ...]] = {"CT": ("CT",), "MD": ("MD",), "CT+MD": ("CT", "MD")}
WAYS = ("before", "held", "merged", "no margin")


def measure(state: str, seed: int) -> dict[str, dict[str, Any]]:
    """Return error, gaps and whether the claim is borne out, for each way."""
    split = load_acs_income(STATES[state]).split(public=0.2, test=0.25, random_state=seed)
    private, public, test = (_parts(part) for part in (split.private, split.public, split.test))
    majority = min(np.mean(test[1] == k) for k in (0, 1))
    merge = Grouping.of_public(public[2], merge_small=500)
    found: dict[str, dict[str, Any]] = {}
    for way, groups, small in (
        ("before", public[2], "margin"),
        ("held", public[2], "interval"),
        ("merged", merge(public[2]), "interval"),
    ):
        model = FairSharesClassifier(
            Budget(epsilon=3.0, delta=1e-5),
            DemographicParity(margin=MARGIN),
            small_groups=small,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(private[0], private[1], X_public=public[0], sensitive_features_public=groups)
        found[way] = _of(model.predict(test[0]), test, public[2]) | {
            "claim": _borne_out(model, public[0], groups),
            "held": [] if model.held_ is None else [g.n_rows for g in model.held_.groups],
        }
        if way == "held":
            free = model.without_margin().predict(test[0])
            found["no margin"] = _of(free, test, public[2]) | {"claim": None, "held": []}
    for row in found.values():
        row["majority"] = float(majority)
    return found


def _parts(part: Any) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    groups = pd.DataFrame({"sex": np.asarray(part.groups), "race": part.X["race"].to_numpy()})
    return part.X.drop(columns=["race"]), np.asarray(part.y), groups


def _of(decided: np.ndarray, test: tuple[Any, ...], public_groups: pd.DataFrame) -> dict[str, Any]:
    codes = encode_groups(test[2])
    tally = Tally.of(codes.codes, decided.astype(np.int64), codes.n_groups, 2)
    gaps = np.abs(parity_gaps(tally.counts, "rest")).max(axis=1)
    known = encode_groups(public_groups)
    large = {n for n, size in zip(known.names, known.sizes, strict=True) if size >= LARGE}
    of_large = [gap for name, gap in zip(codes.names, gaps, strict=True) if name in large]
    return {
        "error": float(np.mean(decided != test[1])),
        "gap": float(gaps.max()),
        "gap_large": float(max(of_large)),
    }


def _borne_out(model: Any, X_public: pd.DataFrame, groups: Any) -> bool:
    """Whether each group is within what it is held to, counted anew on the public rows."""
    codes = encode_groups(groups)
    decided = model.predict(X_public).astype(np.int64)
    gaps = np.abs(parity_gaps(Tally.of(codes.codes, decided, codes.n_groups, 2).counts, "rest"))
    limits = np.full(codes.n_groups, MARGIN)
    for held in () if model.held_ is None else model.held_.groups:
        limits[held.group] = held.limit
    return bool((gaps.max(axis=1) <= limits + 1e-12).all())


def row_of(state: str, way: str, found: list[dict[str, Any]], before: float) -> dict[str, Any]:
    """One way over seeds, and whether it agrees."""
    errors = [one["error"] for one in found]
    error = interval(errors)
    agrees = "-"
    if way in ("held", "merged"):
        kept = all(one["claim"] for one in found)
        agrees = "yes" if kept and error.mean <= before + error.half else "no"
    return {
        "state": state,
        "way": way,
        "error": error.mean,
        "error_pm": error.half,
        "errors": errors,
        "majority": float(np.mean([one["majority"] for one in found])),
        "gap": float(np.mean([one["gap"] for one in found])),
        "gap_large": float(np.mean([one["gap_large"] for one in found])),
        "held": [one["held"] for one in found],
        "agrees": agrees,
    }


def as_line(row: dict[str, Any]) -> str:
    """One line of the table."""
    worst = max(row["errors"])
    held = sum(bool(groups) for groups in row["held"])
    return (
        f"| {row['state']} | {row['way']} | {row['error']:.4f} ± {row['error_pm']:.4f} | "
        f"{worst:.4f} | {row['majority']:.4f} | {row['gap_large']:.4f} | {row['gap']:.4f} | "
        f"{held} of {len(row['held'])} | {row['agrees']} |"
    )


def main() -> None:
    """Measure every state and print a row for each way."""
    given = asked(__doc__, seeds=3, keeps=False).parse_args()
    rows: list[dict[str, Any]] = []
    for state in STATES:
        found = [measure(state, seed) for seed in range(given.seeds)]
        before = float(np.mean([one["before"]["error"] for one in found]))
        for way in WAYS:
            rows.append(row_of(state, way, [one[way] for one in found], before))
            print(as_line(rows[-1]), flush=True)
    if given.save:
        save(rows, given.seeds)


def save(rows: list[dict[str, Any]], seeds: int) -> None:
    """Write the rows as JSON and as a table."""
    at = commit()
    write(
        "small_groups",
        {"commit": at, "seeds": seeds, "rows": rows},
        f"# A margin between small groups on ACS-Income, {seeds} seeds, commit {at}\n",
        "`python reproductions/small_groups.py --save`; what the ways are, and when a row agrees, "
        "stands in the script.\n",
        "| state | way | error | worst seed | majority class | gap of large groups | gap of all | "
        "seeds with held groups | agrees? |",
        rule(9),
        *map(as_line, rows),
    )


if __name__ == "__main__":
    main()

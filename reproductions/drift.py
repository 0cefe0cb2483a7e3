"""Public rows that do not look like the private ones: what the check says, and what drift does.

    python reproductions/drift.py [--seeds 10] [--kept FILE] [--save]

Two tables, of which every seed is a split of its own (25 % test, of the rest 20 % public): private
rows and test rows are the same for every kind of public rows.

- *ACS-Income*: private rows of Connecticut. Public rows: those of Connecticut ("alike"), or as many
  of Maryland ("elsewhere").
- *Adult*: public rows of people of 45 years and more ("elsewhere"), or as many of any age
  ("alike").
- *drawn rows*: no public rows, ``public="synthetic"``.

``FairSharesClassifier`` at epsilon 1 and 3, delta 1e-5, margin .05, defaults throughout; noise from
the operating system (floating-point). "no margin" is the same model's student without it. Error and
pairwise gap on test rows, which are like the private ones: means with half widths of 95 % intervals
over seeds. "alike, checked" has ``check_drift=True`` beside, which takes a twentieth of the budget.

Verdicts, per table and epsilon; "no" rows stay:

- *the drift is seen*: in 9 of 10 seeds or more the check says that "elsewhere" differs;
- *no false alarm*: of "alike" it says so in 3 of 10 or fewer (4 or more have probability .001
  where a false alarm has .05);
- *the check costs nothing that shows*: the mean over seeds of the paired difference in error
  without a margin, "alike, checked" less "alike", is no larger than the half width of its 95 %
  interval;
- *drift costs error*, *drift widens the gap*: the paired differences "elsewhere" less "alike", in
  error without a margin and in the gap under it, are above 0 with their 95 % intervals.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from _judged import error_and_gap
from _paired import differences
from _table import Runs, asked, commit, interval, rule, select, write

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.datasets import Dataset, load_acs_income, load_adult
from evenhand.privacy import FloatNoise

ALIKE, CHECKED, ELSEWHERE, DRAWN = "alike", "alike, checked", "elsewhere", "drawn rows"
KINDS = (ALIKE, CHECKED, ELSEWHERE, DRAWN)
EPSILONS = (1.0, 3.0)
MARGIN = 0.05
AGE = 45


class Scene:
    """One split of one table, and public rows of both kinds."""

    def __init__(self, name: str, seed: int) -> None:
        self.seed = seed
        self.split = TABLES[name]().split(public=0.2, test=0.25, random_state=seed)
        rng, alike = np.random.default_rng(seed), self.split.public
        if name == "Adult":
            old = np.flatnonzero(alike.X["age"].to_numpy() >= AGE)
            self.alike = taken(alike, rng.permutation(len(alike.X))[: len(old)])
            self.elsewhere = taken(alike, old)
        else:
            other = load_acs_income(("MD",))
            self.alike = taken(alike, np.arange(len(alike.X)))
            self.elsewhere = taken(other, rng.permutation(len(other.X))[: len(alike.X)])

    def fitted(self, kind: str, epsilon: float) -> Any:
        """Return the model on public rows of this kind."""
        private = self.split.private
        model = FairSharesClassifier(
            Budget(epsilon=epsilon, delta=1e-5),
            DemographicParity(margin=MARGIN),
            noise=FloatNoise(),
            random_state=self.seed,
            public="synthetic" if kind == DRAWN else None,
            check_drift=kind in (CHECKED, ELSEWHERE),
        )
        given: dict[str, Any] = {"sensitive_features": private.groups}
        if kind != DRAWN:
            X, groups = self.elsewhere if kind == ELSEWHERE else self.alike
            given |= {"X_public": X, "sensitive_features_public": groups}
        return model.fit(private.X, private.y, **given)

    def measured(self, model: Any) -> tuple[float, float]:
        """Return error and pairwise gap on the test rows."""
        return error_and_gap(self.split.test, model.predict(self.split.test.X))


TABLES: dict[str, Callable[[], Dataset]] = {
    "ACS-Income": lambda: load_acs_income(("CT",)),
    "Adult": load_adult,
}


def taken(data: Any, some: Any) -> tuple[pd.DataFrame, Any]:
    """Return some rows, and their groups."""
    return data.X.iloc[some].reset_index(drop=True), np.asarray(data.groups)[some]


def measure(data: str, epsilon: float, seed: int) -> list[dict[str, Any]]:
    """Return error and gap for each kind of public rows, and what the check said."""
    scene, found = Scene(data, seed), []
    for kind in KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = scene.fitted(kind, epsilon)
            free = scene.measured(model.without_margin())
            held = scene.measured(model)
        drift = model.drift_ or ()
        found.append(
            {
                "data": data,
                "epsilon": epsilon,
                "seed": seed,
                "kind": kind,
                "error": float(free[0]),
                "gap": float(free[1]),
                "error_within": float(held[0]),
                "gap_within": float(held[1]),
                "differ": [column.name for column in drift if column.differs],
                "distances": {column.name: [column.distance, column.limit] for column in drift},
            }
        )
    return found


def verdicts(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the rules of the docstring say."""
    found = []
    for name, epsilon in product(TABLES, EPSILONS):
        own = {kind: select(runs, data=name, epsilon=epsilon, kind=kind) for kind in KINDS}
        n = len(own[ALIKE])
        if n < 2:
            continue
        said = {kind: sum(bool(r["differ"]) for r in own[kind]) for kind in KINDS}
        seen, alarms = said[ELSEWHERE], said[CHECKED]
        cost, error, gap = (
            interval(differences(own[kind], own[ALIKE], "seed", of=key).values())
            for kind, key in ((CHECKED, "error"), (ELSEWHERE, "error"), (ELSEWHERE, "gap_within"))
        )
        found += [
            {"data": name, "epsilon": epsilon, "seeds": n, "what": what, "value": value}
            | {"agrees": "yes" if agrees else "no"}
            for what, value, agrees in (
                ("the drift is seen", f"{seen} of {n}", seen >= 0.9 * n),
                ("no false alarm", f"{alarms} of {n}", alarms <= 0.3 * n),
                ("the check costs nothing that shows", f"{cost:+.4f}", cost.mean <= cost.half),
                ("drift costs error", f"{error:+.4f}", error.mean > error.half),
                ("drift widens the gap", f"{gap:+.3f}", gap.mean > gap.half),
            )
        ]
    return found


def lines(runs: list[dict[str, Any]]) -> list[str]:
    """Return the tables of a page."""
    out = ["| data | epsilon | judged | value | agrees? |", rule(5)]
    out += [
        f"| {row['data']} | {row['epsilon']:g} | {row['what']} | {row['value']} | {row['agrees']} |"
        for row in verdicts(runs)
    ]
    head = "no margin: error / gap | margin .05: error / gap | said to differ"
    out += ["", f"| data | epsilon | public rows | {head} |", rule(6)]
    for name, epsilon, kind in product(TABLES, EPSILONS, KINDS):
        if own := select(runs, data=name, epsilon=epsilon, kind=kind):
            error, gap, error_within, gap_within = (
                interval(run[key] for run in own)
                for key in ("error", "gap", "error_within", "gap_within")
            )
            out.append(
                f"| {name} | {epsilon:g} | {kind} | {error:.4f} / {gap:.3f} "
                f"| {error_within:.4f} / {gap_within:.3f} | {columns(own)} |"
            )
    return out


def columns(own: list[dict[str, Any]]) -> str:
    """Return in which columns rows were said to differ, and in how many seeds."""
    if not own[0]["distances"]:
        return "-"
    counted = pd.Series([name for run in own for name in run["differ"]], dtype=object)
    often = counted.value_counts()
    return ", ".join(f"{name} ({n} of {len(own)})" for name, n in often.items()) or "none"


def save(rows: list[dict[str, Any]]) -> None:
    """Write the runs as JSON and as tables."""
    at, n = commit(), len({run["seed"] for run in rows})
    write(
        "drift",
        {"commit": at, "verdicts": verdicts(rows), "rows": rows},
        f"# Public rows that do not look like the private ones, {n} seeds\n",
        f"`python reproductions/drift.py --save`; kinds of rows and the rules of the verdicts "
        f"stand in the script. Commit {at}.\n",
        *lines(rows),
    )


def main() -> None:
    """Measure what is missing, and print the tables."""
    given = asked(__doc__, seeds=10).parse_args()
    runs = Runs(given.kept)
    runs.complete(measure, seed=range(given.seeds), data=TABLES, epsilon=EPSILONS)
    print(*lines(runs), sep="\n")
    if given.save:
        save(runs)


if __name__ == "__main__":
    main()

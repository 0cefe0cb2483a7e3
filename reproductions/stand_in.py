"""Does a frontier on stand-in data predict the private one? States, years and synthetic rows.

    python reproductions/stand_in.py [--private MD CT "Bank, later"] [--runs FILE] [--save]

FairPATE's slides ask that a regulator choose a point of the frontier without the private data. Here
the private table is a state of ACS-Income (by sex) or the later half of Bank (by age group, whose
file is in the order of the calls, 2008 to 2010), and a stand-in is

- the other state, or the earlier half: public rows of the same columns; or
- synthetic rows of the same schema, as many as there are private training rows, drawn by
  ``MarginalSynthesizer`` at epsilon .5 and delta 1e-6 from the private training rows of the same
  seed, with the categories of the code book declared. They cost that epsilon beside the model.

The settings are those that a regulator would sweep: ``FairSharesClassifier`` and
``FairPATEClassifier`` with 200 teachers, epsilon .5, 1, 2, 4 and margins .02, .05, .1, .15 (32 in
all), delta 1e-5, defaults otherwise, floating-point noise. Every seed is a split of its own (25 %
test; of the rest 20 % public) on either side; error and gap (against the rest) are those of its
test rows. Of the ACS file there is one year, 2018, so "an earlier year" is Bank's.

For every seed, over the 32 settings: Spearman's rank correlation of stand-in and private error, and
of the gaps. Then a choice for each limit of the gap (.05, .1) and of epsilon (1, 2, 4): of the
settings within both by the stand-in's numbers of this seed, the one of least stand-in error. Of the
chosen one:

- *regret*: its private error less that of the best setting within the limits by the private
  numbers, both means over all seeds (so that nobody is praised for luck);
- *off*: its private error of this seed less the error that the stand-in showed;
- *holds*: whether its private gap of this seed is within the limit.

Beside it stands a choice *without any data*: ``FairSharesClassifier`` at the largest epsilon
allowed, with the limit as its margin.

Rules, written before the first run: a stand-in *orders errors* (*gaps*) if the lower end of the
95 % interval of the mean rank correlation over seeds is at least .8; its choice *costs little* if
the upper end of the interval of the mean regret is at most .01; the margin *holds* if it does in at
least 80 % of all choices; it *helps* if its mean regret is below that of the choice without data,
or the margin holds more often, and neither is worse. "no" rows stay.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _judged import error_and_gap
from _table import asked, commit, interval, keep, kept, rule, write
from scipy import stats

from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
)
from evenhand.datasets import Dataset, Schema, load_acs_income, load_bank
from evenhand.datasets.split import Split
from evenhand.estimators import fit_many
from evenhand.generators import MarginalSynthesizer
from evenhand.privacy import FloatNoise
from evenhand.students import ConstantStudentWarning, MarginNotMet

EPSILONS, MARGINS = (0.5, 1.0, 2.0, 4.0), (0.02, 0.05, 0.1, 0.15)
METHODS = {"fair-shares": FairSharesClassifier, "fairpate": FairPATEClassifier}
SETTINGS = list(itertools.product(METHODS, EPSILONS, MARGINS))
GAPS, LARGEST = (0.05, 0.1), (1.0, 2.0, 4.0)
LIMITS = list(itertools.product(GAPS, LARGEST))
TEACHERS, SYNTHETIC = 200, Budget(epsilon=0.5, delta=1e-6)
ORDERS, LITTLE, HOLDS = 0.8, 0.01, 0.8


def half_of_bank(later: bool) -> Dataset:
    """Return one half of the calls, in the order of the file, which is that of their days."""
    data = load_bank()
    rows = np.arange(len(data.y)) >= len(data.y) // 2
    return part_of(data, rows if later else ~rows, f"bank, {'later' if later else 'earlier'} half")


def part_of(data: Dataset, rows: Any, name: str) -> Dataset:
    """Return some rows of a data set."""
    return Dataset(
        name=name,
        X=data.X.loc[rows],
        y=data.y.loc[rows],
        groups=data.groups.loc[rows],
        label=data.label,
        sensitive=data.sensitive,
        positive=data.positive,
    )


TABLES: dict[str, Callable[[], Dataset]] = {
    "MD": lambda: load_acs_income(("MD",)),
    "CT": lambda: load_acs_income(("CT",)),
    "Bank, later": lambda: half_of_bank(True),
    "Bank, earlier": lambda: half_of_bank(False),
}
STAND_INS = {"MD": ("CT",), "CT": ("MD",), "Bank, later": ("Bank, earlier",)}
DRAWN = "synthetic"


def drawn_from(data: Dataset, split: Split, seed: int) -> Dataset:
    """Return synthetic rows in the place of the private training rows."""

    def frame(table: Any, labels: Any) -> pd.DataFrame:
        return table.X.assign(group=np.asarray(table.groups), label=np.where(labels, "yes", "no"))

    # The names of all categories stand in the code book; no bound of an amount does.
    schema = Schema.of_public(frame(data, np.asarray(data.y) == 1))
    made = MarginalSynthesizer(random_state=seed, noise=FloatNoise()).fit(
        frame(split.private, np.asarray(split.private.y) == 1),
        label="label",
        sensitive="group",
        budget=SYNTHETIC,
        schema=schema,
    )
    rows = made.sample(len(split.private), balance=(), random_state=seed)
    rows["label"] = (rows["label"] == "yes").astype("int64")
    return Dataset.from_frame(rows, label="label", sensitive="group", positive=1, name=DRAWN)


def measure(data: Dataset, seed: int) -> list[tuple[float, float]]:
    """Return error and gap on the test rows for each setting, in the order of ``SETTINGS``."""
    return measured_on(data.split(public=0.2, test=0.25, random_state=seed), seed)


def measured_on(split: Split, seed: int) -> list[tuple[float, float]]:
    """Do so on a split."""
    private, public, test = split.private, split.public, split.test
    found = []
    for kind in METHODS.values():
        models = [
            kind(
                budget=Budget(epsilon=epsilon, delta=1e-5),
                fairness=DemographicParity(margin=margin),
                n_teachers=TEACHERS,
                noise=FloatNoise(),
                random_state=seed,
            )
            for epsilon, margin in itertools.product(EPSILONS, MARGINS)
        ]
        refused = fit_many(
            models,
            private.X,
            private.y,
            X_public=public.X,
            sensitive_features_public=public.groups,
        )
        for model, error in zip(models, refused, strict=True):
            if error is not None:
                raise error
            decided = model.predict(test.X)
            found.append(error_and_gap(test, decided, "demographic_parity_rest"))
    return found


def runs_of(name: str, seeds: int, file: Path | None) -> list[dict[str, Any]]:
    """Measure one private table and its stand-ins, beside what the file has."""
    done = {(run["table"], run["of"], run["seed"]): run for run in kept(file)}
    data = TABLES[name]()
    for seed in range(seeds):
        split = data.split(public=0.2, test=0.25, random_state=seed)
        todo: list[tuple[str, Callable[[], list[tuple[float, float]]]]] = [
            (name, lambda split=split, seed=seed: measured_on(split, seed)),
            *(
                (other, lambda other=other, seed=seed: measure(TABLES[other](), seed))
                for other in STAND_INS[name]
            ),
            (DRAWN, lambda split=split, seed=seed: measure(drawn_from(data, split, seed), seed)),
        ]
        for table, run in todo:
            # Public tables are the same whatever they stand in for.
            of = name if table == DRAWN else table
            if (table, of, seed) in done:
                continue
            start = time.process_time()
            found = run()
            one = {"table": table, "of": of, "seed": seed, "found": found, "commit": commit()}
            keep(file, one)
            done[table, of, seed] = one
            print(table, of, seed, f"{time.process_time() - start:.0f} s", flush=True)
    wanted = {(name, name), *((other, other) for other in STAND_INS[name]), (DRAWN, name)}
    return [run for run in done.values() if (run["table"], run["of"]) in wanted]


def allowed(found: Any, limit: float, largest: float) -> list[int]:
    """Return the settings within the limits, by these numbers."""
    return [
        i
        for i, (_, epsilon, _) in enumerate(SETTINGS)
        if epsilon <= largest and found[i][1] <= limit
    ]


def least(found: Any, among: list[int]) -> int | None:
    """Return the setting of least error among these."""
    return min(among, key=lambda i: found[i][0], default=None)


def without_data(limit: float, largest: float) -> int:
    """Return the setting that is chosen without any data."""
    return SETTINGS.index(("fair-shares", largest, limit))


def row_of(name: str, table: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the frontiers of a private table and of a stand-in, seed by seed."""
    own = {run["seed"]: np.array(run["found"]) for run in runs if run["table"] == name}
    other = {run["seed"]: np.array(run["found"]) for run in runs if run["table"] == table}
    seeds = sorted(own.keys() & other.keys())
    truth = np.mean([own[seed] for seed in seeds], axis=0)
    by_seed = []
    for seed in seeds:
        ranks = [float(stats.spearmanr(own[seed][:, i], other[seed][:, i])[0]) for i in (0, 1)]
        choices = [_choice(limits, own[seed], other[seed], truth) for limits in LIMITS]
        by_seed.append({"seed": seed, "ranks": ranks, "choices": choices})
    said = {
        key: [
            float(np.mean([c[key] for c in one["choices"] if c[key] is not None]))
            for one in by_seed
        ]
        for key in ("regret", "off", "holds", "plain_regret", "plain_holds")
    }
    row: dict[str, Any] = {"data": name, "stand_in": table, "seeds": len(seeds)}
    for key, values in {
        "rank_error": [one["ranks"][0] for one in by_seed],
        "rank_gap": [one["ranks"][1] for one in by_seed],
        **said,
    }.items():
        row[key], row[f"{key}_pm"] = interval(values)
    row["none"] = sum(c["chosen"] is None for one in by_seed for c in one["choices"])
    return row | {"by_seed": by_seed}


def _choice(limits: tuple[float, float], own: Any, shown: Any, truth: Any) -> dict[str, Any]:
    """Choose by what is shown, and say what became of it on the private side."""
    chosen, best = least(shown, allowed(shown, *limits)), least(truth, allowed(truth, *limits))
    plain = without_data(*limits)
    told: dict[str, Any] = dict.fromkeys(("regret", "off", "holds", "plain_regret"))
    if chosen is not None:
        told["off"] = float(own[chosen][0] - shown[chosen][0])
        told["holds"] = float(own[chosen][1] <= limits[0])
    if best is not None:
        told["plain_regret"] = float(truth[plain][0] - truth[best][0])
        if chosen is not None:
            told["regret"] = float(truth[chosen][0] - truth[best][0])
    return told | {
        "limits": limits,
        "chosen": None if chosen is None else list(SETTINGS[chosen]),
        "plain_holds": float(own[plain][1] <= limits[0]),
    }


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Judge each stand-in by the rules on top of this file."""
    out = []
    for row in rows:
        helps = row["regret"] <= row["plain_regret"] and row["holds"] >= row["plain_holds"]
        better = row["regret"] < row["plain_regret"] or row["holds"] > row["plain_holds"]
        for words, agrees in (
            ("orders errors", row["rank_error"] - row["rank_error_pm"] >= ORDERS),
            ("orders gaps", row["rank_gap"] - row["rank_gap_pm"] >= ORDERS),
            ("its choice costs little", row["regret"] + row["regret_pm"] <= LITTLE),
            ("the margin holds", row["holds"] >= HOLDS),
            ("it helps, beside a choice without data", helps and better),
        ):
            out.append(
                {
                    "data": row["data"],
                    "stand_in": row["stand_in"],
                    "claim": words,
                    "agrees": "yes" if agrees else "no",
                }
            )
    return out


def line(row: dict[str, Any]) -> str:
    """Return one pair of tables."""

    def said(key: str, form: str = ".3f") -> str:
        return f"{row[key]:{form}} ± {row[f'{key}_pm']:{form}}"

    return (
        f"| {row['data']} | {row['stand_in']} | {said('rank_error', '.2f')} "
        f"| {said('rank_gap', '.2f')} | {said('regret', '.4f')} | {said('off', '+.3f')} "
        f"| {said('holds', '.0%')} | {said('plain_regret', '.4f')} "
        f"| {said('plain_holds', '.0%')} | {row['none']} | {row['seeds']} |"
    )


def save(commit: str, rows: list[dict[str, Any]]) -> None:
    """Write rows and verdicts."""
    told = claims(rows)
    write(
        "stand_in",
        {"commit": commit, "rows": rows, "claims": told},
        "# Choosing on stand-in data\n",
        f"At commit {commit}. What is measured, and when a row agrees, stands in the script, which "
        "was written before the first run. All models are ours, with sound accounting "
        "(FairSharesClassifier and FairPATEClassifier).\n",
        "Means over seeds, with half widths of 95 % intervals. *rank*: of 32 settings, stand-in "
        "against private. Six choices a seed: limits of the gap .05, .1 and of epsilon 1, 2, 4. "
        "*none*: how often no setting was within the limits by the stand-in.\n",
        "| private | stand-in | rank of errors | rank of gaps | regret | off | margin holds "
        "| regret, no data | holds, no data | none | seeds |",
        rule(11),
        *map(line, rows),
        "\n| private | stand-in | claim | agrees? |",
        rule(4),
        *(f"| {c['data']} | {c['stand_in']} | {c['claim']} | {c['agrees']} |" for c in told),
    )


def main() -> None:
    """Run, print, and save if asked to."""
    given = asked(__doc__, seeds=5, private=STAND_INS).parse_args()
    warnings.simplefilter("ignore", MarginNotMet)
    warnings.simplefilter("ignore", ConstantStudentWarning)
    rows, at = [], ""
    for name in given.private:
        runs = runs_of(name, given.seeds, given.kept)
        at = runs[0]["commit"]
        rows += [row_of(name, table, runs) for table in (*STAND_INS[name], DRAWN)]
    for row in rows:
        print(line(row))
    if given.save:
        save(at, rows)


if __name__ == "__main__":
    main()

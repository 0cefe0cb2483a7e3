"""What nobody has run of FairPATE: cold start, teachers, T, both sigmas, public rows, more groups.

    python reproductions/fairpate_settings.py [--task ...] [--seeds 6] [--runs FILE] [--save]

FairPATE's Table 1 has one setting for each of five data sets and no study of any. Here one setting
at a time is moved through the published range, the others at their medians, for FairPATE alone
(labels, a gate, a student that knows of no margin):

- *sound*: ``FairPATEClassifier(student_margin=False)``, our gate and account;
- *printed*: ``AsPrintedFairPATEClassifier``, the paper's gate and accounting, NOT PRIVATE AS
  CLAIMED; what its draws cost in sound accounting stands beside it.

Centre: 100 teachers, T .6, sigma_1 .55, sigma_2 .15 votes for each teacher, M 50, 2,000 public
rows. Moved: teachers 50 to 200; T .5 to .87, sigma_1 .4 to .73, sigma_2 .067 to .2 for each teacher
(the ranges of Table 1); M 10 to 200 (the paper names no value); public rows 500 to 10,000. Epsilon
3, delta 1e-5, margin .05 of demographic parity against the rest. ``"default"`` is the sound one
with our number of teachers and noise. Three tasks on ACS-Income 2018, Connecticut and Maryland:

- income above 50,000 by sex (two groups, two classes);
- the same by race (five groups);
- hours worked a week, below 35, 35 to 40, above 40, by race (five groups, three classes): the file
  has no incomes as numbers, of which three classes could be made.

Saved are six seeds of all three tasks, by both algorithms.
Every seed is a split (25 % test, 10,000 rows that may be public, about 29,600 private) with
floating-point noise of its own: error and gap on test rows, labels that the student learned from,
answers after which the answered set was outside its margin.

A setting *matters* for the error (rule written before the first run) if its least and its largest
value differ by more than .005, surely: the 95 % interval of the paired difference over seeds lies
beyond it on one side. Nothing is chosen by these rows, and no default follows from them.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _table import asked, commit, interval, keep, kept, rule, write

from evenhand import Budget, DemographicParity, FairPATEClassifier
from evenhand.baselines.as_printed_fairpate import AsPrintedFairPATEClassifier
from evenhand.datasets import Dataset, load_acs_income
from evenhand.datasets.split import Split
from evenhand.fairness import fairness_report
from evenhand.privacy import ConfidentGNMax, FloatNoise
from evenhand.students import ConstantStudentWarning
from evenhand.students.student import FewAnswersWarning

CENTRE: dict[str, float] = {
    "teachers": 100,
    "T": 0.6,
    "sigma_1": 0.55,
    "sigma_2": 0.15,
    "M": 50,
    "public": 2000,
}
MOVED: Mapping[str, tuple[float, ...]] = {
    "teachers": (50, 100, 150, 200),
    "T": (0.5, 0.6, 0.87),
    "sigma_1": (0.4, 0.55, 0.73),
    "sigma_2": (0.067, 0.1, 0.15, 0.2),
    "M": (10, 50, 100, 200),
    "public": (500, 1000, 2000, 5000, 10_000),
}
BUDGET, MARGIN = Budget(epsilon=3.0, delta=1e-5), 0.05
SOUND, PRINTED, DEFAULT = "sound", "printed, NOT PRIVATE AS CLAIMED", "default"
KINDS = {SOUND: FairPATEClassifier, PRINTED: AsPrintedFairPATEClassifier}
MATTERS, POOL = 0.005, 10_000


def hours_by_race() -> Dataset:
    """Return the hours worked a week, in three classes."""
    data = load_acs_income(sensitive="race")
    hours = data.X["WKHP"]
    return Dataset(
        name="acs hours",
        X=data.X.drop(columns=["WKHP"]),
        y=(hours >= 35).astype("int64") + (hours > 40).astype("int64"),
        groups=data.groups,
        label="hours",
        sensitive=data.sensitive,
    )


TASKS = {
    "income by sex": lambda: load_acs_income(sensitive="sex"),
    "income by race": lambda: load_acs_income(sensitive="race"),
    "hours by race": hours_by_race,
}


class Case(NamedTuple):
    """One setting of one algorithm; ``moved`` is "" at the centre."""

    algorithm: str
    moved: str
    value: float

    @property
    def settings(self) -> dict[str, float]:
        """All settings."""
        return CENTRE | ({self.moved: self.value} if self.moved in CENTRE else {})


CASES = [
    Case(algorithm, moved, value)
    for algorithm, values in itertools.product(
        KINDS, [("", (0.0,)), *((name, values) for name, values in MOVED.items())]
    )
    for moved, found in (values,)
    for value in found
    if not moved or value != CENTRE[moved]
] + [Case(SOUND, DEFAULT, 0.0)]


def run(case: Case, split: Split, seed: int) -> list[float] | None:
    """Fit one case: error, gap, labels, answers outside, sound epsilon; None without answers."""
    at, private, test = case.settings, split.private, split.test
    n = int(at["teachers"])
    public = split.public.take(np.arange(int(at["public"])))
    more: dict[str, Any] = {"student_margin": False}
    if case.moved != DEFAULT:
        mechanism = ConfidentGNMax(
            threshold=at["T"] * n, sigma_check=at["sigma_1"] * n, sigma=at["sigma_2"] * n
        )
        more |= {"n_teachers": n, "mechanism": mechanism, "cold_start": int(at["M"])}
    model = KINDS[case.algorithm](
        budget=BUDGET,
        fairness=DemographicParity(margin=MARGIN),
        noise=FloatNoise(),
        random_state=seed,
        **more,
    )
    try:
        model.fit(private.X, private.y, X_public=public.X, sensitive_features_public=public.groups)
    except ValueError as error:
        if "answer" not in str(error):
            raise
        return None
    n_classes = len(np.unique(test.y))
    positive = {"positive": 1} if n_classes == 2 else {}
    report = fairness_report(
        test.y, model.predict(test.X), test.groups, classes=tuple(range(n_classes)), **positive
    )
    fitted = model.fitted_
    return [
        report["error_rate"].value,
        report["demographic_parity_rest"].value,
        float(model.answers_.n_answered),
        float(0 if fitted.disparity is None else fitted.disparity.n_outside),
        float(fitted.epsilon_spent),
    ]


def runs_of(task: str, seeds: int, file: Path | None, kinds: list[str]) -> list[dict[str, Any]]:
    """Run every case of a task by these algorithms, beside what the file has."""
    done = {(one["task"], *one["case"], one["seed"]): one for one in kept(file)}
    data = TASKS[task]()
    share = POOL / (0.75 * len(data.y))
    for seed in range(seeds):
        split, start = None, time.process_time()
        for case in CASES:
            if (task, *case, seed) in done or case.algorithm not in kinds:
                continue
            split = split or data.split(public=share * 1.001, test=0.25, random_state=seed)
            found = {"task": task, "case": list(case), "seed": seed, "commit": commit()}
            found["found"] = run(case, split, seed)
            keep(file, found)
            done[(task, *case, seed)] = found
        print(task, seed, f"{time.process_time() - start:.0f} s", flush=True)
    return [one for one in done.values() if one["task"] == task]


def row_of(task: str, case: Case, runs: list[dict[str, Any]], guess: float) -> dict[str, Any]:
    """Return one case over seeds; without answers a student guesses the majority class."""
    own = sorted((one for one in runs if one["case"] == list(case)), key=lambda one: one["seed"])
    every = [one["found"] or [guess, 0.0, 0.0, 0.0, 0.0] for one in own]
    row: dict[str, Any] = {"task": task, "algorithm": case.algorithm, "moved": case.moved}
    row |= {
        "value": case.value,
        "seeds": len(own),
        "failed": sum(one["found"] is None for one in own),
    }
    for i, key in enumerate(("error", "gap", "answers", "outside", "sound_epsilon")):
        row[f"all_{key}"] = [one[i] for one in every]
        row[key], row[f"{key}_pm"] = interval(row[f"all_{key}"])
    return row


def effects(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say of each setting whether its least and its largest value differ."""
    out = []
    for task, algorithm in dict.fromkeys((row["task"], row["algorithm"]) for row in rows):
        here = {
            (row["moved"], row["value"]): row
            for row in rows
            if (row["task"], row["algorithm"]) == (task, algorithm)
        }
        for moved, values in MOVED.items():
            least, most = (
                here[("", 0.0) if end == CENTRE[moved] else (moved, end)]
                for end in (values[0], values[-1])
            )
            apart = np.subtract(most["all_error"], least["all_error"])
            mean, half = interval(list(apart))
            out.append(
                {
                    "task": task,
                    "algorithm": algorithm,
                    "moved": moved,
                    "range": [values[0], values[-1]],
                    "error": [least["error"], most["error"]],
                    "gap": [least["gap"], most["gap"]],
                    "answers": [least["answers"], most["answers"]],
                    "difference": mean,
                    "difference_pm": half,
                    "matters": abs(mean) - half > MATTERS,
                }
            )
    return out


def effect_line(row: dict[str, Any]) -> str:
    """Return one setting's effect."""
    (low, high), error, gap, answers = (row[k] for k in ("range", "error", "gap", "answers"))
    return (
        f"| {row['task']} | {row['algorithm']} | {row['moved']} | {low:g} to {high:g} "
        f"| {answers[0]:,.0f} to {answers[1]:,.0f} | {error[0]:.4f} to {error[1]:.4f} "
        f"| {gap[0]:.3f} to {gap[1]:.3f} | {row['difference']:+.4f} ± {row['difference_pm']:.4f} "
        f"| {'yes' if row['matters'] else 'no'} |"
    )


def line(row: dict[str, Any]) -> str:
    """Return one case."""
    at = row["moved"] or "centre"
    value = f" {row['value']:g}" if row["moved"] in CENTRE else ""
    return (
        f"| {row['task']} | {row['algorithm']} | {at}{value} | {row['answers']:,.0f} "
        f"| {row['error']:.4f} ± {row['error_pm']:.4f} | {row['gap']:.4f} ± {row['gap_pm']:.4f} "
        f"| {row['outside']:,.0f} | {row['sound_epsilon']:.3g} "
        f"| {row['failed']} of {row['seeds']} |"
    )


def save(commit: str, rows: list[dict[str, Any]]) -> None:
    """Write rows and effects."""
    told = effects(rows)
    write(
        "fairpate_settings",
        {"commit": commit, "rows": rows, "effects": told},
        "# FairPATE's settings, one at a time\n",
        f"At commit {commit}. What is moved, and when it matters, stands in the script, which was "
        "written before the first run. *sound*: our gate and account. *printed*: the paper's gate "
        "and accounting at epsilon 3, NOT PRIVATE AS CLAIMED; *sound epsilon* is what the draws "
        "cost (without the moment of stopping). T, sigma_1 and sigma_2 are votes for each "
        "teacher. *labels* are those that the student learned from; *outside* counts the answers "
        "after which the answered set was outside its margin.\n",
        "| task | algorithm | setting | from, to | labels | error | gap | error, to less from "
        "| matters? |",
        rule(9),
        *map(effect_line, told),
        "\n| task | algorithm | setting | labels | error | gap | outside | sound epsilon "
        "| without a label |",
        rule(9),
        *map(line, rows),
    )


def main() -> None:
    """Run, print, and save if asked to."""
    given = asked(__doc__, seeds=6, task=TASKS, algorithm=KINDS).parse_args()
    warnings.simplefilter("ignore", ConstantStudentWarning)
    warnings.simplefilter("ignore", FewAnswersWarning)
    rows, at = [], ""
    for task in given.task:
        runs = runs_of(task, given.seeds, given.kept, given.algorithm)
        y = np.asarray(TASKS[task]().y)
        guess = float(1 - np.bincount(y).max() / len(y))
        at = " and ".join(sorted({*at.split(" and "), *(one["commit"] for one in runs)} - {""}))
        run_cases = {tuple(one["case"]) for one in runs}
        rows += [row_of(task, case, runs, guess) for case in CASES if tuple(case) in run_cases]
    for told in effects(rows):
        print(effect_line(told))
    if given.save:
        save(at, rows)


if __name__ == "__main__":
    main()

"""Persons with many records, one owner: teachers beside DP-SGD that protects a person.

    python reproductions/many_records.py [--seeds 5] [--kept FILE] [--save]

rwm5yr: 19,609 answers of 6,127 Germans in the years 1984 to 1988, at most five of each (1,600 of
them five, 1,150 one). Labels: whether somebody works (``outwork``), and whether somebody saw a
doctor in the last three months (``docvis`` above 0); features are all other columns. A seed is a
split by persons: a quarter of them test rows with all their records, of the rest a fifth public.
Epsilon 1 and 3 at delta 1e-5, *for a person with all records*, add or remove one; noise from the
operating system (floating-point), defaults throughout. Error on the test rows.

- *teachers*: ``PATEClassifier`` with ``unit_ids``: all records of a person go to one teacher.
- *teachers and counts*: the same with ``public="synthetic"`` beside the public rows.
- *DP-SGD, one record*: ``DPSGDClassifier`` on one record of each person, drawn by the seed, so that
  its claim for a record is one for a person.
- *DP-SGD, all records*: on all of them. A person is five records at most, so with k = 5 it claims
  epsilon / k and delta / (k e^(epsilon (k - 1) / k)) for a record (group privacy).

(DP-SGD that clips the sum of a person's gradients would stand between; there is none here.)

Rule, written before the first run: teachers, and teachers and counts, "agree" where they are ahead:
the 95 % interval over seeds of their error less that of the better DP-SGD, by its own mean, lies
below 0. They are "level" where it holds 0, else "no". "no" rows stay.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _table import Mean, Runs, asked, commit, interval, rule, select, write

from evenhand import Budget, DPSGDClassifier, PATEClassifier
from evenhand.datasets.sources import read_frame
from evenhand.privacy import FloatNoise

TEACHERS = ("teachers", "teachers and counts")
ONE, ALL = "DP-SGD, one record", "DP-SGD, all records"
WAYS = (*TEACHERS, ONE, ALL)
LABELS = {"works": ("outwork", 0), "saw a doctor": ("docvis", 1)}
EPSILONS, DELTA, MOST = (1.0, 3.0), 1e-5, 5


class Part(NamedTuple):
    """Records, their labels, and whose they are."""

    X: pd.DataFrame
    y: np.ndarray
    ids: np.ndarray


@cache
def table() -> pd.DataFrame:
    """Return the answers."""
    return read_frame("rwm5yr", "rwm5yr.csv")


def split(label: str, seed: int) -> tuple[Part, Part, Part]:
    """Return private, public and test rows."""
    frame, (column, least) = table(), LABELS[label]
    persons = np.random.default_rng(seed).permutation(frame["id"].unique())
    n = len(persons)
    test, public, private = np.split(persons, [n // 4, n // 4 + (n - n // 4) // 5])
    own = frame[column] >= 1 if least else frame[column] == 0
    parts = []
    for ids in (private, public, test):
        rows = frame["id"].isin(ids)
        X = frame[rows].drop(columns=["id", column]).reset_index(drop=True)
        parts.append(Part(X, own[rows].to_numpy(), frame["id"][rows].to_numpy()))
    private_rows, public_rows, test_rows = parts
    return private_rows, public_rows, test_rows


def of_a_record(budget: Budget) -> Budget:
    """Return what a record may cost so that ``MOST`` of them cost the budget."""
    each = budget.epsilon / MOST
    return Budget(epsilon=each, delta=budget.delta / (MOST * math.exp((MOST - 1) * each)))


def fitted(way: str, budget: Budget, seed: int, private: Part, public: Part) -> Any:
    """Fit a way to a split."""
    common: dict[str, Any] = {"noise": FloatNoise(), "random_state": seed}
    X, y, ids = private
    if way in TEACHERS:
        drawn = None if way == "teachers" else "synthetic"
        model = PATEClassifier(budget, public=drawn, **common)
        return model.fit(X, y, unit_ids=ids, X_public=public.X)
    if way == ALL:
        return DPSGDClassifier(of_a_record(budget), **common).fit(X, y, X_public=public.X)
    order = np.random.default_rng(seed).permutation(len(y))
    kept = order[np.unique(ids[order], return_index=True)[1]]
    return DPSGDClassifier(budget, **common).fit(X.iloc[kept], y[kept], X_public=public.X)


def measure(label: str, seed: int, epsilon: float, way: str) -> dict[str, Any]:
    """Return the error on test rows of one fit."""
    private, public, test = split(label, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise: the error says it
        model = fitted(way, Budget(epsilon=epsilon, delta=DELTA), seed, private, public)
    error = float((np.asarray(model.predict(test.X)) != test.y).mean())
    return {"label": label, "seed": seed, "epsilon": epsilon, "way": way, "error": error}


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each label and budget how both kinds of teachers stand to the better DP-SGD."""
    found = []
    for label in LABELS:
        for epsilon in EPSILONS:
            own = select(rows, label=label, epsilon=epsilon)
            of = {way: [row["error"] for row in select(own, way=way)] for way in WAYS}
            best = min((ONE, ALL), key=lambda way: np.mean(of[way]))
            for way in TEACHERS:
                less = interval(a - b for a, b in zip(of[way], of[best], strict=True))
                agrees = less.judged("no", "level", "yes")
                about = {"label": label, "epsilon": epsilon, "way": way, "beside": best}
                found.append(about | {"mean": less.mean, "half": less.half, "agrees": agrees})
    return found


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the tables of the page."""
    lines = ["", "| judged | label | epsilon | beside | less error | ahead? |", rule(6)]
    for one in verdicts(rows):
        lines.append(
            f"| {one['way']} | {one['label']} | {one['epsilon']:g} | {one['beside']} "
            f"| {Mean(one['mean'], one['half']):+.4f} | {one['agrees']} |"
        )
    lines += ["", f"| label | epsilon | {' | '.join(WAYS)} |", rule(2 + len(WAYS))]
    for label in LABELS:
        for epsilon in EPSILONS:
            own = select(rows, label=label, epsilon=epsilon)
            errors = [interval(row["error"] for row in select(own, way=way)) for way in WAYS]
            cells = " | ".join(f"{error:.4f}" for error in errors)
            lines.append(f"| {label} | {epsilon:g} | {cells} |")
    return lines


def save(rows: list[dict[str, Any]]) -> None:
    """Write rows, verdicts and the page."""
    n = len({row["seed"] for row in rows})
    title = f"# Persons with many records: teachers beside DP-SGD, {n} seeds"
    about = {"commit": commit(), "rows": list(rows), "verdicts": verdicts(rows)}
    write("many_records", about, title, *lines_of(rows))


def main() -> None:
    """Measure every case that is not kept."""
    given = asked(__doc__, seeds=5).parse_args()
    runs = Runs(given.kept)
    seeds = range(given.seeds)
    runs.complete(measure, label=LABELS, seed=seeds, epsilon=EPSILONS, way=WAYS)
    print(*lines_of(runs), sep="\n")
    if given.save:
        save(runs)


if __name__ == "__main__":
    main()

"""What two drawn tables keep: people of rwm5yr, and their answers in up to five years.

    python reproductions/two_tables.py [--seeds 3] [--save]

The persons are the 6,127 people of the German Socio-Economic Panel in their first year there:
age, married, kids, education; the label is whether they work, the group their gender. The visits
are all 19,609 answers: year, visits to doctors and hospitals, income of the household. Key is the
person, ``most=5``, half of mu squared for each table, delta 1e-5, bounds and categories declared;
noise is from the operating system. As many persons are drawn as there are, ``balance=()``.

Scores are those of ``fidelity`` (1 is best), with label and group joined to the visits, and the
number of visits to the persons. *Number* is the largest total variation distance of the number of
visits, *doctors* the largest difference of mean visits to doctors, over label and group. *Alike* is
the share of variance of income that lies between persons, *same doctors* that of visits to doctors.
*Age* is the correlation of age with the number of visits.

The rule, written before the first run in which persons have levels in columns of their visits:
what makes visits of one person alike is *kept* where the share of income between persons is at
least .4 at epsilon 3 and at epsilon 10. No other number may get worse than it was without levels
(commit 5a8ef7b): a mean that is further from the best, or from the real one, by more than both half
widths together. How levels are made and their share of the budget were chosen on a made panel.

It is no test: all rows are those that were learnt.
"""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from _table import asked, commit, interval, rule, write

from evenhand import Budget
from evenhand.datasets import Schema
from evenhand.datasets.sources import read_frame
from evenhand.generators.tables.fidelity import fidelity
from evenhand.generators.tables.linked_tables import NUMBER
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.generators.tables.visits_evaluation import between_persons

EPSILONS, MOST = (1.0, 3.0, 10.0), 5
CONDITIONS = ["work", "gender"]
PERSONS = Schema.declared(
    {
        "age": {"bounds": (25, 64)},
        "married": ["0", "1"],
        "kids": ["0", "1"],
        "edlevel": ["1", "2", "3", "4"],
        "work": ["no", "yes"],
        "gender": ["Female", "Male"],
    }
)
VISITS = Schema.declared(
    {
        "year": {"bounds": (1984, 1988)},
        "docvis": {"bounds": (0, 60)},
        "hospvis": {"bounds": (0, 20)},
        "hhninc": {"bounds": (0, 15)},
    }
)
MEASURED = {
    "persons": "persons, pairs",
    "visits": "visits, columns",
    "visit_pairs": "visits, pairs",
    "number": "number",
    "doctors": "doctors",
    "alike": "alike",
    "same_doctors": "same doctors",
    "age": "age",
}


@cache
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return persons and visits."""
    frame = read_frame("rwm5yr", "rwm5yr.csv")
    persons = frame.groupby("id", sort=False).first().reset_index()
    persons["work"] = persons["outwork"].map({0: "yes", 1: "no"})
    persons["gender"] = persons["female"].map({0: "Male", 1: "Female"})
    return persons[["id", *PERSONS.names]], frame[["id", *VISITS.names]]


def measure(epsilon: float, seed: int) -> dict[str, float]:
    """Fit once, draw, and compare."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise: the scores say it
        made = TwoTableSynthesizer(random_state=seed).fit(
            *tables(),
            key="id",
            label="work",
            sensitive="gender",
            budget=Budget(epsilon=epsilon, delta=1e-5),
            most=MOST,
            schema=PERSONS,
            visits_schema=VISITS,
        )
    seconds = time.process_time() - began
    drawn = made.sample(len(tables()[0]), balance=(), random_state=seed)
    real, new = made.joined(*tables()), made.joined(*drawn)
    scores = [
        fidelity(one, other, schema=codec.schema)
        for one, other, codec in zip(
            real, new, (made.codec_.persons, made.codec_.visits), strict=True
        )
    ]
    shares = [
        of[0].groupby(CONDITIONS)[NUMBER].value_counts(normalize=True).unstack(fill_value=0.0)
        for of in (real, new)
    ]
    apart = (shares[0].sub(shares[1], fill_value=0.0)).abs().sum(axis=1) / 2
    doctors = [of[1].groupby(CONDITIONS)["docvis"].mean() for of in (real, new)]
    return {
        "persons": scores[0].pair_score,
        "visits": scores[1].column_score,
        "visit_pairs": scores[1].pair_score,
        "number": float(apart.max()),
        "doctors": float((doctors[0] - doctors[1]).abs().max()),
        "alike": between_persons(drawn[1]["hhninc"], drawn[1]["id"]),
        "same_doctors": between_persons(drawn[1]["docvis"], drawn[1]["id"]),
        "age": float(new[0]["age"].corr(new[0][NUMBER])),
        "seconds": seconds,
    }


def real_row() -> dict[str, float]:
    """Return what is measured of the real tables, where it is not a comparison."""
    persons, visits = tables()
    number = visits["id"].value_counts().reindex(persons["id"]).to_numpy()
    age = float(np.corrcoef(persons["age"], number)[0, 1])
    doctors = float(visits["docvis"].mean())
    between = [between_persons(visits[name], visits["id"]) for name in ("hhninc", "docvis")]
    shares = dict(zip(("alike", "same_doctors"), between, strict=True))
    return {**shares, "age": age, "mean_doctors": doctors}


def rows_of(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each budget: mean and half width of each measure, and all values."""
    out: list[dict[str, Any]] = []
    for epsilon in EPSILONS:
        own = [run for run in runs if run["epsilon"] == epsilon]
        row: dict[str, Any] = {"epsilon": epsilon, "values": {}}
        for name in MEASURED:
            values = [run[name] for run in own]
            row[name], row[f"{name}_half"] = interval(values)
            row["values"][name] = values
        out.append({**row, "seconds": float(np.mean([run["seconds"] for run in own]))})
    return out


def save(rows: list[dict[str, Any]], real: dict[str, float], seeds: int) -> None:
    """Write all rows as JSON and as a table."""
    at = commit()
    lines = [
        f"# People of rwm5yr and their answers, two drawn tables, {seeds} seeds, commit {at}",
        "",
        f"| epsilon | {' | '.join(MEASURED.values())} |",
        rule(1 + len(MEASURED)),
        *(
            f"| {row['epsilon']:g} | "
            + " | ".join(f"{row[name]:.3f} ± {row[f'{name}_half']:.3f}" for name in MEASURED)
            + " |"
            for row in rows
        ),
        f"| real | - | - | - | - | (mean {real['mean_doctors']:.2f}) | {real['alike']:.3f} | "
        f"{real['same_doctors']:.3f} | {real['age']:.3f} |",
    ]
    about = {"commit": at, "seeds": seeds, "real": real, "rows": rows}
    write("two_tables", about, *lines)


def main() -> None:
    """Measure every budget and seed."""
    given = asked(__doc__, seeds=3, keeps=False).parse_args()
    runs = [
        {"epsilon": epsilon, **measure(epsilon, seed)}
        for epsilon in EPSILONS
        for seed in range(given.seeds)
    ]
    rows = rows_of(runs)
    for row in rows:
        print(row)
    if given.save:
        save(rows, real_row(), given.seeds)


if __name__ == "__main__":
    main()

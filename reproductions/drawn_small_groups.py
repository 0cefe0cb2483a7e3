"""Small groups in drawn rows: the equalized-odds gap of models, with shrunk rates or not.

    python reproductions/drawn_small_groups.py [--seeds 5] [--data NAME ...] [--keep FILE] [--save]

COMPAS by race (four; the smallest 385 of 6,172) and ACS-Income of Connecticut and Maryland by race
(five; the smallest 130 of 52,827). Every seed is a split of its own, half private and half test.
The schema is that of the table; delta is 1e-5, noise exact. 10,000 rows are drawn from
``MarginalSynthesizer`` in each way, where it does not refuse: rows of a label and group that the
noise hides are not drawn. Logistic regression and gradient boosting, which see the group, are
trained on them, and on the real private rows. Error and gap are means of the two models: the
largest difference between two groups of true or of false positive rates, of all groups, and of
those with at least 50 test rows of each label.

The ways: "natural" and "balanced" rows; ``even_rates`` for equalized odds and for "both", "before"
and with rates that are "shrunk" towards those of all groups by their noise (``ShrunkTrial``).
Rules, from before the first run, with no setting chosen by a test row: "shrunk" pays in a table at
an epsilon, for a notion, where the gap of all groups, paired by seeds with "before", is surely
lower (95 % interval) and the error is not surely higher by .005. It is kept if it pays somewhere
and is surely worse, in the gap of all or of large groups, nowhere. Seeds are counted on which both
were drawn; with fewer than three there is no verdict. "no" rows stay.

It was measured as an option of ``even_rates``. It paid once, and was surely worse once, so it is
not kept there, and stands here alone. All ran again when odds of labels had a budget and counts of
labels and groups less: then it pays nowhere, and at epsilon 1 the smallest groups of ACS-Income are
refused.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from _shrunk_rates import shrunk
from _table import Runs, asked, commit, interval, rule, write

from evenhand import Budget
from evenhand.datasets import Schema, load_acs_income
from evenhand.datasets.compas import load_compas
from evenhand.generators import MarginalSynthesizer, even_rates
from evenhand.generators.tables.utility import Judge

TABLES = ("COMPAS", "ACS-Income")
EPSILONS = (1.0, 3.0)
N_DRAWN, LARGE = 10_000, 50
MODELS = ("logistic regression", "gradient boosting")
NOTIONS = {"odds": "equalized-odds", "both": "both"}
HOW = ("before", "shrunk")
WAYS = ("real", "natural", "balanced", *(f"{n}, {how}" for n in NOTIONS for how in HOW))
MEASURES = ("error", "gap", "gap_large")
MOST_ERROR, LEAST_SEEDS = 0.005, 3


def frame_of(name: str) -> pd.DataFrame:
    """Return the table with its group and label as text."""
    if name == "COMPAS":
        data = load_compas()
        frame = data.X.assign(group=np.asarray(data.groups).astype(str))
    else:
        data = load_acs_income(("CT", "MD"))
        frame = data.X.assign(sex=np.asarray(data.groups).astype(str))
        frame = frame.rename(columns={"race": "group"}).astype({"group": str})
    return frame.assign(label=np.asarray(data.y).astype(str))


def measure(data: str, epsilon: float, seed: int) -> list[dict[str, Any]]:
    """Return error and gaps of models of the rows of each way."""
    frame = frame_of(data)
    order = np.random.default_rng(seed).permutation(len(frame))
    private, test = (frame.iloc[part] for part in np.array_split(order, 2))
    schema = Schema.of_public(frame)
    made = MarginalSynthesizer(random_state=seed).fit(
        private,
        label="label",
        sensitive="group",
        budget=Budget(epsilon=epsilon, delta=1e-5),
        schema=schema,
    )
    rows = {
        "real": private,
        "natural": made.sample(N_DRAWN, balance=(), random_state=seed),
    }
    with suppress(ValueError):  # refused: see above
        rows["balanced"] = made.sample(N_DRAWN, random_state=seed)
    for notion, words in NOTIONS.items():
        for how in HOW:
            make = even_rates if how == "before" else shrunk
            shares = make(made, words, random_state=seed)
            with suppress(ValueError):
                rows[f"{notion}, {how}"] = made.sample(N_DRAWN, shares=shares, random_state=seed)
    case = {"data": data, "epsilon": epsilon, "seed": seed}
    return [{**case, "way": way, **_of(rows[way], test, schema)} for way in rows]


def _of(rows: pd.DataFrame, test: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """Error and gaps, in the mean over the models."""
    truth, groups = test["label"].to_numpy() == "1", test["group"].to_numpy()
    names = np.unique(groups)
    sizes = np.array([[(groups[truth == y] == g).sum() for g in names] for y in (True, False)])
    found = []
    for model in MODELS:
        judge = Judge.of(
            rows[list(test.columns)],
            label="label",
            sensitive=["group"],
            model=model,
            use_sensitive=True,
            schema=schema,
            random_state=0,
        )
        said = judge.probabilities(test, ("0", "1")).argmax(axis=1) == 1
        rates = np.array(
            [[said[(truth == y) & (groups == g)].mean() for g in names] for y in (True, False)]
        )
        large = rates[:, (sizes >= LARGE).all(axis=0)]
        found.append(
            [float((said != truth).mean()), *(np.ptp(r, axis=1).max() for r in (rates, large))]
        )
    error, gap, gap_large = np.mean(found, axis=0).tolist()
    return {"error": error, "gap": gap, "gap_large": gap_large}


def rows_of(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per table, epsilon and way; "shrunk" is beside "before", seed by seed."""
    out: list[dict[str, Any]] = []
    for name, epsilon in dict.fromkeys((run["data"], run["epsilon"]) for run in runs):
        own = [run for run in runs if (run["data"], run["epsilon"]) == (name, epsilon)]
        of = {way: {r["seed"]: r for r in own if r["way"] == way} for way in WAYS}
        for way, drawn in of.items():
            values = {what: [run[what] for run in drawn.values()] for what in MEASURES}
            row = {"data": name, "epsilon": epsilon, "way": way, "values": values}
            notion, _, how = way.partition(", ")
            gain: dict[str, tuple[float, float]] = {}
            agrees = "-"
            if how == "shrunk" and len(drawn) >= LEAST_SEEDS:
                before = of[f"{notion}, before"]
                gain = {
                    what: interval([before[seed][what] - drawn[seed][what] for seed in drawn])
                    for what in MEASURES
                }
                mean, half = gain["gap"]
                dearer = sum(gain["error"]) < -MOST_ERROR
                agrees = "yes" if mean > half and not dearer else "no"
            out.append({**row, "gain": gain, "agrees": agrees})
    return out


def is_kept(rows: list[dict[str, Any]]) -> bool:
    """Whether it pays somewhere, and is surely worse nowhere."""
    shrunk = [row for row in rows if row["gain"]]
    worse = any(sum(row["gain"][what]) < 0 for row in shrunk for what in ("gap", "gap_large"))
    return any(row["agrees"] == "yes" for row in shrunk) and not worse


def save(rows: list[dict[str, Any]], seeds: int) -> None:
    """Write all rows as JSON and as a table."""
    at = commit()
    lines = [
        f"# Small groups in drawn rows, {seeds} seeds, commit {at}",
        f"By the rules of the script, shrunk rates are {'' if is_kept(rows) else 'not '}kept.",
        "",
        "| data | epsilon | rows | error | gap of all groups | gap of large groups | "
        "lower than before, all | large | agrees? |",
        rule(9),
    ]
    for row in rows:
        cells = [row["data"], f"{row['epsilon']:g}", row["way"]]
        for what in MEASURES:
            values = row["values"][what]
            many = len(values) >= LEAST_SEEDS
            cells.append("{:.3f} ± {:.3f}".format(*interval(values)) if many else "refused")
        for what in ("gap", "gap_large"):
            gain = row["gain"].get(what)
            cells.append("" if gain is None else f"{gain[0]:+.3f} ± {gain[1]:.3f}")
        lines.append("| " + " | ".join([*cells, row["agrees"]]) + " |")
    write("drawn_small_groups", {"commit": at, "seeds": seeds, "rows": rows}, *lines)


def main() -> None:
    """Measure every table, epsilon and seed that is not kept."""
    given = asked(__doc__, seeds=5, data=TABLES).parse_args()
    warnings.simplefilter("ignore")  # of noise and of groups that it hides: the gaps say it
    seeds = range(given.seeds)
    runs = Runs(given.kept)
    runs.complete(measure, data=given.data, epsilon=EPSILONS, seed=seeds)
    rows = rows_of(runs)
    for row in rows:
        print(row)
    if given.save:
        save(rows, given.seeds)


if __name__ == "__main__":
    main()

"""Where SF_T's fairness is lost: from one fair teacher to the vote, its student, and its noise.

    python reproductions/sf_pate_teachers.py [--seeds 10] [--save]

On validation rows of ACS-Income alone, as in ``sf_pate_choices.py``, with 300 teachers, demographic
parity, alpha .01. Each line goes one step further: one teacher that is fair on its own rows (mean
over teachers), their vote without noise beside that of teachers who know no constraint, a student
of that vote's exact shares, and what ``SFPATEClassifier`` makes of noisy ones at epsilon 1: without
sums over groups as in the paper, and with them, the default. Accuracy and violation (worst group
against everybody): mean and half width of a 95 % interval over seeds.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from _table import asked, commit, interval, rule, write
from sf_pate_choices import TABLES, TEACHERS, fitted, parts
from sf_pate_figure2 import by_dual, held

from evenhand.datasets import PublicEncoder, load_acs_income
from evenhand.datasets.dataset import Table
from evenhand.fairness import DemographicParity
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.tally import Tally
from evenhand.students import MarginNotMet
from evenhand.students.lagrangian import fit_lagrangian
from evenhand.students.objective import LabelLoss, ShareLoss
from evenhand.teachers import GroupMissingInPartition, LogisticTeachers, by_position
from evenhand.teachers.fair import constrained
from evenhand.typing import FloatArray, IntArray

PARITY: Final = "demographic_parity"
EXACT: Final = 1e-6
"""Variance of shares without noise; only that it is the same for all rows enters."""


def steps(train: Table, new: Table, names: tuple[str, ...], seed: int) -> dict[str, FloatArray]:
    """Return (accuracy, violation) on new rows after each step."""
    groups, others = (encode_groups(rows.groups, names=names) for rows in (train, new))
    classes = np.unique(train.y)
    y, truth = (np.searchsorted(classes, rows.y) for rows in (train, new))
    encoder = PublicEncoder().fit(train.X)
    X, at = encoder.transform(train.X), encoder.transform(new.X)

    def judged(told: IntArray) -> FloatArray:
        counts = Tally.of(others.codes, told, len(names), 2).counts
        gap = DemographicParity(margin=0.0, reference="overall").gap(counts)
        return np.array([(told == truth).mean(), gap])

    def student(shares: FloatArray) -> IntArray:
        both = np.column_stack([1.0 - shares, shares])
        loss = ShareLoss(shares=both, variance=np.full(len(X), EXACT))
        told: IntArray = fit_lagrangian(X, loss, None).classifier(2).predict(at)
        return told

    loss = LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=2, C=1.0)
    free = fit_lagrangian(X, loss, None).classifier(2)
    model = by_dual(train, PARITY, np.inf, seed)
    partition = by_position(len(y), TEACHERS, np.random.default_rng(seed))
    fair = constrained(None, held(PARITY))
    known = {"groups": groups.codes, "n_groups": len(names)}
    taught = fair.fit(X, y, partition, 2, np.random.default_rng(seed), **known)
    plain = LogisticTeachers(C=fair.C).fit(X, y, partition, 2, np.random.default_rng(seed))
    votes = taught.vote(at)
    found = {
        "theta*, no constraint": judged(free.predict(at)),
        "fair model, true groups": judged(np.searchsorted(classes, model.predict(new.X))),
        "one fair teacher": np.mean([judged(vote) for vote in votes], axis=0),
        "vote of teachers without a constraint": judged(winners(plain.vote(at))),
        "vote of fair teachers": judged(winners(votes)),
        "student of the exact vote": judged(student(taught.vote(X).mean(axis=0))),
    }
    for words, setting in {
        "SF_T without sums, pull 0.001": {"calibration": None, "pull": 0.001},
        "SF_T without sums": {"calibration": None},
        "SF_T": {},
    }.items():
        private = fitted("sf-teachers", train, PARITY, seed, setting)
        found[words] = judged(np.searchsorted(classes, private.predict(new.X)))
    return found


def winners(votes: IntArray) -> IntArray:
    """Return what most teachers say of each row."""
    most: IntArray = (votes.mean(axis=0) > 0.5).astype(np.int64)
    return most


def measure(seeds: int) -> list[dict[str, Any]]:
    """One row per table and step, with every repeat."""
    rows = []
    data = load_acs_income()
    names = encode_groups(data.groups).names
    for name, (load, most) in TABLES.items():
        if load is not load_acs_income:
            continue
        found = [steps(*parts(data, most, seed), names, seed) for seed in range(seeds)]
        for words in found[0]:
            repeats = np.array([told[words] for told in found])
            row: dict[str, Any] = {"data": name, "step": words, "repeats": repeats.tolist()}
            row["accuracy"], row["accuracy_pm"] = interval(repeats[:, 0].tolist())
            row["violation"], row["violation_pm"] = interval(repeats[:, 1].tolist())
            rows.append(row)
            print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    return (
        f"| {row['data']} | {row['step']} | {row['accuracy']:.4f} ± {row['accuracy_pm']:.4f} "
        f"| {row['violation']:.4f} ± {row['violation_pm']:.4f} |"
    )


def save(rows: list[dict[str, Any]]) -> None:
    """Write every repeat as JSON, and the table."""
    at = commit()
    write(
        "sf_pate_teachers",
        {"commit": at, "rows": rows},
        f"# From fair teachers to their student, {len(rows[0]['repeats'])} seeds, commit {at}\n",
        "| data | step | accuracy | violation |",
        rule(4),
        *map(line, rows),
    )


def main() -> None:
    """Run, print, and save if asked to."""
    given = asked(__doc__, seeds=10, keeps=False).parse_args()
    # Small partitions lack a group, and small tables a student: the rows show what comes of it.
    warnings.simplefilter("ignore", MarginNotMet)
    warnings.simplefilter("ignore", GroupMissingInPartition)
    rows = measure(given.seeds)
    if given.save:
        save(rows)


if __name__ == "__main__":
    main()

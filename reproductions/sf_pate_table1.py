"""SF-PATE's Table 1: processor time to epsilon 1 with 300 teachers, all methods in one run.

    python reproductions/sf_pate_table1.py [--data Adult Bank ...] [--save]

Every method has networks of two hidden layers of 64, as the paper's have two: SF_S (300 network
teachers of the group, network student under demographic parity, alpha .01), SF_T (300 network
teachers under it, network student), M (randomised response, then that student with unbiased weights
of the groups), and PF-LD with its defaults. One thread, processor time of one fit each on 75 % of
the rows, encoding included, one after the other in turn. Machines differ, so that what can agree is
a ratio: beside the paper's ratio to SF_S stands ours. A row agrees if ours is at least half the
paper's: SF_S is then as far ahead as printed, up to a factor of 2. SF_T beside SF_S agrees within a
factor of 2 both ways.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _random_groups import random_weights
from _table import asked, beside_saved, rule, write
from sf_pate_figure2 import DELTA, LOADERS

from evenhand import Budget, DemographicParity, PFLDClassifier, SFPATEClassifier
from evenhand.datasets import PublicEncoder
from evenhand.datasets.dataset import Table
from evenhand.fairness.groups import encode_groups
from evenhand.privacy import FloatNoise
from evenhand.students import MarginNotMet, NetworkStudent
from evenhand.students.lagrangian import Constraint
from evenhand.teachers import GroupMissingInPartition, MLPTeachers

PAPER = {
    "Bank": {"SF_S": 14, "SF_T": 13, "M": 31, "PF-LD": 116},
    "Parkinsons": {"SF_S": 8, "SF_T": 8, "M": 17, "PF-LD": 31},
    "Adult": {"SF_S": 55, "SF_T": 56, "M": 129, "PF-LD": 1234},
    "Credit": {"SF_S": 30, "SF_T": 31, "M": 76, "PF-LD": 575},
}
HIDDEN = (64, 64)
FAIRNESS = DemographicParity(margin=0.01, reference="overall")
BUDGET = Budget(epsilon=1.0, delta=DELTA)


def sf_pate(variant: str) -> Callable[[Table], Any]:
    """Return how a variant is trained."""

    def fit(rows: Table) -> Any:
        model = SFPATEClassifier(
            BUDGET,
            variant,
            fairness=FAIRNESS,
            n_teachers=300,
            teachers=MLPTeachers(HIDDEN),
            student=NetworkStudent(HIDDEN),
            noise=FloatNoise(),
            random_state=0,
        )
        return model.fit(rows.X, rows.y, sensitive_features=rows.groups)

    return fit


def m(rows: Table) -> Any:
    """Train M: every group by randomised response, then the student under the constraint."""
    groups = encode_groups(rows.groups)
    weights = random_weights(groups.codes, groups.n_groups, BUDGET)
    X = PublicEncoder().fit(rows.X).transform(rows.X)
    truth = np.eye(2)[np.unique(rows.y, return_inverse=True)[1]]
    constraint = Constraint(notion=FAIRNESS, truth=truth, weights=weights)
    student, rng = NetworkStudent(HIDDEN), np.random.default_rng(0)
    start = student.free(X, truth, rng)
    return student.under(X, truth, constraint, rng, start=start, pull=0.001)


def pf_ld(rows: Table) -> Any:
    """Train PF-LD."""
    model = PFLDClassifier(BUDGET, FAIRNESS, hidden=HIDDEN, random_state=0)
    return model.fit(rows.X, rows.y, sensitive_features=rows.groups)


METHODS = {"SF_S": sf_pate("student"), "SF_T": sf_pate("teachers"), "M": m, "PF-LD": pf_ld}


def measure(name: str, repeats: int) -> list[dict[str, Any]]:
    """One row per method, with every repeat."""
    rows = LOADERS[name]().split(public=0.0, test=0.25, random_state=0).private
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(repeats):
        for method, fit in METHODS.items():
            start = time.process_time()
            fit(rows)
            seconds[method].append(time.process_time() - start)
    first = float(np.median(seconds["SF_S"]))
    found = []
    for method in METHODS:
        ours = float(np.median(seconds[method])) / first
        paper = PAPER[name][method] / PAPER[name]["SF_S"]
        good = ours >= paper / 2 and (method != "SF_T" or ours <= 2 * paper)
        found.append(
            {
                "data": name,
                "method": method,
                "seconds": seconds[method],
                "paper_seconds": PAPER[name][method],
                "paper_ratio": paper,
                "ratio": ours,
                "agrees": "-" if method == "SF_S" else "yes" if good else "no",
            }
        )
        print(line(found[-1]), flush=True)
    return found


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    return (
        f"| {row['data']} | {row['method']} | {row['paper_seconds']} "
        f"| {np.median(row['seconds']):.2f} | {row['paper_ratio']:.1f} | {row['ratio']:.1f} "
        f"| {row['agrees']} |"
    )


def save(fresh: list[dict[str, Any]], data: str) -> None:
    """Write every repeat as JSON, and the table."""
    commits, rows = beside_saved("sf_pate_table1", data, fresh, list(LOADERS))
    at = "; ".join(f"{name} at commit {commit}" for name, commit in sorted(commits.items()))
    write(
        "sf_pate_table1",
        {"commits": commits, "rows": rows},
        "# Seconds to epsilon 1 with 300 teachers\n",
        f"{at}.\n",
        "| data | method | paper, seconds | ours, seconds of one thread | paper, of SF_S "
        "| ours, of SF_S | agrees? |",
        rule(7),
        *map(line, rows),
    )


def main() -> None:
    """Run, print, and save if asked to."""
    parser = asked(__doc__, data=LOADERS, keeps=False)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", MarginNotMet)
    warnings.simplefilter("ignore", GroupMissingInPartition)
    for name in given.data:
        fresh = measure(name, given.repeats)
        if given.save:
            save(fresh, name)


if __name__ == "__main__":
    main()

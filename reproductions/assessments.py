"""Assessments with the attribute private: what its intervals cover and what epsilon costs.

    python reproductions/assessments.py [--seeds 40] [--table NAME ...] [--save]

Decisions on ACS-Income 2018 (Connecticut and Maryland): "income above 50,000" by a logistic
regression on the other half of the rows, by sex and by sex x five groups of race. The population
is the decided half itself, so its gaps are known; each seed draws a sample of 2,000 or 20,000 rows
from it with replacement, and releases one noisy table as ``evenhand.estimators.assessment`` does
(discrete Laplace noise of the operating system), at epsilon .1, .3, 1 and 3.

Beside it: the exact table of the same sample, and randomised response, where each person's group
alone is answered with noise at the same epsilon (labels and decisions are then not private), and
the gap is read without bias (``evenhand.fairness.noisy_groups``). That is a weaker promise at the
same epsilon, in a model that trusts nobody.

For demographic parity and equalized odds (pairwise): the root mean square error of the estimate
about the population's gap, and for the noisy table how often the 95 % interval covers, and its mean
width. Two further rows of coverage hold one of the two errors still: noise alone (the sample is the
same in every seed, and the interval is asked for the sample's own gap), and the sample alone (exact
counts). An attack of one record: somebody who knows all other rows subtracts them from the table
and names the cell of the one that is left; of 500 tries, how often it is right. On the noisy table
the cell of the largest remainder is named.

Beside ACS-Income, decisions that people took (``evenhand.datasets.decided``): mortgages denied in
Boston (HMDA, 2,380 applications) by race and by race x marital status, and resumes that were called
back (4,870 of them) by race and by race x gender. Nobody knows what would have been right, so
demographic parity alone is assessed; the table of group and decision is released without true
classes, and samples of 2,000 are drawn with replacement as above. Rules of these rows, written
before their first run: those of coverage, below.

Rules, written before the first run. A row of coverage agrees if the count of intervals that cover
is not below the 1-in-1,000 quantile of a binomial law at 95 % (the intervals are meant to cover at
least so often). The attack agrees if it is right in every try on the exact table, and on the noisy
one at most as often as the claim allows an attacker who chooses among the cells evenly beforehand,
``e^(2 eps) / (e^(2 eps) + cells - 1)``, by more than chance (the 1-in-1,000 quantile).

The rule of the attack is corrected: before the first run it had ``eps`` for ``2 eps``, and said
"no" at epsilon 3. Epsilon is of adding or removing a record; which cell a person is in, who is
known to be in the table, is two such steps. Of 200 seeds that were planned 40 were run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from _table import RESULTS, asked, commit, rule, write
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.datasets import Dataset, load_acs_income
from evenhand.datasets.decided import load_hmda, load_resume
from evenhand.estimators.assessment import DELTA, PURPOSE, assess
from evenhand.estimators.group_shares import release_table
from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.fairness.metrics import gap_of
from evenhand.fairness.noisy_counts import NoisyCounts
from evenhand.fairness.noisy_groups import unbiased_sums
from evenhand.fairness.notion import rates_of
from evenhand.fairness.tally import JointTally
from evenhand.privacy import Budget, DiscreteNoise, Ledger
from evenhand.privacy.randomized_response import RandomizedResponse
from evenhand.privacy.relation import GROUP_LABEL, attribute_of
from evenhand.privacy.table import LaplaceTable

EPSILONS = (0.1, 0.3, 1.0, 3.0)
SIZES = (2_000, 20_000)
NOTIONS = {
    "demographic parity": DemographicParity(margin=0, reference="pairwise"),
    "equalized odds": EqualizedOdds(margin=0, reference="pairwise"),
}
N_ATTACKS = 500
UNLIKELY = 1e-3


def population() -> tuple[Any, Any, dict[str, Any]]:
    """Truth, decisions and the two groupings of the half that is decided."""
    data = load_acs_income()
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data.y))
    train, kept = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    X = data.X.select_dtypes("number").fillna(0).to_numpy(float)
    y = np.asarray(data.y).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(
        X[train], y[train]
    )
    sex = np.asarray(data.groups).astype(str)[kept]
    race = np.asarray(data.X["race"]).astype(str)[kept]
    common = sorted(set(race), key=lambda r: -(race == r).sum())[:4]
    race = np.where(np.isin(race, common), race, "other")
    return (
        y[kept],
        model.predict(X[kept]),
        {"sex": {"sex": sex}, "sex x race": {"sex": sex, "race": race}},
    )


def taken(load: Callable[[], Dataset], other: str) -> tuple[None, Any, dict[str, Any]]:
    """Decisions that people took, without truth, by race and by race and another column."""
    data = load()
    race, also = (np.asarray(c).astype(str) for c in (data.groups, data.X[other]))
    return (
        None,
        np.asarray(data.y).astype(int),
        {"race": {"race": race}, f"race x {other}": {"race": race, other: also}},
    )


TABLES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "ACS-Income": (population, SIZES),
    "HMDA": (lambda: taken(load_hmda, "single"), (2_000,)),
    "resume": (lambda: taken(load_resume, "gender"), (2_000,)),
}


def joint_of(truth: Any, decided: Any, groups: dict[str, Any]) -> tuple[Any, JointTally]:
    """Codes of the groups of all columns together, and the exact table."""
    z, n = np.zeros(len(truth), dtype=int), 1
    for column in groups.values():
        names, codes = np.unique(column, return_inverse=True)
        z, n = z * len(names) + codes, n * len(names)
    return z, JointTally.of(z, truth, decided, n, 2)


def answered_gaps(z: Any, truth: Any, decided: Any, n_groups: int, epsilon: float) -> list[float]:
    """Gaps by randomised response of the group: each sum corrected without bias."""
    budget = Budget(epsilon=epsilon, delta=1e-6)
    ledger = Ledger(
        budget,
        noise=DiscreteNoise(),
        neighbors=GROUP_LABEL,
        unit=attribute_of("person"),
        single=True,
    )
    response = RandomizedResponse.within(budget, n_groups=n_groups)
    said = ledger.release(response, z[None, :], purpose="answers")[0]
    counts = JointTally.of(said, truth, decided, n_groups, 2).counts.astype(float)
    found = []
    for notion in NOTIONS.values():
        rates = rates_of(notion, 2)
        hits = np.einsum("zkj,rkj->rz", counts, rates.hits.astype(float))
        among = np.einsum("zkj,rk->rz", counts, rates.among.astype(float))
        top, below = (unbiased_sums(part, float(response.truth)) for part in (hits, among))
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.clip(np.where(below > 0, top / below, np.nan), 0, 1)
        found.append(float(np.nanmax(np.nanmax(value, axis=1) - np.nanmin(value, axis=1))))
    return found


def measure(table: str, seeds: int) -> list[dict[str, Any]]:
    """One row per grouping, size, epsilon and notion."""
    load, sizes = TABLES[table]
    truth, decided, groupings = load()
    known = truth is not None
    if not known:  # counted below one class, which no notion here reads
        truth = np.zeros(len(decided), dtype=int)
    notions = dict(list(NOTIONS.items())[: 2 if known else 1])
    rows = []
    for by, groups in groupings.items():
        z, whole = joint_of(truth, decided, groups)
        gaps = {name: gap_of(notion, whole).value for name, notion in notions.items()}
        for n in sizes:
            for epsilon in EPSILONS:
                found: dict[str, dict[str, list[float]]] = {
                    name: {
                        key: []
                        for key in (
                            "noisy",
                            "exact",
                            "response",
                            "covers",
                            "width",
                            "alone",
                            "sample",
                        )
                    }
                    for name in notions
                }
                for seed in range(seeds):
                    rng = np.random.default_rng(1_000 + seed)
                    chosen = rng.integers(0, len(truth), n)
                    exact = JointTally.of(
                        z[chosen], truth[chosen], decided[chosen], whole.n_groups, 2
                    )
                    noisy = released(exact, epsilon, known)
                    still = rng_rows(len(truth), n)
                    held = JointTally.of(z[still], truth[still], decided[still], whole.n_groups, 2)
                    fixed = released(held, epsilon, known)
                    other = answered_gaps(
                        z[chosen], truth[chosen], decided[chosen], whole.n_groups, epsilon
                    )
                    for (name, notion), answered in zip(notions.items(), other, strict=False):
                        ours, plain = noisy.gap(notion), gap_of(notion, exact)
                        alone, own = fixed.gap(notion), gap_of(notion, held).value
                        into = found[name]
                        into["noisy"].append(ours.value - gaps[name])
                        into["exact"].append(plain.value - gaps[name])
                        into["response"].append(answered - gaps[name])
                        into["covers"].append(ours.low <= gaps[name] <= ours.high)
                        into["width"].append(ours.high - ours.low)
                        into["alone"].append(alone.low <= own <= alone.high)
                        into["sample"].append(plain.low <= gaps[name] <= plain.high)
                rows += [
                    {
                        "data": table,
                        "commit": commit(),
                        **row_of(by, n, epsilon, name, gaps[name], into),
                    }
                    for name, into in found.items()
                ]
                print(*rows[-len(notions) :], sep="\n", flush=True)
    return rows


def rng_rows(total: int, n: int) -> Any:
    """Return the sample that is the same in every seed."""
    return np.random.default_rng(7).integers(0, total, n)


def released(exact: JointTally, epsilon: float, knows_truth: bool) -> NoisyCounts:
    """Release a table as ``assess`` does, without its views, which take most of the time."""
    budget = Budget(epsilon=epsilon, delta=DELTA)
    counts = exact.counts if knows_truth else exact.counts[:, 0, :]
    _, noisy = release_table(counts.ravel(), budget, DiscreteNoise(), purpose=PURPOSE)
    return NoisyCounts(
        counts=noisy.astype(np.int64).reshape(counts.shape),
        scale=LaplaceTable.within(budget).scale,
        n_summed=(1,) * exact.n_groups,
    )


def row_of(by: str, n: int, epsilon: float, notion: str, gap: float, found: Any) -> dict[str, Any]:
    """Return the row of a table, with its verdicts."""
    seeds = len(found["covers"])
    fewest = int(binom.ppf(UNLIKELY, seeds, 0.95))
    counts = {key: int(sum(found[key])) for key in ("covers", "alone", "sample")}
    return {
        "by": by,
        "n": n,
        "epsilon": epsilon,
        "notion": notion,
        "gap": gap,
        **{
            f"rmse_{key}": float(np.sqrt(np.mean(np.square(found[key]))))
            for key in ("noisy", "exact", "response")
        },
        "width": float(np.mean(found["width"])),
        "seeds": seeds,
        **counts,
        "fewest": fewest,
        "agrees": "yes" if min(counts.values()) >= fewest else "no",
    }


def attack(epsilon: float) -> dict[str, Any]:
    """Name the cell of one person from the table and all other rows."""
    rng = np.random.default_rng(3)
    n_cells = 8
    right = exact = 0
    for _ in range(N_ATTACKS):
        cells = rng.integers(0, n_cells, 400)
        z, y, k = cells // 4, cells // 2 % 2, cells % 2
        others = np.bincount(cells[1:], minlength=n_cells)
        whole = np.bincount(cells, minlength=n_cells)
        exact += int(np.argmax(whole - others) == cells[0])
        found = assess(
            k.astype(str),
            {"g": z.astype(str)},
            epsilon=epsilon,
            truth=y.astype(str),
            classes=["0", "1"],
            values={"g": ["0", "1"]},
        )
        rest = found.views[0].counts.counts.ravel() - others
        best = np.flatnonzero(rest == rest.max())
        right += int(rng.choice(best) == cells[0])
    replaced = math.exp(2 * epsilon)  # one record removed and one added
    bound = replaced / (replaced + n_cells - 1)
    most = int(binom.isf(UNLIKELY, N_ATTACKS, bound))
    return {
        "epsilon": epsilon,
        "right_exact": exact,
        "right_noisy": right,
        "tries": N_ATTACKS,
        "bound": bound,
        "most": most,
        "agrees": "yes" if exact == N_ATTACKS and right <= most else "no",
    }


HEAD = (
    *(
        "data",
        "by",
        "rows",
        "epsilon",
        "notion",
        "gap",
        "error, exact table",
        "error, noisy table",
    ),
    *("error, randomised response", "width", "covers", "noise alone", "sample alone"),
    *("at least", "agrees"),
)
ATTACKED = (
    *("epsilon", "right on the exact table", "right on the noisy table", "of"),
    *("bound by the claim", "agrees"),
)


def line(*cells: object) -> str:
    """Return a row of a table."""
    said = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells)
    return "| " + " | ".join(said) + " |"


def save(rows: list[dict[str, Any]], attacks: list[dict[str, Any]]) -> None:
    """Write the page and its numbers."""
    keys = (
        *(
            "data",
            "by",
            "n",
            "epsilon",
            "notion",
            "gap",
            "rmse_exact",
            "rmse_noisy",
            "rmse_response",
        ),
        *("width", "covers", "alone", "sample", "fewest", "agrees"),
    )
    of_attack = ("epsilon", "right_exact", "right_noisy", "tries", "bound", "agrees")
    lines = [
        "# Assessments with the attribute private",
        "",
        "ACS-Income: decisions of a logistic regression. HMDA and resume: decisions that people "
        f"took, of which nobody knows whether they were right. {rows[0]['seeds']} samples per row, "
        "95 % intervals. Errors are root mean squares about the gap of the population. Randomised "
        "response protects the group alone, the noisy table the whole record.",
        "",
        "*Which algorithm ran:* ours, as `evenhand assess` releases it.",
        "",
        line(*HEAD),
        rule(len(HEAD)),
        *(line(*(row[key] for key in keys)) for row in rows),
        "",
        "An attack of one record, by somebody who knows all others (8 cells). The bound is at "
        "twice epsilon: which cell it is, of somebody who is known to be in the table.",
        "",
        line(*ATTACKED),
        rule(len(ATTACKED)),
        *(line(*(row[key] for key in of_attack)) for row in attacks),
    ]
    write("assessments", {"commit": commit(), "rows": rows, "attacks": attacks}, *lines)


def main() -> None:
    """Measure all rows."""
    parser = asked(__doc__, seeds=40, keeps=False)
    parser.add_argument("--table", action="append", choices=TABLES, help="default: all")
    given = parser.parse_args()
    rows = [row for table in given.table or TABLES for row in measure(table, given.seeds)]
    attacks = [] if given.table else [attack(epsilon) for epsilon in EPSILONS]
    print(*attacks, sep="\n")
    if given.save:
        kept: dict[str, Any] = {"rows": [], "attacks": []}
        if given.table:  # what was not measured now stays as it is
            kept = json.loads((RESULTS / "assessments.json").read_text(encoding="utf-8"))
        rows = [row for row in kept["rows"] if row["data"] not in given.table] + rows
        save(rows, attacks or kept["attacks"])


if __name__ == "__main__":
    main()

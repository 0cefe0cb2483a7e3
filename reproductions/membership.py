"""Membership inference on drawn rows: what two attacks find, beside what the claim allows.

    python reproductions/membership.py [--seeds 5] [--data Credit ...] [--keep FILE] [--save]

Every seed is a split of its own: 500 or 5,000 private rows, and 20,000 others, half to be accused
and half for the attacker to compare with. The schema is that of the table (delta
1e-6, add or remove one record, exact noise). 10,000 rows are drawn as they
come (``balance=()``) by ``MarginalSynthesizer`` with its defaults at epsilon 1, 3 and 10;
"without privacy" is ``NonPrivateSynthesizer``, exact counts of the same kind; "copies" are the
private rows themselves in the place of those drawn at epsilon 1. The attacks are those of
``attack_membership``; density by gradient boosting was chosen on Adult, which does not stand here.

A private row agrees if neither area nor the share of members found at 1 % of others accused is
surely above what is allowed: the lower end of its 95 % interval over seeds. "copies" agree if the
area by distance surely is. The rows without privacy show how much there is to find. "no" rows stay.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _table import Runs, asked, commit, interval, rule, write

from evenhand import Budget
from evenhand.datasets import Schema, load_acs_income, load_credit_default
from evenhand.generators import MarginalSynthesizer, NonPrivateSynthesizer
from evenhand.generators.tables.membership import attack_membership

LOADERS: dict[str, Any] = {
    "Credit": load_credit_default,
    "ACS-Income": lambda: load_acs_income(("CT", "MD")),
}
SIZES = (500, 5_000)
OTHERS, N_DRAWN = 20_000, 10_000
EPSILONS = (1.0, 3.0, 10.0)
SHARE = 0.01


def measure(data: str, n: int, seed: int) -> list[dict[str, Any]]:
    """Return what the attacks find in the rows of each way, and what is allowed."""
    given = LOADERS[data]()
    frame = given.X.assign(
        group=np.asarray(given.groups).astype(str), label=np.asarray(given.y).astype(str)
    )
    order = np.random.default_rng(seed).permutation(len(frame))
    private, others = frame.iloc[order[:n]], frame.iloc[order[n : n + OTHERS]]
    roles: dict[str, Any] = {
        "label": "label",
        "sensitive": "group",
        "schema": Schema.of_public(frame),
    }
    plain = NonPrivateSynthesizer(random_state=seed).fit(private, **roles)
    ways = {"without privacy": (plain, plain.sample(N_DRAWN, balance=(), random_state=seed))}
    for epsilon in EPSILONS:
        made = MarginalSynthesizer(random_state=seed)
        made.fit(private, budget=Budget(epsilon=epsilon, delta=1e-6), **roles)
        drawn = made.sample(N_DRAWN, balance=(), random_state=seed)
        ways[f"epsilon {epsilon:g}"] = (made, drawn)
    ways["copies"] = (ways["epsilon 1"][0], private)
    out = []
    for way, (generator, drawn) in ways.items():
        attacked = attack_membership(generator, drawn, private, others, random_state=seed)
        found = attacked.reveal_to_curator()  # these rows are public
        numbers = [
            value
            for attack in found.attacks
            for value in (attack.auc.value, dict(attack.found)[SHARE].value)
        ]
        allowed = [found.allowed.auc, float(found.allowed.found(SHARE))]
        case = {"data": data, "n": n, "way": way, "seed": seed}
        out.append({**case, "allowed": allowed, "found": numbers})
    return out


def rows_of(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per table, size and way, with its verdict."""
    out: list[dict[str, Any]] = []
    for case in dict.fromkeys((run["data"], run["n"], run["way"]) for run in runs):
        name, n, way = case
        own = [run for run in runs if (run["data"], run["n"], run["way"]) == case]
        repeats = [run["found"] for run in own]
        both = [interval(list(values)) for values in zip(*repeats, strict=True)]
        allowed = own[0]["allowed"]
        above = [mean - half > most for (mean, half), most in zip(both, allowed * 2, strict=True)]
        if way == "without privacy":
            agrees = "-"
        else:
            agrees = "yes" if (above[0] if way == "copies" else not any(above)) else "no"
        row = {"data": name, "n": n, "way": way, "allowed": allowed, "repeats": repeats}
        out.append({**row, "found": both, "agrees": agrees})
    return out


def save(rows: list[dict[str, Any]], seeds: int) -> None:
    """Write all rows as JSON and as a table."""
    at = commit()
    lines = [
        f"# Membership inference on drawn rows, {seeds} seeds, commit {at}",
        "Area under the curve (a coin: .5), and members found where 1 % of others are accused.",
        "",
        "| data | private rows | drawn | area, distance | area, density | allowed | "
        "found, distance | found, density | allowed | agrees? |",
        rule(10),
    ]
    for row in rows:
        area, found = ([row["found"][at] for at in which] for which in ((0, 2), (1, 3)))
        cells = [
            row["data"],
            f"{row['n']:,}",
            row["way"],
            *(f"{mean:.3f} ± {half:.3f}" for mean, half in area),
            f"{row['allowed'][0]:.3f}",
            *(f"{100 * mean:.2f} % ± {100 * half:.2f}" for mean, half in found),
            f"{100 * row['allowed'][1]:.2f} %",
            row["agrees"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    write("membership", {"commit": at, "seeds": seeds, "rows": rows}, *lines)


def main() -> None:
    """Measure every table, size and seed that is not kept."""
    given = asked(__doc__, seeds=5, data=LOADERS).parse_args()
    warnings.simplefilter("ignore")  # of noise and rare cells: what is found says it
    seeds = range(given.seeds)
    runs = Runs(given.kept)
    runs.complete(measure, data=given.data, n=SIZES, seed=seeds)
    rows = rows_of(runs)
    for row in rows:
        print(row)
    if given.save:
        save(rows, given.seeds)


if __name__ == "__main__":
    main()

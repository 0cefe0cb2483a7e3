"""Frontiers of generators of tables: method x epsilon x balance x seed, PFGuard's Figures 6 to 9.

    python reproductions/generator_frontiers.py [--data Adult] [--runs FOLDER] [--save]

All runs come from ``evenhand.frontier.sweep`` on Adult (sex) and ACS-Income (Connecticut, sex):
three seeds, each a split of its own (25 % test; of the rest 20 % public, which generators do not
read), noise from the operating system, delta 1e-5, epsilon 1, 3 and 10. A generator releases
categories and bounds from its budget, 10,000 rows are drawn, and a logistic regression learns from
them and is tested on real rows. *Natural* rows have the learnt shares of label and group,
*balanced* ones are spread evenly over both, *half* and *even rates* go half and all the way of
``even_rates``, *both* is its mixture of two notions. A sweep that was stopped goes on in FOLDER.

PFGuard's figures are drawings without numbers; Figure 9 is about Adult, 6 to 8 are about MNIST, and
what they say is asked of tables here. The generators are ours or made sound (noisy tables of
counts, MERF, RON-Gauss); PATE-GAN is not among them, for a fit takes forty seconds of processor
time. The gap is that of equalized odds between the two sexes, and models see sex. The rules below
were written before the first sweep; one run of each method on Adult at epsilon 3, made to learn
what it costs, had been seen. "no" rows stay. Differences are paired by seed, and their interval is
Student's at 95 %.

- Figure 9 (fair sampling is nearer the ideal corner than private generation alone), per table,
  generator and epsilon: the gap of balanced rows minus that of natural ones lies below 0 with its
  whole interval, and the error rises by at most .05.
- The same of even rates in the place of balanced ones: goals of this project.
- Figures 7 and 8 (nearly the same performance where privacy is weak), per table and generator: at
  epsilon 10 error and gap of balanced rows are within .02 of natural ones.
- Figures 7 and 8 (notable improvements of fairness where privacy is strong), per table and
  generator: the mean gain in the gap, natural minus balanced, is above 0 at epsilon 1, and larger
  than at epsilon 10.
- Figure 6 (with weaker privacy both improve), per table and generator, balanced rows: mean error
  and mean gap at epsilon 10 are at most those at epsilon 1.
- Figure 6 (strong privacy: utility in a narrow range, fairness varies), per table and generator,
  balanced rows: the standard deviation of the gap over seeds is larger at epsilon 1 than at 10.

Beside the frontier of classifiers, per table and epsilon, gap of demographic parity, and nobody
sees sex at prediction: the default generator's five ways to draw against five margins (.01 to .2)
of FairShares, both under "replace one", and of DP-SGD, both under "add or remove one". Compared by
the hypervolume of error and gap up to .5 each (``evenhand.frontier.compare``). There is no claim to
agree with: *generator ahead*, *classifier ahead*, or *not told apart* if the interval of the
difference holds 0.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _pictures import Panel, Series, around, axis, draw
from _table import commit, interval, rule, write

from evenhand.frontier import Grid, Run, RunStore, compare, sweep
from evenhand.frontier.material import DataSource

TABLES = {"Adult": "adult", "ACS-Income": "acs-income"}
SEEDS = (0, 1, 2)
EPSILONS = (1.0, 3.0, 10.0)
GENERATORS = ("marginal", "mean-embedding", "ron-gauss")
CLASSIFIERS = {"fair-shares": "replace one", "dpsgd": "add or remove one"}
MARGINS = (0.01, 0.03, 0.05, 0.1, 0.2)
NATURAL, BALANCED, HALF, EVEN, BOTH = "natural", "balanced", "half", "even rates", "both"
WAYS: dict[str, dict[str, Any]] = {
    NATURAL: {"balance": ["none"]},
    BALANCED: {"balance": ["label,sensitive"]},
    HALF: {"balance": ["even-rates"], "amount": [0.5]},
    EVEN: {"balance": ["even-rates"]},
    BOTH: {"balance": ["both-rates"]},
}
BOX = {"gap": 0.5, "error": 0.5}
ODDS, PARITY = "equalized-odds", "demographic-parity"
Rows = list[dict[str, Any]]


def runs_of(epsilons: Sequence[float] = EPSILONS) -> tuple[dict[str, Any], ...]:
    """Return all products of the grid of a table."""
    common = {"epsilon": list(epsilons), "noise": ["float"]}
    out: list[dict[str, Any]] = []
    for way in WAYS.values():
        notion = "fairness" if way["balance"] == ["even-rates"] else "gap_of"
        out.append({"method": list(GENERATORS), **common, **way, notion: [ODDS]})
        for neighbors in CLASSIFIERS.values():
            blind = {"neighbors": [neighbors], "use_sensitive": [False]}
            out.append({"method": ["marginal"], **common, **way, **blind})
    out.append({"method": ["fair-shares"], **common, "margin": list(MARGINS)})
    sgd = {"method": ["dpsgd"], "degree": [0], "epsilon": list(epsilons), "margin": list(MARGINS)}
    return (*out, sgd)


def way_of(run: Run) -> str:
    """Return how the rows of a generator were drawn, or the margin of a classifier."""
    said = run.setting.arguments
    if run.setting.method in CLASSIFIERS:
        return f"margin {said['margin']:g}"
    if said.get("balance") == "even-rates":
        return HALF if "amount" in said else EVEN
    return {"none": NATURAL, "both-rates": BOTH}.get(str(said.get("balance")), BALANCED)


def swept(data: str, folder: Path) -> list[Run]:
    """Sweep the grid of a table, or go on with it, and return its runs."""
    grid = Grid(data=DataSource(name=TABLES[data]), runs=runs_of(), seeds=SEEDS)
    with RunStore(folder / f"{data.lower()}.db") as store:
        print(data, sweep(grid, store))
        return store.get({setting.key for setting in grid.settings()} & store.keys())


def rows_of(data: str, runs: Sequence[Run]) -> Rows:
    """Return one row per setting, its seeds together."""
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        said = run.setting.arguments
        sees = run.setting.method in GENERATORS and bool(said.get("use_sensitive", True))
        neighbors = run.guarantee["neighbors"]
        key = (run.setting.method, sees, neighbors, said["epsilon"], way_of(run))
        found.setdefault(key, []).append(run)
    out = []
    for key, own in found.items():
        names = ("method", "sees group", "neighbors", "epsilon", "way")
        row = {"data": data, **dict(zip(names, key, strict=True))}
        own = sorted(own, key=lambda run: run.setting.seed)
        row["gap of"] = own[0].gap_name
        row["seeds"] = [run.setting.seed for run in own]
        for name in ("error", "gap"):
            row[f"{name}s"] = [getattr(run, name) for run in own]
            row[name], row[f"{name}_pm"] = interval(row[f"{name}s"])
        out.append(row)
    order = (*WAYS, *(f"margin {m:g}" for m in MARGINS))
    methods = (*GENERATORS, *CLASSIFIERS)
    return sorted(
        out,
        key=lambda r: (
            methods.index(r["method"]),
            not r["sees group"],
            r["neighbors"],
            r["epsilon"],
            order.index(r["way"]),
        ),
    )


def one(rows: Rows, **wanted: Any) -> dict[str, Any]:
    """Return the row with these values."""
    (row,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return row


def verdict(figure: str, row: dict[str, Any], claim: str, agrees: bool, found: str) -> Any:
    """Return one verdict."""
    about = {name: row.get(name) for name in ("data", "method", "epsilon")}
    return {"figure": figure, **about, "claim": claim, "found": found} | {
        "apart": True,  # no PATE-GAN, and so no PFGuard, ran
        "agrees": "yes" if agrees else "no",
    }


def claims(rows: Rows) -> Rows:
    """Return what the figures say beside what we found; the rules stand on top of this file."""
    out: Rows = []
    seeing = [row for row in rows if row["sees group"]]
    for data, method in itertools.product(dict.fromkeys(r["data"] for r in rows), GENERATORS):
        own = [row for row in seeing if (row["data"], row["method"]) == (data, method)]
        at = {(row["epsilon"], row["way"]): row for row in own}
        for way, epsilon in itertools.product((BALANCED, EVEN), EPSILONS):
            out.append(_nearer(at[epsilon, way], at[epsilon, NATURAL], way))
        weak = at[10.0, BALANCED], at[10.0, NATURAL]
        apart = {name: weak[0][name] - weak[1][name] for name in ("error", "gap")}
        about = {"data": data, "method": method}
        out.append(
            verdict(
                "7, 8",
                about,
                "nearly the same performance where privacy is weak",
                all(abs(value) <= 0.02 for value in apart.values()),
                f"balanced minus natural at epsilon 10: error {apart['error']:+.3f}, gap "
                f"{apart['gap']:+.3f}",
            )
        )
        gain = {e: at[e, NATURAL]["gap"] - at[e, BALANCED]["gap"] for e in (1.0, 10.0)}
        out.append(
            verdict(
                "7, 8",
                about,
                "notable improvements of fairness where privacy is strong",
                gain[1.0] > max(0.0, gain[10.0]),
                f"gap, natural minus balanced: {gain[1.0]:+.3f} at 1, {gain[10.0]:+.3f} at 10",
            )
        )
        strong, loose = at[1.0, BALANCED], at[10.0, BALANCED]
        out.append(
            verdict(
                "6",
                about,
                "with weaker privacy utility and fairness improve",
                all(loose[name] <= strong[name] for name in ("error", "gap")),
                f"epsilon 1 to 10: error {strong['error']:.3f} to {loose['error']:.3f}, gap "
                f"{strong['gap']:.3f} to {loose['gap']:.3f}",
            )
        )
        spread = [float(np.std(row["gaps"], ddof=1)) for row in (strong, loose)]
        out.append(
            verdict(
                "6",
                about,
                "strong privacy makes fairness vary more",
                spread[0] > spread[1],
                f"standard deviation of the gap {spread[0]:.4f} at 1, {spread[1]:.4f} at 10",
            )
        )
    return out


def _nearer(row: dict[str, Any], natural: dict[str, Any], way: str) -> dict[str, Any]:
    gap, pm = interval([a - b for a, b in zip(row["gaps"], natural["gaps"], strict=True)])
    error = row["error"] - natural["error"]
    return verdict(
        "9" if way == BALANCED else "9, ours",
        row,
        f"{way} rows are nearer the ideal corner than natural ones",
        gap + pm < 0 and error <= 0.05,
        f"gap {gap:+.3f} ± {pm:.3f}, error {error:+.3f}",
    )


def beside_classifiers(data: str, runs: Sequence[Run]) -> Rows:
    """Compare the generator's frontier with that of each classifier, at each epsilon."""
    out = []
    for (method, neighbors), epsilon in itertools.product(CLASSIFIERS.items(), EPSILONS):
        at = [run for run in runs if run.setting.arguments["epsilon"] == epsilon]
        drawn = [
            run
            for run in at
            if run.setting.method == "marginal"
            and run.setting.arguments.get("use_sensitive") is False
            and run.guarantee["neighbors"] == neighbors
        ]
        decided = [run for run in at if run.setting.method == method]
        found = compare(drawn, decided, ("gap", "error"), BOX)
        low, high = found.difference_interval
        said = "not told apart" if low <= 0 <= high else "generator ahead"
        said = "classifier ahead" if high < 0 else said
        out.append(
            {
                "data": data,
                "classifier": method,
                "neighbors": neighbors,
                "epsilon": epsilon,
                "generator": found.hypervolume_a,
                "volume": found.hypervolume_b,
                "difference": found.difference,
                "interval": [low, high],
                "found": said,
            }
        )
    return out


def name_of(row: dict[str, Any]) -> str:
    """Return what a method is called in the picture."""
    return row["method"] if row["sees group"] else f"{row['method']}, {row['neighbors']}"


def picture(rows: Rows) -> str:
    """Draw error against gap: generators that see the group, and the two frontiers that do not."""
    panels = []
    for data in dict.fromkeys(row["data"] for row in rows):
        for sees in (True, False):
            own = [r for r in rows if r["data"] == data and r["epsilon"] == 3.0]
            own = [r for r in own if r["sees group"] is sees]
            names = dict.fromkeys(map(name_of, own))
            series = []
            for name in names:
                points = [r for r in own if name_of(r) == name]
                series.append(
                    Series(
                        name=name,
                        x=[r["gap"] for r in points],
                        y=[r["error"] for r in points],
                        x_pm=[r["gap_pm"] for r in points],
                        y_pm=[r["error_pm"] for r in points],
                        joined=False,
                    )
                )
            gaps = around([r["gap"] for r in own], [r["gap_pm"] for r in own])
            errors = around([r["error"] for r in own], [r["error_pm"] for r in own])
            notion = "equalized odds" if sees else "demographic parity"
            panels.append(
                Panel(
                    title=f"{data}, {'sex is seen' if sees else 'sex is not seen'}",
                    x=axis(f"gap of {notion}", gaps),
                    y=axis("error", errors, zero=False),
                    series=series,
                )
            )
    about = (
        "Figures 6 to 9, asked of tables: error against gap of generators and classifiers at "
        "epsilon 3, means with intervals"
    )
    return draw("generator_frontiers", about, panels, 2)


def save(rows: Rows, claims: Rows, beside: Rows, commit: str) -> None:
    """Write the runs as JSON, the picture and the page."""
    lines = [
        "# Frontiers of generators of tables\n\n"
        f"Means over {len(SEEDS)} seeds with 95 % half widths; rules, settings and who sees sex "
        f"stand in [generator_frontiers.py](../generator_frontiers.py). Commit {commit}.\n",
        picture(rows),
        "\n## What the figures say, of tables\n",
        "| figure | table | generator | epsilon | claim | found | agrees? |",
        rule(7),
    ]
    for v in claims:
        epsilon = "" if v["epsilon"] is None else f"{v['epsilon']:g}"
        lines.append(
            f"| {v['figure']} | {v['data']} | {v['method']} | {epsilon} | {v['claim']} | "
            f"{v['found']} | {v['agrees']} |"
        )
    lines += [
        "\n## Beside classifiers\n",
        "Share of the box of error and gap (demographic parity) up to .5 that is dominated; the "
        "generator is `marginal`, and no model reads sex.\n",
        "| table | classifier | neighbors | epsilon | generator | classifier | difference | |",
        rule(8),
    ]
    for b in beside:
        low, high = b["interval"]
        lines.append(
            f"| {b['data']} | {b['classifier']} | {b['neighbors']} | {b['epsilon']:g} | "
            f"{b['generator']:.4f} | {b['volume']:.4f} | {b['difference']:+.4f} "
            f"({low:+.4f} to {high:+.4f}) | {b['found']} |"
        )
    lines += [
        "\n## All settings\n",
        "| table | method | sex seen | neighbors | epsilon | rows or margin | error | gap |",
        rule(8),
    ]
    for r in rows:
        lines.append(
            f"| {r['data']} | {r['method']} | {'yes' if r['sees group'] else 'no'} | "
            f"{r['neighbors']} | {r['epsilon']:g} | {r['way']} | {r['error']:.4f} ± "
            f"{r['error_pm']:.4f} | {r['gap']:.3f} ± {r['gap_pm']:.3f} |"
        )
    found = {"commit": commit, "claims": claims, "beside": beside, "rows": rows}
    write("generator_frontiers", found, *lines)


def main() -> None:
    """Sweep, print, and save where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = given.runs or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        runs = {data: swept(data, folder) for data in given.data}
    rows = [row for data, own_runs in runs.items() for row in rows_of(data, own_runs)]
    found = claims(rows)
    beside = [row for data, own_runs in runs.items() for row in beside_classifiers(data, own_runs)]
    for v in (*found, *beside):
        print(v)
    if given.save:
        save(rows, [{"data": v.pop("data"), **v} for v in found], beside, commit())


if __name__ == "__main__":
    main()

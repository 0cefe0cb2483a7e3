"""Every generator of tables on Adult at epsilon 1, beside the rows of PFGuard's Table 5.

    python reproductions/pfguard_table5_methods.py [--mbi PYTHON] [--tabfairgdt PYTHON]
        [--decaf PYTHON] [--save]

Setting as in pfguard_table5.py: a split of its own for every seed, categories and bounds released,
noise of the operating system, 10,000 rows, a logistic regression and gradient boosting that see all
columns; means over seeds and models with half widths of 95 % intervals over seeds: five, three of
DECAF, for time. (First runs had two and three seeds of most methods; they ran again, by the same
rule, but for MST and those with PATE-GAN, whose rows of two seeds stand.) Rows are drawn as they
are learnt ("as it is"), with labels and groups balanced ("balanced"), or with the shares of
even_rates ("both"). A row agrees if its AUROC is at least, and both gaps at most, the published
ones, give or take our half widths; it has no verdict where a half width is above .1. Reference sets
are public, a tenth as large as the private rows, and taken out of them. Every row names the commit
that was measured. The published epsilons of PATE-GAN, PFGuard and RON-Gauss do not hold; ours do.

MST, TabFairGDT and DECAF are others' code, and need interpreters with the packages mbi (--mbi),
tabfairgdt (--tabfairgdt) and decaf-synthetic-data (--decaf); without one its rows are left out, and
the page says so. MST reads the columns in the bins that MarginalSynthesizer released, whose cost is
not counted for it. TabFairGDT 0.1.1 has no privacy: its trees keep values of single records, and it
stands beside "no privacy" of ours. It reads the table itself; lambda is how far the label's leaves
are relabelled, .5 by default and 1 at most.

DECAF 0.1.7 has no privacy either: a generator that draws each column from its causes in a graph,
and lets nothing through the edges that a notion of fairness cuts. The graph of Adult is the one
that its authors use; columns without an edge (fnlwgt, education-num, capital gain and loss) are
drawn from noise alone. Ten epochs, as the example of the package has; reproductions of its paper
have fifty, half an hour a fit here. None of its settings was tried. Seen afterwards: in ten epochs
it hardly learns (most columns are nearly constant), so its rows say nothing of its paper.
"FTU" cuts sex from income, "CF" the family status too, "DP" all of its causes to which a path from
sex leads. It was called absent here for a while, because another package that holds it asks for an
old torch.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _outside import Coded, has
from _outside import run as run_outside
from _table import RESULTS, asked, commit, interval, rule, write
from pfguard_table5 import PUBLISHED, parts, table

from evenhand import Budget
from evenhand.baselines.pfguard import GoldPATEGANSynthesizer, StratifiedPATEGANSynthesizer
from evenhand.generators import (
    DPWGANSynthesizer,
    FFPDGSynthesizer,
    MarginalSynthesizer,
    MeanEmbeddingSynthesizer,
    NonPrivateSynthesizer,
    PATEGANSynthesizer,
    ReweightedSynthesizer,
    RONGaussSynthesizer,
    even_rates,
)
from evenhand.generators.tables.fidelity import fidelity
from evenhand.generators.tables.predicted_groups import groups_from_reference
from evenhand.generators.tables.utility import utility

ROWS = 10_000
MODELS = ("logistic regression", "gradient boosting")
BUDGET = Budget(epsilon=1.0, delta=1e-5)
MST = "MST of private-pgm"
TABFAIRGDT = "TabFairGDT, no privacy"
LAMBDAS = (0.5, 1.0)
DECAF = "DECAF, no privacy"
EPOCHS = 10
# Causes of each column of Adult (Zhang, Wu and Wu 2017; van Breugel et al. 2021, Appendix).
FIRST = ["age", "race", "sex", "native-country"]
FAMILY, SCHOOL = [*FIRST, "marital-status"], [*FIRST, "marital-status", "education"]
CAUSES = {
    "marital-status": FIRST,
    "education": FAMILY,
    "occupation": [name for name in SCHOOL if name != "native-country"],
    "hours-per-week": [name for name in SCHOOL if name != "sex"],
    "workclass": [name for name in SCHOOL if name != "race"],
    "relationship": [name for name in SCHOOL if name != "race"],
    "income": [*SCHOOL, "occupation", "hours-per-week", "workclass", "relationship"],
}
REACHED = [name for name in CAUSES["income"] if name not in ("age", "race", "native-country")]
CUTS = {"FTU": ["sex"], "CF": ["sex", "marital-status"], "DP": REACHED}
SEEDS, OF_DECAF = 5, 3
WIDE = 0.1  # half width from which an interval says nothing
PATE = {"n_teachers": 300, "n_rounds": 100}  # a third and two thirds of the defaults, for time
WGAN = {"n_steps": 150}  # half of the default
MISSING = "missing"
REFERENCE = 0.1  # public rows for each private one, where a method needs them
UNKNOWN = "marginal, groups told by a reference set"
REWEIGHTED = "reweighting by a reference set, no privacy"

Make = Callable[[int], Any]
# What is fitted; how rows are drawn, and the published row beside each way.
FITS: Mapping[str, tuple[Make, Mapping[str, str]]] = {
    "RON-Gauss, noise corrected": (
        lambda seed: RONGaussSynthesizer(random_state=seed),
        {"as it is": "RON-Gauss"},
    ),
    "FFPDG": (
        lambda seed: FFPDGSynthesizer(random_state=seed),
        {"balanced": "FFPDG"},
    ),
    "mean embedding": (
        lambda seed: MeanEmbeddingSynthesizer(random_state=seed),
        {"balanced": "PFGuard", "both": "PFGuard"},
    ),
    "marginal (default)": (
        lambda seed: MarginalSynthesizer(random_state=seed),
        {"balanced": "PFGuard", "both": "PFGuard"},
    ),
    "no privacy": (
        lambda seed: NonPrivateSynthesizer(random_state=seed),
        {"as it is": "Vanilla", "balanced": "Fair-only", "both": "Fair-only"},
    ),
    "DP-WGAN, from nothing": (
        lambda seed: DPWGANSynthesizer(start=0.0, random_state=seed, **WGAN),
        {"as it is": "DP-WGAN"},
    ),
    "DP-WGAN, from counts": (
        lambda seed: DPWGANSynthesizer(random_state=seed, **WGAN),
        {"as it is": "DP-WGAN", "balanced": "PFGuard"},
    ),
    "DP-WGAN, from counts, DP-SGD-F": (
        lambda seed: DPWGANSynthesizer(clip="group", random_state=seed, **WGAN),
        {"as it is": "DP-WGAN"},
    ),
    "DP-WGAN, from counts, Global-Adapt": (
        lambda seed: DPWGANSynthesizer(clip="global-adapt", random_state=seed, **WGAN),
        {"as it is": "DP-WGAN"},
    ),
    "PATE-GAN, from nothing": (
        lambda seed: PATEGANSynthesizer(start=0.0, sampler=None, random_state=seed, **PATE),
        {"as it is": "PATE-GAN"},
    ),
    "PATE-GAN, from counts": (
        lambda seed: PATEGANSynthesizer(sampler=None, random_state=seed, **PATE),
        {"as it is": "PATE-GAN"},
    ),
    "PFGuard on PATE-GAN, from counts": (
        lambda seed: PATEGANSynthesizer(random_state=seed, **PATE),
        {"balanced": "PFGuard", "both": "PFGuard"},
    ),
    "PATE-GAN, stratified teachers, from counts": (
        lambda seed: StratifiedPATEGANSynthesizer(sampler=None, random_state=seed, **PATE),
        {"as it is": "PATE-GAN", "balanced": "PFGuard"},
    ),
    "PFGuard on PATE-GAN with GOLD, from counts": (
        lambda seed: GoldPATEGANSynthesizer(random_state=seed, **PATE),
        {"balanced": "PFGuard", "both": "PFGuard"},
    ),
    REWEIGHTED: (
        lambda seed: ReweightedSynthesizer(random_state=seed),
        {"as it is": "Fair-only", "balanced": "Fair-only"},
    ),
    UNKNOWN: (
        lambda seed: MarginalSynthesizer(random_state=seed),
        {"balanced": "PFGuard", "both": "PFGuard"},
    ),
}
READ = ("auroc", "demographic", "odds")


def with_reference(private: Any, seed: int) -> tuple[Any, Any]:
    """Set public rows aside, as many of each sex, and return (the rest, these)."""
    rng = np.random.default_rng(seed)
    sexes = private["sex"].to_numpy()
    names = np.unique(sexes)
    n = round(REFERENCE / (1.0 + REFERENCE) * len(private) / len(names))
    rows = [rng.choice(np.flatnonzero(sexes == name), n, replace=False) for name in names]
    public = np.zeros(len(private), dtype=np.bool_)
    public[np.concatenate(rows)] = True
    return private[~public], private[public]


def drawn(made: Any, how: str, seed: int) -> Any:
    """Draw rows one of the three ways."""
    if how == "both":
        shares = even_rates(made, "both", random_state=seed)
        return made.sample(ROWS, shares=shares, random_state=seed)
    balance = ("label", "sensitive") if how == "balanced" else ()
    return made.sample(ROWS, balance=balance, random_state=seed)


def measured(rows: Any, test: Any, schema: Any, seed: int) -> dict[str, float]:
    """Train on synthetic rows, test on real ones; compare columns."""
    found = utility(
        rows, test, label="income", sensitive=["sex"], models=MODELS, schema=schema,
        random_state=seed,
    )  # fmt: skip
    gaps = {"demographic": "demographic_parity_pairwise", "odds": "equalized_odds_pairwise"}
    fit = fidelity(test[list(rows.columns)], rows, schema=schema)
    return {
        "auroc": float(np.mean([u.auroc.value for u in found])),
        **{key: float(np.mean([u.gaps[name].value for u in found])) for key, name in gaps.items()},
        "columns": fit.column_score,
        "pairs": fit.pair_score,
    }


def run(name: str, frame: Any) -> list[dict[str, Any]]:
    """Fit a method on its seeds, and measure every way to draw from it."""
    make, ways = FITS[name]
    found: dict[str, list[dict[str, float]]] = {how: [] for how in ways}
    cpu, told = [], []
    for seed in range(SEEDS):
        private, test = parts(frame, seed)
        made = make(seed)
        asked: dict[str, Any] = {}
        if not isinstance(made, NonPrivateSynthesizer):
            asked["budget"] = BUDGET
        if name in (REWEIGHTED, UNKNOWN):
            private, asked["reference"] = with_reference(private, seed)
        if name == UNKNOWN:
            truth, private = private["sex"], private.drop(columns="sex")
            guessed, _ = groups_from_reference(private, asked["reference"], sensitive="sex")
            told.append(float((guessed["sex"] == truth).mean()))
        began = time.process_time()
        made.fit(private, label="income", sensitive="sex", **asked)
        cpu.append(time.process_time() - began)
        for how in ways:
            rows = drawn(made, how, seed)
            found[how].append(measured(rows, test, made.codec_.schema, seed))
    snr = round(made.snr_.value, 3)
    made_rows = [row(name, how, beside, found[how], cpu, snr) for how, beside in ways.items()]
    return [each | ({"told": float(np.mean(told))} if told else {}) for each in made_rows]


def run_mst(frame: Any, python: str) -> list[dict[str, Any]]:
    """Run MST where mbi is, on the codes of a generator of ours; without mbi there are no rows."""
    if not has(python, "mbi"):
        return []
    found, cpu = [], []
    for seed in range(SEEDS):
        private, test = parts(frame, seed)
        coded = Coded.of(private, "income", "sex", BUDGET, seed)
        codec = coded.codec
        made, took = coded.drawn(python, "MST", BUDGET, 200_000, seed, None)
        cpu.append(took["seconds"])
        rng = np.random.default_rng(seed)
        made = made[rng.permutation(len(made))]
        income, sex = (codec.names.index(name) for name in ("income", "sex"))
        cell = made[:, income] * 2 + made[:, sex]
        even = np.concatenate([np.flatnonzero(cell == c)[: ROWS // 4] for c in range(4)])
        rows = coded.decoded(made[rng.permutation(even)], rng)
        found.append(measured(rows, test, codec.schema, seed))
    return [row(MST, "balanced", "PFGuard", found, cpu, None)]


class Outside:
    """Rows by a script of this folder that reads a whole table, and what was measured of them."""

    def __init__(self, frame: Any, python: str, script: str) -> None:
        self.frame, self.python, self.script = frame, python, script
        numbers = {"i": "int", "f": "float"}
        kinds = {name: numbers.get(dtype.kind, "category") for name, dtype in frame.dtypes.items()}
        self.kinds = json.dumps(kinds | {"income": "category", "sex": "category"})
        self.texts = [name for name, kind in json.loads(self.kinds).items() if kind == "category"]

    def rows(
        self, name: str, ways: Sequence[str], *words: object, seeds: int = SEEDS
    ) -> list[dict[str, Any]]:
        """Return a row for each way of drawing; the rows of all ways come one after the other."""
        found: list[list[dict[str, float]]] = [[] for _ in ways]
        cpu, texts = [], self.texts
        for seed in range(seeds):
            private, test = parts(self.frame, seed)
            made = NonPrivateSynthesizer(pairs=False).fit(private, label="income", sensitive="sex")
            plain = private.assign(**{t: private[t].astype(object).fillna(MISSING) for t in texts})
            with tempfile.TemporaryDirectory() as folder:
                source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
                plain.to_csv(source, index=False)
                asked = (source, target, self.kinds, *words, ROWS, seed)
                cpu.append(run_outside(self.python, self.script, *asked))
                drawn = pd.read_csv(target, dtype=dict.fromkeys(texts, str), keep_default_na=False)
            drawn[texts] = drawn[texts].mask(drawn[texts] == MISSING)
            drawn = drawn[private.columns].astype(private.dtypes.to_dict())
            for i, each in enumerate(found):
                part = drawn.iloc[i * ROWS : (i + 1) * ROWS].reset_index(drop=True)
                each.append(measured(part, test, made.codec_.schema, seed))
        return [
            row(name, f"as it is, {how}", "Fair-only", each, cpu, None)
            for how, each in zip(ways, found, strict=True)
        ]


def run_tabfairgdt(frame: Any, python: str) -> list[dict[str, Any]]:
    """Run TabFairGDT where it is; without it there are no rows."""
    if not has(python, "tabfairgdt"):
        return []
    outside = Outside(frame, python, "_tabfairgdt.py")
    return [
        each
        for weight in LAMBDAS
        for each in outside.rows(TABFAIRGDT, [f"lambda {weight:g}"], "income", "sex", weight)
    ]


def run_decaf(frame: Any, python: str) -> list[dict[str, Any]]:
    """Run DECAF where it is; without it there are no rows."""
    if not has(python, "decaf"):
        return []
    graph = json.dumps([(cause, name) for name, causes in CAUSES.items() for cause in causes])
    cuts = json.dumps([{"income": causes} for causes in CUTS.values()])
    outside = Outside(frame, python, "_decaf.py")
    return outside.rows(DECAF, list(CUTS), graph, cuts, EPOCHS, seeds=OF_DECAF)


def row(
    name: str,
    how: str,
    beside: str,
    found: list[dict[str, float]],
    seconds: list[float],
    snr: float | None,
) -> dict[str, Any]:
    """Compare one way to draw from one method with the published row beside it."""
    published = PUBLISHED[beside]
    ours = {key: interval([each[key] for each in found]) for key in READ}
    return {
        "method": name,
        "rows": how,
        "seeds": len(found),
        "beside": beside,
        "published": list(published),
        **{key: list(value) for key, value in ours.items()},
        **{key: float(np.mean([each[key] for each in found])) for key in ("columns", "pairs")},
        "snr": snr,
        "seconds": float(np.mean(seconds)),
        "commit": commit(),
        "apart": not name.startswith((beside, "PATE-GAN")),
        "agrees": verdict(ours, published),
    }


def verdict(ours: Mapping[str, Sequence[float]], published: Sequence[float]) -> str:
    """Return whether ours is as good, or a dash where the seeds do not tell."""
    if max(ours[key][1] for key in READ) > WIDE:
        return "-"
    agrees = ours["auroc"][0] >= published[0] - ours["auroc"][1] and all(
        ours[key][0] <= value + ours[key][1]
        for key, value in zip(READ[1:], published[1:], strict=True)
    )
    return "yes" if agrees else "no"


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table."""
    out = []
    for r in rows:
        cells = [
            f"{p:.2f} / {r[key][0]:.3f} ± {r[key][1]:.3f}"
            for key, p in zip(READ, r["published"], strict=True)
        ]
        snr = "-" if r["snr"] is None else f"{r['snr']:.3g}"
        out.append(
            f"| {r['method']} | {r['rows']} | {r['seeds']} | {r['beside']} | {' | '.join(cells)} "
            f"| {r['columns']:.3f} / {r['pairs']:.3f} | {snr} | {r['seconds']:.0f} "
            f"| {r['commit']} | {r['agrees']} |"
        )
    return out


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the page."""
    head = (
        *("method", "rows", "seeds", "published, beside", "AUROC: paper / ours"),
        *("demographic gap: paper / ours", "equalized odds gap: paper / ours"),
        *("fidelity of columns / pairs", "predicted signal-to-noise", "fit, s", "commit"),
        "agrees?",
    )
    told = [r["told"] for r in rows if "told" in r]
    guessed = f" The reference tells the sex of {told[0]:.1%} of the private rows." if told else ""
    there = {r["method"] for r in rows}
    absent = "".join(
        f" {name} is left out: no {package}."
        for name, package in ((MST, "mbi"), (TABFAIRGDT, "tabfairgdt"), (DECAF, "decaf"))
        if name not in there
    )
    return [
        "# All generators of tables on Adult, epsilon 1",
        "",
        "Two models per table. Seconds are of processor time on one thread (MST, TabFairGDT "
        "and DECAF: drawing rows and the start of their interpreters included). PATE-GAN has 300 "
        "teachers and 100 rounds, DP-WGAN 150 steps. MST's rows are fitted to bins that it did not "
        f"pay for.{absent}",
        "",
        "A reference set has a tenth as many public rows, as many of each sex; they are taken out "
        f"of the private ones.{guessed}",
        "",
        f"| {' | '.join(head)} |",
        rule(len(head)),
        *lines_of(rows),
    ]


def save(rows: list[dict[str, Any]]) -> None:
    """Write the JSON and the page."""
    write("pfguard_table5_methods", {"rows": rows}, *lines(rows))


def main() -> None:
    """Measure, print, and save if asked, after every method: rows that are there are kept."""
    parser = asked(__doc__, keeps=False)
    parser.add_argument("--mbi", default=sys.executable, help="an interpreter that has mbi")
    parser.add_argument("--tabfairgdt", default=sys.executable, help="one that has tabfairgdt")
    parser.add_argument("--decaf", default=sys.executable, help="one that has decaf")
    parser.add_argument("--only", default="", help="methods whose name holds these words")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    frame, order = table(), [*FITS, MST, TABFAIRGDT, DECAF]
    outside = {
        MST: partial(run_mst, frame, given.mbi),
        TABFAIRGDT: partial(run_tabfairgdt, frame, given.tabfairgdt),
        DECAF: partial(run_decaf, frame, given.decaf),
    }
    saved = RESULTS / "pfguard_table5_methods.json"
    rows = json.loads(saved.read_text())["rows"] if saved.exists() else []
    for name in order:
        if given.only not in name:
            continue
        fresh = outside.get(name, partial(run, name, frame))()
        print(*lines_of(fresh), sep="\n", flush=True)
        rows = [r for r in rows if r["method"] != name] + fresh
        rows.sort(key=lambda r: order.index(r["method"]))  # stable
        if given.save:
            save(rows)


if __name__ == "__main__":
    main()

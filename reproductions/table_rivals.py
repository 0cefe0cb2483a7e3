"""The goal table beside rivals on the same splits, by AUROC and by time.

    python reproductions/table_rivals.py [--outside PYTHON] [--first 0] [--seeds 3] [--epsilon 10]
        [--data Adult] [--way ours AIM] [--save]

Splits, budgets and model are those of table_budgets.py: 25 % test, epsilon 1 and 10 at delta 1e-5,
add or remove one record, 60,000 rows drawn as often as they come, gradient boosting that sees all
columns, its AUROC on the test part.

- *ours*: ``MarginalSynthesizer`` with its defaults; categories and bounds are released from the
  budget too.
- *MST* and *AIM*: written after the papers on the graphical models of private-pgm
  (``_graphical.py`` says what is whose), and need an interpreter that has the package mbi 2.0.0
  (--outside). They read the columns in bins that ours released with a whole budget of its own,
  whose cost is not counted for them: so they have more budget than ours. rho is the largest that
  gives (epsilon, delta), by the Renyi curve. AIM is told that the label matters (its workload is
  every table of the label with two columns), its model is at most 8 MB (the paper has 80), and it
  has at most 60 minutes of processor time a fit; a fit that is stopped then is a row without AUROC.
- *PrivBayes*: as DataSynthesizer 0.1.13 has it (``_peers.py``), in the same bins, with the degree
  that it takes by default: 3 on both tables, by a rule that supposes columns of two states and an
  epsilon of .1. Half of epsilon, which has no delta, is for the choice of parents, half for the
  counts. No epsilon holds for it as it runs. From the rows it reads, and pays for none of them, how
  many there are, which columns have two states, and how high the states of a column go (also where
  its user names them; a record that alone has the highest is seen in the table's size): all this is
  in its favor. The noise of the counts is that for a record added or removed, half of the paper's;
  the sensitivity of the choices is the paper's, for one replaced. In its own description stand
  noisy counts of single columns too, for as much of epsilon again; drawn rows do not use them.
- *copula*, *CTGAN*: those of SDV 2.0.0, with defaults; they have no guarantee, read the rows
  as they are, and are references beside ours at epsilon 10. CTGAN trains for 20 epochs instead of
  300, minutes a fit, and on Adult alone: it is not what it could be. Splits 0 and 1 ran.
- MOSTLY AI's engine (mostlyai-engine 2.7.3) did not run: it asks for transformers, torchvision,
  torchaudio, opacus, peft and xgrammar beside torch.

Seconds are of processor time on one thread, for the others with the start of their interpreter and
what JAX compiles. What is shown is ours minus the rival's, its mean and 95 % interval over seeds,
pair by pair. Rules, written before the first run on these splits:

- AUROC: ours is ahead ("yes") if the interval lies above 0, behind ("no") if it lies below, "level"
  if it holds 0. Ours is "not behind" where the verdict is no "no".
- time: "yes" if the interval of ours minus its, in seconds, lies below 0, "no" if above, else
  "level".

At epsilon 1 rivals ran before ours counted three columns together, which does not concern them, and
ours after it; at epsilon 10 all ran again when single numbers were named, in whose bins the rivals
read the columns too. Three fits of ours gain or lose .002 by their noise: ``table_budgets.py`` has
.915 by the same code.

Credit came last, by parts, whose rows name their commit: AIM takes a quarter of an hour there at
epsilon 1, and half an hour at 10.

Beside AIM at epsilon 10 the first three splits of Adult were level, with ours ahead in each. Five
more (3 to 7) were drawn to tell, and are judged by themselves, by the same rule, written before
they ran; the verdict of the first three stays beside it.

Then the odds of labels were tilted (``tilt``), which was chosen on private rows of Credit (other
splits' test rows among them), Bank and Maryland, and all of ours ran again on all splits, by the
same rules; rows of the rivals stand. Before, ours was level with AIM on Adult at epsilon 10 (.9178
for .9164 on the first three splits, .9167 for .9177 on five more), and on Credit (.7767 for .7803).
When the odds of labels had a temperature all of ours ran once more. Eight splits that neither had
seen (8 to 15 of Adult, epsilon 10) are a third look, judged by themselves by the same rule, written
before they ran.

PrivBayes, the copula and CTGAN came last, on splits 0 to 2, by the same rules, written before they
ran there; beside them stand rows of ours as they were. On split 100, by time alone, it was chosen
which steps of PrivBayes are quicker here than in its package, and how long CTGAN trains. Verdicts
beside references are counted apart.

How many iterations a fit of AIM has was chosen on a split of Adult that is none of these (seed
100), by its time alone. "no" rows stay.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from _outside import Coded, TookTooLong, drawn_without_privacy, has
from _paired import differences
from _table import Mean, Runs, asked, commit, interval, later, rule, select, write
from table_budgets import DELTA, EPSILONS, LOADERS, MOST, auroc, fitted, split

from evenhand import Budget

OURS, REFERENCES = "ours", ("copula", "CTGAN")  # these without privacy
RIVALS = ("MST", "AIM", "PrivBayes", *REFERENCES)
WAYS = (OURS, *RIVALS)
NEEDED = {"MST": "mbi", "AIM": "mbi", "PrivBayes": "DataSynthesizer", "copula": "sdv"}
NEEDED |= {"CTGAN": "sdv"}
TABLES = [name for name in LOADERS if name != "German"]  # a thousand rows there: noise alone
MINUTES = 60.0
LOOKS = (range(3), range(3, 8), range(8, 16))  # splits that are judged together
NAME = "table_rivals"


def measure(data: str, seed: int, epsilon: float | None, way: str, python: str) -> dict[str, Any]:
    """Return AUROC and seconds of one way; a reference has no epsilon."""
    case = {"data": data, "seed": seed, "epsilon": epsilon, "way": way, "commit": commit()}
    private, test = split(data, seed)
    if way == OURS and epsilon is not None:
        made, seconds = fitted(data, private, epsilon, seed)
        rows, schema = made.sample(MOST, balance=(), random_state=seed), made.codec_.schema
        return {**case, "auroc": auroc(rows, test, schema), "seconds": seconds}
    budget = Budget(epsilon=max(EPSILONS) if epsilon is None else epsilon, delta=DELTA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coded = Coded.of(private, "label", "group", budget, seed)
    try:
        if way in REFERENCES:
            rows, took = drawn_without_privacy(python, way, private, MOST, seed, MINUTES)
        else:
            codes, took = coded.drawn(python, way, budget, MOST, seed, MINUTES)
            rows = coded.decoded(codes, np.random.default_rng(seed))
    except TookTooLong:
        return {**case, "auroc": None, "seconds": 60 * MINUTES}
    return {**case, "auroc": auroc(rows, test, coded.codec.schema), **took}


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the rules of the docstring say, by table, epsilon and rival."""
    found = []
    words = {"auroc": ("yes", "level", "no"), "seconds": ("no", "level", "yes")}
    for data, epsilon, rival, look, what in product(TABLES, EPSILONS, RIVALS, LOOKS, words):
        reference = rival in REFERENCES
        if reference and epsilon != max(EPSILONS):
            continue
        own = [r for r in select(rows, data=data) if r["seed"] in look and r[what] is not None]
        ours = select(own, way=OURS, epsilon=epsilon)
        its = select(own, way=rival, epsilon=None if reference else epsilon)
        apart = differences(ours, its, "seed", of=what)
        if len(apart) < 2:  # no interval
            continue
        difference = interval(apart.values())
        found.append(
            {
                "data": data,
                "epsilon": epsilon,
                "rival": rival,
                "what": what,
                "ours": interval(row[what] for row in ours if (row["seed"],) in apart).mean,
                "its": interval(row[what] for row in its if (row["seed"],) in apart).mean,
                "difference": difference.mean,
                "pm": difference.half,
                "splits": f"{look[0]} to {look[-1]}",
                "seeds": len(apart),
                **({"apart": True} if reference else {}),
                "agrees": difference.judged(*words[what]),
            }
        )
    return found


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the tables of a page."""
    head = "data | epsilon | rival | what | ours | its | ours minus its | splits | seeds | agrees?"
    out = [f"| {head} |", rule(10)]
    for v in verdicts(rows):
        form = ".4f" if v["what"] == "auroc" else ".1f"
        cells = (f"{v['ours']:{form}}", f"{v['its']:{form}}")
        apart = f"{Mean(v['difference'], v['pm']):+{form}}"
        what = "AUROC" if v["what"] == "auroc" else "seconds"
        out.append(
            f"| {v['data']} | {v['epsilon']:g} | {named(v['rival'])} | {what} | "
            f"{' | '.join(cells)} | {apart} | {v['splits']} | {v['seeds']} | {v['agrees']} |"
        )
    out += ["", "| data | epsilon | way | seed: AUROC | tables chosen | MB |", rule(6)]
    for data, epsilon, way in product(TABLES, (*EPSILONS, None), WAYS):
        if own := select(rows, data=data, epsilon=epsilon, way=way):
            own = sorted(own, key=lambda row: row["seed"])
            each = ", ".join(
                f"{r['seed']}: " + ("stopped" if r["auroc"] is None else f"{r['auroc']:.4f}")
                for r in own
            )
            model = [
                "-" if "rounds" not in own[0] else ", ".join(f"{r[key]:{form}}" for r in own)
                for key, form in (("rounds", "d"), ("mb", ".2f"))
                if all(key in r for r in own) or "rounds" not in own[0]
            ]
            spent = "-" if epsilon is None else f"{epsilon:g}"
            out.append(f"| {data} | {spent} | {named(way)} | {each} | {' | '.join(model)} |")
    return out


def named(way: str) -> str:
    """Return the name of a way, and whether it has no guarantee."""
    return f"{way}, no guarantee" if way in REFERENCES else way


def save(rows: list[dict[str, Any]], commit: str) -> None:
    """Write the runs as JSON and as tables."""
    write(
        NAME,
        {"commit": commit, "verdicts": verdicts(rows), "rows": rows},
        "# Gradient boosting on rows drawn by ours and by rivals\n",
        f"`python reproductions/{NAME}.py --save`; the ways, their settings and the rules of the "
        f"verdicts stand in the script. Commit {commit}{later(rows, 'way', 'data')}.\n",
        *lines(rows),
    )


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = asked(__doc__, seeds=3, data=TABLES)
    parser.add_argument("--outside", default=sys.executable, help="Python of the rivals")
    parser.add_argument("--first", type=int, default=0, help="the first split")
    parser.add_argument("--epsilon", type=float, nargs="+", choices=EPSILONS, default=EPSILONS)
    parser.add_argument("--way", nargs="+", choices=WAYS, default=WAYS)
    given = parser.parse_args()
    for package in {NEEDED[way] for way in given.way if way in NEEDED}:
        if not has(given.outside, package):
            parser.error(f"{given.outside} has no {package}; give --outside PYTHON that has it")
    runs = Runs(given.kept)
    asked_for = {
        tuple(given.epsilon): [way for way in given.way if way not in REFERENCES],
        (None,): [way for way in given.way if way in REFERENCES],
    }
    for epsilons, ways in asked_for.items():
        runs.complete(
            partial(measure, python=given.outside),
            data=given.data,
            seed=range(given.first, given.first + given.seeds),
            epsilon=epsilons,
            way=ways,
        )
    print(*lines(runs), sep="\n")
    if given.save:
        save(runs, commit())


if __name__ == "__main__":
    main()

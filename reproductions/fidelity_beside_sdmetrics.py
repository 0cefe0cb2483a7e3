"""Every score of ``fidelity`` beside that of SDMetrics, on three real tables.

    python reproductions/fidelity_beside_sdmetrics.py --sdmetrics PYTHON [--save]

SDMetrics 0.32 asks for pandas below 3, which evenhand does not; so it runs in an interpreter of its
own (``pip install sdmetrics`` in another environment). The real tables are Adult, German credit and
Parkinsons, the synthetic ones 5,000 rows of ``MarginalSynthesizer`` at epsilon 1 with one seed; in
both, every twentieth value of every third column is taken out, for missing values are where two
definitions would part.

A row agrees if every score of that metric is within .00001 of SDMetrics', which adds a millionth of
a record to categories that only the synthetic table has.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _table import asked, commit, rule, write

from evenhand import Budget
from evenhand.datasets import Schema, load_adult, load_german, load_parkinsons
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.tables.fidelity import fidelity

LOADERS = {"Adult": load_adult, "German": load_german, "Parkinsons": load_parkinsons}
ROWS, NEAR, BUDGET = 5_000, 1e-5, Budget(epsilon=1.0, delta=1e-5)


def with_holes(frame: pd.DataFrame) -> pd.DataFrame:
    """Take every twentieth value of every third column out."""
    out = frame.reset_index(drop=True).copy()
    for at, name in enumerate(out.columns[::3]):
        out[name] = out[name].astype("float64" if _is_number(out[name]) else "object")
        out.loc[out.index % 20 == at % 20, name] = np.nan
    return out


def _is_number(column: Any) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def tables(name: str) -> tuple[pd.DataFrame, pd.DataFrame, Schema]:
    """Return a real table, a synthetic one, and their public schema."""
    data = LOADERS[name]()
    frame = data.X.assign(label=data.y.astype(str), group=data.groups)
    schema = Schema.of_public(frame)
    made = (
        MarginalSynthesizer(random_state=0)
        .fit(frame, label="label", sensitive="group", schema=schema, budget=BUDGET)
        .sample(ROWS)
    )
    return with_holes(frame), with_holes(made[frame.columns]), schema


def theirs(
    real: pd.DataFrame, made: pd.DataFrame, kinds: dict[str, str], python: str
) -> tuple[str, dict[tuple[str, str | None], tuple[str, float]]]:
    """Run SDMetrics; return its version, and its metric and score by column or pair."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("real.csv", "made.csv", "kinds.json", "out.json")]
        real.to_csv(paths[0], index=False)
        made.to_csv(paths[1], index=False)
        paths[2].write_text(json.dumps(kinds))
        script = str(Path(__file__).with_name("_sdmetrics.py"))
        subprocess.run([python, script, *map(str, paths)], check=True)
        told = json.loads(paths[3].read_text())
    return told["version"], {(a, b): (metric, score) for metric, a, b, score in told["rows"]}


def compare(name: str, python: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the version of SDMetrics, and a row for every metric."""
    real, made, schema = tables(name)
    kinds = {column.name: column.kind for column in schema.columns}
    ours = fidelity(real, made, schema=schema)
    version, known = theirs(real, made, kinds, python)
    off: dict[str, list[float]] = defaultdict(list)
    scores: dict[str, list[float]] = defaultdict(list)
    own = {(c.name, None): c.score for c in ours.columns}
    own |= {(p.first, p.second): p.score for p in ours.pairs}
    for at, score in own.items():
        metric, other = known[at]
        both_nan = np.isnan(score) and np.isnan(other)
        off[metric].append(0.0 if both_nan else abs(score - other))
        scores[metric].append(score)
    return version, [
        {
            "data": name,
            "metric": metric,
            "scores": len(off[metric]),
            "lowest": float(np.nanmin(scores[metric])),
            "largest_difference": float(np.max(off[metric])),
            "agrees": "yes" if np.max(off[metric]) <= NEAR else "no",
        }
        for metric in off
    ]


def save(rows: list[dict[str, Any]], version: str) -> None:
    """Write all rows as JSON and as a table."""
    at = commit()
    lines = [
        f"# Scores of fidelity beside SDMetrics {version}, commit {at}",
        "",
        "| data | metric | columns or pairs | lowest score | largest difference | agrees? |",
        rule(6),
        *(
            f"| {row['data']} | {row['metric']} | {row['scores']} | {row['lowest']:.3f} | "
            f"{row['largest_difference']:.1e} | {row['agrees']} |"
            for row in rows
        ),
    ]
    about = {"commit": at, "version": version, "rows": rows}
    write("fidelity_beside_sdmetrics", about, *lines)


def main() -> None:
    """Compare on all tables."""
    parser = asked(__doc__, keeps=False)
    parser.add_argument("--sdmetrics", required=True, help="an interpreter that has sdmetrics")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    version = ""
    for name in LOADERS:
        version, fresh = compare(name, given.sdmetrics)
        rows += fresh
        for row in fresh:
            print(row)
    if given.save:
        save(rows, version)


if __name__ == "__main__":
    main()

"""Peak memory and time of a fit on Parquet against the number of rows, beside pandas.

Each fit runs in a process of its own, whose largest resident memory the system reports. The rows
are made: one file of a million rows x 20 columns stands in a folder as often as it takes, by links,
so that a hundred million rows need the disk of one.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _harness import heading, report

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.datasets.parquet import ParquetRows
from evenhand.generators import MarginalSynthesizer

IN_A_FILE = 1_000_000
N_TEACHERS, ROWS_PER_TEACHER, N_PUBLIC = 500, 1000, 2000
FEATURES = [f"x{i}" for i in range(14)] + [f"count{i}" for i in range(3)] + ["town"]


def people(n: int, seed: int) -> pd.DataFrame:
    """Make rows of 14 numbers, 3 counts, a town, an id and a label: 20 columns."""
    rng = np.random.default_rng(seed)
    columns = {f"x{i}": rng.normal(size=n) for i in range(14)}
    columns |= {f"count{i}": rng.integers(100, size=n) for i in range(3)}
    columns["town"] = rng.choice(["north", "south", "east", "west"], size=n)
    columns["person"] = rng.integers(10**9, size=n)
    score = columns["x0"] + 0.5 * columns["x1"] + (columns["town"] == "west")
    columns["y"] = score + rng.normal(size=n) > 0.25
    return pd.DataFrame(columns)


def fit(how: str, folder: Path) -> dict[str, Any]:
    """Fit once, and measure this process."""
    began, busy = time.perf_counter(), time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    learn = generated if how.startswith("generator") else taught
    found = learn(how, folder)
    return {
        "wall_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - busy, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "before_mb": round(before / 1024),
        **found,
    }


def frame_of(folder: Path) -> pd.DataFrame:
    """Read all files into memory."""
    return pd.concat(
        [pd.read_parquet(file) for file in sorted(folder.iterdir())], ignore_index=True
    )


def generated(how: str, folder: Path) -> dict[str, float]:
    """Fit a generator of tables, and say the correlation of two columns in drawn rows."""
    away = ["person"]
    rows = (
        frame_of(folder).drop(columns=away)
        if how == "generator in memory"
        else ParquetRows(folder, drop=away)
    )
    made = MarginalSynthesizer(random_state=0)
    budget = Budget(epsilon=1.0, delta=1e-9)
    made.fit(rows, label="y", sensitive="town", budget=budget)
    drawn = made.sample(20_000, balance=(), random_state=0)
    return {"correlation": round(float(drawn["x0"].corr(drawn["y"].astype(float))), 4)}


def taught(how: str, folder: Path) -> dict[str, float]:
    """Fit a student of teachers, and say its accuracy."""
    public = people(N_PUBLIC, 1)
    given: dict[str, Any] = {
        "X_public": public[FEATURES],
        "sensitive_features_public": public["x2"] > 0,
    }
    model = FairSharesClassifier(
        Budget(epsilon=1.0, delta=1e-9),
        DemographicParity(margin=0.05),
        n_teachers=N_TEACHERS,
        random_state=0,
    )
    if how == "pandas":
        frame = frame_of(folder)
        model.fit(frame[FEATURES], frame["y"], **given)
    else:
        rows = ParquetRows(folder, rows_per_teacher=ROWS_PER_TEACHER)
        unit = "person" if how == "stream of persons" else None
        model.fit(rows, "y", unit_ids=unit, **given)
    test = people(20_000, 2)
    return {"accuracy": round(float((model.predict(test[FEATURES]) == test["y"]).mean()), 4)}


def measure(how: str, n_rows: int, scratch: Path) -> dict[str, Any]:
    """Link the files for so many rows, and fit in a process of its own."""
    source = scratch / "million.parquet"
    if not source.exists():  # elsewhere: a child is said to have used what its parent did
        words = [sys.executable, __file__, "--make", str(source)]
        subprocess.run(words, check=True)
    folder = scratch / f"rows-{n_rows}"
    folder.mkdir(exist_ok=True)
    for i in range(n_rows // IN_A_FILE):
        link = folder / f"part-{i:04}.parquet"
        if not link.exists():
            link.hardlink_to(source)
    words = [sys.executable, __file__, "--fit", how, "--folder", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure one number of rows, or fit once where a measurement asks for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--how",
        default="stream",
        choices=["stream", "stream of persons", "pandas", "generator", "generator in memory"],
    )
    parser.add_argument("--rows", type=int, default=IN_A_FILE)
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "many-rows")
    given = parser.parse_args()
    if given.make:
        people(IN_A_FILE, 0).to_parquet(given.make, row_group_size=131_072)
        return
    if given.fit:
        print(json.dumps(fit(given.fit, given.folder)))
        return
    given.folder.mkdir(exist_ok=True)
    sizes: dict[str, Any] = {"how": given.how, "n_rows": given.rows, "n_columns": 20}
    if not given.how.startswith("generator"):
        sizes |= {"n_teachers": N_TEACHERS, "rows_per_teacher": ROWS_PER_TEACHER}
    line = heading("many_rows", seed=0, sizes=sizes) | measure(given.how, given.rows, given.folder)
    report(line, save=given.save)


if __name__ == "__main__":
    main()

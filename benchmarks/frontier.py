"""A frontier, teachers included, beside ``fit`` on a sample of its settings.

    python benchmarks/frontier.py [--data adult|faces] [--save]

1,000 settings of FairPATE on Adult; or 300 settings of labels and of shares on all faces of UTKFace
(gender by race), whose features are computed before and turned into components of the public rows.

The check comes first: given the same noise, the settings of the sample have bit for bit the answers
and students of their own ``fit``. Then the sweep trains and measures all settings with exact noise,
each its own release, and ``fit`` trains and measures the sample one by one.
"""

import argparse
import os
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _harness import heading, report, seconds
from sklearn.decomposition import PCA

from evenhand.datasets.features import DlibFace, extract
from evenhand.datasets.images import load_utkface
from evenhand.estimators import fit_many
from evenhand.fairness import fairness_report
from evenhand.frontier import Grid, RunStore, sweep
from evenhand.frontier.arguments import estimator_of
from evenhand.frontier.material import DataSource
from evenhand.frontier.run import Setting
from evenhand.privacy import SeededNoise

N_SAMPLE = 20
N_JOBS = 2


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is trained, and what was set out to be reached."""

    name: str
    grid: Grid
    target: str


def adult(_: Path) -> Case:
    """Return 1,000 settings of FairPATE on Adult."""
    runs = {
        "method": ["fairpate"],
        "epsilon": [1.0, 2.0, 3.0, 5.0, 8.0],
        "margin": [0.01, 0.02, 0.05, 0.1, 0.2],
        "n_teachers": [200, 250],
        "sigma": [30.0, 40.0, 50.0, 70.0, 100.0],
        "threshold": [110.0, 130.0, 150.0, 170.0],
        "sigma_check": [80.0],
    }
    target = "1,000 settings under 90 s on 2 cores; 20 times faster than fit on a sample of 20"
    return Case(
        name="frontier", grid=Grid(data=DataSource(name="adult"), runs=(runs,)), target=target
    )


def faces(folder: Path) -> Case:
    """Return 300 settings on faces; their features are in the cache, or computed first."""
    data = load_utkface(label="gender", sensitive="race")
    parts = data.split(public=0.2, test=0.2, random_state=0)
    X = {name: np.asarray(extract(getattr(parts, name).X, DlibFace.load())) for name in PARTS}
    turn = PCA(24, svd_solver="full").fit(X["public"])
    files = {}
    for name in PARTS:
        own = getattr(parts, name)
        columns = {f"c{i}": c for i, c in enumerate(turn.transform(X[name]).T)}
        y = {} if own.y is None else {"gender": own.y}
        files[name] = str(folder / f"{name}.csv")
        pd.DataFrame({**columns, **y, "race": own.sensitive_features}).to_csv(
            files[name], index=False
        )
    runs = {
        "method": ["fairpate", "fair-shares"],
        "epsilon": [1.0, 2.0, 3.0, 5.0, 8.0],
        "margin": [0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.13, 0.17, 0.2],
        "n_teachers": [200, 300, 400],
    }
    source = DataSource(name="faces", label="gender", sensitive=("race",), **files)
    target = "300 settings under 5 minutes on 2 cores, features computed before"
    return Case(name="frontier_faces", grid=Grid(data=source, runs=(runs,)), target=target)


PARTS = ("private", "public", "test")
CASES = {"adult": adult, "faces": faces}


def sample(settings: list[Setting]) -> list[Setting]:
    """Take settings from all over the grid, the same ones in every run."""
    chosen = np.random.default_rng(0).choice(len(settings), N_SAMPLE, replace=False)
    return [settings[i] for i in sorted(chosen)]


def fitted(grid: Grid, setting: Setting, noise: SeededNoise | None = None) -> Any:
    rows = grid.data.load(setting.seed)
    model = estimator_of(setting)
    if noise is not None:
        model.set_params(noise=noise)
    return model.fit(
        rows.X,
        rows.y,
        X_public=rows.X_public,
        sensitive_features_public=rows.groups_public,
    )


def check(grid: Grid, settings: list[Setting]) -> None:
    """Compare answers, students and spending with those of ``fit`` under the same noise."""
    rows = grid.data.load(0)
    kinds: dict[object, list[Setting]] = {}
    for setting in settings:
        kinds.setdefault((setting.method, setting.arguments["n_teachers"]), []).append(setting)
    for own in kinds.values():
        same = own[:3]
        models = [
            estimator_of(setting).set_params(noise=SeededNoise(i)) for i, setting in enumerate(same)
        ]
        refused = fit_many(
            models,
            rows.X,
            rows.y,
            X_public=rows.X_public,
            sensitive_features_public=rows.groups_public,
        )
        for i, (setting, model) in enumerate(zip(same, models, strict=True)):
            assert refused[i] is None, refused[i]
            alone = fitted(grid, setting, SeededNoise(i))
            released = "labels" if setting.method == "fairpate" else "shares"
            ours, theirs = (getattr(each.answers_, released) for each in (model, alone))
            assert np.array_equal(ours, theirs)
            assert np.array_equal(model.student_.coef_, alone.student_.coef_)
            assert model.ledger_.spent == alone.ledger_.spent


def one_by_one(grid: Grid, settings: list[Setting]) -> None:
    """Train and measure the sample as a user would without a sweep."""
    for setting in settings:
        rows = grid.data.load(setting.seed)
        model = fitted(grid, setting)
        classes = model.classes_
        truth, said = (
            np.searchsorted(classes, labels)
            for labels in (rows.y_test.to_numpy(), model.predict(rows.X_test))
        )
        fairness_report(truth, said, rows.groups_test, classes=classes.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=tuple(CASES), default="adult")
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        measure(CASES[arguments.data](Path(folder)), save=arguments.save)


def measure(case: Case, *, save: bool) -> None:
    """Check, time both, and report."""
    settings = case.grid.settings()
    some = sample(settings)
    check(case.grid, some)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, RunStore(f"{folder}/runs.db") as store:
        started = time.perf_counter()
        done = sweep(case.grid, store, n_jobs=N_JOBS)
        ours_s = time.perf_counter() - started
    plain_s = seconds(lambda: one_by_one(case.grid, some))
    each = ours_s / done.n_new
    report(
        {
            **heading(case.name, seed=0, sizes={"settings": len(settings), "sample": N_SAMPLE}),
            "n_jobs": N_JOBS,
            "load_before": round(load, 2),
            "trained": done.n_new,
            "skipped": len(done.skipped),
            "ours_s": [round(ours_s, 3)],
            "plain_s": [round(plain_s, 3)],
            "ratio": round(plain_s / N_SAMPLE / each, 2),
            "target": case.target,
        },
        save=save,
    )


if __name__ == "__main__":
    main()

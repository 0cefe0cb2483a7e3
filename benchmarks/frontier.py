"""1,000 settings of FairPATE on Adult, teachers included, beside ``fit`` on a sample of them.

The check comes first: given the same noise, the settings of the sample have bit for bit the answers
and students of their own ``fit``. Then the sweep trains and measures all settings with exact noise,
each its own release, and ``fit`` trains and measures the sample one by one.
"""

import argparse
import os
import tempfile
import time
import warnings

import numpy as np
from _harness import heading, report, seconds

from evenhand.estimators import FairPATEClassifier, fit_many
from evenhand.fairness import fairness_report
from evenhand.frontier import Grid, RunStore, sweep
from evenhand.frontier.arguments import estimator_of
from evenhand.frontier.material import DataSource
from evenhand.frontier.run import Setting
from evenhand.privacy import SeededNoise

GRID = Grid(
    data=DataSource(name="adult"),
    runs=(
        {
            "method": ["fairpate"],
            "epsilon": [1.0, 2.0, 3.0, 5.0, 8.0],
            "margin": [0.01, 0.02, 0.05, 0.1, 0.2],
            "n_teachers": [200, 250],
            "sigma": [30.0, 40.0, 50.0, 70.0, 100.0],
            "threshold": [110.0, 130.0, 150.0, 170.0],
            "sigma_check": [80.0],
        },
    ),
)
N_SAMPLE = 20
N_JOBS = 2
TARGET = "1,000 settings under 90 s on 2 cores; 20 times faster than fit on a sample of 20"


def sample(settings: list[Setting]) -> list[Setting]:
    """Take settings from all over the grid, the same ones in every run."""
    chosen = np.random.default_rng(0).choice(len(settings), N_SAMPLE, replace=False)
    return [settings[i] for i in sorted(chosen)]


def fitted(setting: Setting, noise: SeededNoise | None = None) -> FairPATEClassifier:
    rows = GRID.data.load(setting.seed)
    model: FairPATEClassifier = estimator_of(setting)
    if noise is not None:
        model.set_params(noise=noise)
    return model.fit(
        rows.X,
        rows.y,
        X_public=rows.X_public,
        sensitive_features_public=rows.groups_public,
    )


def check(settings: list[Setting]) -> None:
    """Compare answers, students and spending with those of ``fit`` under the same noise."""
    rows = GRID.data.load(0)
    for n_teachers in (200, 250):
        same = [s for s in settings if s.arguments["n_teachers"] == n_teachers][:3]
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
            alone = fitted(setting, SeededNoise(i))
            assert np.array_equal(model.answers_.labels, alone.answers_.labels)
            assert np.array_equal(model.student_.coef_, alone.student_.coef_)
            assert model.ledger_.spent == alone.ledger_.spent


def one_by_one(settings: list[Setting]) -> None:
    """Train and measure the sample as a user would without a sweep."""
    for setting in settings:
        rows = GRID.data.load(setting.seed)
        model = fitted(setting)
        fairness_report(
            rows.y_test.to_numpy(), model.predict(rows.X_test), rows.groups_test, classes=(0, 1)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = GRID.settings()
    some = sample(settings)
    check(some)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, RunStore(f"{folder}/runs.db") as store:
        started = time.perf_counter()
        done = sweep(GRID, store, n_jobs=N_JOBS)
        ours_s = time.perf_counter() - started
    plain_s = seconds(lambda: one_by_one(some))
    each = ours_s / done.n_new
    report(
        {
            **heading("frontier", seed=0, sizes={"settings": len(settings), "sample": N_SAMPLE}),
            "n_jobs": N_JOBS,
            "load_before": round(load, 2),
            "trained": done.n_new,
            "skipped": len(done.skipped),
            "ours_s": [round(ours_s, 3)],
            "plain_s": [round(plain_s, 3)],
            "ratio": round(plain_s / N_SAMPLE / each, 2),
            "target": TARGET,
        },
        save=arguments.save,
    )


if __name__ == "__main__":
    main()

"""Runs to store, to compare and to choose from; and a small town with the grid over it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.frontier import Run
from evenhand.frontier.run import Setting

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")

HARD_LIMIT_S = 300  # a cluster that hangs is a failure, and not a suite that stands still

GRID = """
title = "A small town"
[data]
name = "town"
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "loan"
sensitive = ["sex"]
positive = "granted"

[[runs]]
method = ["fairpate", "pate"]
epsilon = [4, 9]
margin = [0.05, 0.2]
sigma = [6, 9]
n_teachers = [30, 40]

[[runs]]
method = ["non-private", "fair-only"]
margin = 0.1
"""
N_SETTINGS = 2 * 2 * 2 * 2 + 2 * 2 * 2 + 2


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the grid's file; its three tables lie beside it."""
    folder = tmp_path_factory.mktemp("town")
    rng = np.random.default_rng(11)
    for part, n in (("private", 600), ("public", 250), ("test", 200)):
        sex = rng.choice(["F", "M"], n)
        age = rng.normal(40, 10, n).round(1)
        hours = rng.integers(10, 60, n)
        score = (age - 40) / 10 + (hours - 35) / 20 + 0.7 * (sex == "M")
        loan = np.where(score + rng.normal(0, 0.5, n) > 0.4, "granted", "refused")
        frame = pd.DataFrame({"age": age, "hours": hours, "sex": sex, "loan": loan})
        frame.to_csv(folder / f"{part}.csv", index=False)
    path = folder / "grid.toml"
    path.write_text(GRID)
    return path


def make_run(
    *, method: str = "fairpate", seed: int = 0, data: str = "adult", **changes: Any
) -> Run:
    """Return a run with plausible numbers; ``arguments`` and the fields of Run can be changed."""
    epsilon = changes.get("epsilon", 3.0)
    promised = epsilon != float("inf")
    usual: dict[str, Any] = {
        "setting": Setting(
            data=data,
            fingerprint="f",
            method=method,
            arguments=changes.pop("arguments", {"margin": 0.05}),
            seed=seed,
        ),
        "epsilon": 3.0,
        "delta": 1e-5,
        "error": 0.17,
        "gap": 0.05,
        "coverage": 1.0,
        "error_interval": (0.16, 0.18),
        "gap_interval": (0.04, 0.06),
        "mu_squared": 0.5 if promised else None,
        "fairness_kind": "in the weights, no group needed",
        "groups": ({"name": "women", "rows": 10, "error": 0.1},),
        "guarantee": {"unit": "record", "neighbors": "replace one", "holds": promised},
        "command": "evenhand train ...",
        "measured_on": "public rows",
        "seconds": 1.5,
    }
    return Run(**(usual | changes))


@pytest.fixture(scope="session")
def run_of() -> Callable[..., Run]:
    """Return ``run_of(method="pate", seed=1, epsilon=1.0)``: a run, with these changes."""
    return make_run


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store of runs may be: a file, or a database of a real PostgreSQL server."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    url: str = request.getfixturevalue("postgres")
    return url


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose path is short: Ray's sockets lie in it, and 107 characters are all."""
    folder = Path(tempfile.mkdtemp(prefix="eh-", dir="/tmp"))
    monkeypatch.setenv("RAY_TMPDIR", str(folder))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)  # a dying node may still write its log

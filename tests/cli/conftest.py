"""A small town's loans as CSV files, one trained model, and two ways to run the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand.cli import app

from .hostile import TABLES

N_PRIVATE, N_PUBLIC, N_TEST = 1200, 400, 300

# What every training here asks for; 60 teachers on 1200 rows are fitted in a moment.
ASKED = {
    "--label": "loan",
    "--sensitive": "sex",
    "--drop": "person",
    "--epsilon": "4",
    "--margin": "0.1",
    "--method": "fair-shares",
    "--teachers": "60",
    "--seed": "0",
    "--public": "public.csv",
}
# A grid of the town, but for what its runs are.
GRID = TABLES + 'drop = ["person"]\n[[runs]]\n'


def command(changes: dict[str, str | None], private: str = "private.csv") -> list[str]:
    """Return the words of a train command; an option that is changed to None is left out."""
    asked = {**ASKED, "--out": "model", **changes}
    words = [(name, value) for name, value in asked.items() if value is not None]
    return ["train", private, *(word for pair in words for word in pair)]


def people(n: int, seed: int, jobs: tuple[str, ...] = ("clerk", "nurse", "smith")) -> pd.DataFrame:
    """Invent people: numbers and text, some of it missing; two records for each person."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(1),
            "job": rng.choice(jobs, n),
            "hours": rng.integers(10, 60, n),
            "sex": rng.choice(["F", "M"], n),
            "race": rng.choice(["A", "B"], n),
            "person": [f"p{i // 2}" for i in range(n)],
        }
    )
    score = (frame["age"] - 40) / 10 + (frame["job"] == "smith") + 0.5 * (frame["sex"] == "M")
    frame["loan"] = np.where(score + rng.normal(0, 0.5, n) > 0.6, "granted", "refused")
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    frame.loc[rng.random(n) < 0.05, "job"] = None
    return frame


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, entered, with private.csv, public.csv (no label) and test.csv.

    The people of test.csv have a job that nobody in the other tables has.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # Rich would wrap the words that tests look for
    people(N_PRIVATE, 0).to_csv("private.csv", index=False)
    people(N_PUBLIC, 1).drop(columns=["loan", "person"]).to_csv("public.csv", index=False)
    people(N_TEST, 2, ("clerk", "smith", "pilot")).to_csv("test.csv", index=False)
    return tmp_path


@pytest.fixture
def run() -> Callable[..., Any]:
    """Return ``run("predict", "model", ...)``: the command in this process, streams apart."""

    def invoke(*arguments: object, exit_code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == exit_code, result.output
        return result

    return invoke


@pytest.fixture
def refuse(run: Callable[..., Any]) -> Callable[..., str]:
    """Return ``refuse("train", ...)``: exit code 2, nothing on stdout, one line, returned."""

    def invoke(*arguments: object) -> str:
        result = run(*arguments, exit_code=2)
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert "Traceback" not in line
        return line.removeprefix("error: ")

    return invoke


@pytest.fixture
def asked() -> Callable[..., list[str]]:
    """Return ``asked({"--epsilon": "1"})``: the words of a train command with these changes."""
    return command


@pytest.fixture
def train(run: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Return ``train({"--epsilon": "1"}, "--test", "test.csv")``: trains, returns the JSON."""

    def invoke(
        changes: dict[str, str | None] | None = None, *more: str, private: str = "private.csv"
    ) -> dict[str, Any]:
        result = run(*command(changes or {}, private), *more, "--json")
        said: dict[str, Any] = json.loads(result.stdout)
        return said

    return invoke


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model folder that ``evenhand train`` wrote; copy it before changing it."""
    folder = tmp_path_factory.mktemp("trained")
    people(N_PRIVATE, 0).to_csv(folder / "private.csv", index=False)
    people(N_PUBLIC, 1).drop(columns=["loan", "person"]).to_csv(folder / "public.csv", index=False)
    places = {"--public": str(folder / "public.csv"), "--out": str(folder / "model")}
    result = CliRunner().invoke(app, command(places, str(folder / "private.csv")))
    assert result.exit_code == 0, result.output
    return folder / "model"


@pytest.fixture
def model(trained: Path, town: Path) -> Path:
    """Return a copy of the trained model in the town."""
    return Path(shutil.copytree(trained, town / "model"))


@pytest.fixture
def shell() -> Callable[..., subprocess.Popen[str]]:
    """Return ``shell("train", ...)``: the command in a process of its own, started."""

    def start(*arguments: object, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "evenhand", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
            # Where tests run in the background, children are born deaf to Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start

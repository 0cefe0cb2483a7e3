"""``evenhand check``: exit code 0 or 3, what binds, and what it would take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.frontier import Run, RunStore
from evenhand.frontier.run import Setting
from evenhand.frontier.store import RUNS_FILE


def a_run(gap: float, epsilon: float, method: str = "fairpate") -> Run:
    return Run(
        setting=Setting(data="adult", fingerprint="f", method=method, arguments={"g": gap}, seed=0),
        epsilon=epsilon,
        delta=1e-5,
        error=0.17,
        gap=gap,
        coverage=1.0,
        error_interval=(0.16, 0.18),
        gap_interval=(gap - 0.01, gap + 0.01),
        mu_squared=0.5,
        fairness_kind="in the weights, no group needed",
        groups=(),
        guarantee={"unit": "record", "neighbors": "replace one", "holds": True},
        command=f"evenhand train private.csv --epsilon {epsilon:g}",
        measured_on="public rows",
        seconds=1.0,
    )


@pytest.fixture
def frontier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "frontier"
    folder.mkdir()
    with RunStore(folder / RUNS_FILE) as store:
        store.add_all([a_run(0.1, 1.0), a_run(0.04, 3.0)])
    return folder


def test_a_specification_that_some_run_meets_ends_with_0(
    frontier: Path, run: Callable[..., Any]
) -> None:
    Path("spec.toml").write_text("epsilon = 3.0\ngap = 0.06\n")
    said = run("check", "spec.toml", frontier).stdout
    assert "Feasible: 1 setting keeps every bound." in said
    assert "Train it: evenhand train private.csv --epsilon 3" in said
    assert "Publishing 2 runs on adult is (" in said
    told = json.loads(run("check", "spec.toml", frontier, "--json").stdout)
    assert told["feasible"] is True
    assert told["best"]["values"]["gap"] == 0.04
    assert told["cost"]["parts"][0]["mu_squared"] == 1.0


def test_the_command_to_train_stands_in_one_line_on_a_narrow_screen(
    frontier: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    Path("spec.toml").write_text("epsilon = 3.0\ngap = 0.06\n")
    said = run("check", "spec.toml", frontier).stdout.splitlines()
    assert "Train it: evenhand train private.csv --epsilon 3" in said
    assert all(len(line) <= 30 for line in said if "Train it" not in line)


def test_one_that_no_run_meets_ends_with_3_and_the_price(
    frontier: Path, run: Callable[..., Any]
) -> None:
    Path("spec.toml").write_text("epsilon = 1.0\ngap = 0.06\n")
    said = run("check", "spec.toml", frontier, exit_code=3).stdout
    assert "Not feasible: nothing meets this." in said
    assert "Binding: epsilon or gap; moving one of these alone is enough." in said
    told = json.loads(run("check", "spec.toml", frontier, "--json", exit_code=3).stdout)
    assert told["prices"] == [
        {"bound": "epsilon", "asked": 1.0, "best": 3.0},
        {"bound": "gap", "asked": 0.06, "best": 0.1},
    ]
    assert told["nearest"]["broken"] == ["gap"]
    Path("spec.toml").write_text("epsilon = 1.0\ngap = 0.06\naccuracy = 0.9\n")
    said = run("check", "spec.toml", frontier, exit_code=3).stdout
    assert "No single bound is enough to move. The nearest setting breaks: gap and acc" in said
    assert said.count("no value helps") == 3


def test_bad_input_ends_with_2(frontier: Path, refuse: Callable[..., str]) -> None:
    Path("spec.toml").write_text("epsilom = 1.0\n")
    assert "spec.toml: there is no key 'epsilom'. Did you mean 'epsilon'?" in refuse(
        "check", "spec.toml", frontier
    )
    Path("spec.toml").write_text("epsilon = 1.0\n")
    assert "holds no frontier: there is no runs.db" in refuse("check", "spec.toml", ".")
    assert "No such file" in refuse("check", "none.toml", frontier)
    (frontier / RUNS_FILE).unlink()
    RunStore(frontier / RUNS_FILE).close()
    assert "There are no runs to check" in refuse("check", "spec.toml", frontier)

"""A notion of one's own, in a module and its test, works in every place that names a notion."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand
from evenhand.cli import app
from evenhand.estimators import TypesNotTrusted
from evenhand.fairness import fairness_report
from evenhand.fairness.notions import notion_named, registered, spelled
from evenhand.frontier import Grid, RunStore, Specification, check, sweep
from evenhand.testing.notions import Kind, NotionContract

HOME = "overestimation_parity:OverestimationParity"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its module is where Python finds it, as an installed one would be."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tables() -> None:
    """Three tables of loans; one feature goes with the group."""
    rng = np.random.default_rng(0)
    for name, n in (("private", 1200), ("public", 400), ("test", 300)):
        sex = rng.choice(["F", "M"], n)
        score = rng.normal(size=n) + 0.8 * (sex == "M")
        loan = np.where(score + rng.normal(0, 0.7, n) > 0.4, "granted", "refused")
        pd.DataFrame({"score": score, "sex": sex, "loan": loan}).to_csv(f"{name}.csv", index=False)


def run(*words: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


@pytest.mark.parametrize("size", [2, 3])
class TestOverestimationParity(NotionContract):
    @pytest.fixture(autouse=True)
    def _chosen(self, size: int) -> None:
        self.n_classes = size

    def notion(self, margin: float = 0.1, reference: str = "rest") -> Any:
        return notion_named(HOME)(margin=margin, reference=reference)

    def kinds(self, n_classes: int) -> Sequence[Kind]:
        return [(lambda y: y < n_classes - 1, lambda y, said: said > y)]


def test_it_is_known_by_its_name_once_it_is_imported() -> None:
    with pytest.raises(ValueError, match="fairness must be one of 'demographic-parity'"):
        notion_named("overestimation-parity")
    kind = notion_named(HOME)
    assert kind is notion_named("overestimation-parity") is registered(kind)
    assert spelled("overestimation-parity") == HOME  # as another process finds it
    assert spelled("evenhand.fairness.notions:EqualizedOdds") == "equalized-odds"
    y = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    said = np.array([1, 0, 1, 1, 1, 1, 0, 1])
    found = fairness_report(y, said, np.repeat(["F", "M"], 4))
    assert found["overestimation_parity_rest"].value == 0.5


def test_a_model_is_trained_reported_and_read_again(tables: None) -> None:
    Path("train.toml").write_text(
        'private = "private.csv"\npublic = "public.csv"\ntest = "test.csv"\nout = "model"\n'
        f'label = "loan"\nsensitive = "sex"\nepsilon = 8\nmargin = 0.05\nfairness = "{HOME}"\n'
        "n_teachers = 40\nseed = 0\n"
    )
    said = json.loads(run("train", "train.toml", "--json"))
    assert said["fairness"] == "overestimation-parity"
    assert said["public_gap"] <= 0.05
    assert "overestimation_parity_rest" in said["measured"]["metrics"]
    page = Path("model/report.html").read_text()
    assert "Overestimation parity: how often a row is predicted a class above its own" in page
    told = run("evaluate", "model", "test.csv", "--trust", HOME)
    assert "overestimation parity gap" in " ".join(told.split())


@pytest.mark.slow
def test_a_process_that_does_not_know_it_says_what_to_trust(tables: None) -> None:
    run(
        *("train", "private.csv", "--public", "public.csv", "--label", "loan", "--sensitive"),
        *("sex", "--epsilon", "8", "--margin", "0.1", "--fairness", HOME, "--out", "model"),
        *("--teachers", "40"),
    )
    said = "import evenhand; evenhand.load('model')"
    here = {"cwd": Path.cwd(), "capture_output": True, "text": True, "check": False}
    refused = subprocess.run([sys.executable, "-c", said], **here)  # type: ignore[call-overload]
    assert f"TypesNotTrusted: The folder holds a value of {HOME}" in refused.stderr
    assert f"--trust {HOME}" in refused.stderr
    model = evenhand.load("model", trusted=[HOME])
    assert model.fairness == notion_named(HOME)(margin=0.1)
    assert issubclass(TypesNotTrusted, ValueError)


@pytest.mark.slow
def test_a_frontier_is_swept_and_checked(tables: None) -> None:
    Path("grid.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\ntest = "test.csv"\n'
        'label = "loan"\nsensitive = "sex"\nkind = "synthetic stand-in"\n'
        '[[runs]]\nmethod = ["fair-shares", "fair-only"]\nepsilon = 8\nmargin = 0.1\n'
        f'fairness = ["{HOME}", "error-parity"]\nn_teachers = 40\n'
    )
    grid = Grid.from_toml("grid.toml")
    with RunStore("runs.db") as store:
        sweep(grid, store, n_jobs=2)  # in processes that import the class for themselves
        runs = store.runs()
    own = [run for run in runs if run.setting.arguments["fairness"] == HOME]
    assert len(own) == len(runs) / 2 == 2
    assert {run.gap_name for run in own} == {"overestimation_parity_rest"}
    answer = check(Specification(gap=0.9, fairness=HOME), runs)
    assert len(answer.acceptable) == 2


@pytest.mark.parametrize(
    ("home", "said"),
    [
        ("no_such_module:Parity", "cannot be imported: No module named 'no_such_module'"),
        ("overestimation_parity:Parity", "cannot be imported: module 'overestimation_parity' has"),
        (":Parity", "cannot be imported: Empty module name"),
        ("json:dumps", "'json:dumps', which is no notion. Derive it from RateNotion."),
        ("evenhand.fairness.notion:RateNotion", "is no whole notion: it must say name"),
    ],
)
def test_what_is_no_notion_is_refused_in_a_line(home: str, said: str, tables: None) -> None:
    words = ["train", "private.csv", "--public", "public.csv", "--label", "loan", "--out", "model"]
    more = ["--sensitive", "sex", "--epsilon", "8", "--margin", "0.1", "--fairness", home]
    assert said in run(*words, *more, exit_code=2)
    with pytest.raises(ValueError, match="error-parity"):
        Grid.from_toml(write_grid("erorr-parity"))


def write_grid(fairness: str) -> str:
    Path("grid.toml").write_text(
        '[data]\nset = "adult"\n[[runs]]\nmethod = "fair-shares"\nepsilon = 1\nmargin = 0.1\n'
        f'fairness = "{fairness}"\n'
    )
    return "grid.toml"


def test_a_name_that_is_taken_is_refused() -> None:
    kind: Any = notion_named(HOME)
    other = type("Other", (kind,), {"__module__": "elsewhere", "name": "error-parity"})
    with pytest.raises(
        ValueError, match=r"Other is called as evenhand\.fairness\.notions:ErrorPar"
    ):
        registered(other)
    twin = type("OverestimationParity", (kind,), {"__module__": "elsewhere", "name": "twin"})
    with pytest.raises(ValueError, match="is called as overestimation_parity:Overestimation"):
        registered(twin)

"""``evenhand frontier``: a folder of runs, gone on with, and what all of it costs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from evenhand import load
from evenhand.cli import app
from evenhand.frontier import RunStore
from evenhand.privacy import epsilon_from_mu

GRID = """
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "loan"
sensitive = "sex"

[[runs]]
method = ["fairpate", "pate"]
epsilon = [4, 8]
margin = 0.1
n_teachers = 30
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for part, n in (("private", 500), ("public", 200), ("test", 150)):
        sex, age = rng.choice(["F", "M"], n), rng.normal(40, 10, n)
        loan = np.where(age + 5 * (sex == "M") + rng.normal(0, 4, n) > 42, "yes", "no")
        pd.DataFrame({"age": age, "sex": sex, "loan": loan}).to_csv(f"{part}.csv", index=False)
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["frontier", *words])


def test_a_grid_is_trained_kept_and_gone_on_with(spec: Path) -> None:
    first = run("grid.toml", "--out", "front", "--json")
    assert first.exit_code == 0, first.output
    said = json.loads(first.stdout)
    assert (said["n_settings"], said["n_new"], said["n_before"]) == (4, 4, 0)
    with RunStore("front/runs.db") as store:
        runs = store.runs()
    total = sum(run.mu_squared or 0 for run in runs)
    assert said["mu_squared_of_all"] == pytest.approx(total)
    assert said["epsilon_of_all"] == pytest.approx(epsilon_from_mu(total**0.5, 1e-5))
    assert said["epsilon_of_all"] > 8  # four releases cost more than the dearest of them
    assert sorted(p.name for p in Path("front").iterdir()) == [
        "page.html",
        "runs.db",
    ]  # and no votes

    page = Path(said["page"]).read_text(encoding="utf-8")
    assert runs[0].key in page

    again = run("grid.toml", "--out", "front")
    assert again.exit_code == 0, again.output
    words = " ".join(again.stdout.split())
    assert "0 settings trained" in words
    assert "4 were there already" in words
    assert "Publishing all of these models together costs epsilon=" in words
    assert "measured on test rows and are not covered" in words


def test_the_command_of_a_run_trains_it(spec: Path) -> None:
    run("grid.toml", "--out", "front")
    with RunStore("front/runs.db") as store:
        chosen = next(r for r in store.runs() if r.setting.method == "fairpate")
    program, *words = chosen.command.split()
    assert (program, words[0]) == ("evenhand", "frontier")
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    model = load("model")
    assert model.guarantee_.epsilon == chosen.epsilon
    assert model.fairness.margin == 0.1


def test_a_grid_without_private_rows_releases_nothing(spec: Path) -> None:
    spec.write_text(GRID.replace("[data]", '[data]\nkind = "public stand-in"'))
    result = run("grid.toml", "--out", "front")
    assert "No model was trained on private rows." in result.stdout


def test_a_model_without_privacy_among_them_is_said(spec: Path) -> None:
    spec.write_text(GRID + '[[runs]]\nmethod = "nonprivate"\n')
    result = run("grid.toml", "--out", "front")
    assert "promises no privacy: 1 of the models were trained without any" in " ".join(
        result.stdout.split()
    )


def test_settings_that_cannot_be_trained_are_counted_with_their_reason(spec: Path) -> None:
    spec.write_text(GRID + '[[runs]]\nmethod = "pate"\nepsilon = 0.01\nsigma = 1\n')
    result = run("grid.toml", "--out", "front", "--json")
    assert result.exit_code == 0
    ((reason, n),) = json.loads(result.stdout)["skipped"].items()
    assert n == 1
    assert "costs more for one answer" in reason
    assert "1 settings cannot be trained" in result.stderr


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (("margin", "margn"), (), "does not know the key 'margn'. Did you mean 'margin'?"),
        (("private.csv", "privat.csv"), (), "privat.csv"),
        (("", ""), ("--jobs", "0"), "--jobs must be at least 1, or -1"),
        (("", ""), ("--train", "0" * 32), "which no setting of the grid has"),
        (('"loan"', '"lone"'), (), "names the column 'lone'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    spec: Path, change: tuple[str, str], words: tuple[str, ...], said: str
) -> None:
    spec.write_text(GRID.replace(*change, 1) if change[0] else GRID)
    result = run("grid.toml", "--out", "front", *words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert result.stderr.count("\n") == 1

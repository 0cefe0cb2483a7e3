"""Options as flags and as keys of a TOML file: the same run, and one line for a slip."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand

Run = Callable[..., Any]

SPEC = """
private = "private.csv"
public = "public.csv"
label = "loan"
sensitive = "sex"
drop = ["person"]
epsilon = 4
margin = 0.1
n_teachers = 60
out = "model"
seed = 0
"""


@pytest.fixture
def spec(town: Path) -> Callable[[str], str]:
    """Return ``spec("margin = 0.2")``: writes a file into a folder of its own beside the tables."""

    def write(more: str = "", *, without: str = "") -> str:
        lines = [line for line in SPEC.splitlines() if not without or not line.startswith(without)]
        (town / "train.toml").write_text("\n".join([*lines, more]))
        return str(town / "train.toml")

    return write


def test_a_file_is_the_same_run_as_its_flags(
    town: Path, spec: Callable[..., str], run: Run, train: Run
) -> None:
    by_file = json.loads(
        run("train", spec('method = "fair-shares"\ngroup_thresholds = false'), "--json").stdout
    )
    by_flags = train({"--out": "other"})
    same = ("method", "epsilon", "delta", "margin", "n_teachers", "guarantee", "fairness_kind")
    assert [by_file[name] for name in same] == [by_flags[name] for name in same]
    assert evenhand.load("model").get_params(deep=False).keys() == (
        evenhand.load("other").get_params(deep=False).keys()
    )
    assert json.loads(Path("model/training.json").read_text()) == json.loads(
        Path("other/training.json").read_text()
    )


@pytest.mark.filterwarnings("ignore:The student predicts one class")  # at epsilon .5, now and then
def test_flags_stand_above_the_file_and_its_paths_are_beside_it(
    town: Path, spec: Callable[..., str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (town / "elsewhere").mkdir()
    monkeypatch.chdir(town / "elsewhere")
    where = spec('ledger = "account.db"\naccount_epsilon = 9')
    run("train", where, "--margin", "0.3", "--drop", "person", "--drop", "race", "--json")
    made = evenhand.load(town / "model")
    assert made.fairness.margin == 0.3
    assert "race" not in made.feature_names_in_
    assert (town / "account.db").is_file()
    assert not any((town / "elsewhere").iterdir())
    run("train", where, "--out", "mine", "--epsilon", "0.5", "--json")
    assert Path("mine/claim.json").is_file()  # a path of the command line is one from here


def test_an_option_of_the_file_that_the_method_would_not_read_is_refused(
    spec: Callable[..., str], refuse: Run
) -> None:
    assert "--method pate does not read it, got --at" in refuse(
        "train", spec('method = "pate"\nat = "T_in"', without="margin")
    )


@pytest.mark.parametrize(
    ("more", "without", "said"),
    [
        ("marginn = 0.2", "", "train.toml does not know the key 'marginn'. Did you mean 'margin'?"),
        ("teachers = 20", "n_teachers", "Did you mean 'n_teachers'? It takes: private, label,"),
        ("public-fraction = 0.2", "public", "Did you mean 'public_fraction'?"),
        ('notion = "error-parity"', "", "the key 'notion'. It is now called 'fairness'."),
        ("json = true", "", "does not know the key 'json'"),
        ("help_all = true", "", "does not know the key 'help_all'"),
        ('epsilon = "four"', "epsilon", "train.toml: epsilon must be a number, got 'four'"),
        ("epsilon = true", "epsilon", "train.toml: epsilon must be a number, got True"),
        ("epsilon = [1, 2]", "epsilon", "train.toml: epsilon must be a number, got [1, 2]"),
        ("n_teachers = 2.5", "n_teachers", "n_teachers must be a whole number, got 2.5"),
        ("label = 3", "label", "train.toml: label must be a text, got 3"),
        ("sensitive = [1]", "sensitive", "train.toml: sensitive must be a text, got 1"),
        ("group_thresholds = 1", "", "group_thresholds must be true or false, got 1"),
        ("[data]\nx = 1", "", "does not know the key 'data'"),
        ("= 3", "", "train.toml is not TOML: "),
        ("", "private", 'has no key private. Add a line such as private = "private.csv".'),
        ('method = "fairpatte"', "", "Did you mean 'fairpate'?"),
        ('method = "m"', "", "--method 'm' is now called 'randomized-response'"),
        (
            'label = "lone"',
            "label",
            "has no column 'lone', which --label names. Did you mean 'loan'",
        ),
        ("seed = -1", "seed", "Invalid value for '--seed'"),
    ],
)
def test_a_slip_in_the_file_is_one_clear_line(
    spec: Callable[..., str], run: Run, more: str, without: str, said: str
) -> None:
    result = run("train", spec(more, without=without), exit_code=2)
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert not Path("model").exists()


def test_what_neither_file_nor_flags_say_is_missing(spec: Callable[..., str], run: Run) -> None:
    result = run("train", spec(without="label"), exit_code=2)
    assert "Missing option '--label'" in result.stderr
    assert run("train", "nowhere.toml", exit_code=2).stderr.startswith("error: nowhere.toml: No s")


def test_no_function_of_the_command_line_is_longer_than_a_page() -> None:
    folder = Path(evenhand.__file__).parent / "cli"
    long = {
        f"{file.name} {node.name}": n_lines
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and (n_lines := (node.end_lineno or 0) - node.lineno + 1) > 80
    }
    assert long == {}

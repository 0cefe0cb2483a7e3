"""The help, the version, completion, and the rule that decides which error is bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import evenhand
from evenhand.cli import app
from evenhand.cli.console import plain, safe
from evenhand.cli.failures import is_bad_input, one_line
from evenhand.datasets import DataNotAvailable
from evenhand.estimators import ModelDamaged
from evenhand.methods import METHODS
from evenhand.privacy import BudgetExceeded
from evenhand.privacy.ledger_store import OtherAccount, StoreUnavailable

Run = Callable[..., Any]
COMMANDS = ("demo", "train", "predict", "evaluate", "synthesize", "datasets list", "datasets fetch")


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").stdout == f"evenhand {evenhand.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_on_every_option(
    run: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = run(*command.split(), "--help").stdout
    assert said == run(*command.split(), "-h").stdout
    assert "…" not in said  # nothing is cut off
    for line in said.splitlines():
        if re.match(r"│ [* ] {1,4}--", line):  # farther in, a sentence wraps at a flag it names
            words = line.strip("│* ").split()
            assert len(words) > 2, f"{command} {words[0]} says nothing"


def test_the_help_of_train_is_grouped_and_names_units_and_ranges(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = run("train", "--help-all").stdout
    for panel in ("Columns", "Privacy", "Fairness", "Teachers", "Mechanism", "Account"):
        assert f"─ {panel}" in said
    told = " ".join(said.replace("│", " ").split())  # lines may break anywhere
    for words in (
        "in nats",
        "in [0, 1]",
        "in (0, 1)",
        "In votes",
        "trained: fair-shares, fairpate, pate",
    ):
        assert words in told


def test_the_short_help_of_train_shows_what_most_runs_need_and_where_the_rest_is(run: Run) -> None:
    short, whole = run("train", "--help").stdout, run("train", "--help-all").stdout
    (train,) = [c for c in get_command(app).commands.values() if c.name == "train"]
    words = [param.opts[0] for param in train.params if param.param_type_name == "option"]
    shown = [word for word in words if re.search(rf"{word}\b(?!-)", short)]
    assert len(shown) <= 14
    assert {"--label", "--out", "--epsilon", "--margin", "--method", "--help-all"} <= set(shown)
    assert [word for word in words if word not in whole] == []
    assert len(words) > 40
    for name, spec in METHODS.items():
        assert name in whole
        assert spec.words in " ".join(whole.split())
    assert run("train", "--help").stdout == short  # the long page left no trace


def test_no_command_shows_the_help(run: Run) -> None:
    assert "Commands" in run(exit_code=2).output


def test_tracebacks_never_print_local_variables() -> None:
    assert app.pretty_exceptions_enable is False
    assert app.pretty_exceptions_show_locals is False


def test_an_unknown_option_is_named(run: Run) -> None:
    assert "No such option: --epsilom" in run("demo", "--epsilom", "3", exit_code=2).stderr


@pytest.mark.parametrize(
    ("error", "bad_input"),
    [
        (ValueError("x"), True),
        (ModelDamaged("x"), True),
        (OtherAccount("x"), True),
        (StoreUnavailable("x"), True),
        (FileNotFoundError("x"), True),
        (FileExistsError("x"), True),
        (PermissionError("x"), True),
        (BudgetExceeded("x"), True),
        (DataNotAvailable("x"), True),
        (BrokenPipeError("x"), False),
        (RuntimeError("x"), False),
        (TypeError("x"), False),
        (KeyError("x"), False),
        (AssertionError("x"), False),
        (MemoryError("x"), True),  # foreseen before a run: it says what to lower
    ],
)
def test_bad_input_is_what_a_user_can_mend(error: Exception, bad_input: bool) -> None:
    assert is_bad_input(error) is bad_input


@pytest.mark.usefixtures("values_shown")
def test_a_message_is_one_line_that_cannot_steer_a_terminal() -> None:
    assert one_line(ValueError("two\n  lines")) == "two lines"
    assert one_line(ValueError("")) == "ValueError"
    assert one_line(ValueError("a\x1b[2Jb")) == "a?[2Jb"
    assert safe("Größe\n数") == "Größe\n数"


def test_json_has_no_nan_and_no_numpy() -> None:
    values = {"a": np.float64("nan"), "b": np.arange(2), 3: (float("inf"), True, None, "x")}
    text = json.dumps(plain(values), allow_nan=False)
    assert json.loads(text) == {"a": None, "b": [0, 1], "3": [None, True, None, "x"]}

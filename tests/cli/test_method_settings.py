"""``--setting NAME=VALUE``: what a method's class takes, as it takes it, or one clear line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.method_settings import settings_of
from evenhand.generators import load
from evenhand.generators.registry import GENERATORS, generators
from evenhand.generators.settings import types_of
from evenhand.generators.tables.marginal import PAIRS

Run = Callable[..., Any]
ASKED = ("synthesize", "private.csv", "--label", "loan", "--sensitive", "sex", "--epsilon", "8",
         "--drop", "person", "--rows", "400", "--out", "made.csv", "--seed", "0")  # fmt: skip
OFFERED = [kind for of in ("tables", "images") for kind in generators(of, offered=True).values()]


def written(value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


@pytest.mark.torch
@pytest.mark.parametrize("kind", OFFERED, ids=lambda kind: kind.__name__)
def test_every_default_can_be_written_and_is_read_as_it_was(kind: Any) -> None:
    defaults = {f.name: f.default for f in fields(kind) if f.init and f.default is not None}
    known = {name: defaults[name] for name in types_of(kind) if name in defaults}
    found = settings_of(kind, [f"{name}={written(value)}" for name, value in known.items()])
    assert found == known
    assert {"noise", "random_state"}.isdisjoint(types_of(kind))
    kind(**found)


def test_values_are_those_of_toml_and_a_text_needs_no_quotes() -> None:
    kind = GENERATORS["tables", "dp-wgan"]
    given = ["clip=flat", "n_steps = 20", "generator_hidden=[8,4]", "largest_weight=1"]
    assert settings_of(kind, given) == {
        "clip": "flat",
        "n_steps": 20,
        "generator_hidden": (8, 4),
        "largest_weight": 1,
    }
    own = GENERATORS["tables", "marginal"]
    assert settings_of(own, ["tilt_share=.4"]) == settings_of(own, ["tilt_share=0.4"])
    assert settings_of(kind, ['clip="flat"', "generator_hidden=8"]) == {
        "clip": "flat",
        "generator_hidden": (8,),
    }


WRONG = {
    "an unknown name": (["widht=1"], "Did you mean 'width'? Its settings: neighbors, n_bins,"),
    "what another option says": (["noise=float"], "got 'noise=float'"),
    "a name alone": (["width"], "--setting is NAME=VALUE with a setting of the method 'marginal'"),
    "no value": (["width="], "--setting width must be a whole number, got ''"),
    "a fraction": (["width=1.5"], "--setting width must be a whole number, got '1.5'"),
    "a flag for a number": (["width=true"], "--setting width must be a whole number, got 'true'"),
    "a word for a flag": (["pairs=yes"], "--setting pairs must be true or false, got 'yes'"),
    "a number for a flag": (["pairs=1"], "--setting pairs must be true or false, got '1'"),
    "several for one": (["width=[1, 2]"], "--setting width must be a whole number"),
    "a name twice": (["width=1", "width=2"], "--setting width was given twice"),
    "more than one line": (["width=1\npairs=false"], "--setting width must be a whole number"),
    "two values at once": (["width=1, 2"], "--setting width must be a whole number"),
    "out of its range": (["width=0"], "width must be at least 1, got width=0"),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_a_wrong_setting_is_one_line_and_nothing_is_written(
    case: str, town: Path, refuse: Callable[..., str]
) -> None:
    given, message = WRONG[case]
    before = sorted(town.iterdir())
    assert message in refuse(*ASKED, *(word for text in given for word in ("--setting", text)))
    assert sorted(town.iterdir()) == before


def test_it_is_refused_before_a_file_is_read(town: Path, refuse: Callable[..., str]) -> None:
    asked = (ASKED[0], "nowhere.csv", *ASKED[2:])
    assert "Did you mean 'width'" in refuse(*asked, "--setting", "widht=1")


def test_rows_are_learnt_with_it_and_the_saved_generator_has_it(town: Path, run: Run) -> None:
    run(*ASKED, "--save", "usual")
    run(*ASKED, "--overwrite", "--setting", "pairs=false", "--save", "kept")
    assert load("kept").settings()["pairs"] is False
    spent = {name: str(load(name).ledger_.to_dict()["entries"]) for name in ("usual", "kept")}
    assert [name for name, entries in spent.items() if PAIRS in entries] == ["usual"]


def test_a_file_of_options_may_hold_them(town: Path, run: Run) -> None:
    Path("options.toml").write_text(
        'private = "private.csv"\nlabel = "loan"\nsensitive = "sex"\nepsilon = 8.0\nrows = 50\n'
        'out = "made.csv"\ndrop = "person"\nsave = "kept"\nsetting = ["pairs=false", "n_bins=8"]\n'
    )
    run("synthesize", "options.toml")
    assert {load("kept").settings()[name] for name in ("pairs", "n_bins")} == {False, 8}

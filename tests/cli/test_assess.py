"""``evenhand assess``: what is printed and written, and what is refused before it spends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.privacy import DatabaseStore

Run = Callable[..., Any]


@pytest.fixture
def decisions(town: Path) -> str:
    test = pd.read_csv("test.csv")
    test["prediction"] = test["loan"].where(test["hours"] > 15, "refused")
    test.to_csv("decisions.csv", index=False)
    return "decisions.csv"


def test_json_and_file_hold_the_released_table(decisions: str, run: Run) -> None:
    words = ("assess", decisions, "--groups-private", "sex", "--groups-private", "race")
    result = run(*words, "--label", "loan", "--epsilon", "2", "--out", "found.json", "--json")
    said = json.loads(result.stdout)
    assert said == json.loads(Path("found.json").read_text(encoding="utf-8"))
    assert said["claim"]["guarantee"]["epsilon"] == 2.0
    assert [view["by"] for view in said["views"]] == ["sex", "race", "sex, race"]
    assert {len(view["gaps"]) for view in said["views"]} == {5}


def test_people_read_the_claim_and_every_gap(decisions: str, run: Run) -> None:
    said = run("assess", decisions, "--groups-private", "sex", "--epsilon", "1").stdout
    assert "(1.0, 0.0)-differentially private for each record" in said
    assert "demographic parity pairwise" in said
    assert "equalized odds" not in said  # no labels were named


def test_an_interval_is_not_torn_apart_on_a_screen_of_80_columns(
    decisions: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = pd.read_csv(decisions)
    table["sex"] = table["sex"] + " of fourteen"
    table["race"] = table["race"] + " with a name of many words"
    table.to_csv(decisions, index=False)
    words = ("assess", decisions, "--groups-private", "sex", "--label", "loan", "--epsilon", "1")
    words += ("--groups-private", "race")
    lines = [line for line in run(*words).stdout.splitlines() if "[" in line]
    assert lines
    assert all(line.count("[") == line.count("]") for line in lines)


def test_many_classes_have_a_line_each_that_can_be_read(
    decisions: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = pd.read_csv(decisions)
    table["ward"] = [f"ward {i % 40}" for i in range(len(table))]
    table.to_csv(decisions, index=False)
    words = ("--groups-private", "sex", "--prediction", "ward", "--epsilon", "1")
    lines = run("assess", decisions, *words).stdout.splitlines()
    for i in range(40):
        assert sum(f" ward {i} " in line and line.rstrip().endswith("]") for line in lines) == 2


def test_a_misspelt_group_is_named_with_the_option_that_named_it(
    decisions: str, refuse: Callable[..., str]
) -> None:
    line = refuse("assess", decisions, "--groups-private", "sx", "--epsilon", "1")
    assert "no column 'sx', which --groups-private names. Did you mean 'sex'?" in line


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--groups-private", "sex"], "by --groups-private and by --groups-private"),
        (["--groups-private", "loan", "--label", "loan"], "by --label and by --groups-private"),
        (["--label", "prediction"], "by --prediction and by --label"),
    ],
)
def test_a_column_has_one_role(
    decisions: str, refuse: Callable[..., str], more: list[str], said: str
) -> None:
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    assert f"is named {said}. Name it once" in refuse(*words, *more)


def test_the_positive_class_is_said_where_rates_are_about_it(decisions: str, run: Run) -> None:
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1", "--label", "loan")
    for order, last in (("granted,refused", "refused"), ("refused,granted", "granted")):
        said = " ".join(run(*words, "--classes", order).stdout.split())
        assert f"Positive is '{last}', the last class" in said
        assert f"decided {last}" in said


def test_a_place_that_is_taken_is_refused(decisions: str, refuse: Callable[..., str]) -> None:
    Path("found.json").write_text("{}", encoding="utf-8")
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    assert "found.json exists" in refuse(*words, "--out", "found.json")
    assert "'predicted'" in refuse(*words, "--prediction", "predicted")


@pytest.mark.parametrize(
    ("column", "what", "way_out"),
    [
        ("prediction", "decision", "write a word such as undecided"),
        ("loan", "label", "leave --label out"),
    ],
)
def test_gaps_name_their_column_as_what_it_was_given_for(
    decisions: str, run: Run, refuse: Callable[..., str], column: str, what: str, way_out: str
) -> None:
    table = pd.read_csv(decisions)
    table.loc[[4, 9, 17], column] = None
    table.to_csv(decisions, index=False)
    words = ("assess", decisions, "--groups-private", "sex", "--label", "loan", "--epsilon", "1")
    said = refuse(*words)
    assert f"{decisions}: the {what} {column!r} is missing in row 5" in said
    assert "and others" in said  # how many is a private count
    assert way_out in said
    assert "teach" not in said
    assert "and 2 more" in refuse(*words, "--show-values")
    # Not vacuous: with such a word, or without labels, there is an assessment.
    table["prediction"] = table["prediction"].fillna("undecided")
    table.to_csv(decisions, index=False)
    without = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1", "--json")
    classes = json.loads(run(*without).stdout)["classes"]
    assert ("undecided" in classes) == (column == "prediction")


@pytest.mark.parametrize("column", ["sex", "prediction"])
def test_a_column_of_one_value_is_refused_and_the_value_is_not_quoted(
    decisions: str, refuse: Callable[..., str], column: str
) -> None:
    pd.read_csv(decisions).assign(**{column: "Zoe"}).to_csv(decisions, index=False)
    said = refuse("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    assert "one group only" in said or "All rows have one class" in said
    assert "Zoe" not in said


def test_decisions_of_one_class_are_assessed_where_all_classes_are_named(
    decisions: str, run: Run, refuse: Callable[..., str]
) -> None:
    pd.read_csv(decisions).assign(prediction="refused").to_csv(decisions, index=False)
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    assert "name all of them with --classes A,B" in refuse(*words)
    said = json.loads(run(*words, "--classes", "granted, refused", "--json").stdout)
    assert said["classes"] == ["granted", "refused"]
    assert "--classes must be names" in refuse(*words, "--classes", "granted,,refused")
    assert "must be all classes" in refuse(*words, "--classes", "granted,denied")


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_charged(
    decisions: str, refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("locked").mkdir()
    may, locked = os.access, Path("locked").absolute()
    monkeypatch.setattr("os.access", lambda place, how: place != locked and may(place, how))
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    shared = ("--ledger", "people.db", "--account-epsilon", "8")
    assert "locked cannot be written" in refuse(*words, *shared, "--out", "locked/found.json")
    assert not Path("people.db").exists()


def test_what_is_paid_for_is_shown_where_its_file_cannot_be_written(
    decisions: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    result = run(*words, "--out", "found.json", "--json", exit_code=2)
    assert json.loads(result.stdout)["claim"]["guarantee"]["epsilon"] == 1.0
    assert "No space left" in result.stderr
    assert not Path("found.json").exists()


def test_assessments_of_the_same_people_share_an_account_until_it_is_spent(
    decisions: str, run: Run, refuse: Callable[..., str]
) -> None:
    shared = ("--ledger", "people.db", "--account-epsilon", "8")
    words = ("assess", decisions, "--groups-private", "sex", *shared)
    first = json.loads(run(*words, "--epsilon", "1", "--json").stdout)
    assert first["claim"]["guarantee"]["epsilon"] == 1.0  # what this table alone promises
    assert 0 < first["account"]["epsilon_left"] < 8
    # Another auditor, other columns, the same people.
    race = ("assess", decisions, "--groups-private", "race", *shared, "--epsilon", "0.5")
    said = run(*race).stdout
    assert "The account 'assessments' has spent" in said
    spent = DatabaseStore("people.db").spent("assessments")
    refused = refuse(*words, "--epsilon", "2", "--out", "found.json")
    assert "A table at --epsilon 2 takes what epsilon 12.3 takes there" in refused
    assert "Ask for a smaller --epsilon" in refused
    assert DatabaseStore("people.db").spent("assessments") == spent
    assert not Path("found.json").exists()


def test_half_an_account_is_refused(decisions: str, refuse: Callable[..., str]) -> None:
    words = ("assess", decisions, "--groups-private", "sex", "--epsilon", "1")
    assert "Give both, or neither" in refuse(*words, "--ledger", "people.db")

"""``--method auto``, the default: what it takes for which options, and where it says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand
from evenhand.cli.train_choice import resolved
from evenhand.cli.train_options import TrainOptions
from evenhand.datasets import Schema
from evenhand.fairness import FairnessKind

from .conftest import N_PUBLIC, people

Run = Callable[..., Any]

AUTO: dict[str, str | None] = {"--method": None, "--teachers": None}
ASKED: dict[str, Any] = {
    "private": Path("private.csv"),
    "public": Path("public.csv"),
    "label": "loan",
    "sensitive": ["sex"],
    "margin": 0.1,
    "epsilon": 1.0,
    "out": Path("model"),
}
COLUMNS = ("age", "job", "sex", "loan")
SCHEMA: dict[str, Any] = {
    "age": {"bounds": (0, 100)},
    "job": ["clerk", "nurse", "smith"],
    "hours": {"bounds": (0, 80)},
    "race": ["A", "B"],
}


def chosen(changes: dict[str, Any], columns: tuple[str, ...] = COLUMNS) -> tuple[str, str]:
    """Return the method for these options, and where its rule holds."""
    values = {name: value for name, value in {**ASKED, **changes}.items() if value is not None}
    given, choice = resolved(TrainOptions(**values, given=frozenset(values)), columns)
    assert given.method == choice.method
    return choice.method, choice.rule.when


@pytest.mark.parametrize(
    ("changes", "method", "when"),
    [
        ({}, "dpsgd", "otherwise"),
        ({"margin": None, "sensitive": None}, "dpsgd", "otherwise"),
        ({"group_thresholds": True, "confidence": 0.9}, "dpsgd", "otherwise"),
        ({"group_thresholds": True, "fairness": "equalized-odds"}, "dpsgd", "otherwise"),
        (
            {"group_thresholds": True, "fairness": "error-parity", "calibration": Path("k.csv")},
            "dpsgd",
            "otherwise",
        ),
        ({"blind_rule": True, "fairness": "equalized-odds"}, "dpsgd", "otherwise"),
        ({"hidden": [8]}, "dpsgd", "otherwise"),
        ({"protect": "attribute"}, "sf-student", "the sensitive attribute alone"),
        ({"unit": "person"}, "fair-shares", "a person, or another unit"),
        ({"ledger": "town.db", "account_epsilon": 5.0}, "fair-shares", "the run is charged"),
        ({"private": Path("s3://town/loans")}, "fair-shares", "the rows stream"),
        ({"rows_per_teacher": 100}, "fair-shares", "the rows stream"),
        ({"fairness": "equalized-odds"}, "fair-shares", "the margin in training is about true"),
        ({"public": None}, "fair-shares", "neither public rows"),
        ({"public": None, "margin": None, "sensitive": None}, "pate", "neither public rows"),
        ({"public": None, "public_fraction": 0.2}, "dpsgd", "otherwise"),
        ({"n_teachers": 60}, "fair-shares", "something is asked for"),
        ({"neighbors": "replace one"}, "fair-shares", "something is asked for"),
        ({"neighbors": "add or remove one"}, "dpsgd", "otherwise"),
        ({"confidence": 0.95}, "dpsgd", "otherwise"),
        ({"confidence": 0.95, "public": None}, "fair-shares", "neither public rows"),
        ({"group_thresholds": True, "n_teachers": 60}, "pate", "something is asked for"),
    ],
)
def test_the_options_decide_by_the_rule(changes: dict[str, Any], method: str, when: str) -> None:
    found, rule = chosen(changes)
    assert (found, rule.startswith(when)) == (method, True)


def test_teachers_keep_a_margin_where_the_private_table_has_no_groups() -> None:
    method, rule = chosen({}, columns=("age", "job", "loan"))
    assert method == "fair-shares"
    assert "groups of the private rows are not known" in rule
    for after in ({"group_thresholds": True}, {"confidence": 0.9}):
        assert chosen(after, columns=("age", "job", "loan"))[0] == "dpsgd"


@pytest.mark.parametrize(("bounds", "method"), [(True, "dpsgd"), (False, "fair-shares")])
def test_a_schema_scales_the_columns_if_it_bounds_every_number(
    tmp_path: Path, bounds: bool, method: str
) -> None:
    declared = Schema.declared(SCHEMA if bounds else {**SCHEMA, "age": "numeric"})
    file = tmp_path / "schema.json"
    declared.save(file)
    assert chosen({"public": None, "schema": file})[0] == method


@pytest.mark.slow
def test_the_default_says_what_it_took_in_console_model_report_and_claim(
    town: Path, train: Run, run: Run, asked: Run
) -> None:
    said = train(AUTO)
    assert said["method"] == "DPSGDClassifier"
    why = said["choices"][0]
    assert why.startswith("Method dpsgd, chosen by public numbers and wishes alone: one owner")
    assert evenhand.load("model").choices_[0] == why
    assert why in Path("model/report.html").read_text()
    claim = json.loads(Path("model/claim.json").read_text())
    assert "the choice of the method dpsgd" in claim["sentence"]
    words = run(*asked({**AUTO, "--out": "again"}), "--group-thresholds").stdout
    assert why in " ".join(words.split())
    assert evenhand.load("again").fairness_kind_ is FairnessKind.THRESHOLDS
    named = train({**AUTO, "--method": "dpsgd", "--out": "named"})
    assert named["choices"] == said["choices"][1:]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
@pytest.mark.parametrize("known", [True, False])
def test_thresholds_about_true_classes_say_by_what_they_are_set(
    known: bool, town: Path, run: Run, asked: Run
) -> None:
    people(N_PUBLIC, 1).to_csv("known.csv", index=False)
    labelled = ("--calibration", "known.csv") if known else ("--no-counts",)
    odds = ("--group-thresholds", "--fairness", "equalized-odds", *labelled)
    words = " ".join(run(*asked({**AUTO, "--margin": "0.02"}), *odds).stdout.split())
    model = evenhand.load("model")
    assert model.margin_source_ == ("calibration rows" if known else "own probabilities")
    assert all(said in words for said in model.choices_[:2])
    why = "public rows have labels and groups" if known else "own probabilities stand for true"
    assert why in model.choices_[1]


@pytest.mark.slow
def test_thresholds_by_counts_of_scores_need_no_public_row(
    town: Path, train: Run, refuse: Run, asked: Run, tmp_path: Path
) -> None:
    declared = tmp_path / "schema.json"
    Schema.declared(SCHEMA).save(declared)
    alone: dict[str, str | None] = {**AUTO, "--public": None, "--schema": str(declared)}
    said = train(alone, "--group-thresholds")
    assert said["choices"][2].startswith("The scores of the private rows are counted by group")
    model = evenhand.load("model")
    assert model.margin_source_ == "noisy counts"
    page = Path("model/report.html").read_text()
    assert "by noisy counts of the private rows" in page
    assert "Noise, and ranges in place of scores, stand between" in page
    assert "The decisions on the public rows that set the thresholds" not in page
    named = {**alone, "--method": "dpsgd", "--out": "named"}
    assert train(named, "--group-thresholds", "--score-counts")["method"] == said["method"]
    for options, words in (
        (("--group-thresholds",), "or set them on noisy counts: --method dpsgd --score-counts"),
        (("--score-counts",), "Add --group-thresholds"),
        (("--blind-rule", "--score-counts"), "Add --group-thresholds"),
        (
            ("--group-thresholds", "--score-counts", "--confidence", "0.9"),
            "is about rows that thresholds were not set on",
        ),
    ):
        assert words in " ".join(refuse(*asked({**named, "--out": "no"}), *options).split())
    assert not Path("no").exists()


@pytest.mark.parametrize("method", [None, "dpsgd"])
def test_thresholds_by_counts_of_scores_need_no_group_of_a_public_row(
    method: str | None, town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    pd.read_csv("public.csv").drop(columns="sex").to_csv("without.csv", index=False)
    more = {**AUTO, "--public": "without.csv", "--method": method}
    counted = ("--group-thresholds", "--score-counts")
    train(more, *counted)
    assert evenhand.load("model").margin_source_ == "noisy counts"
    more["--out"] = "no"
    said = refuse(*asked(more), "--group-thresholds", "--no-counts")
    assert "has no column 'sex'" in " ".join(said.split())
    train({**more, "--public": "public.csv", "--out": "both"}, *counted)
    assert any("set the thresholds" in said for said in evenhand.load("both").guarantee_.public)


def test_counts_that_nothing_would_read_are_refused(town: Path, refuse: Run, asked: Run) -> None:
    people(N_PUBLIC, 1).to_csv("known.csv", index=False)
    odds = ("--group-thresholds", "--fairness", "equalized-odds", "--calibration", "known.csv")
    for options, words in (
        (("--score-counts",), "none are set on counts here"),
        (("--score-counts", *odds), "--score-counts"),
        (("--score-counts", "--method", "dpsgd", *odds), "have no true classes"),
        (("--score-counts", "--method", "pate", "--group-thresholds"), "does not read it"),
    ):
        assert words in " ".join(refuse(*asked(AUTO), *options).split())


def test_thresholds_are_inside_the_margin_by_the_errors_that_are_asked_for(
    town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    held = {}
    for name, method, options in (
        ("chosen", None, ()),
        ("one", "dpsgd", ("--no-counts", "--tightening", "1")),
        ("none", "dpsgd", ("--no-counts",)),
        ("wide", None, ("--no-counts", "--tightening", "0.5")),
    ):
        more = {**AUTO, "--method": method, "--out": name}
        train(more, "--group-thresholds", "--seed", "3", *options)
        model = evenhand.load(name)
        held[name] = model.held_margin_
        # What the user asked for is no choice of ours, and is not told as one.
        told = any("one standard error" in choice for choice in model.choices_)
        assert told == (name == "chosen")
    assert held["one"] < held["wide"] < held["none"] == model.fairness.margin
    assert held["chosen"] < held["none"]
    for options, words in (
        (("--tightening", "1"), "and there are none. Leave it out"),
        (("--group-thresholds", "--tightening", "-1"), "--tightening must be finite and >= 0"),
        (
            ("--group-thresholds", "--tightening", "1", "--confidence", "0.9"),
            "--confidence says how far",
        ),
    ):
        assert words in " ".join(refuse(*asked(AUTO), *options).split())


@pytest.mark.parametrize("known", [True, False])
def test_thresholds_that_cannot_be_set_are_refused_before_the_account_is_charged(
    known: bool, town: Path, run: Run, refuse: Run, asked: Run
) -> None:
    labelled = people(N_PUBLIC, 1)
    more: dict[str, str | None] = {"--ledger": "town.db", "--account-epsilon": "9"}
    if known:  # no woman of it was granted a loan
        labelled.loc[labelled["sex"] == "F", "loan"] = "refused"
        labelled.to_csv("known.csv", index=False)
        more |= {"--calibration": "known.csv", "--fairness": "equalized-odds"}
    else:
        table = pd.read_csv("private.csv")
        table.loc[:99, "loan"] = "later"
        table.to_csv("private.csv", index=False)
    line = refuse(*asked({**AUTO, **more}), "--group-thresholds")
    why = "of 'F' among class 'granted'" if known else "two classes, and the model has 3"
    assert why in line
    spent = run(*asked({**AUTO, **more, "--fairness": None, "--calibration": None}), "--json")
    assert json.loads(spent.stdout)["account"]["epsilon_spent"] < 5


@pytest.mark.parametrize(
    ("how", "change", "words"),
    [
        ("--group-thresholds", {"sex": "F"}, "one group only ('F')"),
        ("--group-thresholds", {"sex": ["f", "m"] * (N_PUBLIC // 2)}, "have the group (not shown)"),
        ("--blind-rule", {"sex": "F"}, "one group only"),
        ("--blind-rule", None, "are the same as private rows"),
    ],
)
def test_calibration_rows_that_nothing_can_be_set_on_are_refused_before_anything_is_spent(
    how: str, change: Any, words: str, town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    known = people(N_PUBLIC, 1) if change else pd.read_csv("private.csv")[:N_PUBLIC]
    known.assign(**(change or {})).to_csv("known.csv", index=False)
    account: dict[str, str | None] = {"--ledger": "town.db", "--account-epsilon": "4"}
    odds = {"--calibration": "known.csv", "--fairness": "equalized-odds"}
    assert words in refuse(*asked({**account, **odds, "--method": "pate"}), how)
    assert train(account)["account"]["epsilon_spent"] == pytest.approx(4.0, abs=0.01)


def test_calibration_rows_without_a_margin_about_true_classes_are_what_is_refused(
    town: Path, refuse: Run, asked: Run
) -> None:
    # Counts of scores, which nobody named, are not what is wrong.
    line = refuse(*asked({**AUTO, "--calibration": "test.csv"}), "--group-thresholds")
    assert line.startswith("--calibration brings true classes, and --fairness demographic-parity")


@pytest.mark.slow
def test_a_change_is_named_to_a_method_whose_claim_is_about_it(
    town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    adds, replaces = ("--neighbors", "add or remove one"), ("--neighbors", "replace one")
    assert train(AUTO, *adds)["method"] == "DPSGDClassifier"
    named = {**AUTO, "--method": "dpsgd", "--out": "named"}
    assert train(named, *adds)["neighbors"] == "add or remove one"
    line = refuse(*asked({**named, "--out": "no"}), *replaces)
    assert "makes a claim about one change of the data alone, got --neighbors" in line
    # Without groups in the private table teachers are taken, and the wish goes to them.
    pd.read_csv("private.csv").drop(columns=["sex"]).to_csv("private.csv", index=False)
    said = train({**AUTO, "--out": "teachers"}, *adds)
    assert (said["method"], said["neighbors"]) == ("FairSharesClassifier", "add or remove one")


def test_a_private_table_without_the_sensitive_column_is_left_to_teachers(
    town: Path, train: Run
) -> None:
    pd.read_csv("private.csv").drop(columns=["sex"]).to_csv("private.csv", index=False)
    assert train(AUTO)["method"] == "FairSharesClassifier"


def test_groups_without_a_margin_are_a_slip(town: Path, refuse: Run, asked: Run) -> None:
    line = refuse(*asked({**AUTO, "--margin": None}))
    assert line.startswith("--margin is missing.")
    assert "--method dpsgd" in line

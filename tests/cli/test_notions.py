"""``evenhand train --fairness ... --calibration ...``: what is bound, said and refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand
from evenhand import EqualizedOdds, FalsePositiveParity
from evenhand.fairness import FairnessKind

Run = Callable[..., Any]
ODDS = {"--fairness": "equalized-odds", "--margin": "0.2"}


def test_calibration_rows_bind_the_model(town: Path, train: Run) -> None:
    said = train({**ODDS, "--calibration": "test.csv", "--drop": "person"})
    model = evenhand.load("model")
    assert model.fairness == EqualizedOdds(margin=0.2)
    assert said["fairness"] == "equalized-odds"
    assert said["margin_source"] == model.margin_source_ == "calibration rows"
    assert said["calibration_gap"]["name"] == "equalized_odds_rest"
    assert said["public_gap"] <= 0.2
    assert said["within_margin"] is True
    assert said["answered_gap"] is None  # fair-shares releases no labels
    assert "the 300 calibration rows with their labels and groups" in said["guarantee"]
    assert "Equalized odds" in Path("model/report.html").read_text()


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_a_confidence_says_what_holds_on_new_rows(town: Path, run: Run, asked: Run) -> None:
    words = " ".join(run(*asked({"--margin": "0.2", "--confidence": "0.9"})).stdout.split())
    model = evenhand.load("model")
    assert model.fairness.confidence == 0.9
    limit = model.student_margin_.cross_fitted.high
    assert "gap on rows that it was not fitted on" in words
    assert f"at most {limit:.4f} with 90% confidence" in words


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({"--method": "dpsgd"}, "public rows"),
        ({"--method": "dpsgd", "--public": None, "--public-fraction": "0.4"}, "public rows"),
        (
            {"--method": "sf-student", "--protect": "attribute", "--public": None}
            | {"--calibration": "test.csv", "--teachers": "60"},
            "public rows",
        ),
    ],
)
def test_methods_without_public_answers_choose_a_rule_by_rows_with_groups(
    town: Path, train: Run, changes: dict[str, str | None], source: str
) -> None:
    said = train({"--margin": "0.2", "--confidence": "0.9", "--teachers": None, **changes})
    model = evenhand.load("model")
    assert model.student_margin_.cross_fitted.level == 0.9
    assert said["margin_source"] == source
    assert said["margin_supported"] == model.margin_supported_ >= 0.2
    assert "that set the blind rule" in said["guarantee"]
    assert said["fairness_kind"] == str(FairnessKind.BLIND_RULE) == str(model.fairness_kind_)


def test_without_them_the_answers_tell_the_classes_and_people_read_it(
    town: Path, run: Run, asked: Run
) -> None:
    words = " ".join(run(*asked(ODDS)).stdout.split())
    assert "gap of the model on public rows (classes by the released answers)" in words
    assert "margin 0.2 of equalized odds" in words
    assert "what the teachers say about the public rows, with noise" in words
    assert "The gate" not in words


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds"])
def test_without_the_gate_the_margin_binds_the_student_alone(
    town: Path, train: Run, fairness: str
) -> None:
    said = train({**ODDS, "--fairness": fairness, "--method": "fairpate"}, "--no-answer-margin")
    model = evenhand.load("model")
    assert model.fitted_.answered_gap is None
    assert said["answered_gap"] is None
    assert said["margin_source"] == (
        "public rows" if fairness == "demographic-parity" else "released answers"
    )
    assert model.bound_


def test_the_favourable_class_is_the_one_whose_false_positives_are_meant(
    town: Path, train: Run
) -> None:
    asked = {"--fairness": "false-positive-parity", "--margin": "0.3"}
    train({**asked, "--positive": "granted"})
    assert evenhand.load("model").fairness == FalsePositiveParity(margin=0.3, positive=0)
    train({**asked, "--out": "all"})
    assert evenhand.load("all").fairness == FalsePositiveParity(margin=0.3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"--fairness": "equalised-odds"}, ["--fairness", "Did you mean 'equalized-odds'?"]),
        ({"--calibration": "test.csv"}, ["--fairness demographic-parity", "predictions alone"]),
        ({"--confidence": "95"}, ["confidence must", "95"]),
        (
            {"--method": "dp-fermi", "--teachers": None, "--margin": None, "--confidence": "0.9"},
            ["--method dp-fermi chooses no model by rows that were held out, got --confidence"],
        ),
        (
            {"--method": "dpsgd", "--teachers": None, "--confidence": "0.9"}
            | {"--public": None, "--schema": "schema.json"},
            ["--confidence 0.9 is about rows that had no part", "Give --public FILE, or leave"],
        ),
        (
            {"--method": "sf-student", "--protect": "attribute", "--public": None}
            | {"--confidence": "0.9"},
            ["every group of the private table is private. Give --calibration FILE"],
        ),
        (
            {"--method": "pate", "--margin": None, "--fairness": "error-parity"},
            ["--method pate keeps no margin, got --fairness"],
        ),
        (
            {"--method": "pate", "--margin": None, "--calibration": "test.csv"},
            ["--method pate keeps no margin, got --calibration"],
        ),
        (
            {"--method": "dpsgd", "--teachers": None, "--fairness": "error-parity"},
            ["--method dpsgd knows demographic parity alone, got --fairness error-parity. Choose"],
        ),
        (
            {"--method": "dp-fermi", "--teachers": None, "--margin": None}
            | {"--fairness": "error-parity"},
            ["--method dp-fermi knows demographic parity and equalized odds alone, got --fairness"],
        ),
        (
            {"--method": "dp-post-processing", "--teachers": None}
            | {"--fairness": "generalized-demographic-parity"},
            ["--method dp-post-processing knows", "got --fairness generalized-demographic-parity"],
        ),
        (
            {"--method": "dp-post-processing", "--teachers": None, "--calibration": "test.csv"},
            ["--method dp-post-processing reads no calibration rows, got --calibration"],
        ),
        (
            {"--method": "intervention", "--fairness": "equalized-odds"},
            ["--method intervention knows demographic parity alone"],
        ),
        ({**ODDS, "--calibration": "nowhere.csv"}, ["nowhere.csv"]),
        (
            {**ODDS, "--method": "fairpate"},
            ["nothing tells the gate", "--no-answer-margin, or --method fair-shares"],
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    town: Path, refuse: Run, asked: Run, changes: dict[str, str | None], said: list[str]
) -> None:
    line = refuse(*asked(changes))
    assert all(words in line for words in said)
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("method", "more", "said"),
    [
        ("fair-shares", (), "has no gate that could be left out, got --no-answer-margin"),
        ("fairpate-published", (), "has no gate that could be left out, got --no-answer-margin"),
        ("fairpate", ("--gate-level", "0.9"), "--gate-level is about the gate, and --no-answer-"),
    ],
)
def test_a_gate_is_left_out_where_there_is_one_and_nothing_else_speaks_of_it(
    town: Path, refuse: Run, asked: Run, method: str, more: tuple[str, ...], said: str
) -> None:
    odds = ODDS if method == "fairpate" else {"--margin": "0.2"}
    line = refuse(*asked({**odds, "--method": method}), "--no-answer-margin", *more)
    assert said in line


# Whether the margin is met is a matter of noise, and not what is looked at.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evenhand.students.constrained.MarginNotMet")
def test_thresholds_by_group_keep_rates_among_true_classes_too(
    town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    given = {**ODDS, "--method": "dpsgd", "--teachers": None}
    said = train(given, "--group-thresholds")
    assert (said["fairness"], said["margin_source"]) == ("equalized-odds", "own probabilities")
    assert any("no true class of a public row was read" in words for words in said["warnings"])
    labelled = train(
        {**given, "--calibration": "test.csv", "--out": "by-labels"}, "--group-thresholds"
    )
    assert labelled["margin_source"] == "calibration rows"
    assert (
        "groups and labels of the 300 public rows that set the thresholds" in labelled["guarantee"]
    )
    # Labelled rows are public rows of their own: others are not needed.
    alone = {**given, "--calibration": "test.csv", "--public": None, "--public-fraction": "0.3"}
    for option in ("--group-thresholds", "--blind-rule"):
        said = train({**alone, "--out": option}, option)
        assert said["margin_source"] == "calibration rows"
        assert said["guarantee"].count("groups and labels of the 300 public rows that set") == 1
    # And so are rows of the table that are set aside.
    parity = {**given, "--fairness": "demographic-parity", "--margin": "0.02"}
    aside = {**parity, "--public": None, "--public-fraction": "0.3"}
    for option in ("--group-thresholds", "--blind-rule"):
        said = train({**aside, "--out": f"aside{option}"}, option)
        n = re.search(r"features and groups of the (\d+) public rows that set", said["guarantee"])
        assert n is not None
        assert 240 < int(n[1]) < 480  # of 1,200
        assert f"the features of {n[1]} rows of the table, set aside" in said["guarantee"]
    line = refuse(*asked({**given, "--confidence": "0.9", "--out": "more"}), "--group-thresholds")
    assert "--confidence 0.9 of --fairness equalized-odds needs true classes" in line


def test_a_calibration_table_that_does_not_fit_is_refused(
    town: Path, refuse: Run, asked: Run
) -> None:
    table = pd.read_csv("test.csv")
    given = {**ODDS, "--calibration": "labelled.csv"}
    loan, age = table["loan"], table["age"].fillna(40).astype(object)
    bad = (
        (table.rename(columns={"loan": "lone"}), ["no column 'loan'", "--label", "'lone'"]),
        (table.rename(columns={"hours": "hour"}), ["no column 'hours'", "Did you mean 'hour'?"]),
        (table.assign(loan=loan.where(loan.index != 4, "grantet")), ["row 5", "(not shown)"]),
        (table.assign(sex=table["sex"].where(table.index != 3)), ["sensitive attribute 'sex'"]),
        (table.assign(sex="X"), ["sensitive_features_calibration", "(not shown)"]),
        (table.assign(age=age.where(table.index != 7, "old")), ["labelled.csv", "'age'"]),
        (
            table[(loan == "granted") | (table["sex"] == "F")],
            ["class (not shown) in 'M'", "merge groups"],
        ),
    )
    for changed, said in bad:
        changed.to_csv("labelled.csv", index=False)
        line = refuse(*asked(given))
        assert all(words in line for words in said), line
    assert not Path("model").exists()

"""``evenhand evaluate``: what is measured, on which groups, and that it is not covered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference

import evenhand
from evenhand._folder import seal

Run = Callable[..., Any]


def evaluate(run: Run, *more: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(run("evaluate", "model", "test.csv", "--json", *more).stdout)
    return said


def test_the_numbers_are_those_of_pandas_and_fairlearn(model: Path, run: Run) -> None:
    said = evaluate(run)
    test = pd.read_csv("test.csv")
    fitted = evenhand.load("model")
    predicted = fitted.predict(test[list(fitted.feature_names_in_)])
    assert said["error"] == pytest.approx((predicted != test["loan"]).mean())
    gap = demographic_parity_difference(
        test["loan"] == "granted", predicted == "granted", sensitive_features=test["sex"]
    )
    assert said["demographic_parity_gap"] == pytest.approx(gap)
    assert said["gap_interval"][0] <= gap <= said["gap_interval"][1]
    assert said["covered"] is False
    rows = {group["name"]: group["n"] for group in said["groups"]}
    assert rows == test["sex"].value_counts().to_dict()


def test_errors_stand_beside_that_of_the_majority_class_and_of_no_margin(
    model: Path, run: Run
) -> None:
    said = evaluate(run)
    test = pd.read_csv("test.csv")
    beside = said["yardstick"]
    most = test["loan"].value_counts()
    assert beside["majority_error"]["value"] == pytest.approx(1 - most.iloc[0] / len(test))
    fitted = evenhand.load("model")
    free = fitted.without_margin().predict(test[list(fitted.feature_names_in_)])
    assert beside["without_margin"]["value"] == pytest.approx((free != test["loan"]).mean())
    assert said["warnings"] == []
    words = run("evaluate", "model", "test.csv").stdout
    assert f"error of always predicting '{most.index[0]}'" in words
    assert "error of the same model without its margin" in words


def test_a_model_that_is_no_better_than_the_majority_class_is_announced(
    model: Path, run: Run
) -> None:
    test = pd.read_csv("test.csv")
    rng = np.random.default_rng(0)
    test["loan"] = rng.choice(["granted", "refused"], len(test), p=[0.3, 0.7])  # no relation
    test.to_csv("test.csv", index=False)
    result = run("evaluate", "model", "test.csv", "--json")
    assert "no better than always predicting 'refused'" in json.loads(result.stdout)["warnings"][0]
    assert "warning: on the 300 test rows, the model is no better" in result.stderr


def test_label_and_groups_are_remembered_from_training(model: Path, run: Run) -> None:
    said = evaluate(run)
    assert (said["label"], said["sensitive"]) == ("loan", ["sex"])
    assert said == evaluate(run, "--label", "loan", "--sensitive", "sex")


def test_other_groups_can_be_compared_than_those_of_training(model: Path, run: Run) -> None:
    said = evaluate(run, "--sensitive", "race", "--reference", "pairwise")
    assert [group["name"] for group in said["groups"]] == ["A", "B"]
    assert said["reference"] == "pairwise"
    fourfold = evaluate(run, "--sensitive", "sex", "--sensitive", "race")
    assert [group["name"] for group in fourfold["groups"]] == [
        f"sex={sex}, race={race}" for sex in "FM" for race in "AB"
    ]


def test_rows_of_one_person_tell_less(model: Path, run: Run, refuse: Run) -> None:
    plain = evaluate(run)
    test = pd.read_csv("test.csv")
    many = pd.concat([test.assign(person=range(len(test)))] * 4)
    many.to_csv("test.csv", index=False)
    narrow, told = evaluate(run), evaluate(run, "--unit", "person")
    assert told["error"] == narrow["error"] == pytest.approx(plain["error"])
    width = [
        said["error_interval"][1] - said["error_interval"][0] for said in (plain, told, narrow)
    ]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    assert width[2] < 0.6 * width[1]
    assert told["metrics"]["error_rate"]["n_units"] == len(test)
    words = run("evaluate", "model", "test.csv", "--unit", "person").stdout
    assert f"{4 * len(test)} rows of {len(test)} units" in " ".join(words.split())
    said = refuse("evaluate", "model", "test.csv", "--unit", "persn")
    assert "'persn'" in said
    assert "'person'" in said


def test_the_unit_is_remembered_from_training(town: Path, run: Run) -> None:
    for name in ("private.csv", "test.csv"):
        table = pd.read_csv(name)
        table.assign(person=np.arange(len(table)) // 2).to_csv(name, index=False)
    train = ("train", "private.csv", "--label", "loan", "--method", "pate", "--unit", "person")
    more = ("--public", "public.csv", "--teachers", "20", "--out", "model", "--epsilon", "8")
    trained = json.loads(run(*train, *more, "--test", "test.csv", "--json").stdout)
    n_units = (len(pd.read_csv("test.csv")) + 1) // 2
    assert trained["measured"]["metrics"]["error_rate"]["n_units"] == n_units
    assert evaluate(run)["error_interval"] == trained["measured"]["error_interval"]
    pd.read_csv("test.csv").drop(columns="person").to_csv("test.csv", index=False)
    asked = run("evaluate", "model", "test.csv", "--json")
    assert "no column 'person'" in asked.stderr
    assert json.loads(asked.stdout)["metrics"]["error_rate"]["n_units"] is None


def test_people_are_told_that_the_numbers_are_not_covered(model: Path, run: Run) -> None:
    said = run("evaluate", "model", "test.csv").stdout
    assert "not covered by the guarantee" in said
    assert "demographic parity gap" in said
    assert "95 % interval" in said


def test_the_favourable_class_can_be_named(model: Path, run: Run, refuse: Run) -> None:
    assert evaluate(run)["positive"] == 1
    assert evaluate(run, "--positive", "granted")["positive"] == 0
    line = refuse("evaluate", "model", "test.csv", "--positive", "grated")
    assert "Did you mean 'granted'?" in line


def test_the_report_is_written_with_the_measurements(model: Path, run: Run, refuse: Run) -> None:
    run("evaluate", "model", "test.csv", "--report", "page.html")
    assert "Not covered by the guarantee" in Path("page.html").read_text()
    line = refuse("evaluate", "model", "test.csv", "--report", "page.html")
    assert "page.html exists" in line
    run("evaluate", "model", "test.csv", "--report", "page.html", "--overwrite")


def test_an_unseen_group_is_an_error_that_lists_the_known_ones(model: Path, refuse: Run) -> None:
    test = pd.read_csv("test.csv")
    test.loc[4, "sex"] = "X"
    test.to_csv("test.csv", index=False)
    line = refuse("evaluate", "model", "test.csv", "--show-values")
    assert "test.csv" in line
    assert "'X'" in line
    assert "'F', 'M'" in line


def test_an_unknown_label_is_an_error_that_lists_the_classes(model: Path, refuse: Run) -> None:
    test = pd.read_csv("test.csv")
    test.loc[4, "loan"] = "maybe"
    test.to_csv("test.csv", index=False)
    line = refuse("evaluate", "model", "test.csv")
    assert "row 5" in line
    assert "'granted', 'refused'" in line


@pytest.mark.parametrize("column", ["loan", "sex", "age"])
def test_a_missing_column_is_an_error(model: Path, refuse: Run, column: str) -> None:
    pd.read_csv("test.csv").drop(columns=column).to_csv("test.csv", index=False)
    assert f"test.csv has no column {column!r}" in refuse("evaluate", "model", "test.csv")


def test_missing_labels_and_groups_are_located(model: Path, refuse: Run) -> None:
    for column in ("loan", "sex"):
        test = pd.read_csv("test.csv")
        test.loc[2, column] = None
        test.to_csv("gaps.csv", index=False)
        line = refuse("evaluate", "model", "gaps.csv")
        assert f"{column!r} is missing in row 3 " in line


def test_a_model_saved_from_python_needs_the_label_named(
    model: Path, run: Run, refuse: Run
) -> None:
    (model / "training.json").unlink()
    seal(model, "model")
    assert "--label is missing" in refuse("evaluate", "model", "test.csv")
    said = evaluate(run, "--label", "loan", "--sensitive", "sex")
    assert said["n_rows"] == 300


def test_a_damaged_memory_of_training_is_an_error(model: Path, refuse: Run) -> None:
    (model / "training.json").write_text('{"label": "loan"}')
    assert "training.json is not as it was saved" in refuse("evaluate", "model", "test.csv")
    seal(model, "model")
    assert "training.json is damaged" in refuse("evaluate", "model", "test.csv")

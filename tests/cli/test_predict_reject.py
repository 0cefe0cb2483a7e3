"""``evenhand predict --reject-margin``: refusals in the output, counts over runs, bad input."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand

Run = Callable[..., Any]
REJECT = ("--reject-margin", "0.05")


def given(text: str) -> pd.DataFrame:
    """Read what the command printed; an empty prediction is NaN."""
    frame: pd.DataFrame = pd.read_csv(io.StringIO(text))
    return frame


def gap(labels: pd.Series, groups: pd.Series) -> float:
    """Compute the difference of rates from the table itself."""
    kept = labels.notna().to_numpy()
    rates = [(labels[kept & (groups == z).to_numpy()] == "granted").mean() for z in groups.unique()]
    return float(max(rates) - min(rates))


def test_given_predictions_are_within_the_margin_and_are_those_of_the_model(
    model: Path, run: Run
) -> None:
    new = pd.read_csv("test.csv")
    said = pd.Series(evenhand.load("model").predict(new.drop(columns=["loan", "sex", "person"])))
    # Fewer women who would be granted: whatever noise the model has, there is a gap to close.
    few = (new["sex"] == "F") & (said == "granted")
    kept = ~few | (few.cumsum() % 2 == 0)
    new, said = new[kept].reset_index(drop=True), said[kept].reset_index(drop=True)
    new.to_csv("skewed.csv", index=False)
    result = run("predict", "model", "skewed.csv", *REJECT)
    found = given(result.stdout)
    answered = found["prediction"].notna()
    assert len(found) == len(new)
    assert gap(said, new["sex"]) > 0.05
    assert gap(found["prediction"], new["sex"]) <= 0.05 + 1e-12
    assert (found["prediction"][answered] == said[answered]).all()
    assert ((found["reason"] == "answered") == answered).all()
    assert found["request"].tolist() == list(range(len(new)))
    assert 0.3 < answered.mean() < 1
    assert f"{answered.sum()} of {len(new)} rows are answered" in result.stderr
    for z in ("F", "M"):
        own = (new["sex"] == z).to_numpy()
        for k in ("granted", "refused"):
            n, of = ((column[own] == k).sum() for column in (found["prediction"], said))
            assert f"{k} {n} of {of}" in next(
                line for line in result.stderr.splitlines() if line.startswith(f"given to {z}")
            )


def test_json_carries_predictions_reasons_and_coverage(model: Path, run: Run) -> None:
    said = json.loads(run("predict", "model", "test.csv", *REJECT, "--json").stdout)
    found = given(run("predict", "model", "test.csv", *REJECT).stdout)
    assert said["predictions"] == [None if v != v else v for v in found["prediction"]]
    assert said["reasons"] == found["reason"].tolist()
    assert said["n_answered"] == found["prediction"].notna().sum()
    assert said["margin"] == 0.05
    assert said["gap"] <= 0.05
    assert said["coverage"]["groups"] == ["F", "M"]
    assert said["coverage"]["classes"] == ["granted", "refused"]
    assert np.sum(said["coverage"]["offered"]) == 300
    assert np.sum(said["coverage"]["given"]) == said["n_answered"]
    assert said["delivered"] == []


def test_a_state_keeps_the_counts_over_runs(model: Path, run: Run) -> None:
    new = pd.read_csv("test.csv")
    new[:120].to_csv("one.csv", index=False)
    new[120:].to_csv("two.csv", index=False)
    state = ("--state", "state.json")
    first = given(run("predict", "model", "one.csv", *REJECT, *state).stdout)
    second = given(
        run("predict", "model", "two.csv", *REJECT, *state, "--delivered", "late.csv").stdout
    )
    both = pd.concat([first, second], ignore_index=True)
    assert both["request"].tolist() == list(range(300))
    for number, label in pd.read_csv("late.csv").itertuples(index=False):
        assert both.loc[number, "reason"] == "withheld"
        both.loc[number, "prediction"] = label
    assert gap(both["prediction"], new["sex"]) <= 0.05 + 1e-12
    # What a third run knows of the first two is what they gave, by group and class.
    new[:1].to_csv("three.csv", index=False)
    said = json.loads(run("predict", "model", "three.csv", *REJECT, *state, "--json").stdout)
    for late in said["delivered"]:
        both.loc[late["request"], "prediction"] = late["prediction"]
    told = pd.concat([both["prediction"], pd.Series(said["predictions"], dtype=object)])
    whose = pd.concat([new["sex"], new["sex"][:1]])
    assert said["coverage"]["given"] == [
        [int(((whose == z) & (told == k)).sum()) for k in ("granted", "refused")]
        for z in ("F", "M")
    ]
    assert np.sum(said["coverage"]["offered"]) == 301


def test_answers_withheld_by_an_earlier_run_are_delivered_by_a_later_one(
    model: Path, run: Run
) -> None:
    new = pd.read_csv("test.csv")
    men, women = new[new["sex"] == "M"], new[new["sex"] == "F"]
    men.to_csv("men.csv", index=False)
    women[:30].to_csv("few.csv", index=False)
    women[30:].to_csv("more.csv", index=False)
    state = (*REJECT, "--state", "state.json")
    run("predict", "model", "men.csv", *state)
    few = run("predict", "model", "few.csv", *state)
    assert set(given(few.stdout)["reason"]) == {"withheld"}
    assert "30 rows are withheld until enough answers of their group fit" in few.stderr
    more = run("predict", "model", "more.csv", *state)
    (line,) = (line for line in more.stderr.splitlines() if "--delivered FILE" in line)
    n = int(line.split()[0])
    assert 0 < n <= 30
    said = json.loads(run("predict", "model", "men.csv", *state, "--json").stdout)
    numbers = [late["request"] for late in said["delivered"]]
    assert len(numbers) >= n
    labels = evenhand.load("model").predict(
        pd.concat([men, women])[list(evenhand.load("model").feature_names_in_)]
    )
    for late in said["delivered"]:
        assert late["prediction"] == labels[late["request"]]
    again = json.loads(run("predict", "model", "men.csv", *state, "--json").stdout)
    assert not set(numbers) & {late["request"] for late in again["delivered"]}


def test_a_file_that_cannot_be_written_leaves_the_counts_alone(
    model: Path, run: Run, refuse: Run
) -> None:
    state = (*REJECT, "--state", "state.json")
    run("predict", "model", "test.csv", *state, "--out", "found.csv")
    before = Path("state.json").read_bytes()
    assert "found.csv exists" in refuse(
        "predict", "model", "test.csv", *state, "--out", "found.csv"
    )
    assert Path("state.json").read_bytes() == before
    run("predict", "model", "test.csv", *state, "--out", "found.csv", "--overwrite")
    assert Path("state.json").read_bytes() != before
    assert not list(model.parent.glob(".*"))


def test_the_state_of_another_model_is_refused(
    model: Path, run: Run, refuse: Run, train: Run
) -> None:
    state = ("--state", "state.json")
    run("predict", "model", "test.csv", *REJECT, *state)
    before = Path("state.json").read_bytes()
    train({"--out": "other", "--seed": "1"})
    line = refuse("predict", "other", "test.csv", *REJECT, *state)
    assert line.startswith("state.json: The saved state of the reject option belongs to the model ")
    line = refuse("predict", "model", "test.csv", "--reject-margin", "0.06", *state)
    assert "belongs to the margin 0.05, not to 0.06" in line
    assert Path("state.json").read_bytes() == before


def test_a_model_that_knows_no_groups_takes_those_of_the_table(
    model: Path, run: Run, refuse: Run, train: Run
) -> None:
    train({"--method": "pate", "--margin": None, "--sensitive": None, "--out": "plain"})
    assert "--sensitive is missing" in refuse("predict", "plain", "test.csv", *REJECT)
    words = ("predict", "plain", "test.csv", *REJECT, "--sensitive", "race", "--state", "s.json")
    first = run(*words)
    assert "those of the table are taken: A, B" in first.stderr
    assert "given to A" in first.stderr
    assert "are taken" not in run(*words).stderr  # the state knows them now
    new = pd.read_csv("test.csv")
    new["race"] = "C"
    new.to_csv("new.csv", index=False)
    words = ("predict", "plain", "new.csv", *REJECT, "--sensitive", "race", "--state", "s.json")
    known = "first in row 1 (counted from 1 below the header), which is not among the known groups"
    assert f"the group (not shown), {known}: 'A', 'B'" in refuse(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--state", "s.json"), "--state is of use only with --reject-margin"),
        (("--sensitive", "sex"), "--sensitive is of use only with --reject-margin"),
        (("--delivered", "d.csv"), "--delivered is of use only with --reject-margin"),
        (("--reject-margin", "1.5"), "--reject-margin must lie in [0, 1], got --reject-margin=1.5"),
        ((*REJECT, "--proba"), "--proba and --reject-margin do not go together"),
        ((*REJECT, "--delivered", "d.csv"), "Add --state, or leave --delivered out"),
        ((*REJECT, "--state", "no/s.json"), "no of --state does not exist. Make it first"),
        ((*REJECT, "--sensitive", "sexx"), "Did you mean 'sex'?"),
        ((*REJECT, "--state", "bad.json"), "bad.json is not a saved state"),
        ((*REJECT, "--state", "list.json"), "list.json: A reject option's format must be"),
        ((*REJECT, "--state", "x", "--out", "x"), "x is named by --out and by --state"),
        ((*REJECT, "--state", "test.csv"), "test.csv is named by NEW and by --state"),
    ],
)
def test_bad_input_gets_one_line(
    model: Path, refuse: Run, words: tuple[str, ...], message: str
) -> None:
    Path("bad.json").write_text("{")
    Path("list.json").write_text("{}")
    before = sorted(model.parent.iterdir())
    assert message in refuse("predict", "model", "test.csv", *words)
    assert sorted(model.parent.iterdir()) == before


def test_a_missing_or_unknown_group_gets_one_line(model: Path, refuse: Run) -> None:
    new = pd.read_csv("test.csv")
    new.assign(sex=new["sex"].where(new.index != 4)).to_csv("new.csv", index=False)
    line = refuse("predict", "model", "new.csv", *REJECT)
    assert "the sensitive attribute 'sex' is missing in row 5 " in line
    new.assign(sex="Fem").to_csv("new.csv", index=False)
    line = refuse("predict", "model", "new.csv", *REJECT)
    assert line.startswith("new.csv: sensitive_features holds the group (not shown)")


def test_as_a_process_it_prints_data_on_stdout_and_words_on_stderr(
    model: Path, shell: Callable[..., Any]
) -> None:
    process = shell("predict", "model", "test.csv", *REJECT, "--state", "state.json")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.startswith("prediction,reason,request\n")
    assert len(given(out)) == 300
    assert "largest gap" in err
    assert json.loads(Path("state.json").read_text())["groups"] == ["F", "M"]

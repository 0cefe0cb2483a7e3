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
from evenhand import REJECTED, DemographicParity, ErrorParity

from .conftest import people

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
    # Fewer of those who are granted less: whatever noise the model has, there is a gap to close.
    less = (said == "granted").groupby(new["sex"]).mean().idxmin()
    few = (new["sex"] == less) & (said == "granted")
    kept = ~few | (few.cumsum() % 2 == 0)
    new, said = new[kept].reset_index(drop=True), said[kept].reset_index(drop=True)
    new.to_csv("skewed.csv", index=False)
    result = run("predict", "model", "skewed.csv", *REJECT, "--keep", "person")
    found = given(result.stdout)
    assert found["person"].tolist() == new["person"].tolist()
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
        ((*REJECT, "--proba"), "--proba does not go together with --reject-margin"),
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
    assert "leave these rows out, or fill in one that the model knows" in line
    new.assign(sex="Fem").to_csv("new.csv", index=False)
    line = refuse("predict", "model", "new.csv", *REJECT)
    assert line.startswith("new.csv: sensitive_features holds the group (not shown)")


@pytest.mark.slow
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


BOTH = ("--within", "demographic-parity=0.1", "--within", "error-parity=0.3")


def labelled(n: int = 3000) -> pd.DataFrame:
    """Write labelled rows of the town that no training saw."""
    rows = people(n, 77)
    rows.to_csv("labelled.csv", index=False)
    return rows


def test_several_margins_are_kept_as_the_library_keeps_them(model: Path, run: Run) -> None:
    known, new = labelled(), people(900, 78)
    new.to_csv("new.csv", index=False)
    words = ("predict", "model", "new.csv", *BOTH, "--calibration", "labelled.csv")
    said = json.loads(run(*words, "--json").stdout)
    loaded = evenhand.load("model")
    columns = list(loaded.feature_names_in_)
    option = loaded.with_reject_option(
        fairness=[DemographicParity(margin=0.1), ErrorParity(margin=0.3)],
        X_calibration=known[columns],
        y_calibration=known["loan"],
        sensitive_features_calibration=known["sex"],
    )
    expected = option.decide(new[columns], sensitive_features=new["sex"])
    late = option.deliver()
    assert said["predictions"] == [
        late.get(i, label) if label != REJECTED or i in late else None
        for i, label in enumerate(expected.labels)
    ]
    assert [one["gap"] for one in said["margins"]] == list(option.gaps_.values())
    assert [(one["notion"], one["margin"], one["gap_is"]) for one in said["margins"]] == [
        ("demographic-parity", 0.1, "exact"),
        ("error-parity", 0.3, "upper limit"),
    ]
    assert all(one["gap"] <= one["margin"] and one["within_margin"] for one in said["margins"])
    assert said["n_answered"] > 0


def test_the_level_and_the_estimate_are_passed_on_and_told(model: Path, run: Run) -> None:
    labelled()
    words = ("predict", "model", "test.csv", *BOTH, "--calibration", "labelled.csv")
    sure = json.loads(run(*words, "--gate-level", "0.5", "--json").stdout)["margins"][1]
    surer = json.loads(run(*words, "--gate-level", "0.999", "--json").stdout)["margins"][1]
    told = run(*words, "--admit-by", "estimate").stderr
    assert sure["gap"] < surer["gap"]
    assert "error parity: estimate of the gap" in told
    assert "demographic parity: largest gap" in told
    assert "the 3,000 labelled rows of labelled.csv" in told


def test_one_margin_has_two_spellings(model: Path, run: Run) -> None:
    old = run("predict", "model", "test.csv", *REJECT).stdout
    run("predict", "model", "test.csv", *REJECT, "--state", "s.json")
    words = ("--within", "demographic-parity=0.05")
    assert run("predict", "model", "test.csv", *words).stdout == old
    run("predict", "model", "test.csv", *words, "--state", "s.json")  # and one state
    both = ("--within", "error-parity=0.3", "--calibration", "labelled.csv")
    labelled()
    said = json.loads(run("predict", "model", "test.csv", *REJECT, *both, "--json").stdout)
    assert [one["margin"] for one in said["margins"]] == [0.05, 0.3]


def test_a_state_of_other_margins_or_calibration_rows_is_refused(
    model: Path, run: Run, refuse: Run
) -> None:
    rows = labelled()
    words = ("predict", "model", "test.csv", *BOTH, "--state", "s.json", "--calibration")
    run(*words, "labelled.csv")
    before = Path("s.json").read_bytes()
    rows[:-1].to_csv("fewer.csv", index=False)
    assert "belongs to the calibration rows" in refuse(*words, "fewer.csv")
    assert "belongs to the calibration rows" in refuse(
        *words, "labelled.csv", "--gate-level", "0.9"
    )
    assert "belongs to the notion" in refuse(
        "predict", "model", "test.csv", *REJECT, "--state", "s.json"
    )
    assert Path("s.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--within", "error-parity=0.1"), "error-parity is about true classes, and nothing tells"),
        (("--within", "error-parity"), "'error-parity' must be NOTION=MARGIN"),
        (("--within", "eror-parity=0.1"), "Did you mean 'error-parity'?"),
        (("--within", "error-parity=x"), "'x' is no number"),
        (("--within", "error-parity=nan"), "the margin of error-parity must lie in [0, 1]"),
        (("--within", "generalized-demographic-parity=.1"), "the notion must be one of"),
        ((*REJECT, "--within", "demographic-parity=0.1"), "demographic-parity has two margins"),
        ((*REJECT, "--calibration", "labelled.csv"), "--calibration is of use only for a margin"),
        ((*REJECT, "--gate-level", "0.9"), "--gate-level is of use only for a margin"),
        (("--calibration", "labelled.csv"), "--calibration is of use only with --reject-margin or"),
        (("--reference", "overall"), "--reference is of use only with --reject-margin or"),
        ((*BOTH, "--calibration", "no.csv"), "no.csv"),
        ((*BOTH, "--calibration", "public.csv"), "has no column 'loan', which --label names"),
        ((*BOTH, "--calibration", "strange.csv"), "strange.csv: the label in row 3"),
        ((*BOTH, "--calibration", "others.csv"), "others.csv: sensitive_features holds the group"),
        ((*BOTH, "--calibration", "short.csv"), "short.csv has no column 'hours'"),
        ((*BOTH, "--calibration", "labelled.csv", "--gate-level", "1"), "--gate-level must lie"),
        (
            (*BOTH, "--calibration", "labelled.csv", "--out", "labelled.csv", "--overwrite"),
            "labelled.csv is named by --calibration and by --out",
        ),
    ],
)
def test_bad_margins_and_calibration_rows_get_one_line(
    model: Path, refuse: Run, words: tuple[str, ...], message: str
) -> None:
    rows = labelled(300)
    rows.assign(loan=rows["loan"].where(rows.index != 2, "perhaps")).to_csv(
        "strange.csv", index=False
    )
    rows.assign(sex="Fem").to_csv("others.csv", index=False)
    rows.drop(columns="hours").to_csv("short.csv", index=False)
    before = {path: path.stat().st_size for path in model.parent.iterdir()}
    assert message in refuse("predict", "model", "test.csv", *words)
    assert {path: path.stat().st_size for path in model.parent.iterdir()} == before


def test_all_bad_margins_are_named_at_once(model: Path, refuse: Run) -> None:
    line = refuse(
        *("predict", "model", "test.csv", "--within", "error-parity=2"),
        *("--within", "no-such=0.1", "--within", "0.1"),
    )
    assert "the margin of error-parity" in line
    assert "'no-such'" in line
    assert "'0.1' must be NOTION=MARGIN" in line

"""``--method`` and ``--group-thresholds``: what is trained, what is claimed, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand
from evenhand import DemographicParity, EqualizedOdds, _words
from evenhand.baselines.intervention_points import POINTS
from evenhand.cli import app, results
from evenhand.cli.train_limits import NOT_ALWAYS_READ
from evenhand.fairness import FairnessKind
from evenhand.methods import METHODS
from evenhand.students.blind_rule import BlindRule

from .conftest import N_PRIVATE, N_PUBLIC, N_TEST, command, people

Run = Callable[..., Any]

NO_TEACHERS: dict[str, str | None] = {"--teachers": None}
REFERENCE: dict[str, str | None] = {**NO_TEACHERS, "--epsilon": None}
WEIGHT: dict[str, str | None] = {**NO_TEACHERS, "--margin": None, "--method": "dp-fermi"}
POST: dict[str, str | None] = {**NO_TEACHERS, "--method": "dp-post-processing"}
MADE: dict[str, dict[str, str | None]] = {
    "fermi": {**WEIGHT, "--fairness-weight": "7"},
    "odds": {**WEIGHT, "--fairness": "equalized-odds"},
    "post": {**POST, "--fairness": "equalized-odds", "--margin": "0.03"},
    **{at: {"--method": "intervention", "--at": at} for at in ("T_pre", "aggregator", "S_post")},
}


def both_tables(folder: Path) -> tuple[str, str]:
    people(N_PRIVATE, 0).to_csv(folder / "private.csv", index=False)
    people(N_PUBLIC, 1).drop(columns=["loan", "person"]).to_csv(folder / "public.csv", index=False)
    return str(folder / "private.csv"), str(folder / "public.csv")


@pytest.fixture(scope="module")
def cut_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model folder of pate under group thresholds."""
    folder = tmp_path_factory.mktemp("cut")
    private, public = both_tables(folder)
    changes = {
        "--method": "pate",
        "--margin": "0",
        "--public": public,
        "--out": str(folder / "model"),
    }
    result = CliRunner().invoke(app, [*command(changes, private), "--group-thresholds"])
    assert result.exit_code == 0, result.output
    return folder / "model"


@pytest.fixture
def cut(cut_folder: Path, town: Path) -> Path:
    return Path(shutil.copytree(cut_folder, town / "model"))


def test_the_command_line_knows_every_point() -> None:
    assert tuple(POINTS) == _words.POINTS


def test_the_settings_that_a_method_may_have_no_use_for_are_options_or_set_by_it() -> None:
    (train,) = [c for c in app.registered_commands if c.callback and c.callback.__name__ == "train"]
    assert train.callback is not None
    known = set(train.callback.__annotations__)
    read = {setting for spec in METHODS.values() for setting in spec.reads}
    assert set(NOT_ALWAYS_READ) <= known
    assert read <= known
    # One that some method does not read is refused there, and not passed over.
    assert {s for s in read if not all(m.accepts(s) for m in METHODS.values())} <= {
        *NOT_ALWAYS_READ,
        "margin",  # refused beside --group-thresholds
    }


def test_dp_sgd_trains_without_teachers(town: Path, train: Run, run: Run, asked: Run) -> None:
    changes = {**NO_TEACHERS, "--method": "dpsgd", "--margin": None, "--test": "test.csv"}
    said = train(changes)
    assert said["method"] == "DPSGDClassifier"
    assert (said["epsilon"], said["neighbors"]) == (4.0, "add or remove one")
    assert "floating-point noise" in said["guarantee"]
    assert said["epsilon_spent"] == pytest.approx(4.0, rel=1e-3)
    assert said["n_teachers"] is said["n_answered"] is said["coverage"] is None
    assert said["fairness_kind"] == FairnessKind.NONE
    assert said["measured"]["error"] < 0.4
    words = run(*asked({**changes, "--out": "again"})).stdout
    assert "Where the margin sits: none, no group needed." in words
    assert "asked" not in words
    page = Path("model/report.html").read_text()
    assert "Answers and refusals" not in page


def test_dp_sgd_aims_for_a_margin_with_the_groups_of_the_private_rows(
    town: Path, train: Run
) -> None:
    public = pd.read_csv("public.csv").drop(columns=["sex"])
    public.to_csv("public.csv", index=False)  # the groups of public rows are not needed
    said = train({**NO_TEACHERS, "--method": "dpsgd"})
    assert said["fairness_kind"] == FairnessKind.WEIGHTS
    assert "the names of the groups" in said["guarantee"]
    assert evenhand.load("model").groups_ == ("F", "M")


@pytest.fixture(scope="module")
def made_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of each kind that other settings are spelled for."""
    folder = tmp_path_factory.mktemp("made")
    private, public = both_tables(folder)
    people(N_TEST, 2).to_csv(folder / "test.csv", index=False)
    for name, changes in MADE.items():
        told = {**changes, "--public": public, "--out": str(folder / name)}
        words = [*command(told, private), "--test", str(folder / "test.csv"), "--json"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        (folder / f"{name}.json").write_text(result.stdout)
    return folder


@pytest.fixture
def made(made_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made_folder)
    monkeypatch.setenv("COLUMNS", "200")
    return made_folder


def said_of(name: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(Path(f"{name}.json").read_text())
    return said


@pytest.mark.slow
def test_dp_fermi_is_drawn_towards_a_notion_by_a_weight(made: Path) -> None:
    said, model = said_of("fermi"), evenhand.load("fermi")
    assert (said["method"], said["epsilon"]) == ("DPFERMIClassifier", 4.0)
    assert (model.fairness_weight, model.fairness) == (7.0, DemographicParity(margin=0.0))
    assert (said["fairness_weight"], said["fairness"]) == (7.0, "demographic-parity")
    assert said["margin"] is said["n_teachers"] is said["n_answered"] is None
    assert said["fairness_kind"] == FairnessKind.WEIGHTS
    assert model.group_shares is None
    assert f"the groups of {N_PUBLIC} public rows, and so their shares" in said["guarantee"]
    assert "penalized the dependence of decision and group" in Path("fermi/report.html").read_text()


def test_dp_fermi_pays_for_the_shares_that_public_rows_cannot_tell(made: Path) -> None:
    said, model = said_of("odds"), evenhand.load("odds")
    assert (model.fairness, said["fairness"]) == (EqualizedOdds(margin=0.0), "equalized-odds")
    assert model.group_shares == "released"
    assert model.ledger_.to_dict()["entries"][0]["purpose"] == "shares of the groups"
    assert "the Laplace mechanism (delta 0)" in said["guarantee"]
    assert said["epsilon_spent"] == pytest.approx(4.0, rel=1e-3)


def test_derived_decisions_keep_the_margin_by_the_table(made: Path, run: Run, refuse: Run) -> None:
    said, model = said_of("post"), evenhand.load("post")
    assert said["method"] == "DPPostProcessingClassifier"
    assert model.fairness == EqualizedOdds(margin=0.03, reference="pairwise")
    assert (said["margin"], said["fairness"]) == (0.03, "equalized-odds")
    assert said["table_gap"] == model.table_gap_ <= 0.03 + 1e-9
    assert said["fairness_kind"] == FairnessKind.DERIVED
    assert said["needs_group_at_prediction"] is True

    table = pd.read_csv("test.csv")
    X, sex = table[list(model.feature_names_in_)], table["sex"]
    lines = run("predict", "post", "test.csv", "--proba").stdout.splitlines()[1:]
    expected = model.predict(X, sensitive_features=sex, random_state=0)
    assert [line.split(",")[0] for line in lines] == expected.tolist()
    probabilities = [[float(cell) for cell in line.split(",")[1:]] for line in lines]
    assert probabilities == model.predict_proba(X, sensitive_features=sex).tolist()
    error = json.loads(run("evaluate", "post", "test.csv", "--json").stdout)["error"]
    assert error == said["measured"]["error"] == pytest.approx((expected != table["loan"]).mean())
    line = refuse("predict", "post", "test.csv", "--reject-margin", "0.1")
    assert line.endswith("this one keeps a margin by the group. Leave it out.")
    page = Path("post/report.html").read_text()
    assert "Probability of each final decision" in page
    assert "epsilon = 3 and 1, because their prices do not add up" in page


def test_people_read_what_derived_decisions_keep(made: Path) -> None:
    parts = results.run_parts(evenhand.load("post").fitted_)
    assert any("by the noisy table: 0.0" in part for part in parts if isinstance(part, str))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("T_pre", FairnessKind.NONE),
        ("aggregator", FairnessKind.ANSWERS),
        ("S_post", FairnessKind.THRESHOLDS),
    ],
)
def test_fairness_is_put_in_at_the_point_that_is_named(
    made: Path, run: Run, name: str, kind: FairnessKind
) -> None:
    said, model = said_of(name), evenhand.load(name)
    assert (said["method"], model.at) == ("InterventionClassifier", name)
    assert said["fairness_kind"] == kind
    assert said["margin"] == 0.1
    assert f"a margin of 0.1 at {name}" in said["guarantee"]
    assert "Answers and refusals" in Path(name, "report.html").read_text()
    error = json.loads(run("evaluate", name, "test.csv", "--json").stdout)["error"]
    assert error == said["measured"]["error"]


def test_the_groups_of_the_private_rows_are_read_only_where_teachers_need_them(
    town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    table = pd.read_csv("private.csv").drop(columns=["sex"])
    table.to_csv("private.csv", index=False)
    train({"--method": "intervention", "--at": "S_in"})
    line = refuse(*asked({"--method": "intervention", "--at": "T_in", "--out": "other"}))
    assert "private.csv has no column 'sex', which --sensitive names" in line


@pytest.mark.slow
@pytest.mark.parametrize(("method", "past"), [("dpsgd", 2), ("dp-fermi", 0)])
def test_hidden_layers_make_a_network(town: Path, train: Run, method: str, past: int) -> None:
    # In DP-SGD's two units of each layer carry what skips them.
    train({**NO_TEACHERS, "--method": method, "--margin": None}, "--hidden", "6", "--hidden", "4")
    network = evenhand.load("model").student_
    assert [len(bias) for bias in network.intercepts_] == [6 + past, 4 + past, 1]


def test_no_hidden_layer_is_logistic_regression(town: Path, train: Run) -> None:
    train({**NO_TEACHERS, "--method": "dpsgd", "--margin": None}, "--hidden", "0")
    assert hasattr(evenhand.load("model").student_, "coef_")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["non-private", "fair-only"])
def test_a_reference_says_that_it_is_not_private(
    town: Path, train: Run, run: Run, asked: Run, method: str
) -> None:
    margin = None if method == "non-private" else "0.1"
    changes = {**REFERENCE, "--method": method, "--margin": margin, "--test": "test.csv"}
    said = train(changes)
    assert said["holds"] is False
    assert said["epsilon"] is said["epsilon_spent"] is None
    assert said["guarantee"].startswith("NOT PRIVATE: ")
    assert said["measured"]["error"] < 0.35
    kind = FairnessKind.NONE if margin is None else FairnessKind.WEIGHTS
    assert said["fairness_kind"] == kind
    claim = json.loads(Path("model/claim.json").read_text())
    assert claim["sentence"] == said["guarantee"]
    said = {"kind": str(kind), "needs_group_at_prediction": False, "held": None}
    assert claim["fairness"] == said
    assert "Not private" in Path("model/report.html").read_text()
    assert run(*asked({**changes, "--out": "again"})).stdout.startswith("NOT PRIVATE: ")
    assert len(run("predict", "model", "test.csv").stdout.splitlines()) == 301
    assert run("evaluate", "model", "test.csv").exit_code == 0


def test_a_schema_stands_in_for_public_rows_where_nobody_is_asked(town: Path, train: Run) -> None:
    declared = {
        "age": {"kind": "numeric", "bounds": [10, 80], "missing": True},
        "hours": {"kind": "numeric", "bounds": [0, 60]},
    }
    columns = [{"name": name, **column} for name, column in declared.items()]
    columns.append({"name": "job", "categories": ["clerk", "nurse", "smith"]})
    columns.append({"name": "race", "categories": ["A", "B"]})
    Path("schema.json").write_text(json.dumps({"columns": columns}))
    changes = {**REFERENCE, "--method": "non-private", "--margin": None, "--public": None}
    train({**changes, "--schema": "schema.json"})
    assert evenhand.load("model").encoder_.schema_.columns[0].bounds == (10.0, 80.0)


@pytest.mark.parametrize(
    ("changes", "kind_before"),
    [
        ({"--method": "pate"}, FairnessKind.NONE),
        ({"--method": "fairpate"}, FairnessKind.WEIGHTS),
        ({"--method": "fair-shares"}, FairnessKind.WEIGHTS),
        ({**NO_TEACHERS, "--method": "dpsgd"}, FairnessKind.NONE),
        ({**REFERENCE, "--method": "non-private"}, FairnessKind.NONE),
    ],
)
def test_thresholds_go_on_any_method(
    town: Path, train: Run, changes: dict[str, Any], kind_before: FairnessKind
) -> None:
    said = train({**changes, "--margin": "0.05", "--test": "test.csv"}, "--group-thresholds")
    assert said["fairness_kind"] == FairnessKind.THRESHOLDS
    assert said["needs_group_at_prediction"] is True
    assert said["method"] == "GroupThresholdClassifier"
    assert said["margin"] == 0.05
    assert said["measured"]["n_rows"] == 300
    model = evenhand.load("model")
    assert model.model_.fairness_kind_ == kind_before
    public = pd.read_csv("public.csv")
    scores = model.predict_proba(public[list(model.feature_names_in_)])[:, 1]
    rates = model.thresholds_.rates(scores, (public["sex"] == "M").to_numpy().astype(int))
    assert abs(rates[0] - rates[1]) <= 0.05 + 1e-6
    assert "group needed" in Path("model/report.html").read_text()


def test_predict_reads_the_group_of_each_row(cut: Path, town: Path, run: Run) -> None:
    said = run("predict", "model", "test.csv").stdout
    table, model = pd.read_csv("test.csv"), evenhand.load("model")
    X = table[list(model.feature_names_in_)]
    expected = model.predict(X, sensitive_features=table["sex"], random_state=0)
    assert said.splitlines()[1:] == expected.tolist()
    # By the definition: class 1 above the threshold of one's own group. With the groups exchanged
    # those between the two thresholds get another label, and nobody else.
    scores, levels = model.predict_proba(X)[:, 1], np.array(model.thresholds_.thresholds)[:, 0]
    own = levels[(table["sex"] == "M").astype(int)]
    apart = scores != own
    assert ((expected == model.classes_[1]) == (scores > own))[apart].all()
    table.assign(sex=table["sex"].map({"F": "M", "M": "F"})).to_csv("other.csv", index=False)
    other = np.array(run("predict", "model", "other.csv").stdout.splitlines()[1:])
    between = (scores > levels.min()) & (scores < levels.max())
    assert (other != expected)[between].all()
    assert (other == expected)[(scores > levels.max()) | (scores < levels.min())].all()
    error = json.loads(run("evaluate", "model", "test.csv", "--json").stdout)["error"]
    assert error == pytest.approx((expected != table["loan"]).mean())


def test_scores_that_equal_a_threshold_get_the_same_labels_every_time(cut: Path, run: Run) -> None:
    # A threshold is a score of a public row. A fair coin decides there, so that 400 draws are all
    # alike with probability 2**-399.
    public, model = pd.read_csv("public.csv"), evenhand.load("model")
    model.thresholds_ = replace(model.thresholds_, at_threshold=((0.5,), (0.5,)))
    model.save("coins")
    shutil.copy("model/training.json", "training.json")
    scores = model.predict_proba(public[list(model.feature_names_in_)])[:, 1]
    probabilities = model.thresholds_.probabilities(
        scores, public["sex"].map({"F": 0, "M": 1}).to_numpy()
    )
    tied = public[probabilities == 0.5]
    assert len(tied)
    pd.concat([tied[:1]] * 400).to_csv("tied.csv", index=False)
    said = run("predict", "coins", "tied.csv", "--sensitive", "sex").stdout
    assert len(set(said.splitlines()[1:])) == 2
    assert said == run("predict", "coins", "tied.csv", "--sensitive", "sex").stdout


def test_a_table_without_the_group_is_refused(cut: Path, refuse: Run) -> None:
    pd.read_csv("test.csv").drop(columns=["sex"]).to_csv("test.csv", index=False)
    for words in ("predict", "evaluate"):
        assert "has no column 'sex', which --sensitive names" in refuse(words, "model", "test.csv")


def test_a_group_without_a_threshold_is_refused(cut: Path, refuse: Run) -> None:
    table = pd.read_csv("test.csv")
    table.loc[3, "sex"] = "X"
    table.to_csv("test.csv", index=False)
    assert "(not shown), first in row 4" in refuse("predict", "model", "test.csv")
    assert "'X', first in row 4" in refuse("predict", "model", "test.csv", "--show-values")


def test_thresholds_are_measured_by_the_groups_of_training_only(cut: Path, refuse: Run) -> None:
    line = refuse("evaluate", "model", "test.csv", "--sensitive", "race")
    assert "needs the sensitive columns of its training" in line


def test_thresholds_and_a_reject_option_do_not_go_together(cut: Path, refuse: Run) -> None:
    line = refuse("predict", "model", "test.csv", "--reject-margin", "0.1")
    assert "train without --group-thresholds" in line


def test_groups_that_nobody_needs_are_refused(model: Path, refuse: Run) -> None:
    assert "this one needs no group" in refuse("predict", model, "test.csv", "--sensitive", "sex")


@pytest.mark.parametrize(
    ("changes", "more", "words"),
    [
        ({"--epsilon": None}, [], "--epsilon is missing. Say how much privacy loss"),
        ({"--method": "dpsgd"}, [], "--method dpsgd asks no teachers and keeps no account, got --"),
        ({**NO_TEACHERS, "--method": "dpsgd"}, ["--ledger", "l.db"], "got --ledger"),
        ({**NO_TEACHERS, "--method": "dpsgd"}, ["--sigma-check", "3"], "got --sigma-check"),
        ({**NO_TEACHERS, "--method": "dpsgd", "--drop": None}, ["--unit", "person"], "got --unit"),
        ({**NO_TEACHERS, "--method": "dpsgd"}, ["--noise", "exact"], "Use FloatNoise"),
        ({**NO_TEACHERS, "--method": "dpsgd"}, ["--at", "T_in"], "does not read it, got --at"),
        ({}, ["--hidden", "5"], "--method fair-shares does not read it, got --hidden"),
        ({}, ["--answers", "labels"], "--method fair-shares gates labels, releases shares alone"),
        ({}, ["--sigma", "20"], "--method fair-shares asks for no noisy labels, got --sigma"),
        ({}, ["--pull", "1"], "--method fair-shares does not read it, got --pull"),
        ({**NO_TEACHERS, "--method": "non-private"}, [], "promises no privacy, got --epsilon"),
        ({**REFERENCE, "--method": "fair-only"}, ["--delta", "1e-6"], "got --delta"),
        ({**REFERENCE, "--method": "fair-only", "--margin": None}, [], "--margin is missing"),
        ({**REFERENCE, "--method": "fair-only", "--sensitive": None}, [], "--sensitive is missing"),
        ({**REFERENCE, "--method": "non-private"}, [], "--method non-private keeps no margin"),
        ({**WEIGHT, "--margin": "0.1"}, [], "--method dp-fermi keeps no margin, got --margin 0.1"),
        ({**WEIGHT, "--sensitive": None}, [], "--sensitive is missing: rates are compared"),
        ({**WEIGHT, "--fairness-weight": "-1"}, [], "--fairness-weight must be finite and >= 0"),
        (WEIGHT, ["--at", "T_in"], "--method dp-fermi does not read it, got --at"),
        ({**POST, "--margin": None}, [], "--margin is missing"),
        (POST, ["--fairness-weight", "2"], "does not read it, got --fairness-weight"),
        (POST, ["--group-thresholds"], "has a place of its own for fairness, got --group-th"),
        ({"--method": "pate"}, ["--blind-rule", "--group-thresholds"], "Leave one out"),
        (
            {**NO_TEACHERS, "--method": "dpsgd"},
            ["--blind-rule", "--fairness", "equalized-odds"],
            "Give --calibration FILE",
        ),
        ({"--margin": None, "--method": "pate"}, ["--blind-rule"], "--margin is missing"),
        (POST, ["--blind-rule"], "has a place of its own for fairness"),
        ({"--method": "intervention", "--at": "S_poste"}, [], "Did you mean 'S_post'?"),
        ({"--method": "intervention", "--answers": "shares"}, [], "gates labels"),
        ({"--margin": None, "--method": "pate"}, ["--group-thresholds"], "--margin is missing"),
        ({"--public": None}, ["--group-thresholds"], "--public is missing"),
        (
            {**REFERENCE, "--method": "fair-only", "--public": None},
            [],
            "Columns are scaled by public knowledge, and there is none",
        ),
        (
            {**REFERENCE, "--method": "fair-only"},
            ["--public-fraction", "0.2"],
            "got both",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    town: Path, refuse: Run, asked: Run, changes: dict[str, Any], more: list[str], words: str
) -> None:
    assert words in refuse(*asked(changes), *more)
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({**NO_TEACHERS, "--method": "dpsgd"}, []),
        ({"--method": "pate"}, ["--confidence", "0.9"]),
        (
            {**REFERENCE, "--method": "non-private", "--calibration": "test.csv"},
            ["--fairness", "equalized-odds"],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
@pytest.mark.filterwarnings("ignore::evenhand.students.constrained.MarginNotMet")
def test_a_blind_rule_goes_on_any_method(
    town: Path, train: Run, changes: dict[str, Any], options: list[str]
) -> None:
    said = train({**changes, "--margin": "0.1", "--test": "test.csv"}, "--blind-rule", *options)
    assert said["fairness_kind"] == FairnessKind.BLIND_RULE
    assert said["needs_group_at_prediction"] is False
    assert (said["margin"], said["bound"]) == (0.1, True)  # whether it is met, the noise decides
    model = evenhand.load("model")
    assert isinstance(model.student_, BlindRule)
    assert "inferred groups" in Path("model/report.html").read_text()
    rows = pd.read_csv("test.csv")[list(model.feature_names_in_)]
    assert len(model.predict(rows)) == 300


def test_the_error_without_privacy_stands_beside_where_a_model_of_it_is_named(
    town: Path, run: Run, refuse: Run
) -> None:
    run(*command({**REFERENCE, "--method": "non-private", "--margin": None, "--out": "plain"}))
    beside = {"--test": "test.csv", "--without-privacy": "plain", "--out": "beside"}
    said = json.loads(run(*command(beside), "--json").stdout)
    found = said["measured"]["yardstick"]["without_privacy"]
    test, plain = pd.read_csv("test.csv"), evenhand.load("plain")
    wrong = plain.predict(test[list(plain.feature_names_in_)]) != test["loan"]
    assert found["value"] == pytest.approx(wrong.mean())
    page = Path("beside/report.html").read_text(encoding="utf-8")
    assert "a model without privacy is wrong for" in page
    claimed = {**beside, "--without-privacy": "beside", "--out": "other"}
    assert "a claim of its own" in refuse(*command(claimed))

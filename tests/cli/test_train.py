"""``evenhand train``: what it writes, what it claims, and what it says for machines."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evenhand
from evenhand.cli import results
from evenhand.privacy import ConfidentGNMax, DatabaseStore, GNMax
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.ledger_store import mu_squared_of

from .conftest import command, people

Run = Callable[..., Any]


def test_the_folder_holds_the_model_its_claim_and_a_report(town: Path, train: Run) -> None:
    said = train()
    model = evenhand.load("model")
    claim = json.loads(Path("model/claim.json").read_text())
    assert said["guarantee"] == str(model.guarantee_) == claim["sentence"]
    assert said["guarantee"] in Path("model/report.html").read_text()
    assert (said["epsilon"], said["delta"], said["margin"]) == (4.0, 1e-5, 0.1)
    assert said["neighbors"] == "replace one"
    assert said["holds"] is True
    assert said["n_answered"] == said["n_queries"] == 400
    assert said["n_asked"] == 400 + 2 * 80
    assert said["choices"] == list(model.choices_)
    assert all(words in Path("model/report.html").read_text() for words in model.choices_[:1])
    assert 0 < said["epsilon_spent"] <= 4.0
    assert said["public_gap"] <= 0.1
    beside = {path.name for path in town.iterdir()}
    assert beside == {"private.csv", "public.csv", "test.csv", "model"}


def test_what_has_another_role_is_no_feature(town: Path, train: Run) -> None:
    train()
    assert list(evenhand.load("model").feature_names_in_) == ["age", "job", "hours", "race"]


def test_people_read_the_claim_and_what_the_margin_binds(town: Path, run: Run, asked: Run) -> None:
    result = run(*asked({"--method": "fairpate"}))
    assert "(4.0, 1e-05)-differentially private for each record" in result.stdout
    words = " ".join(result.stdout.split())
    assert "The gate binds the answered set" in words
    assert "its gap is measured, not promised" in words
    assert "gap of the answers" in words
    assert "gap of the model on public rows" in words
    for of in ("by the released answers", r"always predicting '\w+'", "without its margin"):
        said = rf"{of} 0\.\d+, 95% interval 0\.\d+ to [01]\.\d+"
        assert re.search(said, words)


def test_a_test_table_is_measured_and_marked_as_not_covered(town: Path, train: Run) -> None:
    measured = train({}, "--test", "test.csv")["measured"]
    test = pd.read_csv("test.csv")
    model = evenhand.load("model")
    wrong = model.predict(test[list(model.feature_names_in_)]) != test["loan"].to_numpy()
    assert measured["covered"] is False
    assert measured["n_rows"] == 300
    assert measured["error"] == pytest.approx(wrong.mean())
    assert measured["error_interval"][0] < measured["error"] < measured["error_interval"][1]
    assert [group["name"] for group in measured["groups"]] == ["F", "M"]
    assert "Not covered by the guarantee" in Path("model/report.html").read_text()


@pytest.mark.parametrize(
    ("test", "same"),
    [("private.csv", True), ("copy.csv", True), ("test.csv", False), ("less.csv", False)],
)
def test_the_training_table_as_test_table_is_warned_of_and_nothing_keeps_that(
    town: Path, run: Run, test: str, same: bool
) -> None:
    lines = Path("private.csv").read_text().splitlines(keepends=True)
    Path("copy.csv").write_text("".join(lines))
    Path("less.csv").write_text("".join(lines[:-1]))  # how many rows are shared is a private count
    done = run(*command({"--test": test}))
    warned = f"warning: --test {test} holds what the private table private.csv holds"
    assert (warned in done.stderr) == same
    assert "training rows" not in done.stdout
    for file in Path("model").iterdir():
        assert b"training rows" not in file.read_bytes()


@pytest.mark.parametrize("option", ["--public", "--calibration"])
def test_another_table_of_training_as_test_table_is_warned_of(
    town: Path, run: Run, option: str
) -> None:
    people(400, 3).to_csv("known.csv", index=False)
    asks = {"--method": "dpsgd", "--teachers": None, "--margin": "0.4"}
    changes = {**asks, "--fairness": "equalized-odds", "--calibration": "public.csv"}
    people(400, 4).to_csv("public.csv", index=False)
    words = command({**changes, "--test": "known.csv", option: "known.csv"})
    done = run(*words, "--group-thresholds")
    assert f"warning: --test known.csv holds what {option} known.csv holds" in done.stderr
    assert "training rows" not in done.stdout


def test_a_file_of_the_training_folder_as_test_table_is_warned_of(town: Path, run: Run) -> None:
    Path("rows").mkdir()
    pd.read_csv("private.csv").to_parquet("rows/a.parquet")
    pd.read_csv("test.csv").to_parquet("rows/b.parquet")
    changes = {"--test": "rows/b.parquet", "--drop": None, "--unit": "person"}
    assert "holds what the private table rows holds" in run(*command(changes, "rows")).stderr


def test_several_sensitive_columns_are_combined(town: Path, train: Run) -> None:
    train({"--margin": "0.3"}, "--sensitive", "race")  # wider than four groups' intervals
    groups = evenhand.load("model").groups_
    assert groups == ("sex=F, race=A", "sex=F, race=B", "sex=M, race=A", "sex=M, race=B")


def test_a_unit_column_makes_the_claim_one_about_persons(town: Path, train: Run) -> None:
    said = train({"--drop": None}, "--unit", "person", "--unit-name", "borrower")
    assert said["unit"] == "borrower"
    assert said["neighbors"] == "add or remove one"
    assert "add or remove one borrower" in said["guarantee"]
    assert "1200" not in said["guarantee"]  # how many records there are is private now


def test_a_share_of_the_table_can_be_public_and_the_claim_says_so(town: Path, train: Run) -> None:
    said = train({"--public": None}, "--public-fraction", "0.25")
    assert said["n_queries"] == 300
    _, not_covered = said["guarantee"].split("not covered: ")
    assert "300 rows of the table, set aside as public" in not_covered


@pytest.mark.parametrize(
    ("method", "share"), [("fair-shares", "90%"), ("fairpate", "20%"), ("pate", "90%")]
)
def test_without_public_rows_some_are_drawn_and_claim_and_printout_say_so(
    town: Path, train: Run, method: str, share: str
) -> None:
    more = {"--margin": None} if method == "pate" else {}
    said = train({"--public": None, "--method": method, "--test": "test.csv", **more})
    public, not_covered = said["guarantee"].split("taken as public: ")[1].split("not covered: ")
    assert public.startswith("no row: the 2,000 rows")
    assert "features" not in not_covered
    assert f"{share} of the budget pays for noisy counts" in said["drawn_rows"][0]
    assert any("'hours' from" in words for words in said["drawn_rows"])
    assert evenhand.load("model").public.share is None  # left open; what it became is said
    assert said["measured"]["error"] < 0.3  # a guess errs on .44
    words = " ".join(re.sub("<[^>]+>", " ", Path("model/report.html").read_text()).split())
    assert "2,000 drawn rows" in words
    assert "2,000 public rows" not in words
    if method != "pate":
        assert said["margin_source"] == "counted decisions"
        # What is left of the margin on real rows stands beside it, for people.
        gap = said["measured"]["demographic_parity_gap"]
        beyond = f"{gap - 0.1:.4f} beyond it" if gap > 0.1 else "within it"
        assert f"on the test rows the gap is {gap:.4f}, {beyond}" in words


def test_a_share_for_counts_beside_public_rows_is_said_and_kept(town: Path, train: Run) -> None:
    said = train({}, "--synthetic-share", "0.5", "--test", "test.csv")
    assert said["margin_source"] == "public rows"
    assert said["drawn_rows"][0].startswith("Beside the public rows: 50% of the budget pays")
    public = said["guarantee"].split("taken as public: ")[1]
    assert public.startswith(f"the features of the {said['n_queries']} public rows")
    assert "two releases: noisy counts of the private rows" in said["guarantee"]
    assert evenhand.load("model").public.share == 0.5
    assert said["measured"]["error"] < 0.3  # a guess errs on .44


def test_public_rows_are_compared_with_the_private_ones_where_that_is_asked_for(
    town: Path, train: Run
) -> None:
    rows = pd.read_csv("public.csv")
    rows.assign(hours=rows["hours"] + 15).to_csv("elsewhere.csv", index=False)
    said = train({"--public": "elsewhere.csv"}, "--check-drift")
    assert "hours" in {column["name"] for column in said["drift"] if column["differs"]}
    assert "the group" in {column["name"] for column in said["drift"]}
    assert any("differ from the private ones in hours" in words for words in said["warnings"])
    assert evenhand.load("model").check_drift is True
    assert evenhand.load("model").fitted_.of_drift


@pytest.mark.filterwarnings("ignore:Of the rows to ask about. no category of 'person'")
def test_the_share_of_the_budget_and_kept_columns_are_handed_on(town: Path, train: Run) -> None:
    train({"--public": None, "--drop": None}, "--synthetic-share", "0.4", "--keep", "person")
    model = evenhand.load("model")
    assert (model.public.share, model.public.keep) == (0.4, ("person",))
    assert "person" in model.feature_names_in_


def test_pate_needs_no_margin_and_no_groups(town: Path, train: Run) -> None:
    changes = {"--margin": None, "--sensitive": None, "--method": "pate", "--test": "test.csv"}
    said = train(changes, "--drop", "sex")
    assert said["method"] == "PATEClassifier"
    assert said["margin"] is None
    assert said["measured"]["demographic_parity_gap"] is None  # no groups: nothing was compared
    assert "sex" not in evenhand.load("model").feature_names_in_


@pytest.mark.parametrize(
    ("more", "mechanism"),
    [
        ({"--sigma": "20"}, GNMax(sigma=20.0)),
        (
            {"--sigma": "20", "--threshold": "35", "--sigma-check": "15"},
            ConfidentGNMax(threshold=35.0, sigma_check=15.0, sigma=20.0),
        ),
    ],
)
def test_the_mechanism_is_the_one_that_was_named(
    town: Path, train: Run, more: dict[str, str], mechanism: object
) -> None:
    assert train({**more, "--method": "fairpate"})["mechanism"] == repr(mechanism)


@pytest.mark.parametrize("teacher", ["logistic", "tree", "forest"])
def test_every_kind_of_teacher_teaches(town: Path, train: Run, teacher: str) -> None:
    said = train({"--teacher": teacher, "--teachers": "20"})
    assert said["n_teachers"] == 20
    assert said["n_answered"] > 0


@pytest.mark.torch
def test_networks_teach_where_torch_is(town: Path, train: Run) -> None:
    pytest.importorskip("torch")
    assert train({"--teacher": "mlp", "--teachers": "20"})["n_answered"] > 0


def test_the_claim_names_the_noise_that_was_drawn(town: Path, train: Run) -> None:
    assert "exact discrete noise" in train()["guarantee"]
    assert "floating-point" in train({"--noise": "float", "--out": "other"})["guarantee"]


def test_a_delta_above_one_over_n_is_a_warning_in_the_claim(
    town: Path, run: Run, asked: Run
) -> None:
    result = run(*asked({"--delta": "0.01"}), "--json")
    said = json.loads(result.stdout)
    (warning,) = said["warnings"]
    assert "delta=0.01 is not below 1 / 1200 records" in warning
    assert warning in said["guarantee"]
    assert f"warning: {warning}" in result.stderr.splitlines()


def test_a_missed_aim_is_said_once_and_names_the_option_that_helps(
    town: Path, run: Run, asked: Run
) -> None:
    dpsgd = {"--method": "dpsgd", "--teachers": None, "--margin": "0.0001", "--epsilon": "0.1"}
    words = run(*asked(dpsgd)).stderr
    assert words.count("aimed for a gap of 0.0001") == 1
    assert "--blind-rule" in words


@pytest.mark.slow
@pytest.mark.filterwarnings("always::evenhand.students.confident.MarginNotSupported")
@pytest.mark.parametrize("after", [None, "--group-thresholds"])
def test_rows_too_few_for_a_confidence_are_said_before_and_once_after_the_fit(
    town: Path, run: Run, asked: Run, after: str | None
) -> None:
    method = {"--method": "dpsgd", "--teachers": None, "--margin": "0.01", "--confidence": "0.95"}
    words = run(*asked(method), *([after] if after else [])).stderr
    before, found = (line for line in words.splitlines() if "95% confidence" in line)
    assert "may not be able to say" in before
    assert "the least that they support" in found
    assert "--merge-small" in found


def test_a_declared_schema_is_used(town: Path, train: Run) -> None:
    declared = {
        "columns": [
            {"name": "age", "kind": "numeric", "bounds": [18, 80], "missing": True},
            {"name": "job", "categories": ["clerk", "nurse", "smith"]},
            {"name": "hours", "kind": "numeric"},
            {"name": "race", "categories": ["A", "B"]},
            {"name": "loan", "categories": ["granted", "refused"]},  # no feature: passed over
        ]
    }
    Path("schema.json").write_text(json.dumps(declared))
    train({"--schema": "schema.json"})
    schema = evenhand.load("model").encoder_.schema_
    assert schema.columns[0].bounds == (18.0, 80.0)
    assert schema.names == ("age", "job", "hours", "race")


def test_a_schema_of_no_feature_is_refused_with_a_way_out(town: Path, run: Run, asked: Run) -> None:
    Path("schema.json").write_text(json.dumps({"columns": [{"name": "age", "bounds": [18, 80]}]}))
    refused = run(*asked({"--schema": "schema.json"}), "--drop", "age", exit_code=2)
    assert "schema.json declares no feature" in refused.stderr
    assert "(age). Declare a feature there, or go without --schema" in refused.stderr


def test_dates_that_a_schema_declares_are_refused_with_a_way_out_of_the_command_line(
    town: Path, run: Run, asked: Run
) -> None:
    pd.read_csv("private.csv").assign(seen="2020-01-31").to_csv("private.csv", index=False)
    columns = [{"name": "age", "bounds": [18, 80]}, {"name": "seen", "kind": "date"}]
    Path("schema.json").write_text(json.dumps({"columns": columns}))
    refused = run(*asked({"--schema": "schema.json"}), exit_code=2)
    assert "'seen' hold dates, which generators of tables read" in refused.stderr
    assert "or leave them out: drop(columns=['seen']), or --drop" in refused.stderr
    refused = run(*asked({"--schema": "schema.json"}), "--drop", "seen", exit_code=2)
    assert "error: public.csv has columns that the schema does not name" in refused.stderr
    assert "(--drop)" in refused.stderr


def test_parquet_and_gzip_are_read_like_csv(town: Path, train: Run) -> None:
    pd.read_csv("private.csv").to_parquet("private.parquet")
    Path("public.csv.gz").write_bytes(gzip.compress(Path("public.csv").read_bytes()))
    said = train({"--public": "public.csv.gz"}, private="private.parquet")
    assert said["n_queries"] == 400


def test_labels_that_are_numbers_stay_numbers(town: Path, train: Run) -> None:
    table = pd.read_csv("private.csv")
    table["loan"] = (table["loan"] == "granted").astype(float)
    table.to_csv("private.csv", index=False)
    train()
    assert evenhand.load("model").classes_.tolist() == [0, 1]


def test_a_public_label_is_not_read(town: Path, train: Run) -> None:
    public = pd.read_csv("public.csv")
    public["loan"] = "nonsense"
    public.to_csv("public.csv", index=False)
    train()
    assert evenhand.load("model").classes_.tolist() == ["granted", "refused"]


def test_an_account_adds_up_over_runs(town: Path, train: Run) -> None:
    account = {"--ledger": "ledger.db", "--account": "town", "--account-epsilon": "8"}
    train(account)
    second = train({**account, "--out": "second"})["account"]
    # From the two folders, and past the command line from the store.
    runs = [evenhand.load(name).ledger_.spent for name in ("model", "second")]
    on_record = mu_squared_of(DatabaseStore("ledger.db").spent("town"))
    assert on_record == pytest.approx(sum(runs))
    assert second["epsilon_spent"] == pytest.approx(epsilon_from_mu(on_record**0.5, 1e-5))
    assert second["epsilon"] == 8.0


@pytest.mark.slow
def test_an_account_and_its_runs_are_about_the_same_change(town: Path, train: Run) -> None:
    share = {"--ledger": "ledger.db", "--account-epsilon": "9"}
    for i, (change, more) in enumerate(
        [
            ("add or remove one", {"--synthetic-share": "0.5"}),
            ("replace one", {"--synthetic-share": "0.5", "--neighbors": "replace one"}),
            ("add or remove one", {"--neighbors": "add or remove one"}),
            ("replace one", {}),
        ]
    ):
        said = train({**share, **more, "--account": f"a{i}", "--out": f"m{i}"})
        assert f"(neighbors: {change} record)" in said["guarantee"]


def test_an_account_that_is_nearly_spent_stops_the_asking(
    town: Path, run: Run, asked: Run, train: Run
) -> None:
    account = {"--ledger": "ledger.db", "--account-epsilon": "5", "--method": "fairpate"}
    first = train(account)
    result = run(*asked({**account, "--out": "second"}), "--json")
    second = json.loads(result.stdout)
    assert 0 < second["n_asked"] < first["n_asked"]
    assert "left, less than --epsilon 4." in result.stderr
    assert second["account"]["epsilon_spent"] <= 5.0


def test_shares_are_bought_where_they_are_asked_for(town: Path, train: Run, refuse: Run) -> None:
    said = train({})
    assert train({"--out": "other"})["mechanism"] == said["mechanism"]
    assert "NoisyHistogram" in said["mechanism"]
    assert said["n_answered"] == said["n_queries"] == 400
    assert said["answered_gap"] is None
    assert said["bound"] is True
    assert said["public_gap"] <= said["margin"]
    assert "shares" in Path("model/report.html").read_text()


def test_what_draws_labels_does_not_draw_shares(asked: Run, refuse: Run) -> None:
    line = refuse(*asked({"--sigma": "20", "--out": "other"}))
    assert "--method fair-shares asks for no noisy labels, got --sigma" in line
    line = refuse(
        *asked({"--method": "pate", "--margin": None, "--answers": "shares", "--sigma": "20"})
    )
    assert "--answers shares spends the budget on all public rows alike" in line
    assert "Leave out --sigma" in line


@pytest.mark.parametrize(("epsilon", "says"), [("10", ""), ("12", "little"), ("120", "nothing")])
def test_a_large_epsilon_is_announced_as_the_help_says(
    town: Path, run: Run, epsilon: str, says: str
) -> None:
    done = run(*command({"--epsilon": epsilon}), "--json")
    loud = [words for words in json.loads(done.stdout)["warnings"] if "epsilon=" in words]
    assert bool(loud) == bool(says)
    assert all(f"says {says}" in words for words in loud)
    assert (f"warning: epsilon={epsilon} is above" in done.stderr) == bool(says)
    assert ("says little" in Path("model/report.html").read_text()) == (says == "little")


def test_the_private_table_as_public_is_refused_unless_it_is_said(
    town: Path, run: Run, refuse: Run
) -> None:
    words = command({"--public": "private.csv"})
    assert "passed as public? The guarantee does not cover" in refuse(*words)
    assert not Path("model").exists()
    assert run(*words, "--allow-shared-rows").exit_code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.assign(loan=t["loan"].replace("granted", "yes")), "is not a class"),
        (lambda t: t.rename(columns={"age": "agee"}), "has no column 'age'"),
        (lambda t: t.assign(age="old"), "must hold numbers"),
        (lambda t: t.assign(sex=t["sex"].replace("F", "X")), "among the known groups: 'F', 'M'"),
    ],
)
def test_a_test_table_that_does_not_go_with_the_model_is_refused_before_anything_is_spent(
    change: Callable[[pd.DataFrame], pd.DataFrame], words: str, town: Path, train: Run, refuse: Run
) -> None:
    account = {"--ledger": "town.db", "--account-epsilon": "4"}
    change(pd.read_csv("test.csv")).to_csv("wrong.csv", index=False)
    assert words in refuse(*command(account), "--test", "wrong.csv")
    assert train(account)["account"]["epsilon_spent"] == pytest.approx(4.0, abs=0.01)


def test_a_model_that_could_not_be_measured_is_written_all_the_same(
    town: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **more: Any) -> Any:
        raise ValueError("no such rows")

    monkeypatch.setattr(results, "measure", fails)
    result = run(*command({}), "--test", "test.csv", "--json", exit_code=2)
    assert json.loads(result.stdout)["measured"] is None
    assert "The model is complete, and in model" in result.stderr
    assert "error: ValueError" in result.stderr  # what it says is shown on asking alone
    assert evenhand.load("model").groups_ == ("F", "M")

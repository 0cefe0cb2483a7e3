"""Bad input ends with exit code 2 and one line that names the way out; nothing is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.privacy import DatabaseStore

Run = Callable[..., Any]

# A budget of one answer makes a student that knows one class, which it says in a warning.
one_answer = pytest.mark.filterwarnings(
    "ignore::evenhand.students.student.ConstantStudentWarning",
    "ignore::evenhand.students.student.FewAnswersWarning",
)


def change(path: str, **columns: object) -> pd.DataFrame:
    """Set columns of a CSV file, or take them out with None."""
    table = pd.read_csv(path)
    for name, values in columns.items():
        if values is None:
            table = table.drop(columns=[name])
        else:
            table[name] = values
    table.to_csv(path, index=False)
    return table


def put(path: str, column: str, row: int, value: object) -> None:
    """Set one cell of a CSV file."""
    table = pd.read_csv(path, dtype=object)
    table.loc[row, column] = value
    table.to_csv(path, index=False)


@pytest.fixture
def refused(refuse: Run, asked: Run, town: Path) -> Run:
    """Return ``refused(changes, ...)``: trains in vain, leaves nothing, returns the message."""

    def invoke(changes: dict[str, str | None] | None = None, *more: str, **named: str) -> str:
        before = {path.name for path in town.iterdir()}
        line: str = refuse(*asked(changes or {}, **named), *more)
        assert {path.name for path in town.iterdir()} <= before | {"ledger.db"}
        return line

    return invoke


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--drop": "sex"}, "'sex' is named by sensitive and by drop"),
        ({"--epsilon": "0"}, "epsilon must be finite and > 0, got epsilon=0.0"),
        ({"--epsilon": "-1"}, "epsilon must be finite and > 0"),
        ({"--epsilon": "nan"}, "epsilon must be finite and > 0, got epsilon=nan"),
        ({"--delta": "0"}, "delta must lie strictly between 0 and 1"),
        ({"--delta": "1"}, "delta must lie strictly between 0 and 1"),
        ({"--margin": "1.5"}, "margin must lie in [0, 1], got margin=1.5"),
        ({"--margin": "-0.1"}, "margin must lie in [0, 1]"),
        ({"--margin": None}, "--margin is missing"),
        ({"--sensitive": None}, "--sensitive is missing"),
        ({"--teachers": "0"}, "n_teachers must be at least 1"),
        ({"--method": "pate"}, "--method pate keeps no margin"),
        ({"--method": "fairpate", "--sigma": "0"}, "--sigma must be finite and > 0"),
        ({"--method": "fairpate", "--threshold": "30"}, "--sigma and --sigma-check is missing"),
        (
            {"--public": None, "--method": "fairpate-as-printed"},
            "either --public FILE or --public-fraction SHARE, got neither",
        ),
        (
            {"--public": None, "--public-fraction": "0.2", "--synthetic-share": "0.3"},
            "--public-fraction gives rows away, which drawn rows are to spare",
        ),
        ({"--public": None, "--synthetic-share": "1"}, "--synthetic-share must lie strictly"),
        (
            {"--public": None, "--synthetic-share": "0.3", "--method": "dpsgd", "--teachers": None},
            "--method dpsgd asks no teachers about rows that are drawn, got --synthetic-share",
        ),
        ({"--public-fraction": "0.2"}, "got both"),
        ({"--public": None, "--public-fraction": "1.2"}, "public_fraction must lie strictly"),
        ({"--public": "pubic.csv"}, "There is no file pubic.csv"),
        ({"--schema": "none.json"}, "none.json"),
        ({"--ledger": "ledger.db"}, "--account-epsilon is missing"),
        ({"--account-epsilon": "3"}, "--ledger is missing"),
        ({"--ledger": "nowhere/ledger.db", "--account-epsilon": "3"}, "does not exist"),
        ({"--test": "tst.csv"}, "There is no file tst.csv"),
    ],
)
def test_a_wrong_option_is_named_with_the_way_out(
    refused: Run, changes: dict[str, str | None], words: str
) -> None:
    assert words in refused(changes)


@pytest.mark.parametrize(
    ("option", "typed", "meant"),
    [
        ("--label", "laon", "loan"),
        ("--sensitive", "sx", "sex"),
        ("--drop", "persons", "person"),
        ("--teacher", "forrest", "forest"),
        ("--method", "fairpat", "fairpate"),
        ("--method", "atuo", "auto"),
        ("--noise", "exat", "exact"),
        ("--at", "T_inn", "T_in"),
        ("--reference", "rst", "rest"),
    ],
)
def test_a_misspelt_word_gets_the_nearest_one(
    refused: Run, option: str, typed: str, meant: str
) -> None:
    reader = {"--method": "intervention"} if option == "--at" else {}
    line = refused({**reader, option: typed})
    assert option in line
    assert repr(typed) in line
    assert f"Did you mean {meant!r}?" in line


def test_a_misspelt_class_gets_the_nearest_one_where_values_are_shown(refused: Run) -> None:
    assert "(not shown), got 'grantd'." in refused({"--positive": "grantd"})
    line = refused({"--positive": "grantd"}, "--show-values")
    assert "'granted', 'refused', got 'grantd'. Did you mean 'granted'?" in line


def test_missing_labels_are_located_and_counted_for_the_curator(refused: Run) -> None:
    put("private.csv", "loan", 4, None)
    put("private.csv", "loan", 9, "?")
    known = "the label 'loan' is missing in row 5 (counted from 1 below the header) and "
    assert known + "others" in refused()
    assert known + "1 more" in refused({}, "--show-values")


def test_a_label_of_numbers_that_are_no_classes_is_refused(refused: Run) -> None:
    change("private.csv", loan=np.linspace(0.5, 2, 1200))
    assert "got a number that is not whole, (not shown), in row 1 (" in refused()
    assert "got a number that is not whole, 0.5, in row 1 (" in refused({}, "--show-values")


def test_one_class_only_is_refused(refused: Run) -> None:
    change("private.csv", loan="granted")
    assert "the label 'loan' has one class only, 'granted', so" in refused({}, "--show-values")


def test_one_class_only_in_numbers_is_refused(refused: Run) -> None:
    change("private.csv", loan=1.0)
    assert "the label 'loan' has one class only, 1, so" in refused({}, "--show-values")


def test_one_group_only_is_refused_and_pate_is_named(refused: Run) -> None:
    change("public.csv", sex="F")
    line = refused()
    assert "public.csv: the sensitive attribute 'sex' has one group only, " in line
    assert "--method pate" in line


def test_a_missing_group_is_located(refused: Run) -> None:
    put("public.csv", "sex", 7, None)
    assert "public.csv: the sensitive attribute 'sex' is missing in row 8 (counted" in refused()


def test_a_public_table_without_a_column_is_refused_with_the_nearest_name(refused: Run) -> None:
    pd.read_csv("public.csv").rename(columns={"hours": "hour"}).to_csv("public.csv", index=False)
    line = refused()
    assert "public.csv has no column 'hours', which private.csv has. Did you mean 'hour'?" in line
    assert "--drop hours" in line


def test_a_private_table_without_a_column_is_refused(refused: Run) -> None:
    change("private.csv", hours=None)
    assert "private.csv has no column 'hours', which public.csv has" in refused()


@pytest.mark.parametrize("path", ["private.csv", "public.csv"])
def test_text_where_numbers_were_is_located(refused: Run, path: str) -> None:
    put(path, "hours", 11, "forty")
    line = refused({}, "--show-values")
    assert f"{path}: column 'hours' holds the text 'forty' in row 12" in line
    assert "--schema" in line


def test_text_in_a_declared_number_is_located(refused: Run) -> None:
    columns = [{"name": "hours"}, {"name": "race", "categories": ["A", "B"]}]
    Path("schema.json").write_text(json.dumps({"columns": columns}))
    put("private.csv", "hours", 11, "forty")
    more = ("--drop", "age", "--drop", "job", "--show-values")
    line = refused({"--schema": "schema.json"}, *more)
    assert "Column 'hours' of private.csv must hold numbers, got the text 'forty' in row 12" in line


def test_a_damaged_schema_is_bad_input(refused: Run) -> None:
    Path("schema.json").write_text('{"columns": [{"kind": "numeric"}]}')
    assert "A schema is written as" in refused({"--schema": "schema.json"})


def test_rows_that_cannot_be_compared_are_bad_input(refused: Run) -> None:
    for changes, words in (
        ({"--public": None}, "--check-drift compares the rows of --public FILE"),
        ({"--method": "dpsgd", "--teachers": None}, "asks no teachers about public rows, got --ch"),
    ):
        assert words in refused(changes, "--check-drift")


def test_a_column_of_dates_is_bad_input_and_no_defect(refused: Run) -> None:
    table = pd.read_csv("private.csv")
    table["since"] = pd.Timestamp("2020-01-01")
    table.to_parquet("private.parquet")
    public = pd.read_csv("public.csv")
    public["since"] = pd.Timestamp("2020-01-01")
    public.to_parquet("public.parquet")
    line = refused({"--public": "public.parquet"}, private="private.parquet")
    assert "Column 'since'" in line
    assert "holds dates" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "is empty"), ("age,loan\n", "has a header and no rows"), ("a,a\n1,2\n", "named 'a'")],
)
def test_an_empty_or_broken_file_is_refused(refused: Run, content: str, words: str) -> None:
    Path("private.csv").write_text(content)
    assert words in refused()


def test_more_teachers_than_records_says_how_many_there_are(refused: Run) -> None:
    line = refused({"--teachers": "5000"})
    assert "5000" in line
    assert "1200" in line


@one_answer
def test_a_budget_too_small_for_one_answer_says_what_would_do(refused: Run, train: Run) -> None:
    line = refused({"--epsilon": "0.001", "--method": "fairpate"})
    assert "costs more for one answer than the budget has left" in line
    enough = line.split("Raise epsilon to at least ")[1].split(",")[0]
    assert train({"--epsilon": enough, "--method": "fairpate"})["n_asked"] >= 1


@one_answer
def test_a_budget_too_small_says_how_many_teachers_would_do(refused: Run, train: Run) -> None:
    labels = {"--epsilon": "0.05", "--method": "fairpate"}
    line = refused({**labels, "--teachers": "10"})
    enough = line.split("use at least ")[1].split()[0]
    assert train({**labels, "--teachers": enough})["n_asked"] >= 1


def test_a_refusal_spends_nothing(refused: Run, train: Run) -> None:
    line = refused({"--ledger": "ledger.db", "--account-epsilon": "5", "--teachers": "6000"})
    assert "n_teachers must be at most" in line
    assert not Path("ledger.db").exists()  # an account begins with its first charge
    account = {"--ledger": "ledger.db", "--account-epsilon": "6"}
    train({**account, "--epsilon": "6", "--out": "first"})
    spent = DatabaseStore("ledger.db").spent("default")
    line = refused({**account, "--method": "fairpate", "--sigma": "2"})
    assert "The account 'default'" in line
    assert "is spent: epsilon=" in line
    assert DatabaseStore("ledger.db").spent("default") == spent


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"--label": "race", "--drop": "loan"}, "label is 'loan' on record and 'race' here"),
        ({"--account-epsilon": "60"}, "epsilon is 6.0 on record and 60.0 here"),
        ({"--delta": "1e-6"}, "delta is 1e-05 on record and 1e-06 here"),
    ],
)
def test_a_ledger_of_another_data_set_or_budget_is_refused(
    refused: Run, train: Run, changes: dict[str, str], difference: str
) -> None:
    account = {"--ledger": "ledger.db", "--account-epsilon": "6"}
    train({**account, "--out": "first"})
    line = refused({**account, **changes}, *(["--drop", "person"] if "--label" in changes else []))
    assert "is a ledger of another data set or budget" in line
    assert difference in line


def test_a_table_with_other_records_is_another_data_set(refused: Run, train: Run) -> None:
    account = {"--ledger": "ledger.db", "--account-epsilon": "6"}
    train({**account, "--out": "first"})
    pd.read_csv("private.csv").head(1199).to_csv("private.csv", index=False)
    assert "records is 1200 on record and 1199 here" in refused(account)


def test_with_units_the_number_of_records_is_not_on_record(train: Run, town: Path) -> None:
    account = {"--ledger": "ledger.db", "--account-epsilon": "9"}
    unit = {**account, "--drop": None, "--unit": "person"}
    train({**unit, "--out": "first"})
    pd.read_csv("private.csv").head(1190).to_csv("private.csv", index=False)
    assert train({**unit, "--out": "second"})["n_asked"] > 0
    assert b"1200" not in Path("ledger.db").read_bytes()


def test_an_account_with_a_public_share_needs_a_seed(refused: Run) -> None:
    changes = {"--public": None, "--public-fraction": "0.2", "--seed": None}
    account = {"--ledger": "ledger.db", "--account-epsilon": "6"}
    assert "needs --seed" in refused({**changes, **account})


def test_a_file_that_is_no_ledger_is_refused(refused: Run, town: Path) -> None:
    (town / "ledger.db").write_text("no database" * 100)
    account = {"--ledger": "ledger.db", "--account-epsilon": "6"}
    assert "could not be opened" in refused(account)


def test_a_folder_that_holds_something_is_not_overwritten(refused: Run, town: Path) -> None:
    (town / "model").mkdir()
    (town / "model" / "diary.txt").write_text("mine")
    assert "model exists and is not empty" in refused()
    assert (town / "model" / "diary.txt").read_text() == "mine"


def test_a_test_row_of_an_unknown_class_leaves_no_model(refused: Run) -> None:
    put("test.csv", "loan", 3, "grantd")
    line = refused({"--test": "test.csv"}, "--show-values")
    assert "row 4" in line
    assert "Did you mean 'granted'?" in line


def test_with_debug_the_traceback_is_kept(town: Path, run: Run, asked: Run) -> None:
    with pytest.raises(ValueError, match="epsilon must be finite"):
        run("--debug", *asked({"--epsilon": "0"}))


def test_a_file_that_is_not_there_is_named_in_words(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    said = run("frontier", tmp_path / "grid.toml", "--out", tmp_path / "out", exit_code=2).stderr
    assert said.strip() == f"error: {tmp_path / 'grid.toml'}: No such file or directory"

"""``evenhand synthesize``: a table, its claim and a report, or one clear line about the input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.datasets import Schema
from evenhand.generators import load
from evenhand.generators.registry import GENERATORS, REFERENCES, names_of

Run = Callable[..., Any]
WORDS = ("synthesize", "private.csv", "--label", "loan", "--sensitive", "sex", "--drop", "person")
ASKED = (*WORDS, "--epsilon", "8", "--rows", "400", "--out", "made.csv", "--seed", "0")


def test_it_writes_rows_claim_and_report_with_exact_counts(town: Path, run: Run) -> None:
    done = run(*ASKED)
    rows, private = pd.read_csv("made.csv"), pd.read_csv("private.csv")
    assert list(rows.columns) == [name for name in private.columns if name != "person"]
    assert set(rows.groupby(["loan", "sex"]).size()) == {100}
    claim = json.loads(Path("made.claim.json").read_text())
    assert claim["guarantee"]["epsilon"] == 8.0
    assert claim["sentence"].startswith("The release is (8.0, 1e-05)-differentially private")
    spent = sum(entry["mu_squared"] for entry in claim["ledger"]["entries"])
    assert spent <= claim["ledger"]["mu_squared_budget"]
    page = Path("made.html").read_text(encoding="utf-8")
    assert "What was spent on what" in page
    assert "Models trained on these rows" not in page  # no real row was read for the report
    assert "predicted signal-to-noise" in done.stderr
    assert "loan=granted, sex=F" in done.stdout


def paid_for(run: Run, folder: str, *words: str) -> str:
    """Return the error of a command that failed after its fit, and look at what it kept."""
    note, error = run(*words, exit_code=2).stderr.splitlines()
    assert f"The budget of this fit is spent. What was learnt is in {folder}: " in note
    return str(error)


def test_rows_can_be_asked_for_by_any_column(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    asked = ("--where", "job=nurse", "--where", "hours=20..45", "--balance", "label")
    assert "Keep it with --save FOLDER" in refuse(*ASKED, *asked)
    run(*ASKED, *asked, "--where", "race=A", "--save", "kept")
    rows = pd.read_csv("made.csv")
    assert rows["loan"].value_counts().tolist() == [200, 200]
    assert set(rows["job"]) == {"nurse"}
    assert set(rows["race"]) == {"A"}
    assert rows["hours"].between(20, 45).all()
    # What no row has is told after the fit, which is kept.
    other = ("--where", "job=pope", "--out", "other.csv", "--save", "other")
    assert "pope" in paid_for(run, "other", *ASKED, *other)
    assert not Path("other.csv").exists()
    assert len(load("other").sample(10, conditions={"job": "nurse"}, random_state=0)) == 10


def test_rows_without_a_value_are_asked_for_by_an_empty_field(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    frame = pd.read_csv("private.csv")
    frame.assign(job=frame["job"].where(frame.index % 3 > 0)).to_csv("private.csv", index=False)
    run(*ASKED, "--save", "kept", "--where", "job=")
    assert pd.read_csv("made.csv")["job"].isna().all()
    ask = (*ASKED, "--save", "other", "--out", "other.csv", "--where")
    assert "the groups of drawn rows are never missing. Name one: sex=VALUE" in refuse(*ask, "sex=")
    said = refuse(*ask, "job")
    assert "got 'job'. Say which value: job=VALUE, or job= for a missing one" in said
    assert "Did you mean" not in said


def test_a_remark_about_the_fit_is_printed_once(town: Path, run: Run) -> None:
    done = run(*WORDS, "--epsilon", "0.5", "--rows", "50", "--balance", "none", "--out", "few.csv")
    assert done.stderr.count("much of what is learnt may be noise") == 1


def test_json_says_the_same_for_machines_and_test_rows_are_not_covered(
    town: Path, run: Run
) -> None:
    done = run(*ASKED, "--test", "test.csv", "--json", "--fairness", "equalized-odds")
    told = json.loads(done.stdout)
    assert told["n_rows"] == 400
    assert sum(told["counts"].values()) == 400
    assert told["neighbors"] == "add or remove one"
    assert told["measured"]["covered"] is False
    assert {u["model"] for u in told["measured"]["utility"]} >= {"random forest"}
    assert "Models trained on these rows" in Path("made.html").read_text(encoding="utf-8")


def test_a_declared_schema_is_kept_and_the_generator_can_be_saved(town: Path, run: Run) -> None:
    Schema.declared(
        {
            "age": {"bounds": (0, 90), "missing": True},
            "job": {"categories": ["clerk", "nurse", "smith"], "missing": True},
            "hours": {"bounds": (10, 60)},
            "sex": ["F", "M"],
            "race": ["A", "B"],
            "loan": ["granted", "refused"],
        }
    ).save("schema.json")
    done = run(*ASKED, "--schema", "schema.json", "--save", "generator", "--balance", "none")
    assert "released from the budget" not in done.stderr
    assert pd.read_csv("made.csv")["hours"].between(10, 60).all()
    again = load("generator")
    assert len(again.sample(10)) == 10


@pytest.mark.parametrize("file", ["private.csv", "private.parquet"])
def test_whole_numbers_and_truth_values_with_gaps_come_back_as_they_were(
    town: Path, run: Run, file: str
) -> None:
    frame = pd.read_csv("private.csv")
    there = frame.index % 9 > 0
    # As pandas writes whole numbers of which some are missing: 3.0.
    frame = frame.assign(
        visits=(frame.index % 7).to_series(index=frame.index).where(there),
        owner=(frame.index % 2 == 0),
    )
    frame["owner"] = frame["owner"].astype("boolean").where(there)
    if file.endswith(".csv"):
        frame.to_csv(file, index=False)
    else:  # of another writer than pandas, which would say what it had
        stored = pa.Table.from_pandas(frame.astype({"visits": "Int64"}), preserve_index=False)
        pq.write_table(stored.replace_schema_metadata(), file)
    run("synthesize", file, *ASKED[2:])
    rows = pd.read_csv("made.csv", dtype=str, keep_default_na=False)
    assert set(rows["visits"]) <= {*"012345678", ""}
    assert "" in set(rows["visits"])
    # That a CSV holds True and False alone its values say, which may be released only.
    other = {"other"} if file.endswith(".csv") else set()
    assert {"True", "False", ""} <= set(rows["owner"]) <= {"True", "False", "", *other}
    done = run("synthesize", file, *ASKED[2:-4], "--out", "other.parquet", "--test", file)
    assert f"warning: --test {file} holds what the private table {file} holds" in done.stderr
    kinds = pd.read_parquet("other.parquet").dtypes.astype(str)
    assert kinds["visits"] == "Int64"
    assert kinds["owner"] == ("str" if file.endswith(".csv") else "boolean")


@pytest.mark.parametrize("stream", [False, True])
def test_days_of_parquet_come_back_as_days(town: Path, run: Run, stream: bool) -> None:
    frame = pd.read_csv("private.csv")
    born = np.datetime64("1960-01-01") + frame.index.to_numpy() % 9_000
    stored = pa.Table.from_pandas(frame, preserve_index=False)
    days = pa.array(np.where(frame.index % 9 == 0, None, born), type=pa.date32())
    stored = stored.append_column("born", days).append_column("seen", days.cast("timestamp[ms]"))
    owed = pa.array([Decimal(i % 700) / 4 for i in frame.index], pa.decimal128(9, 2))
    stored = stored.append_column("owed", owed)
    Path("rows").mkdir()
    pq.write_table(stored, "rows/0.parquet")
    run("synthesize", "rows" if stream else "rows/0.parquet", *ASKED[2:-4], "--out", "made.parquet")
    made = pq.read_table("made.parquet")
    assert made.schema.field("born").type == pa.date32()
    assert pa.types.is_timestamp(made.schema.field("seen").type)
    assert 0 < made["born"].null_count < len(made)
    assert made.schema.field("owed").type == pa.float64()
    # Missing values of a column without one are drawn where noise alone says so: .023 of fits.
    owed = made["owed"].drop_null().to_numpy()
    assert 60 < owed.mean() < 115
    assert np.array_equal(owed, np.round(owed, 2))


def test_dates_of_a_csv_that_the_schema_declares_come_back_in_iso_8601(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    for file in ("private.csv", "test.csv"):
        frame = pd.read_csv(file)
        days = pd.to_datetime("2023-01-01") + pd.to_timedelta(frame.index % 300, unit="D")
        gaps = days.strftime("%Y-%m-%d").to_series(index=frame.index).where(frame.index % 9 > 0)
        frame.assign(visited=gaps, at=days.strftime("%Y-%m-%dT08:30")).to_csv(file, index=False)
    assert 'or by {"kind": "date"} in the schema' in refuse(*ASKED)
    bounds = ["2023-01-01", "2023-12-31"]
    Path("schema.json").write_text(json.dumps({"columns": [
        {"name": "visited", "kind": "date", "bounds": bounds, "missing": True},
        {"name": "at", "kind": "datetime", "bounds": bounds},
    ]}))  # fmt: skip
    run(*ASKED, "--schema", "schema.json", "--test", "test.csv")
    rows = pd.read_csv("made.csv", dtype=str)
    assert rows["visited"].isna().any()
    assert rows["visited"].dropna().str.fullmatch(r"2023-\d\d-\d\d").all()
    assert rows["at"].str.fullmatch(r"2023-\d\d-\d\d \d\d:\d\d:\d\d").all()
    frame.assign(visited="31.12.2023").to_csv("private.csv", index=False)
    said = refuse(*ASKED, "--schema", "schema.json", "--overwrite")
    assert "'visited' of private.csv is declared as a date" in said
    assert "Dates are read as 2020-01-31" in said
    assert "31.12" not in said


def test_ids_mails_and_phones_of_a_csv_are_made_anew_by_the_lines_that_the_error_says(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    frame = pd.read_csv("private.csv")
    numbers = pd.Series(frame.index * 7 + 100_000).where(frame.index % 9 > 0)
    frame = frame.assign(
        customer_id=numbers,
        mail=[f"canary{i}@firm.com" for i in frame.index],
        phone=[f"030 {1234567 + i}" for i in frame.index],
        plz=10_115 + frame.index % 300 * 10,
    )
    frame.to_csv("private.csv", index=False)
    said = refuse(*ASKED)
    lines = [json.loads(line) for line in re.findall(r"\{[^{}]*\}", said)]
    assert [line["name"] for line in lines] == ["customer_id", "mail", "phone"]
    lines[0]["pattern"] = "###"
    lines.append({"name": "plz", "kind": "postcode", "prefix": 2})
    Path("schema.json").write_text(json.dumps({"columns": lines}))
    asked = (*ASKED, "--schema", "schema.json", "--test", "test.csv")  # which has no such column
    said = refuse(*asked, "--rows", "1001")
    assert "'###' of column 'customer_id' makes 1,000 different values, and 1,001 rows" in said
    assert "that is learnt" in refuse(*asked, "--where", "mail=x", "--save", "kept")
    pd.read_csv("test.csv").assign(plz=10_115).to_csv("test.csv", index=False)
    done = run(*asked)
    assert "columns made up and not learnt ('customer_id', 'mail', 'phone')" in done.stderr
    assert "canary" not in Path("made.csv").read_text() + Path("made.html").read_text()
    rows = pd.read_csv("made.csv", dtype=str)
    assert list(rows.columns) == [name for name in frame.columns if name != "person"]
    assert rows["customer_id"].tolist() == [str(i) for i in range(1, 401)]
    assert rows["phone"].is_unique
    assert rows["phone"].str.startswith("00999 ").all()
    assert set(rows["plz"].dropna()) <= {"10", "11", "12", "13", "other"}


def test_missing_groups_come_from_public_rows_where_there_are_some(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    frame = pd.read_csv("private.csv")
    frame.loc[frame.index % 3 == 0, "sex"] = None
    frame.to_csv("private.csv", index=False)
    assert "sensitive column 'sex' is missing in row " in refuse(*ASKED)
    told = json.loads(run(*ASKED, "--reference", "public.csv", "--json").stdout)
    assert "the reference rows from which missing groups are predicted" in told["guarantee"]
    assert any(note.startswith("where sex is missing") for note in told["notes"])
    assert sum(told["counts"].values()) == 400


@pytest.mark.filterwarnings("ignore:.*cannot be told from empty ones")
def test_a_group_without_a_record_and_a_memory_that_is_too_small_are_said_in_one_line(
    town: Path, run: Run, refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("schema.json").write_text(json.dumps({"columns": [
        {"name": "sex", "kind": "categorical", "categories": ["F", "M", "X"]},
    ]}))  # fmt: skip
    said = paid_for(run, "made.generator", *ASKED, "--schema", "schema.json")
    assert "sex=X can be told from the noise" in said
    assert "--balance none" in said
    assert not Path("made.csv").exists()
    as_learnt = (*ASKED, "--schema", "schema.json", "--balance", "none", "--out", "as-learnt.csv")
    assert "cannot be asked for" in run(*as_learnt).stderr
    assert Path("as-learnt.csv").exists()
    pytest.importorskip("torch", reason="needs the extra torch")
    monkeypatch.setattr("evenhand.generators.memory.available_bytes", lambda: 300_000)
    assert "Lower n_teachers, hidden or n_bins" in refuse(*ASKED, "--method", "pate-gan")


def test_the_list_of_generators_says_what_each_says_of_itself() -> None:
    for payload, default in (("tables", "marginal"), ("images", "gaussian")):
        assert names_of(payload, offered=True)[0] == default
    for key, kind in GENERATORS.items():
        assert (kind.payload, kind.method) == key
        assert key in REFERENCES or not kind.not_private
        assert kind.words


def test_rates_of_more_than_two_classes_are_refused_where_the_schema_says_so(
    town: Path, refuse: Callable[..., str]
) -> None:
    Schema.declared({"job": ["clerk", "nurse", "smith"]}).save("schema.json")
    asked = ["job" if word == "loan" else word for word in ASKED]
    said = refuse(*asked, "--schema", "schema.json", "--fairness", "both")
    assert "moves the shares of two classes, and the schema declares 3 of 'job'" in said
    assert not list(town.glob("made*"))


def test_rows_keep_what_is_publicly_known(town: Path, run: Run, refuse: Callable[..., str]) -> None:
    rng = np.random.default_rng(0)
    frame = pd.read_csv("private.csv")
    begin = rng.integers(0, 700, len(frame))
    for name, days in (("begin", begin), ("end", begin + rng.integers(0, 300, len(frame)))):
        frame[name] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")).date
    frame.to_csv("private.csv", index=False)
    date = {"kind": "date", "bounds": ["2020-01-01", "2022-12-31"]}
    columns = [{"name": name, **date} for name in ("begin", "end")]
    Path("schema.json").write_text(json.dumps({"columns": columns}))
    jobs = {"job": ["nurse", "cook", "nurse"], "race": ["A", "A", "B"]}
    pd.DataFrame(jobs).to_csv("allowed.csv", index=False)
    asked = [*ASKED, "--schema", "schema.json"]
    rules = ("end >= begin", "20 <= hours <= 45", "begin >= 2020-06-01", "allowed.csv")
    words = [word for rule in rules for word in ("--constraint", rule)]
    assert "--constraint may ask for what no row has" in refuse(*asked, *words)
    run(*asked, *words, "--save", "kept")
    rows = pd.read_csv("made.csv", parse_dates=["begin", "end"])
    assert len(rows) == 400
    assert (rows["begin"] <= rows["end"]).all()
    assert rows["begin"].min() >= pd.Timestamp("2020-06-01")
    assert rows["hours"].between(20, 45).all()
    assert {*zip(rows["job"], rows["race"], strict=True)} <= {*zip(*jobs.values(), strict=True)}
    for rule, said in (
        ("bgin <= end", "no column 'bgin' that is learnt and no date 'bgin'.*mean 'begin'"),
        ("begin <= hours", "no common order: begin is datetime64.*, hours is int64"),
        ("begin <= 2020-13-01", "no date '2020-13-01'"),
        ("60 <= hours <= 20", r"low <= high, .* got \(60, 20\)"),
        (
            "begin <= 2019-12-31",
            "no value of 'begin' keeps .*all are from 2020-01-01 to 2022-12-31",
        ),
    ):
        words = ["--constraint", rule, "--save", "other", "--out", "other.csv"]
        assert re.search(said, refuse(*asked, *words))
    # What is wrong is said at once, whether or not the fit would be kept.
    words = ["--constraint", "bgin <= end", "--constraint", "hours < 10", "--where", "jbo=nurse"]
    said = refuse(*asked, *words, "--out", "other.csv")
    for part in ("no column 'bgin'", "got 'hours < 10'", "got 'jbo=nurse'", "Keep it with --save"):
        assert part in said
    assert not Path("other").exists()


DECLARED = {
    "--constraint": ("70 <= hours", "hours <= 9", "5 >= hours >= 3", "90 >= hours >= 61"),
    "--where": ("hours=70", "hours=61..80", "hours=20.5", "hours=", "job=pope", "sex=X"),
}


@pytest.mark.parametrize(
    ("option", "asked"), [(option, asked) for option, of in DECLARED.items() for asked in of]
)
def test_what_the_schema_says_that_no_row_has_is_refused_before_anything_is_spent(
    option: str, asked: str, town: Path, refuse: Callable[..., str]
) -> None:
    Schema.declared(
        {"hours": {"bounds": (10, 60)}, "job": ["clerk", "nurse", "smith"], "sex": ["F", "M"]}
    ).save("schema.json")
    before = sorted(town.iterdir())
    said = refuse(*ASKED, "--schema", "schema.json", "--save", "kept", option, asked)
    assert re.search("hours|job|sex", asked)[0] in said
    assert sorted(town.iterdir()) == before


def test_the_claim_can_be_for_each_person(town: Path, run: Run) -> None:
    words = [word for word in ASKED if word not in ("--drop", "person")]
    done = run(*words, "--unit", "person", "--per-unit", "2", "--json")
    assert json.loads(done.stdout)["unit"] == "person"
    assert "person" not in pd.read_csv("made.csv").columns


@pytest.mark.slow
def test_intervals_are_those_of_persons_where_test_rows_say_whose_they_are(
    town: Path, run: Run
) -> None:
    words = [word for word in ASKED if word not in ("--drop", "person")]
    words += ["--unit", "person", "--test", "test.csv", "--json"]

    def n_units() -> set[object]:
        told = json.loads(run(*words, "--overwrite").stdout)["measured"]["utility"]
        return {u["accuracy"].get("n_units") for u in told}

    test = pd.read_csv("test.csv")
    test.assign(person=test.index // 4).to_csv("test.csv", index=False)
    assert n_units() == {-(-len(test) // 4)}
    test.drop(columns="person", errors="ignore").to_csv("test.csv", index=False)
    assert n_units() == {None}


BAD = {
    "an unknown label": (["--label", "laon"], "Did you mean 'loan'"),
    "an unknown sensitive column": (["--sensitive", "sexx"], "Did you mean 'sex'"),
    "an unknown method": (["--method", "margin"], "Did you mean 'marginal'"),
    "a condition without a value": (
        ["--where", "job", "--save", "kept"],
        "--where is COLUMN=VALUE",
    ),
    "a condition on the unit": (
        ["--unit", "race", "--where", "race=A", "--save", "kept"],
        "that is learnt",
    ),
    "a condition on no column": (["--where", "jbo=nurse", "--save", "kept"], "Did you mean 'job'"),
    "a rule on no column": (
        ["--constraint", "10 <= huors", "--save", "kept"],
        "no column 'huors' that is learnt. There are",
    ),
    "a rule on no order": (
        ["--constraint", "hours < 10", "--save", "kept"],
        "compares by <= and >= alone, got 'hours < 10'",
    ),
    "an order of one column": (
        ["--constraint", "hours <= hours", "--save", "kept"],
        "order is one of two columns, got 'hours' twice",
    ),
    "a range to nowhere": (
        ["--constraint", "nan <= hours", "--save", "kept"],
        "and None for one end at most; got (nan, None)",
    ),
    "a rule on text": (
        ["--constraint", "job <= sex", "--save", "kept"],
        "Dates in text are read by",
    ),
    "a rule of no file": (["--constraint", "jobs.csv", "--save", "kept"], "is no file 'jobs.csv'"),
    "combinations of no column": (
        ["--constraint", "test.csv", "--drop", "race", "--save", "kept"],
        "no column 'race' that is learnt, which test.csv names",
    ),
    "an unknown balance": (["--balance", "labels"], "Did you mean 'label'"),
    "a balance that would be passed over": (
        ["--balance", "label", "--fairness", "equalized-odds"],
        "--balance 'label' would say nothing. Leave one of the two out",
    ),
    "rows of no unit": (["--per-unit", "3"], "--per-unit=3 bounds the rows of one unit, and with"),
    "no rows": (["--rows", "0"], "--rows must be at least 1"),
    "an epsilon of zero": (["--epsilon", "0"], "epsilon must be finite and > 0"),
    "an epsilon that affords noise only": (["--epsilon", "0.001"], "stands out of the noise"),
    "a page for a table": (["--out", "made.html"], "a table is written as CSV or Parquet"),
    "pictures of a table": (["--out", "made.npz"], "private.csv is read as a table. Pictures that"),
    "the private table itself": (["--out", "private.csv", "--overwrite"], "is the private table"),
    "the test rows": (
        ["--test", "test.csv", "--out", "test.csv", "--overwrite"],
        "test.csv is read as --test",
    ),
    "a condition twice": (
        ["--where", "job=nurse", "--where", "job=cook", "--save", "kept"],
        "--where names 'job' twice",
    ),
    "a condition on what --fairness spreads": (
        ["--where", "sex=F", "--fairness", "both", "--save", "kept"],
        "--where sex= asks for rows of one of them. Leave one of the two out",
    ),
    "a schema that is none": (["--schema", "private.csv"], "private.csv is not a JSON file"),
    "an absent file": (["--test", "nowhere.csv"], "There is no file nowhere.csv"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_one_line_and_nothing_is_written(
    case: str, town: Path, refuse: Callable[..., str]
) -> None:
    change, message = BAD[case]
    before = sorted(town.iterdir())
    assert message in refuse(*ASKED, *change)
    assert sorted(town.iterdir()) == before


def test_test_rows_that_cannot_be_measured_are_refused_before_anything_is_spent(
    town: Path, refuse: Callable[..., str]
) -> None:
    frame = pd.read_csv("test.csv").astype({"hours": object})
    frame.loc[3, "hours"] = "many"
    frame.loc[5, "loan"] = frame.loc[7, "sex"] = None
    frame.to_csv("test.csv", index=False)
    said = refuse(*ASKED, "--test", "test.csv")
    assert "test.csv: the label or group 'loan' is missing in row 6" in said
    assert "test.csv: the label or group 'sex' is missing in row 8" in said
    assert "Column 'hours' of test.csv must hold numbers, got the text (not shown)" in said
    frame.assign(hours="inf", loan="granted", sex="F").to_csv("test.csv", index=False)
    assert "'hours' of test.csv holds an infinite number" in refuse(*ASKED, "--test", "test.csv")
    assert not list(town.glob("made*"))


def test_a_generator_that_is_paid_for_is_kept_whatever_fails_after_its_fit(
    town: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("nothing can be drawn")

    monkeypatch.setattr("evenhand.cli.synthetic_data.Tables.draw", broken)
    for folder in ("made.generator", "made.generator2"):
        assert "nothing can be drawn" in paid_for(run, folder, *ASKED, "--show-values")
        assert len(load(folder).sample(8)) == 8
    assert not Path("made.csv").exists()


def test_a_file_that_is_there_is_not_replaced_unasked(
    town: Path, refuse: Callable[..., str]
) -> None:
    Path("made.html").write_text("mine")
    assert "made.html exists. Choose another name, or add --overwrite." in refuse(*ASKED)
    assert Path("made.html").read_text() == "mine"


@pytest.mark.slow
def test_what_private_rows_were_read_for_stands_in_the_curators_report_alone(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    people = [word if word != "--drop" else "--unit" for word in ASKED]
    asked = (*people, "--test", "test.csv", "--delta", "1e-4")
    run(*asked)
    before = Path("made.html").read_text(encoding="utf-8")
    done = run(*asked, "--curators-report", "mine.html", "--overwrite", "--json")
    told = json.loads(done.stdout)
    assert told["curators_report"] == "mine.html"
    assert {u["trained_on"] for u in told["measured"]["utility"]} == {"synthetic"}
    assert "mine.html is for the curator alone" in done.stderr
    ours, mine = (Path(name).read_text(encoding="utf-8") for name in ("made.html", "mine.html"))
    secret = ("Membership inference", "trained on real rows", "For the curator alone", "accused")
    for words in secret:
        assert words in mine
        for public in (ours, before, done.stdout, Path("made.claim.json").read_text()):
            assert words not in public
    assert Path("mine.html").stat().st_mode & 0o777 == 0o600
    assert Path("made.html").stat().st_mode & 0o777 == 0o644


def test_a_curators_report_is_refused_before_anything_is_spent(
    town: Path, run: Run, refuse: Callable[..., str]
) -> None:
    asked = (*ASKED, "--save", "kept", "--curators-report", "mine.html")
    assert "Name these with --test" in refuse(*asked)
    asked = (*asked, "--test", "test.csv")
    assert "not to be published" in refuse(*asked[:-3], "made.html", *asked[-2:])
    pd.read_csv("test.csv")[:150].to_csv("test.csv", index=False)
    assert "the number of test rows must be" in refuse(*asked)
    assert not Path("kept").exists()

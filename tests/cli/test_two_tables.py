"""``evenhand synthesize --visits``: two tables with one key, or one clear line about the input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.generators import load

Run = Callable[..., Any]
ASKED = ("synthesize", "private.csv", "--label", "loan", "--sensitive", "sex", "--epsilon", "8",
         "--rows", "400", "--out", "made.csv", "--seed", "0")  # fmt: skip
TWO = (*ASKED, "--visits", "visits.csv", "--key", "person", "--most", "3")


@pytest.fixture
def clinic(town: Path) -> Path:
    """The town's people, each in one row, and up to four calls of each."""
    people = pd.read_csv("private.csv").drop_duplicates("person")
    people.to_csv("private.csv", index=False)
    rng = np.random.default_rng(0)
    calls = pd.DataFrame({"person": np.repeat(people["person"], rng.integers(0, 5, len(people)))})
    calls["minutes"] = rng.integers(1, 30, len(calls))
    calls["line"] = rng.choice(["phone", "desk"], len(calls))
    calls.assign(note="x").to_csv("visits.csv", index=False)
    people[:100].to_csv("people.csv", index=False)
    calls[calls["person"].isin(people["person"][:100])].to_csv("calls.csv", index=False)
    return town


@pytest.mark.usefixtures("clinic")
def test_it_writes_both_tables_with_one_claim_and_a_report(run: Run) -> None:
    more = ("--drop", "note", "--keep", "minutes", "--save", "kept", "--setting", "width=1")
    often = (*TWO, *more[:4], "--out", "often.csv", "--save", "often", "--where")
    run(*often, "number of visits=2..3")
    assert set(pd.read_csv("often.visits.csv")["person"].value_counts()) == {2, 3}
    done = run(*TWO, *more)
    persons, visits = pd.read_csv("made.csv"), pd.read_csv("made.visits.csv")
    assert list(persons.columns) == list(pd.read_csv("private.csv").columns)
    assert list(visits.columns) == ["person", "minutes", "line"]
    assert persons["person"].tolist() == list(range(1, 401))
    assert set(persons.groupby(["loan", "sex"]).size()) == {100}
    assert visits["person"].isin(persons["person"]).all()
    assert visits["person"].value_counts().max() <= 3
    assert f"400 rows are in made.csv, {len(visits):,} visits in made.visits.csv" in " ".join(
        done.stdout.split()
    )
    claim = json.loads(Path("made.claim.json").read_text())
    assert claim["guarantee"]["unit"] == "person"
    assert {e["purpose"].split(":")[0] for e in claim["ledger"]["entries"]} == {
        "persons",
        "visits",
    }
    page = Path("made.html").read_text(encoding="utf-8")
    assert "number of visits" in page
    assert "visits: counts of each column by label and group" in page
    kept = load("kept")
    assert [len(table) > 0 for table in kept.sample(10, random_state=0)] == [True, True]
    assert kept.persons.width == kept.visits.width == 1
    done = run("verify", "kept")
    assert "for each person" in " ".join(done.stdout.split())
    run("card", "kept")


@pytest.mark.usefixtures("clinic")
def test_json_names_both_files_and_schemas_are_read_for_each(run: Run) -> None:
    Path("second.json").write_text(json.dumps({"columns": [
        {"name": "minutes", "kind": "numeric", "bounds": [0, 60]},
        {"name": "line", "kind": "categorical", "categories": ["desk", "phone"]},
    ]}))  # fmt: skip
    Path("first.json").write_text(json.dumps({"columns": [
        {"name": "person", "kind": "id", "pattern": "P-#####"},
        {"name": "race", "kind": "categorical", "categories": ["A", "B"]},
    ]}))  # fmt: skip
    more = ("--carry", "race", "--visits-schema", "second.json", "--visits-out", "calls.parquet")
    frame = pd.read_csv("private.csv")
    for file, of in (("private.csv", frame), ("visits.csv", pd.read_csv("visits.csv"))):
        of.assign(person="real-" + of["person"].astype(str)).to_csv(file, index=False)
    told = json.loads(run(*TWO, "--drop", "note", *more, "--schema", "first.json", "--json").stdout)
    assert (told["out"], told["visits"]) == ("made.csv", "calls.parquet")
    visits = pd.read_parquet("calls.parquet")
    assert (told["n_rows"], told["n_visits"]) == (400, len(visits))
    assert set(visits["line"]) == {"desk", "phone"}
    assert visits["person"].str.fullmatch(r"P-\d{5}").all()


@pytest.mark.slow
@pytest.mark.usefixtures("clinic")
def test_persons_who_were_held_out_are_measured_with_their_visits(run: Run) -> None:
    held = ("--drop", "note", "--test", "people.csv", "--test-visits", "calls.csv")
    done = " ".join(run(*TWO, *held).stdout.split())
    assert "visits, fidelity of columns" in done
    n = len(pd.read_csv("calls.csv"))
    assert f"(real {n / 100:.3f})" in done
    told = json.loads(run(*TWO, *held, "--json", "--overwrite").stdout)["measured"]
    assert told["covered"] is False
    assert told["n_test"] == 100
    assert told["n_visits"][0] == n / 100
    assert [c["name"] for c in told["visits"]["columns"]] == ["minutes", "line", "loan", "sex"]
    assert list(told["between_persons"]) == ["minutes"]
    page = Path("made.html").read_text(encoding="utf-8")
    assert "Share of the visits by value" in page
    assert page.count("Not covered by the guarantee. These numbers") == 4


BAD = {
    "no key": ((*ASKED, "--visits", "visits.csv"), "--visits needs --key"),
    "no visits": ((*ASKED, "--key", "person"), "--key is about two tables"),
    "test rows alone": ((*TWO, "--test", "test.csv"), "--test and --test-visits go together"),
    "test visits alone": ((*TWO, "--test-visits", "visits.csv"), "--test-visits go together"),
    "test visits of one table": (
        (*ASKED, "--test-visits", "visits.csv"),
        "--test-visits is about two tables",
    ),
    "test visits of nobody": (
        (
            *TWO,
            "--drop",
            "note",
            "--test",
            "people.csv",
            "--test-visits",
            "visits.csv",
            "--save",
            "made",
        ),  # nothing is learnt, or a folder would be there
        "key 'person' of the visits names nobody of the persons in row",
    ),
    "test visits without a column": (
        (*TWO, "--drop", "note", "--test", "people.csv", "--test-visits", "private.csv"),
        "no column 'line'",
    ),
    "an attack on two tables": (
        (*TWO, "--curators-report", "mine.html"),
        "--curators-report is about one table",
    ),
    "a unit": ((*TWO, "--unit", "person"), "--unit is about one table"),
    "rows of a unit": ((*TWO, "--per-unit", "2"), "--most says how many visits"),
    "a typo": ((*TWO[:-3], "persn", "--most", "3"), "Did you mean 'person'"),
    "carried": ((*TWO, "--drop", "note", "--carry", "race"), "carry= names 'race', which the"),
    "most": ((*TWO[:-1], "0"), "most must be at least 1, got most=0"),
    "the private visits": (
        (*TWO, "--visits-out", "visits.csv", "--overwrite"),
        "visits.csv is the private table",
    ),
    "two tables in one file": (
        (*TWO, "--visits-out", "./made.csv", "--overwrite"),
        "made.csv would hold two things: 'out' and 'visits'",
    ),
    "a column of neither": ((*TWO, "--drop", "nothing"), "no column 'nothing'"),
    "no file": ((*TWO[:-5], "gone.csv", *TWO[-4:]), "gone.csv"),
}


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(
    case: str, refuse: Callable[..., str]
) -> None:
    words, said = BAD[case]
    assert said in refuse(*words)
    assert not list(Path().glob("made*"))

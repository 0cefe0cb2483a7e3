"""``evenhand inspect``, and the same look before train and synthesize."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.datasets import Schema
from evenhand.datasets.findings import FOR_THE_CURATOR
from evenhand.frontier.material import DataSource

ROLES = ("--label", "loan", "--sensitive", "sex")


@pytest.fixture
def odd(town: Path) -> Path:
    """Return the town with three more columns in both tables that are learnt wrong as they are."""
    for name in ("private.csv", "public.csv"):
        frame = pd.read_csv(name)
        frame["since"] = ["31.1.2020", "1.12.2021"] * (len(frame) // 2)
        frame["wage"] = ["1.234,5", "987"] * (len(frame) // 2)
        frame["row no"] = range(len(frame))
        frame.to_csv(name, index=False)
    return town


def test_the_answer_says_first_whom_it_is_for_and_names_all_columns(
    odd: Path, run: Callable[..., Any]
) -> None:
    said = run("inspect", "private.csv", *ROLES, "--public", "public.csv").stdout
    assert said.splitlines()[0] == FOR_THE_CURATOR
    for words in (
        "holds dates or times: e.g. '31.1.2020'",
        "holds numbers with a comma",
        "looks like an identifier",
        "is not in the public table",
    ):
        assert words in said
    assert said.splitlines()[-1].strip() == "--drop person --drop since --drop wage --drop 'row no'"
    told = json.loads(run("inspect", "private.csv", *ROLES, "--json").stdout)
    assert told["for"] == FOR_THE_CURATOR
    assert [c["name"] for c in told["columns"] if c["stops"]] == [
        "person",
        "since",
        "wage",
        "row no",
    ]


def test_the_drop_line_and_the_schema_file_are_ready_for_train(
    odd: Path, run: Callable[..., Any], asked: Callable[..., list[str]]
) -> None:
    result = run(
        *("inspect", "private.csv", *ROLES, "--public", "public.csv", "--schema-out", "s.json")
    )
    assert "s.json is made of the public rows" in result.stderr
    schema = Schema.load("s.json")
    assert {"age", "job", "hours", "race"} <= set(schema.names)
    assert not {"person", "since", "wage", "row no"} & set(schema.names)
    drop = ["--drop", "since", "--drop", "wage", "--drop", "row no"]
    run(*asked({"--schema": "s.json"}), *drop)
    assert "exists" in run("inspect", "private.csv", "--schema-out", "s.json", exit_code=2).stderr


def test_train_stops_at_all_columns_at_once_and_goes_on_as_told(
    odd: Path,
    run: Callable[..., Any],
    refuse: Callable[..., str],
    asked: Callable[..., list[str]],
) -> None:
    line = refuse(*asked({}))
    assert line.startswith(
        "Column 'since' holds dates or times; column 'wage' holds numbers with a comma; column "
        "'row no' looks like an identifier: the table private.csv would be learnt wrong"
    )
    assert "Go on without: --drop since --drop wage --drop 'row no'." in line
    assert not any(value in line for value in ("31.1.2020", "1.234,5", "1200"))
    assert not Path("model").exists()
    assert "column 'wage'" not in refuse(*asked({"--keep": "wage"}))
    run(*asked({"--keep": "wage", "--out": "kept"}), "--keep", "since", "--drop", "row no")
    assert "the column 'wage' is named by drop and by keep" in refuse(
        *asked({"--keep": "wage"}), "--drop", "wage"
    ).replace("The column", "the column")
    assert "no column 'wages', which --keep names. Did you mean 'wage'?" in refuse(
        *asked({"--keep": "wages"})
    )


def test_names_with_braces_are_names(odd: Path, refuse: Callable[..., str]) -> None:
    frame = pd.read_csv("private.csv").rename(columns={"wage": "{0} {drop}"})
    frame.to_csv("{x}.csv", index=False)
    words = ("train", "{x}.csv", *ROLES, "--epsilon", "1", "--out", "m", "--public-fraction", "0.2")
    line = refuse(*words, "--margin", "0.1")
    assert "--drop '{0} {drop}' --drop 'row no'" in line
    assert line.endswith("evenhand inspect '{x}.csv'.")


def test_a_declared_column_is_learnt_as_declared(
    odd: Path, run: Callable[..., Any], refuse: Callable[..., str], asked: Callable[..., list[str]]
) -> None:
    categories = {"since": ["31.1.2020", "1.12.2021"], "wage": ["1.234,5", "987"]}
    others = {"age": "numeric", "hours": "numeric", "row no": {"bounds": (0, 2000)}}
    text = {"job": ["clerk", "nurse", "smith"], "race": ["A", "B"]}
    Schema.declared({**categories, **others, **text}).save("s.json")
    run(*asked({"--schema": "s.json"}))


def test_a_copy_of_the_label_stops_a_run(
    town: Path, refuse: Callable[..., str], asked: Callable[..., list[str]]
) -> None:
    frame = pd.read_csv("private.csv")
    frame.assign(granted=(frame["loan"] == "granted").astype(int)).to_csv("p.csv", index=False)
    public = pd.read_csv("public.csv")
    public.assign(granted=[0, 1] * (len(public) // 2)).to_csv("public.csv", index=False)
    assert "Column 'granted' is a copy of the label" in refuse(*asked({}, private="p.csv"))


def test_synthesize_stops_at_all_columns_at_once_and_goes_on_as_told(
    odd: Path, run: Callable[..., Any], refuse: Callable[..., str]
) -> None:
    words = ("synthesize", "private.csv", *ROLES, "--epsilon", "8", "--rows", "50", "--seed", "0")
    line = refuse(*words, "--out", "made.csv")
    for name in ("person", "since", "wage", "row no"):
        assert f"column '{name}'" in line.replace("Column", "column")
    assert "--drop person --drop since --drop wage --drop 'row no'" in line
    drop = ("--drop", "person", "--drop", "since", "--drop", "row no")
    run(*words, *drop, "--keep", "wage", "--out", "made.csv")
    assert set(pd.read_csv("made.csv")["wage"].dropna()) <= {"1.234,5", "987", "other"}


def test_a_grid_stops_at_them_as_well(odd: Path) -> None:
    files = {"private": "private.csv", "public": "public.csv", "test": "test.csv"}
    source = DataSource(name="town", **files, label="loan", sensitive=("sex",), drop=("person",))
    with pytest.raises(
        ValueError, match=r"'since' holds dates.*drop = \['since', 'wage', 'row no'\]"
    ):
        source.load(0)

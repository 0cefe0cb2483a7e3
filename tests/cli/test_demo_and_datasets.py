"""``evenhand demo`` and ``evenhand datasets``, on the real data where they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.datasets import available

Run = Callable[..., Any]


@pytest.mark.slow
@pytest.mark.data
def test_the_demo_prints_one_object_and_keeps_its_margin(
    town: Path, run: Run, real_data: Callable[..., object]
) -> None:
    real_data("adult")
    said = json.loads(run("demo", "--json").stdout)
    assert said["dataset"] == "adult"
    assert (said["epsilon"], said["delta"], said["n_teachers"]) == (3.0, 1e-5, 187)
    assert said["public_gap"] <= said["margin"] == 0.05
    assert said["within_margin"] is True
    # A constant guess errs on 25 % of the rows, with a gap of 0; the demo must learn something.
    assert said["error"] < 0.19
    assert said["error_interval"][0] < said["error"] < said["error_interval"][1]
    assert said["gap_interval"][0] <= said["demographic_parity_gap"] <= said["gap_interval"][1]
    assert said["n_asked"] > said["n_answered"] == said["n_queries"] == 6783
    assert said["wall_s"] > 0
    assert said["guarantee"] == str(evenhand.load("evenhand-demo").guarantee_)
    # Again: the earlier demo is replaced. Settings reach the run.
    again = json.loads(run("demo", "--json", "--epsilon", "1", "--margin", "0.2").stdout)
    assert (again["epsilon"], again["margin"]) == (1.0, 0.2)
    assert str(evenhand.load("evenhand-demo").guarantee_) == again["guarantee"]
    assert not list(town.glob(".evenhand-demo*"))


@pytest.mark.parametrize(
    "kind", ["a file", "a diary", "a trained model", "a demo with a diary", "a link to a demo"]
)
def test_the_demo_overwrites_nothing_but_a_demo(
    model: Path, town: Path, refuse: Run, kind: str
) -> None:
    out = town / "evenhand-demo"
    if kind == "a file":
        out.write_text("mine")
    elif kind == "a diary":
        out.mkdir()
        (out / "diary.txt").write_text("mine")
    elif kind == "a trained model":
        model.rename(out)
    else:
        training = json.loads((model / "training.json").read_text())
        (model / "training.json").write_text(json.dumps({**training, "command": "demo"}))
        if kind == "a demo with a diary":
            model.rename(out)
            (out / "diary.txt").write_text("mine")
        else:
            out.symlink_to(model)
    assert "evenhand-demo exists" in refuse("demo")
    assert out.exists()


def test_every_data_set_is_listed_with_its_rows_and_place(
    town: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    adult = town / "data" / "adult"
    adult.mkdir(parents=True)
    for name in ("adult.data", "adult.test"):
        (adult / name).write_text("")
    monkeypatch.setenv("EVENHAND_DATA", str(town / "data"))
    monkeypatch.setenv("COLUMNS", "300")
    listed = json.loads(run("datasets", "list", "--json").stdout)["datasets"]
    assert [entry["name"] for entry in listed] == [info.name for info in available()]
    assert {entry["name"]: entry["folder"] for entry in listed}["adult"] == str(adult)
    text = run("datasets", "list").stdout
    assert all(info.name in text and f"{info.rows:,}" in text for info in available())
    assert str(adult) in text


@pytest.mark.data
def test_a_data_set_that_is_here_is_fetched_from_here(
    run: Run, real_data: Callable[..., object]
) -> None:
    real_data("german")
    said = json.loads(run("datasets", "fetch", "german", "--json").stdout)
    assert (Path(said["folder"]) / "german.data").is_file() or (
        Path(said["folder"]) / "german.data.gz"
    ).is_file()


def test_a_misspelt_data_set_gets_the_nearest_name(refuse: Run) -> None:
    assert "Did you mean 'adult'?" in refuse("datasets", "fetch", "adlut")


def test_data_that_cannot_be_had_say_what_was_tried(
    town: Path, refuse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_DATA", str(town / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(town / "cache"))
    line = refuse("datasets", "fetch", "acs-income")  # has no address: nothing is fetched
    assert "The data set 'acs-income' could not be had. Tried:" in line
    assert "EVENHAND_DATA" in line

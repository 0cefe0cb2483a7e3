"""What commands read and write: in which form, and never in the place of something else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand._roles import Roles
from evenhand.cli.output import whole_file
from evenhand.cli.tables import read_training
from evenhand.datasets import PublicEncoder, read_table

Run = Callable[..., Any]
MADE = ["--label", "loan", "--sensitive", "sex", "--drop", "person", "--epsilon", "9"]


def test_predictions_and_synthetic_rows_are_parquet_where_the_name_says_so(
    model: Path, run: Run
) -> None:
    pd.read_csv("test.csv").to_parquet("test.parquet")
    run("predict", "model", "test.parquet", "--out", "new.parquet")
    run("predict", "model", "test.csv", "--out", "new.csv")
    assert read_table("new.parquet").equals(read_table("new.csv"))
    pd.read_csv("private.csv").to_parquet("private.parquet")
    run("synthesize", "private.parquet", *MADE, "--rows", "50", "--out", "made.parquet")
    assert Path("made.parquet").read_bytes()[:4] == b"PAR1"
    assert len(read_table("made.parquet")) == 50


@pytest.mark.parametrize("name", ["x.xlsx", "x.json", "x.tsv", "x.html"])
def test_a_name_of_another_format_is_refused(model: Path, refuse: Run, name: str) -> None:
    words = "a table is written as CSV or Parquet. End the name with .csv"
    assert words in refuse("predict", "model", "test.csv", "--out", name)
    assert words in refuse("synthesize", "private.csv", *MADE, "--out", name)
    assert not Path(name).exists()


def test_separator_and_encoding_hold_for_every_table_of_a_command(
    town: Path, train: Run, refuse: Run, asked: Run
) -> None:
    for name in ("private", "public"):
        frame = pd.read_csv(f"{name}.csv").replace({"job": {"clerk": "Käufer"}})
        frame.to_csv(f"{name}.csv", index=False, sep=":", encoding="latin-1")
    assert "Name its encoding (--encoding latin-1" in refuse(*asked({}))
    assert "has no column" in refuse(*asked({"--encoding": "latin-1"}))
    train({"--encoding": "latin-1", "--sep": ":"})
    assert Path("model").is_dir()
    assert "separator must be one character" in refuse(*asked({"--sep": "::", "--out": "b"}))


def test_no_cell_of_a_written_table_is_a_formula_unless_it_is_asked_for(
    model: Path, run: Run
) -> None:
    frame = pd.read_csv("private.csv").replace({"job": {"clerk": "=1+1"}})
    frame.rename(columns={"job": "@job"}).to_csv("private.csv", index=False)
    schema = [{"name": "@job", "categories": ["=1+1", "nurse", "smith"], "missing": True}]
    Path("schema.json").write_text(json.dumps({"columns": schema}))
    words = ["synthesize", "private.csv", *MADE, "--schema", "schema.json", "--rows", "200"]
    run(*words, "--out", "made.csv")
    run(*words, "--out", "raw.csv", "--raw")
    for name, wanted in (("made.csv", False), ("raw.csv", True)):
        cells = pd.read_csv(name, dtype=str, header=None).stack()
        assert cells.str.startswith(("=", "@")).any() == wanted
        back = read_table(name)  # as train reads it
        assert "=1+1" in set(back["@job"])


def test_only_a_regular_file_is_replaced(town: Path, model: Path, refuse: Run, run: Run) -> None:
    mine = town / "mine.csv"
    mine.write_text("mine")
    (town / "link.csv").symlink_to(mine)
    (town / "gone.csv").symlink_to(town / "nowhere")
    (town / "folder.csv").mkdir()
    os.mkfifo(town / "pipe.csv")
    kinds = {"link": "a link", "gone": "a link", "folder": "a folder", "pipe": "a device"}
    for name, kind in kinds.items():
        for words in (["predict", "model", "test.csv"], ["synthesize", "private.csv", *MADE]):
            line = refuse(*words, "--out", f"{name}.csv", "--overwrite")
            assert f"{name}.csv is {kind} and no regular file" in line
    line = refuse("evaluate", "model", "test.csv", "--report", "link.csv", "--overwrite")
    assert "link.csv is a link and no regular file" in line
    assert "belongs to the system" in refuse(
        "predict", "model", "test.csv", "--out", "/proc/self/comm", "--overwrite"
    )
    line = refuse("predict", "model", "test.csv", "--out", "/dev/null", "--overwrite")
    assert "/dev/null is a device" in line
    assert mine.read_text() == "mine"
    run("predict", "model", "test.csv", "--out", "mine.csv", "--overwrite")
    assert mine.read_text().startswith("prediction\n")


def test_what_is_put_there_meanwhile_is_not_replaced(town: Path) -> None:
    out = town / "out.csv"

    def write() -> None:
        with whole_file(out, overwrite=True) as made:
            made.write_text("new")
            out.symlink_to(town / "private.csv")

    before = (town / "private.csv").read_text()
    with pytest.raises(FileExistsError, match="a link and no regular file"):
        write()
    assert (town / "private.csv").read_text() == before


@pytest.mark.parametrize("seed", ["-1", "4294967296", "x"])
def test_a_seed_that_is_none_is_refused(run: Run, asked: Run, town: Path, seed: str) -> None:
    for words in (asked({"--seed": seed}), ["synthesize", "private.csv", *MADE, "--seed", seed]):
        more = ["--out", "made.csv"] if words[0] == "synthesize" else []
        said = run(*words, *more, exit_code=2).stderr
        assert "--seed" in said
        assert "Traceback" not in said
    assert not (town / "model").exists()


def test_more_rows_than_there_is_memory_for_are_refused_before_anything_is_spent(
    town: Path, refuse: Run
) -> None:
    line = refuse("synthesize", "private.csv", *MADE, "--rows", str(10**12), "--out", "made.csv")
    assert "1,000,000,000,000 rows of 6 columns need about" in line
    assert "Lower --rows, and draw more from the folder of --save. Nothing was spent." in line


@pytest.mark.parametrize("odd", ["x", "007", "3.0"])
@pytest.mark.parametrize("written", ["{}.0", "+{}", "{}.50", "{}"])
def test_one_private_row_does_not_say_how_the_others_are_read(
    written: str, odd: str, tmp_path: Path
) -> None:
    """A column of a private CSV becomes text by one cell."""
    known = dict.fromkeys([written.format(0), written.format(1), "x", "1.0", "1"])
    declared = {"columns": [{"name": "code", "categories": list(known)}]}
    (tmp_path / "schema.json").write_text(json.dumps(declared))

    def encoded(last: str) -> np.ndarray:
        codes = [written.format(i % 3) for i in range(30)]
        rows = [f"{code},{i % 2}" for i, code in enumerate([*codes, last])]
        (tmp_path / "private.csv").write_text("\n".join(["code,y", *rows]))
        roles = Roles(label="y", sensitive=())
        tables = read_training(tmp_path / "private.csv", None, roles, tmp_path / "schema.json")
        return PublicEncoder(tables.schema).fit(None).transform(tables.X)[:-1]

    usual = encoded(written.format(1))
    assert usual.any(axis=1).sum() == 20  # of the third code nothing is declared
    np.testing.assert_array_equal(encoded(odd), usual)

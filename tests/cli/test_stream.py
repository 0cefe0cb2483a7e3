"""``train`` and ``synthesize`` on Parquet whose rows are read in batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand

from .conftest import command

Run = Callable[..., Any]


@pytest.fixture
def files(town: Path) -> Path:
    """The town's private table as three Parquet files."""
    frame = pd.read_csv("private.csv")
    Path("private").mkdir()
    for i in range(3):
        part = frame.iloc[i * 400 : (i + 1) * 400]
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), f"private/{i}.parquet")
    return town


@pytest.mark.parametrize("source", ["folder", "url", "file"])
def test_a_folder_a_url_and_a_file_stream(files: Path, train: Run, source: str) -> None:
    words = {
        "folder": ("private", {}),
        "url": ((files / "private").as_uri(), {"--scratch": "."}),
        "file": ("private/0.parquet", {"--rows-per-teacher": "5"}),
    }
    private, more = words[source]
    said = train(more, private=private)
    model = evenhand.load("model")
    n = 400 if source == "file" else 1200
    assert said["neighbors"] == "replace one"
    assert f"the number of private records ({n})" in model.guarantee_.public
    assert list(model.feature_names_in_) == ["age", "job", "hours", "race"]
    beside = {path.name for path in files.iterdir()}
    assert beside == {"private.csv", "private", "public.csv", "test.csv", "model"}


def test_the_unit_is_a_column_of_the_files(files: Path, train: Run) -> None:
    said = train({"--drop": None, "--unit": "person"}, private="private")
    assert (said["unit"], said["neighbors"]) == ("person", "add or remove one")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--method": "dpsgd", "--margin": None, "--teachers": None}, "--method dpsgd reads its"),
        ({"--public": None, "--public-fraction": "0.2"}, "Give --public FILE"),
        ({"--label": "laon"}, "has no column 'laon' (--label). Did you mean 'loan'?"),
        ({"--rows-per-teacher": "0"}, "rows_per_teacher must be at least 1"),
        ({"--backend": "ray"}, "--backend ray needs rows that stream, and --scratch"),
        ({"--scratch": "absent"}, "scratch must be a folder"),
        ({"--out": "private/model"}, "private/model would lie in private, whose files are all"),
    ],
)
def test_what_does_not_go_with_a_stream_is_one_clear_line(
    files: Path, refuse: Run, changes: dict[str, str | None], words: str
) -> None:
    assert words in refuse(*command(changes, "private"))
    assert not Path("model").exists()


DRAWN = ("--label", "loan", "--sensitive", "sex", "--epsilon", "8", "--rows", "40", "--seed", "0")


@pytest.mark.parametrize("is_url", [False, True], ids=["folder", "url"])
def test_a_generator_learns_from_a_folder_and_from_a_url(
    files: Path, run: Run, is_url: bool
) -> None:
    private = (files / "private").as_uri() if is_url else "private"
    run("synthesize", private, *DRAWN, "--drop", "person", "--test", "test.csv", "--out", "a.csv")
    rows = pd.read_csv("a.csv")
    assert list(rows.columns) == ["age", "job", "hours", "sex", "race", "loan"]
    assert set(rows.groupby(["loan", "sex"]).size()) == {10}
    assert set(rows["job"].dropna()) <= {"clerk", "nurse", "smith", "other"}
    assert "Models trained on these rows" in Path("a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("is_url", [False, True], ids=["folder", "url"])
@pytest.mark.parametrize(
    "words",
    [
        ("--out", "private/{first}", "--overwrite"),
        ("--out", "private/made.csv"),
        ("--out", "a.csv", "--save", "private/generator"),
        ("--out", "a.csv", "--test", "test.csv", "--curators-report", "private/own.html"),
    ],
)
def test_nothing_is_written_among_the_files_that_are_read(
    files: Path, refuse: Run, words: tuple[str, ...], is_url: bool
) -> None:
    private = (files / "private").as_uri() if is_url else "private"
    before = {file.name: file.read_bytes() for file in Path("private").iterdir()}
    words = tuple(word.format(first=min(before)) for word in words)
    said = refuse("synthesize", private, *DRAWN, "--drop", "person", *words)
    assert "whose files are all read as private rows. Choose a place outside" in said
    assert {file.name: file.read_bytes() for file in Path("private").iterdir()} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--drop", "persn"), "no column 'persn' (drop). Did you mean 'person'?"),
        ((), "Column 'person' looks like an identifier"),
        (("--unit", "person"), "unit='person' cannot be read"),
        (("--drop", "person", "--method", "pate-gan"), "stream: MarginalSynthesizer"),
        (("--drop", "person", "--reference", "public.csv"), "Leave reference out"),
        (
            ("--drop", "person", "--test", "test.csv", "--curators-report", "own.html"),
            "--curators-report attacks rows in memory",
        ),
    ],
)
def test_what_a_generator_cannot_read_of_a_stream_is_one_clear_line(
    files: Path, refuse: Run, words: tuple[str, ...], said: str
) -> None:
    assert said in refuse("synthesize", "private", *DRAWN, *words, "--out", "a.csv")
    assert not Path("a.csv").exists()

"""Tables give back the runs they were made of; published points come in marked as such."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from evenhand.frontier import Run
from evenhand.frontier.cost import ReleaseCost
from evenhand.frontier.export import (
    PUBLISHED_COLUMNS,
    read_published,
    read_runs,
    write_csv,
    write_parquet,
)

Make = Callable[..., Run]
WRITERS = {"runs.csv": write_csv, "runs.parquet": write_parquet}
PUBLISHED = Path(__file__).parents[2] / "reproductions" / "published" / "points.csv"


@pytest.mark.parametrize("name", WRITERS)
def test_runs_survive_a_table_with_every_digit(tmp_path: Path, run_of: Make, name: str) -> None:
    runs = [
        run_of(error=0.1 + 0.2 / 3, mu_squared=1e-17, gap_interval=(0.1, 1 / 3)),
        run_of(
            seed=2**40, arguments={"margin": 0.1, "name": 'a,"b"\nc é', "rule": None, "x": True}
        ),
        run_of(method="non-private", epsilon=math.inf, seconds=math.nan, delta=math.nan),
        run_of(seed=3, gap=math.nan, gap_interval=(math.nan, math.nan), groups=()),
        run_of(seed=4, data_kind="synthetic stand-in", gap_name="error_parity_rest"),
        run_of(seed=5, majority_error=0.1 + 0.2, error_without_margin=1 / 3, no_better=False),
        run_of(seed=6, majority_error=0.25, no_better=True),
    ]
    file = WRITERS[name](runs, tmp_path / name)
    again = read_runs(file)
    assert [run.to_dict() for run in again] == [run.to_dict() for run in runs]
    assert [run.key for run in again] == [run.key for run in runs]
    assert read_runs(WRITERS[name]([], tmp_path / f"none-{name}")) == []


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_of_before_the_yardsticks_is_read(tmp_path: Path, run_of: Make, name: str) -> None:
    runs = [run_of(majority_error=0.25, error_without_margin=0.2, no_better=True)]
    file = WRITERS[name](runs, tmp_path / name)
    read, write = (
        (pd.read_csv, pd.DataFrame.to_csv)
        if name.endswith("csv")
        else (pd.read_parquet, pd.DataFrame.to_parquet)
    )
    lost = ["majority_error", "error_without_margin", "no_better"]
    write(read(file).drop(columns=lost), file, index=False)
    (again,) = read_runs(file)
    assert again.key == runs[0].key
    assert (math.isnan(again.majority_error), again.no_better) == (True, None)


def test_a_table_is_flat_and_its_numbers_are_numbers(tmp_path: Path, run_of: Make) -> None:
    runs = [run_of(seed=i, epsilon=e) for i, e in enumerate([1.0, math.inf])]
    frame = pd.read_csv(write_csv(runs, tmp_path / "runs.csv"))
    assert frame["epsilon"].tolist()[0] == 1.0
    assert frame["epsilon"].isna().tolist() == [False, True]
    parquet = pd.read_parquet(write_parquet(runs, tmp_path / "runs.parquet"))
    assert list(parquet.columns) == list(frame.columns)
    assert parquet["error_interval_low"].dtype == "float64"


def damage(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",0.17,", ",0.1x,", "line 2: error must be a number or empty, got '0.1x'"),
        (",0.17,", ",1.7,", r"line 2: error must lie in \[0, 1\], got error=1.7"),
        (",0.17,", ",,,", "line 2: this row has not"),
        ("fairpate", "pate", "line 2: the key does not belong to this setting"),
        ("fingerprint", "fingerprnt", "line 1: there is no column 'fingerprnt'. Did you mean 'fin"),
    ],
)
def test_a_damaged_table_names_the_line(
    tmp_path: Path, run_of: Make, old: str, new: str, said: str
) -> None:
    file = write_csv([run_of()], tmp_path / "runs.csv")
    damage(file, old, new)
    with pytest.raises(ValueError, match=said):
        read_runs(file)


def test_a_table_without_a_column_is_refused(tmp_path: Path, run_of: Make) -> None:
    for name, writer in WRITERS.items():
        file = writer([run_of()], tmp_path / name)
        read = pd.read_csv if name.endswith("csv") else pd.read_parquet
        frame = read(file).drop(columns=["command"])
        frame.to_csv(file, index=False) if name.endswith("csv") else frame.to_parquet(file)
        with pytest.raises(ValueError, match="the column command is missing"):
            read_runs(file)


def test_published_points_are_marked_and_claim_nothing(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(
        "data,method,epsilon,error,gap,source\nadult,DP-FERMI,0.5,.17,.1,Table 1\n"
        "adult,ERM,,.15,,Table 1\n"
    )
    fermi, erm = read_published(file)
    assert fermi.setting.method == "published: DP-FERMI"
    assert (fermi.epsilon, fermi.error, fermi.gap, fermi.coverage) == (0.5, 0.17, 0.1, 1.0)
    assert math.isnan(fermi.delta)
    assert (erm.epsilon, math.isnan(erm.gap)) == (math.inf, True)
    assert {run.data_kind for run in (fermi, erm)} == {"published"}
    assert (fermi.guarantee, fermi.mu_squared) == ({}, None)
    assert fermi.command == "published in Table 1"
    assert ReleaseCost.of([fermi, erm]).epsilon == 0.0


HEADER = "data,method,epsilon,error,gap,source\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("data,method,eror,source\n", "line 1: there is no column 'eror'. Did you mean 'error'"),
        ("data,method,error\n", "line 1: the column source is missing"),
        (HEADER + "a,m,1,.2,.1,s\na,m,1,twenty,.1,s\n", "line 3: error must be a number or empty"),
        (HEADER + "a,m,1,,.1,s\n", "line 2: error is empty: share of wrong labels"),
        (HEADER + "a,m,1,.2,.1,\n", "line 2: source is empty: where it stands"),
        (HEADER + "a,m,1,.2,1.1,s\n", r"line 2: gap must lie in \[0, 1\]"),
        (HEADER + "a,m,0,.2,.1,s\n", "line 2: epsilon must be greater than 0"),
        (HEADER + "a,m,inf,.2,.1,s\n", "line 2: epsilon must be finite, got 'inf'"),
        (HEADER + "a,m,1,.2,.1\n", "line 2: this row has not 6 cells"),
        (HEADER + "a,m,1,.2,.1,s,more\n", "line 2: this row has not 6 cells"),
        (HEADER + "a,m,1,.2,.1,s\na,m,1,.2,.1,s\n", "line 3: this point stands in line 2, too"),
    ],
)
def test_bad_published_points_name_the_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_published(file)


def test_the_points_of_the_reproductions_can_be_read() -> None:
    points = read_published(PUBLISHED)
    tables = {"adult", "credit-default", "parkinsons", "retired-adult", "utkface-age"}
    assert {run.setting.data for run in points} == tables
    assert min(run.error for run in points if run.setting.data == "adult") == 0.157081
    assert set(PUBLISHED.read_text().splitlines()[0].split(",")) <= set(PUBLISHED_COLUMNS)

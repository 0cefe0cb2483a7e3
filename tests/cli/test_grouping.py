"""``--bins`` and ``--merge-small``: groups of the curator's making, remembered with the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand

from .conftest import command

Run = Callable[..., Any]
AGED = {"--sensitive": "years", "--margin": "0.2"}


@pytest.fixture
def aged(town: Path) -> Path:
    """Put a sensitive column of sixty values into the three tables."""
    for i, name in enumerate(("private", "public", "test")):
        table = pd.read_csv(town / f"{name}.csv")
        table["years"] = np.random.default_rng(i).integers(18, 78, len(table))
        table.to_csv(town / f"{name}.csv", index=False)
    return town


def trained(run: Run, *more: str, **changes: str) -> dict[str, Any]:
    words = command(AGED | changes)
    said: dict[str, Any] = json.loads(run(*words, *more, "--test", "test.csv", "--json").stdout)
    return said


def test_a_sensitive_column_of_many_values_is_refused_with_the_way_out(
    aged: Path, refuse: Run
) -> None:
    said = refuse(*command(AGED))
    assert "public.csv: The sensitive column 'years' has more than 50 values" in said
    assert "--bins 'years'=4" in said  # as a shell reads it, also of a name with blanks
    assert not Path("model").exists()


@pytest.mark.parametrize("bins", ["years=4", "years=25,45,65"])
def test_ranges_are_those_of_the_public_rows_or_the_edges_and_are_remembered(
    aged: Path, run: Run, bins: str
) -> None:
    said = trained(run, "--bins", bins)
    public, test = (pd.read_csv(f"{name}.csv")["years"] for name in ("public", "test"))
    kept = json.loads(Path("model/training.json").read_text())["grouping"]["edges"]["years"]
    if bins == "years=4":
        assert kept == np.quantile(public, [0.25, 0.5, 0.75], method="inverted_cdf").tolist()
    else:
        assert kept == [25.0, 45.0, 65.0]
    sizes = np.bincount(np.searchsorted(kept, test, side="right"), minlength=4)
    measured = {group["name"]: group["n"] for group in said["measured"]["groups"]}
    names = [f"below {kept[0]:g}", f"{kept[0]:g} to below {kept[1]:g}"]
    assert [measured[name] for name in names] == sizes[:2].tolist()
    assert set(measured) == set(evenhand.load("model").groups_)
    again = json.loads(run("evaluate", "model", "test.csv", "--json").stdout)
    assert again["groups"] == said["measured"]["groups"]
    # The reject option decides by the same groups.
    done = run("predict", "model", "test.csv", "--reject-margin", "0.1", "--out", "said.csv")
    assert done.exit_code == 0
    assert "below" in Path("model/report.html").read_text()


def test_the_private_rows_move_no_range(aged: Path, run: Run) -> None:
    trained(run, "--bins", "years=4")
    first = Path("model/training.json").read_text()
    table = pd.read_csv("private.csv")
    table["years"] = 99
    table.to_csv("private.csv", index=False)
    trained(run, "--bins", "years=4", **{"--out": "other"})
    assert Path("other/training.json").read_text() == first


def test_thresholds_per_group_read_the_same_ranges(aged: Path, run: Run) -> None:
    changes = {"--method": "pate"}
    said = trained(run, "--bins", "years=40", "--group-thresholds", **changes)
    assert said["needs_group_at_prediction"] is True
    assert run("predict", "model", "test.csv", "--out", "said.csv").exit_code == 0


@pytest.mark.filterwarnings("ignore::evenhand.estimators.small_groups.SmallGroupsWarning")
def test_small_groups_are_merged_by_public_counts_and_stay_so(town: Path, run: Run) -> None:
    for name in ("private", "public", "test"):
        table = pd.read_csv(f"{name}.csv")
        table.loc[: 1 + len(table) // 100, "race"] = "rare"
        table.loc[:2, "race"] = "rarer"
        table.to_csv(f"{name}.csv", index=False)
    words = command({"--sensitive": "race", "--merge-small": "20"})
    said = json.loads(run(*words, "--test", "test.csv", "--json").stdout)
    model = evenhand.load("model")
    assert model.groups_ == ("A", "B", "other (merged)")
    rows = {group["name"]: group["n"] for group in said["measured"]["groups"]}
    assert rows["other (merged)"] == pd.read_csv("test.csv")["race"].str.match("rare").sum()
    again = json.loads(run("evaluate", "model", "test.csv", "--json").stdout)
    assert {group["name"]: group["n"] for group in again["groups"]} == rows


REFUSED = {
    "a word without a number": (["--bins", "years"], "--bins must be COLUMN=N"),
    "one range": (["--bins", "years=1"], "--bins must be COLUMN=N"),
    "edges that fall": (["--bins", "years=40,20"], "finite numbers that rise"),
    "a column that is not sensitive": (
        ["--bins", "hours=4"],
        "cuts sensitive columns, and 'hours'",
    ),
    "a negative count": (["--merge-small", "-1"], "--merge-small must be"),
}


@pytest.mark.parametrize(("words", "says"), REFUSED.values(), ids=list(REFUSED))
def test_what_makes_no_groups_is_refused(
    aged: Path, refuse: Run, words: list[str], says: str
) -> None:
    assert says in refuse(*command(AGED), *words)


@pytest.mark.parametrize("words", [("--bins", "years=4"), ("--merge-small", "9")])
def test_nothing_is_counted_on_private_rows(aged: Path, refuse: Run, words: Any) -> None:
    changes = AGED | {"--public": None, "--public-fraction": "0.2"}
    assert "must be public ones" in refuse(*command(changes), *words)

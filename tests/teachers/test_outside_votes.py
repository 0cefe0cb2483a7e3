"""Votes from outside enter only whole, in range, and without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.teachers import OutsideVotes, by_position
from evenhand.teachers.partition import Partition
from evenhand.typing import IntArray
from evenhand.voting import Votes

VOTES = np.array([[0, 1, 2, 1], [0, 0, 2, 1], [1, 1, 2, 0]])
NAMES = ["no", "yes", "maybe"]


def cast(source: Any, n_teachers: int = 3, n_queries: int = 4, **settings: Any) -> IntArray:
    deal: Partition = by_position(30, n_teachers, 0)
    teachers = OutsideVotes(source, **settings)
    rng = np.random.default_rng(0)
    ensemble = teachers.fit(np.zeros((30, 2)), np.zeros(30, dtype=int), deal, 3, rng)
    return ensemble.vote(np.zeros((n_queries, 2)))


def write(path: Path, votes: np.ndarray) -> Path:
    frame = pd.DataFrame(votes, columns=[f"query {i}" for i in range(votes.shape[1])])
    match path.suffix:
        case ".npy":
            np.save(path, votes)
        case ".npz":
            np.savez(path, votes=votes)
        case ".csv":
            frame.to_csv(path, index=False)
        case ".parquet":
            frame.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".parquet"])
def test_codes_and_names_are_read_from_every_format(tmp_path: Path, ending: str) -> None:
    codes = write(tmp_path / f"codes{ending}", VOTES)
    assert np.array_equal(cast(codes), VOTES)
    assert np.array_equal(cast(str(codes)), VOTES)
    names = write(tmp_path / f"names{ending}", np.array(NAMES)[VOTES])
    assert np.array_equal(cast(names, classes=NAMES), VOTES)


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=3, max_size=3))
def test_votes_come_out_as_they_went_in(votes: list[list[int]]) -> None:
    assert cast(votes).tolist() == votes
    assert cast(pd.DataFrame(votes, dtype=float)).tolist() == votes
    assert cast([[NAMES[v] for v in row] for row in votes], classes=NAMES).tolist() == votes


def test_class_names_may_be_numbers() -> None:
    assert np.array_equal(cast(np.array([10, 20, 30])[VOTES], classes=[10, 20, 30]), VOTES)


def test_what_a_caller_does_to_the_votes_does_not_reach_the_ensemble() -> None:
    mine = VOTES.copy()
    rng = np.random.default_rng(0)
    deal = by_position(30, 3, 0)
    ensemble = OutsideVotes(mine).fit(np.zeros((30, 2)), np.zeros(30, dtype=int), deal, 3, rng)
    mine[:] = 2
    ensemble.vote(np.zeros((4, 2)))[:] = 2
    assert np.array_equal(ensemble.vote(np.zeros((4, 2))), VOTES)


def test_pickled_objects_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "votes.npy", VOTES.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match="pickled objects are not read"):
        cast(tmp_path / "votes.npy")
    np.savez(tmp_path / "votes.npz", votes=VOTES.astype(object))
    with pytest.raises(ValueError, match="pickled objects are not read"):
        cast(tmp_path / "votes.npz")


def test_missing_votes_are_refused_and_named() -> None:
    votes = VOTES.astype(float)
    votes[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"of teacher 2 on query 3 .* is missing"):
        cast(votes)
    with pytest.raises(ValueError, match=r"of teacher 1 on query 1 .* is missing"):
        cast([[None, "no"], ["yes", None]], n_teachers=2, n_queries=2, classes=NAMES)


@pytest.mark.usefixtures("values_shown")
@pytest.mark.parametrize("wrong", [-1, 3, 0.5, np.inf])
def test_codes_out_of_range_are_refused_and_named(wrong: float) -> None:
    votes = VOTES.astype(float)
    votes[2, 3] = wrong
    with pytest.raises(ValueError, match=rf"class codes 0 to 2, got {wrong}.* from teacher 3 on q"):
        cast(votes)


@pytest.mark.usefixtures("values_shown")
def test_unknown_names_are_refused_with_the_nearest() -> None:
    votes = np.array(NAMES, dtype=object)[VOTES]
    votes[0, 1] = "Maybee"
    with pytest.raises(
        ValueError, match=r"'Maybee' from teacher 1 on query 2 .*Did you mean 'maybe'"
    ):
        cast(votes, classes=NAMES)


@pytest.mark.usefixtures("values_shown")
def test_names_without_classes_are_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"must hold class codes, got 'no'\. Name the classes"):
        cast(np.array(NAMES)[VOTES])


def test_classes_must_be_as_many_as_the_codes() -> None:
    for classes in (["no", "yes"], ["no", "no", "yes"]):
        with pytest.raises(ValueError, match="classes must name 3 different classes"):
            cast(np.array(NAMES)[VOTES], classes=classes)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"votes of 3 teachers, but n_teachers is 4\. Set n_teach"):
        cast(VOTES, n_teachers=4)
    with pytest.raises(ValueError, match="votes answer 4 queries, but X has 5 rows"):
        cast(VOTES, n_queries=5)
    for wrong in (VOTES[0], VOTES[:, :0], VOTES[None]):
        with pytest.raises(ValueError, match=r"shape \(n_teachers, n_queries\), got shape"):
            cast(wrong)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"one of '\.npy', '\.npz', '\.csv', '\.parquet', got '\.pkl'"
    ):
        cast(tmp_path / "votes.pkl")
    with pytest.raises(FileNotFoundError, match=r"There is no file of votes at .*votes\.npy"):
        cast(tmp_path / "votes.npy")
    np.savez(tmp_path / "two.npz", one=VOTES, two=VOTES)
    with pytest.raises(ValueError, match="must hold one array, got 2: one, two"):
        cast(tmp_path / "two.npz")


def test_ragged_votes_are_refused_in_words(tmp_path: Path) -> None:
    ragged = [[0, 1, 2, 1], [0, 0, 2], [1, 1, 2, 0]]
    with pytest.raises(ValueError, match=r"source must have shape .*rows differ in length"):
        cast(ragged)
    with pytest.raises(ValueError, match=r"votes must have shape .*rows differ in length"):
        Votes.of(ragged, n_classes=3)
    file = tmp_path / "votes.csv"
    file.write_text("a,b\n0,1\n0,1,2\n")
    with pytest.raises(ValueError, match=r"is not a table of votes: .*line 3"):
        cast(file)

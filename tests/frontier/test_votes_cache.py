"""Votes that are kept: private, whole, and only for the rows they were made from."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.frontier.votes_cache import KeptTeachers, VotesCache, VotesOfOtherData
from evenhand.teachers import LogisticTeachers, by_position
from evenhand.teachers.ensemble import Ensemble


class Counted(LogisticTeachers):
    """Real teachers that count how often they were trained."""

    trained = 0

    def fit(self, *args: Any, **kwargs: Any) -> Ensemble:
        type(self).trained += 1
        return super().fit(*args, **kwargs)


@pytest.fixture
def rows() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return {"X": X, "y": (X[:, 0] > 0).astype(np.int64), "partition": by_position(120, 8, rng)}


def votes(cache: VotesCache, rows: dict[str, Any], name: str = "town seed 0") -> np.ndarray:
    kept = KeptTeachers(teachers=Counted(), cache=cache, name=name)
    ensemble = kept.fit(**rows, n_classes=2, rng=np.random.default_rng(1))
    assert ensemble.n_teachers == 8
    return ensemble.vote(np.linspace(-1, 1, 30).reshape(10, 3))


def test_teachers_are_trained_once_and_their_votes_come_back_equal(
    tmp_path: Path, rows: dict[str, Any]
) -> None:
    Counted.trained = 0
    first = votes(VotesCache(folder=tmp_path / "votes"), rows)
    second = votes(VotesCache(folder=tmp_path / "votes"), rows)
    assert Counted.trained == 1
    assert np.array_equal(first, second)
    assert first.dtype == second.dtype == np.int64


def test_another_seed_deal_or_number_of_rows_is_another_entry(
    tmp_path: Path, rows: dict[str, Any]
) -> None:
    Counted.trained = 0
    cache = VotesCache(folder=tmp_path / "votes")
    votes(cache, rows)
    votes(cache, rows, name="town seed 1")
    assert Counted.trained == 2


@pytest.mark.parametrize("what", ["X", "y", "partition"])
def test_votes_of_other_rows_are_refused(tmp_path: Path, rows: dict[str, Any], what: str) -> None:
    cache = VotesCache(folder=tmp_path / "votes")
    votes(cache, rows)
    other = dict(rows)
    if what == "partition":
        other[what] = by_position(120, 8, np.random.default_rng(9))
    else:
        other[what] = rows[what].copy()
        other[what][0] = 1 - other[what][0]
    with pytest.raises(VotesOfOtherData, match="made from other rows than those at hand"):
        votes(cache, other)


def test_a_damaged_file_is_refused(tmp_path: Path, rows: dict[str, Any]) -> None:
    cache = VotesCache(folder=tmp_path / "votes")
    votes(cache, rows)
    (file,) = (tmp_path / "votes").glob("*.votes")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"are damaged. Remove the file"):
        votes(cache, rows)


def test_nobody_else_may_read_the_folder_or_its_files(tmp_path: Path, rows: dict[str, Any]) -> None:
    votes(VotesCache(folder=tmp_path / "votes"), rows)
    assert (tmp_path / "votes").stat().st_mode & 0o777 == 0o700
    assert {f.stat().st_mode & 0o777 for f in (tmp_path / "votes").iterdir()} == {0o600}


def test_a_folder_that_others_may_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    os.chmod(folder, 0o755)
    with pytest.raises(PermissionError, match=r"may be read by others \(mode 755\)"):
        VotesCache(folder=folder)


def test_the_hash_of_private_rows_is_keyed_by_the_folder(tmp_path: Path) -> None:
    array = np.arange(5)
    first, second = (VotesCache(folder=tmp_path / name) for name in ("a", "b"))
    assert first.keyed(array) == first.keyed(array)
    assert first.keyed(array) != second.keyed(array)
    assert first.keyed(array) != first.keyed(array.reshape(5, 1))
    assert len((tmp_path / "a" / "key").read_bytes()) == 32

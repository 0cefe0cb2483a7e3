"""What a sweep leaves behind when it is killed: nothing that can be read."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from evenhand.frontier.scratch import PREFIX, remove_stale, scratch_votes
from evenhand.frontier.votes_cache import NOTE, VotesCache

WAIT_S = 120


@pytest.fixture
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files: empty, and nobody else's."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def readable(folder: Path) -> list[str]:
    """Name the files that hold more than random bytes: those are as long as what they say.

    Votes for two classes shrink to less than a sixth (one bit a byte), and so does text; of random
    bytes zlib makes more bytes, for any that are written with this generator's strength.
    """
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != NOTE]
    return [
        file.name
        for file in files
        if file.name == "key" or len(zlib.compress(file.read_bytes(), 9)) < file.stat().st_size
    ]


def test_kept_votes_are_readable_and_those_of_one_run_are_not(tmp: Path) -> None:
    votes = np.random.default_rng(0).integers(0, 2, (40, 100))
    for secret in (None, os.urandom(32)):
        cache = VotesCache(folder=tmp / f"votes-{secret is None}", secret=secret)
        cache.write("name", cache.keyed(votes), votes)
        assert np.array_equal(cache.read("name", cache.keyed(votes)), votes)
        # The first half shows that the tests below would see votes that can be read.
        assert bool(readable(cache.folder)) == (secret is None)
        assert ("never publish" in (cache.folder / NOTE).read_text()) == (secret is None)
        assert {f.stat().st_mode & 0o777 for f in cache.folder.iterdir()} == {0o600}
    with pytest.raises(ValueError, match="are damaged"):
        VotesCache(folder=cache.folder, secret=os.urandom(32)).read("name", "")


def test_a_run_of_its_own_leaves_no_folder_also_when_it_fails(tmp: Path) -> None:
    with contextlib.suppress(KeyError), scratch_votes() as cache:
        assert cache.folder.stat().st_mode & 0o777 == 0o700
        raise KeyError
    assert not list(tmp.iterdir())


def test_folders_of_the_dead_are_removed_and_those_of_the_living_stay(tmp: Path) -> None:
    (tmp / f"{PREFIX}of-the-dead").mkdir(mode=0o700)
    (tmp / "somebody-elses").mkdir()
    with scratch_votes() as ours:
        assert remove_stale() == 0  # the start had removed it
        assert {file.name for file in tmp.iterdir()} == {ours.folder.name, "somebody-elses"}
    (tmp / f"{PREFIX}link").symlink_to(tmp / "somebody-elses")
    assert remove_stale() == 0
    assert (tmp / "somebody-elses").is_dir()


@pytest.mark.slow  # 2 minutes
def test_a_sweep_killed_at_any_instant_leaves_nothing_that_can_be_read(
    town: Path, tmp: Path, tmp_path: Path
) -> None:
    instants = random.Random(30)
    left = 0
    for n in range(30):
        before = set(tmp.iterdir())
        words = ["frontier", town, "--out", tmp_path / f"out-{n}", "--jobs", str(1 + n % 2)]
        process = subprocess.Popen(
            [sys.executable, "-m", "evenhand", *map(str, words)],
            cwd=town.parent,
            env={**os.environ, "TMPDIR": str(tmp), "JOBLIB_TEMP_FOLDER": str(tmp)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # Every other one is killed when its first votes are there, the rest at any instant.
        awaited = "*.votes" if n % 2 else "*"
        until = time.monotonic() + WAIT_S
        while not any(folder not in before for folder in folders(tmp, awaited)):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.005)
        time.sleep(0 if n % 2 else instants.uniform(0, 2))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(WAIT_S)
        assert len(folders(tmp, "")) <= 1  # this start has removed the folder of the last
        left += len(folders(tmp, "*.votes"))
        assert readable(tmp) == []
    assert left  # votes were there to be read
    remove_stale()
    assert not folders(tmp, "")


def folders(tmp: Path, holding: str) -> list[Path]:
    """Return the folders of sweeps that hold such a file."""

    def holds(folder: Path) -> bool:
        try:
            return any(folder.glob(holding))
        except FileNotFoundError:  # the sweep has just removed it, as it does with the last one's
            return False

    return [f for f in tmp.glob(f"{PREFIX}*") if not holding or holds(f)]

"""A store keeps each run once, whoever writes, dies or takes the database away."""

from __future__ import annotations

import math
import os
import pickle
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from children import in_child

from evenhand import _database
from evenhand.frontier import Run, RunStore
from evenhand.frontier import store as store_module
from evenhand.frontier.run import OBJECTIVES
from evenhand.frontier.store import StoreGone, StoreOfAnotherVersion
from evenhand.testing.stores import RunStoreContract

Make = Callable[..., Run]


def as_dicts(runs: list[Run]) -> list[dict[str, Any]]:
    return [run.to_dict() for run in runs]


def many(run_of: Make, n: int, *, first: int = 0) -> list[Run]:
    return [run_of(seed=seed, error=0.1 + seed % 1000 / 1e4) for seed in range(first, first + n)]


# ---------------------------------------------------------------- the contract, and more


class TestRunStore(RunStoreContract):
    @pytest.fixture
    def store(self, where: str) -> RunStore:
        return RunStore(where)


class TheLastWins(RunStore):
    """A later run of a setting takes the place of the first."""

    def add_all(self, runs: Iterable[Run]) -> int:
        new = list(runs)
        with self._transaction("written", write=True) as db:
            db.execute(
                store_module._runs.delete().where(
                    store_module._runs.c.key.in_([run.key for run in new])
                )
            )
        return super().add_all(new)


def test_a_broken_store_fails_the_contract(tmp_path: Path) -> None:
    store = TheLastWins(tmp_path / "runs.db")
    with pytest.raises(AssertionError):
        RunStoreContract().test_of_two_runs_of_one_setting_the_first_stays(store)


def test_runs_come_back_as_they_were(where: str, run_of: Make) -> None:
    runs = [
        run_of(),
        run_of(seed=2**40, arguments={"margin": 0.1, "name": 'é"\n', "rule": None, "n": True}),
        run_of(method="non-private", epsilon=math.inf),
        run_of(seed=1, gap=math.nan, gap_interval=(math.nan, math.nan), seconds=math.nan),
    ]
    with RunStore(where) as store:
        assert store.add_all(runs) == 4
        assert len(store) == 4
        assert store.keys() == {run.key for run in runs}
        assert as_dicts(store.runs()) == as_dicts(sorted(runs, key=lambda run: run.key))
    with RunStore(where) as again:
        assert again.runs()[0].to_dict() == min(runs, key=lambda run: run.key).to_dict()


def test_of_two_runs_of_one_setting_the_first_stays(where: str, run_of: Make) -> None:
    store = RunStore(where)
    assert store.add(run_of(error=0.1)) is True
    assert store.add(run_of(error=0.2)) is False
    assert store.add_all([run_of(error=0.3), run_of(seed=1), run_of(seed=1), run_of(seed=2)]) == 2
    assert [run.error for run in store.get([run_of().key])] == [0.1]
    assert len(store) == 3


def test_runs_are_chosen_by_data_and_method(where: str, run_of: Make) -> None:
    store = RunStore(where)
    store.add_all(
        run_of(data=data, method=method)
        for data in ("adult", "credit")
        for method in ("pate", "fairpate", "dpsgd")
    )
    chosen = store.runs(data="credit", methods=["pate", "dpsgd"])
    assert sorted((run.setting.data, run.setting.method) for run in chosen) == [
        ("credit", "dpsgd"),
        ("credit", "pate"),
    ]
    assert len(store.runs(methods=["pate"])) == 2
    assert store.points(data="adult").keys == tuple(r.key for r in store.runs(data="adult"))
    with pytest.raises(ValueError, match=r"whose data is 'adlut', only 'adult', 'credit'.*'adult'"):
        store.runs(data="adlut")
    with pytest.raises(ValueError, match=r"whose method is 'fair-pate'.*Did you mean 'fairpate'"):
        store.points(methods=["pate", "fair-pate"])
    with pytest.raises(KeyError, match="has no run 'x', nor 1 others"):
        store.get([chosen[0].key, "x", "y"])


def test_points_are_the_objectives_of_the_same_runs(where: str, run_of: Make) -> None:
    store = RunStore(where)
    assert store.points().values.shape == (0, 4)
    store.add_all(
        run_of(seed=i, epsilon=e, gap=g, error=i / 10, coverage=1 - i / 10)
        for i, (e, g) in enumerate([(1.5, 0.0), (math.inf, 0.1), (2.0, math.nan)])
    )
    points = store.points()
    runs = store.runs()
    assert points.keys == tuple(run.key for run in runs)
    expected = np.array([[getattr(run, name) for name in OBJECTIVES] for run in runs])
    np.testing.assert_array_equal(points.values, expected)


def test_a_batch_is_written_whole_or_not_at_all(where: str, run_of: Make) -> None:
    store = RunStore(where)

    def interrupted() -> Any:
        yield from many(run_of, store_module.BATCH + 7)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add_all(interrupted())
    assert len(store) == store_module.BATCH


# ---------------------------------------------------------------- several writers


def test_several_writers_at_once_keep_every_run_once(where: str, run_of: Make) -> None:
    # Each writes three quarters of all runs, in an order of its own, so that most collide.
    runs = many(run_of, 400)
    RunStore(where).close()

    def write(mine: int) -> None:
        rng = np.random.default_rng(mine)
        own = [run for i, run in enumerate(runs) if i % 4 != mine]
        store = RunStore(where)
        for part in np.array_split(rng.permutation(len(own)), 12):
            store.add_all(own[i] for i in part)
            store.add(own[int(part[0])])

    children = [in_child(lambda mine=mine: write(mine)) for mine in range(4)]  # type: ignore[misc]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    with RunStore(where) as store:
        assert as_dicts(store.runs()) == as_dicts(sorted(runs, key=lambda run: run.key))


def test_writers_of_the_same_runs_never_wait_for_each_other_in_a_circle(
    postgres: str, run_of: Make
) -> None:
    # Another writer holds the first key; ours, given the runs backwards, must not take the second
    # before it waits, or the other's next step would close the circle.
    store = RunStore(postgres)
    low, high = sorted((run_of(seed=0), run_of(seed=1)), key=lambda run: run.key)
    with ThreadPoolExecutor(1) as pool:
        with store._transaction("written", write=True) as db:
            store._insert(db, [low])
            ours = pool.submit(store.add_all, [high, low])
            waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not db.scalar(waiting):
                assert not ours.done()
                time.sleep(0.01)
            assert store._insert(db, [high]) == 1
        assert ours.result() == 0
    assert len(store) == 2


def test_new_runs_are_counted_once_between_writers(
    where: str, run_of: Make, tmp_path: Path
) -> None:
    runs = many(run_of, 120)

    def write(mine: int) -> None:
        store = RunStore(where)  # also the first to make the tables, perhaps
        new = sum(store.add_all(runs[i : i + 10]) for i in range(0, 120, 10))
        (tmp_path / f"new-{mine}").write_text(str(new))

    children = [in_child(lambda mine=mine: write(mine)) for mine in range(3)]  # type: ignore[misc]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    assert sum(int(file.read_text()) for file in tmp_path.glob("new-*")) == 120


def test_a_writer_killed_half_way_leaves_whole_runs_and_no_lock(where: str, run_of: Make) -> None:
    store = RunStore(where)
    written = 0
    for turn in range(5):

        def write(turn: int = turn) -> None:
            mine = RunStore(where)
            for i in range(10_000):
                mine.add_all(many(run_of, 20, first=turn * 1_000_000 + 20 * i))

        child = in_child(write)
        while len(store) == written:  # however slow the machine: kill it while it works
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(0.01 * turn)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        # PostgreSQL notices a dead client when it next speaks to it: its commit may still come.
        time.sleep(0.1)
        written = len(store)
        assert written % 20 == 0  # whole batches
        assert all(run.error >= 0.1 for run in store.runs())  # each can be read
    assert store.add(run_of(method="pate"))  # nobody holds a lock


# ---------------------------------------------------------------- when the database fails


def test_a_store_that_goes_away_says_how_to_go_on(tmp_path: Path, run_of: Make) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    store = RunStore(folder / "runs.db")
    store.add(run_of())
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreGone, match=r"could not be written: unable to open") as gone:
        store.add(run_of(seed=1))
    assert "Runs that were added before are kept" in str(gone.value)
    assert "give the same command again" in str(gone.value)
    (tmp_path / "elsewhere").rename(folder)
    assert store.add(run_of(seed=1))
    assert len(store) == 2


@pytest.mark.slow
def test_a_server_that_stops_mid_run_keeps_what_was_finished(
    postgres: str, postgres_server: Any, run_of: Make
) -> None:
    store = RunStore(postgres)
    batches = iter(range(100))

    def endless() -> Any:
        for i in batches:
            if i == 3:
                postgres_server.stop()
            yield from many(run_of, store_module.BATCH, first=i * store_module.BATCH)

    try:
        with pytest.raises(StoreGone, match=r"could not be written: .*the same command again"):
            store.add_all(endless())
        with pytest.raises(StoreGone, match="could not be read"):
            store.keys()
    finally:
        postgres_server.start()
    assert len(store) == 3 * store_module.BATCH
    # Going on: what is there is skipped, the rest is added.
    done = store.keys()
    missing = [run for run in many(run_of, 4 * store_module.BATCH) if run.key not in done]
    assert store.add_all(missing) == store_module.BATCH


def test_a_store_of_another_version_is_refused_and_left_alone(where: str, run_of: Make) -> None:
    store = RunStore(where)
    store.add(run_of())
    for change, said in (
        ("schema_version = 99", r"is a store of version 99\.3, and .* 1\.3"),
        ("run_version = 2", "What was called notion is now called fairness"),
    ):
        with store._transaction("changed", write=True) as db:
            db.execute(sa.text(f"UPDATE evenhand_frontier SET {change}"))
        with pytest.raises(StoreOfAnotherVersion, match=said):
            RunStore(where)
    assert len(store) == 1


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("not a database, and long enough to be read as one" * 10)
    with pytest.raises(StoreGone, match="could not be opened: file is not a database"):
        RunStore(tmp_path / "runs.db")


def test_a_folder_without_a_frontier_is_not_given_an_empty_one(
    tmp_path: Path, run_of: Make
) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no runs\.db\. Make one with: evenhand"):
        RunStore.in_folder(tmp_path)
    assert not list(tmp_path.iterdir())
    with RunStore(tmp_path / "runs.db") as store:
        store.add(run_of())
    assert len(RunStore.in_folder(tmp_path)) == 1


def test_other_databases_and_none_at_all_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="store of runs must be SQLite or PostgreSQL, got 'mysql'"):
        RunStore("mysql://u:p@host/db")
    with pytest.raises(ValueError, match=r"would forget everything at once\. Name a file"):
        RunStore(":memory:")

    def no_driver(*_: object, **__: object) -> None:
        raise ModuleNotFoundError(name="psycopg")

    monkeypatch.setattr(_database.sa, "create_engine", no_driver)
    with pytest.raises(ImportError, match=r'driver psycopg. .*pip install "evenhand\[postgres\]"'):
        RunStore("postgresql://host/db")


def test_a_store_travels_to_other_processes_and_folders(
    where: str, run_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(where)
    twin = pickle.loads(pickle.dumps(store))
    monkeypatch.chdir("/")
    assert twin.add(run_of())
    assert len(store) == 1
    assert repr(twin) == repr(store)


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    with pytest.raises(StoreGone) as gone:
        RunStore(f"postgresql://somebody:secret@/x?host={tmp_path}")
    assert "secret" not in str(gone.value)
    assert "***" in str(gone.value)


def test_a_copy_of_the_file_is_whole(tmp_path: Path, run_of: Make) -> None:
    # No write-ahead log stands beside it: whoever copies the file copies every run.
    store = RunStore(tmp_path / "runs.db")
    store.add_all(many(run_of, 50))
    assert [file.name for file in tmp_path.iterdir()] == ["runs.db"]
    (tmp_path / "copy.db").write_bytes((tmp_path / "runs.db").read_bytes())
    with sqlite3.connect(tmp_path / "copy.db") as db:
        assert db.execute("SELECT count(*) FROM evenhand_runs").fetchone() == (50,)
    db.close()

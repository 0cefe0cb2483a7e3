"""Sweeps: every setting once, however they are stopped, and measured as anybody would."""

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand._lock import lock
from evenhand.fairness import fairness_report
from evenhand.frontier import Grid, Run, RunStore, sweep
from evenhand.frontier import sweep as sweep_function
from evenhand.frontier import train as training
from evenhand.frontier.sweep import WorkersLost
from evenhand.frontier.train import Task, Trained, train, train_one
from evenhand.frontier.votes_cache import VotesOfOtherData

N_SETTINGS = 26  # of the grid in conftest.py: 16 of fairpate, 8 of pate, 2 without privacy


@pytest.fixture(scope="module")
def swept(town: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    said: list[tuple[str, int, int]] = []
    with RunStore(tmp_path_factory.mktemp("runs") / "runs.db") as store:
        summary = sweep(Grid.from_toml(town), store, progress=lambda *at: said.append(at))
        done = [n for stage, n, _ in said if stage == "settings"]
        assert done == sorted(done)  # progress counts up to all settings
        assert done[-1] == N_SETTINGS
        assert {total for stage, _, total in said if stage == "settings"} == {N_SETTINGS}
        assert (summary.n_new, summary.n_before, summary.skipped) == (N_SETTINGS, 0, ())
        assert str(summary).startswith(f"{N_SETTINGS} of {N_SETTINGS} settings trained in ")
        return store.runs()


def test_every_setting_of_the_grid_has_its_run(town: Path, swept: list[Run]) -> None:
    assert {run.key for run in swept} == {s.key for s in Grid.from_toml(town).settings()}


def test_a_run_says_what_it_costs_and_on_what_it_was_measured(swept: list[Run]) -> None:
    for run in swept:
        private = run.setting.method in ("fairpate", "pate")
        assert np.isfinite(run.epsilon) == private
        assert (run.mu_squared is not None) == private
        assert run.measured_on == "private holdout, not covered"
        assert run.command.endswith(f"--train {run.key} --out model")
        assert run.coverage == 1.0
        assert run.error_interval[0] <= run.error <= run.error_interval[1]
        assert run.gap_interval[0] <= run.gap <= run.gap_interval[1]
        assert sum(group["rows"] for group in run.groups) == 200  # type: ignore[misc]
        if private:
            assert run.epsilon == run.setting.arguments["epsilon"] == run.guarantee["epsilon"]


def test_measurements_are_those_of_a_fairness_report(town: Path) -> None:
    grid = Grid.from_toml(town)
    rows = grid.data.load(0)
    setting = next(s for s in grid.settings() if s.method == "non-private")  # draws no noise
    trained = train(Task(source=grid.data, settings=(setting,), cache=None, spec="grid.toml"))
    model = train_one(grid.data, setting)
    names = list(model.classes_)
    report = fairness_report(
        np.searchsorted(names, rows.y_test),
        np.searchsorted(names, model.predict(rows.X_test)),
        rows.groups_test,
        classes=names,
        positive=names.index("granted"),
    )
    (run,) = trained.runs
    assert run.error == report["error_rate"].value
    assert run.gap == report["demographic_parity_rest"].value
    assert run.gap_interval[1] == report["demographic_parity_rest"].high
    assert [g["selection_rate"] for g in run.groups] == [e.value for e in report.selection]
    assert [g["error"] for g in run.groups] == [e.value for e in report.errors]


def test_a_reject_margin_costs_coverage_and_bounds_the_gap_of_what_is_given(town: Path) -> None:
    grid = Grid.from_toml(town)
    runs = ({"method": ["non-private"], "reject_margin": [0.04]},)
    (setting,) = Grid(data=grid.data, runs=runs).settings()
    (run,) = train(Task(source=grid.data, settings=(setting,), cache=None, spec="")).runs
    assert run.coverage < 1
    assert run.gap <= 0.04 + 1e-12


@pytest.mark.filterwarnings("ignore::evenhand.estimators.calibration.LimitsTooWide")
def test_a_reject_margin_keeps_any_notion_and_needs_labelled_rows_for_true_classes(
    town: Path,
) -> None:
    grid = Grid.from_toml(town)
    asked = {"method": ["non-private"], "reject_margin": [0.04]}
    runs = ({**asked, "reference": ["pairwise"], "fairness": ["demographic-parity"]},)
    (setting,) = Grid(data=grid.data, runs=runs).settings()
    (run,) = train(Task(source=grid.data, settings=(setting,), cache=None, spec="")).runs
    assert run.gap_name.endswith("pairwise")
    assert run.gap <= 0.04 + 1e-12
    odds = ({**asked, "reject_margin": [0.3], "fairness": ["error-parity"]},)
    with pytest.raises(ValueError, match=r"refuses by true classes.*calibration = a file"):
        Grid(data=grid.data, runs=odds)
    rows = pd.read_csv(grid.data.private)
    rows.to_csv(town.parent / "labelled.csv", index=False)
    data = replace(grid.data, calibration=str(town.parent / "labelled.csv"))
    runs = ({**asked, "reject_margin": [0.02, 1.0], "fairness": ["error-parity"]},)
    settings = Grid(data=data, runs=runs).settings()
    narrow, wide = train(Task(source=data, settings=settings, cache=None, spec="")).runs
    assert narrow.gap_name.startswith("error_parity")
    # 600 rows cannot show a gap of .02, so that the late group waits for good; at 1 all is given.
    assert narrow.coverage < wide.coverage == 1
    scores = ({**asked, "fairness": ["generalized-demographic-parity"]},)
    with pytest.raises(ValueError, match=r"distributions of"):
        Grid(data=grid.data, runs=scores)


def test_a_blind_margin_puts_a_rule_around_any_model(town: Path) -> None:
    grid = Grid.from_toml(town)
    asked = {"method": ["pate", "non-private"], "epsilon": [9], "n_teachers": [30]}
    runs = ({**asked, "blind_margin": [0.02, 0.5], "confidence": [0.9]},)
    settings = Grid(data=grid.data, runs=runs).settings()
    assert len(settings) == 4
    for setting in settings:
        (run,) = train(Task(source=grid.data, settings=(setting,), cache=None, spec="")).runs
        assert run.fairness_kind == "in a rule on inferred groups, no group needed"
    model = train_one(grid.data, settings[-1])
    margin = settings[-1].arguments["blind_margin"]
    assert (model.student_margin_.notion.margin, model.student_margin_.notion.confidence) == (
        margin,
        0.9,
    )
    unread = ({"method": ["pate"], "epsilon": [9], "confidence": [0.9]},)
    with pytest.raises(ValueError, match=r"confidence = 0\.9 is not read"):
        Grid(data=grid.data, runs=unread).settings()


@pytest.mark.parametrize("at", ["aggregator", "S_post", "T_pre"])
def test_points_of_intervention_are_swept_too(town: Path, tmp_path: Path, at: str) -> None:
    grid = Grid.from_toml(town)
    run = {"method": ["intervention"], "at": [at], "epsilon": [9], "margin": [0.1]}
    with RunStore(tmp_path / "runs.db") as store:
        summary = sweep(Grid(data=grid.data, runs=({**run, "n_teachers": [30]},)), store)
        assert summary.n_new == 1, summary.skipped


def test_a_stand_in_makes_no_release(town: Path) -> None:
    path = town.with_name("stand_in.toml")
    path.write_text(town.read_text().replace('name = "town"', 'kind = "synthetic stand-in"'))
    grid = Grid.from_toml(path)
    setting = next(s for s in grid.settings() if s.method == "non-private")
    (run,) = train(Task(source=grid.data, settings=(setting,), cache=None, spec="")).runs
    assert (run.data_kind, run.measured_on) == ("synthetic stand-in", "public rows")


def test_a_second_sweep_trains_nothing(town: Path, tmp_path: Path, swept: list[Run]) -> None:
    with RunStore(tmp_path / "runs.db") as store:
        store.add_all(swept)
        summary = sweep(Grid.from_toml(town), store)
        assert (summary.n_before, summary.n_new) == (N_SETTINGS, 0)
        assert "26 were there already" in str(summary)


def test_a_setting_that_cannot_be_trained_is_told_and_the_others_are_trained(
    town: Path, tmp_path: Path
) -> None:
    source = Grid.from_toml(town).data
    run = {"method": ["pate"], "epsilon": [0.01, 5], "sigma": [3], "n_teachers": [30]}
    with RunStore(tmp_path / "runs.db") as store:
        summary = sweep(Grid(data=source, runs=(run,)), store)
        ((setting, why),) = summary.skipped
        assert setting.arguments["epsilon"] == 0.01
        assert "costs more for one answer than the budget has left" in why
        assert summary.n_new == len(store) == 1


def test_votes_that_were_kept_for_other_rows_stop_the_sweep(town: Path, tmp_path: Path) -> None:
    for file in town.parent.glob("*.csv"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "grid.toml").write_text(town.read_text())
    run = {"method": ["pate"], "epsilon": [9], "n_teachers": [30]}
    grid = Grid(data=Grid.from_toml(tmp_path / "grid.toml").data, runs=(run,))
    with RunStore(tmp_path / "runs.db") as store:
        sweep(grid, store, cache=tmp_path / "votes")
    frame = pd.read_csv(tmp_path / "private.csv")
    frame.loc[0, "age"] += 1
    frame.to_csv(tmp_path / "private.csv", index=False)
    with (
        RunStore(tmp_path / "more.db") as store,
        pytest.raises(VotesOfOtherData, match="a file of the data changed under the same name"),
    ):
        sweep(grid, store, cache=tmp_path / "votes")


def test_a_second_sweep_of_a_store_trains_nothing_while_the_first_is_at_work(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_training(*_: object) -> None:
        raise AssertionError("it trained")

    monkeypatch.setattr(sys.modules[sweep_function.__module__], "_trained", no_training)
    with RunStore(tmp_path / "runs.db") as first, RunStore(tmp_path / "runs.db") as second:
        with first.alone(), pytest.raises(BlockingIOError, match="give the same command again"):
            sweep(Grid.from_toml(town), second)
        with pytest.raises(AssertionError, match="it trained"):
            sweep(Grid.from_toml(town), second)
        with first.alone():  # whatever ended the other
            pass
    assert not (tmp_path / "runs.db.lock").exists()


def test_a_lock_file_that_its_holder_takes_away_as_we_open_it_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that was left by a killed process, nor one that is gone when it is ours."""
    place = tmp_path / "runs.db.lock"
    place.touch()
    taken: list[int] = []

    def lock_late(handle: int, *, wait: bool) -> bool:
        if not taken:
            place.unlink()
        taken.append(handle)
        return lock(handle, wait=wait)

    with RunStore(tmp_path / "runs.db") as first, RunStore(tmp_path / "runs.db") as second:
        monkeypatch.setattr("evenhand._database.lock", lock_late)
        with first.alone():
            assert len(taken) == 2
            with pytest.raises(BlockingIOError), second.alone():
                pass


STOPPED = """
import sys
from evenhand.frontier import Grid, RunStore, sweep
def tell(*at):
    print(*at, flush=True)
    if at[0] == "settings":
        sys.stdin.readline()  # until the test stops this process, or lets it go on
if __name__ == "__main__":
    for _ in range(2):
        try:
            with RunStore(sys.argv[2]) as store:
                sweep(Grid.from_toml(sys.argv[1]), store, progress=tell, cache=sys.argv[3])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


@pytest.mark.slow
def test_a_sweep_that_is_stopped_goes_on_where_it_was(town: Path, tmp_path: Path) -> None:
    # First by Ctrl-C, and when it goes on by a kill that nothing can catch.
    script = tmp_path / "stopped.py"
    script.write_text(STOPPED)
    runs, votes = tmp_path / "runs.db", tmp_path / "votes"
    words = [sys.executable, str(script), str(town), str(runs), str(votes)]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Where tests run in the background, children are born deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        stops: list[tuple[signal.Signals, dict[str, Run]]] = []
        for line in process.stdout:
            if line.startswith("settings") and not stops:  # a task was done, and others are left
                process.send_signal(signal.SIGINT)
            elif line == "interrupted\n":
                with RunStore(runs) as store:
                    stops.append((signal.SIGINT, {run.key: run for run in store.runs()}))
            elif line.startswith("settings"):
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL
    with RunStore(runs) as store:
        stops.append((signal.SIGKILL, {run.key: run for run in store.runs()}))
        assert [how for how, _ in stops] == [signal.SIGINT, signal.SIGKILL]
        (_, first), (_, second) = stops
        assert 0 < len(first) < len(second) < N_SETTINGS
        summary = sweep(Grid.from_toml(town), store, cache=votes)
        assert summary.n_before == len(second)
        assert summary.n_before + summary.n_new == len(store) == N_SETTINGS
        # What was finished was not trained again: its noise would be another.
        kept = {run.key: run for run in store.runs()}
        assert {key: kept[key] for key in second} == second
        assert {key: kept[key] for key in first} == first


@pytest.mark.slow
def test_two_processes_train_what_one_does_although_one_of_them_is_lost(
    town: Path, tmp_path: Path, swept: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker of one task ends as a machine does that is switched off: once.
    flag = tmp_path / "died"

    def dies_once(task: Task) -> Trained:
        if task.settings[0].method == "fair-only" and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return train(task)

    monkeypatch.setattr(sys.modules[sweep_function.__module__], "train", dies_once)
    with RunStore(tmp_path / "runs.db") as store, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pool says that a worker went away
        summary = sweep(Grid.from_toml(town), store, n_jobs=2)
        assert flag.exists()
        assert summary.n_new == len(store) == N_SETTINGS  # and nothing is counted twice
        found = {run.key: run for run in store.runs()}
    for run in swept:
        other = found[run.key]
        assert (other.epsilon, other.mu_squared) == (run.epsilon, run.mu_squared)
        if run.setting.method in ("non-private", "fair-only"):  # they draw no noise
            times = {"seconds": 0.0, "command": ""}
            assert replace(other, **times) == replace(run, **times)


@pytest.mark.slow
def test_processes_of_an_earlier_sweep_read_the_files_of_this_one(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "then"):  # joblib keeps its processes, which stand where they were begun
        shutil.copytree(town.parent, tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        grid = Grid.from_toml(town.name)
        grid = replace(grid, runs=grid.runs[1:])  # without privacy
        with RunStore("runs.db") as store:
            assert sweep(grid, store, n_jobs=2).n_new == 2
        shutil.rmtree(tmp_path / name)


def test_workers_that_are_lost_again_and_again_end_the_sweep(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Task] = []

    def dies(task: Task) -> Trained:
        calls.append(task)
        if len(calls) == 1:
            return train(task)
        raise BrokenExecutor("a process in the pool was terminated")

    monkeypatch.setattr(sys.modules[sweep_function.__module__], "train", dies)
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(WorkersLost, match=r"went away 3 times.*give the same command again"):
            sweep(Grid.from_toml(town), store)
        assert len(calls) == 1 + 3
        assert store.keys() == {setting.key for setting in calls[0].settings}


def test_an_error_in_the_work_is_no_lost_worker(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def wrong(task: Task) -> Trained:
        calls.append(task)
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(sys.modules[sweep_function.__module__], "train", wrong)
    with RunStore(tmp_path / "runs.db") as store, pytest.raises(ZeroDivisionError):
        sweep(Grid.from_toml(town), store)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("families", "workers", "largest"),
    [
        ([500, 500], 2, 500),  # what settings share is worked out twice
        ([1000], 2, 500),
        ([333, 333, 333], 2, 250),  # three tasks would leave one of two workers alone
        ([4000], 1, 500),
        ([1] * 7, 2, 1),
        ([3], 8, 1),
    ],
)
def test_tasks_are_as_large_as_keeps_all_workers_busy(
    families: list[int], workers: int, largest: int
) -> None:
    module = sys.modules[sweep_function.__module__]
    assert module._largest_task(families, workers) == largest


def test_tasks_hold_settings_of_one_deal_of_the_records(town: Path) -> None:
    grid = Grid.from_toml(town)
    module = sys.modules[sweep_function.__module__]
    tasks = list(module._tasks(grid, grid.settings(), Path("votes"), "", 3))
    assert sum(len(task.settings) for task in tasks) == N_SETTINGS
    for task in tasks:
        assert len(task.settings) <= 3
        assert len({training.shared_with(setting) for setting in task.settings}) == 1


def test_time_is_divided_over_the_runs_of_a_task(town: Path) -> None:
    grid = Grid.from_toml(town)
    settings = tuple(s for s in grid.settings() if s.method == "non-private")
    started = time.perf_counter()
    trained = train(Task(source=grid.data, settings=settings, cache=None, spec=""))
    assert sum(run.seconds for run in trained.runs) <= time.perf_counter() - started

"""Sweeps on a real Ray cluster of several nodes, of which one is killed, and then all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import pytest

from evenhand.frontier import Grid, Run, RunStore, sweep
from evenhand.frontier.cluster import ClusterGone, RayTasks, on_ray

from .conftest import HARD_LIMIT_S, needs_ray

ON_A_CLUSTER = '''
import contextlib, json, os, sys, threading, time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from evenhand.cli import app
from evenhand.frontier import Grid, RunStore
from evenhand.frontier.cluster import ClusterGone, on_ray
from evenhand.frontier import train as real
import evenhand.frontier.sweep

SPEC, OUT = sys.argv[1], Path(sys.argv[2])
DOOMED, LOG, SMALL = OUT / "doomed", OUT / "log", {"object_store_memory": 80_000_000}
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000,
         "health_check_timeout_ms": 1000, "health_check_failure_threshold": 5}


def train(task):
    """Train; but on the doomed node begin, and never end."""
    node = ray.get_runtime_context().get_node_id()
    keys = [setting.key for setting in task.settings]
    with LOG.open("a") as log:
        log.write(json.dumps([node, keys]) + "\\n")
    if DOOMED.exists() and node == DOOMED.read_text():
        time.sleep(600)
    return real.train(task)


def begun():
    lines = LOG.read_text().splitlines(keepends=True) if LOG.exists() else []
    return [json.loads(line)[0] for line in lines if line.endswith("\\n")]


def kill_amid_work():
    while doomed.node_id not in begun():
        time.sleep(0.05)
    cluster.remove_node(doomed, allow_graceful=False)


if __name__ == "__main__":
    # Words of Ray are for stderr; stdout is what the command prints.
    with contextlib.redirect_stdout(sys.stderr):
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK, **SMALL}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        safe, doomed = (cluster.add_node(wait=False, num_cpus=1, **SMALL) for _ in range(2))
        cluster.wait_for_nodes(timeout=120)
        DOOMED.write_text(doomed.node_id)
    os.environ["RAY_ADDRESS"] = cluster.address
    sys.modules["evenhand.frontier.sweep"].train = train
    killer = threading.Thread(target=kill_amid_work, daemon=True)
    killer.start()
    words = ["frontier", SPEC, "--out", str(OUT / "front"), "--votes", str(OUT / "votes")]
    app([*words, "--backend", "ray", "--json"], standalone_mode=False)
    killer.join(10)
    assert not killer.is_alive()

    with contextlib.redirect_stdout(sys.stderr):
        later = Path(SPEC).with_name("later.toml")
        later.write_text(Path(SPEC).read_text().replace("[data]", "seeds = [0, 1]\\n[data]"))
        cluster.remove_node(safe, allow_graceful=False)
        with RunStore(OUT / "front" / "runs.db") as store, on_ray(patience_s=1.0):
            try:
                evenhand.frontier.sweep(Grid.from_toml(later), store, cache=OUT / "votes")
            except ClusterGone as error:
                (OUT / "gone").write_text(str(error))
        assert not ray.is_initialized()
        cluster.shutdown()
'''


def without_noise(runs: list[Run]) -> dict[str, dict[str, Any]]:
    """What two sweeps must agree on to the last digit: runs that draw no noise, but for time."""
    return {
        run.key: run.to_dict() | {"seconds": None, "command": None}
        for run in runs
        if run.setting.method in ("non-private", "fair-only")
    }


@needs_ray
@pytest.mark.slow
def test_a_cluster_trains_every_setting_once_although_a_node_is_killed_amid_its_work(
    town: Path, short: Path, tmp_path: Path
) -> None:
    """About 40 seconds, of which Ray takes nearly all to start its nodes and to miss one."""
    script = tmp_path / "on_a_cluster.py"
    script.write_text(ON_A_CLUSTER)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(town), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=HARD_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]

    grid = Grid.from_toml(town)
    settings = {setting.key: setting for setting in grid.settings()}
    said = json.loads(done.stdout)  # and nothing of Ray's beside it
    assert (said["n_new"], said["n_before"], said["skipped"]) == (len(settings), 0, {})

    # A node was killed while it worked, and its settings were begun again elsewhere.
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    doomed = (tmp_path / "doomed").read_text()
    cut_off = [keys for node, keys in log if node == doomed]
    assert cut_off
    for keys in cut_off:
        assert any(node != doomed and set(keys) & set(more) for node, more in log)

    with RunStore(tmp_path / "front" / "runs.db") as store:
        found = {run.key: run for run in store.runs()}
        assert len(store) == len(found) == len(settings)
    with RunStore(tmp_path / "alone.db") as store:
        # The votes that the cluster kept are those that this process would have made: it takes
        # them, and a hash that is keyed by the folder would tell it if they were of other rows.
        sweep(grid, store, cache=tmp_path / "votes")
        alone = {run.key: run for run in store.runs()}
    assert {key: run.setting for key, run in found.items()} == settings
    assert without_noise(list(found.values())) == without_noise(list(alone.values()))
    for key, run in found.items():
        assert (run.epsilon, run.delta, run.mu_squared) == (
            alone[key].epsilon,
            alone[key].delta,
            alone[key].mu_squared,
        )

    # With no node left a sweep ends, keeps what it has, and says how to go on.
    assert "give the same command again" in (tmp_path / "gone").read_text()


@needs_ray
def test_a_cluster_that_is_not_there_is_said(short: Path) -> None:
    with (
        pytest.raises(ClusterGone, match=r"no Ray cluster at 'auto'.* ray start --head, or name"),
        on_ray(),
    ):
        raise AssertionError("there is no cluster to work on")


def test_on_a_cluster_the_votes_need_a_folder_of_their_own(town: Path, tmp_path: Path) -> None:
    with (
        RunStore(tmp_path / "runs.db") as store,
        joblib.parallel_config(backend=RayTasks()),
        pytest.raises(ValueError, match=r"needs cache \(--votes\): a private folder that all"),
    ):
        sweep(Grid.from_toml(town), store)


def test_a_backend_that_gives_nothing_before_the_end_is_refused(town: Path, tmp_path: Path) -> None:
    with (
        RunStore(tmp_path / "runs.db") as store,
        joblib.parallel_config(backend="multiprocessing"),
        pytest.raises(ValueError, match="MultiprocessingBackend gives no result before all are"),
    ):
        sweep(Grid.from_toml(town), store)


def test_without_ray_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "evenhand\[ray\]"'), on_ray():
        raise AssertionError("there is no Ray to work with")


def test_patience_is_not_negative() -> None:
    with (
        pytest.raises(ValueError, match="patience_s must be finite and >= 0"),
        on_ray(patience_s=-1),
    ):
        raise AssertionError("nothing to wait for")

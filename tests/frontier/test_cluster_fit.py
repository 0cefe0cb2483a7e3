"""Fits on Parquet over a real Ray cluster of three nodes: one is killed half-way, and then all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand
from evenhand.generators import MarginalSynthesizer, load
from evenhand.privacy import SeededNoise

from .conftest import HARD_LIMIT_S, needs_ray

N, N_PUBLIC = 1500, 60

ON_A_CLUSTER = '''
import sys, threading, time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from evenhand import Budget, PATEClassifier
from evenhand.datasets import read_table
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators import streamed
from evenhand.frontier.cluster import ClusterGone, on_ray
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.tables import records
from evenhand.privacy import Ledger, SeededNoise

ROOT = Path(sys.argv[1])
DOOMED, LOG, SMALL = ROOT / "doomed", ROOT / "log", {"object_store_memory": 80_000_000}
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500,
         "health_check_timeout_ms": 500, "health_check_failure_threshold": 5}


def teach(lesson, j, own, n_files, folder):
    """Teach; but on the doomed node begin, and never end."""
    node = ray.get_runtime_context().get_node_id()
    with LOG.open("a") as log:
        log.write(f"{node} {j}\\n")
    if node == DOOMED.read_text():
        time.sleep(600)
    from evenhand.estimators import streamed

    return streamed._teach(lesson, j, own, n_files, folder)


def count(*of):
    """Count, and say where."""
    with (ROOT / "counted").open("a") as log:
        log.write(f"{ray.get_runtime_context().get_node_id()}\\n")
    from evenhand.generators.tables import records

    return records._total(*of)


def kill_amid_work():
    while not (LOG.exists() and DOOMED.read_text() in LOG.read_text()):
        time.sleep(0.05)
    cluster.remove_node(doomed, allow_graceful=False)


def fit(ledger=None):
    rows = ParquetRows(ROOT / "rows", scratch=ROOT / "scratch", tasks=4)
    noise = {} if ledger else {"noise": SeededNoise(5)}
    model = PATEClassifier(
        Budget(epsilon=9.0, delta=1e-5), n_teachers=16, random_state=0, **noise
    )
    X_public = read_table(ROOT / "public.parquet")
    return model.fit(rows, "y", unit_ids="person", X_public=X_public, ledger=ledger)


if __name__ == "__main__":
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": QUICK, **SMALL}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    safe, doomed = (cluster.add_node(wait=False, num_cpus=1, **SMALL) for _ in range(2))
    cluster.wait_for_nodes(timeout=120)
    DOOMED.write_text(doomed.node_id)
    streamed._teach, records._total = teach, count
    killer = threading.Thread(target=kill_amid_work, daemon=True)
    killer.start()
    with on_ray(cluster.address, patience_s=1.0):
        rows = ParquetRows(ROOT / "rows", tasks=4, drop=["person"])
        learnt = MarginalSynthesizer(noise=SeededNoise(5), random_state=0)
        budget = Budget(epsilon=9.0, delta=1e-5)
        learnt.fit(rows, label="y", sensitive="sex", budget=budget).save(ROOT / "generator")
        fit().save(ROOT / "model")
        killer.join(10)
        assert not killer.is_alive()
        cluster.remove_node(safe, allow_graceful=False)
        account = Ledger(
            Budget(epsilon=9.0, delta=1e-5), unit="person", neighbors="add or remove one"
        )
        try:
            fit(account)
        except ClusterGone as error:
            (ROOT / "gone").write_text(f"{account.spent}: {error}")
    cluster.shutdown()
'''


@needs_ray
@pytest.mark.slow
def test_a_node_that_is_killed_half_way_costs_no_vote_and_a_lost_cluster_costs_nothing(
    short: Path, tmp_path: Path
) -> None:
    """About 45 seconds, nearly all of them Ray's: three nodes begin, and two are lost."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N + N_PUBLIC, 3)), columns=["a", "b", "c"])
    private = frame.head(N).assign(
        person=rng.integers(N // 3, size=N),
        y=frame["a"].head(N) + rng.normal(size=N) > 0,
        sex=np.where(rng.random(N) < 0.5, "F", "M"),
    )
    (tmp_path / "rows").mkdir()
    (tmp_path / "scratch").mkdir()
    for i in range(3):
        part = pa.Table.from_pandas(private[i * 500 : (i + 1) * 500], preserve_index=False)
        pq.write_table(part, tmp_path / "rows" / f"{i}.parquet")
    public = frame.tail(N_PUBLIC).reset_index(drop=True)
    public.to_parquet(tmp_path / "public.parquet")
    script = tmp_path / "on_a_cluster.py"
    script.write_text(ON_A_CLUSTER)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=HARD_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]

    # Teachers that a killed node had begun were trained elsewhere.
    log = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    doomed = (tmp_path / "doomed").read_text()
    cut_off = {part for node, part in log if node == doomed}
    assert cut_off
    assert cut_off <= {part for node, part in log if node != doomed}

    # The votes are those of one machine and of memory, bit for bit, as the noise is the same.
    found = evenhand.load(tmp_path / "model")
    alone = evenhand.PATEClassifier(
        evenhand.Budget(epsilon=9.0, delta=1e-5),
        n_teachers=16,
        random_state=0,
        noise=SeededNoise(5),
    ).fit(private[["a", "b", "c"]], private["y"], unit_ids=private["person"], X_public=public)
    assert (found.answers_.shares == alone.answers_.shares).all()

    # So are the counts of a generator, of which each node counted a part.
    assert len(set((tmp_path / "counted").read_text().split())) == 2
    one, other = (
        load(tmp_path / "generator"),
        MarginalSynthesizer(noise=SeededNoise(5), random_state=0).fit(
            private.drop(columns="person"),
            label="y",
            sensitive="sex",
            budget=evenhand.Budget(epsilon=9.0, delta=1e-5),
        ),
    )
    assert (one.counts_ == other.counts_).all()
    drawn = [made.sample(200, balance=(), random_state=0) for made in (one, other)]
    assert drawn[0].equals(drawn[1])

    # With no node left the fit says how to go on; nothing was spent, and nothing private is left.
    gone = (tmp_path / "gone").read_text()
    assert gone.startswith("0.0: No machine of the Ray cluster is left")
    assert "begins anew" in gone
    assert not list((tmp_path / "scratch").iterdir())

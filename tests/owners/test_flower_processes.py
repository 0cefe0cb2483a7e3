"""Rounds over Flower's own processes and sockets: a SuperLink, SuperNodes, one of them killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand import Budget
from evenhand.owners.digests import PublicRows
from evenhand.owners.noisy_sums import plan_round
from evenhand.owners.sum_files import RoundFile, read_sums
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import DatabaseStore, Ledger

PYTHON = os.environ.get("EVENHAND_FLOWER_PYTHON") or (sys.executable if find_spec("flwr") else None)
N_OWNERS, N_ROWS, DOOMED, PATIENCE_S = 4, 200, 2, 420

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PYTHON is None,
        reason="no Flower: install it, or name a python that has it by EVENHAND_FLOWER_PYTHON",
    ),
]

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "round"
version = "1.0.0"
description = ""
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41"]
[tool.flwr.app]
publisher = "evenhand"
fab-format-version = 1
flwr-version-target = "1.41.0"
[tool.flwr.app.components]
serverapp = "round_app.apps:server"
clientapp = "round_app.apps:client"
[tool.flwr.app.config]
"""

APPS = """
import os, time
from pathlib import Path

from evenhand.owners.flower import client_app, server_app
from evenhand.owners.sum_files import RoundFile, write_sums
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import Budget, DatabaseStore, Ledger
from evenhand.privacy.shared_noise import OneShare

ROOT = Path(os.environ["EVENHAND_ROUND"])
told = RoundFile.read(ROOT / "round.json")
plan = told.plan


def votes(context):
    i = int(context.node_config["partition-id"])
    (ROOT / f"asked-{i}").write_text(str(os.getpid()))
    if i == int((ROOT / "doomed").read_text()):
        time.sleep(600)
    account = Ledger(
        Budget(epsilon=9.0, delta=plan.delta),
        noise=plan.noise(OneShare),
        store=DatabaseStore(str(ROOT / f"own-{i}.db")),
        account="rounds",
        unit=plan.unit,
        neighbors=plan.neighbors,
    )
    return VoteFile.read(ROOT / f"v{i}.json"), account


def done(sums):
    write_sums(sums, told, ROOT / "unfinished")
    os.replace(ROOT / "unfinished", ROOT / f"sums-{(ROOT / 'run').read_text()}.json")


client = client_app(votes)
server = server_app(plan, plan.paid(), done, timeout_s=60)
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def write_round(root: Path) -> RoundFile:
    """Write an app, votes of all owners, and the plan of their round."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, 2)), columns=list("ab"))
    for i in range(N_OWNERS):
        said = rng.integers(2, size=N_ROWS)
        VoteFile.cast(f"owner {i}", said, rows, classes=[0, 1]).write(root / f"v{i}.json")
    plan, _ = plan_round(
        Budget(epsilon=2.0, delta=1e-3),
        n_owners=N_OWNERS,
        public=PublicRows.of(rows),
        classes=["0", "1"],
        n_dropouts=1,
    )
    told = RoundFile(plan=plan)
    told.write(root / "round.json")
    (root / "doomed").write_text("-1")
    (root / "round_app").mkdir()
    (root / "round_app" / "__init__.py").touch()
    (root / "round_app" / "apps.py").write_text(APPS)
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "LICENSE").write_text("Apache-2.0")
    return told


def test_a_round_that_is_run_twice_charges_twice_and_a_killed_process_costs_its_votes_alone(
    tmp_path: Path,
) -> None:
    """One SuperLink, four SuperNodes, two runs; in the second one node is killed.

    It is killed once the masks are agreed upon, before it has voted. About four minutes on a busy
    machine.
    """
    assert PYTHON is not None
    told, programs, port = write_round(tmp_path), Path(PYTHON).parent, free_port()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\n'
        f"insecure = true\n"
    )
    env = os.environ | {
        "FLWR_HOME": str(tmp_path / "home"),
        "EVENHAND_ROUND": str(tmp_path),
        "FLWR_TELEMETRY_ENABLED": "0",
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{program}-{len(started)}.log").open("wb") as log:
            made = subprocess.Popen(
                [str(programs / program), "--insecure", *words],
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        started.append(made)
        return made

    try:
        start("flower-superlink", "--disable-runtime-dependency-installation", "--port", str(port))
        until(lambda: reaches(port))
        link = f"127.0.0.1:{port}"
        nodes = [
            start(
                "flower-supernode",
                *("--superlink", link, "--port", str(free_port())),
                *("--node-config", f"partition-id={i}"),
            )
            for i in range(N_OWNERS)
        ]
        run = [str(programs / "flwr"), "run", str(tmp_path), "here"]
        (tmp_path / "run").write_text("1")
        subprocess.run(run, env=env, check=True, capture_output=True, timeout=PATIENCE_S)
        until((tmp_path / "sums-1.json").exists)
        once = [account(tmp_path, i).spent for i in range(N_OWNERS)]

        (tmp_path / "run").write_text("2")
        (tmp_path / "doomed").write_text(str(DOOMED))
        (tmp_path / f"asked-{DOOMED}").unlink()
        subprocess.run(run, env=env, check=True, capture_output=True, timeout=PATIENCE_S)
        until((tmp_path / f"asked-{DOOMED}").exists)
        os.killpg(nodes[DOOMED].pid, signal.SIGKILL)
        until((tmp_path / "sums-2.json").exists)
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    everybody = list(range(N_OWNERS))
    left = [i for i in everybody if i != DOOMED]
    for number, answered in ((1, everybody), (2, left)):
        sums = read_sums(tmp_path / f"sums-{number}.json", told)
        assert sums.n_answered == len(answered)
        votes = [VoteFile.read(tmp_path / f"v{i}.json").parts.sum(axis=0) for i in answered]
        clean = np.sum(votes, axis=0)[:, 1:]
        # Shares of sigma^2 / 3 each, within 6 standard deviations of their variance.
        spread = (sums.sums - clean).var() / (told.plan.sigma**2 * len(answered) / 3)
        assert abs(spread - 1) < 6 * np.sqrt(2 / N_ROWS)
    # Each run charged whoever answered in it, on an account that outlives the processes.
    price = told.plan.paid().spent
    assert once == pytest.approx([price] * N_OWNERS)
    twice = [account(tmp_path, i).spent / price for i in everybody]
    assert twice == pytest.approx([1 if i == DOOMED else 2 for i in everybody])


def account(root: Path, i: int) -> Ledger:
    """The account that an owner kept on its disk."""
    return Ledger(
        Budget(epsilon=9.0, delta=1e-3),
        store=DatabaseStore(str(root / f"own-{i}.db")),
        account="rounds",
        unit="owner",
    )


def reaches(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


def until(happened) -> None:
    """Wait, but not for ever."""
    end = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.1)

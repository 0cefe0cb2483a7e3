"""Real servers: killed at random instants, two on one store, and a store that goes away."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import crashes
import numpy as np
import pytest

from evenhand.serve.cases import Reader
from evenhand.serve.desk import Desk
from evenhand.serve.store import DecisionStore


@pytest.fixture(scope="session")
def folder(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served") / "model"
    model.save(made)
    return made


@pytest.mark.slow
def test_no_delivered_decision_is_lost_and_the_margin_is_kept_when_the_server_is_killed(
    folder: Path, tmp_path: Path
) -> None:
    """``EVENHAND_KILLS=200`` takes 6 to 15 minutes, most of it the start of servers."""
    n_kills = int(os.environ.get("EVENHAND_KILLS", "6"))
    found = crashes.kill_many(folder, str(tmp_path / "s.db"), n_kills=n_kills, seed=0)
    assert (found["kills"], found["outside_margin"]) == (n_kills, 0)
    assert found["given"] > 0


@pytest.mark.slow
def test_two_servers_on_one_postgresql_keep_one_margin(folder: Path, postgres: str) -> None:
    found = crashes.kill_many(folder, postgres, n_kills=2, seed=2, n_servers=2)
    assert found["outside_margin"] == 0
    assert found["given"] > 0


def test_servers_that_open_one_empty_postgresql_store_at_once_all_begin(
    option: Callable[..., Any], postgres: str
) -> None:
    n, options = 8, [option() for _ in range(8)]
    barrier = threading.Barrier(n)

    def begin(number: int) -> str:
        barrier.wait()
        store = DecisionStore(postgres)
        barrier.wait()  # all find it empty
        desk = Desk(options[number], store, Reader.of(options[number], ("sex",)))
        found = store.counts().reject_option
        desk.close()
        return found

    with ThreadPoolExecutor(n) as threads:
        found = list(threads.map(begin, range(n)))
    assert len(set(found)) == 1


@pytest.fixture
def served(folder: Path, postgres: str) -> Iterator[Callable[..., tuple[int, Any]]]:
    servers = crashes.Servers(folder, postgres)
    pid, port = servers.start()
    yield lambda path, body=None, key=None: crashes.call(port, servers.token, path, body, key)
    os.kill(pid, signal.SIGKILL)
    servers.close()


@pytest.mark.slow
def test_a_store_that_was_away_between_two_requests_is_not_noticed(
    served: Callable[..., tuple[int, Any]], postgres_server: Any
) -> None:
    rows = {"rows": crashes.people(5, np.random.default_rng(0))}
    assert served("/decide", rows)[0] == 200
    postgres_server.stop()  # the connection that the server keeps is gone
    postgres_server.start()
    assert [served("/decide", rows)[0] for _ in range(2)] == [200, 200]
    assert served("/state")[1]["n_decisions"] == 15


@pytest.mark.slow
def test_while_the_store_is_away_nothing_is_answered(
    served: Callable[..., tuple[int, Any]], postgres_server: Any
) -> None:
    rows = {"rows": crashes.people(20, np.random.default_rng(0))}
    assert served("/decide", rows, "first")[0] == 200
    postgres_server.stop()
    try:
        status, said = served("/decide", rows, "second")
        assert (status, said["error"]) == (503, "store_away")
        assert "decisions" not in said
        assert served("/healthz")[0] == 503
    finally:
        postgres_server.start()
    assert served("/healthz")[0] == 200
    status, again = served("/decide", rows, "second")
    assert (status, len(again["decisions"])) == (200, 20)
    assert served("/state")[1]["n_decisions"] == 40

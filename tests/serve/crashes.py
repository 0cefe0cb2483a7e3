"""Servers that are killed at random instants under load, and what must hold afterwards.

``python tests/serve/crashes.py MODEL STORE`` is what is killed: it loads the model once, and for
every line on its standard input it forks a server, whose number and port it prints.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MARGIN = "0.05"
WAIT_S = 60.0


class Servers:
    """Forks servers of one model and one store."""

    def __init__(self, model: Path, store: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(model), store],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.token = json.loads(self._process.stdout.readline())["token"]

    def start(self) -> tuple[int, int]:
        """Start a server; returns its process number and its port."""
        self._process.stdin.write("start\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        return said["pid"], said["port"]

    def close(self) -> None:
        """Let go of the parent; its servers have been stopped."""
        self._process.stdin.close()
        self._process.wait(timeout=WAIT_S)
        self._process.stdout.close()


def call(
    port: int, token: str, path: str, body: object = None, key: str | None = None
) -> tuple[int, Any]:
    """Ask a server; raises OSError or HTTPException when it is gone."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    try:
        sent = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, sent, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@dataclass
class Client:
    """Sends requests without end, each under a key of its own, and keeps every answer."""

    name: int
    seed: int
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sent: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)

    def run(self, port: int, token: str, stop: threading.Event) -> None:
        rng = np.random.default_rng((self.seed, self.name, len(self.sent)))
        while not stop.is_set():
            key = f"{self.name}-{len(self.sent)}"
            n = int(rng.choice([1, 1, 1, 25]))
            self.sent[key] = people(n, rng)
            try:
                status, said = call(port, token, "/decide", {"rows": self.sent[key]}, key)
            except (OSError, http.client.HTTPException, ValueError):
                return  # the server is gone: nobody knows whether it was decided
            if status == 200:
                self.answers[key] = said["decisions"]
            elif status != 503:
                self.strange.append(f"{status} {said}")


def people(n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return rows as a client sends them."""
    groups = rng.choice(["women", "men"], n)
    income = rng.normal(45 + 10 * (groups == "men"), 15, n).round(1)
    frame = pd.DataFrame({"income": income, "job": rng.choice(["clerk", "cook"], n), "sex": groups})
    return frame.to_dict("records")


def kill_many(
    model: Path, store: str, *, n_kills: int, seed: int, n_servers: int = 1, n_clients: int = 4
) -> dict[str, int]:
    """Kill servers at random instants under load; check the store after each, and count."""
    servers, draw = Servers(model, store), random.Random(seed)
    clients = [Client(name, seed) for name in range(n_clients)]
    n_outside = 0
    try:
        for _ in range(n_kills):
            started = [servers.start() for _ in range(n_servers)]
            stop = threading.Event()
            threads = [
                threading.Thread(
                    target=client.run, args=(started[i % n_servers][1], servers.token, stop)
                )
                for i, client in enumerate(clients)
            ]
            for thread in threads:
                thread.start()
            time.sleep(draw.uniform(0.0, 0.5))
            for pid, _ in started:
                os.kill(pid, signal.SIGKILL)
            stop.set()
            for thread in threads:
                thread.join()
            n_outside += check(store, clients)
        (pid, port) = servers.start()
        n_retried = retry(port, servers.token, clients)
        os.kill(pid, signal.SIGKILL)
        check(store, clients)
    finally:
        servers.close()
    assert not [words for client in clients for words in client.strange]
    n_rows = sum(len(rows) for client in clients for rows in client.sent.values())
    kept = decisions(store)
    assert len(kept) == n_rows, "a request was counted twice, or not at all"
    return {
        "kills": n_kills,
        "requests": sum(len(client.sent) for client in clients),
        "retried": n_retried,
        "decisions": len(kept),
        "given": int((kept["given"] >= 0).sum()),
        "outside_margin": n_outside,
    }


def retry(port: int, token: str, clients: Sequence[Client]) -> int:
    """Ask again for whatever has no answer, under its key; returns how many that were."""
    n = 0
    for client in clients:
        for key, rows in client.sent.items():
            status, said = call(port, token, "/decide", {"rows": rows}, key)
            assert status == 200, said
            if key in client.answers:
                assert said["decisions"] == client.answers[key], "another answer to the same key"
            else:
                client.answers[key] = said["decisions"]
                n += 1
    return n


def decisions(store: str) -> pd.DataFrame:
    """Return what the store holds, read by another program than the server's."""
    import sqlalchemy as sa

    url = store if "://" in store else f"sqlite:///{store}"
    engine = sa.create_engine(url)
    with engine.connect() as db:
        found = pd.DataFrame(
            db.execute(sa.text("SELECT id, group_code, said, given FROM evenhand_decisions")),
            columns=["id", "group_code", "said", "given"],
        )
        state = json.loads(db.execute(sa.text("SELECT reject_option FROM evenhand_serve")).scalar())
    engine.dispose()
    found = found.astype(int)  # also where there is none yet
    counts = np.zeros((len(state["groups"]), len(state["classes"])), dtype=int)
    given = found[found["given"] >= 0]
    np.add.at(counts, (given["group_code"].to_numpy(), given["given"].to_numpy()), 1)
    assert counts.tolist() == state["gate"]["counts"], "decisions and counts do not agree"
    return found


def check(store: str, clients: Sequence[Client]) -> bool:
    """Refuse a lost answer; returns whether the given labels are outside the margin."""
    kept = decisions(store).set_index("id")
    names = ["no", "yes"]
    for client in clients:
        for answers in client.answers.values():
            for one in answers:
                if one["label"] is not None:
                    assert kept["given"].get(one["id"]) == names.index(one["label"]), one
    given = kept[kept["given"] >= 0]
    table = [
        [int(((given["group_code"] == z) & (given["given"] == k)).sum()) for k in range(2)]
        for z in range(2)
    ]
    if not all(map(sum, table)):
        return False
    rates = [Fraction(row[1], sum(row)) for row in table]
    outside = abs(rates[0] - rates[1]) > Fraction(MARGIN)
    assert not outside, table
    return outside


def main() -> None:
    """Fork a server for every line on standard input."""
    model, store = Path(sys.argv[1]), sys.argv[2]
    from evenhand.methods import load
    from evenhand.serve.cases import Reader
    from evenhand.serve.desk import Desk
    from evenhand.serve.server import run
    from evenhand.serve.store import DecisionStore
    from evenhand.serve.tokens import Role

    option = load(model).with_reject_option(float(MARGIN), cold_start=10)
    reader = Reader.of(option, ("sex",))
    option.said(reader.cells(people(1, np.random.default_rng(0))))  # whatever is imported late
    kept = DecisionStore(store)
    token = kept.add_token(f"clients {os.getpid()}", Role.DECIDER)
    kept.close()
    print(json.dumps({"token": token}), flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        if os.fork() == 0:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the server lives
            desk = Desk(option, DecisionStore(store), reader)

            def listening(_: str, port: int) -> None:
                print(json.dumps({"pid": os.getpid(), "port": port}), flush=True)

            run(desk, claim="", host="127.0.0.1", port=0, listening=listening)
            os._exit(0)


if __name__ == "__main__":
    main()

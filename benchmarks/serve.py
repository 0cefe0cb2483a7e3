"""Decisions over a real socket, beside the same server with the counters off.

Single requests come at 200 a second, whether the last ones were answered or not, and their time
counts from when they were due; batches of 500 rows come from four clients at once. Each answer is
checked: numbers once each, labels of the model, the counts of the server equal to a recount of the
answers, the gap within the margin.

The store is SQLite, and PostgreSQL as well: a server of its own that is started here and syncs at
every commit, where its programs are installed, or an empty database by its URL. ``load`` is the
load of the machine before a run; ``sync_ms`` how long it takes there to write 4 KiB and sync them
(median and 99 %), which every decision waits for. Processor time hardly hangs on the load.

Run: python benchmarks/serve.py [--save] [--store postgresql://... | sqlite] [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import _harness
import numpy as np
import pandas as pd
import sqlalchemy as sa

sys.path.append(str(Path(__file__).parents[1] / "tests" / "postgres"))
from postgres_server import PostgresServer, postgres_programs

MARGIN = 0.05
RATE = 200
BATCH = 500
CLIENTS = 4
NOTHING = "none: without counts"
MEASURED = (
    *("single_p50_ms", "single_p99_ms", "single_within_10_ms"),
    *("single_processor_ms", "batch_processor_us"),
)
TARGET = "2,000 decisions a second in batches; p99 under 10 ms for single ones at 200 a second"


def people(n: int, n_groups: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw rows of six columns, and groups whose means differ."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    columns = {f"x{i}": rng.normal(0.3 * groups / n_groups, 1, n).round(3) for i in range(4)}
    columns |= {f"c{i}": rng.choice(["a", "b", "c"], n) for i in range(2)}
    return pd.DataFrame(columns), np.array([f"g{z:02}" for z in groups])


def save_model(folder: Path, n_groups: int, n_classes: int) -> None:
    from evenhand import Budget, DemographicParity, FairSharesClassifier

    X, groups = people(4000, n_groups, 0)
    cuts = np.quantile(X["x0"], np.linspace(0, 1, n_classes + 1)[1:-1])
    y = np.searchsorted(cuts, X["x0"])
    FairSharesClassifier(
        budget=Budget(epsilon=50.0, delta=1e-5),
        fairness=DemographicParity(margin=0.9),
        n_teachers=10,
        random_state=0,
    ).fit(X[:3000], y[:3000], X_public=X[3000:], sensitive_features_public=groups[3000:]).save(
        folder
    )


def serve(folder: Path, store: str, *, counts: bool) -> None:
    """Be the server."""
    from evenhand.methods import load
    from evenhand.serve.cases import Reader
    from evenhand.serve.desk import Asked, Desk
    from evenhand.serve.server import run
    from evenhand.serve.store import DecisionStore
    from evenhand.serve.tokens import Role

    class WithoutCounts(Desk):
        """Gives what the model says; keeps nothing."""

        n = 0

        def _keep(self, jobs: Sequence[Any]) -> None:
            for job in jobs:
                assert isinstance(job, Asked)
                answer = self._written(self.n, job.said.tolist(), [0] * len(job.rows))
                self.n += len(job.rows)
                self._answered(job, answer)

    option = load(folder).with_reject_option(MARGIN)
    kept = DecisionStore(store)
    tokens = [kept.add_token(f"{role} {os.getpid()}", role) for role in (Role.DECIDER, Role.READER)]
    desk = (Desk if counts else WithoutCounts)(option, kept, Reader.of(option, ("z",)))

    def listening(_: str, port: int) -> None:
        print(json.dumps({"port": port, "tokens": tokens, "pid": os.getpid()}), flush=True)

    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the server lives
    run(desk, claim="", host="127.0.0.1", port=0, listening=listening)


async def ask(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], token: str, body: bytes
) -> list[dict[str, Any]]:
    """Send one request on an open connection, and read its answer."""
    reader, writer = streams
    head = (
        f"POST /decide HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200"), answer
    size = next(x for x in answer.lower().split(b"\r\n") if x.startswith(b"content-length:"))
    found: list[dict[str, Any]] = json.loads(await reader.readexactly(int(size.split(b":")[1])))[
        "decisions"
    ]
    return found


async def single(
    port: int, token: str, bodies: Sequence[bytes]
) -> tuple[list[float], list[list[dict[str, Any]]]]:
    """Send a request every ``1 / RATE`` seconds; times from when each was due, in ms."""
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(32):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    times, answers = [0.0] * len(bodies), [[]] * len(bodies)
    start = time.perf_counter() + 0.1

    async def one(i: int) -> None:
        streams = await free.get()
        answers[i] = await ask(streams, token, bodies[i])
        times[i] = 1000 * (time.perf_counter() - start - i / RATE)
        free.put_nowait(streams)

    tasks = []
    for i in range(len(bodies)):
        await asyncio.sleep(max(0.0, start + i / RATE - time.perf_counter()))
        tasks.append(asyncio.create_task(one(i)))
    await asyncio.gather(*tasks)
    return times, answers


async def batches(
    port: int, token: str, bodies: Sequence[bytes]
) -> tuple[float, list[list[dict[str, Any]]]]:
    """Send batches from four clients at once; seconds until all are answered."""
    answers: list[list[dict[str, Any]]] = [[]] * len(bodies)

    async def client(own: range) -> None:
        streams = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        for i in own:
            answers[i] = await ask(streams, token, bodies[i])

    start = time.perf_counter()
    await asyncio.gather(*(client(range(c, len(bodies), CLIENTS)) for c in range(CLIENTS)))
    return time.perf_counter() - start, answers


def processor_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(folder: Path, store: str, n_groups: int, *, counts: bool, n_s: int) -> dict[str, Any]:
    """Start a server, ask it, check its answers, and stop it."""
    command = [sys.executable, __file__, "--be-server", str(folder), store]
    server = subprocess.Popen(
        command + ([] if counts else ["--without-counts"]), stdout=subprocess.PIPE, text=True
    )
    try:
        said = json.loads(server.stdout.readline())
        port, (token, reader) = said["port"], said["tokens"]
        X, groups = people(RATE * n_s + BATCH * 40, n_groups, 1)
        rows = X.assign(z=groups).to_dict("records")
        alone = [json.dumps({"rows": [row]}).encode() for row in rows[: RATE * n_s]]
        many = [
            json.dumps({"rows": rows[i : i + BATCH]}).encode()
            for i in range(RATE * n_s, len(rows), BATCH)
        ]
        asyncio.run(single(port, token, alone[:RATE]))  # the first second warms up
        before = processor_s(said["pid"])
        times, first = asyncio.run(single(port, token, alone))
        between = processor_s(said["pid"])
        wall, second = asyncio.run(batches(port, token, many))
        after = processor_s(said["pid"])
        if counts:
            check(port, reader, [one for x in (*first, *second) for one in x], RATE)
    finally:
        server.terminate()
        server.wait()
    ordered = sorted(times)
    n_rows = BATCH * len(many)
    return {
        "single_p50_ms": round(ordered[len(ordered) // 2], 2),
        "single_p99_ms": round(ordered[int(0.99 * len(ordered))], 2),
        "single_within_10_ms": round(float(np.mean([t < 10 for t in ordered])), 4),
        "single_processor_ms": round(1000 * (between - before) / len(times), 3),
        "batch_decisions_per_s": round(n_rows / wall),
        "batch_processor_us": round(1e6 * (after - between) / n_rows, 1),
    }


def check(port: int, token: str, answers: list[dict[str, Any]], n_before: int) -> None:
    """Refuse a server whose counts are not those of its answers."""
    import urllib.request

    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/state", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request) as answer:
        state = json.load(answer)
    ids = [one["id"] for one in answers]
    assert sorted(ids) == list(range(n_before, n_before + len(ids)))
    assert state["n_decisions"] == n_before + len(ids)
    assert state["within_margin"]
    assert state["gap"] <= MARGIN
    given = Counter(one["label"] for one in answers if not one["rejected"])
    counted: Counter[Any] = Counter()
    for cell in state["cells"]:
        counted[cell["label"]] += cell["given"]
    # The server has answered a second of others before, and some of what it withheld since.
    spare = n_before + sum(one["reason"] == "withheld" for one in answers)
    for label, n in counted.items():
        assert 0 <= n - given[label] <= spare, (label, n, given[label])


class Stores:
    """Where decisions are kept: a new, empty store for every run."""

    def __init__(self, scratch: Path, asked: str | None) -> None:
        self._scratch, self._url, self._n = scratch, None, 0
        self._server: PostgresServer | None = None
        self.kinds = ["SQLite"]
        if asked is not None and "://" in asked:
            self._url = asked
            with self._tables() as (db, tables):
                found = set(sa.inspect(db).get_table_names()) & set(tables.tables)
            if found:
                raise SystemExit(f"--store must be empty, and holds {', '.join(sorted(found))}.")
        elif asked is None and (programs := postgres_programs()):
            self._server = PostgresServer(programs, fsync=True)
        if self._url or self._server:
            self.kinds.append("PostgreSQL")

    def new(self, kind: str) -> str:
        """Return where the next run keeps its decisions."""
        self._n += 1
        if kind == "SQLite":
            return str(self._scratch / f"{self._n}.db")
        if self._server is not None:
            self._server.run(f"CREATE DATABASE run{self._n}")
            return self._server.url(f"run{self._n}")
        self.empty()
        return str(self._url)

    def empty(self) -> None:
        """Drop the tables of the last run from a database of somebody else's."""
        if self._url is not None:
            with self._tables() as (db, tables):
                tables.drop_all(db)

    def close(self) -> None:
        """Leave nothing behind."""
        self.empty()
        if self._server is not None:
            self._server.close()

    @contextmanager
    def _tables(self) -> Iterator[Any]:
        from evenhand._database import Database
        from evenhand.serve.tables import TABLES

        database = Database(str(self._url), what="The store", in_memory="")
        with database.transaction(write=True) as db:
            yield db, TABLES
        database.close()


def sync_ms(folder: Path, n: int = 200) -> list[float]:
    """Write 4 KiB and sync them, every 5 ms; median and 99 % quantile, in ms."""
    times = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(n):
            start = time.perf_counter()
            file.write(os.urandom(4096))
            os.fsync(file.fileno())
            times.append(1000 * (time.perf_counter() - start))
            time.sleep(0.005)
    return [round(float(np.quantile(times, q)), 2) for q in (0.5, 0.99)]


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over the repeats of 2 x 2, with counts in each store and without."""
    found = {}
    for store in dict.fromkeys(run["store"] for run in runs):
        own = [run for run in runs if run["size"] == "2 x 2" and run["store"] == store]
        found[store] = {
            name: round(float(np.median([run[name] for run in own])), 3)
            for name in (*MEASURED, "batch_decisions_per_s")
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true")
    parser.add_argument(
        "--store", help="the URL of an empty PostgreSQL database, or sqlite alone", default=None
    )
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", default="2x2,5x3,10x10", help="groups x classes")
    parser.add_argument("--be-server", nargs=2, metavar=("MODEL", "STORE"), default=None)
    parser.add_argument("--without-counts", action="store_true")
    given = parser.parse_args()
    if given.be_server:
        serve(Path(given.be_server[0]), given.be_server[1], counts=not given.without_counts)
        return
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        stores = Stores(scratch, given.store)
        for n_groups, n_classes in (map(int, size.split("x")) for size in given.sizes.split(",")):
            model = scratch / f"model-{n_groups}-{n_classes}"
            save_model(model, n_groups, n_classes)
            for _ in range(given.repeats if n_groups == 2 else 1):
                for kind in (*stores.kinds, NOTHING):
                    around = {"load": round(os.getloadavg()[0], 1), "sync_ms": sync_ms(scratch)}
                    store = stores.new("SQLite" if kind == NOTHING else kind)
                    counts = kind != NOTHING
                    found = measure(model, store, n_groups, counts=counts, n_s=given.seconds)
                    size = f"{n_groups} x {n_classes}"
                    runs.append({"size": size, "store": kind, **around, **found})
                    print(runs[-1], file=sys.stderr, flush=True)
        stores.close()
    medians = summary(runs)
    per_s = {store: own["batch_decisions_per_s"] for store, own in medians.items()}
    _harness.report(
        {
            **_harness.heading(
                "serve", seed=1, sizes={"rate": RATE, "batch": BATCH, "clients": CLIENTS}
            ),
            "ratio": round(per_s["SQLite"] / per_s[NOTHING], 2),
            "target": TARGET,
            "medians": medians,
            "runs": runs,
        },
        save=given.save,
    )


if __name__ == "__main__":
    main()

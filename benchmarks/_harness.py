"""Time ours beside the plain version in one run: checked first, alternated, every repeat kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

RESULTS = Path(__file__).with_name("results.jsonl")


def seconds(job: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Wall time of one call, or the time of another clock."""
    start = clock()
    job()
    return clock() - start


def run(
    name: str,
    *,
    ours: Callable[[], object],
    plain: Callable[[], object],
    check: Callable[[], None],
    sizes: Mapping[str, object],
    repeats: int = 5,
    seed: int = 0,
    target: str = "",
    also: Callable[[float], Mapping[str, object]] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, object]:
    """Check the answer, time both versions in turn, print one JSON line; ``--save`` keeps it.

    ``also`` adds results of its own, given our best time in seconds. ``clock``: processor time
    (``time.process_time``) says more of one-threaded jobs where others use the machine too.
    """
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    arguments = parser.parse_args()
    check()
    both = [(seconds(ours, clock), seconds(plain, clock)) for _ in range(repeats)]
    ours_s, plain_s = ([round(pair[i], 6) for pair in both] for i in (0, 1))
    line: dict[str, object] = {
        **heading(name, seed=seed, sizes=sizes),
        "ours_s": ours_s,
        "plain_s": plain_s,
        "ratio": round(statistics.median(plain_s) / statistics.median(ours_s), 2),
        "target": target,
        **(also(min(ours_s)) if also else {}),
    }
    report(line, save=arguments.save)
    return line


def report(line: Mapping[str, object], *, save: bool) -> None:
    """Print one JSON line, and keep it if asked to."""
    print(json.dumps(line))
    if save:
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")


def heading(name: str, *, seed: int, sizes: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that say what was run, where, and at which commit."""
    return {
        "name": name,
        "commit": _commit(),
        "seed": seed,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.python_version()}",
        "sizes": dict(sizes),
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"

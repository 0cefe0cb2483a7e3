"""``evenhand demo`` as a user runs it: wall time and peak memory of the whole process."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _harness import heading, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    walls, results = [], []
    for seed in range(arguments.repeats):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "evenhand", "demo", "--json", "--seed", str(seed)]
            start = time.perf_counter()
            done = subprocess.run(
                [*command, "--out", str(Path(folder) / "demo")],
                check=True,
                capture_output=True,
                text=True,
            )
            walls.append(round(time.perf_counter() - start, 2))
            results.append(json.loads(done.stdout))
    line = {
        **heading("evenhand demo", seed=0, sizes={"dataset": "Adult", "n_teachers": 250}),
        "wall_s": walls,
        "peak_mib": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "error": [result["error"] for result in results],
        "demographic_parity_gap": [result["demographic_parity_gap"] for result in results],
        "target": "under 60 s on 2 cores after the download, under 2 GiB",
    }
    report(line, save=arguments.save)


if __name__ == "__main__":
    main()

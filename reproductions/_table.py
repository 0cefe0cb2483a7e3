"""What every script here needs: means with intervals, and results saved as JSON and as a table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

RESULTS = Path(__file__).parent / "results"


def interval(values: list[float]) -> tuple[float, float]:
    """Mean, and half width of its 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def commit() -> str:
    """Return the short name of the commit that is measured; empty outside a checkout."""
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=RESULTS.parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


def rule(n_columns: int) -> str:
    """Return the line below the head of a table."""
    return "| --- " * n_columns + "|"


def write(name: str, about: Mapping[str, Any], *lines: str) -> None:
    """Write ``results/<name>.json``, and ``results/<name>.md`` of these lines."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


def kept(file: Path | None) -> list[Any]:
    """Return what ``keep`` wrote, one per line; nothing without a file."""
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def keep(file: Path | None, *runs: Any) -> None:
    """Append finished runs to a file, so that a script goes on after a stop."""
    if file is not None:
        with file.open("a") as lines:
            lines.writelines(json.dumps(run) + "\n" for run in runs)


def beside_saved(
    name: str, data: str, fresh: list[dict[str, Any]], order: list[str]
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return commits by data set and all rows: those of ``data`` fresh, the others as saved."""
    path = RESULTS / f"{name}.json"
    saved = json.loads(path.read_text()) if path.exists() else {"commits": {}, "rows": []}
    rows = [row for row in saved["rows"] if row["data"] != data] + fresh
    rows.sort(key=lambda row: order.index(row["data"]))  # stable: else as measured
    return {**saved["commits"], data: commit()}, rows

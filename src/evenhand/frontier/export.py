"""Runs as flat tables: out to CSV and Parquet and back, and in from points that others published.

A table has one row per run and these columns: ``key``, what was asked for (``data``,
``fingerprint``, ``method``, ``seed``, ``arguments`` as JSON), the objectives, and the other fields
of ``Run``; intervals are two columns each, and ``groups``, ``guarantee`` and ``no_better`` are
JSON. What is not finite is an empty cell. Nothing is lost on the way back.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from evenhand import _checks
from evenhand._arrow import require_arrow
from evenhand.frontier.run import Run, Setting

_SINCE: Final = ("majority_error", "error_without_margin", "no_better")
"""Columns that tables of earlier versions lack."""
_AS_JSON: Final = ("groups", "guarantee", "no_better")
_INTERVALS: Final = ("error_interval", "gap_interval")
_NUMBERS: Final = (
    *("epsilon", "delta", "error", "gap", "coverage", "mu_squared", "seconds"),
    *_SINCE[:2],
)

PUBLISHED_COLUMNS: Final = {
    "data": "name of the data set",
    "method": "as its authors call it; it becomes 'published: METHOD'",
    "epsilon": "as published; empty where there is none",
    "delta": "as published; empty where it is not said",
    "error": "share of wrong labels, in [0, 1]",
    "gap": "in [0, 1]; empty where none was reported",
    "gap_name": "what it is a gap of, in the names of Run.gap_name",
    "coverage": "share of rows with a label; empty means 1",
    "source": "where it stands: paper, table or figure",
}
"""Columns of a CSV of published points. ``data``, ``method``, ``error`` and ``source`` must be
filled; every other may be left out."""

_NEEDED: Final = ("data", "method", "error", "source")


def to_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """Return one row per run, with the columns that the module's docstring names."""
    return pd.DataFrame([_flat(run) for run in runs], columns=_columns())


def write_csv(runs: Iterable[Run], path: str | Path) -> Path:
    """Write the runs as CSV; floats in the shortest form that reads back to the same number."""
    to_frame(runs).to_csv(path, index=False)
    return Path(path)


def write_parquet(runs: Iterable[Run], path: str | Path) -> Path:
    """Write the runs as Parquet."""
    require_arrow()
    frame = to_frame(runs)
    texts = [name for name in frame.columns if name not in (*_numeric(), "seed")]
    types = dict.fromkeys(texts, "str") | dict.fromkeys(_numeric(), "float64") | {"seed": "int64"}
    frame.astype(types).to_parquet(path, index=False)
    return Path(path)


def read_runs(path: str | Path) -> list[Run]:
    """Read a table that ``write_csv`` or ``write_parquet`` wrote.

    Raises
    ------
    ValueError
        If a column is missing, or a cell cannot be read; the message says in which line.
    """
    file, needed = Path(path), [name for name in _columns() if name not in _SINCE]
    if file.suffix == ".parquet":
        require_arrow()
        frame = pd.read_parquet(file)
        numbers = {n: frame[n].tolist() for n in _numeric() if n in frame}
        rows = [
            {
                **row,
                **{n: "" if math.isnan(numbers[n][i]) else repr(numbers[n][i]) for n in numbers},
            }
            for i, row in enumerate(frame.to_dict(orient="records"))
        ]
        _require(file, frame.columns, needed)
        return [_run_of(file, line, row) for line, row in enumerate(rows, start=1)]
    return [_run_of(file, line, row) for line, row in _lines(file, _columns(), needed)]


def read_published(path: str | Path) -> list[Run]:
    """Read points that others published, from a CSV with the columns ``PUBLISHED_COLUMNS``.

    They are marked (``data_kind="published"``, method "published: ..."), have no intervals, and
    carry no claim of ours: what they promise stands in their source.

    Raises
    ------
    ValueError
        If a column is unknown or missing, or a cell is not what it should be; the message says in
        which line.
    """
    file = Path(path)
    seen: dict[str, int] = {}
    runs = []
    for line, row in _lines(file, tuple(PUBLISHED_COLUMNS), _NEEDED):
        try:
            run = _published(row)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}, line {line}: {error}") from error
        if run.key in seen:
            raise ValueError(
                f"{file}, line {line}: this point stands in line {seen[run.key]}, too."
            )
        seen[run.key] = line
        runs.append(run)
    return runs


def _columns() -> tuple[str, ...]:
    setting = ("key", "data", "fingerprint", "method", "seed", "arguments")
    ends = tuple(f"{name}_{end}" for name in _INTERVALS for end in ("low", "high"))
    rest = ("fairness_kind", "command", "measured_on", "gap_name", "data_kind")
    return (*setting, *_NUMBERS, *ends, *rest, *_AS_JSON)


def _numeric() -> tuple[str, ...]:
    return tuple(
        name for name in _columns() if name in _NUMBERS or name.endswith(("_low", "_high"))
    )


def _flat(run: Run) -> dict[str, Any]:
    out = run.to_dict()
    setting = out.pop("setting")
    out |= setting | {"key": run.key, "arguments": json.dumps(setting["arguments"])}
    for name in _INTERVALS:
        out[f"{name}_low"], out[f"{name}_high"] = out.pop(name)
    for name in _AS_JSON:
        out[name] = json.dumps(out[name])
    return out


def _lines(
    file: Path, known: Sequence[str], needed: Sequence[str]
) -> Iterable[tuple[int, Mapping[str, str]]]:
    """Read a CSV, each row with the line that it ends in."""
    try:
        yield from _rows(file, known, needed)
    except csv.Error as error:  # a cell beyond all bounds, a quote that does not end
        raise ValueError(f"{file} is not a table: {error}.") from None


def _rows(
    file: Path, known: Sequence[str], needed: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    with file.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream, restkey="", strict=True)
        header = reader.fieldnames or ()
        for name in header:
            if name not in known:
                raise ValueError(
                    f"{file}, line 1: there is no column {name!r}."
                    f"{_checks.did_you_mean(name, known)} The columns are {', '.join(known)}."
                )
        _require(file, header, needed)
        for row in reader:
            if "" in row or None in row.values():
                raise ValueError(
                    f"{file}, line {reader.line_num}: this row has not {len(header)} cells."
                )
            yield reader.line_num, row


def _require(file: Path, header: Iterable[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in set(header)]
    if missing:
        raise ValueError(f"{file}, line 1: the column {', '.join(missing)} is missing.")


def _run_of(file: Path, line: int, row: Mapping[str, Any]) -> Run:
    try:
        cell = {name: _number(name, str(row[name])) for name in _numeric() if name in row}
        setting = {name: str(row[name]) for name in ("data", "fingerprint", "method")}
        values: dict[str, Any] = {name: cell[name] for name in _NUMBERS if name in cell}
        for name in _INTERVALS:
            values[name] = (cell[f"{name}_low"], cell[f"{name}_high"])
        for name in ("fairness_kind", "command", "measured_on", "gap_name", "data_kind"):
            values[name] = str(row[name])
        values |= {name: json.loads(row[name]) for name in _AS_JSON if name in row}
        values["setting"] = setting | {
            "arguments": json.loads(row["arguments"]),
            "seed": int(row["seed"]),
        }
        run = Run.from_dict(values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file}, line {line}: {error}") from error
    if run.key != row["key"]:
        raise ValueError(
            f"{file}, line {line}: the key does not belong to this setting. The row was changed, "
            f"or written by another version."
        )
    return run


def _published(row: Mapping[str, str]) -> Run:
    for name in _NEEDED:
        if not row[name].strip():
            raise ValueError(f"{name} is empty: {PUBLISHED_COLUMNS[name]}.")
    number = {
        name: _number(name, row.get(name, ""))
        for name in ("epsilon", "delta", "error", "gap", "coverage")
    }
    plain = {name: value for name, value in number.items() if value is not None}
    missing = (math.nan, math.nan)
    return Run(
        setting=Setting(
            data=row["data"].strip(),
            fingerprint="published",
            method=f"published: {row['method'].strip()}",
            arguments=plain | {"source": row["source"].strip()},
            seed=0,
        ),
        epsilon=plain.get("epsilon", math.inf),
        delta=plain.get("delta", math.nan),
        error=plain["error"],
        gap=plain.get("gap", math.nan),
        coverage=plain.get("coverage", 1.0),
        error_interval=missing,
        gap_interval=missing,
        mu_squared=None,
        fairness_kind="not known",
        groups=(),
        guarantee={},
        command=f"published in {row['source'].strip()}",
        measured_on="private holdout, not covered",
        seconds=math.nan,
        gap_name=(row.get("gap_name") or "demographic_parity_pairwise").strip(),
        data_kind="published",
    )


def _number(name: str, text: str) -> float | None:
    """Return what a cell says; None if it is empty."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number or empty, got {text!r}.") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {text!r}. Leave the cell empty instead.")
    return value

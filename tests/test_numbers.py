"""Every number that the README and the docs give as measured comes from a saved result.

A mark stands below the paragraph, the item or the table that it is about::

    <!-- numbers
    dpsgd_adult | data=Adult, epsilon=1, setting=margin 0.05 | error gap
    -->

Each line names a file of ``reproductions/results`` (``NAME.md`` for the tables on its page,
``benchmarks`` for the lines of ``benchmarks/results.jsonl``), the rows, and columns. ``table=``
picks another list than ``rows``, ``nth=1 4`` some of the rows. A column may be a formula:
``max(error)``, ``seconds/paper_seconds``, ``error[0]-error[1]``; several rows give theirs row
by row. A line ``= exp(1)`` is computed. The values must stand in the text in this order, rounded as
printed there.
"""

from __future__ import annotations

import json
import math
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.privacy import gaussian

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(p for folder in ("docs", "docs/start") for p in (ROOT / folder).glob("*.md")),
]
MARK = re.compile(r"^[ ]*<!-- numbers\s(.*?)-->", re.MULTILINE | re.DOTALL)
CODE = re.compile(
    r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)|<!-- (?!numbers).*?-->|\$[^$\n]+\$", re.M | re.S
)
NUMBER = re.compile(r"(?<![\w.,/-])(?<!Python )(\d{1,3}(?:,\d{3})+|\d*\.?\d+)(?![\w-])( %)?")
UNIT = re.compile(r"(?:µs|ms|s|minutes|MB|MiB|GB|GiB|times|points|%)(?!\w)")
SETTINGS = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.75, 0.9, 0.95}

LEFT: dict[str, int] = {
    "docs/architecture.md": 4,
    "docs/assess.md": 6,
    "docs/baselines.md": 263,
    "docs/choosing.md": 225,
    "docs/data.md": 10,
    "docs/dpsgd.md": 21,
    "docs/fairness.md": 4,
    "docs/frontier.md": 11,
    "docs/gate.md": 30,
    "docs/glossary.md": 3,
    "docs/guarantees.md": 2,
    "docs/intervention-points.md": 104,
    "docs/many-rows.md": 34,
    "docs/notions.md": 47,
    "docs/owners.md": 67,
    "docs/pictures.md": 69,
    "docs/reject-option.md": 83,
    "docs/schema.md": 2,
    "docs/security.md": 1,
    "docs/serve.md": 18,
    "docs/sf-pate.md": 225,
    "docs/students.md": 34,
    "docs/synthetic-data.md": 38,
    "docs/synthetic-images.md": 50,
    "docs/teacher-gans.md": 54,
    "docs/teachers.md": 7,
    "docs/theory.md": 6,
    "docs/voting.md": 1,
}
"""Measured numbers without a mark, by page. They may only become fewer."""


def numbers(text: str) -> list[tuple[str, bool, bool]]:
    """Return each number as printed, whether it is of a hundred, and whether it looks measured."""
    found = []
    for number in NUMBER.finditer(text):
        printed, percent = number[1], bool(number[2])
        decimals = len(printed.partition(".")[2])
        unit = UNIT.match(text[number.end(1) :].lstrip(" "))
        setting = float(printed.replace(",", "")) / (100 if percent else 1) in SETTINGS
        found.append((printed, percent, (decimals > 1 or bool(unit)) and not setting))
    return found


def is_printed(value: float, printed: str, percent: bool) -> bool:
    half = 0.5 * 10.0 ** -len(printed.partition(".")[2]) * (1 + 1e-9)
    values = (value, 100 * value) if percent else (value,)
    return any(abs(v - float(printed.replace(",", ""))) <= half for v in values)


def name_of(*parts: object) -> str:
    return re.sub(r"\W+", "_", "_".join(str(part) for part in parts)).strip("_")


def flat(value: Any, *names: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from flat(inner, *names, key)
    else:
        yield name_of(*names), value


@cache
def rows_of(source: str, table: str) -> list[dict[str, Any]]:
    """Return the rows of a saved result, their columns flat."""
    results = ROOT / "reproductions" / "results"
    if source == "benchmarks":
        lines = (ROOT / "benchmarks" / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return [dict(flat(json.loads(line))) for line in lines]
    if not source.endswith(".md"):
        saved = json.loads((results / f"{source}.json").read_text(encoding="utf-8"))[table]
        return [dict(flat(row)) for row in saved]
    rows, head = [], None
    for line in (results / source).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = [name_of(cell) for cell in cells]
        elif not line.startswith("| ---"):
            row: dict[str, Any] = {}
            for name, cell in zip(head, cells, strict=False):
                row[name] = cell
                for i, (printed, *_) in enumerate(numbers(cell)):
                    row[f"{name}_{i}"] = float(printed.replace(",", ""))
            rows.append(row)
    return rows


def same(saved: Any, wanted: str) -> bool:
    if isinstance(saved, int | float) and not isinstance(saved, bool):
        return re.fullmatch(r"-?[\d.e-]+", wanted) is not None and float(wanted) == saved
    return str(saved) == wanted


def values_of(line: str) -> list[float]:
    """Return what one line of a mark asks for."""
    if line.startswith("="):
        return [float(eval(line[1:], {**vars(math), **vars(gaussian)}))]
    source, where, columns = (part.strip() for part in line.split(" | "))
    asked = dict(condition.split("=", 1) for condition in re.split(r", (?=\w+=)", where))
    table, nth = asked.pop("table", "rows"), asked.pop("nth", None)
    rows = [
        row
        for row in rows_of(source, table)
        if all(key in row and same(row[key], value) for key, value in asked.items())
    ]
    assert rows, f"no such row: {line}"
    rows = [rows[int(i)] for i in nth.split()] if nth else rows
    names = {
        key: np.array([row.get(key) for row in rows])
        for key in set.union(*(set(row) for row in rows))
    }
    names |= {"min": np.min, "max": np.max, "mean": np.mean, "abs": np.abs, "n": len(rows)}
    found = [np.asarray(eval(column, {}, names), dtype=float) for column in columns.split()]
    assert not any(np.isnan(column).any() for column in found), f"no such column: {line}"
    return (
        [float(v) for row in zip(*np.broadcast_arrays(*found), strict=True) for v in row]
        if any(column.ndim for column in found)
        else [float(column) for column in found]
    )


def blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the text before each mark, from the line or the item where it begins, and its lines."""
    at = 0
    for mark in MARK.finditer(text):
        before = text[at : mark.start()]
        begin = max(before.rfind("\n\n"), 0)
        items = [item.start() for item in re.finditer(r"^[ ]*[-*] ", before[begin:], re.MULTILINE)]
        begin += items[-1] if items else 0
        yield before[:begin], []
        yield before[begin:], [line.strip() for line in mark[1].strip().splitlines()]
        at = mark.end()
    yield text[at:], []


def unmarked(text: str) -> list[str]:
    """Return measured numbers without a mark; what a mark names and the text lacks is an error."""
    left = []
    for block, lines in blocks(CODE.sub(" ", text)):
        printed = numbers(block)
        at, found = 0, set()
        for line in lines:
            for value in values_of(line):
                here = [i for i in range(at, len(printed)) if is_printed(value, *printed[i][:2])]
                assert here, f"{line}: {value:.6g} does not stand in: {block.strip()}"
                at = here[0] + 1
                found.add(here[0])
        left += [p for i, (p, _, measured) in enumerate(printed) if measured and i not in found]
    return left


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_measured_numbers_are_those_that_are_saved(page: Path) -> None:
    left = unmarked(page.read_text(encoding="utf-8"))
    allowed = LEFT.get(page.relative_to(ROOT).as_posix(), 0)
    assert len(left) <= allowed, f"without a mark: {left}; how to mark them: CONTRIBUTING.md"
    assert len(left) == allowed, f"LEFT can be {len(left)} for {page.name}"


def test_the_picture_of_the_readme_is_drawn_from_saved_results(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "docs/figures/frontier.py"))["picture"](tmp_path)
    drawn, shown = tmp_path / "frontier.svg", ROOT / "docs/figures/frontier.svg"
    assert drawn.read_text() == shown.read_text(), "run: python docs/figures/frontier.py"


SAVED = "dpsgd_adult | data=Adult, epsilon=1, setting=penalty 0 | error gap"
"""Its saved numbers are .15254 and .17480."""


@pytest.mark.parametrize("text", [".153 / .175", "It errs on 15.3 %, by .1748 of gap."])
def test_a_marked_number_is_compared_as_it_is_printed(text: str) -> None:
    assert unmarked(f"{text}\n<!-- numbers\n{SAVED}\n-->\n") == []


@pytest.mark.parametrize("text", [".152 / .175", ".153 / .177", ".175 / .153", ".153"])
def test_a_number_that_differs_is_an_error(text: str) -> None:
    with pytest.raises(AssertionError, match="does not stand in"):
        unmarked(f"{text}\n<!-- numbers\n{SAVED}\n-->\n")


def test_a_mark_covers_what_stands_before_it_alone() -> None:
    text = f".153\n\n- .175\n- .153 / .175\n  <!-- numbers\n{SAVED}\n-->\n7 ms, .95, 3.11\n"
    assert unmarked(text) == [".153", ".175", "7", "3.11"]


def test_what_no_result_has_is_named() -> None:
    with pytest.raises(AssertionError, match="no such row"):
        values_of("dpsgd_adult | data=Adults | error")
    assert values_of("= 2 * exp(0)") == [2.0]
    assert values_of("dpsgd_adult.md | data=Adult, epsilon=1, nth=0 | epsilon_0") == [1.0]

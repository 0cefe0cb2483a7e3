"""Every number that the README and the docs give as measured comes from a saved result.

A mark stands below the paragraph, the item or the table that it is about::

    <!-- numbers
    dpsgd_adult | data=Adult, epsilon=1, setting=margin 0.05 | error gap
    -->

Each line names a file of ``reproductions/results`` (``NAME.md`` for the tables on its page,
``benchmarks`` for the lines of ``benchmarks/results.jsonl``), the rows, and columns. ``table=``
picks another list than ``rows``, ``nth=1 4`` some of the rows. A column may be a formula:
``max(error)``, ``seconds/paper_seconds``, ``error[0]-error[1]``; several rows give theirs row
by row; ``epsilon=1 or 3`` picks both; a column with the name of a function is written ``mean_``. A
fourth part is the column of the page's table in which the values stand, from 1. ``= exp(1)`` is
computed. The values of a line must stand in the text in this order, rounded as printed there.
"""

from __future__ import annotations

import json
import math
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
NUMBER = re.compile(
    r"(?<![\w.,/-])(?<!Python )(\d{1,3}(?:,\d{3})+|\d*\.?\d+)(?![\w-])"
    r"(?=( (?:(?:to|and|or) [\d.]+ )?%)?)"
)
UNIT = re.compile(r"(?:µs|ms|s|minutes|MB|MiB|GB|GiB|times|points|%)(?!\w)")
SETTINGS = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.75, 0.9, 0.95}

LEFT: dict[str, int] = {}
"""Measured numbers without a mark, by page. They may only become fewer."""


class Number(NamedTuple):
    """A number as printed, whether of a hundred, whether it looks measured, and in which column."""

    printed: str
    percent: bool
    measured: bool
    column: int


def numbers(text: str) -> list[Number]:
    found = []
    for number in NUMBER.finditer(text):
        printed, percent = number[1], bool(number[2])
        decimals = len(printed.partition(".")[2])
        unit = UNIT.match(text[number.end(1) :].lstrip(" "))
        setting = float(printed.replace(",", "")) / (100 if percent else 1) in SETTINGS
        measured = (decimals > 1 or bool(unit)) and not setting
        line = text[text.rfind("\n", 0, number.start()) + 1 : number.start()]
        column = line.count("|") if line.startswith("|") else 0
        found.append(Number(printed, percent, measured, column))
    return found


def is_printed(value: float, number: Number) -> bool:
    printed, percent, *_ = number
    decimals = len(printed.partition(".")[2])
    said = float(printed.replace(",", ""))
    half = 0.5 * 10.0**-decimals * (1 + 1e-9)
    half = half if decimals or said >= 10 else 1e-9  # a share is not printed as 0 or 1
    return any(abs(v - said) <= half for v in ((value, 100 * value) if percent else (value,)))


def name_of(*parts: object) -> str:
    name = re.sub(r"\W+", "_", "_".join(str(part) for part in parts)).strip("_")
    return f"c{name}" if name[:1].isdigit() else name


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


def holds(row: dict[str, Any], key: str, wanted: str) -> bool:
    return key in row and any(same(row[key], value) for value in wanted.split(" or "))


def values_of(line: str) -> list[float]:
    """Return what one line of a mark asks for."""
    if line.startswith("="):
        return [float(eval(line[1:], {**vars(math), **vars(gaussian)}))]
    source, where, columns = (part.strip() for part in line.split(" | ")[:3])
    asked = dict(condition.split("=", 1) for condition in re.split(r", (?=\w+=)", where))
    table, nth = asked.pop("table", "rows"), asked.pop("nth", None)
    rows = [
        row
        for row in rows_of(source, table)
        if all(holds(row, key, value) for key, value in asked.items())
    ]
    assert rows, f"no such row: {line}"
    rows = [rows[int(i)] for i in nth.split()] if nth else rows
    own = {"min": np.min, "max": np.max, "mean": np.mean, "abs": np.abs, "n": len(rows)}
    names = own | {
        key + "_" * (key in own): np.array([row.get(key) for row in rows])
        for key in set.union(*(set(row) for row in rows))
    }
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
        found: set[int] = set()
        for line in lines:
            column = line.split(" | ")[3:]
            where = [i for i, n in enumerate(printed) if not column or n.column == int(column[0])]
            where = [i for i in where if i not in found]
            for value in values_of(line):
                while where and not is_printed(value, printed[where[0]]):
                    del where[0]
                assert where, f"{line}: {value:.6g} does not stand in: {block.strip()}"
                found.add(where.pop(0))
        left += [n.printed for i, n in enumerate(printed) if n.measured and i not in found]
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
"""Its saved numbers are .14787 and .17735."""


@pytest.mark.parametrize("text", [".148 / .177", "It errs on 14.8 %, by .1773 of gap."])
def test_a_marked_number_is_compared_as_it_is_printed(text: str) -> None:
    assert unmarked(f"{text}\n<!-- numbers\n{SAVED}\n-->\n") == []


@pytest.mark.parametrize("text", [".147 / .177", ".148 / .179", ".177 / .148", ".148"])
def test_a_number_that_differs_is_an_error(text: str) -> None:
    with pytest.raises(AssertionError, match="does not stand in"):
        unmarked(f"{text}\n<!-- numbers\n{SAVED}\n-->\n")


def test_a_mark_covers_what_stands_before_it_alone() -> None:
    text = f".148\n\n- .177\n- .148 / .177\n  <!-- numbers\n{SAVED}\n-->\n7 ms, .95, 3.11\n"
    assert unmarked(text) == [".148", ".177", "7", "3.11"]


def test_what_no_result_has_is_named() -> None:
    with pytest.raises(AssertionError, match="no such row"):
        values_of("dpsgd_adult | data=Adults | error")
    assert values_of("= 2 * exp(0)") == [2.0]
    assert values_of("dpsgd_adult.md | data=Adult, epsilon=1, nth=0 | epsilon_0") == [1.0]

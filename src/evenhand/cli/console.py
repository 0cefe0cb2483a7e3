"""What a command says: words, tables and progress on stderr; results for machines on stdout."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.progress import TimeRemainingColumn as Left
from rich.table import Table
from rich.text import Text

STAGES: Final = {
    "teachers": "training the teachers",
    "answers": "asking the teachers",
    "steps": "taking noisy steps",
    "records": "reading the records",
    "counts": "learning from noisy counts",
    "means": "learning from noisy means",
    "audits": "auditing methods",
    "models": "training models on synthetic rows",
    "pictures": "looking at the pictures",
    "features": "computing features of the pictures",
}
"""The stages of ``fit``, in the words of the progress bar."""


def note(text: str) -> None:
    """Say a sentence to the person at the terminal: on stderr, so that pipes do not carry it."""
    print(safe(text), file=sys.stderr, flush=True)


def safe(text: str) -> str:
    """Return ``text`` without control characters: names in a user's file may steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


class Unbroken(str):
    """Text for ``show`` that is kept in one line, such as a command that people copy."""


def show(*parts: str | Table) -> None:
    """Print a result for people on stdout."""
    console = Console(highlight=False, soft_wrap=False)
    for part in parts:
        if isinstance(part, str):
            console.print(safe(part), markup=False, soft_wrap=isinstance(part, Unbroken))
        else:
            console.print(part)


def emit(values: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    print(json.dumps(plain(values), ensure_ascii=False, allow_nan=False), flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, text: int = 1) -> Table:
    """Return a table for ``show``: the first ``text`` columns are words, the rest numbers."""
    out = Table(box=box.SIMPLE, pad_edge=False)
    for i, name in enumerate(columns):
        out.add_column(Text(safe(name)), justify="left" if i < text else "right", overflow="fold")
    for row in rows:
        out.add_row(*(Text(safe(cell)) for cell in row))
    return out


def group_table(
    verb: str,
    classes: Sequence[str],
    groups: Sequence[tuple[str, int, Sequence[str], Sequence[str]]],
) -> Table:
    """Return a table of groups: name, rows, the rate of each class, and the error if it is known.

    Several classes have a line each: as columns they would not fit, and nothing would be read.
    """
    many = len(classes) > 1
    heads = (verb, "rate") if many else (f"{verb} {classes[0]}",)
    rows = [
        (
            *((group, f"{n:,}") if first else ("", "")),
            *([name] * many),
            rate,
            *(error if first else [""] * len(error)),
        )
        for group, n, rates, error in groups
        for first, name, rate in zip([True] + [False] * len(rates), classes, rates, strict=False)
    ]
    known = bool(groups[0][3])
    made = table(("group", "rows", *heads, *(["error"] * known)), rows)
    for i in range(-1 - known, 0):  # numbers stay whole, and names of groups are folded
        widest = max(len(row[i]) for row in rows)
        made.columns[i].no_wrap = len(str(made.columns[i].header)) <= widest
    return made


def plain(value: Any) -> Any:
    """Return ``value`` as JSON has it: NaN and infinities, which JSON lacks, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Bars:
    """One line of progress per stage, on a terminal; silent elsewhere."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take the progress of ``fit``."""
        words = STAGES.get(stage, stage)
        if stage not in self._tasks:
            self._close()
            self._tasks[stage] = self._progress.add_task(words, total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total)

    def begin(self, words: str) -> None:
        """Show a stage whose length is not known."""
        self._close()
        self._tasks[words] = self._progress.add_task(words, total=None)

    def say(self, words: str) -> None:
        """Take the progress of a download: words, also where there is no terminal."""
        if self._progress.disable:
            note(words)
        self.begin(words)

    def _close(self) -> None:
        """Stop the bars before: asking may end early, when the budget is spent."""
        for task in self._tasks.values():
            self._progress.remove_task(task)
        self._tasks.clear()


@contextmanager
def progress_bars(*, time_left: bool = False) -> Iterator[Bars]:
    """Open progress bars on stderr, with the time left if asked; they are gone afterwards."""
    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Elapsed(),
        *([TextColumn("left"), Left()] if time_left else []),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        yield Bars(progress)

"""``evenhand check``: whether some run of a frontier is acceptable, and what each bound costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table

from evenhand.cli import options
from evenhand.cli.console import Unbroken, emit, progress_bars, show, table

if TYPE_CHECKING:
    from evenhand.frontier.specification import Answer, Candidate

NOT_FEASIBLE: Final = 3


def check(
    specification: Annotated[
        Path, typer.Argument(metavar="SPEC", help="TOML file that says what is acceptable.")
    ],
    frontier: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="Folder that `evenhand frontier` wrote, or the URL of its database."
        ),
    ],
    json: options.Json = False,
) -> None:
    """Say whether some run of a frontier is acceptable; exit code 0 if so, 3 if not.

    If none is, the bounds that stand in the way are named, with how far each of them alone would
    have to move, and the run that is nearest.
    """
    with progress_bars() as bars:
        bars.begin(f"reading {specification}")
        from evenhand.frontier import RunStore
        from evenhand.frontier.cost import ReleaseCost
        from evenhand.frontier.specification import Specification
        from evenhand.frontier.specification import check as answer_to

        asked = Specification.read(specification)
        with RunStore(frontier) if "://" in frontier else RunStore.in_folder(frontier) as store:
            runs = store.runs()
        answer = answer_to(asked, runs)
        cost = ReleaseCost.of(runs)
    if json:
        emit(answer.to_dict() | {"cost": cost.to_dict()})
    else:
        show(*_parts(answer), str(cost))
    if not answer.feasible:
        raise typer.Exit(NOT_FEASIBLE)


def _parts(answer: Answer) -> list[str | Table]:
    """Return the answer for people."""
    shown: list[str | Table] = []
    if answer.feasible:
        n = len(answer.acceptable)
        shown.append(f"Feasible: {n:,} setting{'s' * (n > 1)} keep{'s' * (n == 1)} every bound.")
        shown += _setting("the most accurate of them", answer.acceptable[0])
    else:
        enough = any(price.best is not None for price in answer.prices)
        names = (" or " if enough else " and ").join(answer.binding)
        shown.append("Not feasible: nothing meets this.")
        shown.append(
            f"Binding: {names}; moving one of these alone is enough."
            if enough
            else f"No single bound is enough to move. The nearest setting breaks: {names}."
        )
        if answer.nearest is not None:
            shown += _setting("the nearest setting", answer.nearest)
    if answer.prices:
        rows = [(p.bound, _word(p.asked), _word(p.best)) for p in answer.prices]
        last = "strictest, all others kept" if answer.feasible else "needed, all others kept"
        shown.append(table(("bound", "asked", last), rows))
    return [*shown, *answer.notes]


def _setting(title: str, candidate: Candidate) -> list[str | Table]:
    first = candidate.runs[0]
    rows = [("method", first.setting.method, "")]
    for name, value in candidate.values.items():
        low, high = candidate.intervals[name]
        rows.append((name, _word(value), f"[{low:.4f}, {high:.4f}]" if low < high else ""))
    command = Unbroken(f"Train it: {first.command}")
    return [table((title, "mean over seeds", "95 % interval"), rows), command]


def _word(value: Any) -> str:
    if value is None:
        return "no value helps"
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value).lower()

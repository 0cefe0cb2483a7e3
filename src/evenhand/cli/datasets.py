"""``evenhand datasets``: the built-in data sets, and where they are."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli.console import emit, progress_bars, show, table
from evenhand.cli.options import Json

datasets = typer.Typer(no_args_is_help=True, help="List and fetch the built-in data sets.")


def _names() -> list[str]:
    from evenhand.datasets import available

    return [info.name for info in available()]


@datasets.command("list")
def list_(json: Json = False) -> None:
    """List the built-in data sets: rows, licence, and where each was found on this machine."""
    from evenhand.datasets import available

    known = available()
    if json:
        emit(
            {
                "datasets": [
                    {
                        "name": info.name,
                        "title": info.title,
                        "rows": info.rows,
                        "licence": info.licence,
                        "folder": None if info.folder is None else str(info.folder),
                    }
                    for info in known
                ]
            }
        )
        return
    rows = [
        (
            info.name,
            info.title,
            "not here yet" if info.folder is None else str(info.folder),
            f"{info.rows:,}",
        )
        for info in known
    ]
    show(table(("name", "title", "found in", "rows"), rows, text=3))


@datasets.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name from the list.", autocompletion=_names, show_default=False
        ),
    ],
    json: Json = False,
) -> None:
    """Fetch a data set, check it against its checksum, and keep it in the cache."""
    from evenhand.datasets import fetch as fetch_files

    with progress_bars() as bars:
        bars.begin(f"looking for {name}")
        folder = fetch_files(name, progress=bars.say)
    if json:
        emit({"name": name, "folder": str(folder)})
    else:
        show(f"{name} is in {folder}")

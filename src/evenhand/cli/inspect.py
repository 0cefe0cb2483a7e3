"""``evenhand inspect``: what is wrong with the columns of a table, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.command import command_of
from evenhand.cli.console import Unbroken, emit, note, progress_bars, show, table
from evenhand.cli.failures import as_bad_input
from evenhand.cli.options import Drop, ReadsTables

if TYPE_CHECKING:
    from evenhand.datasets.findings import Inspection


@dataclass(frozen=True, kw_only=True)
class InspectOptions(ReadsTables):
    """What a run of ``evenhand inspect`` was asked to do."""

    private: Annotated[
        Path,
        typer.Argument(metavar="PRIVATE", help="Private records: CSV (also .gz) or Parquet."),
    ]
    public: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Public rows, to compare with; the schema is of these."),
    ] = None
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the classes.")] = (
        None
    )
    sensitive: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Sensitive column; may be repeated."),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that says whose record a row is."),
    ] = None
    drop: Drop = None
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Declared columns in JSON: their kind is not doubted."),
    ] = None
    schema_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a schema of the columns that can be learnt: from the public rows, or from "
            "dtypes alone. Nothing of a private row is in it.",
        ),
    ] = None


@command_of(InspectOptions)
def inspect(given: InspectOptions) -> None:
    """Say what is wrong with each column of a private table, and how train would take it.

    For the curator alone: the answer is read from private rows without noise, and quotes values.
    """
    if given.schema_out is not None and given.schema_out.exists():
        raise FileExistsError(f"{given.schema_out} exists. Choose another name for --schema-out.")
    with progress_bars() as bars:
        bars.begin(f"reading {given.private}")
        from evenhand.cli.tables import read
        from evenhand.datasets import Schema
        from evenhand.datasets import inspect as look_at

        rows = read(given.private)
        named = {"--label": given.label, "--unit": given.unit}
        for option, column in [
            *named.items(),
            *(("--sensitive", c) for c in given.sensitive or ()),
        ]:
            if column is not None:
                rows.require([column], f"which {option} names")
        rows.require(given.drop or (), "which --drop names")
        known = None if given.public is None else read(given.public)
        with as_bad_input(TypeError, KeyError, where=str(given.schema)):
            declared = None if given.schema is None else Schema.load(given.schema)
        found = look_at(
            rows.select(name for name in rows if name not in (given.drop or ())),
            label=given.label,
            sensitive=tuple(given.sensitive or ()),
            unit=given.unit,
            public=known,
            schema=declared,
        )
    if given.schema_out is not None:
        if found.schema is None:
            raise ValueError(f"No schema can be written: {found.schema_from}. Add --public FILE.")
        found.schema.save(given.schema_out)
        note(f"{given.schema_out} is made of {found.schema_from}.")
    if given.json:
        emit(found.to_dict())
        return
    _show(found)


def _show(found: Inspection) -> None:
    from evenhand.datasets.findings import ANEW, FOR_THE_CURATOR

    show(
        FOR_THE_CURATOR,
        f"{found.n_rows:,} rows, {len(found.columns)} columns. What train and synthesize would do:",
        table(("column", "holds", "missing", "found", "then"), found.rows(), text=5),
    )
    if found.lines():
        show(ANEW, *(Unbroken(f"  {line}") for line in found.lines()))
    if found.drop:
        show("Go on without what would be learnt wrong:", Unbroken(f"  {found.drop}"))

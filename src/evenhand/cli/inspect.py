"""``evenhand inspect``: what is wrong with the columns of a table, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options
from evenhand.cli.console import Unbroken, emit, note, progress_bars, show, table
from evenhand.cli.failures import as_bad_input

if TYPE_CHECKING:
    from evenhand.datasets.findings import Inspection


def inspect(
    private: Annotated[
        Path,
        typer.Argument(metavar="PRIVATE", help="Private records: CSV (also .gz) or Parquet."),
    ],
    public: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Public rows, to compare with; the schema is of these."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the classes.")
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Sensitive column; may be repeated."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that says whose record a row is."),
    ] = None,
    drop: options.Drop = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Declared columns in JSON: their kind is not doubted."),
    ] = None,
    schema_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a schema of the columns that can be learnt: from the public rows, or from "
            "dtypes alone. Nothing of a private row is in it.",
        ),
    ] = None,
    sep: options.Separator = None,
    encoding: options.Encoding = None,
    json: options.Json = False,
) -> None:
    """Say what is wrong with each column of a private table, and how train would take it.

    For the curator alone: the answer is read from private rows without noise, and quotes values.
    """
    if schema_out is not None and schema_out.exists():
        raise FileExistsError(f"{schema_out} exists. Choose another name for --schema-out.")
    with progress_bars() as bars:
        bars.begin(f"reading {private}")
        from evenhand.cli.tables import read
        from evenhand.datasets import Schema
        from evenhand.datasets import inspect as look_at

        rows = read(private)
        named = {"--label": label, "--unit": unit}
        for option, column in [*named.items(), *(("--sensitive", c) for c in sensitive or ())]:
            if column is not None:
                rows.require([column], f"which {option} names")
        rows.require(drop or (), "which --drop names")
        known = None if public is None else read(public)
        with as_bad_input(TypeError, KeyError, where=str(schema)):
            declared = None if schema is None else Schema.load(schema)
        found = look_at(
            rows.select(name for name in rows if name not in (drop or ())),
            label=label,
            sensitive=tuple(sensitive or ()),
            unit=unit,
            public=known,
            schema=declared,
        )
    if schema_out is not None:
        if found.schema is None:
            raise ValueError(f"No schema can be written: {found.schema_from}. Add --public FILE.")
        found.schema.save(schema_out)
        note(f"{schema_out} is made of {found.schema_from}.")
    if json:
        emit(found.to_dict())
        return
    _show(found)


def _show(found: Inspection) -> None:
    from evenhand.datasets.findings import FOR_THE_CURATOR

    show(
        FOR_THE_CURATOR,
        f"{found.n_rows:,} rows, {len(found.columns)} columns. What train and synthesize would do:",
        table(("column", "holds", "missing", "found", "then"), found.rows(), text=5),
    )
    if found.drop:
        show("Go on without what would be learnt wrong:", Unbroken(f"  {found.drop}"))

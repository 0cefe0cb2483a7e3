"""The options of ``evenhand predict``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.command import Options
from evenhand.cli.options import Encoding, Json, ModelFolder, Raw, Separator, ShowValues, Trust


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Options):
    """What a run of ``evenhand predict`` was asked to do."""

    model: ModelFolder
    new: Annotated[
        Path,
        typer.Argument(
            metavar="NEW",
            help="Rows to decide on: CSV (also .gz) or Parquet. Missing values and new categories "
            "are allowed; other columns, such as a label or groups, are passed over.",
        ),
    ]
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write: CSV, or Parquet by its ending.",
            show_default="stdout",
        ),
    ] = None
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class, in [0, 1].")
    ] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --out if it is there.")
    ] = False
    reject_margin: Annotated[
        float | None,
        typer.Option(
            help="Refuse predictions that would bring the groups' rates further apart than this, "
            "over all given ones. In [0, 1].",
            show_default="none is refused",
            rich_help_panel="Reject option",
        ),
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the groups; may be repeated.",
            show_default="those of training",
            rich_help_panel="Groups",
        ),
    ] = None
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the counts in this file, over runs; made by the first. One run at a time.",
            rich_help_panel="Reject option",
        ),
    ] = None
    delivered: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file for predictions that earlier runs withheld and that are given now.",
            rich_help_panel="Reject option",
        ),
    ] = None
    trust: Trust = None
    raw: Raw = False
    sep: Separator = None
    encoding: Encoding = None
    show_values: ShowValues = False
    json: Json = False

    @property
    def fetches(self) -> bool:
        """Whether there is a place for answers to requests of earlier runs."""
        return self.state is None or self.json or self.delivered is not None

"""``evenhand evaluate``: error and gaps on labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand import _words
from evenhand._checks import one_of
from evenhand._roles import Roles
from evenhand.cli import options, pictures, results
from evenhand.cli.command import command_of
from evenhand.cli.console import emit, note, progress_bars, show
from evenhand.cli.options import ReadsModel
from evenhand.cli.output import Training, whole_file
from evenhand.cli.pictures import ReadsPictures

if TYPE_CHECKING:
    from evenhand.cli.console import Bars
    from evenhand.fairness import FairnessReport


@dataclass(frozen=True, kw_only=True)
class Measures(ReadsPictures, ReadsModel):
    """Options of every command that measures a model on labelled rows."""

    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the classes.", show_default="that of training"
        ),
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Sensitive column; may be repeated.",
            show_default="those of training",
        ),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says whose record a row is: intervals then take units as "
            "independent.",
            show_default="that of training",
        ),
    ] = None
    reference: Annotated[str | None, options.reference(show_default="that of training")] = None
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS", help="The favourable class.", show_default="that of training"
        ),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file that is written if it is there.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Measures):
    """What a run of ``evenhand evaluate`` was asked to do."""

    test: Annotated[
        Path,
        typer.Argument(
            metavar="TEST",
            help="Labelled rows: CSV (also .gz) or Parquet; pictures as for predict.",
        ),
    ]
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the report with these measurements in it (HTML)."),
    ] = None


@command_of(EvaluateOptions)
def evaluate(given: EvaluateOptions) -> None:
    """Measure a model on labelled rows: its error, and how differently it treats groups.

    The numbers are computed without noise, so the guarantee does not cover them: publishing them
    tells something about the people in the test rows.
    """
    with progress_bars(time_left=True) as bars:
        bars.begin(f"measuring on {given.test}")
        from evenhand.methods import load
        from evenhand.report import write_report

        fitted = load(given.model, trusted=given.trust or ())
        asked = read_asked(given, given.test, fitted, bars)
        roles, compared, measured = asked.roles, asked.compared, asked.measured
        if given.report is not None:
            with whole_file(given.report, overwrite=given.overwrite) as made:
                write_report(
                    fitted, made, dataset={"Test rows": given.test.name}, measured=measured
                )
    if given.report is not None:
        note(f"the report is in {given.report}")
    summary = results.of_measured(measured, compared)
    for warning in summary["warnings"]:
        note(f"warning: {warning}")
    if given.json:
        about = {"model": str(given.model), "test": str(given.test), "label": roles.label}
        emit(about | {"sensitive": roles.sensitive} | summary)
    else:
        show(*results.measured_parts(measured, compared))


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Labelled rows as they were asked for, and what was measured on them."""

    roles: Roles
    compared: str
    trial: results.Trial
    positive: str | None
    same_groups: bool
    measured: FairnessReport


def read_asked(given: Measures, test: Path, fitted: Any, bars: Bars) -> Asked:
    """Read labelled rows and measure a model on them, with what training remembers."""
    known = Training.read(given.model)
    roles = _roles(known, given.label, given.sensitive, given.unit)
    compared = one_of(
        "--reference",
        given.reference or (known.reference if known else "rest"),
        _words.REFERENCES,
    )
    same_groups = known is not None and roles.sensitive == known.sensitive
    grouping = known.grouping if known is not None and same_groups else None
    trial = results.read_trial(test, roles, grouping, needs_unit=given.unit is not None)
    trial = replace(trial, X=pictures.rows_of(fitted, trial.X, given, bars))
    positive = known.positive if known and given.positive is None else given.positive
    return Asked(
        roles=roles,
        compared=compared,
        trial=trial,
        positive=positive,
        same_groups=same_groups,
        measured=results.measure(fitted, trial, positive=positive, same_groups=same_groups),
    )


def _roles(
    known: Training | None, label: str | None, sensitive: list[str] | None, unit: str | None
) -> Roles:
    """Take what was named, and the rest from training."""
    label = label or (None if known is None else known.label)
    if label is None:
        raise ValueError(
            "--label is missing, and this model was not trained at the command line, so nothing is "
            "remembered. Name the column of the classes."
        )
    columns = tuple(sensitive or ())
    if known is not None and (not columns or set(columns) == set(known.sensitive)):
        columns = known.sensitive  # in the order in which groups were named
    return Roles(label=label, sensitive=columns, unit=unit or (known.unit if known else None))

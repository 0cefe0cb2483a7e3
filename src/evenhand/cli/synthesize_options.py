"""The options of ``evenhand synthesize`` and their words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from evenhand._checks import one_of
from evenhand.cli.command import from_file
from evenhand.cli.options import COLUMNS, FILES, Epsilon, Raw, ReadsPrivate, choice
from evenhand.generators.registry import generators, names_of, registered_at
from evenhand.generators.settings import types_of

MOVED: Final = ("none", "equalized-odds", "demographic-parity", "both")
"""Notions by whose rates labels are moved within groups."""

_TABLES, _IMAGES = (names_of(of, offered=True) for of in ("tables", "images"))
_METHOD: Final = "Method"
_ROWS: Final = "Rows"
_TWO: Final = "Two tables"


@dataclass(frozen=True, kw_only=True)
class SynthesizeOptions(ReadsPrivate):
    """What a run of ``evenhand synthesize`` was asked to do."""

    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE|SPEC.toml",
            callback=from_file,
            is_eager=True,
            help="Private records: CSV (also .gz) or Parquet; a folder of Parquet files, or a URL "
            "such as s3://bucket/folder, whose rows are read in batches; or pictures, an .npz with "
            "the array images and one array per label, sensitive attribute and unit. Or a TOML "
            "file that names them, with options by their long names; flags stand above it.",
        ),
    ]
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the classes.")]
    sensitive: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="Sensitive column; name several by repeating the option, and groups are their "
            "combinations.",
        ),
    ]
    epsilon: Epsilon
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Table to write: CSV, or Parquet by its ending; .npz for pictures. The claim "
            "(.claim.json) and the report (.html) are written beside it.",
        ),
    ]
    rows: Annotated[int, typer.Option(help="Rows to draw, at least 1.")] = 10_000
    method: Annotated[
        str | None,
        choice(
            dict.fromkeys((*_TABLES, *_IMAGES)),
            own=registered_at,
            help="How the private records are learnt. The long help says what each method does. "
            "Or a generator of your own by its class: its module is imported, which runs its code.",
            show_default=f"{_TABLES[0]}; {_IMAGES[0]} for pictures",
        ),
    ] = None
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A setting of the method in the place of its default, such as mirrored=true of "
            "gaussian or width=1 of marginal; repeat it for more. --help-all names them, and the "
            "documentation of the method's class says what they do.",
            rich_help_panel=_METHOD,
        ),
    ] = None
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Declared columns in JSON: kinds (ids, e-mails and phones are made anew), "
            "categories, bounds. What it does not say is released from the budget. Of pictures: "
            "the categories of label and sensitive columns.",
            show_default="all of it is released; of pictures, the values that occur",
        ),
    ] = None
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Real rows to measure on: models are trained on the synthetic rows and tested on "
            "these. The guarantee does not cover these numbers.",
        ),
    ] = None
    curators_report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="A second report, for the curator alone: models trained on the private rows, and "
            "how well attacks tell private rows from test rows, beside what the claim allows. "
            "Private rows are read without noise: never publish it. Tables only; needs --test.",
        ),
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="New folder for the generator, to draw more later."),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the fit in --save that the same command began and that was "
            "interrupted: of mean-embedding and public-features for pictures, which are fitted to "
            "what was released. Spends nothing, and PRIVATE is not learnt from.",
            rich_help_panel=_METHOD,
        ),
    ] = False
    balance: Annotated[
        str | None,
        typer.Option(
            metavar="label,sensitive",
            help="What is spread evenly over the rows: label, sensitive, both, or none. Both, "
            "where it is not given; with --fairness groups are.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    fairness: Annotated[
        str,
        choice(
            MOVED,
            help="Move the labels' shares within groups so that models of the rows treat groups "
            "more alike. For two classes; with both, fewer rows of the rarer class are drawn.",
            rich_help_panel=_ROWS,
        ),
    ] = "none"
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Draw only rows with this value, or numbers from LOW to HIGH by LOW..HIGH; with "
            "none after COLUMN= those where it is missing. Repeat it for more columns. --rows are "
            "still that many. Needs --save.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="What every drawn row keeps, by public knowledge: 'begin <= end' of two columns, "
            "'10 <= hours <= 60', or a FILE whose lines are the combinations of its columns that "
            "there may be. Repeat it for more. --rows are still that many. Needs --save.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with the sensitive columns: groups that are missing in private rows "
            "are predicted from them.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    per_unit: Annotated[
        int,
        typer.Option(
            help="Rows of one unit that are read, its first ones. The noise grows in proportion.",
            rich_help_panel=COLUMNS,
        ),
    ] = 1
    visits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Second table: visits of the persons of PRIVATE, many for one, linked by --key.",
            rich_help_panel=_TWO,
        ),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of both tables that says whose row it is. It is made anew.",
            rich_help_panel=_TWO,
        ),
    ] = None
    most: Annotated[
        int,
        typer.Option(
            help="Visits of one person that are read, chosen at random. The noise on what is "
            "learnt of the visits grows in proportion.",
            rich_help_panel=_TWO,
        ),
    ] = 10
    carry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the persons, declared by --schema as categories, on which visits "
            "depend beside label and groups; may be repeated.",
            rich_help_panel=_TWO,
        ),
    ] = None
    visits_schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="As --schema, of the second table.", rich_help_panel=_TWO
        ),
    ] = None
    test_visits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Visits of the persons of --test: drawn visits are compared with them, and how "
            "alike those of one person are. The guarantee does not cover these numbers.",
            rich_help_panel=_TWO,
        ),
    ] = None
    visits_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Second table to write.",
            show_default="the name of --out with .visits",
            rich_help_panel=_TWO,
        ),
    ] = None
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace the files of --out if they are there.",
            rich_help_panel=FILES,
        ),
    ] = False
    raw: Raw = False

    @property
    def balanced(self) -> tuple[str, ...]:
        """What is spread evenly."""
        if self.balance is not None and self.fairness != "none":
            raise ValueError(
                f"--fairness spreads groups evenly and says the labels' shares within each, so "
                f"that --balance {self.balance!r} would say nothing. Leave one of the two out."
            )
        given = "label,sensitive" if self.balance is None else self.balance
        words = tuple(word.strip() for word in given.split(",") if word.strip())
        if words == ("none",):
            return ()
        for word in words:
            one_of("--balance", word, ("label", "sensitive", "none"))
        if not words or "none" in words:
            raise ValueError(
                f"--balance must be label, sensitive, both, or none, got {self.balance!r}."
            )
        return words

    @classmethod
    def more_help(cls) -> dict[str, list[tuple[str, str]]]:
        """Return what each method learns from, and its settings."""
        return {
            f"Methods, for {records}": [
                (
                    name,
                    f"{kind.words}{', needs PyTorch' if kind.needs else ''}; settings: "
                    f"{', '.join(types_of(kind))}",
                )
                for name, kind in generators(payload, offered=True).items()
            ]
            for payload, records in (("tables", "tables"), ("images", "pictures"))
        }

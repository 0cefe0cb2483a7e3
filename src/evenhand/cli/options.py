"""Options that several commands share, each with its help text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand import _words
from evenhand._random import LARGEST_SEED
from evenhand._values import show_values
from evenhand.cli import vocabulary

if TYPE_CHECKING:
    from evenhand._signing import PrivateKey


COLUMNS: Final = "Columns"
FILES: Final = "Files and messages"
PRIVACY: Final = "Privacy"
FAIRNESS: Final = "Fairness"
TEACHERS: Final = "Teachers"
ACCOUNT: Final = "Account of the data set, over all runs"


def choice(names: Iterable[str], *spelled: str, **more: Any) -> Any:
    """Return an option whose value is one of these words, which help and completion list."""
    listed = list(names)
    return typer.Option(*spelled, metavar="|".join(listed), autocompletion=lambda: listed, **more)


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout, and words on stderr only.")
]


def _show(context: typer.Context, asked: bool) -> bool:
    """Quote private values until the whole command line ends: its last line is the message."""
    if asked:
        context.find_root().with_resource(show_values())
    return asked


ShowValues = Annotated[
    bool,
    typer.Option(
        "--show-values",
        callback=_show,
        is_eager=True,
        help="Quote private values, labels, groups and counts in messages. For your own screen: "
        "by default a message names the column and the row alone.",
        rich_help_panel=FILES,
    ),
]


def _separator(context: typer.Context, given: str | None) -> str | None:
    if given is not None:
        _written(context, separator={"tab": "\t", "\\t": "\t"}.get(given, given))
    return given


def _encoding(context: typer.Context, given: str | None) -> str | None:
    if given is not None:
        _written(context, encoding=given)
    return given


def _written(context: typer.Context, **how: str) -> None:
    """Read all tables of the command in this way."""
    from evenhand.datasets.files import tables_written

    context.find_root().with_resource(tables_written(**how))


Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="CHARACTER",
        callback=_separator,
        help="What stands between two values in every CSV that is read; tab for a tab.",
        show_default="found in the header: comma, semicolon, tab or |",
        rich_help_panel=FILES,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        callback=_encoding,
        help="Encoding of every CSV that is read, such as latin-1.",
        show_default="UTF-8, or UTF-16 where a file begins as such",
        rich_help_panel=FILES,
    ),
]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Write text as it is, also where a spreadsheet would run it as a formula (it begins "
        "with = + - @, a tab or a carriage return). By default it gets an apostrophe in front.",
        rich_help_panel=FILES,
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder that train, demo or save() wrote.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to leave out, such as an identifier; may be repeated.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to learn as it is, although it looks like an identifier, a date or numbers in "
        "text; may be repeated. See evenhand inspect.",
        rich_help_panel=COLUMNS,
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="TYPE",
        help="Type that a student or notion of your own is made of, as the error names it; may be "
        "repeated. "
        "Only for a folder whose maker you trust: reading it may then run code.",
        show_default="none",
        rich_help_panel=FILES,
    ),
]
Sign = Annotated[
    Path | None,
    typer.Option(
        metavar="KEY.pem",
        help="Private Ed25519 key to sign the folder with; see evenhand verify.",
        show_default="not signed",
        rich_help_panel=FILES,
    ),
]


def private_key(file: Path | None) -> PrivateKey | None:
    """Read the key of --sign, before anything is spent."""
    if file is None:
        return None
    from evenhand._signing import PrivateKey

    return PrivateKey.read(file)


Epsilon = Annotated[
    float,
    typer.Option(
        help="Privacy loss that the whole run may spend, in nats. Greater than 0; below 1 is "
        "strong, above 10 says little, above 100 nothing.",
    ),
]
RunEpsilon = Annotated[
    float | None,
    typer.Option(
        help="Privacy loss that the whole run may spend, in nats. Greater than 0; below 1 is "
        "strong, above 10 says little, above 100 nothing. Needed by every method that is private.",
        show_default=False,
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        help="Probability with which epsilon may fail. Between 0 and 1; keep it well below one "
        "over the number of records, or the claim carries a warning.",
        rich_help_panel=PRIVACY,
    ),
]
NoiseName = Annotated[
    str,
    choice(
        vocabulary.NOISES,
        "--noise",
        help="Exact discrete noise, or floating-point noise (faster; the claim names it).",
        rich_help_panel=PRIVACY,
    ),
]
RunNoiseName = Annotated[
    str | None,
    choice(
        vocabulary.NOISES,
        "--noise",
        help="Exact discrete noise, or floating-point noise (faster; the claim names it).",
        show_default="exact; float for dpsgd",
        rich_help_panel=PRIVACY,
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        help="How far apart the groups' rates of an answer may be, among the answers that the "
        "model learns from. A difference of two rates, in [0, 1].",
    ),
]
Reference = Annotated[
    str,
    choice(
        _words.REFERENCES,
        help="What a group is compared with: all others pooled, each other one, or everybody.",
        rich_help_panel=FAIRNESS,
    ),
]
AllowSharedRows = Annotated[
    bool,
    typer.Option(
        "--allow-shared-rows",
        help="Go on where public rows are rows of the private table too. The guarantee does not "
        "cover the features of public rows.",
        rich_help_panel=FILES,
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        "--bins",
        metavar="COLUMN=N|EDGES",
        help="Cut a sensitive column of numbers into N ranges of about as many public rows, or at "
        "edges: age=4, age=25,45,65. May be repeated. Remembered with the model.",
        rich_help_panel=COLUMNS,
    ),
]
MergeSmall = Annotated[
    int,
    typer.Option(
        "--merge-small",
        metavar="N",
        help="Merge all groups of fewer than N public rows into one. Remembered with the model.",
        show_default="none",
        rich_help_panel=COLUMNS,
    ),
]
NTeachers = Annotated[
    int | None,
    typer.Option(
        "--teachers",
        help="Number of teachers, each trained on its own share of the private records. At most "
        "the number of records.",
        show_default="chosen from the number of records and the budget",
        rich_help_panel=TEACHERS,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=LARGEST_SEED,
        help="Seeds splits and models. It never seeds the privacy noise, so two runs differ.",
    ),
]

"""Options that several commands share, and their words as the objects they stand for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand import _words
from evenhand._checks import one_of, positive
from evenhand._random import LARGEST_SEED
from evenhand._values import show_values
from evenhand.cli.command import HelpAll, Options

if TYPE_CHECKING:
    from evenhand._signing import PrivateKey
    from evenhand.privacy.noise import Noise
    from evenhand.teachers.ensemble import Teachers
    from evenhand.voting.blocks import Mechanism

COLUMNS: Final = "Columns"
FILES: Final = "Files and messages"
PRIVACY: Final = "Privacy"
FAIRNESS: Final = "Fairness"
TEACHERS: Final = "Teachers"
ACCOUNT: Final = "Account of the data set, over all runs"

NOISES: Final = ("exact", "float")

BACKENDS: Final = ("processes", "ray")
"""Where work is done: on this machine, or on a cluster."""


def names(option: str, given: str) -> list[str]:
    """Return the names of an option ``A,B,...``."""
    found = [name.strip() for name in given.split(",")]
    if "" in found or len(set(found)) < len(found):
        raise ValueError(
            f"{option} must be names with commas between them, none of them empty or twice, got "
            f"{given!r}."
        )
    return found


def choice(
    names: Iterable[str],
    *spelled: str,
    own: Callable[[str], str] | None = None,
    **more: Any,
) -> Any:
    """Return an option whose value is one of these words, which help and completion list.

    With ``own`` it may also be MODULE:CLASS, of which ``own`` returns the word.
    """
    listed = list(names)
    shown = listed if own is None else [*listed, "MODULE:CLASS"]

    def known(param: typer.CallbackParam, value: str | None) -> str | None:
        if own is not None and value is not None and ":" in value:
            return own(value)
        return None if value is None else one_of(param.opts[0], value, listed)

    more |= {"metavar": "|".join(shown), "autocompletion": lambda: listed, "callback": known}
    option: Any = typer.Option(*spelled, **more)
    return option


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout, and words on stderr only.")
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
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to leave out, such as an identifier; may be repeated.",
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
Owner = Annotated[
    str, typer.Option("--owner", metavar="NAME", help="Your name, as the aggregator knows it.")
]
OwnKey = Annotated[
    Path | None,
    typer.Option(metavar="KEY.pem", help="Signs.", show_default="NAME.key.pem, of owner keys"),
]
OwnersKeys = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Public keys of the owners, NAME.pub.pem, from a source other than their files.",
        show_default="those in the files, which the claim warns of",
        rich_help_panel=FILES,
    ),
]
EPSILON: Final = (
    "Privacy loss that the whole run may spend, in nats. Greater than 0; below 1 is strong, above "
    "10 says little, above 100 nothing."
)
Epsilon = Annotated[float, typer.Option(help=EPSILON)]
Delta = Annotated[
    float,
    typer.Option(
        help="Probability with which epsilon may fail. Between 0 and 1; keep it well below one "
        "over the number of records, or the claim carries a warning.",
        rich_help_panel=PRIVACY,
    ),
]
NOISE: Final = "Exact discrete noise, or floating-point noise (faster; the claim names it)."
NoiseName = Annotated[
    str,
    choice(
        NOISES,
        "--noise",
        help=NOISE,
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


def reference(**shown: Any) -> Any:
    """Return the option that says what a group is compared with."""
    return choice(
        _words.REFERENCES,
        help="What a group is compared with: all others pooled, each other one, or everybody.",
        **shown,
    )


Reference = Annotated[str, reference(rich_help_panel=FAIRNESS)]


def admit_by(panel: str) -> Any:
    """Return the option that says what a gate about true classes goes by."""
    return choice(
        _words.ADMIT_BY,
        help="What of a gap about true classes must be within its margin for an answer to be "
        "given: its upper limit, or its estimate, of which nothing is promised.",
        rich_help_panel=panel,
    )


def gate_level(panel: str) -> Any:
    """Return the option for the confidence of that limit."""
    option: Any = typer.Option(
        metavar="SHARE",
        help="Confidence of that limit, over the calibration rows. In (0, 1).",
        rich_help_panel=panel,
    )
    return option


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


def _seed(given: int | None) -> int | None:
    if given is not None and not 0 <= given <= LARGEST_SEED:
        raise typer.BadParameter(f"{given} is not in the range 0<=x<={LARGEST_SEED}.")
    return given


Seed = Annotated[
    int | None,
    typer.Option(
        callback=_seed,  # as a range it would take the width of the help page that words need
        help="Seeds splits, models and drawn rows: 0 or more. It never seeds the privacy noise, so "
        "two runs differ.",
    ),
]


def _show(context: typer.Context, asked: bool) -> bool:
    """Quote private values until the whole command line ends: its last line is the message."""
    if asked:
        context.find_root().with_resource(show_values())
    return asked


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


@dataclass(frozen=True, kw_only=True)
class ReadsTables(Options):
    """Options of every command that reads tables of a user's own."""

    sep: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTER",
            callback=_separator,
            help="What stands between two values in every CSV that is read; tab for a tab.",
            show_default="found in the header: comma, semicolon, tab or |",
            rich_help_panel=FILES,
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=_encoding,
            help="Encoding of every CSV that is read, such as latin-1.",
            show_default="UTF-8, or UTF-16 where a file begins as such",
            rich_help_panel=FILES,
        ),
    ] = None
    show_values: ShowValues = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ReadsModel(ReadsTables):
    """Options of every command that reads a model folder as well."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder that train, demo or save() wrote.")
    ]
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Type of your own, of a student, notion or generator, as the error names it; may "
            "be repeated. Only for a folder whose maker you trust: reading it may then run code.",
            show_default="none",
            rich_help_panel=FILES,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReadsPrivate(ReadsTables):
    """Options of every command that spends privacy on a private table of the user's own."""

    drop: Drop = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column to learn as it is, although it looks like an identifier, a date or "
            "numbers in text; may be repeated. See evenhand inspect.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says whose record a row is. The guarantee is then for each of these, "
            "with the records that are read of it, instead of for each record.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    unit_name: Annotated[
        str,
        typer.Option(metavar="NOUN", help="What a unit is, in the claim.", rich_help_panel=COLUMNS),
    ] = "person"
    delta: Delta = 1e-5
    noise: Annotated[
        str | None,
        choice(
            NOISES,
            help=NOISE,
            show_default="exact; float for dpsgd, and for pictures learnt by networks",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    seed: Seed = None
    sign: Sign = None
    help_all: HelpAll = False


def private_key(file: Path | None) -> PrivateKey | None:
    """Read the key of --sign, before anything is spent."""
    if file is None:
        return None
    from evenhand._signing import PrivateKey

    return PrivateKey.read(file)


def _logistic() -> Teachers:
    from evenhand.teachers import LogisticTeachers

    return LogisticTeachers()


def _mlp() -> Teachers:
    from evenhand.teachers import MLPTeachers

    return MLPTeachers()


def _tree() -> Teachers:
    from sklearn.tree import DecisionTreeClassifier

    from evenhand.teachers import SklearnTeachers

    return SklearnTeachers(DecisionTreeClassifier(max_depth=6))


def _forest() -> Teachers:
    from sklearn.ensemble import RandomForestClassifier

    from evenhand.teachers import SklearnTeachers

    return SklearnTeachers(RandomForestClassifier(n_estimators=20, min_samples_leaf=2))


TEACHER_KINDS: Final[Mapping[str, Callable[[], Any]]] = {
    "logistic": _logistic,
    "mlp": _mlp,
    "tree": _tree,
    "forest": _forest,
}


def teachers(name: str) -> Teachers:
    """Return how teachers are trained."""
    made: Teachers = TEACHER_KINDS[name]()
    return made


def noise(name: str) -> Noise:
    """Return a source of noise that protects; the seeded one is for tests only and has no word."""
    from evenhand.privacy import DiscreteNoise, FloatNoise

    return DiscreteNoise() if name == "exact" else FloatNoise()


def mechanism(
    *, sigma: float | None, threshold: float | None, sigma_check: float | None
) -> Mechanism | None:
    """Return the mechanism that the numbers describe, or None for the default."""
    from evenhand.privacy import ConfidentGNMax, GNMax

    if threshold is None and sigma_check is None:
        return None if sigma is None else GNMax(sigma=positive("--sigma", sigma))
    if sigma is None or threshold is None or sigma_check is None:
        given = {"--sigma": sigma, "--threshold": threshold, "--sigma-check": sigma_check}
        absent = " and ".join(name for name, value in given.items() if value is None)
        raise ValueError(
            f"A noisy threshold needs --threshold, --sigma-check and --sigma together; {absent} "
            f"is missing. Give all three, or --sigma alone for a noisy maximum without it."
        )
    return ConfidentGNMax(threshold=threshold, sigma_check=sigma_check, sigma=sigma)


@contextmanager
def workers(backend: str) -> Iterator[None]:
    """Let joblib work in processes of this machine, or on the Ray cluster of RAY_ADDRESS."""
    if backend == BACKENDS[0]:
        yield
        return
    from evenhand.frontier.cluster import on_ray

    # Ray tells of lost machines on stdout, which is for results.
    with redirect_stdout(sys.stderr), on_ray():
        yield

"""The options of ``evenhand train`` and their words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from evenhand import _words
from evenhand._notions import NOTIONS
from evenhand.cli import options
from evenhand.cli.command import from_file
from evenhand.cli.options import (
    ACCOUNT,
    BACKENDS,
    COLUMNS,
    EPSILON,
    FAIRNESS,
    FILES,
    PRIVACY,
    TEACHER_KINDS,
    TEACHERS,
    NTeachers,
    ReadsPrivate,
    Reference,
    choice,
)
from evenhand.cli.pictures import TrainsOnPictures
from evenhand.methods import METHODS

DEMOGRAPHIC_PARITY: Final = "demographic-parity"
GRADIENTS: Final = "Noisy gradients"
MECHANISM: Final = "Mechanism (default: chosen from public numbers)"


@dataclass(frozen=True, kw_only=True)
class TrainFlags(TrainsOnPictures, ReadsPrivate):
    """What can be written behind ``evenhand train``."""

    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE|SPEC.toml",
            callback=from_file,
            is_eager=True,
            help="Private records with labels: CSV (also .gz) or Parquet; a folder of Parquet "
            "files, or a URL such as s3://bucket/folder, whose rows stream to the teachers. Or a "
            "TOML file that names them, with options by their long names; flags stand above it.",
        ),
    ]
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the classes.")]
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder for the model and its report.")
    ]
    epsilon: Annotated[
        float | None,
        typer.Option(help=f"{EPSILON} Needed by every method that is private.", show_default=False),
    ] = None
    public: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with the same features and the sensitive columns. A label column in "
            "it is not read. Without it teachers are asked about rows that are drawn from noisy "
            "counts, which a part of the budget pays for.",
        ),
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Sensitive column; name several by repeating the option, and groups are their "
            "combinations. Not a feature.",
        ),
    ] = None
    margin: Annotated[
        float | None,
        typer.Option(
            help="How far apart the groups' rates may be, among the answers that the model learns "
            "from, and among its own decisions on the public rows. A difference of two rates, in "
            "[0, 1]. Needed by every method that keeps one, and for thresholds per group.",
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=lambda: [_words.AUTO, *METHODS],
            help=f"How the model is trained: {', '.join(METHODS)}; or auto, which chooses among "
            "them by what is public and what is asked for, and says why. The long help says what "
            "each of them does.",
        ),
    ] = _words.AUTO
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled rows to measure the model on. The guarantee does not cover these "
            "numbers.",
        ),
    ] = None
    fairness: Annotated[
        str,
        typer.Option(
            metavar="NAME|MODULE:CLASS",
            autocompletion=lambda: list(NOTIONS),
            help="What the margin is about: how often a class is predicted (demographic-parity); "
            "the same among records of one true class (equalized-odds); how often a prediction is "
            "wrong (error-parity); how often a class is predicted to records that are not of it, "
            "or are of it (false-positive-parity, true-positive-rate-parity); the whole "
            "distribution of the score (generalized-demographic-parity; sf-student and "
            "sf-teachers). Or a notion of your own by its "
            "class: its module is imported, which runs its code.",
        ),
    ] = DEMOGRAPHIC_PARITY
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Keep the margin on new rows with this confidence, such as .95: the model is "
            "chosen by public rows that it was not fitted on, and says the narrowest margin that "
            "so many rows support.",
            rich_help_panel=FAIRNESS,
        ),
    ] = None
    without_privacy: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Folder of a model of --method non-private whose error on --test may be known, "
            "to read beside.",
            rich_help_panel=FILES,
            show_default=False,
        ),
    ] = None
    public_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Instead of --public: share of the private rows, in (0, 1), to treat as public. "
            "This GIVES AWAY the features and groups of these rows: the guarantee does not cover "
            "them.",
            rich_help_panel=FILES,
        ),
    ] = None
    synthetic_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the budget, in (0, 1), that pays for the noisy counts from which rows "
            "are drawn. With --public the teachers are asked about its rows, and the student "
            "learns what the counts say of labels beside the answers.",
            show_default=f"without public rows {_words.SYNTHETIC_SHARE:g} where shares are "
            f"released, else {_words.SHARE_FOR_ROWS:g}; with them no counts",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    check_drift: Annotated[
        bool,
        typer.Option(
            "--check-drift",
            help=f"Say in which columns the public rows do not look like the private ones: "
            f"{_words.DRIFT_SHARE:.0%} of the budget pays for noisy counts of the private ones.",
            rich_help_panel=PRIVACY,
        ),
    ] = False
    neighbors: Annotated[
        str | None,
        typer.Option(
            metavar="CHANGE",
            help=f"The change of the private data that the claim is about: "
            f"{' or '.join(map(repr, _words.NEIGHBORS))}.",
            show_default="of teachers add or remove one with --unit and where noisy counts pay for "
            "drawn rows, else replace one; that of dpsgd is always add or remove one",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with features, label and sensitive columns, on which a --fairness "
            "about true classes is read. --method fairpate needs it, and asks the teachers about "
            "it; of others it is read from the released answers without it.",
            rich_help_panel=FILES,
        ),
    ] = None
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Declared columns in JSON: kinds, categories, bounds.",
            show_default="read from the public rows",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="The favourable class, for the report; with --fairness false-positive-parity also "
            "the one class that is meant.",
            show_default="the last of two",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=N|EDGES",
            help="Cut a sensitive column of numbers into N ranges of about as many public rows, or "
            "at edges: age=4, age=25,45,65. May be repeated. Remembered with the model.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    merge_small: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Merge all groups of fewer than N public rows into one. Remembered with the "
            "model.",
            show_default="none",
            rich_help_panel=COLUMNS,
        ),
    ] = 0
    rows_per_teacher: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Let the rows of a Parquet file stream to the teachers, each of which keeps N at "
            "most; the table is not held in memory. A folder and a URL always stream.",
            show_default="1000 where rows stream",
            rich_help_panel=FILES,
        ),
    ] = None
    scratch: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where rows stream: deal them to files in this folder, and train the teachers "
            "from there, a part at a time. Private rows lie in it meanwhile.",
            show_default="in memory",
            rich_help_panel=FILES,
        ),
    ] = None
    backend: Annotated[
        str,
        choice(
            BACKENDS,
            help="Where rows that stream are dealt and teachers trained: on this machine, or on "
            "the Ray cluster that RAY_ADDRESS names (extra ray). On a cluster --scratch is needed: "
            "a folder that all its machines see, as they must see the rows.",
            rich_help_panel=FILES,
        ),
    ] = BACKENDS[0]
    allow_shared_rows: Annotated[
        bool,
        typer.Option(
            "--allow-shared-rows",
            help="Go on where public rows are rows of the private table too. The guarantee does "
            "not cover the features of public rows.",
            rich_help_panel=FILES,
        ),
    ] = False
    protect: Annotated[
        str | None,
        choice(
            ("record", "attribute"),
            help="What the guarantee is about: the whole record, or the sensitive attribute alone, "
            "with features and labels taken as public. The second must be said, for the methods "
            "that promise no more.",
            show_default="record",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    reference: Reference = "rest"
    group_thresholds: Annotated[
        bool,
        typer.Option(
            "--group-thresholds",
            help="Decide at thresholds by group, set on the public rows so that they keep the "
            "margin. predict then needs the group of each row. For two classes. About true classes "
            "they are set on the rows of --calibration, or go by the model's own probabilities.",
            rich_help_panel=FAIRNESS,
        ),
    ] = False
    score_counts: Annotated[
        bool | None,
        typer.Option(
            "--score-counts/--no-counts",
            help="Of dpsgd with --group-thresholds: set them on the private rows' scores as well, "
            "counted by group and released with noise for a tenth of the budget. No public row "
            "need have a group then.",
            show_default="with a method that was chosen, where the budget pays for it",
            rich_help_panel=FAIRNESS,
        ),
    ] = None
    tightening: Annotated[
        float | None,
        typer.Option(
            metavar="ERRORS",
            help="Of --group-thresholds: set them inside the margin by so many standard errors of "
            "the gap, for the rows that set them are a sample. At least 0.",
            show_default="1 with a method that was chosen, else 0",
            rich_help_panel=FAIRNESS,
        ),
    ] = None
    blind_rule: Annotated[
        bool,
        typer.Option(
            "--blind-rule",
            help="Keep the margin by a rule on the model's probabilities, set on the public rows, "
            "that infers the group from the features: predict needs no group. About true classes "
            "it is set on the rows of --calibration.",
            rich_help_panel=FAIRNESS,
        ),
    ] = False
    pull: Annotated[
        float | None,
        typer.Option(
            metavar="WEIGHT",
            help="Of sf-student and sf-teachers: how near the model stays to the one that public "
            "features and labels give. With sf-teachers, 0 protects the labels too.",
            show_default="0.001 for sf-student, 0.3 for sf-teachers",
            rich_help_panel=FAIRNESS,
        ),
    ] = None
    fairness_weight: Annotated[
        float,
        typer.Option(
            metavar="WEIGHT",
            help="Of dp-fermi: how much dependence of decision and group costs, beside the loss. "
            "At least 0.",
            rich_help_panel=FAIRNESS,
        ),
    ] = 1.0
    at: Annotated[
        str,
        choice(
            _words.POINTS,
            help="Of intervention: before, in or after the teachers; at the aggregator; before, in "
            "or after the student.",
            rich_help_panel=FAIRNESS,
        ),
    ] = "aggregator"
    hidden: Annotated[
        list[int] | None,
        typer.Option(
            metavar="WIDTH",
            help="Of dpsgd, dp-fermi and pf-ld: width of a hidden layer; repeat the option for "
            "several, 0 for none: logistic regression.",
            show_default="none",
            rich_help_panel=GRADIENTS,
        ),
    ] = None
    degree: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Of dpsgd: degree of the curves that stand beside each number, 0 for none.",
            show_default="3 where the budget pays for it, else 0",
            rich_help_panel=GRADIENTS,
        ),
    ] = None
    architecture: Annotated[
        str | None,
        choice(
            _words.PIXEL_NETWORKS,
            help="Of dpsgd and dp-fermi, on pixels (--images --extractor none): the network.",
            show_default=f"{_words.PIXEL_NETWORKS[0]} for pixels",
            rich_help_panel=GRADIENTS,
        ),
    ] = None
    n_teachers: NTeachers = None
    teacher: Annotated[
        str,
        choice(
            (*TEACHER_KINDS, *_words.PIXEL_NETWORKS),
            help="What a teacher is. mlp needs the extra torch, and so do the networks that "
            "follow, which read pixels (--images --extractor none).",
            show_default="logistic; convolutional for pixels",
            rich_help_panel=TEACHERS,
        ),
    ] = "logistic"
    answers: Annotated[
        str | None,
        choice(
            _words.ANSWERS,
            help="What --method pate releases about a public row: noisy shares of the votes, for a "
            "model that knows the noise, or a noisy label.",
            show_default="shares; labels with --sigma",
            rich_help_panel=MECHANISM,
        ),
    ] = None
    answer_margin: Annotated[
        bool,
        typer.Option(
            "--answer-margin/--no-answer-margin",
            help="Of fairpate: whether its gate holds the answers within the margin. Without it "
            "the margin binds the student alone, and no answer is refused for it.",
            rich_help_panel=MECHANISM,
        ),
    ] = True
    admit_by: Annotated[str, options.admit_by(FAIRNESS)] = _words.ADMIT_BY[0]
    gate_level: Annotated[float, options.gate_level(FAIRNESS)] = 0.95
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of the noise on each count, in votes.",
            show_default=False,
            rich_help_panel=MECHANISM,
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Ask a cheap question first: do this many teachers agree? In votes.",
            show_default=False,
            rich_help_panel=MECHANISM,
        ),
    ] = None
    sigma_check: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of the noise on that question, in votes.",
            show_default=False,
            rich_help_panel=MECHANISM,
        ),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where the account is kept: a SQLite file, or a PostgreSQL URL.",
            rich_help_panel=ACCOUNT,
        ),
    ] = None
    account: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of the account.", rich_help_panel=ACCOUNT),
    ] = "default"
    account_epsilon: Annotated[
        float | None,
        typer.Option(
            help="What all runs on this data set may spend together, at the same delta. Needed "
            "with --ledger, and the same in every run.",
            show_default=False,
            rich_help_panel=ACCOUNT,
        ),
    ] = None

    @classmethod
    def more_help(cls) -> dict[str, list[tuple[str, str]]]:
        """Return what each method does."""
        auto = (_words.AUTO, "The method that fits the case: docs/choosing.md has the rule.")
        return {"Methods": [auto, *((name, spec.words) for name, spec in METHODS.items())]}

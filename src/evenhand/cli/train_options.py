"""The options of ``evenhand train``, as flags and as keys of its TOML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand import _words
from evenhand._notions import NOTIONS
from evenhand.cli import options, vocabulary
from evenhand.cli.command import HelpAll, Options, from_file
from evenhand.cli.options import ACCOUNT, COLUMNS, FAIRNESS, FILES, PRIVACY, TEACHERS, choice
from evenhand.cli.tables import Roles
from evenhand.methods import METHODS, method_named

if TYPE_CHECKING:
    from evenhand.estimators.spec import MethodSpec

DEMOGRAPHIC_PARITY = "demographic-parity"
GRADIENTS = "Noisy gradients"
MECHANISM = "Mechanism (default: chosen from public numbers)"


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """What a run of ``evenhand train`` was asked to do."""

    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE|SPEC.toml",
            callback=from_file,
            is_eager=True,
            help="Private records with labels: CSV (also .gz) or Parquet. Or a TOML file that "
            "names them, with options by their long names; flags stand above it.",
        ),
    ]
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the classes.")]
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder for the model and its report.")
    ]
    epsilon: options.RunEpsilon = None
    public: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with the same features and the sensitive columns. A label column in "
            "it is not read.",
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
            autocompletion=lambda: list(METHODS),
            help=f"How the model is trained: {', '.join(METHODS)}. The "
            "long help says what each of them does.",
        ),
    ] = "fair-shares"
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
            "sf-teachers). All but the first bind the model alone. Or a notion of your own by its "
            "class: its module is imported, which runs its code.",
        ),
    ] = DEMOGRAPHIC_PARITY
    drop: options.Drop = None
    seed: options.Seed = None
    json: options.Json = False
    help_all: HelpAll = False
    public_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Instead of --public: share of the private rows, in (0, 1), to treat as public. "
            "The guarantee does not cover the features of these rows.",
            rich_help_panel=FILES,
        ),
    ] = None
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with features, label and sensitive columns, on which a --fairness "
            "about true classes is read. Without it, it is read from the released answers.",
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
    keep: options.Keep = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says whose record a row is. The guarantee is then for each of these, "
            "with all of its records, instead of for each record.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    unit_name: Annotated[
        str,
        typer.Option(metavar="NOUN", help="What a unit is, in the claim.", rich_help_panel=COLUMNS),
    ] = "person"
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
    bins: options.Bins = None
    merge_small: options.MergeSmall = 0
    allow_shared_rows: options.AllowSharedRows = False
    delta: options.Delta = 1e-5
    noise: options.RunNoiseName = None
    protect: Annotated[
        str | None,
        choice(
            vocabulary.PROTECTS,
            help="What the guarantee is about: the whole record, or the sensitive attribute alone, "
            "with features and labels taken as public. The second must be said, for the methods "
            "that promise no more.",
            show_default="record",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    reference: options.Reference = "rest"
    rule: Annotated[
        str,
        choice(
            _words.RULES,
            help="Keep every group within the margin, or follow the published algorithm, for "
            "comparison.",
            rich_help_panel=FAIRNESS,
        ),
    ] = "sound"
    group_thresholds: Annotated[
        bool,
        typer.Option(
            "--group-thresholds",
            help="Decide at one threshold per group, set on the public rows so that they keep the "
            "margin. predict then needs the group of each row. For two classes.",
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
            help="Of dpsgd and pf-ld: width of a hidden layer; repeat the option for several.",
            show_default="none: logistic regression",
            rich_help_panel=GRADIENTS,
        ),
    ] = None
    n_teachers: options.NTeachers = None
    teacher: Annotated[
        str,
        choice(
            vocabulary.TEACHERS,
            help="What a teacher is. mlp needs the extra torch.",
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
    sign: options.Sign = None
    sep: options.Separator = None
    encoding: options.Encoding = None
    show_values: options.ShowValues = False

    @classmethod
    def more_help(cls) -> dict[str, list[tuple[str, str]]]:
        """Return what each method does."""
        return {"Methods": [(name, spec.words) for name, spec in METHODS.items()]}

    @property
    def spec(self) -> MethodSpec:
        """The record of the method."""
        return method_named("--method", self.method)

    @property
    def roles(self) -> Roles:
        """What the columns are for."""
        return Roles(
            label=self.label,
            sensitive=tuple(self.sensitive or ()),
            unit=self.unit,
            drop=tuple(self.drop or ()),
            keep=tuple(self.keep or ()),
        )

    @property
    def compared_with(self) -> str:
        """What a group is compared with."""
        return self.spec.reference or self.reference

    @property
    def trains_within_margin(self) -> bool:
        """Whether the training itself keeps the margin; if it need not, thresholds keep it."""
        asked = self.margin is not None and not self.group_thresholds
        return self.spec.margin == "needed" or (self.spec.margin == "optional" and asked)

    @property
    def trains_by_groups(self) -> bool:
        """Whether the training itself tells groups apart."""
        return self.trains_within_margin or self.spec.margin == "weight"

    @property
    def trains_by_public_groups(self) -> bool:
        """Whether training reads the groups of the public rows, where there are some."""
        weighs = self.spec.margin == "weight"  # by shares that public rows hold for one notion
        own = self.spec.public_groups and not (weighs and self.fairness != DEMOGRAPHIC_PARITY)
        return own and self.trains_by_groups

    @property
    def reads_groups_of(self) -> tuple[str, ...]:
        """Whose groups are read: of the public rows, of the private rows."""
        public = self.group_thresholds or self.spec.teachers or self.trains_by_public_groups
        public &= self.spec.protects == "record"
        private = self.trains_by_groups and self.spec.reads_private_groups(vars(self))
        return ("public",) * public + ("private",) * private

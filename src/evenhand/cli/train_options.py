"""What a training run was asked for: its options, what goes together, and the estimator."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand import _words
from evenhand._checks import non_negative, one_of, open_unit
from evenhand._notions import NOTIONS, OF_DECISIONS
from evenhand._roles import Roles
from evenhand.cli import options, pictures
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
from evenhand.methods import METHODS, method_named

if TYPE_CHECKING:
    from evenhand.cli.tables import TrainingTables
    from evenhand.estimators.auto import Choice
    from evenhand.estimators.spec import MethodSpec
    from evenhand.estimators.synthetic_rows import SyntheticRows
    from evenhand.fairness.notion import Notion

DEMOGRAPHIC_PARITY: Final = "demographic-parity"
GRADIENTS: Final = "Noisy gradients"
MECHANISM: Final = "Mechanism (default: chosen from public numbers)"


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TrainsOnPictures, ReadsPrivate):
    """What a run of ``evenhand train`` was asked to do."""

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
            "learns labels by the counts beside the answers.",
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

    @property
    def spec(self) -> MethodSpec:
        """The record of the method."""
        return method_named("--method", self.method)

    @property
    def reads_pixels(self) -> bool:
        """Whether teachers read the pixels of pictures."""
        return self.images and self.extractor == "none"

    @property
    def teacher_kind(self) -> str:
        """What a teacher is."""
        chosen = self.reads_pixels and "teacher" not in self.given
        return _words.PIXEL_NETWORKS[0] if chosen else self.teacher

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
    def draws_rows(self) -> bool:
        """Whether the rows that teachers are asked about are drawn from noisy counts."""
        given = self.public is not None or self.public_fraction is not None
        return self.spec.draws_rows and not given and not self.images

    @property
    def keeps_margin_after(self) -> bool:
        """Whether the margin is kept around the fitted model, by thresholds or a blind rule."""
        return self.group_thresholds or self.blind_rule

    @property
    def trains_within_margin(self) -> bool:
        """Whether the training itself keeps the margin; if it need not, what comes after does."""
        asked = self.margin is not None and not self.keeps_margin_after
        return self.spec.margin == "needed" or (self.spec.margin == "optional" and asked)

    @property
    def trains_by_groups(self) -> bool:
        """Whether the training itself tells groups apart."""
        return self.trains_within_margin or self.spec.margin == "weight"

    @property
    def trains_by_public_groups(self) -> bool:
        """Whether training reads the groups of the public rows, where there are some."""
        weighs = self.spec.margin == "weight"  # by shares that public rows hold for one notion
        own = self.spec.reads_public_groups(vars(self)) and not (
            weighs and self.fairness != DEMOGRAPHIC_PARITY
        )
        return own and self.trains_by_groups

    @property
    def reads_groups_of(self) -> tuple[str, ...]:
        """Whose groups are read: of the public rows, of the private rows."""
        public = self.keeps_margin_after or self.spec.teachers or self.trains_by_public_groups
        public &= self.spec.protects == "record"
        private = self.trains_by_groups and (
            self.check_drift or self.spec.reads_private_groups(vars(self))
        )
        return ("public",) * public + ("private",) * private


def resolved(given: TrainOptions, columns: Collection[str] = ()) -> tuple[TrainOptions, Choice]:
    """Return the options with the method that fits the case, and why it does.

    Parameters
    ----------
    given : TrainOptions
    columns : collection of str
        Those of the private table, once they are known.
    """
    from evenhand.estimators.auto import Case, choose
    from evenhand.fairness.notion import RateNotion

    if given.sensitive and given.margin is None:
        raise ValueError(
            "--margin is missing. Say how far apart the groups' rates may be, for example "
            "--margin 0.05; or name a method that keeps none, and only measure it: --method dpsgd."
        )
    notion = _notion_of(given)
    case = Case(
        protect=given.protect or "record",
        units=given.unit is not None,
        account=given.ledger is not None,
        streams=streams(given),
        for_teachers=bool(_of_teachers(given)),
        margin=given.margin is not None and not given.blind_rule,
        of_decisions_alone=notion.name == DEMOGRAPHIC_PARITY,
        of_true_classes=notion.needs_labels,
        of_rates=issubclass(notion, RateNotion),
        confident=given.confidence is not None,
        group_at_prediction=given.group_thresholds,
        public_groups=given.public is not None or given.public_fraction is not None,
        public_labels=given.calibration is not None,
        private_groups=not columns or all(name in columns for name in given.sensitive or ()),
        scaled=_scaled(given),
    )
    choice = choose(case)
    return replace(given, method=choice.method), choice


def _notion_of(given: TrainOptions) -> type[Notion]:
    """Return the class of the notion."""
    from evenhand.fairness.notions import notion_named

    if ":" not in given.fairness:
        one_of("--fairness", given.fairness, NOTIONS)
    return notion_named(given.fairness)


def _of_teachers(given: TrainOptions) -> list[str]:
    """Return the options that were given, and that teachers alone read."""
    by_gradients, after = METHODS["dpsgd"], _read_after(given.given)
    teachers = METHODS["fair-shares"], METHODS["pate"]
    return [
        option
        for option in NOT_ALWAYS_READ
        if option in given.given
        and option not in after
        and not by_gradients.accepts(option)
        and any(known.accepts(option) for known in teachers)
    ]


def streams(given: TrainOptions) -> bool:
    """Return whether the private rows stream from files."""
    from evenhand.cli.tables import stream_of

    return not given.images and (
        stream_of(given.private, given.rows_per_teacher, given.scratch) is not None
    )


def _scaled(given: TrainOptions) -> bool:
    """Whether something public scales the columns."""
    from evenhand.cli.tables import declared_schema
    from evenhand.estimators.auto import scales

    if given.public is not None or given.public_fraction is not None or given.images:
        return True
    return given.schema is not None and scales(declared_schema(given.schema, given.roles))


def check(given: TrainOptions) -> None:
    """Refuse options that do not go together, before any file is read."""
    known = given.spec
    _refuse_protection(known, given.protect)
    _refuse_useless(known, given.given)
    pictures.check(given, teacher=given.teacher_kind, reads_pixels=known.reads_pictures)
    _notion_of(given)
    if given.pull is not None:
        non_negative("--pull", given.pull)
    non_negative("--fairness-weight", given.fairness_weight)
    if not (given.keeps_margin_after and known.margin != "needed"):  # what comes after keeps any
        _refuse_notion(known, given.fairness)
    if known.private and given.epsilon is None:
        raise ValueError(
            "--epsilon is missing. Say how much privacy loss is allowed, for example "
            "--epsilon 3; for a reference that is not private at all: --method non-private."
        )
    if known.private:
        _budget(given)
    _check_margin(given)
    _check_public(given)
    mechanism = options.mechanism(
        sigma=given.sigma, threshold=given.threshold, sigma_check=given.sigma_check
    )
    if given.answers == "shares" and mechanism is not None:
        raise ValueError(
            f"--answers shares spends the budget on all public rows alike, and {mechanism!r} "
            f"draws labels. Leave out --sigma, --threshold and --sigma-check."
        )


def estimator_of(given: TrainOptions, tables: TrainingTables) -> Any:
    """Return the estimator that the options stand for."""
    margin = given.margin if given.trains_within_margin else 0.0  # by a weight: equal rates
    own_noise = given.ledger is None and given.noise is not None
    settings = vars(given) | {
        "hidden": None if given.hidden is None else tuple(filter(None, given.hidden))
    }
    return given.spec.make(
        settings,
        fairness=fairness_of(given, margin, tables) if given.trains_by_groups else None,
        any_public=tables.X_public is not None or given.public_fraction is not None,
        public=_drawn_rows(given),
        check_drift=given.check_drift,
        schema=tables.schema,
        random_state=given.seed,
        public_fraction=given.public_fraction,
        noise=options.noise(given.noise) if own_noise and given.noise else None,
        teachers=_teachers_of(given),
        **_networks_of(given),
        unit=given.unit_name,
    )


def _drawn_rows(given: TrainOptions) -> SyntheticRows | None:
    """Return how rows are drawn; None where there are public ones, and no share for counts."""
    if not given.draws_rows and given.synthetic_share is None:
        return None
    from evenhand.estimators.synthetic_rows import SyntheticRows

    return SyntheticRows(share=given.synthetic_share, keep=tuple(given.keep or ()))


def _teachers_of(given: TrainOptions) -> Any:
    """Return how teachers are trained; None for the method's own."""
    if given.reads_pixels:
        from evenhand.learners.nets.architectures import architecture_typed

        return architecture_typed(given.teacher_kind)
    return None if given.teacher == "logistic" else options.teachers(given.teacher)


def _networks_of(given: TrainOptions) -> dict[str, Any]:
    """Return the network that reads pixels, for whichever argument the method has for one."""
    if not given.reads_pixels:
        return {}
    from evenhand.learners.nets.architectures import architecture_typed

    return {
        "student": architecture_typed(given.teacher_kind),
        "architecture": architecture_typed(given.architecture or _words.PIXEL_NETWORKS[0]),
    }


def fairness_of(
    given: TrainOptions, margin: float | None, tables: TrainingTables | None = None
) -> Notion:
    """Return the notion; once the classes are known, also for the class that is meant."""
    positive = None
    if given.positive is not None and tables is not None:
        from evenhand.datasets.columns import text_of

        classes = sorted(tables.y.unique().tolist())
        positive = [text_of(value) for value in classes].index(given.positive)
    reference = given.spec.reference or given.reference
    return _notion_of(given).of(
        margin=margin or 0.0,
        reference=reference,
        positive=positive,
        confidence=given.confidence,
    )


def relation_of(given: TrainOptions) -> tuple[str, str]:
    """Return whose what an account of these runs guards, and against which change."""
    from evenhand.privacy import attribute_of
    from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL

    if given.spec.protects == "attribute":
        both = given.spec.fixed.get("variant") == "teachers" and given.pull == 0
        unit = attribute_of(given.unit_name, and_class_label=both)
        return unit, GROUP_AND_CLASS_LABEL if both else GROUP_LABEL
    by_unit = given.unit is not None
    return (given.unit_name, "add or remove one") if by_unit else ("record", "replace one")


def _budget(given: TrainOptions) -> None:
    """Check epsilon and delta."""
    from evenhand.privacy import Budget

    assert given.epsilon is not None
    Budget(epsilon=given.epsilon, delta=given.delta)


def _check_margin(given: TrainOptions) -> None:
    """Refuse a margin without groups, a missing one, and one that nothing keeps."""
    if (given.trains_by_groups or given.keeps_margin_after) and not given.sensitive:
        raise ValueError(
            "--sensitive is missing: rates are compared between groups. Name the column of "
            "the groups, or train without a margin: --method pate."
        )
    if given.group_thresholds and given.blind_rule:
        raise ValueError(
            "--group-thresholds decide by the group, and --blind-rule without it. Leave one out."
        )
    if not (given.trains_within_margin or given.keeps_margin_after):
        if given.margin is not None:
            raise ValueError(
                f"--method {given.method} keeps no margin, got --margin {given.margin:g}. Leave "
                f"one of them out, or add --blind-rule (no group at prediction) or "
                f"--group-thresholds."
            )
        return
    if given.margin is None:
        raise ValueError(
            "--margin is missing. Say how far apart the groups' rates may be, for example "
            "--margin 0.05; or train without a margin: --method pate."
        )
    notion = fairness_of(given, given.margin)
    of_truth = [name for name in ("admit_by", "gate_level") if name in given.given]
    if of_truth and not given.answer_margin:
        raise ValueError(
            f"--{of_truth[0].replace('_', '-')} is about the gate, and --no-answer-margin opens "
            f"none. Leave one of them out."
        )
    if of_truth and not notion.needs_labels:
        raise ValueError(
            f"--{of_truth[0].replace('_', '-')} is about true classes, and --fairness "
            f"{given.fairness} is about predictions alone. Leave it out."
        )
    gate_reads_truth = given.spec.accepts("admit_by") and given.answer_margin
    if given.calibration is None and notion.needs_labels and gate_reads_truth:
        raise ValueError(
            f"--fairness {given.fairness} is about true classes, and nothing tells the gate of "
            f"--method {given.method} of them. Give --calibration FILE: public rows with features, "
            f"label and sensitive columns, hundreds of each group; or read the margin from the "
            f"released answers, for the student alone: --no-answer-margin, or --method "
            f"fair-shares."
        )
    chooses = given.spec.protects == "attribute" and given.confidence is not None
    if given.calibration is not None and not (notion.needs_labels or chooses):
        raise ValueError(
            f"--calibration brings true classes, and --fairness {given.fairness} is about "
            f"predictions alone. Leave it out, or name another --fairness: "
            f"{', '.join(list(OF_DECISIONS)[1:])}."
        )


def _check_public(given: TrainOptions) -> None:
    """Refuse public rows that are missing, or given twice."""
    has_public = given.public is not None
    aside = given.public_fraction is not None and not given.images
    if given.keeps_margin_after and not (has_public or aside) and given.calibration is None:
        option = "--blind-rule is" if given.blind_rule else "--group-thresholds are"
        raise ValueError(
            f"{option} set on public rows whose groups are known, and --public is missing. Give "
            f"--public FILE or --public-fraction SHARE, or for a notion about true classes "
            f"--calibration FILE."
        )
    if given.blind_rule and given.calibration is None and fairness_of(given, 0.0).needs_labels:
        raise ValueError(
            f"--fairness {given.fairness} is about true classes, and --blind-rule knows none of "
            f"the public rows. Give --calibration FILE: public rows with labels and groups."
        )
    by_labels = given.group_thresholds and given.confidence is not None
    if by_labels and given.calibration is None and fairness_of(given, 0.0).needs_labels:
        raise ValueError(
            f"--confidence {given.confidence:g} of --fairness {given.fairness} needs true classes "
            f"of public rows. Give --calibration FILE: public rows with labels and groups; or "
            f"leave it out."
        )
    if given.confidence is not None and not given.keeps_margin_after:
        _check_rows_of_confidence(given)
    if given.spec.protects == "attribute":
        return  # the features are public: there is nothing to ask for
    if not given.spec.teachers:
        if has_public and given.public_fraction is not None:
            raise ValueError("Give either --public FILE or --public-fraction SHARE, got both.")
        known = has_public or given.schema is not None or given.public_fraction is not None
        if not (known or given.reads_pixels):
            raise ValueError(
                "Columns are scaled by public knowledge, and there is none. Give --public "
                "FILE, --public-fraction SHARE, or --schema FILE with bounds."
            )
    elif has_public and given.public_fraction is not None:
        raise ValueError(
            "Teachers are asked about public rows: give either --public FILE or "
            "--public-fraction SHARE, got both."
        )
    elif not (has_public or given.public_fraction is not None or given.draws_rows):
        raise ValueError(
            f"Teachers are asked about public {'pictures' if given.images else 'rows'}, and none "
            f"can be drawn here: give either --public FILE or --public-fraction SHARE, got neither."
        )
    if given.check_drift and not has_public:
        raise ValueError(
            "--check-drift compares the rows of --public FILE with the private ones, and there are "
            "none. Give --public FILE, or leave it out."
        )
    if given.synthetic_share is not None:
        open_unit("--synthetic-share", given.synthetic_share)
        wrong = []
        if given.public_fraction is not None:
            wrong.append("--public-fraction gives rows away, which drawn rows are to spare")
        if given.images:
            wrong.append("--images lists pictures, and rows of a table are drawn")
        if streams(given):
            wrong.append("the rows stream, and are counted in memory alone")
        if wrong:
            raise ValueError(
                f"--synthetic-share pays for noisy counts, and {'; '.join(wrong)}. Leave one of "
                f"them out."
            )


def _check_rows_of_confidence(given: TrainOptions) -> None:
    """Refuse a confidence without the rows by which a student is chosen."""
    said = f"--confidence {given.confidence:g} is about rows that had no part in training"
    if given.spec.protects == "attribute" and given.calibration is None:
        raise ValueError(
            f"{said}, and every group of the private table is private. Give --calibration FILE: "
            f"public rows with labels and groups; or leave it out."
        )
    has_public = given.public is not None or given.public_fraction is not None
    if given.spec.protects == "record" and not (has_public or given.spec.teachers):
        raise ValueError(
            f"{said}, and no public rows with groups were given. Give --public FILE, or leave it "
            f"out: training then aims for the margin."
        )


AFTER: Final = ("blind_rule", "group_thresholds")
"""What may keep the margin around the fitted model."""

NOT_ALWAYS_READ: Final = {
    **dict.fromkeys(
        (
            "n_teachers",
            "teacher",
            "unit",
            "unit_name",
            "ledger",
            "account",
            "account_epsilon",
        ),
        "asks no teachers and keeps no account",
    ),
    **dict.fromkeys(("epsilon", "delta", "noise"), "promises no privacy"),
    **dict.fromkeys(("sigma", "threshold", "sigma_check"), "asks for no noisy labels"),
    "answers": "gates labels, releases shares alone, or asks no teachers",
    "fairness": "keeps no margin",
    "calibration": "reads no calibration rows",
    "answer_margin": "has no gate that could be left out",
    **dict.fromkeys(("admit_by", "gate_level"), "has no gate that reads true classes"),
    "confidence": "chooses no model by rows that were held out",
    **dict.fromkeys(
        ("public", "public_fraction"),
        "takes all features as public, and scales them by themselves",
    ),
    "synthetic_share": "asks no teachers about rows that are drawn",
    "check_drift": "asks no teachers about public rows",
    **dict.fromkeys(AFTER, "has a place of its own for fairness"),
    "reference": "compares groups in one way of its own",
    **dict.fromkeys(
        ("hidden", "degree", "architecture", "fairness_weight", "at", "pull"), "does not read it"
    ),
}
"""Settings that not every method reads, and why one does not."""


READ_AFTER: Final = ("fairness", "calibration", "confidence", "reference")
"""Settings that what comes after training reads, whatever the method does."""


def _read_after(given: frozenset[str]) -> tuple[str, ...]:
    """Return the settings that are read after training."""
    return () if given.isdisjoint(AFTER) else READ_AFTER


def _refuse_useless(known: MethodSpec, given: frozenset[str]) -> None:
    """Raise ValueError for an option that was given and that the method would not read."""
    of_notions = () if known.notions else ("fairness", "calibration")
    after = _read_after(given) if known.accepts("blind_rule") else ()
    for option in NOT_ALWAYS_READ:
        if option in after:
            continue
        if option in given and not known.accepts(option):
            word = {"n_teachers": "--teachers", "answer_margin": "--no-answer-margin"}.get(
                option, f"--{option.replace('_', '-')}"
            )
            why = NOT_ALWAYS_READ["fairness" if option in of_notions else option]
            raise ValueError(f"--method {known.name} {why}, got {word}. Leave one of them out.")


def _refuse_protection(known: MethodSpec, protect: str | None) -> None:
    """Raise ValueError where the promise would be about less, or more, than was asked for.

    A method that protects the attribute alone needs this to be said in so many words, and an
    attribute that a method does not protect by itself is not promised.
    """
    if known.protects == "attribute" and protect != "attribute":
        raise ValueError(
            f"--method {known.name} protects the sensitive attribute of each person and nothing "
            f"else: features and labels are taken as public. If that is what you need, say so: "
            f"--protect attribute. To protect the whole record choose another method, such as "
            f"--method dpsgd."
        )
    if protect == "attribute" and known.protects != "attribute":
        able = ", ".join(name for name, m in METHODS.items() if m.protects == "attribute")
        raise ValueError(
            f"--protect attribute was given, and --method {known.name} "
            + ("protects the whole record" if known.private else "promises no privacy")
            + f". Leave it out, or choose a method that protects the attribute alone: {able}."
        )


def _refuse_notion(known: MethodSpec, notion: str) -> None:
    """Raise ValueError for a notion that the method cannot hold equal."""
    from evenhand.fairness.notions import notion_named

    held = notion_named(notion).name
    if known.notions and held not in known.notions:
        able = next(m for m in METHODS.values() if held in m.notions)
        said = "--protect attribute " if able.protects == "attribute" else ""
        raise ValueError(
            f"--method {known.name} knows {' and '.join(known.notions).replace('-', ' ')} alone, "
            f"got --fairness {notion}. Choose another notion, or {said}--method {able.name}, which "
            f"knows this one."
        )

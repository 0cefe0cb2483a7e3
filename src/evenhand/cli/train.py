"""``evenhand train``: a model folder from a private and a public table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import account as accounts
from evenhand.cli import options, settings
from evenhand.cli.account import Account
from evenhand.cli.asked import Asked
from evenhand.cli.console import Bars, emit, note, progress_bars, show
from evenhand.cli.folder import Training, require_free, write_model_folder
from evenhand.cli.grouping import GroupingAsked
from evenhand.cli.options import choices, metavar
from evenhand.cli.tables import Roles
from evenhand.methods import METHODS

if TYPE_CHECKING:
    from evenhand.cli.tables import TrainingTables
    from evenhand.privacy import Ledger

NOTIONS = (*settings.NOTIONS, settings.SCORE_NOTION)
_ROLES = "Columns"
_FAIRNESS = "Fairness"
_TEACHERS = "Teachers"
_MECHANISM = "Mechanism (default: chosen from public numbers)"
_ACCOUNT = "Account of the data set, over all runs"


def train(
    context: typer.Context,
    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE", help="Private records with labels: CSV (also .gz) or Parquet."
        ),
    ],
    label: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Column of the classes.", rich_help_panel=_ROLES),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder for the model and its report.")
    ],
    epsilon: options.RunEpsilon = None,
    public: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with the same features and the sensitive columns. A label column in "
            "it is not read.",
        ),
    ] = None,
    public_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Instead of --public: share of the private rows, in (0, 1), to treat as public. "
            "The guarantee does not cover the features of these rows.",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled rows to measure the model on. The guarantee does not cover these "
            "numbers.",
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with features, label and sensitive columns, on which a --notion "
            "about true classes is read. Without it, it is read from the released answers.",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Sensitive column; name several by repeating the option, and groups are their "
            "combinations. Not a feature.",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says whose record a row is. The guarantee is then for each of these, "
            "with all of its records, instead of for each record.",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    unit_name: Annotated[
        str,
        typer.Option(metavar="NOUN", help="What a unit is, in the claim.", rich_help_panel=_ROLES),
    ] = "person",
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="The favourable class, for the report; with --notion false-positive-parity also "
            "the one class that is meant.",
            show_default="the last of two",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Declared columns in JSON: kinds, categories, bounds.",
            show_default="read from the public rows",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    delta: options.Delta = 1e-5,
    noise: options.RunNoiseName = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="How far apart the groups' rates may be, among the answers that the model learns "
            "from, and among its own decisions on the public rows. A difference of two rates, in "
            "[0, 1]. Needed by fairpate, dp-post-processing, intervention, sf-student, "
            "sf-teachers, randomized-response, pf-ld, fair-only, and for thresholds per group.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = None,
    notion: Annotated[
        str,
        typer.Option(
            metavar=metavar(NOTIONS),
            autocompletion=choices(NOTIONS),
            help="What the margin is about: how often a class is predicted; the same among records "
            "of one true class; how often a prediction is wrong; how often a class is predicted to "
            "records that are not of it; the whole distribution of the score (sf-student and sf-teachers). "
            "All but the first bind the model alone.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = settings.NOTIONS[0],
    reference: options.Reference = "rest",
    rule: Annotated[
        str,
        typer.Option(
            metavar=metavar(settings.RULES),
            autocompletion=choices(settings.RULES),
            help="Keep every group within the margin, or follow the published algorithm, for "
            "comparison.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = "sound",
    method: Annotated[
        str,
        typer.Option(
            metavar=metavar(METHODS),
            autocompletion=choices(METHODS),
            help="Teachers with a fairness margin or without; DP-SGD (no teachers; a margin is "
            "aimed for if --margin is given); a baseline of the literature; or a reference that "
            "is not private.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = "fairpate",
    protect: Annotated[
        str | None,
        typer.Option(
            metavar=metavar(settings.PROTECTS),
            autocompletion=choices(settings.PROTECTS),
            help="What the guarantee is about: the whole record, or the sensitive attribute alone, "
            "with features and labels taken as public. The second must be said, and goes with "
            "sf-student, sf-teachers, randomized-response and pf-ld only.",
            show_default="record",
            rich_help_panel="Privacy",
        ),
    ] = None,
    pull: Annotated[
        float | None,
        typer.Option(
            metavar="WEIGHT",
            help="Of sf-student and sf-teachers: how near the model stays to the one that public "
            "features and labels give. With sf-teachers, 0 protects the labels too.",
            show_default="0.001 for sf-student, 0.3 for sf-teachers",
            rich_help_panel=_FAIRNESS,
        ),
    ] = None,
    fairness_weight: Annotated[
        float,
        typer.Option(
            metavar="WEIGHT",
            help="Of dp-fermi: how much dependence of decision and group costs, beside the loss. "
            "At least 0.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = 1.0,
    at: Annotated[
        str,
        typer.Option(
            metavar=metavar(settings.POINTS),
            autocompletion=choices(settings.POINTS),
            help="Of intervention: before, in or after the teachers; at the aggregator; before, in "
            "or after the student.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = "aggregator",
    group_thresholds: Annotated[
        bool,
        typer.Option(
            "--group-thresholds",
            help="Decide at one threshold per group, set on the public rows so that they keep the "
            "margin. predict then needs the group of each row. For two classes.",
            rich_help_panel=_FAIRNESS,
        ),
    ] = False,
    hidden: Annotated[
        list[int] | None,
        typer.Option(
            metavar="WIDTH",
            help="Width of a hidden layer of dpsgd; repeat the option for several.",
            show_default="none: logistic regression",
            rich_help_panel="DP-SGD",
        ),
    ] = None,
    n_teachers: options.NTeachers = None,
    allow_shared_rows: options.AllowSharedRows = False,
    bins: options.Bins = None,
    merge_small: options.MergeSmall = 0,
    teacher: Annotated[
        str,
        typer.Option(
            metavar=metavar(settings.TEACHERS),
            autocompletion=choices(settings.TEACHERS),
            help="What a teacher is. mlp needs the extra torch.",
            rich_help_panel=_TEACHERS,
        ),
    ] = "logistic",
    answers: Annotated[
        str | None,
        typer.Option(
            metavar=metavar(settings.ANSWERS),
            autocompletion=choices(settings.ANSWERS),
            help="What is bought about a public row: noisy shares of the votes, for a model that "
            "knows the noise (no refusals; the margin binds the model alone); or a noisy label, "
            "through the gate.",
            show_default="shares; labels with --sigma or --rule published",
            rich_help_panel=_MECHANISM,
        ),
    ] = None,
    seed: options.Seed = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of the noise on each count, in votes.",
            show_default=False,
            rich_help_panel=_MECHANISM,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Ask a cheap question first: do this many teachers agree? In votes.",
            show_default=False,
            rich_help_panel=_MECHANISM,
        ),
    ] = None,
    sigma_check: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of the noise on that question, in votes.",
            show_default=False,
            rich_help_panel=_MECHANISM,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where the account is kept: a SQLite file, or a PostgreSQL URL.",
            rich_help_panel=_ACCOUNT,
        ),
    ] = None,
    account: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of the account.", rich_help_panel=_ACCOUNT),
    ] = "default",
    account_epsilon: Annotated[
        float | None,
        typer.Option(
            help="What all runs on this data set may spend together, at the same delta. Needed "
            "with --ledger, and the same in every run.",
            show_default=False,
            rich_help_panel=_ACCOUNT,
        ),
    ] = None,
    sign: options.Sign = None,
    sep: options.Separator = None,
    encoding: options.Encoding = None,
    show_values: options.ShowValues = False,
    json: options.Json = False,
) -> None:
    """Train a private classifier within a fairness margin; write model, claim and report.

    The methods non-private and fair-only are references: their claim is that nothing is promised.

    The claim of the others holds whatever the data are: every use of the private table is charged
    before its noise is drawn. Nothing is written unless everything is.
    """
    started = time.perf_counter()
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    roles = Roles(
        label=label,
        sensitive=tuple(sensitive or ()),
        unit=unit,
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
    )
    asked = Asked(
        method=method,
        protect=protect,
        epsilon=epsilon,
        delta=delta,
        notion=notion,
        margin=margin,
        positive=positive,
        reference=reference,
        rule=rule,
        n_teachers=n_teachers,
        teacher=teacher,
        answers=answers,
        noise=noise,
        sigma=sigma,
        threshold=threshold,
        sigma_check=sigma_check,
        public_fraction=public_fraction,
        unit_name=unit_name,
        seed=seed,
        hidden=tuple(hidden or ()),
        fairness_weight=fairness_weight,
        at=at,
        group_thresholds=group_thresholds,
        pull=pull,
    )
    asked.check(roles, has_public=public is not None, has_schema=schema is not None, given=given)
    regrouping = GroupingAsked.of(bins, merge_small)
    regrouping.check(roles, has_public=public is not None)
    reference = asked.chosen.reference or reference
    shared = Account(where=ledger, name=account, epsilon=account_epsilon)
    shared.check(asked)
    require_free(out)
    key = options.private_key(sign)
    with progress_bars() as bars:
        bars.begin(f"reading {private}")
        from evenhand.cli import results
        from evenhand.cli.calibration import read_calibration
        from evenhand.cli.tables import read_training, sharing
        from evenhand.report import write_model_report

        tables = read_training(
            private,
            public,
            roles,
            schema,
            groups_of=asked.reads_groups_of,
            groups_are_all=asked.chosen.protects == "attribute",
            regrouping=regrouping,
        )
        results.check_positive(positive, tables.y)
        labelled = {} if calibration is None else read_calibration(calibration, roles, tables)
        trial = None if test is None else results.read_trial(test, roles, tables.grouping)
        model = asked.estimator(tables, has_account=ledger is not None)
        opened = shared.open(asked, roles, tables)
        left = None if opened is None else accounts.epsilon_left(opened)
        with sharing(allow_shared_rows):
            _fit(model, asked, tables, labelled, opened, bars)
        model = asked.with_thresholds(model, tables)
        bars.begin("measuring and writing")
        measured = None if trial is None else results.measure(model, trial, positive=positive)
        write_model_folder(
            model,
            out,
            training=Training.of(
                "train",
                roles,
                reference=reference,
                margin=margin,
                positive=positive,
                grouping=tables.grouping,
            ),
            write_report=lambda path: write_model_report(
                model, path, dataset=_facts(private, roles), measured=measured
            ),
            key=key,
        )
    summary = results.of_run(model, measured, reference) | {
        "model": str(out),
        "account": None if opened is None else accounts.summary(opened),
        "wall_s": time.perf_counter() - started,
    }
    for warning in summary["warnings"]:
        note(f"warning: {warning}")
    if left is not None and epsilon is not None and left < epsilon:
        note(f"The account had epsilon={left:.3f} left, less than --epsilon {epsilon:g}.")
    if json:
        emit(summary)
        return
    show(*results.run_parts(summary))
    if measured is not None:
        show(*results.measured_parts(measured, reference))
    if opened is not None:
        show(accounts.sentence(opened))
    show(f"The model, its claim and report.html are in {out} ({summary['wall_s']:.1f} s).")


def _facts(private: Path, roles: Roles) -> dict[str, str]:
    """Return what the report may say about the data: names, and no count."""
    return {
        "Data set": private.name,
        "Label": roles.label,
        "Sensitive attribute": ", ".join(roles.sensitive) or "none",
    }


def _fit(
    model: Any,
    asked: Asked,
    tables: TrainingTables,
    labelled: dict[str, Any],
    ledger: Ledger | None,
    bars: Bars,
) -> None:
    """Train; a refusal also says what an account has left."""
    from evenhand.cli.tables import sensitive_features
    from evenhand.privacy import BudgetExceeded

    more: dict[str, Any] = dict(labelled)
    if asked.chosen.private:
        more["progress"] = bars
    if asked.chosen.teachers:
        more |= {"unit_ids": tables.units, "ledger": ledger}
    if tables.private_groups is not None:
        more["sensitive_features"] = sensitive_features(tables.private_groups)
    if tables.groups is not None and asked.trains_by_public_groups:
        # Public rows that are set aside from the private table have their groups in that table.
        of = "sensitive_features" if tables.X_public is None else "sensitive_features_public"
        more[of] = sensitive_features(tables.groups)
    if asked.chosen.protects == "record":
        more["X_public"] = tables.X_public
    try:
        model.fit(tables.X, tables.y, **more)
    except BudgetExceeded as refused:
        if ledger is None or accounts.epsilon_left(ledger) >= model.budget.epsilon:
            raise
        raise BudgetExceeded(accounts.refusal(ledger, refused)) from None

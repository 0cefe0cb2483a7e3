"""``evenhand train``: a model folder from a private and a public table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.cli import account, options, train_settings
from evenhand.cli.command import command_of
from evenhand.cli.console import Bars, emit, note, progress_bars, show
from evenhand.cli.folder import Training, require_free, write_model_folder
from evenhand.cli.grouping import GroupingOptions
from evenhand.cli.train_options import TrainOptions

if TYPE_CHECKING:
    from evenhand.cli.tables import Roles, TrainingTables
    from evenhand.privacy import Ledger


@command_of(TrainOptions)
def train(given: TrainOptions) -> None:
    """Train a private classifier within a fairness margin; write model, claim and report.

    The methods non-private and fair-only are references: their claim is that nothing is promised.

    The claim of the others holds whatever the data are: every use of the private table is charged
    before its noise is drawn. Nothing is written unless everything is.
    """
    started = time.perf_counter()
    roles = given.roles
    train_settings.check(given)
    regrouping = GroupingOptions.of(given.bins, given.merge_small)
    regrouping.check(roles, has_public=given.public is not None)
    account.check(given)
    require_free(given.out)
    key = options.private_key(given.sign)
    with progress_bars() as bars:
        bars.begin(f"reading {given.private}")
        from evenhand.cli import measuring, results
        from evenhand.cli.calibration import read_calibration
        from evenhand.cli.tables import read_training, sharing
        from evenhand.report import write_report

        tables = read_training(
            given.private,
            given.public,
            roles,
            given.schema,
            groups_of=given.reads_groups_of,
            groups_are_all=given.spec.protects == "attribute",
            regrouping=regrouping,
        )
        measuring.check_positive(given.positive, tables.y)
        labelled = read_calibration(given.calibration, roles, tables) if given.calibration else {}
        trial = measuring.read_trial(given.test, roles, tables.grouping) if given.test else None
        model = train_settings.estimator_of(given, tables)
        ledger = account.open_account(given, tables)
        left = None if ledger is None else account.epsilon_left(ledger)
        with sharing(given.allow_shared_rows):
            _fit(model, given, tables, labelled, ledger, bars)
        model = _with_thresholds(model, given, tables)
        bars.begin("measuring and writing")
        measured = measuring.measure(model, trial, positive=given.positive) if trial else None
        write_model_folder(
            model,
            given.out,
            training=Training.of(
                "train",
                roles,
                reference=given.compared_with,
                margin=given.margin,
                positive=given.positive,
                grouping=tables.grouping,
            ),
            write_report=lambda path: write_report(
                model, path, dataset=_facts(given.private, roles), measured=measured
            ),
            key=key,
        )
    summary = results.of_run(model, measured, given.compared_with) | {
        "model": str(given.out),
        "account": None if ledger is None else account.summary(ledger),
        "wall_s": time.perf_counter() - started,
    }
    _tell(given, model, summary, measured, ledger, left)


def _tell(
    given: TrainOptions,
    model: Any,
    summary: dict[str, Any],
    measured: Any,
    ledger: Ledger | None,
    left: float | None,
) -> None:
    """Say what came of it, to people or to machines."""
    from evenhand.cli import measuring, results

    for warning in summary["warnings"]:
        note(f"warning: {warning}")
    if left is not None and given.epsilon is not None and left < given.epsilon:
        note(f"The account had epsilon={left:.3f} left, less than --epsilon {given.epsilon:g}.")
    if given.json:
        emit(summary)
        return
    show(*results.run_parts(model.fitted_))
    if measured is not None:
        show(*measuring.measured_parts(measured, given.compared_with))
    if ledger is not None:
        show(account.sentence(ledger))
    show(f"The model, its claim and report.html are in {given.out} ({summary['wall_s']:.1f} s).")


def _facts(private: Path, roles: Roles) -> dict[str, str]:
    """Return what the report may say about the data: names, and no count."""
    return {
        "Data set": private.name,
        "Label": roles.label,
        "Sensitive attribute": ", ".join(roles.sensitive) or "none",
    }


def _fit(
    model: Any,
    given: TrainOptions,
    tables: TrainingTables,
    labelled: dict[str, Any],
    ledger: Ledger | None,
    bars: Bars,
) -> None:
    """Train; a refusal also says what an account has left."""
    from evenhand.cli.tables import sensitive_features
    from evenhand.privacy import BudgetExceeded

    more: dict[str, Any] = dict(labelled)
    if given.spec.private:
        more["progress"] = bars
    if given.spec.teachers:
        more |= {"unit_ids": tables.units, "ledger": ledger}
    if tables.private_groups is not None:
        more["sensitive_features"] = sensitive_features(tables.private_groups)
    if tables.groups is not None and given.trains_by_public_groups:
        # Public rows that are set aside from the private table have their groups in that table.
        of = "sensitive_features" if tables.X_public is None else "sensitive_features_public"
        more[of] = sensitive_features(tables.groups)
    if given.spec.protects == "record":
        more["X_public"] = tables.X_public
    try:
        model.fit(tables.X, tables.y, **more)
    except BudgetExceeded as refused:
        if ledger is None or account.epsilon_left(ledger) >= model.budget.epsilon:
            raise
        raise BudgetExceeded(account.refusal(ledger, refused)) from None


def _with_thresholds(model: Any, given: TrainOptions, tables: TrainingTables) -> Any:
    """Return the fitted model under group-aware thresholds, if they were asked for."""
    if not given.group_thresholds:
        return model
    from evenhand.cli.tables import sensitive_features

    assert tables.groups is not None
    fairness = train_settings.fairness_of(given, given.margin, tables)
    return model.with_group_thresholds(
        tables.X_public, sensitive_features(tables.groups), fairness=fairness
    )

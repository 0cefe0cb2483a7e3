"""``evenhand train``: a model folder from a private and a public table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand._roles import Roles
from evenhand._words import AUTO
from evenhand.cli import accounts, options, pictures, results, train_checks
from evenhand.cli.command import command_of
from evenhand.cli.console import Bars, note, progress_bars
from evenhand.cli.grouping import GroupingOptions
from evenhand.cli.output import Training, require_free, write_model_folder
from evenhand.cli.tables import (
    TrainingTables,
    group_columns,
    labels,
    listed,
    read,
    read_stream,
    read_training,
    same_features,
    sensitive_features,
    sharing,
    stream_of,
)
from evenhand.cli.train_choice import resolved
from evenhand.cli.train_estimator import estimator_of, fairness_of
from evenhand.cli.train_options import TrainOptions

if TYPE_CHECKING:
    from evenhand.datasets.columns import TypedTable
    from evenhand.datasets.features.reading import PictureReading
    from evenhand.estimators.choosing import Choice
    from evenhand.estimators.rows_after import RowsAfter
    from evenhand.privacy import Ledger


@command_of(TrainOptions)
def train(given: TrainOptions) -> None:
    """Train a private classifier within a fairness margin; write model, claim and report.

    The methods non-private and fair-only are references: their claim is that nothing is promised.

    The claim of the others holds whatever the data are: every use of the private table is charged
    before its noise is drawn. Nothing is written unless everything is.
    """
    started = time.perf_counter()
    roles, choice = given.roles, None
    if given.method == AUTO:
        given, choice = resolved(given)
    train_checks.check(given)
    regrouping = GroupingOptions.of(given.bins, given.merge_small)
    regrouping.check(roles, has_public=given.public is not None)
    _check_account(given)
    require_free(given.out)
    key = options.private_key(given.sign)
    reading = pictures.asked_for(given)
    with progress_bars(time_left=given.images) as bars:
        bars.begin(f"reading {given.private}")
        from evenhand.report import write_report

        private, given, choice = _opened(given, choice)
        tables = _read(given, private, roles, regrouping)
        results.check_positive(given.positive, tables.y)
        labelled = _read_calibration(given, roles, tables) if given.calibration else {}
        trial = _read_trial(given, tables, labelled)
        plain = None if given.without_privacy is None else _plain(given, tables)
        if reading is not None:
            tables, labelled, trial = pictures.with_rows(reading, tables, labelled, trial, bars)
        network = pictures.network_of_user(reading)
        model = estimator_of(given, tables)
        ledger = _open_account(given, tables, model)
        left = None if ledger is None else accounts.epsilon_left(ledger)
        with sharing(given.allow_shared_rows), options.workers(given.backend):
            _fit(model, given, tables, labelled, ledger, bars)
        if choice is not None:
            choice.kept_in(model)
        with _told_by_the_model():
            model = _after(model, given, tables, labelled, choice)
        bars.begin("measuring and writing")
        measured, failed = results.measure_if_asked(
            model, trial, positive=given.positive, without_privacy=plain
        )
        shown = pictures.shown(model, tables, given.show_pictures)
        write_model_folder(
            model,
            given.out,
            training=_remembered(given, tables, reading),
            write_report=lambda path: write_report(
                model, path, dataset=_facts(given.private, roles), measured=measured, pictures=shown
            ),
            key=key,
            copies=network,
        )
    summary = results.of_run(model, measured, given.compared_with) | {
        "model": str(given.out),
        "account": None if ledger is None else accounts.state_of(ledger),
        "wall_s": time.perf_counter() - started,
    }
    if given.public_fraction is not None and given.spec.private:
        note(
            f"--public-fraction {given.public_fraction:g} gave the features and groups of these "
            f"rows away: no guarantee covers them."
            + (" Without it rows are drawn from noisy counts." if given.spec.draws_rows else "")
        )
    if left is not None and given.epsilon is not None and left < given.epsilon:
        note(f"The account had epsilon={left:.3f} left, less than --epsilon {given.epsilon:g}.")
    results.show_run(
        model,
        summary,
        measured,
        given.compared_with,
        *(() if choice is None else choice.sentences),
        *([] if ledger is None else [accounts.in_words(ledger)]),
        f"The model, its claim and report.html are in {given.out} ({summary['wall_s']:.1f} s).",
        json=given.json,
    )
    results.raise_unmeasured(failed, given.test, given.out)


def _read_trial(
    given: TrainOptions, tables: TrainingTables, labelled: dict[str, Any]
) -> results.Trial | None:
    """Read the test table, if there is one, and refuse one that no such model is measured on."""
    if given.test is None:
        return None
    results.warn_of_training_rows(
        given.test, private=given.private, public=given.public, calibration=given.calibration
    )
    trial = results.read_trial(given.test, given.roles, tables.grouping, images=given.images)
    known = _known_groups(given, tables, labelled)
    trial.check(tables.like, tables.y.unique().tolist(), known, tables.schema)
    return trial


def _known_groups(
    given: TrainOptions, tables: TrainingTables, labelled: dict[str, Any]
) -> list[str]:
    """Return the groups that the model will know, as far as tables tell before it is trained."""
    from evenhand.fairness.groups import encode_groups

    public = given.keeps_margin_after or given.trains_by_public_groups
    of = [labelled.get("sensitive_features_calibration")] + [
        None if groups is None else sensitive_features(groups)
        for groups in (tables.groups if public else None, tables.private_groups)
    ]
    return sorted({name for each in of if each is not None for name in encode_groups(each).names})


def _opened(
    given: TrainOptions, choice: Choice | None
) -> tuple[Path | TypedTable, TrainOptions, Choice | None]:
    """Read the private table where a choice of the method has to know its columns."""
    if choice is None or given.images or given.streams:
        return given.private, given, choice
    private = read(given.private)
    public = () if given.public is None else tuple(read(given.public))
    given, choice = resolved(replace(given, method=AUTO), tuple(private), public)
    train_checks.check(given)
    return private, given, choice


def _plain(given: TrainOptions, tables: TrainingTables) -> Any:
    """Read the model without privacy whose error is shown beside, before anything is trained."""
    from evenhand._numerals import natural_order, text_of
    from evenhand.methods import load

    assert given.without_privacy is not None
    model = load(given.without_privacy)
    if model.guarantee_.bounded:
        raise ValueError(
            f"{given.without_privacy} has a claim of its own: {model.guarantee_}. Name a model of "
            f"evenhand train --method non-private."
        )
    asked = list(natural_order(text_of(value) for value in tables.y.unique().tolist()))
    known = [text_of(value) for value in model.classes_.tolist()]
    if asked != known or model.fitted_.needs_group:
        raise ValueError(
            f"{given.without_privacy} decides {', '.join(known)}"
            f"{' by the group of a person' if model.fitted_.needs_group else ''}, and the label "
            f"has {_values.listed(asked, 20)}. Name a model of the same classes that needs no "
            f"group."
        )
    return model


def _read(
    given: TrainOptions, private: Path | TypedTable, roles: Roles, regrouping: GroupingOptions
) -> TrainingTables:
    """Read the tables; of private rows that stream, some."""
    more: dict[str, Any] = {
        "groups_of": given.reads_groups_of,
        "groups_are_all": given.spec.protects == "attribute",
        "regrouping": regrouping,
        "images": given.images,
    }
    rows = None
    if not given.images:
        rows = stream_of(given.private, given.rows_per_teacher, given.scratch)
    if given.backend != options.BACKENDS[0] and (rows is None or rows.scratch is None):
        raise ValueError(
            f"--backend {given.backend} needs rows that stream, and --scratch: a folder that all "
            f"machines of the cluster see. Name a folder of Parquet files, or a URL, and --scratch."
        )
    if rows is None:
        return read_training(private, given.public, roles, given.schema, **more)
    if not getattr(given.spec.estimator, "_reads_streams", False):
        raise ValueError(
            f"--method {given.method} reads its rows in memory, and those of {given.private} would "
            f"stream. Name one file, without --rows-per-teacher and --scratch; or take --method "
            f"fair-shares, fairpate or pate."
        )
    if given.public is None:
        raise ValueError(
            f"The rows of {given.private} stream, and none of them are set aside as public. Give "
            f"--public FILE."
        )
    return read_stream(rows, given.private, given.public, roles, given.schema, **more)


def _remembered(
    given: TrainOptions, tables: TrainingTables, reading: PictureReading | None
) -> Training:
    """Return what later commands need to know of this one."""
    return Training.of(
        "train",
        given.roles,
        reference=given.compared_with,
        margin=given.margin,
        positive=given.positive,
        grouping=tables.grouping,
        pictures=None if reading is None else pictures.remembered(reading, tables),
    )


def _facts(private: Path, roles: Roles) -> dict[str, str]:
    """Return what the report may say about the data: names, and no count."""
    return {
        "Data set": private.name,
        "Label": roles.label,
        "Sensitive attribute": ", ".join(roles.sensitive) or "none",
    }


@contextmanager
def _told_by_the_model() -> Iterator[None]:
    """Leave out warnings that are among the model's own, which are printed when it is there."""
    from evenhand.estimators.dpsgd import AimMissed
    from evenhand.estimators.drift import DriftWarning
    from evenhand.estimators.small_groups import SmallGroupsWarning
    from evenhand.students import MarginNotMet
    from evenhand.students.confident import MarginNotSupported

    with warnings.catch_warnings():
        for always in (DriftWarning, SmallGroupsWarning):
            warnings.simplefilter("ignore", always)
        warnings.filterwarnings("ignore", ".* it ended at", AimMissed)
        warnings.filterwarnings("ignore", "So many rows", MarginNotSupported)
        warnings.filterwarnings("ignore", "The student's gap", MarginNotMet)
        yield


def _fit(
    model: Any,
    given: TrainOptions,
    tables: TrainingTables,
    labelled: dict[str, Any],
    ledger: Ledger | None,
    bars: Bars,
) -> None:
    """Train; a refusal also says what an account has left."""
    from evenhand.privacy import BudgetExceeded

    _check_after(given, tables, labelled)
    by_labels = given.spec.accepts("calibration") and not given.blind_rule
    by_labels &= given.trains_within_margin or not given.group_thresholds
    more: dict[str, Any] = dict(labelled) if by_labels else {}
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
        with _told_by_the_model():
            model.fit(tables.X, given.label if tables.streams else tables.y, **more)
    except BudgetExceeded as refused:
        if ledger is None or accounts.epsilon_left(ledger) >= model.budget.epsilon:
            raise
        raise BudgetExceeded(accounts.refusal(ledger, refused)) from None


def _rows_after(
    given: TrainOptions, tables: TrainingTables, labelled: dict[str, Any]
) -> RowsAfter | None:
    """Return the public rows that decisions are moved on; None where there are none."""
    from evenhand.estimators.rows_after import RowsAfter
    from evenhand.estimators.spec import CALIBRATION

    if not given.keeps_margin_after:
        return None
    if labelled:
        X, y, groups = (labelled[name] for name in CALIBRATION)
        return RowsAfter(X=X, groups=groups, y=y)
    if tables.groups is None or (given.public is None and given.public_fraction is None):
        return None  # thresholds have nothing but the counts of scores to be set on
    groups = sensitive_features(tables.groups)
    if tables.X_public is not None:
        return RowsAfter(X=tables.X_public, groups=groups)
    return RowsAfter(X=tables.X, groups=groups, public_fraction=given.public_fraction)


def _check_after(given: TrainOptions, tables: TrainingTables, labelled: dict[str, Any]) -> None:
    """Refuse rows on which no decisions can be moved, before anything is spent."""
    import numpy as np

    if (rows := _rows_after(given, tables, labelled)) is not None:
        others = tables.groups if tables.private_groups is None and labelled else None
        others = tables.private_groups if others is None else others
        rows.check(
            tables.X,
            fairness_of(given, given.margin, tables),
            np.unique(tables.y),
            X_public=tables.X_public,
            schema=tables.schema,
            blind=given.blind_rule,
            counted=bool(given.score_counts),
            private_groups=None if others is None else sensitive_features(others),
        )


def _after(
    model: Any,
    given: TrainOptions,
    tables: TrainingTables,
    labelled: dict[str, Any],
    choice: Choice | None,
) -> Any:
    """Return the fitted model under thresholds or a blind rule, if they were asked for."""
    if not given.keeps_margin_after:
        return model
    fairness = fairness_of(given, given.margin, tables)
    tightening = (given.tightening or 0.0) if choice is None else choice.tightening
    rows = _rows_after(given, tables, labelled)
    if rows is None:
        return model.with_group_thresholds(fairness=fairness, tightening=tightening)
    if given.group_thresholds:
        return rows.around(model, fairness, tightening)
    return rows.blind_around(model, fairness)


# ---- the account of a data set, which several runs share ----------------------------------------


def _check_account(given: TrainOptions) -> None:
    """Refuse half an account, before any file is read."""
    accounts.require_whole(given.ledger, given.account_epsilon)
    if given.ledger is not None and given.public_fraction is not None and given.seed is None:
        raise ValueError(
            "An account with --public-fraction needs --seed: without it every run would set "
            "other rows aside, and soon each row had been public once."
        )


def _relation(given: TrainOptions, model: Any) -> tuple[str, str]:
    """Return whose what an account of these runs guards, and against which change."""
    from evenhand.privacy import attribute_of
    from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL

    if given.spec.protects == "attribute":
        both = given.spec.fixed.get("variant") == "teachers" and given.pull == 0
        unit = attribute_of(given.unit_name, and_class_label=both)
        return unit, GROUP_AND_CLASS_LABEL if both else GROUP_LABEL
    units = given.unit is not None
    return given.unit_name if units else "record", model.neighbors_for(units=units)


def _open_account(given: TrainOptions, tables: TrainingTables, model: Any) -> Ledger | None:
    """Open the account, or check that the one on record guards the same data set."""
    if given.ledger is None:
        return None
    facts: dict[str, str | int] = {
        "columns": ", ".join(sorted(tables.columns)),
        "label": given.label,
        "sensitive": ", ".join(given.sensitive or ()),
        "unit column": given.unit or "",
        "public rows": _where_rows_are_from(given),
    }
    unit, neighbors = _relation(given, model)
    if neighbors != "add or remove one":  # else the number of records is private
        facts["records"] = len(tables.X)
    if "://" not in given.ledger and not Path(given.ledger).absolute().parent.is_dir():
        raise FileNotFoundError(
            f"The folder of the ledger {given.ledger} does not exist. Make it first; a ledger is "
            f"kept over all runs, so choose a place that stays."
        )
    noise = options.noise(given.noise or "exact")
    return accounts.opened(given, facts, noise=noise, unit=unit, neighbors=neighbors)


def _where_rows_are_from(given: TrainOptions) -> str:
    """Say it for the account: the same in all of its runs."""
    if given.draws_rows:
        return "drawn from noisy counts"
    if given.public_fraction is None:
        return "a table of their own"
    return f"{given.public_fraction:g} of the table, seed {given.seed}"


# ---- public rows with labels and groups ----------------------------------------


def _read_calibration(given: TrainOptions, roles: Roles, tables: TrainingTables) -> dict[str, Any]:
    """Read the calibration rows, as the arguments of ``fit`` that they are.

    Raises
    ------
    ValueError
        For a column that is not there, a missing or unknown label, a missing group, and text where
        the private table has numbers.
    """
    assert given.calibration is not None
    table = read(given.calibration)
    table.require([roles.label], "which --label names")
    return {
        "X_calibration": listed(table)
        if given.images
        else same_features(table, tables.like, tables.schema, whose="calibration"),
        "y_calibration": _classes(table, roles, tables),
        "sensitive_features_calibration": sensitive_features(
            group_columns(table, roles.sensitive), tables.grouping, given.calibration
        ),
    }


def _classes(table: TypedTable, roles: Roles, tables: TrainingTables) -> list[Any]:
    """Return the labels as the private table writes them; 1, 1.0 and "1" are one class."""
    from evenhand._numerals import text_of

    written = {text_of(value): value for value in tables.y.unique().tolist()}
    found = []
    for row, value in enumerate(labels(table, roles.label).tolist()):
        text = text_of(value)
        if text not in written:
            raise ValueError(
                f"{table.where}: the label in {_values.row(row)} is {_values.quoted(text)}, which "
                f"is not a class of the private table: {_values.listed(written, 20)}."
                f"{_values.if_shown(did_you_mean(text, written))}"
            )
        found.append(written[text])
    return found

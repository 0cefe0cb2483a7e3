"""What is said of a trained model: its claim, what it learned from, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand._notions import NOTIONS, OF_SCORES
from evenhand._roles import Roles
from evenhand.cli import tables
from evenhand.cli.console import emit, group_table, note, show, table
from evenhand.cli.predict import predictions

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets import Schema
    from evenhand.estimators.fitted import FittedModel
    from evenhand.fairness import FairnessReport, Grouping
    from evenhand.fairness.groups import GroupCodes
    from evenhand.fairness.intervals import Estimate
    from evenhand.typing import IntArray
    from evenhand.voting import Answers, Shares

NOT_COVERED: Final = (
    "Measured on the test rows, without noise: these numbers are not covered by the guarantee."
)
_UNITS: Final = " units: intervals take units as independent, not rows."


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Labelled rows to measure a model on: a table, what a table lists, or rows as models read."""

    X: Any
    y: pd.Series[Any]
    groups: Any
    path: Path
    units: Any = None
    """Whose record each row is, where a column says so."""

    @property
    def unit_codes(self) -> IntArray | None:
        """A code of its unit for each row; None where no unit has two."""
        from evenhand.fairness.report import unit_codes

        return None if self.units is None else unit_codes(self.units)

    def check(
        self,
        features: pd.DataFrame,
        classes: Sequence[Any],
        groups: Sequence[str],
        schema: Schema | None = None,
    ) -> None:
        """Refuse rows on which a model of these could not be measured, before it is trained.

        ``groups`` are those that it will know; none where it will know none.
        """
        from evenhand._numerals import text_of
        from evenhand.datasets.columns import TypedTable

        if isinstance(self.X, TypedTable):
            tables.same_features(self.X, features, schema, whose="test")
        tables.class_codes(self.y, [text_of(name) for name in classes], where=str(self.path))
        if self.groups is not None and groups:
            self.group_codes(tuple(groups))

    def group_codes(self, known: tuple[str, ...] | None) -> GroupCodes:
        """Return the groups of the rows, among those that are known, if any are."""
        from evenhand.fairness.groups import encode_groups

        try:
            return encode_groups(self.groups, names=known)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None


def warn_of_training_rows(
    test: Path, *, private: Path, option: str = "--{}", **options: Path | None
) -> None:
    """Say so where the test table is one of training, or a file of it; nothing else learns of it.

    ``options`` are further tables, by the name of the option, which is written as ``option`` has
    it. How many rows two tables share is a private count, and is not looked at.
    """
    named = {option.format(name): path for name, path in options.items()}
    for name, path in ({"the private table": private} | named).items():
        if path is None:
            continue
        files = path.rglob("*") if path.is_dir() else [path]
        if any(_same_content(file, test) for file in files):
            note(
                f"warning: {option.format('test')} {test} holds what {name} {path} holds: its "
                f"numbers would be about training rows, and others may fare worse. Name rows that "
                f"were held out, which no table of training has."
            )


def _same_content(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and cmp(one, other, shallow=False)


def read_trial(
    path: Path,
    roles: Roles,
    grouping: Grouping | None = None,
    *,
    images: bool = False,
    needs_unit: bool = False,
) -> Trial:
    """Read a test table: its labels and, if columns are named, its groups and units.

    ``images`` says that it lists pictures, ``needs_unit`` that a table without the column of the
    unit is refused, and not warned of.
    """
    table = tables.read(path)
    table.require([roles.label], "which --label names")
    if needs_unit and roles.unit is not None:
        table.require([roles.unit], "which --unit names")
    groups = None
    if roles.sensitive:
        columns = tables.group_columns(table, roles.sensitive)
        groups = tables.sensitive_features(columns, grouping, path)
    X = tables.listed(table) if images else table
    units = None
    if roles.unit is not None and roles.unit in table:
        units = tables.unit_ids(table[roles.unit]).to_numpy()
    elif roles.unit is not None:
        note(
            f"warning: {path} has no column {roles.unit!r}, which says whose record a row is, so "
            f"intervals are those of rows that are a unit each. Where some are of one, they are "
            f"too narrow."
        )
    return Trial(X=X, y=tables.labels(table, roles.label), groups=groups, path=path, units=units)


def measure(
    model: Any,
    trial: Trial,
    *,
    positive: str | None,
    same_groups: bool = True,
    without_privacy: Any = None,
) -> FairnessReport:
    """Measure the model on the trial; nothing of this is covered by the guarantee.

    Parameters
    ----------
    positive : str, optional
        The favourable class; the last of two if not given.
    same_groups : bool
        The sensitive columns are those of training, so the groups must be known.
    without_privacy : classifier, optional
        A model of the same classes without privacy, whose error may be known.
    """
    import numpy as np

    from evenhand._numerals import text_of
    from evenhand.datasets.columns import TypedTable
    from evenhand.fairness import fairness_report

    names = [text_of(name) for name in model.classes_.tolist()]
    truth = tables.class_codes(trial.y, names, where=str(trial.path))
    known = model.groups_ if same_groups else None
    everybody = np.full(len(truth), "everybody")
    groups = everybody if trial.groups is None else trial.group_codes(known)
    X = tables.features_of(model, trial.X) if isinstance(trial.X, TypedTable) else trial.X
    predicted = predictions(model, X, trial.groups if same_groups else None).tolist()
    place = {text_of(name): code for code, name in enumerate(model.classes_.tolist())}
    free = _without_margin(model, X)
    open_to_all = None if without_privacy is None else without_privacy.predict(X)
    of_scores = model.fitted_.notion in OF_SCORES

    def coded(labels: list[Any]) -> IntArray:
        return np.array([place[text_of(label)] for label in labels], dtype=np.int64)

    return fairness_report(
        truth,
        coded(predicted),
        groups,
        classes=names,
        positive=_code_of(positive, names),
        probabilities=model.predict_proba(X) if of_scores else None,
        without_margin=None if free is None else coded(free.tolist()),
        without_privacy=None if open_to_all is None else coded(open_to_all.tolist()),
        units=trial.units,
    )


def measure_if_asked(
    model: Any, trial: Trial | None, **how: Any
) -> tuple[FairnessReport | None, Exception | None]:
    """Measure a model that is paid for, or return why that failed: the model must not be lost."""
    try:
        return (None if trial is None else measure(model, trial, **how)), None
    except Exception as error:
        return None, error


def raise_unmeasured(failed: Exception | None, trial: Path | None, out: Path) -> None:
    """Say where the model is that could not be measured, and why."""
    if failed is not None:
        note(
            f"The model is complete, and in {out}. It could not be measured on {trial}; once that "
            f"is mended: evenhand evaluate {out} {trial}"
        )
        raise failed


def _without_margin(model: Any, X: Any) -> Any:
    """Predict with the same model without its margin, where that is free; else None."""
    fitted: FittedModel = model.fitted_
    if fitted.inside is not None:  # the model without its thresholds
        return model.model_.predict(X)
    return None if fitted.without_margin is None else model.without_margin().predict(X)


def check_positive(positive: str | None, y: pd.Series[Any]) -> None:
    """Refuse a favourable class that is no class, before anything is trained."""
    from evenhand._numerals import natural_order, text_of

    names = natural_order(text_of(value) for value in y.unique().tolist())
    if positive is not None and positive not in names:
        raise ValueError(
            f"--positive must be one of the classes of the label, {_values.listed(names, 20)}, got "
            f"{positive!r}.{_values.if_shown(did_you_mean(positive, names))}"
        )


def of_measured(measured: FairnessReport, reference: str) -> dict[str, Any]:
    """Return what was measured on test rows."""
    error = measured["error_rate"]
    gap = measured[f"demographic_parity_{reference}"]
    return {
        "covered": False,
        "n_rows": int(measured.coverage.offered.sum()),
        "error": error.value,
        "error_interval": [error.low, error.high],
        "demographic_parity_gap": gap.value,
        "gap_interval": [gap.low, gap.high],
        "reference": reference,
        **measured.to_dict(),
        "warnings": _warnings(measured),
    }


def _warnings(measured: FairnessReport) -> list[str]:
    """Return what must be known of the measurements first."""
    found = measured.yardstick
    return [words] if found is not None and (words := found.warning(measured.classes)) else []


def measured_parts(measured: FairnessReport, reference: str) -> list[str | Table]:
    """Return measurements for people: the error, the gaps, and a row per group."""
    from evenhand.fairness.notions import notion_named

    error = measured["error_rate"]
    rows = [("error", _number(error), _interval(error))]
    if (yardstick := measured.yardstick) is not None:
        beside = yardstick.rows(measured.classes)
        rows += [(f"error of {words}", _number(e), _interval(e)) for words, e in beside]
    there = {estimate.name for estimate in measured.estimates}
    for name in NOTIONS:
        key = f"{name.replace('-', '_')}_{reference}"
        if key not in there:
            continue  # distributions of scores are compared where these are what shall be alike
        gap, words = measured[key], notion_named(name).words
        rows.append((f"{name.replace('-', ' ')} gap: {words}", _number(gap), _interval(gap)))
    shown: list[str | Table] = [
        table(("measured on the test rows", "value", "95 % interval"), rows)
    ]
    if len(measured.groups) > 1:
        shown.append(_groups(measured))
    units = "" if error.n_units is None else f" {error.n} rows of {error.n_units}{_UNITS}"
    return [*shown, NOT_COVERED + units]


def _groups(measured: FairnessReport) -> Table:
    """Return each group; with a favourable class its rate, else the rate of each class."""
    sizes = measured.coverage.offered.sum(axis=1)
    shown = measured.classes if measured.positive is None else [measured.classes[measured.positive]]
    rows = []
    for z, group in enumerate(measured.groups):
        rates = (
            [f"{rate:.4f}" for rate in measured.rates[z]]
            if measured.positive is None
            else [f"{_number(measured.selection[z])} {_interval(measured.selection[z])}"]
        )
        error = measured.errors[z]
        rows.append((group, int(sizes[z]), rates, [f"{_number(error)} {_interval(error)}"]))
    return group_table("predicted", shown, rows)


def _code_of(positive: str | None, names: Sequence[str]) -> int | None:
    """Return the code of the favourable class; the last of two if none is named."""
    if positive is None:
        return 1 if len(names) == 2 else None
    if positive not in names:
        raise ValueError(
            f"--positive must be one of the classes {', '.join(map(repr, names))}, got "
            f"{positive!r}.{did_you_mean(positive, names)}"
        )
    return list(names).index(positive)


def _number(estimate: Estimate) -> str:
    return "no rows" if estimate.value != estimate.value else f"{estimate.value:.4f}"


def _interval(estimate: Estimate) -> str:
    return f"[{estimate.low:.4f}, {estimate.high:.4f}]"


def of_run(model: Any, measured: FairnessReport | None, reference: str) -> dict[str, Any]:
    """Return what a trained model tells, and its measurements, for ``--json``."""
    fitted: FittedModel = model.fitted_
    seen = fitted.measured_by(None if measured is None else measured.yardstick)
    return fitted.to_dict() | {
        "warnings": list(seen.warnings),
        "measured": None if measured is None else of_measured(measured, reference),
    }


def show_run(
    model: Any,
    summary: dict[str, Any],
    measured: FairnessReport | None,
    reference: str,
    *last: str,
    json: bool,
) -> None:
    """Say what came of a training run: ``summary`` to machines, else tables to people."""
    for warning in summary["warnings"]:
        note(f"warning: {warning}")
    if json:
        emit(summary)
        return
    show(*run_parts(model.fitted_))
    if measured is not None:
        student = model.fitted_.student_margin
        beside = "" if student is None else student.on_test_rows(measured.estimates)
        show(*filter(None, [beside]), *measured_parts(measured, reference))
    show(*last)


def run_parts(fitted: FittedModel) -> list[str | Table]:
    """Return a trained model's results for people."""
    from evenhand.report.claim import MARGIN_BINDS, MARGIN_BINDS_ANSWERS, STUDENT_BOUND_ON

    claim, kind = str(fitted.guarantee), f"Where the margin sits: {fitted.kind}."
    if fitted.by_table is not None:
        return [claim, kind, fitted.by_table.in_words]
    if fitted.answers is None:
        return [claim, kind]
    rows = [*_asked(fitted, fitted.answers), *_gaps(fitted), *_by_answers(fitted)]
    shown: list[str | Table] = [claim, *fitted.of_drawn_rows, *fitted.of_drift]
    shown += [table(("what the model learned from", ""), rows), kind]
    student = fitted.student_margin
    if fitted.answered_coverage is not None:
        shown.append(fitted.answered_coverage.most_refused(fitted.class_names))
    if fitted.answered_gap is not None:
        shown.append(MARGIN_BINDS if student is None else MARGIN_BINDS_ANSWERS)
    return shown if student is None else [*shown, STUDENT_BOUND_ON[student.source]]


def _asked(fitted: FittedModel, answers: Answers | Shares) -> list[tuple[str, str]]:
    """Return what was asked of how many teachers, and answered."""
    again = answers.n_asked - len(answers)
    more = f", {again:,} of them a row again" if again > 0 else ""
    return [
        ("teachers", f"{fitted.n_teachers:,}"),
        (fitted.asked_about, f"{len(answers):,}"),
        ("asked", f"{answers.n_asked:,}{more}"),
        ("answered", f"{answers.n_answered:,}"),
        ("coverage", f"{answers.coverage:.1%} of the rows that were considered"),
    ]


def _gaps(fitted: FittedModel) -> list[tuple[str, str]]:
    """Return how answers and student stand to the margin, as far as released values say."""
    rows, student, noisy = [], fitted.student_margin, fitted.true_groups
    if fitted.answered_gap is not None:
        rows.append(("gap of the answers", _against_margin(fitted, fitted.answered_gap)))
    if student is not None:
        where = student.where.replace("the ", "", 1)
        rows.append((f"gap of the model {where}", _against_margin(fitted, student.gap)))
        if student.cross_fitted is not None:
            found = student.cross_fitted
            said = f"{found.value:.4f}, at most {found.high:.4f} with {found.level:.0%} confidence"
            rows.append(("gap on rows that it was not fitted on", said))
        rows += [
            (
                f"gap of {student.groups[group.group]}, {group.n_rows:,} public rows",
                f"{group.gap:.4f}, held to {group.limit:.4f}",
            )
            for group in (() if student.held is None else student.held.groups)
        ]
    if fitted.cuts is not None and fitted.cuts.cross_fitted is not None:
        found = fitted.cuts.cross_fitted
        said = f"{found.value:.4f}, at most {found.high:.4f} with {found.level:.0%} confidence"
        rows.append(("gap on rows that the thresholds were not set on", said))
    if noisy is not None and noisy.violation == noisy.violation:
        kept = f"{noisy.violation:.4f}, margin {noisy.margin:g} of {noisy.notion}"
        whose = " of the model beneath the rule" if noisy.beneath else ""
        rows.append((f"violation by the noisy groups{whose}", kept))
    return rows


def _against_margin(fitted: FittedModel, gap: float) -> str:
    assert fitted.notion is not None
    return f"{gap:.4f}, margin {fitted.margin:g} of {fitted.notion.replace('-', ' ')}"


def _by_answers(fitted: FittedModel) -> list[tuple[str, str]]:
    """Return the errors by the released answers: what is known without test rows."""
    found = fitted.yardstick
    if found is None:
        return []
    errors = [("error by the released answers", found.error)]
    errors += [(f"  {words}", error) for words, error in found.rows(fitted.class_names)]
    return [
        (words, f"{e.value:.4f}, {e.level:.0%} interval {e.low:.4f} to {e.high:.4f}")
        for words, e in errors
    ]

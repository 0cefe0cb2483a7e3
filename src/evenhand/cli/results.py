"""What a trained model is said to be: plain values for machines, tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from evenhand.cli.console import table
from evenhand.cli.measuring import of_measured

if TYPE_CHECKING:
    from evenhand.estimators.fitted import FittedModel
    from evenhand.fairness import FairnessReport
    from evenhand.voting import Answers, Shares


def of_run(model: Any, measured: FairnessReport | None, reference: str) -> dict[str, Any]:
    """Return what a trained model tells, and its measurements, for ``--json``."""
    fitted: FittedModel = model.fitted_
    seen = fitted.measured_by(None if measured is None else measured.yardstick)
    return fitted.to_dict() | {
        "warnings": list(seen.warnings),
        "measured": None if measured is None else of_measured(measured, reference),
    }


def run_parts(fitted: FittedModel) -> list[str | Table]:
    """Return a trained model's results for people."""
    from evenhand.report.claim import MARGIN_BINDS, MARGIN_BINDS_ANSWERS, STUDENT_BOUND_ON

    claim, kind = str(fitted.guarantee), f"Where the margin sits: {fitted.kind}."
    if fitted.derived is not None:
        kept = _against_margin(fitted, fitted.derived.gap)
        return [claim, kind, f"Gap of the decisions by the noisy table: {kept}."]
    if fitted.answers is None:
        return [claim, kind]
    rows = [*_asked(fitted, fitted.answers), *_gaps(fitted), *_by_answers(fitted)]
    shown: list[str | Table] = [claim, table(("what the model learned from", ""), rows), kind]
    student = fitted.student_margin
    if fitted.answered_gap is not None:
        shown.append(MARGIN_BINDS if student is None else MARGIN_BINDS_ANSWERS)
    return shown if student is None else [*shown, STUDENT_BOUND_ON[student.source]]


def _asked(fitted: FittedModel, answers: Answers | Shares) -> list[tuple[str, str]]:
    """Return what was asked of how many teachers, and answered."""
    again = answers.n_asked - len(answers)
    more = f", {again:,} of them a row again" if again > 0 else ""
    return [
        ("teachers", f"{fitted.n_teachers:,}"),
        ("public rows", f"{len(answers):,}"),
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
        rows += [
            (
                f"gap of {student.groups[group.group]}, {group.n_rows:,} public rows",
                f"{group.gap:.4f}, held to {group.limit:.4f}",
            )
            for group in (() if student.held is None else student.held.groups)
        ]
    if noisy is not None and noisy.violation == noisy.violation:
        kept = _against_margin(fitted, noisy.violation)
        rows.append(("violation by the noisy groups", kept))
    return rows


def _against_margin(fitted: FittedModel, gap: float) -> str:
    assert fitted.notion is not None
    return f"{gap:.4f}, margin {fitted.margin:g} of {fitted.notion.replace('-', ' ')}"


def _by_answers(fitted: FittedModel) -> list[tuple[str, str]]:
    """Return the errors by the released answers: what is known without test rows."""
    found = fitted.yardstick
    if found is None:
        return []
    beside = [f"{words}: {error.value:.4f}" for words, error in found.rows(fitted.class_names)]
    return [("error by the released answers", "; ".join([f"{found.error.value:.4f}", *beside]))]

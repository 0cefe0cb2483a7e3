"""What is concluded of a student of teachers: its margin, whom it answered, its claim."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.estimators.calibration import calibration_gap
from evenhand.estimators.drift import ColumnDrift, differing
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.margins import StudentMargin
from evenhand.fairness.trace import Coverage, coverage_table
from evenhand.fairness.yardstick import DRAWN, RELEASED, Yardstick
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.privacy.guarantee import delta_warning
from evenhand.students.student import Student
from evenhand.teachers.partition import Partition
from evenhand.typing import FloatArray
from evenhand.voting import Answers, Reason, Shares


def student_margin(student: Student, groups: tuple[str, ...] | None) -> StudentMargin | None:
    """Return how the student stands to its margin; None where it was not bound."""
    if student.within is None:
        return None
    assert student.met is not None
    return StudentMargin(
        notion=student.within.notion,
        gap=student.public_gap,
        met=student.met,
        source=student.within.source,
        calibration=calibration_gap(student),
        held=student.held,
        groups=groups or (),
        cross_fitted=student.cross_fitted,
    )


def answered_coverage(
    student: Student, X_public: FloatArray, answers: Answers | Shares, groups: tuple[str, ...]
) -> Coverage | None:
    """Count who was answered, by the class that the student decides: a refused row has no other."""
    if not isinstance(answers, Answers) or answers.groups is None:
        return None
    model: Any = student.model if student.without_margin is None else student.without_margin
    considered = answers.reasons != Reason.NOT_ASKED
    decided = model.predict(X_public[considered]).astype(np.int64)
    return coverage_table(
        answers.groups[considered],
        decided,
        answers.answered[considered],
        names=groups,
        n_classes=answers.n_classes,
    )


def public_yardstick(
    student: Student, X_public: FloatArray, answers: Answers | Shares, *, drawn: bool = False
) -> Yardstick:
    """Measure the student by the released answers, beside the majority class: free.

    ``drawn``: they are about rows that were drawn from noisy counts.
    """
    where = DRAWN if drawn else RELEASED
    rows = answers.answered if isinstance(answers, Answers) else slice(None)
    X = X_public[rows]
    decided = student.model.predict(X).astype(np.int64)
    free: Any = student.without_margin
    others = {} if free is None else {"without_margin": free.predict(X).astype(np.int64)}
    if isinstance(answers, Shares):
        return replace(Yardstick.of_shares(answers.shares, decided, **others), where=where)
    labels = answers.labels[rows]
    return Yardstick.of_truth(labels, decided, answers.n_classes, where=where, **others)


def claim_of(
    data: FitInputs,
    ledger: Ledger,
    partition: Partition,
    *,
    budget: Budget,
    teachers: Any,
    drift: tuple[ColumnDrift, ...],
) -> Guarantee:
    """Return the claim of a model that learnt from teachers, and warn the curator of its delta."""
    rows = (
        f"the features of the {data.n_public} public rows"
        + ("" if data.groups_public is None else " and their groups"),
    )
    public = [
        *(() if data.asks_drawn_rows else rows),
        *(() if data.to_draw is None else data.to_draw.public),
        *data.made_by,
        "the names of columns and classes",
        "all settings",
    ]
    if data.cast is not None:
        return ledger.guarantee(
            public=(*public, data.cast.said),
            not_covered=(
                "a choice of settings or of a model made by looking at private data",
                "models and votes inside an owner",
                "measurements on private or test rows",
            ),
            warnings=data.cast.vouched_for,
        )
    if data.n_is_public:
        size = f"the number of private records ({data.n_private})"
        sets = ", which sets the number of teachers"
        public.append(size if partition.neighbors == "replace one" else size + sets)
    not_covered = [
        "a choice of settings or of a model made by looking at private data",
        "measurements on private or test rows",
    ]
    if data.set_aside:
        aside = f"{data.set_aside} rows of the table, set aside as public"
        not_covered.insert(0, f"the features and groups of {aside}")
    if data.n_is_public:
        warning = delta_warning(budget.delta, data.n_private)
    else:
        # How many there are is private here: it may warn the curator, not enter the claim.
        warning = ""
        to_curator = delta_warning(budget.delta, data.n_units, n_is_private=True)
        if to_curator:
            warnings.warn(to_curator, stacklevel=7)
    vouched = getattr(teachers, "vouched_for", "")
    claim = ledger.guarantee(
        public=tuple(public),
        not_covered=tuple(not_covered),
        warnings=tuple(words for words in (vouched, warning, differing(drift)) if words),
    )
    return claim if data.to_draw is None else data.to_draw.claim(claim, budget)

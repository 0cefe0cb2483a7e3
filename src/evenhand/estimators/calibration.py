"""Public rows with labels and groups, on which a margin about true classes is read."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand.estimators.given_rows import checked_features, class_codes
from evenhand.estimators.inputs import FitArguments, FitInputs, calibration_given
from evenhand.estimators.shared_rows import refuse_shared
from evenhand.fairness import gap_of
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.gate.calibrated import GateCalibration
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import JointTally
from evenhand.privacy import BudgetExceeded, Ledger
from evenhand.students.student import Student
from evenhand.students.within import Within
from evenhand.typing import Array, IntArray
from evenhand.voting.blocks import Mechanism, stages


class CellsNotRead(UserWarning):
    """Some group has too few records of some class for the margin to be read there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Checked calibration rows."""

    X: Any
    """DataFrame or ndarray of shape (n, n_columns)."""
    labels: IntArray
    groups: IntArray
    """``labels`` and ``groups``: codes of the classes and of the groups of the public rows. Every
    pair of them occurs. Shape (n,).
    """

    def __len__(self) -> int:
        return len(self.labels)


def read_calibration(
    estimator: Any, data: FitInputs, notion: RateNotion, given: FitArguments
) -> Calibration | None:
    """Check the calibration rows; None if none were given.

    Raises
    ------
    ValueError
        If one of the three is missing, if the notion needs no labels, for a label or a group that
        is unknown, and for a (label, group) cell without a row.
    PrivateRowsAsPublic
    """
    if not calibration_given(vars(given)):
        return None
    if not notion.needs_labels:
        raise ValueError(
            f"{type(notion).__name__} is about predictions alone, so calibration rows would not be "
            f"read. Leave them out, or add their features and groups to the public rows."
        )
    X = checked_features(estimator, given.X_calibration, reset=False, name="X_calibration")
    refuse_shared(data, X)
    labels = class_codes(given.y_calibration, data.classes, "y_calibration")
    names = data.required_groups.names
    groups = encode_groups(
        given.sensitive_features_calibration,
        names=names,
        argument="sensitive_features_calibration",
    )
    _checks.same_length(
        X_calibration=X, y_calibration=labels, sensitive_features_calibration=groups
    )
    _refuse_empty_cells(notion, labels, groups.codes, data.classes, names)
    return Calibration(X=X, labels=labels, groups=groups.codes)


def rows_to_ask(
    groups: IntArray, mechanism: Mechanism, ledger: Ledger, rng: np.random.Generator
) -> IntArray:
    """Return the calibration rows that the teachers are asked about, ascending.

    As many as half of what is left pays for, and of each group the same number where it has so
    many. Within a group they are drawn at random: what is true behind an answer is asked of each
    group by itself, so this is a sample. All of it follows from public numbers.

    Raises
    ------
    BudgetExceeded
        If that is none.
    """
    check, answer = stages(mechanism)
    n = min(len(groups), ledger.affordable(*(answer,) if check is None else (check, answer)) // 2)
    if not n:
        raise BudgetExceeded(
            f"{mechanism!r} costs so much that the budget pays for no calibration row and a query "
            f"beside it. Raise epsilon or sigma, or hold the student alone to the margin: "
            f"answer_margin=False."
        )
    lines = [rng.permutation(np.flatnonzero(groups == z)) for z in np.unique(groups)]
    turns = np.concatenate([np.arange(len(line)) for line in lines])
    every = np.concatenate(lines)[np.argsort(turns, kind="stable")]
    found: IntArray = np.sort(every[:n])
    return found


class LimitsTooWide(UserWarning):
    """The calibration rows tell less of the truth than the margin needs."""


def warn_of_wide_limits(known: GateCalibration, notion: RateNotion, names: tuple[str, ...]) -> None:
    """Warn where even groups with one and the same rate would be outside the margin."""
    if known.admit_by != "limit" or len(names) < 2:
        return
    joint = CalibratedJoint(
        answered=known.labelled.predicted, labelled=known.labelled, sampled=False
    )
    found = joint.gap(notion, level=known.level)
    width = found.high - (0.0 if math.isnan(found.value) else found.value)
    if width > notion.margin:
        n = int(known.labelled.totals.sum())
        enough = round(n * (width / notion.margin) ** 2, -2)
        warnings.warn(
            f"{n:,} answers to calibration rows leave the gap of {notion.title} uncertain by "
            f"{width:.3f}, more than the margin of {notion.margin:g}: groups with equal rates "
            f"would not pass, and a late group may get no answer at all. Give more calibration "
            f"rows (some {enough:,.0f} answers bring the uncertainty down to the margin; those of "
            f"teachers cost budget), raise the margin, or lower the level. admit_by='estimate' "
            f"goes by the estimate, and promises nothing.",
            LimitsTooWide,
            stacklevel=6,
        )


def public_calibration(n: int) -> str:
    """Return what of ``n`` calibration rows a claim takes as public."""
    return f"the {n} calibration rows with their labels and groups"


def calibration_gap(student: Student) -> Estimate | None:
    """Return the student's gap on the calibration rows with its interval; None without them."""
    read = student.within
    if read is None or read.source != "calibration rows":
        return None
    assert read.labels is not None
    joint = JointTally.of(
        read.groups,
        read.labels,
        student.model.predict(read.X).astype(np.int64),
        read.n_groups,
        len(student.model.classes_),
    )
    return gap_of(read.notion, joint)


def warn_of_unread(read: Within, data: FitInputs) -> None:
    """Warn of groups of which the released answers know no record of some class."""
    if said := read.unread_in_words(data.required_groups.names, data.classes.tolist()):
        warnings.warn(
            f"By the released answers there is less than one record of {_values.first(said)}. The "
            f"margin was not read there and says nothing about it. Give calibration rows with "
            f"labels and groups, or a larger budget.",
            CellsNotRead,
            stacklevel=7,
        )


def _refuse_empty_cells(
    notion: RateNotion, labels: IntArray, groups: IntArray, classes: Array, names: tuple[str, ...]
) -> None:
    size = (len(names), len(classes))
    counts = np.bincount(groups * size[1] + labels, minlength=size[0] * size[1]).reshape(size)
    empty = [
        f"{_values.quoted(classes.tolist()[k])} in {names[z]!r}"
        for z, k in np.argwhere(counts == 0)
    ]
    if empty:
        raise ValueError(
            f"The calibration rows hold no record of class {_values.first(empty)}, and "
            f"{type(notion).__name__} is about each class in each group. Add such rows (hundreds "
            f"say more than tens), merge groups, or leave the calibration rows out: the margin is "
            f"then read from the released answers."
        )

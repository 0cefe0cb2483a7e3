"""Public rows with labels and groups, on which a margin about true classes is read."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import column_or_1d

from evenhand import _checks, _values
from evenhand.estimators.inputs import FitArguments, FitInputs, checked_features
from evenhand.estimators.spec import CALIBRATION
from evenhand.fairness import gap_of
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import JointTally
from evenhand.students.student import Student
from evenhand.students.within import Within
from evenhand.typing import Array, IntArray

_SHOWN = 5


class CellsNotRead(UserWarning):
    """Some group has too few records of some class for the margin to be read there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Checked calibration rows.

    Parameters
    ----------
    X : DataFrame or ndarray, shape (n, n_columns)
    labels, groups : ndarray of int64, shape (n,)
        Codes of the classes and of the groups of the public rows. Every pair of them occurs.
    """

    X: Any
    labels: IntArray
    groups: IntArray

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
    """
    absent = [name for name in CALIBRATION if getattr(given, name) is None]
    if len(absent) == len(CALIBRATION):
        return None
    if absent:
        raise ValueError(
            f"Calibration rows need features, labels and groups, and {' and '.join(absent)} is "
            f"missing. Pass all three, or none."
        )
    if not notion.needs_labels:
        raise ValueError(
            f"{type(notion).__name__} is about predictions alone, so calibration rows would not be "
            f"read. Leave them out, or add their features and groups to the public rows."
        )
    X = checked_features(estimator, given.X_calibration, reset=False, name="X_calibration")
    labels = _codes(given.y_calibration, data.classes)
    names = data.required_groups.names
    try:
        groups = encode_groups(given.sensitive_features_calibration, names=names)
    except ValueError as error:
        raise ValueError(f"sensitive_features_calibration: {error}") from None
    _checks.same_length(
        X_calibration=X, y_calibration=labels, sensitive_features_calibration=groups
    )
    _refuse_empty_cells(notion, labels, groups.codes, data.classes, names)
    return Calibration(X=X, labels=labels, groups=groups.codes)


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
    classes, names = data.classes.tolist(), data.required_groups.names
    said = [
        f"{names[z]!r} among class {' or '.join(repr(classes[k]) for k in among)}"
        for z, among in read.unread(data.n_classes)
    ]
    said = list(dict.fromkeys(said))
    if said:
        more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
        warnings.warn(
            f"By the released answers there is less than one record of {', '.join(said[:_SHOWN])}"
            f"{more}. The margin was not read there and says nothing about it. Give calibration "
            f"rows with labels and groups, or a larger budget.",
            CellsNotRead,
            stacklevel=7,
        )


def _codes(y: Any, classes: Array) -> IntArray:
    values = np.asarray(column_or_1d(y))
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise ValueError(
            f"y_calibration has no label in {_values.rows(missing)}. Leave these rows out."
        )
    place = {value: code for code, value in enumerate(classes.tolist())}
    found = values.tolist()
    for row, value in enumerate(found):
        if value not in place:
            raise ValueError(
                f"y_calibration holds {_values.quoted(value)}, first in {_values.row(row)}, which "
                f"is not among the classes of y, {_values.listed(place, 20)}."
                f"{_values.if_shown(_checks.did_you_mean(value, place))}"
            )
    return np.array([place[value] for value in found], dtype=np.int64)


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
        more = f" and {len(empty) - _SHOWN} more" if len(empty) > _SHOWN else ""
        raise ValueError(
            f"The calibration rows hold no record of class {', '.join(empty[:_SHOWN])}{more}, and "
            f"{type(notion).__name__} is about each class in each group. Add such rows (hundreds "
            f"say more than tens), merge groups, or leave the calibration rows out: the margin is "
            f"then read from the released answers."
        )

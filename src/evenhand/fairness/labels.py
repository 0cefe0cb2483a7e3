"""Assess labels as they were predicted: any values, some of them refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._frames import refuse_other_order
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.typing import REJECTED, Array, ArrayLike, BoolArray, IntArray


def report_of_labels(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    sensitive_features: object,
    pos_label: object,
    units: ArrayLike | None = None,
) -> tuple[FairnessReport, list[object], int]:
    """Assess labels, which may be any values; return also the classes and the positive one."""
    refuse_other_order(
        y_pred=y_pred, y_true=y_true, sensitive_features=sensitive_features, units=units
    )
    predicted = np.asarray(y_pred, dtype=object)
    truth = None if y_true is None else np.asarray(y_true, dtype=object)
    refused = _refused(predicted)
    if truth is not None and (unknown := np.flatnonzero(pd.isna(truth))).size:
        raise ValueError(
            f"y_true has missing values, in {_values.rows(unknown)}. Leave these rows out."
        )
    seen = set(predicted[~refused]) | (set() if truth is None else set(truth))
    if not seen:
        raise ValueError("y_pred holds no answer, so there is no rate to draw.")
    if len({isinstance(value, str) for value in seen}) > 1:
        raise TypeError(
            "y_true and y_pred hold texts beside other values, so that no answer of the one kind "
            "is a label of the other. Write them alike, as with y_true.astype(str)."
        )
    if truth is not None:
        refuse_rejected("y_true", truth)
    order: Callable[[Any], Any] = lambda value: (str(type(value)), value)  # noqa: E731
    classes = sorted(seen, key=order)
    if len(classes) == 1:
        classes.append("(no other class)")
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"pos_label must be one of {classes}, got {pos_label!r}.")
    positive = len(classes) - 1 if pos_label is None else classes.index(pos_label)
    code = {name: k for k, name in enumerate(classes)}
    codes = np.array(
        [REJECTED if no else code[v] for v, no in zip(predicted, refused, strict=True)]
    )
    true_codes = None if truth is None else np.array([code[value] for value in truth], dtype=int)
    _checks.same_length(y_pred=codes, sensitive_features=encode_groups(sensitive_features).codes)
    report = fairness_report(
        true_codes, codes, sensitive_features, classes=classes, positive=positive, units=units
    )
    return report, classes, positive


def selection_among(
    rows: IntArray,
    y_pred: ArrayLike,
    sensitive_features: Any,
    classes: Sequence[object],
    positive: int,
    names: tuple[str, ...],
    units: ArrayLike | None = None,
) -> Sequence[Estimate]:
    """Return the rate of the positive decision per group among some rows."""
    said = np.asarray(y_pred, dtype=object)[rows]
    codes = [
        REJECTED if no else classes.index(value)
        for value, no in zip(said, _refused(said), strict=True)
    ]
    framed = isinstance(sensitive_features, pd.Series | pd.DataFrame)
    groups = sensitive_features.iloc[rows] if framed else np.asarray(sensitive_features)[rows]
    whose = None if units is None else np.asarray(units)[rows]
    return fairness_report(
        None, codes, groups, classes=classes, positive=positive, group_names=names, units=whose
    ).selection


def refuse_rejected(name: str, labels: ArrayLike) -> None:
    """Refuse labels of which one is -1, which stands for a refusal among predictions."""
    if REJECTED in np.asarray(labels).tolist():
        raise ValueError(
            f"{name} holds {REJECTED} as a class, which stands for REJECTED: an answer could not "
            f"be told from a refusal. Give this class another label, before training too."
        )


def _refused(said: Array) -> BoolArray:
    """Return where there is no answer: ``REJECTED`` or a missing value."""
    return np.array([bool(pd.isna(value)) or value == REJECTED for value in said], dtype=np.bool_)

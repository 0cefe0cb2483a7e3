"""A released model whose student, or the last layer of it, is tuned on labelled public rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand import _checks
from evenhand._frames import refuse_other_order
from evenhand.estimators.given_rows import class_codes
from evenhand.estimators.inputs import without_groups_of
from evenhand.estimators.margins import StudentMargin
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.students.fair_tuning import fair_tune
from evenhand.students.last_layer import LastLayer, last_layer
from evenhand.students.score_counts import NO_COUNTS
from evenhand.students.within import Within
from evenhand.typing import ArrayLike


def tuned(
    model: Any,
    X_public: Any,
    y_public: ArrayLike,
    sensitive_features_public: Any,
    fairness: DemographicParity,
    weight: float | None,
) -> Any:
    """Return a tuned copy of a fitted model; see ``ModelWithClaim.fair_tuned``."""
    if not isinstance(fairness, DemographicParity):
        raise ValueError(
            f"fairness must be a DemographicParity, got {fairness!r}. Say how far apart the "
            f"groups may be, for example fairness=DemographicParity(margin=0.05)."
        )
    layer = _tunable(model)
    if sensitive_features_public is None:
        raise ValueError(
            "Fair-tuning needs the group of every labelled public row, and "
            "sensitive_features_public is missing."
        )
    refuse_other_order(
        X_public=X_public,
        y_public=y_public,
        sensitive_features_public=sensitive_features_public,
    )
    X = model._encode(X_public, "X_public")
    groups = encode_groups(sensitive_features_public, argument="sensitive_features_public")
    labels = class_codes(y_public, model.classes_, "y_public")
    _checks.same_length(X_public=X, y_public=labels, sensitive_features_public=groups)
    if not layer.of_columns:
        layer = layer.scaled(X)  # what a network's last layer reads has no scale of its own
    found = fair_tune(
        layer.coef,
        layer.intercept,
        layer.reads(X),
        labels,
        Within(notion=fairness, groups=groups.codes, n_groups=groups.n_groups),
        len(model.classes_),
        weight=weight,
    )
    out = model._copied()
    out.student_ = layer.with_weights(found.fit.coef, found.fit.intercept)
    out.student_margin_ = StudentMargin(
        notion=fairness, gap=found.fit.gap, met=found.fit.met, groups=groups.names
    )
    out.score_counts_ = NO_COUNTS  # they are of the scores before
    out.tuning_weight_, out.fairness_kind_ = found.weight, FairnessKind.WEIGHTS
    said = f"the features, groups and labels of the {len(X)} public rows that tuned the student"
    claim = without_groups_of(model.guarantee_, model.rows_set_aside_, len(X), labels=True)
    out.guarantee_ = replace(claim, public=(*claim.public, said))
    out._fitted = out._describe()
    return out


def _tunable(model: Any) -> LastLayer:
    """Return the layer that is tuned; refuse a model without one."""
    student = model.student_
    layer = last_layer(student)
    if layer is None or len(student.classes_) != len(model.classes_):
        raise ValueError(
            f"Fair-tuning moves the weights of a linear student of all {len(model.classes_)} "
            f"classes, or of a network's last layer, and {type(student).__name__} has none. Train "
            f"with student=None, or set group thresholds instead."
        )
    if model.fitted_.cuts is not None:
        raise ValueError(
            "This model's group thresholds were set on the scores of the untuned student. Tune a "
            "model without them, then call with_group_thresholds."
        )
    return layer

"""The parts of a fitted model as plain values, and back; each value of a file is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from evenhand.datasets import PublicEncoder
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators import parameters, small_groups
from evenhand.estimators.drift import ColumnDrift
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.margins import WHERE, Bound, Cuts, Derived, StudentMargin, TrueGroups
from evenhand.fairness import FairnessKind
from evenhand.fairness.gate.calibrated import GateCalibration
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import require_notion
from evenhand.fairness.trace import Coverage
from evenhand.fairness.yardstick import Yardstick
from evenhand.privacy import Guarantee
from evenhand.privacy.saved_claim import SavedLedger
from evenhand.students.derived import DerivedRule
from evenhand.students.thresholds import GroupThresholds
from evenhand.typing import Array, FloatArray


def to_json(fitted: FittedModel) -> dict[str, Any]:
    """Return all but the claim, the arguments, the answers and the students."""
    assert fitted.encoder is not None
    return {
        "method": fitted.method,
        "fairness_kind": str(fitted.kind),
        "classes": {"dtype": fitted.classes.dtype.str, "values": fitted.classes.tolist()},
        "groups": None if fitted.groups is None else list(fitted.groups),
        "n_columns": fitted.n_columns,
        "columns": list(fitted.columns),
        "n_teachers": fitted.n_teachers,
        "choices": list(fitted.choices),
        "drift": (None if fitted.drift is None else [column.to_dict() for column in fitted.drift]),
        "extractor": None if fitted.extractor is None else fitted.extractor.to_dict(),
        "encoder": fitted.encoder.to_dict(),
        "numbers": {name: _plain(value) for name, value in fitted.numbers.items()},
        "student_margin": _of_margin(fitted.student_margin),
        "cuts": None if fitted.cuts is None else of_cuts(fitted.cuts),
        "derived": _of_derived(fitted.derived),
        "true_groups": _of_true_groups(fitted.true_groups),
        "yardstick": None if fitted.yardstick is None else fitted.yardstick.to_dict(),
        "answered_coverage": (
            None if fitted.answered_coverage is None else fitted.answered_coverage.to_dict()
        ),
        "calibration": None if fitted.calibration is None else fitted.calibration.to_dict(),
    }


def from_json(
    head: Mapping[str, Any],
    *,
    arguments: Mapping[str, Any],
    guarantee: Guarantee,
    ledger: SavedLedger | None,
) -> FittedModel:
    """Read what ``to_json`` wrote; answers and students are put in by whoever reads their files."""
    classes = _to_classes(head["classes"])
    names = tuple(str(name) for name in classes.tolist())
    groups = None if head["groups"] is None else tuple(_texts(head["groups"]))
    found = {name: head[name] for name in ("n_teachers", "student_margin", "cuts", "derived")}
    return FittedModel(
        method=str(head["method"]),
        arguments=arguments,
        classes=classes,
        groups=groups,
        columns=tuple(_texts(head["columns"])),
        n_columns=int(head["n_columns"]),
        guarantee=guarantee,
        ledger=ledger,
        kind=FairnessKind(head["fairness_kind"]),
        student_margin=(
            None
            if found["student_margin"] is None
            else _to_margin(found["student_margin"], groups or ())
        ),
        cuts=None if found["cuts"] is None else to_cuts(found["cuts"], names),
        derived=(
            None if found["derived"] is None else _to_derived(found["derived"], names, groups or ())
        ),
        true_groups=_to_true_groups(head["true_groups"]),
        n_teachers=None if found["n_teachers"] is None else int(found["n_teachers"]),
        choices=tuple(_texts(head["choices"])),
        drift=(
            None
            if head.get("drift") is None
            else tuple(ColumnDrift.from_dict(column) for column in head["drift"])
        ),
        answered_coverage=_to_coverage(head.get("answered_coverage"), groups or (), names),
        calibration=_to_calibration(head.get("calibration"), groups or (), names),
        yardstick=None if head["yardstick"] is None else Yardstick.from_dict(head["yardstick"]),
        numbers={name: _number_or_array(value) for name, value in head["numbers"].items()},
        extractor=(
            None if head["extractor"] is None else ExtractorRecord.from_dict(head["extractor"])
        ),
        encoder=_to_encoder(head["encoder"]),
    )


def _to_calibration(
    values: Mapping[str, Any] | None, groups: tuple[str, ...], classes: tuple[str, ...]
) -> GateCalibration | None:
    if values is None:
        return None
    calibration = GateCalibration.from_dict(values)
    if calibration.labelled.counts.shape[:2] != (len(groups), len(classes)):
        raise ValueError("the calibration rows are not counted by its groups and classes.")
    return calibration


def _to_coverage(
    values: Mapping[str, Any] | None, groups: tuple[str, ...], classes: tuple[str, ...]
) -> Coverage | None:
    if values is None:
        return None
    coverage = Coverage.from_dict(values)
    if coverage.names != groups or coverage.offered.shape[1] != len(classes):
        raise ValueError("the answered rows are not counted by its groups and classes.")
    return coverage


def of_cuts(cuts: Cuts) -> dict[str, Any]:
    """Return thresholds with their margin and their groups."""
    return {
        "fairness": parameters.encode(cuts.notion),
        "groups": list(cuts.groups),
        "thresholds": cuts.thresholds.to_dict(),
        "source": cuts.source,
        "held": cuts.held,
        "cross_fitted": None if cuts.cross_fitted is None else cuts.cross_fitted.to_dict(),
    }


def to_cuts(values: Mapping[str, Any], classes: tuple[str, ...]) -> Cuts:
    """Read what ``of_cuts`` wrote."""
    notion, cross_fitted = parameters.decode(values["fairness"]), values.get("cross_fitted")
    cuts = Cuts(
        notion=notion,
        label=classes[-1],
        groups=tuple(_texts(values["groups"])),
        thresholds=GroupThresholds.from_dict(values["thresholds"]),
        cross_fitted=None if cross_fitted is None else Estimate(**cross_fitted),
        source=values.get("source", "public rows"),
        held=values.get("held"),
    )
    if not isinstance(notion, RateNotion) or cuts.source not in WHERE:
        raise ValueError("the margin of the thresholds is not one of rates, or read nowhere.")
    if len(cuts.groups) != cuts.thresholds.n_groups or len(classes) != 2:
        raise ValueError("the thresholds are not one for each group, or not of two classes.")
    return cuts


def _to_encoder(values: Mapping[str, Any]) -> PublicEncoder | PixelEncoder:
    return (PixelEncoder if "pixels" in values else PublicEncoder).from_dict(values)


def _of_margin(margin: StudentMargin | None) -> dict[str, Any] | None:
    if margin is None:
        return None
    return {
        "notion": parameters.encode(margin.notion),
        "gap": _plain(margin.gap),
        "met": margin.met,
        "source": margin.source,
        "calibration": None if margin.calibration is None else margin.calibration.to_dict(),
        "held": margin.held_record(),
        "cross_fitted": None if margin.cross_fitted is None else margin.cross_fitted.to_dict(),
    }


def _to_margin(values: Mapping[str, Any], groups: tuple[str, ...]) -> StudentMargin:
    calibration, held = values["calibration"], values["held"]
    cross_fitted = values.get("cross_fitted")
    source, gap, met = values["source"], _number(values["gap"]), values["met"]
    if source not in WHERE or not isinstance(met, bool | None):
        raise ValueError("the student's margin is read nowhere, or neither met nor not.")
    notion = require_notion(parameters.decode(values["notion"]), "It is not one.")
    if met and source == "noisy tables" and gap > notion.margin:
        met = None  # models of before were within the margin where noise left that open
    return StudentMargin(
        notion=notion,
        gap=gap,
        met=met,
        source=source,
        calibration=None if calibration is None else Estimate(**calibration),
        held=None if held is None else small_groups.from_dict(held, groups),
        groups=groups,
        cross_fitted=None if cross_fitted is None else Estimate(**cross_fitted),
    )


def _of_derived(derived: Derived | None) -> dict[str, Any] | None:
    if derived is None:
        return None
    return {
        "notion": derived.notion,
        "margin": derived.margin,
        "gap": derived.gap,
        "beyond": derived.beyond,
        "rule": derived.rule.to_dict(),
        "table": derived.table.tolist(),
    }


def _to_derived(
    values: Mapping[str, Any], classes: tuple[str, ...], groups: tuple[str, ...]
) -> Derived:
    rule, table = DerivedRule.from_dict(values["rule"]), _array(values["table"])
    shape = (len(groups), len(classes), len(classes))
    if rule.probabilities.shape != shape or table.shape != shape:
        raise ValueError("the rule, or its table, is not one of its groups and classes.")
    return Derived(
        notion=str(values["notion"]),
        margin=_number(values["margin"]),
        gap=_number(values["gap"]),
        beyond=_number(values["beyond"]),
        classes=classes,
        groups=groups,
        rule=rule,
        table=table,
    )


def _of_true_groups(found: TrueGroups | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return asdict(found) | {
        "violation": _plain(found.violation),
        "bounds": [asdict(bound) for bound in found.bounds],
    }


def _to_true_groups(values: Mapping[str, Any] | None) -> TrueGroups | None:
    if values is None:
        return None
    if not isinstance(values["met"], bool):
        raise ValueError("the violation of the noisy groups is neither within alpha nor not.")
    bounds = tuple(Bound(**bound) for bound in values["bounds"])
    read = {"violation": _number(values["violation"]), "bounds": bounds}
    return TrueGroups(**{**values, **read})


def _to_classes(packed: Mapping[str, Any]) -> Array:
    dtype, values = np.dtype(packed["dtype"]), packed["values"]
    if dtype.kind not in "biufUO" or not all(isinstance(v, str | int | float) for v in values):
        raise ValueError("the classes are neither numbers nor texts.")
    # A width of text that the file names is not believed: it would set memory aside.
    classes: Array = np.array(values, dtype=str if dtype.kind == "U" else dtype)
    if classes.ndim != 1 or len(set(classes.tolist())) < max(1, len(classes)):
        raise ValueError("the classes are none, or not all different.")
    return classes


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"a list of texts is needed, not {values!r:.80}.")
    return values


def _plain(value: float | FloatArray) -> Any:
    """Return a number or an array as JSON has it; JSON has no NaN."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if value != value else float(value)


def _number(value: Any) -> float:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"a number is needed, not {value!r:.80}.")
    return float("nan") if value is None else float(value)


def _array(values: Any) -> FloatArray:
    array: FloatArray = np.array(values, dtype=np.float64)
    return array


def _number_or_array(value: Any) -> float | FloatArray:
    return _array(value) if isinstance(value, list) else _number(value)

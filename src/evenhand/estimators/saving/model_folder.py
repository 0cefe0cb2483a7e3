"""A fitted model as a folder of plain files: JSON and safetensors, never pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand._folder import (
    Folder,
    read_folder,
    reading,
    seal,
    write_arrays,
    write_folder,
    write_json,
)
from evenhand._signing import PrivateKey
from evenhand.datasets import PublicEncoder
from evenhand.estimators import parameters, small_groups
from evenhand.estimators.saving.skops_files import TypesNotTrusted, dump_skops, load_skops
from evenhand.estimators.saving.student_files import load_student, refuse_modules, save_student
from evenhand.estimators.sf_pate.bounds import Bound
from evenhand.fairness import Estimate, FairnessKind, Yardstick
from evenhand.privacy import Guarantee, SavedLedger
from evenhand.privacy.saved_claim import claim_record, read_claim
from evenhand.students.derived import DerivedRule
from evenhand.students.thresholds import GroupThresholds
from evenhand.typing import Array
from evenhand.voting import Answers, Shares

KIND: Final = "model"
MODEL, CLAIM = "model.json", "claim.json"
ANSWERS, SETTINGS = "answers.safetensors", "settings.skops"

_NUMBERS: Final = (
    "bound_",
    "public_gap_",
    "within_margin_",
    "margin_source_",
    "training_gap_",
    "estimated_gap_",
    "noisy_violation_",
    "within_alpha_",
    "table_gap_",
    "noise_bound_",
)


class ModelDamaged(ValueError):
    """A model folder that is not what ``save`` wrote, or whose claim its ledger does not bear."""


def save(model: Any, path: Path, sign: str | Path | None) -> Path:
    """Write ``model`` to the new folder ``path``: all of it, or nothing.

    Raises
    ------
    FileExistsError
        If something is there already.
    """
    refuse_modules(model)
    key = None if sign is None else PrivateKey.read(sign)

    def write(folder: Path) -> None:
        _write(model, folder)
        seal(folder, KIND, key)

    return write_folder(path, write)


def load(path: Path, methods: Mapping[str, type], trusted: Iterable[str]) -> Any:
    """Read a folder that ``save`` wrote; see :func:`evenhand.load`."""
    folder = read_folder(path, (KIND,), ModelDamaged)
    head = folder.json(MODEL)
    with reading(path, ModelDamaged, TypesNotTrusted):
        method = methods.get(str(head["method"]))
        if method is None:
            raise ModelDamaged(f"{path / MODEL} names the unknown method {head['method']!r}.")
        model = _restore(folder, head, method, trusted)
        if (cut := head["thresholded"]) is not None:
            model = _restore_thresholds(folder, head, methods[cut["method"]], model)
        _try(model)
        return model


def _try(model: Any) -> None:
    """Decide on rows of missing values: parts that do not fit each other show here."""
    inner = getattr(model, "model_", model)
    groups = model.groups_ if model.needs_group_at_prediction_ else ("",)
    rows: Any = np.full((len(groups), inner.n_features_in_), np.nan)
    if hasattr(inner, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=inner.feature_names_in_)
    if model.needs_group_at_prediction_:
        model.predict(rows, sensitive_features=list(groups))
    else:
        model.predict(rows)
        if hasattr(model, "predict_proba"):
            model.predict_proba(rows)


def claim_of(folder: Folder, methods: Mapping[str, Any]) -> Guarantee:
    """Return the claim of a folder if its ledger and its method bear it out; run nothing."""
    head = folder.json(MODEL)
    with reading(folder.path, ModelDamaged):
        return _claims(folder, head, methods[head["method"]])[0]


def _claims(
    folder: Folder, head: Mapping[str, Any], method: Any
) -> tuple[Guarantee, Guarantee, SavedLedger | None]:
    """Return the claim of the folder, that of the model without thresholds, and the ledger."""
    record = folder.json(CLAIM)
    known = {"neighbors": method.NEIGHBORS, "own_words": folder.own_words}
    whole, ledger = read_claim(record, **known)
    own = whole
    kind = FairnessKind(head["fairness_kind"])
    if head["thresholded"] is not None:
        own, _ = read_claim(record | record["model"], **known)
        kind = FairnessKind.THRESHOLDS
    said = record["fairness"]
    if (said["kind"], said["needs_group_at_prediction"]) != (str(kind), kind.needs_group):
        raise ValueError(f"the claim's fairness is not that of the model, which is {str(kind)!r}.")
    if said["held"] != head["held"]:
        raise ValueError(
            "the claim does not say which groups the model holds to more than its margin"
        )
    return whole, own, ledger


def _restore(folder: Folder, head: Mapping[str, Any], method: Any, trusted: Iterable[str]) -> Any:
    given = {name: parameters.decode(value) for name, value in head["arguments"].items()}
    if head["others"]:
        given |= load_skops(folder, SETTINGS, trusted)
    model = method(**given)
    _, model.guarantee_, model.ledger_ = _claims(folder, head, method)
    noise = getattr(model, "noise", None)
    if noise is not None and model.guarantee_.holds and not noise.protects:
        raise ValueError("the claim holds, and the noise of the model's settings protects nobody")
    model.fairness_kind_ = FairnessKind(head["fairness_kind"])
    model.classes_ = _unpack(head["classes"])
    model.groups_ = None if head["groups"] is None else tuple(_texts(head["groups"]))
    model.n_features_in_ = int(head["n_features_in"])
    if head["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(_texts(head["feature_names_in"]), dtype=object)
    model.encoder_ = PublicEncoder.from_dict(head["encoder"])
    if head["n_teachers"] is not None:
        model.n_teachers_ = int(head["n_teachers"])
    if head["choices"]:
        model.choices_ = tuple(_texts(head["choices"]))
    if head["answers"] is not None:
        model.answers_ = _load_answers(folder, head["answers"])
    if head["group_thresholds"] is not None:
        model.group_thresholds_ = GroupThresholds.from_dict(head["group_thresholds"])
    for name in _NUMBERS:
        if name in head["numbers"]:
            setattr(model, name, _number(head["numbers"][name]))
    if head["rule"] is not None:
        model.rule_ = DerivedRule.from_dict(head["rule"])
        model.table_ = np.array(head["table"], dtype=np.float64)
        if model.rule_.probabilities.shape[:2] != (len(model.groups_), len(model.classes_)):
            raise ValueError("the rule is not one of its groups and classes.")
    if (held := head["held"]) is not None:
        model.held_ = small_groups.from_dict(held, model.groups_)
    if (yardstick := head["yardstick"]) is not None:
        model.public_yardstick_ = Yardstick.from_dict(yardstick)
    if (estimate := head["calibration_gap"]) is not None:
        model.calibration_gap_ = Estimate(**estimate)
    if (bounds := head["bounds"]) is not None:
        model.bounds_ = tuple(Bound(**bound) for bound in bounds)
    if (shares := head["estimated_shares"]) is not None:
        model.estimated_shares_ = np.array(shares, dtype=np.float64)
    shape = {"n_features": model.encoder_.n_features_out_, "n_classes": len(model.classes_)}
    model.student_ = load_student(folder, head["student"], **shape, trusted=trusted)
    if (free := head["without_margin"]) is not None:
        model.student_without_margin_ = load_student(folder, free, **shape, trusted=trusted)
    return model


def _restore_thresholds(folder: Folder, head: Mapping[str, Any], method: Any, inner: Any) -> Any:
    """Put the thresholds around the model that they cut; both stand in one folder."""
    cut = head["thresholded"]
    model = method(inner, parameters.decode(cut["fairness"]))
    model.guarantee_, _, _ = _claims(folder, head, type(inner))
    model.thresholds_ = GroupThresholds.from_dict(cut["thresholds"])
    model.groups_ = tuple(_texts(cut["groups"]))
    if len(model.groups_) != len(model.thresholds_.thresholds) or len(inner.classes_) != 2:
        raise ValueError("the thresholds are not one for each group, or not of two classes.")
    return model._around(inner)


def _write(model: Any, folder: Path) -> None:
    cut = hasattr(model, "thresholds_")
    inner = model.model_ if cut else model
    write_json(folder / MODEL, _head(inner, folder) | {"thresholded": _cut(model) if cut else None})
    claim = claim_record(model.guarantee_, model.ledger_) | {
        "fairness": {
            "kind": str(model.fairness_kind_),
            "needs_group_at_prediction": model.needs_group_at_prediction_,
            "held": _held(inner),
        },
    }
    if cut:
        own = claim_record(inner.guarantee_, None)
        claim["model"] = {name: own[name] for name in ("sentence", "guarantee")}
    write_json(folder / CLAIM, claim)


def _cut(model: Any) -> dict[str, Any]:
    """Return the thresholds that stand around a model."""
    return {
        "method": type(model).__name__,
        "fairness": parameters.encode(model.fairness),
        "thresholds": model.thresholds_.to_dict(),
        "groups": list(model.groups_),
    }


def _head(model: Any, folder: Path) -> dict[str, Any]:
    """Write what is not JSON into the folder, and return the rest."""
    names = getattr(model, "feature_names_in_", None)
    arguments, others = _arguments(model, folder)
    answers: Answers | Shares | None = getattr(model, "answers_", None)
    thresholds: GroupThresholds | None = getattr(model, "group_thresholds_", None)
    return {
        "method": type(model).__name__,
        "fairness_kind": str(model.fairness_kind_),
        "classes": _pack(model.classes_),
        "groups": None if model.groups_ is None else list(model.groups_),
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "n_teachers": getattr(model, "n_teachers_", None),
        "choices": list(getattr(model, "choices_", ())),
        "mechanism": repr(getattr(model, "mechanism_", None)),
        "arguments": arguments,
        "others": others,
        "encoder": model.encoder_.to_dict(),
        "student": save_student(model.student_, folder),
        "numbers": {
            name: None if value != value else value  # JSON has no NaN
            for name in _NUMBERS
            if (value := getattr(model, name, None)) is not None
        },
        "group_thresholds": None if thresholds is None else thresholds.to_dict(),
        "rule": model.rule_.to_dict() if hasattr(model, "rule_") else None,
        "table": model.table_.tolist() if hasattr(model, "rule_") else None,
        "calibration_gap": (
            None
            if (estimate := getattr(model, "calibration_gap_", None)) is None
            else estimate.to_dict()
        ),
        "bounds": (
            [asdict(bound) for bound in model.bounds_] if hasattr(model, "bounds_") else None
        ),
        "estimated_shares": (
            None
            if (shares := getattr(model, "estimated_shares_", None)) is None
            else shares.tolist()
        ),
        "held": _held(model),
        "yardstick": (
            None
            if (yardstick := getattr(model, "public_yardstick_", None)) is None
            else yardstick.to_dict()
        ),
        "without_margin": (
            None
            if (free := getattr(model, "student_without_margin_", None)) is None
            else save_student(free, folder, "without_margin")
        ),
        "answers": None if answers is None else _save_answers(answers, folder / ANSWERS),
    }


def _arguments(model: Any, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the constructor's arguments as JSON, and the names of those that skops must keep."""
    plain, others = {}, {}
    for name, value in model.get_params(deep=False).items():
        try:
            plain[name] = parameters.encode(value)
        except parameters.NotPlain:
            others[name] = value
    if others:
        dump_skops(others, folder / SETTINGS)
    return plain, sorted(others)


def _held(model: Any) -> dict[str, Any] | None:
    """Return which groups are held to more than the margin: a part of what is claimed."""
    held = getattr(model, "held_", None)
    return None if held is None else small_groups.to_dict(held, model.groups_)


def _save_answers(answers: Answers | Shares, file: Path) -> dict[str, Any]:
    """Write the arrays, and return the rest for the head."""
    if isinstance(answers, Shares):
        arrays: dict[str, Array] = {"shares": answers.shares, "variance": answers.variance}
        if answers.groups is not None:
            arrays["groups"] = answers.groups
        write_arrays(file, arrays)
        return {"n_asked": answers.n_asked}
    arrays = {"labels": answers.labels, "reasons": answers.reasons}
    arrays |= {"order": answers.order, "events": answers.events}
    if answers.groups is not None:
        arrays["groups"] = answers.groups
    write_arrays(file, arrays)
    return {
        "n_checks": answers.n_checks,
        "n_draws": answers.n_draws,
        "n_classes": answers.n_classes,
    }


def _load_answers(folder: Folder, head: Mapping[str, Any]) -> Answers | Shares:
    arrays = folder.arrays(ANSWERS)
    if "shares" in arrays:
        return Shares(
            shares=arrays["shares"],
            variance=arrays["variance"],
            groups=arrays.get("groups"),
            **head,
        )
    return Answers(
        labels=arrays["labels"],
        reasons=arrays["reasons"],
        order=arrays["order"],
        events=arrays["events"],
        groups=arrays.get("groups"),
        **head,
    )


def _pack(classes: Any) -> dict[str, Any]:
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def _unpack(packed: Mapping[str, Any]) -> Array:
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


def _number(value: Any) -> Any:
    """Return a number, a text or a truth value; JSON has no NaN."""
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError(f"a number is needed, not {value!r:.80}.")
    return float("nan") if value is None else value

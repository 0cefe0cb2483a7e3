"""A fitted model as a folder of plain files: JSON, safetensors and skops, never pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import load_file, save_file

from evenhand._folder import MANIFEST, read_json, verify, write_folder, write_json, write_manifest
from evenhand._version import __version__
from evenhand.datasets import PublicEncoder
from evenhand.estimators import parameters
from evenhand.estimators.sf_bounds import Bound
from evenhand.estimators.student_files import (
    dump_skops,
    load_skops,
    load_student,
    refuse_modules,
    save_student,
)
from evenhand.fairness import Estimate, FairnessKind, Yardstick
from evenhand.privacy import Guarantee, SavedLedger
from evenhand.students import DerivedRule, GroupThresholds, LinearFit
from evenhand.typing import Array
from evenhand.voting import Answers, Shares

FORMAT: Final = 1
MODEL, CLAIM = "model.json", "claim.json"
ANSWERS, SETTINGS = "answers.safetensors", "settings.skops"
INNER: Final = "model"
"""Folder of the model inside that of its thresholds."""

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
    """A model folder that is not what ``save`` wrote: a file is missing, cut short or edited."""


def save(model: Any, path: Path) -> Path:
    """Write ``model`` to the new folder ``path``: all of it, or nothing.

    Raises
    ------
    FileExistsError
        If something is there already.
    """
    refuse_modules(model)
    return write_folder(path, lambda folder: _write(model, folder))


def load(path: Path, methods: Mapping[str, type], trusted: Iterable[str]) -> Any:
    """Read a folder that ``save`` wrote; see :func:`evenhand.load`."""
    verify(path, ModelDamaged)
    head = read_json(path / MODEL, ModelDamaged)
    if head.get("format") != FORMAT:
        raise ModelDamaged(
            f"{path / MODEL} has format {head.get('format')!r}; this version of evenhand "
            f"({__version__}) reads format {FORMAT}. Load it with the version that wrote it "
            f"({head.get('evenhand')})."
        )
    method = methods.get(str(head["method"]))
    if method is None:
        raise ModelDamaged(f"{path / MODEL} names the unknown method {head['method']!r}.")
    try:
        if "thresholds" in head:
            return _restore_thresholds(path, head, methods, trusted)
        return _restore(path, head, method, trusted)
    except KeyError as error:
        raise ModelDamaged(
            f"{path} lacks the entry {error}: it was written by another version of evenhand "
            f"({head.get('evenhand')}; this is {__version__}). Load it with that version."
        ) from None


def _restore(path: Path, head: Mapping[str, Any], method: type, trusted: Iterable[str]) -> Any:
    plain = head["arguments"]
    model = method(
        **(
            load_skops(path / SETTINGS, trusted)
            if plain is None
            else {name: parameters.decode(value) for name, value in plain.items()}
        )
    )
    claim = read_json(path / CLAIM, ModelDamaged)
    model.guarantee_ = Guarantee.from_dict(claim["guarantee"])
    model.ledger_ = None if claim["ledger"] is None else SavedLedger(record=claim["ledger"])
    model.fairness_kind_ = FairnessKind(claim["fairness"]["kind"])
    model.classes_ = _unpack(head["classes"])
    model.groups_ = None if head["groups"] is None else tuple(head["groups"])
    model.n_features_in_ = head["n_features_in"]
    if head["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(head["feature_names_in"], dtype=object)
    model.encoder_ = PublicEncoder.from_dict(head["encoder"])
    if head["n_teachers"] is not None:
        model.n_teachers_ = head["n_teachers"]
    if head["choices"]:
        model.choices_ = tuple(head["choices"])
    if head["answers"] is not None:
        model.answers_ = _load_answers(path / ANSWERS, head["answers"])
    if head.get("group_thresholds") is not None:
        model.group_thresholds_ = GroupThresholds.from_dict(head["group_thresholds"])
    for name, value in head["student"].items():
        setattr(model, name, float("nan") if value is None else value)
    if head.get("rule") is not None:
        model.rule_ = DerivedRule.from_dict(head["rule"])
        model.table_ = np.array(head["table"], dtype=np.float64)
    if (yardstick := head.get("yardstick")) is not None:
        model.public_yardstick_ = Yardstick.from_dict(yardstick)
    if (free := head.get("without_margin")) is not None:
        coef, intercept = np.array(free["coef"]), np.array(free["intercept"])
        fit = LinearFit(coef=coef, intercept=intercept, gap=float("nan"), met=True)
        model.student_without_margin_ = fit.classifier(len(model.classes_))
    if (estimate := head.get("calibration_gap")) is not None:
        model.calibration_gap_ = Estimate(**estimate)
    if (bounds := head.get("bounds")) is not None:
        model.bounds_ = tuple(Bound(**bound) for bound in bounds)
    if (shares := head.get("estimated_shares")) is not None:
        model.estimated_shares_ = np.array(shares, dtype=np.float64)
    model.student_ = load_student(path, trusted)
    return model


def _restore_thresholds(
    path: Path, head: Mapping[str, Any], methods: Mapping[str, type], trusted: Iterable[str]
) -> Any:
    inner = load(path / INNER, methods, trusted)
    model = methods[head["method"]](inner, parameters.decode(head["fairness"]))
    model.guarantee_ = Guarantee.from_dict(read_json(path / CLAIM, ModelDamaged)["guarantee"])
    model.thresholds_ = GroupThresholds.from_dict(head["thresholds"])
    model.groups_ = tuple(head["groups"])
    return model._around(inner)


def _write(model: Any, folder: Path) -> None:
    if hasattr(model, "thresholds_"):
        _write_thresholds(model, folder)
    else:
        _write_model(model, folder)
    ledger = model.ledger_
    write_json(
        folder / CLAIM,
        {
            "sentence": str(model.guarantee_),
            "guarantee": model.guarantee_.to_dict(),
            "ledger": None if ledger is None else ledger.to_dict(),
            "fairness": {
                "kind": str(model.fairness_kind_),
                "needs_group_at_prediction": model.needs_group_at_prediction_,
            },
        },
    )
    # The inner folder's own manifest stands for all of its files.
    files = sorted(p.name for p in folder.iterdir() if p.is_file())
    inner = [f"{INNER}/{MANIFEST}"] if (folder / INNER).is_dir() else []
    write_manifest(folder, (*files, *inner))


def _write_thresholds(model: Any, folder: Path) -> None:
    """Write the thresholds beside the model that they cut, which has a folder of its own."""
    save(model.model_, folder / INNER)
    write_json(
        folder / MODEL,
        {
            "format": FORMAT,
            "evenhand": __version__,
            "method": type(model).__name__,
            "fairness": parameters.encode(model.fairness),
            "thresholds": model.thresholds_.to_dict(),
            "groups": list(model.groups_),
        },
    )


def _write_model(model: Any, folder: Path) -> None:
    names = getattr(model, "feature_names_in_", None)
    answers: Answers | Shares | None = getattr(model, "answers_", None)
    thresholds: GroupThresholds | None = getattr(model, "group_thresholds_", None)
    head = {
        "format": FORMAT,
        "evenhand": __version__,
        "method": type(model).__name__,
        "classes": _pack(model.classes_),
        "groups": None if model.groups_ is None else list(model.groups_),
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "n_teachers": getattr(model, "n_teachers_", None),
        "choices": list(getattr(model, "choices_", ())),
        "mechanism": repr(getattr(model, "mechanism_", None)),
        "arguments": _plain_arguments(model, folder),
        "encoder": model.encoder_.to_dict(),
        "student": {
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
        "yardstick": (
            None
            if (yardstick := getattr(model, "public_yardstick_", None)) is None
            else yardstick.to_dict()
        ),
        "without_margin": _coefficients(getattr(model, "student_without_margin_", None)),
        "answers": None if answers is None else _save_answers(answers, folder / ANSWERS),
    }
    write_json(folder / MODEL, head)
    save_student(model.student_, folder)


def _coefficients(student: Any) -> dict[str, Any] | None:
    """Return a linear student in plain numbers."""
    if student is None:
        return None
    return {"coef": student.coef_.tolist(), "intercept": student.intercept_.tolist()}


def _plain_arguments(model: Any, folder: Path) -> dict[str, Any] | None:
    """Return the constructor's arguments for the head; None where they need skops, and use it."""
    given = model.get_params(deep=False)
    try:
        return {name: parameters.encode(value) for name, value in given.items()}
    except parameters.NotPlain:
        dump_skops(given, folder / SETTINGS)
        return None


def _save_answers(answers: Answers | Shares, file: Path) -> dict[str, Any]:
    """Write the arrays, and return the rest for the head."""
    if isinstance(answers, Shares):
        arrays: dict[str, Array] = {"shares": answers.shares, "variance": answers.variance}
        if answers.groups is not None:
            arrays["groups"] = answers.groups
        save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, file)
        return {"n_asked": answers.n_asked}
    arrays = {"labels": answers.labels, "reasons": answers.reasons}
    arrays |= {"order": answers.order, "events": answers.events}
    if answers.groups is not None:
        arrays["groups"] = answers.groups
    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, file)
    return {
        "n_checks": answers.n_checks,
        "n_draws": answers.n_draws,
        "n_classes": answers.n_classes,
    }


def _load_answers(file: Path, head: Mapping[str, Any]) -> Answers | Shares:
    arrays = load_file(file)
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


def _unpack(packed: Mapping[str, Any]) -> Any:
    dtype = str(packed["dtype"])
    return np.array(packed["values"], dtype=object if dtype == "|O" else dtype)

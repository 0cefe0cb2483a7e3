"""A fitted model as a folder of plain files: JSON and safetensors, never pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand._folder import (
    Folder,
    TypesNotTrusted,
    read_folder,
    reading,
    seal,
    write_arrays,
    write_folder,
    write_json,
)
from evenhand._signing import PrivateKey
from evenhand.datasets import PublicEncoder
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators import parameters
from evenhand.estimators.fitted import FittedModel, decide
from evenhand.estimators.saving import fitted_json
from evenhand.estimators.saving.student_files import load_student, refuse_modules, save_student
from evenhand.fairness import FairnessKind
from evenhand.fairness.notions import notion_named
from evenhand.learners.nets.architectures import registered
from evenhand.learners.skops_files import dump_skops, load_skops
from evenhand.privacy import Guarantee
from evenhand.privacy.saved_claim import SavedLedger, claim_record, read_claim
from evenhand.typing import Array
from evenhand.voting import Answers, Shares

KIND: Final = "model"
MODEL, CLAIM = "model.json", "claim.json"
ANSWERS, SETTINGS = "answers.safetensors", "settings.skops"


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


def load(path: Path, methods: Mapping[str, Any], trusted: Iterable[str]) -> Any:
    """Read a folder that ``save`` wrote; see :func:`evenhand.load`."""
    folder = read_folder(path, (KIND,), ModelDamaged)
    head = folder.json(MODEL)
    trusted = list(trusted)
    for home in trusted:
        if ":" in home:
            _import(home)
    with reading(path, ModelDamaged, TypesNotTrusted):
        method = methods.get(str(head["method"]))
        if method is None:
            raise ModelDamaged(f"{path / MODEL} names the unknown method {head['method']!r}.")
        model = _restore(folder, head, method, trusted)
        if (cut := head["thresholded"]) is not None:
            cuts = fitted_json.to_cuts(cut, model.fitted_.class_names)
            whole, _, _ = _claims(folder, head, method)
            model = methods[cut["method"]].of_cuts(model, cuts, whole)
        _try(model)
        return model


def _blank(encoder: PublicEncoder | PixelEncoder) -> Array:
    """Return one encoded row of zeros."""
    if isinstance(encoder, PixelEncoder):
        return encoder.blank(1)
    return np.zeros((1, encoder.n_features_out_))


def _import(home: str) -> None:
    """Import a notion or an architecture of the user's own: a file may name it from then on."""
    module, _, name = home.partition(":")
    kind = getattr(import_module(module), name, None)
    if isinstance(kind, type) and hasattr(kind, "build"):
        registered(kind)
    else:
        notion_named(home)


def _try(model: Any) -> None:
    """Decide on rows of missing values: parts that do not fit each other show here."""
    fitted = model.fitted_
    groups = fitted.groups if fitted.needs_group else ("",)
    rows: Any = np.full((len(groups), fitted.n_columns), np.nan)
    if fitted.columns:
        rows = pd.DataFrame(rows, columns=list(fitted.columns))
    if isinstance(fitted.encoder, PixelEncoder):
        rows = fitted.encoder.blank(len(groups))
    decide(model, rows, list(groups))
    if not fitted.needs_group and hasattr(model, "predict_proba"):
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
    margin = head["student_margin"]
    if said["held"] != (None if margin is None else margin["held"]):
        raise ValueError(
            "the claim does not say which groups the model holds to more than its margin"
        )
    return whole, own, ledger


def _restore(folder: Folder, head: Mapping[str, Any], method: Any, trusted: Iterable[str]) -> Any:
    _refuse_older(head["method"], head["arguments"], method)
    given = {name: parameters.decode(value) for name, value in head["arguments"].items()}
    if head["others"]:
        given |= load_skops(folder, SETTINGS, trusted)
    model = method(**given)
    _, own, ledger = _claims(folder, head, method)
    noise = given.get("noise")
    if noise is not None and own.holds and not noise.protects:
        raise ValueError("the claim holds, and the noise of the model's settings protects nobody")
    fitted = fitted_json.from_json(head, arguments=given, guarantee=own, ledger=ledger)
    assert fitted.encoder is not None
    shape: dict[str, Any] = {"row": _blank(fitted.encoder), "n_classes": len(fitted.classes)}
    answers, free = head["answers"], head["without_margin"]
    fitted = replace(
        fitted,
        answers=None if answers is None else _load_answers(folder, answers),
        student=load_student(folder, head["student"], **shape, trusted=trusted),
        without_margin=(
            None if free is None else load_student(folder, free, **shape, trusted=trusted)
        ),
    )
    model._restore(fitted)
    return model


def _refuse_older(name: str, arguments: Mapping[str, Any], method: Any) -> None:
    """Raise ModelDamaged for arguments of an earlier version, and say how to convert."""
    unknown = sorted(set(arguments) - set(signature(method).parameters))
    if unknown:
        of_name = _INSTEAD.get(name, {})
        raise ModelDamaged(
            f"The model was saved by an earlier version of evenhand, with arguments that {name} no "
            f"longer has: {', '.join(unknown)}. Train it again"
            + "".join(f", {of_name[argument]}" for argument in unknown if argument in of_name)
            + "; or go on with the version that saved it."
        )


_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = {
    "FairPATEClassifier": {
        "answers": "with FairSharesClassifier if it learned from noisy shares",
        "rule": "with evenhand.baselines.PublishedFairPATEClassifier if its rule was 'published'",
    }
}
"""By class and argument that it had: what has taken its place."""


def _write(model: Any, folder: Path) -> None:
    whole: FittedModel = model.fitted_
    fitted = whole.core
    cut = None
    if whole.inside is not None:
        assert whole.cuts is not None
        cut = {"method": whole.method, **fitted_json.of_cuts(whole.cuts)}
    write_json(folder / MODEL, _head(fitted, folder) | {"thresholded": cut})
    held = None if fitted.student_margin is None else fitted.student_margin.held_record()
    claim = claim_record(whole.guarantee, whole.ledger) | {
        "fairness": {
            "kind": str(whole.kind),
            "needs_group_at_prediction": whole.needs_group,
            "held": held,
        },
    }
    if cut is not None:
        own = claim_record(fitted.guarantee, None)
        claim["model"] = {name: own[name] for name in ("sentence", "guarantee")}
    write_json(folder / CLAIM, claim)


def _head(fitted: FittedModel, folder: Path) -> dict[str, Any]:
    """Write what is not JSON into the folder, and return the rest."""
    arguments, others = _arguments(fitted.arguments, folder)
    answers, free = fitted.answers, fitted.without_margin
    return fitted_json.to_json(fitted) | {
        "arguments": arguments,
        "others": others,
        "student": save_student(fitted.student, folder),
        "without_margin": None if free is None else save_student(free, folder, "without_margin"),
        "answers": None if answers is None else _save_answers(answers, folder / ANSWERS),
    }


def _arguments(given: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the constructor's arguments as JSON, and the names of those that skops must keep."""
    plain, others = {}, {}
    for name, value in given.items():
        try:
            plain[name] = parameters.encode(value)
        except parameters.NotPlain:
            others[name] = value
    if others:
        dump_skops(others, folder / SETTINGS)
    return plain, sorted(others)


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

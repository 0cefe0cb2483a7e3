"""A fitted student as arrays and JSON, or as skops where it is one of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from evenhand._folder import Folder, write_arrays
from evenhand._torch import is_module
from evenhand.estimators import parameters
from evenhand.estimators.teaching import makes_models
from evenhand.learners.mixture import Mixture
from evenhand.learners.nets.architectures import (
    ARCHITECTURES,
    is_architecture,
    restored,
    weights_of,
)
from evenhand.learners.skops_files import dump_skops, load_skops
from evenhand.students import ModuleClassifier, ModuleStudent, ReductionStudent
from evenhand.students.additive import AdditiveScores
from evenhand.students.blind_rule import BlindRule
from evenhand.students.constrained import linear_model
from evenhand.students.inferred_groups import InferredGroups, Recalibrated
from evenhand.students.network import with_layers
from evenhand.typing import Array, FloatArray

SKOPS: Final = "skops"

_ACTIVATIONS: Final = ("identity", "logistic", "tanh", "relu")
_OUTPUTS: Final = ("logistic", "softmax")


def refuse_modules(model: Any) -> None:
    """Raise ValueError for a model whose student or teachers are torch modules of the user's."""
    for name, value in model.get_params(deep=True).items():
        at_teachers = name in ("teachers", "teachers__architecture")
        bare = at_teachers and (is_module(value) or makes_models(value))
        bare |= name == "architecture" and is_module(value)
        of_module = isinstance(value, ModuleStudent | ModuleClassifier)
        if bare or (of_module and not is_architecture(value.module)):
            raise ValueError(
                f"{name.replace('__', '.')} holds a torch module, or what makes one, which cannot "
                f"be read back without running its code. Keep the weights by torch.save (those of "
                f"the student are in model.student_.module_), or name one of the architectures "
                f"{', '.join(ARCHITECTURES)} of evenhand.learners.nets in its place, or one of "
                f"your own that is registered there."
            )


def save_student(student: Any, folder: Path, name: str = "student") -> dict[str, Any]:
    """Write a fitted student, and return for the head what it is and in which file it stands."""
    arrays: dict[str, Array] = {}
    try:
        said = _describe(student, arrays, "")
    except parameters.NotPlain:
        dump_skops(student, folder / f"{name}.skops")
        return {"kind": SKOPS, "file": f"{name}.skops"}
    write_arrays(folder / f"{name}.safetensors", arrays)
    return said | {"file": f"{name}.safetensors"}


def load_student(
    folder: Folder,
    said: Mapping[str, Any],
    *,
    row: Array,
    n_classes: int,
    trusted: Iterable[str],
) -> Any:
    """Read what ``save_student`` wrote, and see that it answers such a ``row`` (1, ...)."""
    if said["kind"] == SKOPS:
        student = load_skops(folder, said["file"], trusted)
    else:
        student = _restore(said, folder.arrays(said["file"]), "")
    known = np.asarray(student.classes_)
    if known.dtype.kind not in "iu" or not np.isin(known, np.arange(n_classes)).all():
        raise ValueError(f"the student's classes are not among the codes 0 to {n_classes - 1}.")
    decided = np.asarray(student.predict(row))
    if decided.shape != (1,) or not np.isin(decided, known).all():
        raise ValueError("the student does not answer a row with one of its classes.")
    return student


def _describe(student: Any, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    """Say what a student is, and put its numbers under names that begin with ``at``."""
    kind = type(student)
    if kind not in _KINDS:
        raise parameters.NotPlain(f"{kind.__module__}.{kind.__qualname__} is not kept as arrays.")
    name, describe, _ = _KINDS[kind]
    return {"kind": name, **describe(student, arrays, at)}


def _restore(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> Any:
    for name, _, restore in _KINDS.values():
        if name == said["kind"]:
            return restore(said, arrays, at)
    raise ValueError(f"the student's kind {said['kind']!r} is not known.")


def _linear(student: LogisticRegression, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    arrays[f"{at}coef"], arrays[f"{at}intercept"] = student.coef_, student.intercept_
    arrays[f"{at}classes"] = student.classes_
    return {}


def _to_linear(_: Any, arrays: Mapping[str, Array], at: str) -> LogisticRegression:
    coef, intercept = _layer(arrays[f"{at}coef"], arrays[f"{at}intercept"])
    classes = arrays[f"{at}classes"]
    _require_scores(len(intercept), classes)
    return linear_model(coef, intercept, classes)


def _network(student: MLPClassifier, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    for i, (weight, bias) in enumerate(zip(student.coefs_, student.intercepts_, strict=True)):
        arrays[f"{at}{i}.weight"], arrays[f"{at}{i}.bias"] = weight, bias
    arrays[f"{at}classes"] = student.classes_
    return {
        "n_layers": len(student.coefs_),
        "activation": student.activation,
        "output": student.out_activation_,
    }


def _to_network(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> MLPClassifier:
    layers = []
    for i in range(said["n_layers"]):
        weight, bias = _layer(arrays[f"{at}{i}.weight"].T, arrays[f"{at}{i}.bias"])
        layers.append((weight.T, bias))
    for (_, bias), (weight, _) in pairwise(layers):
        if len(bias) != len(weight):
            raise ValueError("the student's layers do not fit each other.")
    if said["activation"] not in _ACTIVATIONS or said["output"] not in _OUTPUTS:
        raise ValueError(f"the student's activations are not known: {said['activation']!r}.")
    classes = arrays[f"{at}classes"]
    _require_scores(len(layers[-1][1]), classes)
    return with_layers(layers, classes, activation=said["activation"], output=said["output"])


def _constant(student: DummyClassifier, _: dict[str, Array], at: str) -> dict[str, Any]:
    if student.strategy != "constant" or student.n_outputs_ != 1:
        raise parameters.NotPlain(f"{student!r} is not a constant.")
    return {"constant": int(student.constant), "classes": student.classes_.tolist()}


def _to_constant(said: Mapping[str, Any], *_: Any) -> DummyClassifier:
    codes = np.array(said["classes"], dtype=np.int64)
    return DummyClassifier(strategy="constant", constant=int(said["constant"])).fit(
        np.zeros((len(codes), 1)), codes
    )


def _mixture(student: Mixture, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    arrays[f"{at}weights"] = student.weights_
    members = [_describe(member, arrays, f"{at}{i}.") for i, member in enumerate(student.members_)]
    return {"seed": int(student.seed), "members": members}


def _to_mixture(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> Mixture:
    members = [_restore(one, arrays, f"{at}{i}.") for i, one in enumerate(said["members"])]
    mixture = Mixture.of(members, arrays[f"{at}weights"], seed=int(said["seed"]))
    mixture.weights_ = arrays[f"{at}weights"]  # to the last bit
    return mixture


def _reduction(student: ReductionStudent, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    return {
        "mixture": _describe(student.mixture_, arrays, at),
        "arguments": parameters.encode(student),
        "n_features": int(student.n_features_in_),
    }


def _to_reduction(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> Any:
    student = parameters.decode(said["arguments"])
    if type(student) is not ReductionStudent:
        raise ValueError("the student's arguments are those of another kind.")
    student.mixture_ = _restore(said["mixture"], arrays, at)
    student.classes_, student.n_features_in_ = np.array([0, 1]), int(said["n_features"])
    return student


def _module(student: ModuleClassifier, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    said = parameters.encode(student.module)  # of a module of the user's: not plain
    for name, weight in weights_of(student.module_).items():
        arrays[f"{at}module.{name}"] = weight
    arrays[f"{at}coef"], arrays[f"{at}intercept"] = student.coef_, student.intercept_
    shape = [int(side) for side in student.module_.row_shape]
    return {"architecture": said, "row_shape": shape, "classes": student.classes_.tolist()}


def _to_module(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> ModuleClassifier:
    architecture, own = parameters.decode(said["architecture"]), f"{at}module."
    if not is_architecture(architecture):
        raise ValueError("the student's architecture is not known.")
    weights = {k.removeprefix(own): w for k, w in arrays.items() if k.startswith(own)}
    coef, intercept = _layer(arrays[f"{at}coef"], arrays[f"{at}intercept"])
    shape = tuple(int(side) for side in said["row_shape"])
    module = restored(architecture, shape, len(intercept), weights)
    student = ModuleClassifier.of(architecture, module, coef, intercept)
    student.classes_ = np.array(said["classes"], dtype=np.int64)
    _require_scores(1 if len(intercept) == 2 else len(intercept), student.classes_)
    return student


def _blind_rule(student: BlindRule, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    features = student.features
    arrays[f"{at}weights"], arrays[f"{at}shares"] = student.weights, student.shares
    return {
        "scores": _describe(features.scores, arrays, f"{at}scores."),
        "groups": _describe(features.groups, arrays, f"{at}groups."),
        "n_groups": features.n_groups,
        "n_classes": features.n_classes,
        "by_class": features.by_class,
    }


def _to_blind_rule(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> BlindRule:
    if "weights" not in {name.removeprefix(at) for name in arrays}:
        raise ValueError("the blind rule is one of an earlier version; train the model again.")
    scores, groups = (_restore(said[part], arrays, f"{at}{part}.") for part in ("scores", "groups"))
    features = InferredGroups(
        scores=scores,
        groups=groups,
        n_groups=int(said["n_groups"]),
        n_classes=int(said["n_classes"]),
        by_class=bool(said["by_class"]),
    )
    for codes, n in ((groups.classes_, features.n_cells), (scores.classes_, features.n_classes)):
        if not np.isin(codes, np.arange(n)).all():
            raise ValueError("the blind rule's groups and classes do not fit its models.")
    return BlindRule(features, arrays[f"{at}weights"], arrays[f"{at}shares"])


def _recalibrated(student: Recalibrated, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    return {
        "scores": _describe(student.scores, arrays, f"{at}scores."),
        "head": _describe(student.head, arrays, f"{at}head."),
    }


def _to_recalibrated(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> Recalibrated:
    scores, head = (_restore(said[part], arrays, f"{at}{part}.") for part in ("scores", "head"))
    return Recalibrated(scores, head)


def _additive(student: AdditiveScores, arrays: dict[str, Array], at: str) -> dict[str, Any]:
    for name, parts in (("edges", student.edges), ("values", student.values)):
        arrays[f"{at}{name}"] = np.concatenate([*parts, np.zeros(0)])
    arrays[f"{at}n_edges"] = np.array([len(cuts) for cuts in student.edges], dtype=np.int64)
    return {"intercept": student.intercept, "link": student.link}


def _to_additive(said: Mapping[str, Any], arrays: Mapping[str, Array], at: str) -> AdditiveScores:
    n_edges = arrays[f"{at}n_edges"]
    edges, values = (
        np.split(arrays[f"{at}{name}"], np.cumsum(n_edges + more)[:-1])
        for name, more in (("edges", 0), ("values", 1))
    )
    return AdditiveScores(edges, values, intercept=float(said["intercept"]), link=said["link"])


_KINDS: Final[Mapping[type, tuple[str, Callable[..., dict[str, Any]], Callable[..., Any]]]] = {
    LogisticRegression: ("linear", _linear, _to_linear),
    MLPClassifier: ("network", _network, _to_network),
    DummyClassifier: ("constant", _constant, _to_constant),
    Mixture: ("mixture", _mixture, _to_mixture),
    ReductionStudent: ("reduction", _reduction, _to_reduction),
    ModuleClassifier: ("module", _module, _to_module),
    Recalibrated: ("recalibrated", _recalibrated, _to_recalibrated),
    BlindRule: ("blind-rule", _blind_rule, _to_blind_rule),
    AdditiveScores: ("additive", _additive, _to_additive),
}
"""Students that arrays and JSON say in full: their name there, and the ways there and back."""


def _layer(weight: Array, bias: Array) -> tuple[FloatArray, FloatArray]:
    """Return scores by features and a bias for each score, if the shapes say so."""
    if weight.ndim != 2 or weight.dtype.kind != "f" or bias.shape != weight.shape[:1]:
        raise ValueError("the shapes of the student's arrays do not fit each other.")
    return weight, bias


def _require_scores(n_scores: int, codes: Array) -> None:
    if codes.ndim != 1 or n_scores != (1 if len(codes) == 2 else len(codes)):
        raise ValueError(f"the student has {n_scores} scores for {codes.size} classes.")
    if not np.array_equal(codes, np.unique(codes)):
        raise ValueError("the student's classes do not stand in order.")

"""A fitted student as one file: arrays of numbers for linear ones, skops for others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression

from evenhand.learners import Mixture
from evenhand.students import ModuleClassifier, ModuleStudent

LINEAR: Final = "student.safetensors"
MIXTURE: Final = "mixture.safetensors"
OTHER: Final = "student.skops"
OWN_TYPES: Final = ("evenhand.", "sklearn.", "numpy.", "scipy.", "builtins.")


def refuse_modules(model: Any) -> None:
    """Raise ValueError for a model whose student or teachers are torch modules of the user's."""
    for name, value in model.get_params(deep=True).items():
        if isinstance(value, ModuleStudent | ModuleClassifier):
            raise ValueError(
                f"{name.replace('__', '.')} holds a torch module, which cannot be read back "
                f"without running its code. Keep the weights by torch.save (those of the student "
                f"are in model.student_.module_), or use a NetworkStudent and MLPTeachers."
            )


def save_student(student: Any, folder: Path) -> None:
    """Write a fitted student: linear ones as arrays of numbers, others with skops."""
    if type(student) is LogisticRegression:
        _save_linear(student, folder / LINEAR)
    elif isinstance(student, Mixture) and student.is_linear:
        _save_mixture(student, folder / MIXTURE)
    else:
        dump_skops(student, folder / OTHER)


def load_student(path: Path, trusted: Iterable[str]) -> Any:
    """Read what ``save_student`` wrote into the folder ``path``."""
    if (path / LINEAR).exists():
        return _load_linear(path / LINEAR)
    if (path / MIXTURE).exists():
        return _load_mixture(path / MIXTURE)
    return load_skops(path / OTHER, trusted)


def _save_mixture(student: Mixture, file: Path) -> None:
    arrays = {
        "coef": np.concatenate([member.coef_ for member in student.members_]),
        "intercept": np.concatenate([member.intercept_ for member in student.members_]),
        "weights": student.weights_,
    }
    save_file(arrays, file, metadata={"class": "Mixture", "seed": str(student.seed)})


def _load_mixture(file: Path) -> Mixture:
    arrays = load_file(file)
    members = []
    for coef, intercept in zip(arrays["coef"], arrays["intercept"], strict=True):
        member = LogisticRegression()
        member.coef_, member.intercept_ = coef[None], intercept[None]
        member.classes_, member.n_features_in_ = np.array([0, 1]), len(coef)
        members.append(member)
    with safe_open(file, framework="numpy") as head:
        seed = int(head.metadata()["seed"])
    return Mixture.of(members, arrays["weights"], seed=seed)


def _save_linear(student: LogisticRegression, file: Path) -> None:
    arrays = {"coef": student.coef_, "intercept": student.intercept_, "classes": student.classes_}
    settings = json.dumps(student.get_params(), default=str)
    save_file(
        {name: np.ascontiguousarray(a) for name, a in arrays.items()},
        file,
        metadata={"class": "LogisticRegression", "settings": settings},
    )


def _load_linear(file: Path) -> LogisticRegression:
    arrays = load_file(file)
    student = LogisticRegression()
    student.coef_, student.intercept_ = arrays["coef"], arrays["intercept"]
    student.classes_ = arrays["classes"]
    student.n_features_in_ = int(student.coef_.shape[1])
    return student


def dump_skops(value: Any, file: Path) -> None:
    """Write any scikit-learn object."""
    import skops.io  # where torch is installed it imports torch: seconds, so only when needed

    skops.io.dump(value, file)


def load_skops(file: Path, trusted: Iterable[str]) -> Any:
    """Read it back, if it is made of known types or of those that are trusted by name."""
    import skops.io

    allowed = set(trusted)
    strange = [
        name
        for name in skops.io.get_untrusted_types(file=file)
        if name not in allowed and not name.startswith(OWN_TYPES)
    ]
    if strange:
        raise ValueError(
            f"{file} holds objects of types outside evenhand and scikit-learn: "
            f"{', '.join(strange)}. If you trust them, name them: "
            f"evenhand.load(path, trusted={strange!r})."
        )
    return skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))

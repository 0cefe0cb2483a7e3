"""What ``teachers=`` may be: teachers, a scikit-learn classifier, a torch module or its maker."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from evenhand._torch import is_module, torch
from evenhand.students import ModuleClassifier
from evenhand.teachers import LogisticTeachers, SklearnTeachers
from evenhand.teachers.ensemble import Teachers
from evenhand.teachers.stacked import NetworkTeachers


def as_teachers(
    given: Any, *, n_features: Any, n_classes: int, rng: np.random.Generator
) -> Teachers:
    """Return how teachers are trained.

    Parameters
    ----------
    given : Teachers, classifier, Architecture, torch.nn.Module, callable or None
        A classifier is cloned for each teacher. An architecture is that of ``NetworkTeachers``. A
        module maps encoded rows (n, n_features) to
        scores (n, n_classes); each teacher starts from its weights, which must be public. A
        callable returns either, as ``given(n_features, n_classes)``: how many features the encoder
        makes is known in ``fit`` only. None: ``LogisticTeachers()``.
    n_features, n_classes : int
        Of the encoded rows; of pictures their shape (channels, height, width), and no number.
    rng : Generator
        Seeds the weights that a callable draws.

    Raises
    ------
    TypeError
        For anything else.

    Privacy
    -------
    Each teacher fits a clone on its own records, whatever it is: one record moves one vote.
    """
    if given is None:
        return LogisticTeachers()
    if not is_module(given) and makes_models(given):
        given = _made(given, n_features, n_classes, rng)
    if hasattr(given, "build"):
        return NetworkTeachers(given)
    if is_module(given):
        return SklearnTeachers(ModuleClassifier(given))
    if _is_classifier(given):
        return SklearnTeachers(given)
    if isinstance(given, type) or not hasattr(given, "fit") or hasattr(given, "predict"):
        raise TypeError(
            f"teachers must be teachers such as LogisticTeachers(), a scikit-learn classifier, a "
            f"torch.nn.Module, or a function (n_features, n_classes) that returns one of these, "
            f"got {given!r}. Pass an object, for example RandomForestClassifier()."
        )
    teachers: Teachers = given
    return teachers


def _is_classifier(given: Any) -> bool:
    predicts = not isinstance(given, type) and hasattr(given, "fit") and hasattr(given, "predict")
    return predicts and (not hasattr(given, "__sklearn_tags__") or is_classifier(given))


def makes_models(given: Any) -> bool:
    """Whether it makes models, and is none."""
    if isinstance(given, type):
        return "torch" in sys.modules and issubclass(given, torch.nn.Module)
    return callable(given) and not hasattr(given, "fit")


def _made(maker: Any, n_features: Any, n_classes: int, rng: np.random.Generator) -> Any:
    try:
        inspect.signature(maker).bind(n_features, n_classes)
    except TypeError as error:
        raise TypeError(
            f"teachers={maker!r} is called with (n_features, n_classes) and takes other "
            f"arguments: {error}. Pass such a function, or an object."
        ) from None
    if "torch" not in sys.modules:
        return maker(n_features, n_classes)
    # The weights that all teachers start from are drawn here; torch's own generator stays as it is.
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(int(rng.spawn(1)[0].integers(2**31)))
        return maker(n_features, n_classes)

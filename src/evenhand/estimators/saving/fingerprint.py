"""A checksum of what a fitted model computes with, the same before saving and after loading."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.estimators.fitted import FittedModel, is_linear

# scikit-learn writes its version into a state: a new version of it is no new model.
_NOT_THE_MODEL = ("_sklearn_version",)


def fingerprint(model: Any) -> str:
    """Return a checksum of a fitted model's parameters, 64 hexadecimal digits.

    Privacy
    -------
    For a private classifier it reads the student, the encoder and the names of the classes, which
    are released anyway. For any other model it is a function of everything in it.
    """
    digest = hashlib.sha256()
    parts = [model]
    fitted = FittedModel.of(model)
    if fitted.encoder is not None and fitted.inside is None:
        parts = [fitted.student, fitted.encoder.to_dict(), fitted.classes]
        if fitted.derived is not None:
            parts.append(fitted.derived.rule.probabilities)
        if fitted.needs_group:  # what the group of a row adds is no part of the student
            parts += fitted.numbers.values()
    for part in parts:
        _feed(digest, part, [])
    return digest.hexdigest()


def _feed(digest: Any, value: Any, inside: list[int]) -> None:
    """Feed a value with its kind and length, so that no two values feed the same bytes."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        _say(digest, type(value).__name__, repr(value).encode())
    elif isinstance(value, np.ndarray):
        _feed_array(digest, value, inside)
    elif isinstance(value, Mapping):
        _say(digest, "mapping", str(len(value)).encode())
        for key in sorted(value, key=repr):
            if key not in _NOT_THE_MODEL:
                _feed(digest, key, inside)
                _feed(digest, value[key], inside)
    elif isinstance(value, list | tuple):
        _say(digest, "list", str(len(value)).encode())
        for item in value:
            _feed(digest, item, inside)
    elif isinstance(value, set | frozenset):
        _feed(digest, sorted(value, key=repr), inside)
    elif isinstance(value, np.random.Generator | np.random.RandomState):
        _say(digest, "generator", b"")  # where it stands says nothing of what was fitted
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        _say(digest, "name", f"{value.__module__}.{value.__qualname__}".encode())
    elif id(value) in inside:
        _say(digest, "again", str(inside.index(id(value))).encode())
    else:
        _feed_object(digest, value, [*inside, id(value)])


def _feed_array(digest: Any, array: np.ndarray[Any, Any], inside: list[int]) -> None:
    if array.dtype.names:
        # Field by field: the bytes between the fields are whatever the memory held.
        _say(digest, "record", repr(array.shape).encode())
        for name in array.dtype.names:
            _feed(digest, name, inside)
            _feed_array(digest, array[name], inside)
    elif array.dtype.hasobject:
        _say(digest, "objects", repr(array.shape).encode())
        _feed(digest, array.ravel().tolist(), inside)
    else:
        _say(digest, array.dtype.str, repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())


def _feed_object(digest: Any, value: Any, inside: list[int]) -> None:
    kind = type(value)
    _say(digest, "object", f"{kind.__module__}.{kind.__qualname__}".encode())
    if kind is LogisticRegression and is_linear(value):
        # What a model folder keeps of it: settings of its solver do not return from there.
        _feed(digest, [value.coef_, value.intercept_, value.classes_], inside)
        return
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:
        return  # no state that could be copied, such as a compiled loss: its name must do
    if not isinstance(reduced, str):
        _feed(digest, list(reduced[1:3]), inside)
        for items in reduced[3:5]:
            _feed(digest, None if items is None else list(items), inside)


def _say(digest: Any, kind: str, content: bytes) -> None:
    digest.update(f"{kind}:{len(content)}:".encode())
    digest.update(content)

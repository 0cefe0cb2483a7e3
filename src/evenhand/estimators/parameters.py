"""Constructor arguments as JSON: plain values, and values of this package's own types."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from evenhand._folder import TypesNotTrusted
from evenhand._notions import SHIPPED
from evenhand._stored import STORED, home_of, stored
from evenhand.fairness.notions import notion_named

for _kind in (LogisticRegression, MLPClassifier):
    stored(_kind)
for _name in sorted(SHIPPED):
    stored(notion_named(_name))


class NotPlain(TypeError):
    """A value that JSON cannot hold; ``save`` then keeps the arguments with skops."""


def encode(value: Any) -> Any:
    """Return ``value`` in JSON's types.

    Raises
    ------
    NotPlain
        If it is, or holds, something of another type.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise NotPlain(f"JSON has no {value!r}.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, list | tuple | np.ndarray):
        return {"list": [encode(item) for item in value], "tuple": isinstance(value, tuple)}
    kind = type(value)
    if STORED.get(kind.__name__) is not kind:
        raise NotPlain(f"{kind.__module__}.{kind.__qualname__} is not kept as JSON.")
    own = {} if kind.__module__.startswith("evenhand.") else {"home": home_of(kind)}
    return {
        "type": kind.__name__,
        **own,
        "arguments": {name: encode(item) for name, item in _arguments(value).items()},
    }


def decode(value: Any) -> Any:
    """Return what ``encode`` was given.

    Raises
    ------
    KeyError
        If a type is unknown to this version.
    TypesNotTrusted
        If it is one of the user's own, whose module was not imported.
    """
    if not isinstance(value, dict):
        return value
    if "list" in value:
        items = [decode(item) for item in value["list"]]
        return tuple(items) if value["tuple"] else items
    if value["type"] not in STORED and "home" in value:
        raise TypesNotTrusted(
            f"The folder holds a value of {value['home']}, which is none of this package's types. "
            f"Nothing was loaded. If you trust that module, import it first, or name it: "
            f"evenhand.load(path, trusted=[{value['home']!r}]), or --trust {value['home']}."
        )
    arguments = {name: decode(item) for name, item in value["arguments"].items()}
    return STORED[value["type"]](**arguments)


def _arguments(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseEstimator):
        arguments: dict[str, Any] = value.get_params(deep=False)
        return arguments
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: getattr(value, name) for name in signature(type(value)).parameters}

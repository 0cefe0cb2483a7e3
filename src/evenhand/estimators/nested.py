"""Parameters of parameters: ``budget__epsilon`` of an estimator whose budget is a frozen value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from evenhand import _checks
from evenhand._display import Shown


class NestedValues(Shown):
    """An estimator whose frozen dataclasses take part in ``get_params`` and ``set_params``.

    scikit-learn does this for nested estimators, which it changes in place. A ``Budget`` or a
    notion is a value that other estimators may share: the parameter is replaced by a new one.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments; with ``deep`` also ``budget__epsilon``, ``fairness__margin``, ...

        Parameters
        ----------
        deep : bool
            Also the arguments of each argument that is an estimator or a frozen value.
        """
        out: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self._get_param_names():
                out |= {f"{name}__{inner}": v for inner, v in _values(getattr(self, name)).items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """Set arguments by name, such as ``budget__epsilon=3.0``; whole ones before parts of them.

        Raises
        ------
        ValueError
            For a name that there is not, or a value that the argument refuses.
        """
        plain: dict[str, Any] = {}
        parts: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        names = self._get_param_names()
        for name, value in params.items():
            outer, _, inner = name.partition("__")
            if inner and outer in names:
                parts[outer][inner] = value
            else:
                plain[name] = value
        super().set_params(**plain)
        for outer, inside in parts.items():
            held = getattr(self, outer)
            if _is_value(held):
                setattr(self, outer, _replaced(outer, held, inside))
            elif hasattr(held, "set_params"):
                held.set_params(**inside)
            else:
                raise ValueError(
                    f"{outer}__{next(iter(inside))} is a parameter of {outer}, and {outer} is "
                    f"{held!r}, which has none. Set {outer} first, or in the same call."
                )
        return self


def _is_value(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type | BaseEstimator)


def _values(value: Any) -> dict[str, Any]:
    """Return the fields of a value by name, those of values in it included."""
    if not _is_value(value):
        return {}
    out = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    inner = {f"{name}__{k}": v for name, held in out.items() for k, v in _values(held).items()}
    return out | inner


def _replaced(path: str, value: Any, changes: Mapping[str, Any]) -> Any:
    """Return a new value with these fields, each checked as when it was first made."""
    known = [field.name for field in fields(value) if field.init]
    own: dict[str, Any] = {}
    parts: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, new in changes.items():
        outer, _, inner = name.partition("__")
        if outer not in known or (inner and not _is_value(getattr(value, outer))):
            raise ValueError(
                f"{path}__{name} is no parameter: {path} is a {type(value).__name__}, with "
                f"{', '.join(known)}.{_checks.did_you_mean(outer, known)}"
            )
        if inner:
            parts[outer][inner] = new
        else:
            own[outer] = new
    held = {**{name: getattr(value, name) for name in parts}, **own}
    inside = {name: _replaced(f"{path}__{name}", held[name], new) for name, new in parts.items()}
    return replace(value, **(own | inside))

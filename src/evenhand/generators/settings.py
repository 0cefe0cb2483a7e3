"""What type each setting of a generator has, as its class annotates it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

from evenhand import _checks

_CHECKS: Final[Mapping[type, Callable[[str, Any], object]]] = {
    bool: _checks.flag,
    int: _checks.whole,
    float: _checks.number,
    str: _checks.text,
}


@dataclass(frozen=True, kw_only=True)
class SettingType:
    """The type of a setting that can be written in a word."""

    held: type
    several: bool
    """Whether there is a sequence of them."""
    may_be_none: bool

    def check(self, name: str, value: object) -> None:
        """Raise TypeError for a value of another type; the range is for the method to say."""
        if value is None and self.may_be_none:
            return
        if not self.several:
            _CHECKS[self.held](name, value)
            return
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{name} must be a list such as [64, 32], got {value!r}.")
        for item in value:
            _CHECKS[self.held](name, item)


def types_of(kind: Any) -> dict[str, SettingType]:
    """Return the type of each setting; left out are objects, such as a sampler or a noise.

    Parameters
    ----------
    kind : type
        The class of a generator.

    Examples
    --------
    >>> from evenhand.generators import MarginalSynthesizer
    >>> types_of(MarginalSynthesizer)["width"]
    SettingType(held=<class 'int'>, several=False, may_be_none=True)
    """
    hints = _hints(kind)
    said = [setting.name for setting in fields(kind) if setting.init and setting.name in hints]
    known = {name: _type(hints[name]) for name in said}
    return {name: plain for name, plain in known.items() if plain}


def _hints(kind: type) -> dict[str, Any]:
    """Return what annotations stand for; where a name cannot be found, those of the base class."""
    try:
        return get_type_hints(kind)
    except NameError:
        return _hints(kind.__mro__[1])


def _type(hint: Any) -> SettingType | None:
    of_none = NoneType in get_args(hint)
    (held, *others) = [part for part in get_args(hint) if part is not NoneType] or [hint]
    several = get_origin(hint) in (tuple, Sequence)
    if several or not others:
        if held in _CHECKS:
            return SettingType(held=held, several=several, may_be_none=of_none)
        found = None if several or held is hint else _type(held)
        return found and SettingType(held=found.held, several=found.several, may_be_none=of_none)
    return None

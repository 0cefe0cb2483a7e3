"""Settings of a method as NAME=VALUE; names and types are those of its class."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evenhand._checks import did_you_mean
from evenhand.cli.command import KINDS, is_a
from evenhand.generators.settings import types_of

if TYPE_CHECKING:
    from evenhand.generators.synthesizer import Synthesizer


def settings_of(kind: type[Synthesizer], given: Iterable[str]) -> dict[str, Any]:
    """Read NAME=VALUE as arguments of a method.

    Parameters
    ----------
    kind : type
        The class of the method.
    given : iterable of str
        A value is written as in TOML: ``true``, ``0.2``, ``[64, 32]``; a text needs no quotes.

    Raises
    ------
    ValueError
        For an unknown or repeated name, a missing value, and one of another type. Whether a value
        is in its range is for the method to say, before it spends anything.
    """
    types = types_of(kind)
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in types or not equals:
            near = "" if name in types else did_you_mean(name, types)
            raise ValueError(
                f"--setting is NAME=VALUE with a setting of the method {kind.method!r}, got "
                f"{text!r}.{near} Its settings: {', '.join(types)}."
            )
        if name in found:
            raise ValueError(f"--setting {name} was given twice. Leave one out.")
        found[name] = _typed(name, value, types[name].held, types[name].several)
    return found


def _typed(name: str, text: str, kind: type, several: bool) -> Any:
    """Return a value as its setting has it."""
    whole = re.sub(r"^([+-]?)(?=\.\d)", r"\g<1>0", text)  # .2, which is no number in TOML
    try:
        read = tomllib.loads(f"value = {whole}")
    except (tomllib.TOMLDecodeError, RecursionError):
        read = {}
    value = read["value"] if len(read) == 1 else text
    items = value if isinstance(value, list) and several else [value]
    if not all(is_a(kind, item) for item in items):
        words = f"{KINDS[kind]}, or a list such as [1, 2]" if several else KINDS[kind]
        raise ValueError(f"--setting {name} must be {words}, got {text!r}.")
    return tuple(items) if several else value

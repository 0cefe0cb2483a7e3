"""What a run fits and measures: a classifier, or a generator with a model of what it draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenhand.estimators.spec import MethodSpec
from evenhand.generators.registry import names_of
from evenhand.methods import METHODS

PAYLOADS: Final[Mapping[str, str]] = {"tables": "rows of a table", "images": "pictures"}
"""What a generator on a frontier may draw, in the words of a message."""


class _Subjects(Mapping[str, MethodSpec]):
    """The records by name; a module is imported when its record is first read."""

    def __getitem__(self, name: str) -> MethodSpec:
        return subject(name, next((of for of in PAYLOADS if name in generators_of(of)), "tables"))

    def __iter__(self) -> Iterator[str]:
        return iter(
            dict.fromkeys((*METHODS, *(name for of in PAYLOADS for name in generators_of(of))))
        )

    def __len__(self) -> int:
        return len(list(iter(self)))


SUBJECTS: Final[Mapping[str, MethodSpec]] = _Subjects()
"""The record of everything that a grid may name: all methods, and the generators of tables and of
pictures that ``evenhand synthesize`` offers; of a name that both have the one of tables. A
generator that has the name of a method is not among them."""


def subject(name: str, payload: str) -> MethodSpec:
    """Return the record of a method, or of the generator of this name and kind of data."""
    if name in METHODS:
        return METHODS[name]
    if name not in generators_of(payload):
        raise KeyError(name)
    from evenhand.frontier.judged_rows import spec_of

    return spec_of(name, payload)


def subject_of(name: str, arguments: Mapping[str, Any]) -> MethodSpec:
    """Return the record of what a setting with these arguments fits."""
    from evenhand.frontier.judged_rows import payload_of

    return subject(name, payload_of(arguments))


def generators_of(payload: str) -> tuple[str, ...]:
    """Return the names of the generators of a kind of data."""
    return names_of(payload, offered=True)


def draws_rows(name: str) -> bool:
    """Return whether it is a generator."""
    return name not in METHODS

"""What a run fits and measures: a classifier, or a generator of tables with a model of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from evenhand.estimators.spec import MethodSpec
from evenhand.generators.registry import names_of
from evenhand.methods import METHODS


class _Subjects(Mapping[str, MethodSpec]):
    """The records by name; a module is imported when its record is first read."""

    def __getitem__(self, name: str) -> MethodSpec:
        if name in METHODS:
            return METHODS[name]
        if name not in names_of("tables", offered=True):
            raise KeyError(name)
        from evenhand.frontier.judged_rows import spec_of

        return spec_of(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*METHODS, *names_of("tables", offered=True))))

    def __len__(self) -> int:
        return len(list(iter(self)))


SUBJECTS: Final[Mapping[str, MethodSpec]] = _Subjects()
"""The record of everything that a grid may name: all methods, and the generators of tables that
``evenhand synthesize`` offers. A generator that has the name of a method is not among them."""


def draws_rows(name: str) -> bool:
    """Return whether it is a generator."""
    return name not in METHODS

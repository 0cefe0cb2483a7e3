"""Persons and their visits as a payload: linked by a key, each a private table of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._roles import Roles
from evenhand._units import ids_of
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable, some
from evenhand.generators.budget_plan import BudgetPlan, under
from evenhand.generators.conditions import Conditions
from evenhand.generators.payload import Encoding, Payload
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.private_table import DECLARED, PrivateTable
from evenhand.typing import IntArray

NUMBER: Final = "number of visits"
"""A column that the persons have while they are learnt and drawn."""

PERSONS, VISITS = "persons: ", "visits: "
"""What stands before all that is of one table: purposes, notes, errors, arrays."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedCodec:
    """What both tables look like."""

    key: str
    """Column by which they are linked."""
    persons: TableCodec
    visits: TableCodec
    """``persons`` and ``visits``: of the persons with the number of their visits, and of the visits
    with label and groups.
    """

    @property
    def conditions(self) -> Conditions:
        """The combinations of label and sensitive values, which are those of the persons."""
        return self.persons.conditions

    @property
    def memory(self) -> tuple[str, float]:
        """Return what one record is, and the bytes that it needs; see ``TableCodec``."""
        (first, of_person), (second, of_visit) = self.persons.memory, self.visits.memory
        return f"persons ({first}) and visits ({second})", of_person + of_visit

    @property
    def schema(self) -> Schema:
        """What is public about the columns of the persons."""
        return self.persons.schema

    def decode(
        self, made: IntArray, conditions: IntArray, rng: np.random.Generator, index: Any = None
    ) -> pd.DataFrame:
        """Return visits from their states; arguments as for ``TableCodec.decode``."""
        rows = self.visits.complete(self.visits.decode(made, conditions, rng, index))
        return rows.drop(columns=list(self.visits.given))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "key": self.key,
            "persons": self.persons.to_dict(),
            "visits": self.visits.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LinkedCodec:
        """Read what ``to_dict`` wrote."""
        persons, visits = (TableCodec.from_dict(values[name]) for name in ("persons", "visits"))
        return cls(key=str(values["key"]), persons=persons, visits=visits)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedTables(Payload):
    """Private persons and their visits, each a payload of its own; see ``Payload``."""

    key: str
    persons: PrivateTable
    visits: PrivateTable
    """``persons`` and ``visits``: the conditions of the visits are columns of the persons, who name
    their categories.
    """
    declared: bool
    """Whether anything is declared of either, but for the key and the number of visits."""

    @property
    def tables(self) -> dict[str, PrivateTable]:
        """Both tables."""
        return {PERSONS: self.persons, VISITS: self.visits}

    @property
    def known(self) -> dict[str, Any]:
        """What a method may know of each table before the first release."""
        return {name: table.known for name, table in self.tables.items()}

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""
        most = f"that at most {self.visits.records.per_unit} visits of a person are read"
        said = dict.fromkeys((*self.persons.public, *self.visits.public, most))
        return tuple(words for words in said if words != DECLARED or self.declared)

    @property
    def delta_aside(self) -> tuple[float, str]:
        """The parts of both tables: that neither names a value by accident, they add up."""
        parts = [table.delta_aside for table in self.tables.values()]
        return math.fsum(share for share, _ in parts), parts[0][1]

    def check(self, plan: BudgetPlan, delta: float) -> None:
        """Refuse columns that cannot be learnt, those of both tables at once."""
        _checks.together(
            partial(_check, name, table, plan.part(name), self._aside(delta, table))
            for name, table in self.tables.items()
        )

    def shares(self, of_method: Mapping[str, float], mu_squared: float) -> dict[str, float]:
        """Return the public plan; of the part of each table its own columns are released first."""
        plan: dict[str, float] = {}
        for name, table in self.tables.items():
            own = under(of_method, name)
            whole = math.fsum(own.values())
            parts = {purpose: share / whole for purpose, share in own.items()}
            shares = table.shares(parts, whole * mu_squared)
            plan |= {name + purpose: whole * share for purpose, share in shares.items()}
        return plan

    def encode(self, plan: BudgetPlan, delta: float) -> Encoding:
        """Read the persons, and then the visits, by the categories of label and group so named."""
        persons = self.persons.encode(plan.part(PERSONS), self._aside(delta, self.persons))
        known = persons.codec
        named = [known[name].schema for name in self.visits.records.roles.conditions]
        visits = self.visits.encode(plan.part(VISITS), self._aside(delta, self.visits), named)
        found = {PERSONS: persons, VISITS: visits}
        said = {
            words: tuple(name + one for name, of in found.items() for one in getattr(of, words))
            for words in ("notes", "warnings")
        }
        codec = LinkedCodec(key=self.key, persons=known, visits=visits.codec)
        return Encoding(codec=codec, data={name: of.data for name, of in found.items()}, **said)

    def _aside(self, delta: float, table: PrivateTable) -> float:
        """Return the part of what is set aside of delta that one table uses."""
        return delta * table.delta_aside[0] / (self.delta_aside[0] or 1.0)


def link(persons: Any, visits: Any, roles: Roles, most: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return persons with the number of their visits, and visits with their label and groups.

    Raises
    ------
    ValueError
        For keys that are not there, missing, repeated or unknown, or of two dtypes, and columns
        that would be there twice.
    """
    key = str(roles.unit)
    given = TypedTable.of(persons, "table of persons")
    theirs = TypedTable.of(visits, "table of visits")
    tables = {"persons": given, "visits": theirs}
    _checks.together(
        [
            partial(_checks.at_least, "most", most, 1),
            partial(given.require, [key, *roles.conditions], "which a role names"),
            partial(theirs.require, [key], "which key= names"),
        ]
    )
    _checks.together(
        [
            *(partial(of[key].refuse_missing, f"{n}' key", _IDS) for n, of in tables.items()),
            partial(_refuse_columns, given, theirs, roles),
        ]
    )
    known, whose = (pd.Index(ids_of(of[key].values)) for of in tables.values())
    at = np.zeros(0, dtype=np.int64) if known.has_duplicates else known.get_indexer(whose)
    for rows, said in (
        (np.flatnonzero(known.duplicated()), "persons has a person again in {}. Leave one row"),
        (np.flatnonzero(at < 0), "visits names nobody of the persons in {}. Leave these rows out"),
    ):
        if rows.size:
            raise ValueError(f"The key {key!r} of the {said.format(_values.rows(rows))}.")
    number = np.bincount(at, minlength=len(known)).clip(max=most)
    of_person = given.frame[list(roles.conditions)].take(at).reset_index(drop=True)
    linked = theirs.frame.reset_index(drop=True).assign(**of_person)  # join would lose attrs
    return given.frame.assign(**{NUMBER: number}), linked


def _refuse_columns(persons: TypedTable, visits: TypedTable, roles: Roles) -> None:
    """Refuse columns that would be there twice, and keys of two dtypes."""
    dtypes = [str(of[str(roles.unit)].dtype) for of in (persons, visits)]
    twice = [name for name in roles.conditions if name in visits]
    if twice:
        raise ValueError(
            f"The visits have {some(twice)}, and a visit has the label and the groups of its "
            f"person. Leave out of the visits, or rename, what is another thing."
        )
    if NUMBER in persons:
        raise ValueError(f"The persons have a column {NUMBER!r}, which is counted anew. Rename it.")
    if dtypes[0] != dtypes[1]:
        raise ValueError(
            f"The key {roles.unit!r} is {dtypes[0]} in the persons and {dtypes[1]} in the visits. "
            f"Convert one of them with astype."
        )


@contextmanager
def about(table: str) -> Iterator[None]:
    """Say of an error which table it is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not _values.may_be_told(error):
            raise
        raise ValueError(f"{table}{error}") from _values.cause(error)


def _check(name: str, table: PrivateTable, plan: BudgetPlan, delta: float) -> None:
    with about(name):
        table.check(plan, delta)


_IDS: Final = "Leave these rows out, or say whose they are."

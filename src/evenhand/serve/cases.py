"""What a request asks about: rows of JSON, read as the model's columns and as a known group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from evenhand.datasets import PublicEncoder
from evenhand.datasets.cells import CellColumn, CellTable
from evenhand.fairness import Grouping
from evenhand.fairness.gate.decisions import UNKNOWN
from evenhand.fairness.grouping import MERGED
from evenhand.fairness.groups import encode_groups, missing_groups
from evenhand.typing import IntArray

if TYPE_CHECKING:
    from evenhand.estimators import RejectOptionClassifier

MOST_ROWS: Final = 10_000
"""Rows of one request."""
LONGEST_TEXT: Final = 10_000
"""Characters of one value."""
_MOST_WRONG: Final = 20
_MOST_GROUPS_KEPT: Final = 10_000


class BadRows(ValueError):
    """Rows that cannot be read, all of them named; values are not repeated.

    Parameters
    ----------
    wrong : sequence of (int, str, str)
        Position of the row counted from 0, column, and what is wrong.
    """

    def __init__(self, wrong: Sequence[tuple[int, str, str]]) -> None:
        self.wrong = tuple(wrong[:_MOST_WRONG])
        row, column, what = wrong[0]
        more = f" ({len(wrong) - 1} more)" if len(wrong) > 1 else ""
        super().__init__(f"row {row}, column {column!r}: {what}{more}")


_FLAGS: Final = ("true", "false")


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads rows for one model."""

    columns: tuple[str, ...]
    """What the model reads."""
    numeric: frozenset[str]
    """Those of them that hold numbers."""
    sensitive: tuple[str, ...]
    """Columns that the group is read from."""
    groups: tuple[str, ...]
    """Every group, in the order of its codes."""
    grouping: Grouping | None = None
    """What makes groups of the sensitive columns."""
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What the model knows in each column that it reads as categories."""
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        option: RejectOptionClassifier,
        sensitive: Sequence[str],
        grouping: Grouping | None = None,
    ) -> Reader:
        """Ask a model which columns it reads.

        Raises
        ------
        ValueError
            If it reads no named columns of numbers and categories, such as pictures.
        """
        fitted = option.fitted_.core
        if not fitted.columns or not isinstance(fitted.encoder, PublicEncoder):
            raise ValueError(
                f"{fitted.method} was fitted on an array or on pictures, and rows of JSON have "
                f"named columns. Serve a model that was trained on a table."
            )
        known = {column.name: column for column in fitted.encoder.schema_.columns}
        numeric = frozenset(name for name in fitted.columns if known[name].kind == "numeric")
        return cls(
            columns=fitted.columns,
            numeric=numeric,
            categories={n: known[n].categories for n in fitted.columns if n not in numeric},
            sensitive=tuple(sensitive),
            groups=option.groups_,
            grouping=grouping,
        )

    @property
    def made_of(self) -> dict[str, Any]:
        """What groups are made of, in JSON's types."""
        grouping = None if self.grouping is None else self.grouping.to_dict()
        return {"columns": list(self.sensitive), "grouping": grouping}

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that a person is shown."""
        return (*self.columns, *(name for name in self.sensitive if name not in self.columns))

    def row_schema(self) -> dict[str, Any]:
        """Return what a row looks like, as JSON Schema."""
        text = {"type": "string", "maxLength": LONGEST_TEXT, "pattern": "^[^\\u0000]*$"}
        number = [{"type": "number"}, {"type": "null"}]
        any_value = [text, {"type": "boolean"}, *number]
        return {
            "type": "object",
            "properties": {
                name: {"anyOf": number if name in self.numeric else any_value} for name in self.kept
            },
            "required": list(self.kept),
        }

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Refuse rows that the model cannot read; all wrong cells are named, no value is.

        Raises
        ------
        BadRows
        """
        wrong = []
        for i, row in enumerate(rows):
            for name in self.kept:
                if name not in row:
                    wrong.append((i, name, "is missing; null says that a value is not known"))
                elif why := self._unreadable(name, row[name]):
                    wrong.append((i, name, why))
            if len(wrong) > _MOST_WRONG:
                break
        if wrong:
            raise BadRows(wrong)

    def group_codes(self, rows: Sequence[Mapping[str, Any]]) -> IntArray:
        """Return the code of each row's group; ``UNKNOWN`` where it is none of the known."""
        found = [tuple(row[name] for name in self.sensitive) for row in rows]
        new = [
            values
            for values in dict.fromkeys((*zip(map(_kinds, found), found, strict=True),))
            if values not in self._known
        ]
        if len(self._known) > _MOST_GROUPS_KEPT:  # whoever invents groups does not fill the memory
            self._known.clear()
            new = list(dict.fromkeys((*zip(map(_kinds, found), found, strict=True),)))
        for values in new:
            self._known[values] = self._code(values[1])
        return np.array([self._known[_kinds(one), one] for one in found], dtype=np.int64)

    def cells(self, rows: Sequence[Mapping[str, Any]]) -> CellTable:
        """Return the columns that the model reads."""
        return CellTable(self._spelled(rows), self.columns)

    def unknown(self, rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """Return, of each row, the columns whose value the model does not know, as it reads them.

        A value that is missing is none of these.
        """
        found: list[list[str]] = [[] for _ in rows]
        rows = self._spelled(rows)
        for name, known in self.categories.items():
            column = CellColumn([row[name] for row in rows])
            strange = (column.places(known, as_numbers=True) < 0) & ~column.missing
            for i in np.flatnonzero(strange).tolist():
                found[i].append(name)
        return found

    def _spelled(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Write true and false as the model's categories do: a CSV may have "true", or "TRUE"."""
        said = {
            name: {text == "true": known for known in names if (text := known.lower()) in _FLAGS}
            for name, names in self.categories.items()
            if not {"True", "False"} & {*names}
        }
        said = {name: flags for name, flags in said.items() if flags}
        if not said:
            return rows
        return [
            row | {n: f.get(row[n], row[n]) for n, f in said.items() if isinstance(row[n], bool)}
            for row in map(dict, rows)
        ]

    def _unreadable(self, name: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            if name in self.numeric:
                return "must hold a number or null, not a text"
            if len(value) > LONGEST_TEXT:
                return f"is longer than {LONGEST_TEXT:,} characters"
            if not is_text(value):
                return "holds characters that are not text"
            return ""
        if isinstance(value, bool) and name in self.numeric:
            return "must hold a number or null, not true or false"
        if isinstance(value, bool | int | float):
            try:
                finite = math.isfinite(value)
            except OverflowError:
                finite = False
            return "" if finite else "must be a finite number"
        return "must hold a number, a text, true, false or null"

    def _code(self, values: tuple[Any, ...]) -> int:
        """Return the code of the group that one row's sensitive values make."""
        grouping = self.grouping or Grouping()
        known = {*self.groups, *grouping.known, *grouping.merged}
        name = ""
        for said in _spellings(values):
            frame = pd.DataFrame([dict(zip(self.sensitive, said, strict=True))])
            try:
                features = Grouping(edges=grouping.edges)(frame)
                if missing_groups(features).any():
                    return UNKNOWN
                name = encode_groups(features).names[0]
            except (ValueError, TypeError):
                return UNKNOWN  # a value that makes no group, such as a text where ages belong
            if name in known:
                break
        if grouping.merged and name not in grouping.known:
            name = MERGED
        return self.groups.index(name) if name in self.groups else UNKNOWN


def _spellings(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Give the values as they are, and with true and false as the CSV of the training may have."""
    yield values
    if any(isinstance(value, bool) for value in values):
        for spell in (str.lower, str.upper):
            yield tuple(spell(str(v)) if isinstance(v, bool) else v for v in values)


def _kinds(values: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(map(type, values))  # 1, 1.0 and True are one key of a dict


def is_text(value: str) -> bool:
    """Whether a store can keep it: Unicode without the character zero."""
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return "\x00" not in value

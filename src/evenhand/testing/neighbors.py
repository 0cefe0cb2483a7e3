"""Neighbors of a small table: one record removed, replaced, or with another label or group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand.privacy.renyi import NEIGHBORS
from evenhand.typing import Array

_ONE_RECORD: Final = ("replace one",)
_ADD: Final = ("add or remove one",)
_GROUP: Final = tuple(name for name in NEIGHBORS if name.startswith("change"))
EXTREME: Final = 1e6


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Private records: features or pictures, labels and groups."""

    X: Any
    """Features; or pictures, whose pixels are bytes."""
    y: Array
    groups: Array
    ids: Array
    """``y``, ``groups`` and ``ids``: labels, groups, and whose record it is. Shape (n,)."""
    rare: int
    """Row of a category or of a combination that no other row has."""
    extreme: int
    """Row whose numbers are far outside of all others."""

    def __len__(self) -> int:
        return len(self.y)

    def without(self, row: int) -> Rows:
        """Return all rows but one."""
        kept = np.arange(len(self)) != row
        X = self.X[kept].reset_index(drop=True) if hasattr(self.X, "iloc") else self.X[kept]
        return replace(self, X=X, y=self.y[kept], groups=self.groups[kept], ids=self.ids[kept])

    def changed(self, row: int, *, X: Any = None, label: bool = False, group: bool = False) -> Rows:
        """Return the rows with another record in one place."""
        out_X, y, groups = self.X, self.y, self.groups
        if X is not None and hasattr(self.X, "iloc"):
            out_X = self.X.copy()
            for column in out_X.columns:
                out_X.iat[row, out_X.columns.get_loc(column)] = X[column]
        elif X is not None:
            out_X = self.X.copy()
            out_X[row] = X
        if label:
            y = _swapped(y, row)
        if group:
            groups = _swapped(groups, row)
        return replace(self, X=out_X, y=y, groups=groups)


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbor:
    """A table that differs in one record, and under which relations it counts."""

    name: str
    rows: Rows
    relations: tuple[str, ...]
    """Of ``evenhand.privacy.NEIGHBORS``."""
    removed: int | None = None
    """Row that is missing."""


def neighbors_of(rows: Rows) -> list[Neighbor]:
    """Return neighbors where a claim can break: front, middle, end, extremes and rare values."""
    last, middle = len(rows) - 1, len(rows) // 2
    removed = {
        "first removed": 0,
        "middle removed": middle,
        "last removed": last,
        "extreme removed": rows.extreme,
        "rare category removed": rows.rare,
    }
    found = [
        Neighbor(name=name, rows=rows.without(row), relations=_ADD, removed=row)
        for name, row in removed.items()
    ]
    of_record = {
        "replaced by an extreme": rows.changed(middle, X=_extreme(rows), label=True, group=True),
        "rare category taken": rows.changed(middle, X=_copied(rows)),
    }
    of_label = {
        "first label changed": rows.changed(0, label=True),
        "last label changed": rows.changed(last, label=True),
    }
    of_group = {
        "first group changed": rows.changed(0, group=True),
        "extreme's group changed": rows.changed(rows.extreme, group=True),
        "last group changed": rows.changed(last, group=True),
    }
    found += [Neighbor(name=k, rows=v, relations=_ONE_RECORD) for k, v in of_record.items()]
    with_label = (*_ONE_RECORD, *(name for name in _GROUP if "class" in name))
    found += [Neighbor(name=k, rows=v, relations=with_label) for k, v in of_label.items()]
    with_group = (*_ONE_RECORD, *_GROUP)
    found += [Neighbor(name=k, rows=v, relations=with_group) for k, v in of_group.items()]
    return found


def _extreme(rows: Rows) -> Any:
    """Return a record with numbers far outside; for pictures, the negative of one."""
    if not hasattr(rows.X, "iloc"):
        return 255 - rows.X[rows.extreme]
    record = rows.X.iloc[0].to_dict()
    return {
        name: -EXTREME if pd.api.types.is_numeric_dtype(rows.X[name]) else value
        for name, value in record.items()
    }


def _copied(rows: Rows) -> Any:
    return rows.X.iloc[rows.rare].to_dict() if hasattr(rows.X, "iloc") else rows.X[rows.rare]


def _swapped(values: Array, row: int) -> Array:
    """Return a copy in which one row has the next of the values."""
    known = np.unique(values)
    out: Array = values.copy()
    out[row] = known[(np.searchsorted(known, values[row]) + 1) % len(known)]
    return out

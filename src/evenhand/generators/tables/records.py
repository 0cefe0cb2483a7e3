"""The private table as a generator reads it: roles of its columns, checked and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pandas as pd

from evenhand import _checks
from evenhand._roles import Roles
from evenhand.datasets.columns import TypedTable
from evenhand.typing import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """Private rows with bounded contributions.

    Parameters
    ----------
    table : TypedTable
        The columns that are generated, in the user's order; the unit is not among them.
    roles : Roles
    units : ndarray or None, shape (n,)
        Whose record each row is.
    per_unit : int
        Rows that one unit has at most; 1 without units.
    """

    table: TypedTable
    roles: Roles
    units: Array | None
    per_unit: int

    def __len__(self) -> int:
        return len(self.table)


def read_records(frame: pd.DataFrame, roles: Roles, *, per_unit: int = 1) -> Records:
    """Check the roles and bound what one unit adds.

    Raises
    ------
    ValueError
        For a column that is not there (the nearest name is given), no rows, no feature, and
        labels, groups or units that are missing (the rows are given).

    Privacy
    -------
    Of the rows of a unit the first ``per_unit`` are kept: which ones depends on the order of its
    own rows alone.
    """
    # Whoever gave the table counts its rows from the first one, also where rows are left out.
    given = TypedTable.of(frame, "private table")
    kept = given.frame.reset_index(drop=True)
    table, units = TypedTable(kept, given.where), None
    named = {
        "label": (roles.label,),
        "sensitive": roles.sensitive,
        "unit": () if roles.unit is None else (roles.unit,),
    }
    _checks.together(
        partial(_require_whole, table, what, name)
        for what, names in named.items()
        for name in names
    )
    if not len(table):
        raise ValueError("The private table has no rows.")
    if roles.unit is not None:
        _checks.at_least("per_unit", per_unit, 1)
        kept = first_of_units(kept, roles.unit, per_unit)
        units = kept[roles.unit].to_numpy()
        table = TypedTable(kept.drop(columns=[roles.unit]), given.where)
    if not set(table.names) - set(roles.conditions):
        raise ValueError("No column is left beside the label and the sensitive ones.")
    return Records(
        table=table,
        roles=roles,
        units=units,
        per_unit=per_unit if units is not None else 1,
    )


def first_of_units(frame: pd.DataFrame, unit: str, per_unit: int) -> pd.DataFrame:
    """Return the rows that a fit reads: of each unit the first ones."""
    rank = frame.groupby(unit, sort=False).cumcount()
    return frame[(rank < per_unit).to_numpy()]


def _require_whole(table: TypedTable, what: str, name: str) -> None:
    """Raise for a column with a role that is not there, or has a missing value."""
    table.require([name], f"which {what}= names")
    table[name].refuse_missing(f"{what} column", f"{_WAYS_OUT[what]}.")


def as_roles(label: str, sensitive: str | Sequence[str], unit: str | None) -> Roles:
    """Take one sensitive column or several."""
    named = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    if not named:
        raise ValueError("sensitive names no column. Name at least one, e.g. sensitive='sex'.")
    return Roles(label=label, sensitive=named, unit=unit)


_WAYS_OUT: Final = {
    "label": "Leave these rows out",
    "sensitive": "Leave these rows out, make them a group with fillna('unknown'), or predict them "
    "from public rows with reference=",
    "unit": "Give each of these rows an id of its own",
}

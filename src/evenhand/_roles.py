"""What the columns of a table are for, for commands and generators; imports nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What the columns of the user's tables are for. All that are not named are features.

    Raises
    ------
    ValueError
        For a column that is named twice.
    """

    label: str
    """Column of the classes."""
    sensitive: tuple[str, ...]
    """Columns of the sensitive attribute, in the order in which groups are named; groups are their
    combinations.
    """
    unit: str | None = None
    """Column that says whose record a row is. It is not learnt and not generated."""
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    keep: tuple[str, ...] = ()
    """Features to learn as they are, although inspection would stop at them."""

    def __post_init__(self) -> None:
        one_role_each(
            (
                ("label", self.label),
                *(("sensitive", column) for column in self.sensitive),
                ("unit", self.unit),
                *(("drop", column) for column in self.drop),
                *(("keep", column) for column in self.keep),
            )
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        """The label and the sensitive columns."""
        return (self.label, *self.sensitive)

    @property
    def not_features(self) -> frozenset[str]:
        """Columns that no model reads."""
        unit = () if self.unit is None else (self.unit,)
        return frozenset((*self.conditions, *unit, *self.drop))


def one_role_each(named: Iterable[tuple[str, str | None]]) -> None:
    """Refuse a column that stands twice among roles and the columns that they name, if any."""
    first: dict[str, str] = {}
    for role, column in named:
        if column is None:
            continue
        if column in first:
            raise ValueError(
                f"The column {column!r} is named by {first[column]} and by {role}. Name it once: "
                f"one column has one role."
            )
        first[column] = role

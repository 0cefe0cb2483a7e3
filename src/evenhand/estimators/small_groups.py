"""Groups of few public rows, in words: what the margin costs because of them, and the way out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from evenhand import _values
from evenhand.students.small_groups import Held, HeldGroup
from evenhand.students.student import Student


class SmallGroupsWarning(UserWarning):
    """Groups of few public rows are held to the interval of their size, and not to the margin."""


def warn_of_small_groups(student: Student, names: tuple[str, ...]) -> None:
    """Name the groups with their public rows, what the margin would cost, and the way out."""
    assert student.held is not None
    assert student.within is not None
    margin, held = student.within.notion.margin, student.held
    warnings.warn(
        f"{in_words(held, names, margin)} To do without, {way_out(held)}, or "
        f"insist on the margin with small_groups='margin'.",
        SmallGroupsWarning,
        stacklevel=7,
    )


def way_out(held: Held) -> str:
    """Say how every group comes to be held to the margin."""
    most = max(group.n_rows for group in held.groups)
    return (
        f"give more public rows of them, or merge groups below {most + 1:,} public rows "
        f"(--merge-small {most + 1}, in Python evenhand.fairness.Grouping)"
    )


def in_words(held: Held, names: tuple[str, ...], margin: float) -> str:
    """Return which groups are held to what, and why, in sentences for a report."""
    return (
        f"The margin of {margin:g} cannot be told from 0 at the size of some groups, and to keep "
        f"it for them costs {held.error_by_margin - held.error:.4f} of error by the released "
        f"answers ({held.error_by_margin:.4f} instead of {held.error:.4f}). They are held to the "
        f"95 % interval of their own size instead: {listed(held, names)}. All others are held to "
        f"the margin."
    )


def listed(held: Held, names: tuple[str, ...]) -> str:
    """Return the groups with their rows and limits, the smallest first."""
    words = [
        f"{names[group.group]!r} ({group.n_rows:,} public rows: {group.limit:.3f})"
        for group in sorted(held.groups, key=lambda group: group.n_rows)
    ]
    return _values.first(words)


def to_dict(held: Held, names: tuple[str, ...]) -> dict[str, Any]:
    """Return plain values for JSON, the groups by their names."""
    return {
        "groups": [
            {"name": names[g.group], "n_rows": g.n_rows, "limit": g.limit, "gap": g.gap}
            for g in held.groups
        ],
        "error_by_margin": held.error_by_margin,
        "error": held.error,
    }


def from_dict(values: Mapping[str, Any], names: tuple[str, ...]) -> Held:
    """Read what ``to_dict`` wrote."""
    groups = [dict(group) for group in values["groups"]]
    codes = [names.index(group.pop("name")) for group in groups]
    return Held(
        groups=tuple(HeldGroup(group=z, **g) for z, g in zip(codes, groups, strict=True)),
        error_by_margin=values["error_by_margin"],
        error=values["error"],
    )

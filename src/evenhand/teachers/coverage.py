"""Which teachers hold records of which groups: private, and for the curator alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand._private import Private
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, IntArray

RECORDS: Final = 10
"""Records of the smallest group per teacher, on average: then hardly any teacher has none."""


class GroupMissingInPartition(UserWarning):
    """Some teacher holds no record of some group. For the curator: it depends on private groups."""


@dataclass(frozen=True, kw_only=True)
class MissingGroups:
    """Teachers that hold no record of some group, and how many teachers would do. Private."""

    missing: dict[str, tuple[int, ...]]
    """Group, and the teachers without it; groups that every teacher holds are left out."""
    enough: int
    """Number of teachers, each with about ten records of the smallest group; at least 1."""


class GroupsOfTeachers(Private):
    """Records per teacher and group; prints as ``<private>``."""

    __slots__ = ("__counts", "__names")

    _way_out = (
        "Which groups a teacher holds is private. Inside the curator's own walls, call "
        "reveal_to_curator()."
    )

    __counts: IntArray
    __names: tuple[str, ...]

    def __init__(self, counts: IntArray, names: tuple[str, ...]) -> None:
        object.__setattr__(self, "_GroupsOfTeachers__counts", counts)
        object.__setattr__(self, "_GroupsOfTeachers__names", names)

    def reveal_to_curator(self) -> MissingGroups:
        """Name the teachers without some group, and how many teachers would do. Do not publish."""
        counts = self.__counts
        return MissingGroups(
            missing={
                name: tuple(np.flatnonzero(counts[:, a] == 0).tolist())
                for a, name in enumerate(self.__names)
                if not counts[:, a].all()
            },
            enough=max(1, int(counts.sum(axis=0).min()) // RECORDS),
        )


def groups_of_teachers(
    groups: ArrayLike, partition: Partition, names: tuple[str, ...]
) -> tuple[GroupsOfTeachers, bool]:
    """Count the groups of each teacher's records; also say whether every teacher holds them all.

    Examples
    --------
    >>> from evenhand.teachers import by_position
    >>> held, all_held = groups_of_teachers([0, 1, 0, 0], by_position(4, 2, 0), ("F", "M"))
    >>> held, all_held, len(held.reveal_to_curator().missing["M"])
    (<private>, False, 1)
    """
    z = _checks.codes("groups", groups, len(names))
    _checks.same_length(groups=z, partition=partition.teacher)
    cells = partition.teacher * len(names) + z
    counts = np.bincount(cells, minlength=partition.n_teachers * len(names))
    table = counts.reshape(partition.n_teachers, len(names)).astype(np.int64)
    return GroupsOfTeachers(table, names), bool((table > 0).all())

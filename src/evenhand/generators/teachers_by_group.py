"""Strata: teachers that each hold pictures of one group, and how many of them a neighbor moves."""

from __future__ import annotations

import numpy as np

from evenhand import _checks
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.teachers import by_position, by_unit
from evenhand.teachers.partition import Partition
from evenhand.typing import Array, IntArray


def by_group(
    group: IntArray,
    n_groups: int,
    n_teachers: int,
    *,
    units: Array | None = None,
    rng: np.random.Generator,
) -> Partition:
    """Send every picture to a teacher of its own group; teacher t serves group ``t % n_groups``.

    Parameters
    ----------
    group : ndarray of int64, shape (n,)
        Private.
    n_groups, n_teachers : int
        Every group has as many teachers, whatever its size: so much is public. ``n_teachers`` is a
        multiple of ``n_groups``.
    units : ndarray, optional
        Whose picture it is.
    rng : Generator
        Deals the positions where there are no units.

    Privacy
    -------
    The teacher of a picture follows from its position, or a keyed hash of its unit, and from its
    own group, never from another picture: adding or removing one changes one teacher. Who replaces
    it by one of another group does both, so *two* teachers change; see ``most_moved``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> deal = by_group(np.array([0, 1, 1, 0]), 2, 4, rng=rng)
    >>> (deal.teacher % 2).tolist()
    [0, 1, 1, 0]
    """
    _checks.codes("group", group, n_groups)
    if _checks.at_least("n_teachers", n_teachers, n_groups) % n_groups:
        fewer = n_teachers - n_teachers % n_groups
        raise ValueError(
            f"strata=True gives each of {n_groups} groups as many teachers: n_teachers must be a "
            f"multiple of {n_groups}, got n_teachers={n_teachers}. Use {fewer} or "
            f"{fewer + n_groups}."
        )
    each = n_teachers // n_groups
    dealt = by_position(len(group), each, rng) if units is None else by_unit(units, each)
    return Partition(
        teacher=dealt.teacher * n_groups + group,
        n_teachers=n_teachers,
        unit="picture at its position" if units is None else dealt.unit,
        neighbors="add or remove one",
        key=dealt.key,
    )


def most_moved(neighbors: str, n_groups: int, per_unit: int = 1) -> int:
    """Return how many teachers of strata a step between neighbors can change.

    A replaced picture leaves one group and comes to another: two. A unit that is added or removed
    has up to ``per_unit`` pictures, and those of one group sit with one teacher.

    Examples
    --------
    >>> most_moved("replace one", 2), most_moved("add or remove one", 2)
    (2, 1)
    """
    _checks.one_of("neighbors", neighbors, NEIGHBORS)
    return min(n_groups, 2 if neighbors == "replace one" else per_unit)

"""Which teacher learns from which private record, decided without looking at any other record."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

import numpy as np
import pandas as pd

from evenhand import _checks, _words
from evenhand._random import as_generator
from evenhand._units import Digests, check_key, digest, ids_of
from evenhand.typing import ArrayLike, BoolArray, IntArray, RandomState

Neighbors = Literal["replace one", "add or remove one"]

NEIGHBORS: Final[tuple[str, ...]] = _words.NEIGHBORS


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition:
    """The teacher of every private record, and the neighbors for which it is safe.

    Make one with :func:`by_position`, :func:`by_unit` or :func:`by_coin`. An assignment of your own
    is safe only if the teacher of a record depends on nothing but its own position, unit or coin.

    Privacy
    -------
    Between neighbors one teacher's records change and all other teachers keep theirs, so one
    vote per query may move (checked by brute force in ``tests/teachers/test_partition.py``).
    """

    teacher: IntArray = field(repr=False)
    """Teacher of each record, in [0, n_teachers). Never printed. Shape (n_records,)."""
    n_teachers: int
    """At least 1. A teacher may be empty."""
    unit: str
    """Whom one step between neighbors changes: ``"record"``, ``"person"`` or any other noun."""
    neighbors: Neighbors
    """``"replace one"`` or ``"add or remove one"``."""
    key: bytes | None = field(default=None, repr=False)
    """The key of a keyed assignment. It stays with the curator and is never printed."""

    def __post_init__(self) -> None:
        _checks.at_least("n_teachers", self.n_teachers, 1)
        teacher = _checks.codes("teacher", self.teacher, self.n_teachers).copy()
        teacher.flags.writeable = False  # a partition that moves after it was made keeps no promise
        object.__setattr__(self, "teacher", teacher)
        _checks.one_of("neighbors", self.neighbors, NEIGHBORS)
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise ValueError(
                f"unit must be a noun such as 'record' or 'person', got {self.unit!r}."
            )

    @property
    def n_records(self) -> int:
        """Number of private records."""
        return len(self.teacher)

    @property
    def dealt_by_coin(self) -> bool:
        """Whether coins decided, which nobody can toss again: a second deal is another one."""
        return self.neighbors == "add or remove one" and self.key is None

    @property
    def statement(self) -> str:
        """The relation between neighbors, and what it leaves alone, as one sentence."""
        step = "Replacing" if self.neighbors == "replace one" else "Adding or removing"
        return (
            f"{step} one {self.unit} changes the records of one teacher; "
            "every other record stays with its own."
        )

    @cached_property
    def sizes(self) -> IntArray:
        """Number of records of each teacher, shape (n_teachers,). Private under add or remove."""
        counts: IntArray = np.bincount(self.teacher, minlength=self.n_teachers).astype(np.int64)
        return counts

    @cached_property
    def all_rows(self) -> Sequence[IntArray]:
        """Rows of every teacher, each in ascending order."""
        order = np.argsort(self.teacher, kind="stable").astype(np.int64)
        return tuple(np.split(order, np.cumsum(self.sizes)[:-1]))

    def rows(self, t: int) -> IntArray:
        """Return the rows of teacher ``t``, ascending."""
        if not 0 <= t < self.n_teachers:
            raise IndexError(f"t must lie in [0, {self.n_teachers}), got t={t}.")
        return self.all_rows[t]


def by_position(n_records: int, n_teachers: int, random_state: RandomState = None) -> Partition:
    """Deal the rows to the teachers by position, in an order drawn from the seed.

    Parameters
    ----------
    n_records : int
        Number of private records. It is public under these neighbors.
    n_teachers : int
        At least 1 and at most ``n_records``.
    random_state : int, Generator or None
        Seeds the order. The order depends on ``n_records`` and this alone.

    Returns
    -------
    Partition
        Sizes differ by at most one.

    Privacy
    -------
    Neighbors : replace one record. The new record takes the old one's position, hence its teacher.
        Under add or remove one record this assignment is *not* safe: with another ``n_records`` the
        order is another one, and nearly every record moves.

    Examples
    --------
    >>> deal = by_position(10, 3, random_state=0)
    >>> deal
    Partition(n_teachers=3, unit='record', neighbors='replace one')
    >>> deal.sizes.tolist()
    [4, 3, 3]
    >>> print(deal.statement)
    Replacing one record changes the records of one teacher; every other record stays with its own.
    """
    _enough("records", _checks.at_least("n_records", n_records, 0), n_teachers, public=True)
    teacher = np.empty(n_records, dtype=np.int64)
    teacher[as_generator(random_state).permutation(n_records)] = np.arange(n_records) % n_teachers
    return Partition(teacher=teacher, n_teachers=n_teachers, unit="record", neighbors="replace one")


def by_unit(
    units: ArrayLike, n_teachers: int, key: bytes | None = None, *, unit: str = "person"
) -> Partition:
    """Send all records of a unit to the teacher that a keyed hash of its id names.

    Parameters
    ----------
    units : array-like, shape (n_records,)
        Id of the unit of each record: whole numbers or strings, none missing. ``17``, ``17.0`` and
        ``"17"`` are the same unit, so a file read with other types gives the same partition.
    n_teachers : int
        At least 1 and at most the number of units. Sizes vary, and a teacher may be empty.
    key : bytes or None
        16 to 64 bytes, chosen without looking at the data. None draws 32 bytes from the operating
        system; read them from ``Partition.key`` to make the same assignment again.
    unit : str
        What an id stands for, in the words of the guarantee.

    Privacy
    -------
    Neighbors : add or remove one unit, with all its records. The teacher is a function of the
    unit's own
        id and the key. The guarantee holds for every key, also a public one; it is kept by the
        curator because who knows it knows each person's teacher, and who may choose ids could
        fill one teacher. Replacing one unit by another changes *two* teachers: two steps of this
        relation.

    Examples
    --------
    >>> visits = by_unit(["ann", "bob", "ann", "eve"], 2, key=b"sixteen bytes !!")
    >>> bool(visits.teacher[0] == visits.teacher[2])
    True
    >>> visits.neighbors, visits.unit
    ('add or remove one', 'person')
    """
    if key is None:
        key = secrets.token_bytes(32)
    check_key(key)
    ids = ids_of(units)
    codes, distinct = pd.factorize(ids)
    _enough("units", len(distinct), n_teachers, public=False)
    return Partition(
        teacher=hashed(distinct, key).modulo(n_teachers)[codes],
        n_teachers=n_teachers,
        unit=unit,
        neighbors="add or remove one",
        key=key,
    )


def by_coin(coins: IntArray, n_teachers: int) -> Partition:
    """Send every record to the teacher that a coin of its own names.

    Parameters
    ----------
    coins : array of int, shape (n_records,)
        Independent and uniform on [0, 2**63), as ``privacy.subsampled.record_keys`` tosses them.
    n_teachers : int
        At least 1 and at most the number of records. Sizes vary, and a teacher may be empty.

    Privacy
    -------
    Neighbors : add or remove one record. Coins are alike and independent of each other and of all
        else, so those of the records that two neighbors share have one joint distribution in both,
        whatever their positions: give each record the same coin in both, and one teacher's records
        differ, by one. This holds for coins that nobody knows. Coins from a public seed belong to
        positions, and without the first record all others get another one.

    Examples
    --------
    >>> from evenhand.privacy import DiscreteNoise
    >>> from evenhand.privacy.subsampled import record_keys
    >>> by_coin(record_keys(DiscreteNoise(), 1000), 10)
    Partition(n_teachers=10, unit='record', neighbors='add or remove one')
    """
    _enough("records", len(coins), n_teachers, public=False)
    return Partition(
        teacher=np.asarray(coins) % n_teachers,
        n_teachers=n_teachers,
        unit="record",
        neighbors="add or remove one",
    )


def in_stream(
    n_records: int,
    n_teachers: int,
    key: bytes,
    *,
    unit: str = "record",
    neighbors: Neighbors = "replace one",
) -> Partition:
    """Return the assignment of records that nobody holds: it lists none, and its key deals them.

    The teacher of a record is that of its unit's id, as in :func:`by_unit`, or, where each record
    is a unit of its own, that of its number in the stream, in the same way.

    Parameters
    ----------
    n_records : int
        It is public where neighbors replace one.
    n_teachers : int
        At least 1 and at most ``n_records``.
    key : bytes
        As for ``by_unit``.
    unit : str
        What an id stands for.
    neighbors : str

    Privacy
    -------
    Neighbors : by the id of a unit, add or remove one unit. By the number of a record, replace one
        record, as the numbers of all records behind one that is taken away are others; under a key
        that nobody knows a number is a coin, and neighbors may add or remove one, as in
        :func:`by_coin`.
    """
    check_key(key)
    _enough("records", n_records, n_teachers, public=neighbors == "replace one")
    return Partition(
        teacher=np.zeros(0, dtype=np.int64),
        n_teachers=n_teachers,
        unit=unit,
        neighbors=neighbors,
        key=key,
    )


def chosen_units(units: ArrayLike, share: float, key: bytes) -> BoolArray:
    """Choose about ``share`` of the units, each by its own keyed hash; True for all its records.

    Privacy
    -------
    Whether a unit is chosen depends on its own id and the key alone, so adding or removing one
    unit moves no other. A share counted off a shuffled list of units would.

    Examples
    --------
    >>> chosen_units(["ann", "bob", "ann", "eve"], 0.5, key=b"sixteen bytes !!").tolist()
    [False, True, False, True]
    """
    check_key(key)
    codes, distinct = pd.factorize(ids_of(units))
    limit = int(_checks.closed_unit("share", share) * 2**128)
    chosen = [digest(name, key, b"evenhand.chosen") < limit for name in distinct]
    return np.array(chosen, dtype=np.bool_)[codes]


def chosen_records(units: ArrayLike, most: int, key: bytes | None = None) -> BoolArray:
    """Choose at most ``most`` records of each unit, by a keyed hash of its id and their places.

    Privacy
    -------
    Which records of a unit are chosen depends on the unit's own id, their order among its own, and
    the key: adding or removing one unit changes no other's. This holds for every key; None draws
    one from the operating system.

    Examples
    --------
    >>> chosen_records(["ann", "bob", "ann", "ann"], 2, key=b"sixteen bytes !!").tolist()
    [False, True, True, True]
    """
    _checks.at_least("most", most, 1)
    if key is None:
        key = secrets.token_bytes(32)
    check_key(key)
    ids = pd.Series(ids_of(units))
    places = ids.groupby(ids, sort=False).cumcount()
    names = (f"{place} of {name}" for place, name in zip(places, ids, strict=True))
    order = pd.Series(Digests.of(names, key, b"evenhand.records").high)
    chosen: BoolArray = (order.groupby(ids).rank(method="first") <= most).to_numpy()
    return chosen


def hashed(names: Iterable[str], key: bytes) -> Digests:
    """Return the keyed hash of each unit's own id; modulo the number of teachers it is a teacher.

    128 bits: the bias is below 2**-96.
    """
    return Digests.of(names, key, b"evenhand.teacher")


def _enough(what: str, n: int, n_teachers: int, *, public: bool) -> None:
    """Refuse more teachers than records; ``n`` is quoted only where neighbors agree on it."""
    _checks.at_least("n_teachers", n_teachers, 1)
    if n_teachers > n:
        quoted = f" for {n} {what}" if public else ", which is above it (how many is private)"
        raise ValueError(
            f"n_teachers must be at most the number of {what}, got n_teachers={n_teachers}"
            f"{quoted}. Use fewer teachers; about 100 records each is a good start."
        )

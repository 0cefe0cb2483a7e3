"""Private, public and test: which record falls where, for tables and for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pandas as pd

from evenhand._random import as_generator
from evenhand._units import digest, ids_of
from evenhand.typing import ArrayLike, IntArray, RandomState

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class Split(Generic[T]):
    """Three disjoint parts that together are the whole data set.

    ``private`` is what the guarantee protects. ``public`` has no labels (``y`` is None): it is
    what the teachers are asked about and what encoders may read. ``test`` measures the result.
    """

    private: T
    public: T
    test: T


def rows_of_split(
    n: int,
    *,
    units: ArrayLike | None,
    noun: str,
    public: float,
    test: float,
    random_state: RandomState,
) -> Split[IntArray]:
    """Deal n records: first ``test`` of all, then ``public`` of the rest; what remains is private.

    Rows come in a random order that depends on n and the seed alone. With ``units`` all records of
    one stay on one side, which a keyed hash of its id chooses; ``noun`` is for messages.
    """
    _fraction("public", public)
    _fraction("test", test)
    rng = as_generator(random_state)
    if units is None:
        order, side = _by_position(n, public, test, rng)
    else:
        order, side = _by_unit(units, noun, public, test, rng.bytes(32))
    rows = [order[side[order] == number] for number in range(3)]
    return Split(test=rows[0], public=rows[1], private=rows[2])


def _by_position(
    n: int, public: float, test: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return a random order of the records, and the side of each: test 0, public 1, private 2."""
    n_test = round(test * n)
    n_public = round(public * (n - n_test))
    sizes = {"test": (test, n_test), "public": (public, n_public)}
    for part, (fraction, size) in sizes.items():
        if fraction > 0 and size == 0:
            raise ValueError(
                f"{part}={fraction} of {n} records leaves none for the {part} part. "
                f"Raise {part}, or set {part}=0 to go without."
            )
    if n_test + n_public >= n:
        raise ValueError(
            f"test={test} and public={public} of {n} records leave none for the private part. "
            f"Lower them."
        )
    side = np.empty(n, dtype=np.int64)
    order = rng.permutation(n)
    side[order] = np.repeat([0, 1, 2], [n_test, n_public, n - n_test - n_public])
    return order, side


def _by_unit(
    units: ArrayLike, noun: str, public: float, test: float, key: bytes
) -> tuple[IntArray, IntArray]:
    """Return an order by keyed hash, and sides, in which each unit depends on its own id alone."""
    codes, distinct = pd.factorize(ids_of(units))
    place = np.array([digest(name, key, b"evenhand.split") / 2**128 for name in distinct])[codes]
    side = np.digitize(place, [test, test + (1.0 - test) * public]).astype(np.int64)
    wanted = {"test": test > 0, "public": public > 0, "private": True}
    for number, (part, needed) in enumerate(wanted.items()):
        if needed and not (side == number).any():
            raise ValueError(
                f"test={test} and public={public} leave no {noun} for the {part} part: each "
                f"{noun} falls on a side of its own accord. Change them, or bring more {noun}s."
            )
    return np.argsort(place, kind="stable"), side


def _fraction(name: str, value: float) -> None:
    """Check a part of the whole, zero allowed."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {name}={value!r}. It is a fraction.")

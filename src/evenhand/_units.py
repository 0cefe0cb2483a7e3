"""A keyed hash of a unit's own id: it decides about one unit, and no other unit can move it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._numerals import numeral
from evenhand.typing import Array, ArrayLike, BoolArray, IntArray

SMALLEST_KEY: Final = 16  # bytes: 128 bits cannot be guessed
LARGEST_KEY: Final = 64  # bytes: the longest key that BLAKE2b takes

_LARGEST: Final = 2**53


def digest(name: str, key: bytes, purpose: bytes) -> int:
    """128 bits of a keyed hash, independent for each purpose."""
    hashed = hashlib.blake2b(name.encode(), key=key, digest_size=16, person=purpose)
    return int.from_bytes(hashed.digest(), "big")


@dataclass(frozen=True, kw_only=True, eq=False)
class Digests:
    """What ``digest`` gives for many names at once: two words of 64 bits each."""

    high: Array
    low: Array
    """``high`` and ``low``: of uint64, shape (n,)."""

    @classmethod
    def of(cls, names: Iterable[str], key: bytes, purpose: bytes) -> Digests:
        """Hash each name by itself."""
        begun = hashlib.blake2b(key=key, digest_size=16, person=purpose)

        def hashed(name: str) -> bytes:
            own = begun.copy()
            own.update(name.encode())
            return own.digest()

        words = np.frombuffer(b"".join(map(hashed, names)), dtype=">u8").reshape(-1, 2)
        return cls(high=words[:, 0].astype(np.uint64), low=words[:, 1].astype(np.uint64))

    def modulo(self, n: int) -> IntArray:
        """Return each digest modulo ``n``, which is at most 2**31. 128 bits: no visible bias."""
        by = np.uint64(n)
        rest: IntArray = ((self.high % by * np.uint64(2**64 % n) + self.low % by) % by).astype(
            np.int64
        )
        return rest


def check_key(key: bytes) -> None:
    """Refuse what is no key, or one that could be guessed."""
    if not isinstance(key, bytes):
        raise TypeError(
            f"key must be bytes, got {type(key).__name__}. Try secrets.token_bytes(32)."
        )
    if not SMALLEST_KEY <= len(key) <= LARGEST_KEY:
        raise ValueError(
            f"key must be {SMALLEST_KEY} to {LARGEST_KEY} bytes long, got {len(key)}. "
            "Leave it out for a fresh one, or use secrets.token_bytes(32)."
        )


def ids_of(units: ArrayLike) -> Array:
    """One string per record, the same for 17, 17.0, "17" and "17.0".

    Whether ids of a file are numbers or texts can hang on the id of one other record.
    """
    if isinstance(units, str):
        raise TypeError(
            f"units must hold one id for each record, got the text {units!r}. Pass the column "
            f"itself, not its name."
        )
    array = np.asarray(units, dtype=object)
    if array.ndim != 1:
        raise ValueError(
            f"units must be one-dimensional, got shape {array.shape}. "
            "Join several columns into one id first."
        )
    gone = np.asarray(pd.isna(array))
    missing = np.flatnonzero(gone | (np.where(gone, "", array) == ""))
    if missing.size:
        raise ValueError(
            f"units must name a unit for every record, and there is none in "
            f"{_values.rows(missing)}. Drop these records, or give each an id of its own."
        )
    return np.array([_canonical(name) for name in array], dtype=object)


def first_records(ids: Array, most: int) -> BoolArray:
    """Return which records are among the first ``most`` of their unit, shape (n,).

    Parameters
    ----------
    ids : ndarray of str, shape (n,)
        As ``ids_of`` gives them: of ids as they came, 17 and "17" would be two units.
    most : int

    Examples
    --------
    >>> first_records(ids_of([17, "ann", "17", "ann"]), 1).tolist()
    [True, True, False, False]
    """
    whose = pd.Series(ids)
    among: BoolArray = (whose.groupby(whose, sort=False).cumcount() < most).to_numpy()
    return among


def _canonical(name: object) -> str:
    if isinstance(name, str):
        return numeral(str(name))
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return str(int(name))
    if isinstance(name, float | np.floating) and float(name).is_integer():
        if abs(float(name)) >= _LARGEST:
            raise ValueError(
                f"units must not have so many digits as numbers with a point, got "
                f"{_values.quoted(name)}: several ids would be one. Write all ids without a point, "
                f"or as texts."
            )
        return str(int(name))
    raise TypeError(
        f"units must be whole numbers or strings, got {_values.quoted(name)} "
        f"({type(name).__name__}). Write the ids as strings, for example units.astype(str)."
    )

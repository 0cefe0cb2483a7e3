"""Votes of teachers kept for later settings, in a private folder that knows its own data."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from evenhand.teachers.ensemble import Ensemble, FittedByRecords, PrivateRecords, Teachers
from evenhand.typing import Array, ArrayLike, IntArray

FORMAT: Final = "evenhand votes 1"
KEY_FILE: Final = "key"
KEY_BYTES: Final = 32
NOTE: Final = "WHAT-THIS-IS.txt"
_NONCE_BYTES: Final = 12  # drawn anew for each file: 2**32 files are safe under one key

_WORDS: Final = """\
Votes of teachers: functions of single private records, without noise. Private like the records
themselves: keep this folder where they are kept, and never publish any of it.
"""
_WORDS_OF_A_RUN: Final = """\
Work of one run of evenhand frontier: votes of teachers, encrypted with a key that was in the memory
of that run alone. When the run has ended nobody can read them, and the next run removes the folder.
"""


class VotesOfOtherData(ValueError):
    """The kept votes were made from other rows than those at hand."""


@dataclass(frozen=True, kw_only=True)
class VotesCache:
    """A folder of votes that only its owner may read.

    Privacy
    -------
    Votes are private: they are functions of single teachers' records, without noise. The folder
    must stay where the private rows stay; nothing of it enters a store, a page or a log. Whether
    votes belong to the rows at hand is decided by a keyed hash of these rows, whose key is
    ``secret``, or lies in the folder as well: without the folder it says nothing.
    """

    folder: Path
    """Made with mode 0700 if it is not there; refused if others may read it."""
    secret: bytes | None = field(default=None, repr=False)
    """Key of one run. All files are then encrypted with it (AES-GCM) and it is never written, so
    that nothing can be read when the run is gone, however it ended.
    """

    def __post_init__(self) -> None:
        folder = Path(self.folder)
        object.__setattr__(self, "folder", folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode & 0o777
        if mode & 0o077:
            raise PermissionError(
                f"The folder {folder} may be read by others (mode {mode:o}), and votes are "
                f"private. Run chmod 700 on it, or choose another folder."
            )
        if not (folder / NOTE).exists():
            words = _WORDS if self.secret is None else _WORDS_OF_A_RUN
            self._put(NOTE, words.encode(), keep_first=True)

    def read(self, name: str, belongs_to: str) -> IntArray | None:
        """Return the votes kept under ``name``, or None if there are none.

        Raises
        ------
        VotesOfOtherData
            If they were made from other rows.
        ValueError
            If the file is damaged.
        """
        file = self.folder / f"{name}.votes"
        if not file.exists():
            return None
        head, _, content = self._opened(file.read_bytes()).partition(b"\n")
        try:
            said = json.loads(head)
            whole = said["format"] == FORMAT and said["sha256"] == _sha256(content)
            shape = tuple(said["shape"])
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise ValueError(
                f"The votes in {file} are damaged. Remove the file; the teachers are trained again."
            )
        if not hmac.compare_digest(said["belongs_to"], belongs_to):
            raise VotesOfOtherData(
                f"The votes in {file} were made from other rows than those at hand: a file of the "
                f"data changed under the same name. Give the sweep another cache folder, or remove "
                f"this one."
            )
        votes: IntArray = (
            np.frombuffer(content, dtype=said["dtype"]).reshape(shape).astype(np.int64)
        )
        return votes

    def write(self, name: str, belongs_to: str, votes: IntArray) -> None:
        """Keep votes; whole or not at all, also when several processes write."""
        small = votes.astype(np.min_scalar_type(int(votes.max(initial=0))))
        content = np.ascontiguousarray(small).tobytes()
        head = {
            "format": FORMAT,
            "shape": list(small.shape),
            "dtype": small.dtype.str,
            "sha256": _sha256(content),
            "belongs_to": belongs_to,
        }
        self._put(f"{name}.votes", self._sealed(json.dumps(head).encode() + b"\n" + content))

    def keyed(self, *parts: Array | str) -> str:
        """Return the keyed hash of arrays: equal for equal rows, and nothing without the key."""
        digest = hashlib.blake2b(key=self._key())
        for part in parts:
            array = np.frombuffer(part.encode(), np.uint8) if isinstance(part, str) else part
            digest.update(f"{array.dtype.str}{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def _sealed(self, content: bytes) -> bytes:
        if self.secret is None:
            return content
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.secret).encrypt(nonce, content, None)

    def _opened(self, content: bytes) -> bytes:
        if self.secret is None:
            return content
        nonce, sealed = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
        try:
            return AESGCM(self.secret).decrypt(nonce, sealed, None)
        except (InvalidTag, ValueError):
            return b""  # said to be damaged

    def _key(self) -> bytes:
        if self.secret is not None:
            return self.secret
        file = self.folder / KEY_FILE
        if not file.exists():
            # The first of several processes wins: a link is made whole, or refused.
            self._put(KEY_FILE, secrets.token_bytes(KEY_BYTES), keep_first=True)
        return file.read_bytes()

    def _put(self, name: str, content: bytes, *, keep_first: bool = False) -> None:
        handle, scratch = tempfile.mkstemp(dir=self.folder)  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if not keep_first:
                os.replace(scratch, self.folder / name)
                return
            try:
                os.link(scratch, self.folder / name)
            except FileExistsError:
                return
        finally:
            Path(scratch).unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class KeptTeachers(FittedByRecords):
    """Teachers trained once for each table, deal and seed, and remembered by their votes."""

    reads_rows: ClassVar[bool] = False  # the teachers do, if they are trained

    teachers: Teachers
    """Who is trained where no votes are kept. They must not read groups."""
    cache: VotesCache
    name: str
    """Public name of what the votes are about: data set, fingerprint and seed."""

    def _fit(self, given: PrivateRecords) -> Ensemble:
        """Return an ensemble that trains its teachers when it must vote on rows for the first time.

        It can vote, and nothing else.
        """
        return _Remembered(self, given)


@dataclass(frozen=True)
class _Remembered:
    kept: KeptTeachers
    given: PrivateRecords = field(repr=False)

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return self.given.partition.n_teachers

    def vote(self, X: ArrayLike) -> IntArray:
        """Return the kept votes on these rows, or train, vote and keep them."""
        rows = np.asarray(X)
        cache, given = self.kept.cache, self.given
        if given.partition.dealt_by_coin:  # no other deal will be this one
            return self._trained().vote(rows)
        about = [self.kept.name, repr(self.kept.teachers), self.n_teachers, given.n_classes]
        name = hashlib.sha256(json.dumps([*about, rows.shape]).encode()).hexdigest()[:32]
        belongs_to = cache.keyed(
            np.asarray(given.X), np.asarray(given.y), given.partition.teacher, rows
        )
        votes = cache.read(name, belongs_to)
        if votes is None:
            votes = self._trained().vote(rows)
            cache.write(name, belongs_to, votes)
        return votes

    def _trained(self) -> Ensemble:
        given = self.given
        return self.kept.teachers.fit(
            given.X, given.y, given.partition, given.n_classes, given.rng, given.progress
        )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

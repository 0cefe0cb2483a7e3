"""A round of noisy sums in files: what owners are told, what each of them sends, and the sum.

The plan goes to all owners. Each sends its counts with its own share of the noise, signed, to a
party that adds them up and is not the aggregator; the aggregator reads the sum alone.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from evenhand import _values
from evenhand._signing import PrivateKey, PublicKey, known_by
from evenhand.owners.noisy_sums import NoisySums, Round
from evenhand.owners.vote_file import canonical
from evenhand.typing import IntArray

VERSION: Final = 1
MOST_BYTES: Final = 1 << 30
KEPT: Final = (
    "whoever added up the shares keeps them from the aggregator, and gives it one sum alone"
)
"""What nobody can see in a sum, and the claim says."""

_PLAN, _SHARE, _SUMS = "evenhand round", "evenhand noisy share", "evenhand noisy sums"


class SharesRefused(ValueError):
    """Shares that do not go together: every bad one is named, and nothing was added."""


@dataclass(frozen=True, kw_only=True)
class RoundFile:
    """The plan of one round, with a number of its own: another round is another number."""

    plan: Round
    number: str = field(default_factory=lambda: secrets.token_hex(16))
    """Drawn when the round was planned."""

    @property
    def digest(self) -> str:
        """SHA-256 of all of it: shares and sums name it."""
        return hashlib.sha256(canonical(self._values())).hexdigest()

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        _write(path, self._values())

    @classmethod
    def read(cls, path: Path) -> RoundFile:
        """Read it.

        Raises
        ------
        ValueError
            If it is no plan of a round.
        """
        values = _read(path, _PLAN, ("number", "plan"), "evenhand sums plan")
        try:
            return cls(plan=Round.from_dict(values["plan"]), number=str(values["number"]))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{path} is no plan of a round: {_values.said_by(error)} Make one with: evenhand "
                f"sums plan."
            ) from None

    def _values(self) -> dict[str, Any]:
        return {"format": _PLAN, "version": VERSION} | {
            "number": self.number,
            "plan": self.plan.to_dict(),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareFile:
    """Counts of one owner with its share of the noise. Private, until they are summed."""

    owner: str
    round: str
    """Digest of the plan."""
    counts: IntArray = field(repr=False)
    """Shape (n_rows, n_noised)."""
    key: str = ""
    signature: str = field(default="", repr=False)
    """``key`` and ``signature``: Ed25519, in hex."""

    @classmethod
    def signed(cls, owner: str, told: RoundFile, counts: IntArray, key: PrivateKey) -> ShareFile:
        """Return a share signed with this key."""
        bare = cls(owner=owner, round=told.digest, counts=counts, key=key.public.raw.hex())
        signature = key.sign(canonical(bare._values())).hex()
        return cls(**(bare._fields() | {"signature": signature}))

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        _write(path, self._values() | {"signature": self.signature})

    @classmethod
    def read(cls, path: Path) -> ShareFile:
        """Read it; whether it fits a round is checked where those of all owners are."""
        keys = ("owner", "round", "counts", "key", "signature")
        values = _read(path, _SHARE, keys, "evenhand owner noise")
        for name in ("owner", "key"):
            if not isinstance(values[name], str):
                raise ValueError(f"{path}: {name} must be a text.")
        return cls(**({name: values[name] for name in keys} | {"counts": _whole(path, values)}))

    def wrong(self, told: RoundFile, known: Mapping[str, PublicKey]) -> str:
        """Say what is wrong with it, in the words of a list; nothing if all is well."""
        plan = told.plan
        if self.round != told.digest:
            return "it is of another round"
        wanted = (plan.public.n_rows, plan.histogram.n_noised)
        if self.counts.shape != wanted:
            return f"its counts have shape {self.counts.shape} instead of {wanted}"
        most = plan.n_teachers * plan.scale + plan.most_noise
        if self.counts.min() < -plan.most_noise or self.counts.max() > most:
            return "its counts lie beyond all that votes and a share of the noise can be"
        owners_key = known_by(self.owner, known)
        if owners_key is None:
            return f"no key of {self.owner!r} is known"
        try:
            key = PublicKey.of_bytes(bytes.fromhex(self.key))
            good = key.signed(bytes.fromhex(self.signature), canonical(self._values()))
        except (ValueError, TypeError):
            good = False
        if not good:
            return "its signature fails"
        if owners_key.raw != key.raw:
            return f"it is signed by another key than that of {self.owner!r}"
        return ""

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("owner", "round", "counts", "key")}

    def _values(self) -> dict[str, Any]:
        made = {"format": _SHARE, "version": VERSION}
        return made | self._fields() | {"counts": self.counts.tolist()}


def add_up(files: Iterable[Path], told: RoundFile, keys: Mapping[str, PublicKey]) -> NoisySums:
    """Add up the shares of all owners that answered.

    Parameters
    ----------
    files : iterable of path
    told : RoundFile
    keys : mapping of str to PublicKey
        Of the owners, from a source other than the shares: whoever sends zeros in the name of
        others takes their noise away from those who answer.

    Raises
    ------
    SharesRefused
        Naming every bad share, and an owner that is there twice.
    ValueError
        If fewer owners answered than the noise allows.

    Privacy
    -------
    Who holds the shares one by one sees each owner protected by its own share of the noise alone.
    It must not be the aggregator, nor side with it. Nor may the aggregator see two sums of a round:
    what one has and the other has not is an owner's share.
    """
    bad: list[str] = []
    held: list[IntArray] = []
    owners: dict[bytes, str] = {}  # by their keys
    for path in files:
        try:
            share = ShareFile.read(path)
        except (ValueError, FileNotFoundError) as error:
            bad.append(str(error).rstrip("."))
            continue
        why = share.wrong(told, keys)
        if not why and share.owner in owners.values():
            why = f"{share.owner!r} is there twice"
        elif not why and (before := owners.get(bytes.fromhex(share.key))) is not None:
            why = f"it is signed with the key of {before!r}: one owner answers once"
        if why:
            bad.append(f"{path}: {why}")
            continue
        owners[bytes.fromhex(share.key)] = share.owner
        held.append(share.counts)
    if bad:
        raise SharesRefused(f"{'; '.join(bad)}. Nothing was added. Ask these owners again.")
    if (lacking := told.plan.least_answers - len(held)) > 0:
        raise SharesRefused(
            f"{len(held)} of {told.plan.n_owners} owners answered, and the noise protects from "
            f"{told.plan.least_answers} on. Nothing was added. Wait for {lacking} more, and name "
            f"the files of all; where too few will come, plan another round with more --dropouts."
        )
    total: Any = np.sum(held, axis=0)
    return _noisy_sums(told, total, len(held))


def write_sums(sums: NoisySums, told: RoundFile, path: Path) -> None:
    """Write what the aggregator may read."""
    values = {"format": _SUMS, "version": VERSION, "round": told.digest}
    _write(path, values | {"n_answered": sums.n_answered, "counts": sums.sums.tolist()})


def read_sums(path: Path, told: RoundFile) -> NoisySums:
    """Read the sums of a round.

    Raises
    ------
    ValueError
        If they are of another round, or no sums.
    """
    keys = ("round", "n_answered", "counts")
    values = _read(path, _SUMS, keys, "evenhand sums add")
    if values["round"] != told.digest:
        raise ValueError(f"{path} holds the sums of another round than this plan.")
    n = values["n_answered"]
    if isinstance(n, bool) or not isinstance(n, int):
        raise ValueError(f"{path}: n_answered must be a whole number, got {n!r}.")
    return _noisy_sums(told, _whole(path, values), n)


def _noisy_sums(told: RoundFile, sums: IntArray, n_answered: int) -> NoisySums:
    paid = told.plan.paid()
    return NoisySums(round=told.plan, sums=sums, n_answered=n_answered, ledger=paid, kept_by=KEPT)


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path, kind: str, keys: tuple[str, ...], command: str) -> dict[str, Any]:
    """Read a file of this kind, with these keys.

    Raises
    ------
    ValueError
        For any other file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file at {path}. Make one with: {command}.")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES >> 20} MiB, and no {kind}.")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        values = None
    wanted = {"format", "version", *keys}
    if not isinstance(values, dict) or values.get("format") != kind or set(values) != wanted:
        raise ValueError(f"{path} is no {kind}, or is damaged. Make one with: {command}.")
    if values["version"] != VERSION:
        raise ValueError(
            f"{path} is of version {values['version']!r}, and this program reads {VERSION}."
        )
    return values


def _whole(path: Path, values: Mapping[str, Any]) -> IntArray:
    """Return the counts, which are whole numbers in rows of one length."""
    try:
        counts = np.array(values["counts"])
    except (ValueError, OverflowError):
        counts = np.zeros(0)
    if counts.dtype != np.int64 or counts.ndim != 2:
        raise ValueError(f"{path}: counts must be whole numbers, in rows of one length.")
    return counts

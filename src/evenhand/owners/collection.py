"""The votes of all owners together: checked against each other, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand._numerals import natural_order, text_of
from evenhand._signing import PublicKey, known_by
from evenhand.owners.digests import PublicRows
from evenhand.owners.vote_file import OWNER, VoteFile, of_owners
from evenhand.teachers.partition import Neighbors
from evenhand.typing import IntArray
from evenhand.voting import Votes


class VotesRefused(ValueError):
    """Files of votes that do not go together; the message names every bad one. Nothing is spent."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnerVotes:
    """What the teachers of all owners say about the same public rows. **Private**: prints no count.

    Make it with :meth:`of`.

    Privacy
    -------
    Neighbors : where the unit is the owner, all records of one owner are others, and all of its
        teachers may vote otherwise. Where it is a record, its owner's teachers hold disjoint parts,
        and one of them may.
    Sensitivity : ``moves`` parts go from some classes to others; so one count falls by ``moves`` at
        most, and another rises. It is derived by brute force in ``tests/owners``.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [31, 44, 52]})
    >>> south = VoteFile.cast("south", ["no", "yes", "yes"], rows, classes=["no", "yes"])
    >>> north = VoteFile.cast("north", [["no"] * 3, ["yes"] * 3], rows, classes=["no", "yes"])
    >>> votes = OwnerVotes.of([south, north], signed=False)
    >>> votes.n_teachers, votes.moves
    (3, 2)
    """

    owners: tuple[str, ...]
    """Names. Public."""
    teachers: tuple[int, ...]
    """Number of teachers of each owner. Public."""
    counts: IntArray = field(repr=False)
    """Parts of votes. Shape (n_rows, n_classes)."""
    scale: int
    """Parts of one vote."""
    classes: tuple[str, ...]
    public: PublicRows = field(repr=False)
    """Rows that all of them voted on."""
    unit: str
    neighbors: Neighbors
    """``unit`` and ``neighbors``: whom the claim is about."""
    fingerprints: tuple[str, ...] = field(repr=False)
    """Of the keys that signed; an empty text for votes that nobody signed."""
    keys_known: bool
    """Whether each key was compared with one that the owner had given before."""

    @classmethod
    def of(
        cls,
        files: Iterable[VoteFile | str | Path],
        *,
        X_public: Any = None,
        unit: str | None = None,
        keys: Mapping[str, PublicKey] | None = None,
        signed: bool = True,
    ) -> OwnerVotes:
        """Check the files of all owners together, and count.

        Parameters
        ----------
        files : iterable of VoteFile or path
            One for each owner.
        X_public : DataFrame, array or PublicRows, optional
            The rows that they must be about; otherwise those of most files.
        unit : str, optional
            Whom the claim is to protect; otherwise whom most files say.
        keys : mapping of str to PublicKey, optional
            The key of each owner, from a source other than the files.
        signed : bool
            Whether a file without a signature is refused.

        Raises
        ------
        VotesRefused
            Naming everything that is wrong with every file, at once.
        """
        given, wrong = _read(files)
        if given:
            known = None if X_public is None else _rows_of(X_public)
            wrong += _faults(given, known, unit, keys, signed)
        if wrong:
            listed = "\n".join(f"  {words}" for words in wrong)
            left = "" if len(wrong) >= len(given) else ", or leave their files out"
            raise VotesRefused(
                f"The votes were not counted, and nothing was spent: "
                f"{len(wrong)} of them cannot be used.\n{listed}\nAsk these owners again{left}."
            )
        if not given:
            raise VotesRefused("There are no votes. Name at least one file of votes.")
        voted = [file for _, file in given]
        scale = max(file.scale for file in voted)
        return cls(
            owners=tuple(file.owner for file in voted),
            teachers=tuple(file.n_teachers for file in voted),
            counts=np.sum([file.parts.sum(axis=0) * (scale // file.scale) for file in voted], 0),
            scale=scale,
            classes=voted[0].classes,
            public=voted[0].public,
            unit=voted[0].unit,
            neighbors=voted[0].neighbors,
            fingerprints=tuple(file.fingerprint for file in voted),
            keys_known=keys is not None,
        )

    @property
    def n_teachers(self) -> int:
        """Teachers of all owners."""
        return sum(self.teachers)

    @property
    def moved(self) -> int:
        """Votes that one unit moves on each row: those of the largest owner, or one."""
        return max(self.teachers) if self.unit == OWNER else 1

    @property
    def moves(self) -> int:
        """By how many parts one unit moves one count."""
        return self.moved * self.scale

    @property
    def largest_share(self) -> float:
        """Share of all votes that the largest owner has.

        An owner that lies moves the share of a class on a row by this much at most.
        """
        return max(self.teachers) / self.n_teachers

    @property
    def votes(self) -> Votes:
        """The parts as votes of ``scale`` voters for each teacher, of whom a unit moves many."""
        return Votes(counts=self.counts, n_teachers=self.n_teachers * self.scale)

    @property
    def said(self) -> str:
        """Who voted, in words for a claim: who took part is public."""
        many = len(set(self.teachers)) > 1
        most = f"{min(self.teachers)} to {max(self.teachers)}" if many else f"{self.teachers[0]}"
        return (
            f"the names of the {len(self.owners)} owners, the number of their teachers ({most} "
            f"each) and that they voted"
        )

    @property
    def vouched_for(self) -> tuple[str, ...]:
        """What no vote can show, in words for a claim."""
        said = [
            *of_owners(self.unit, self.moved),
            "the aggregator reads the votes without noise, and is trusted with them",
        ]
        if not all(self.fingerprints):
            said.append("some votes are not signed: nobody can say whose they are")
        elif not self.keys_known:
            said.append(
                "the keys were taken from the files themselves: compare their fingerprints with "
                "the owners"
            )
        return tuple(said)


def _rows_of(X_public: Any) -> PublicRows:
    return X_public if isinstance(X_public, PublicRows) else PublicRows.of(X_public)


def _read(files: Iterable[Any]) -> tuple[list[tuple[str, VoteFile]], list[str]]:
    """Return the files that can be read, each with what messages call it, and what is wrong."""
    if isinstance(files, str | Path):
        files = [files]
    given: list[tuple[str, VoteFile]] = []
    wrong = []
    for file in files:
        if isinstance(file, VoteFile):
            given.append((f"the votes of {file.owner!r}", file))
            continue
        try:
            given.append((str(file), VoteFile.read(file)))
        except (ValueError, OSError) as error:
            wrong.append(f"{file}: {error}" if str(file) not in str(error) else str(error))
    return given, wrong


def _faults(
    given: Sequence[tuple[str, VoteFile]],
    public: PublicRows | None,
    unit: str | None,
    keys: Mapping[str, PublicKey] | None,
    signed: bool,
) -> list[str]:
    """Return everything that is wrong with every file."""
    files = [file for _, file in given]
    classes = _most(file.classes for file in files)
    relation = _most((file.unit, file.neighbors) for file in files if unit in (None, file.unit))
    if public is None:
        public = max(
            (file.public for file in files),
            key=lambda rows: sum(not other.public.differences(rows) for other in files),
        )
    owners: dict[str, str] = {}
    holders: dict[bytes, str] = {}
    wrong = []
    for where, file in given:
        faults = [_of_signature(file, keys, signed)]
        if file.owner in owners:
            faults.append(f"the owner {file.owner!r} has voted already, in {owners[file.owner]}")
        elif file.key and file.key in holders:
            faults.append(
                f"it is signed with the key of {holders[file.key]!r}: one owner votes once"
            )
        owners.setdefault(file.owner, where)
        holders.setdefault(file.key, file.owner)
        if differences := file.public.differences(public):
            faults.append(f"it is about other public rows: {differences}")
        if file.classes != classes:
            faults.append(f"its classes are {_listed(file.classes)}, not {_listed(classes)}")
        if unit is not None and file.unit != unit:
            faults.append(f"it protects each {file.unit}, and {unit!r} was asked for")
        elif relation is not None and (file.unit, file.neighbors) != relation:
            faults.append(
                f"it protects {file.neighbors} {file.unit}, and others {' '.join(relation[::-1])}; "
                f"units are not mixed"
            )
        if said := "; ".join(filter(None, faults)):
            wrong.append(f"{where}: {said}.")
    return wrong


def _of_signature(file: VoteFile, keys: Mapping[str, PublicKey] | None, signed: bool) -> str:
    if not file.key:
        return "it is not signed" if signed or keys is not None else ""
    if not file.signed():
        return "the signature fails: the file was changed after it was signed"
    if keys is None:
        return ""
    known = known_by(file.owner, keys)
    if known is None:
        hint = _checks.did_you_mean(file.owner, keys)
        return f"no key is known of the owner {file.owner!r}.{hint}".rstrip(".")
    if known.raw != file.key:
        return f"it is signed with a key that is not the one of {file.owner!r}"
    return ""


def _most(values: Iterable[Any]) -> Any:
    """Return what most say; None where there is nothing."""
    found = Counter(values).most_common(1)
    return found[0][0] if found else None


def _listed(classes: Sequence[str]) -> str:
    return ", ".join(map(repr, classes[:10]))


def classes_as(known: Sequence[str], given: Any) -> np.ndarray[Any, Any]:
    """Return the classes of the votes as values: those of ``given``, or as they read.

    Raises
    ------
    ValueError
        If ``given`` are other classes.
    """
    if given is not None:
        values = {text_of(value): value for value in np.asarray(given).tolist()}
        if natural_order(values) != tuple(known):
            raise ValueError(
                f"The votes are about the classes {_listed(known)}, and classes= names "
                f"{_listed(list(values))}. Leave it out, or name the same."
            )
        return np.array([values[name] for name in known])
    if tuple(known) == ("False", "True"):
        return np.array([False, True])
    try:
        return np.array([int(name) for name in known])
    except ValueError:
        return np.array(list(known))

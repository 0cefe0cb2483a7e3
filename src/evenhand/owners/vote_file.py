"""What leaves an owner: its votes on the public rows, and whose they are, signed."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._numerals import natural_order, text_of
from evenhand._signing import PrivateKey, PublicKey
from evenhand.owners.digests import PublicRows
from evenhand.teachers.partition import NEIGHBORS, Neighbors
from evenhand.typing import Array, IntArray

FORMAT: Final = "evenhand votes"
VERSION: Final = 1

OWNER: Final = "owner"
"""The unit that is an owner with all of its records; any other is somebody's record."""

LABELS: Final = "labels"
PROBABILITIES: Final = "probabilities"
PARTS_OF_A_CLASS: Final = 500
"""A probability is told in whole parts of ``1 / (500 n_classes)``."""

MOST_BYTES: Final = 1 << 30
_NO_VOTE: Final = -1
_KEYS: Final = (
    "format",
    "version",
    "owner",
    "unit",
    "neighbors",
    "answers",
    "may_abstain",
    "classes",
    "public",
    "votes",
    "key",
    "signature",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteFile:
    """The votes of one owner's teachers on the public rows. Prints none of them: they are private.

    Privacy
    -------
    A vote that is withheld is divided equally among all classes. So every teacher moves one vote
    at most whatever it does: a row of its parts loses at most ``scale`` in all, and gains as much.
    """

    owner: str
    """Its name. Public."""
    parts: IntArray = field(repr=False)
    """How each teacher divides its vote among the classes: whole parts, ``scale`` in all. Shape
    (n_teachers, n_rows, n_classes).
    """
    classes: tuple[str, ...]
    """Public, in their natural order."""
    public: PublicRows = field(repr=False)
    """The rows that were voted on."""
    unit: str = OWNER
    """Whom the claim shall protect: ``"owner"``, with all of its records, all of its teachers; or
    ``"record"``, ``"person"`` ..., of whom one teacher alone has learned, for the teachers learned
    from disjoint parts.
    """
    neighbors: Neighbors = "replace one"
    """``"replace one"``, or ``"add or remove one"`` where records were dealt by the hash of a unit.
    """
    answers: str = LABELS
    """``"labels"`` or ``"probabilities"``."""
    may_abstain: bool = False
    """Whether a teacher may leave a row out. Said before it votes: whether one did is private."""
    key: bytes = field(default=b"", repr=False)
    signature: bytes = field(default=b"", repr=False)
    """``key`` and ``signature``: the owner's public key, and its signature under all of the above.
    """

    def __post_init__(self) -> None:
        for name in ("owner", "unit"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip() or not value.isprintable():
                raise ValueError(f"{name} must be a name on one line, got {value!r}.")
        _checks.one_of("neighbors", self.neighbors, NEIGHBORS)
        if self.unit != OWNER and self.unit.strip().casefold() == OWNER:
            raise ValueError(
                f"unit must be {OWNER!r}, or what one record of an owner is of, got {self.unit!r}: "
                f"a noun of its own would protect one of the owner's teachers alone. Write it so."
            )
        if self.unit == OWNER and self.neighbors != "replace one":
            raise ValueError(
                "unit='owner' goes with neighbors='replace one': who the owners are is public, and "
                "what they hold is not."
            )
        _checks.one_of("answers", self.answers, (LABELS, PROBABILITIES))
        _checks.flag("may_abstain", self.may_abstain)
        if list(self.classes) != list(natural_order(self.classes)) or len(self.classes) < 2:
            raise ValueError(
                f"classes must be at least two texts in their natural order, got {self.classes!r}."
            )
        parts = np.asarray(self.parts)
        if not np.issubdtype(parts.dtype, np.integer) or parts.ndim != 3 or not parts.size:
            raise ValueError("votes must be whole parts for each teacher, row and class.")
        if parts.shape[1:] != (self.public.n_rows, len(self.classes)):
            raise ValueError(
                f"votes are about {parts.shape[1]} rows and {parts.shape[2]} classes, and there "
                f"are {self.public.n_rows} rows and {len(self.classes)} classes."
            )
        if (parts < 0).any() or (parts.sum(axis=2) != self.scale).any():
            raise ValueError(f"every vote must be divided into {self.scale} parts, none below 0.")
        object.__setattr__(self, "parts", parts.astype(np.int64))

    @property
    def n_teachers(self) -> int:
        """Teachers of this owner."""
        return len(self.parts)

    @property
    def scale(self) -> int:
        """Parts into which a vote may be divided: by what was said before, not by what was cast."""
        return parts_of_a_vote(self.answers, self.may_abstain, len(self.classes))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the owner's public key, to compare over another line; empty without one."""
        return PublicKey.of_bytes(self.key).fingerprint if self.key else ""

    @cached_property
    def content(self) -> bytes:
        """What is signed: everything but the signature, in one order and spelling."""
        return canonical(self._values())

    def signed(self) -> bool:
        """Whether the signature is that of the key, under exactly these votes."""
        return bool(self.key) and PublicKey.of_bytes(self.key).signed(self.signature, self.content)

    def sign(self, key: PrivateKey) -> VoteFile:
        """Return the same votes signed with this key."""
        bare = VoteFile(**(self._fields() | {"key": key.public.raw, "signature": b""}))
        return VoteFile(**(bare._fields() | {"signature": key.sign(bare.content)}))

    @classmethod
    def cast(
        cls,
        owner: str,
        votes: Any,
        X_public: Any,
        *,
        classes: Sequence[Any],
        unit: str = OWNER,
        neighbors: Neighbors = "replace one",
        may_abstain: bool = False,
        clip: float = 0.0,
        key: PrivateKey | None = None,
    ) -> VoteFile:
        """Return votes as a file.

        Parameters
        ----------
        owner : str
        votes : array-like, shape (n_rows,), (n_teachers, n_rows) or (n_teachers, n_rows, n_classes)
            Names of classes, one for each row, or for each teacher and row; a missing one is a
            withheld vote. Or probabilities, in the order of ``classes``.
        X_public : DataFrame, array or PublicRows
            The rows voted on.
        classes : sequence
            All classes, whether voted for or not.
        unit, neighbors, may_abstain
            As for the class.
        clip : float
            Least probability of a class: rows are brought to the sum 1, and drawn together by as
            much.
        key : PrivateKey, optional
            Signs.

        Raises
        ------
        ValueError
            For votes that fit neither rows nor classes, and a withheld one without
            ``may_abstain``.

        Examples
        --------
        >>> rows = pd.DataFrame({"age": [31, 44, 52]})
        >>> VoteFile.cast("north", ["no", "yes", "no"], rows, classes=["no", "yes"])
        VoteFile(owner='north', classes=('no', 'yes'), unit='owner', neighbors='replace one',
                 answers='labels', may_abstain=False)
        """
        public = X_public if isinstance(X_public, PublicRows) else PublicRows.of(X_public)
        names = natural_order(text_of(name) for name in classes)
        if len(names) != len(classes):
            raise ValueError(f"classes must be different, got {list(classes)!r}.")
        given = np.asarray(votes)
        if given.ndim == 3:
            order = [[text_of(name) for name in classes].index(name) for name in names]
            parts = _of_probabilities(given[:, :, order], clip)
        else:
            parts = _of_labels(np.atleast_2d(given), names, may_abstain)
        made = cls(
            owner=owner,
            parts=parts,
            classes=names,
            public=public,
            unit=unit,
            neighbors=neighbors,
            answers=PROBABILITIES if given.ndim == 3 else LABELS,
            may_abstain=may_abstain and given.ndim != 3,
        )
        return made if key is None else made.sign(key)

    def write(self, path: Path) -> None:
        """Write the file as JSON."""
        values = self._values() | {"signature": _text(self.signature)}
        path.write_text(json.dumps(values, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> VoteFile:
        """Read a file; the signature is checked where the files of all owners are.

        Raises
        ------
        ValueError
            If it is no file of votes, or is damaged.
        """
        path = Path(path)
        if not path.is_file():
            folder = f" It is a folder: name its files, {path}/*.json." if path.is_dir() else ""
            raise FileNotFoundError(f"There is no file of votes at {path}.{folder}")
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} is larger than {MOST_BYTES >> 20} MiB, and no file of votes.")
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):  # whose words quote the file
            raise ValueError(
                f"{path} is no file of votes, or a part of one: it is not JSON. Make one with: "
                f"evenhand owner vote."
            ) from None
        try:
            return cls._of(values)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ValueError(
                f"{path} is no file of votes: {_values.said_by(error)} Make one with: evenhand "
                f"owner vote."
            ) from None

    @classmethod
    def _of(cls, values: Any) -> VoteFile:
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"it does not begin with the format {FORMAT!r}.")
        if values.get("version") != VERSION:
            raise ValueError(
                f"it is of version {values.get('version')!r}, and this program reads {VERSION}."
            )
        if sorted(values) != sorted(_KEYS):
            raise ValueError(f"its keys must be {', '.join(_KEYS)}.")
        classes = tuple(values["classes"])
        if not all(isinstance(name, str) for name in classes):
            raise TypeError("classes must be texts.")
        labels = values["answers"] == LABELS
        made = values["votes"]
        if not isinstance(made, list):
            raise TypeError("votes must be a list.")
        if len({np.shape(row) if isinstance(row, list) else None for row in made}) != 1:
            raise TypeError("votes must be whole numbers, as many for each teacher.")
        votes = np.array(made)
        if votes.dtype.kind != "i" or votes.ndim != (2 if labels else 3):
            raise TypeError("votes must be whole numbers, as many for each teacher.")
        if labels:
            votes = _of_codes(votes, len(classes), bool(values["may_abstain"]))
        public = values["public"]
        return cls(
            owner=values["owner"],
            parts=votes,
            classes=classes,
            public=PublicRows(n_rows=public["n_rows"], digests=dict(public["digests"])),
            unit=values["unit"],
            neighbors=values["neighbors"],
            answers=values["answers"],
            may_abstain=values["may_abstain"],
            key=_bytes(values["key"], 32),
            signature=_bytes(values["signature"], 64),
        )

    def _fields(self) -> dict[str, Any]:
        names = ("owner", "parts", "classes", "public", "unit", "neighbors", "answers")
        return {name: getattr(self, name) for name in (*names, "may_abstain", "key", "signature")}

    def _values(self) -> dict[str, Any]:
        """Return what stands in the file, without the signature."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "owner": self.owner,
            "unit": self.unit,
            "neighbors": self.neighbors,
            "answers": self.answers,
            "may_abstain": self.may_abstain,
            "classes": list(self.classes),
            "public": {"n_rows": self.public.n_rows, "digests": dict(self.public.digests)},
            "votes": (self._codes() if self.answers == LABELS else self.parts).tolist(),
            "key": _text(self.key),
        }

    def _codes(self) -> IntArray:
        """Return the class of each vote; -1 where it was withheld."""
        whole = self.parts.max(axis=2) == self.scale
        codes: IntArray = np.where(whole, self.parts.argmax(axis=2), _NO_VOTE).astype(np.int64)
        return codes


def of_owners(unit: str, moved: int) -> tuple[str, str]:
    """Return what no vote can show, in words for a claim.

    Parameters
    ----------
    unit : str
    moved : int
        Votes that one unit moves on a row.
    """
    whom = (
        f"one owner is protected with all of its records and all of its "
        f"{'votes' if moved > 1 else 'vote'}; a person with several owners counts as all of them"
        if unit == OWNER
        else f"each owner vouches that one {unit} reached one of its teachers only; one with "
        f"several owners counts as several"
    )
    return (
        "each owner vouches for its votes: nothing fitted on the records of several owners "
        "reached any of its models",
        whom,
    )


def parts_of_a_vote(answers: str, may_abstain: bool, n_classes: int) -> int:
    """Return into how many parts a vote may be divided."""
    if answers == PROBABILITIES:
        return PARTS_OF_A_CLASS * n_classes
    return n_classes if may_abstain else 1


def _of_labels(votes: Array, names: Sequence[str], may_abstain: bool) -> IntArray:
    """Return the parts of votes that are names of classes."""
    gone = np.asarray(pd.isna(votes))
    place = {name: code for code, name in enumerate(names)}
    codes = np.full(votes.shape, _NO_VOTE, dtype=np.int64)
    unknown = set()
    for at in np.argwhere(~gone):
        text = text_of(votes[tuple(at)])
        if text in place:
            codes[tuple(at)] = place[text]
        else:
            unknown.add(text)
    if unknown:
        raise ValueError(
            f"votes must be among the classes {', '.join(map(repr, names))}; there are also "
            f"{_values.listed(sorted(unknown))}."
        )
    return _of_codes(codes, len(names), may_abstain)


def _of_codes(codes: IntArray, n_classes: int, may_abstain: bool) -> IntArray:
    if not ((codes >= _NO_VOTE) & (codes < n_classes)).all():
        raise ValueError(f"votes must be codes from 0 to {n_classes - 1}, or -1 for none.")
    if not may_abstain and (codes == _NO_VOTE).any():
        raise ValueError(
            "some votes are withheld, and may_abstain is not set. Say beforehand that a teacher "
            "may leave rows out (--may-abstain): whether one did is private, that it may is not."
        )
    scale = n_classes if may_abstain else 1
    parts: IntArray = (codes[:, :, None] == np.arange(n_classes)).astype(np.int64) * scale
    parts[codes == _NO_VOTE] = 1
    return parts


def _of_probabilities(given: Array, clip: float) -> IntArray:
    """Return probabilities in whole parts, by largest remainders: each row has the same sum."""
    found = np.asarray(given, dtype=np.float64)
    n_classes = found.shape[2]
    if not np.isfinite(found).all() or (found < 0).any():
        raise ValueError("probabilities must be finite and at least 0.")
    if not 0 <= clip <= 1 / n_classes:
        raise ValueError(f"clip must lie in [0, 1 / {n_classes}], got {clip!r}.")
    total = found.sum(axis=2, keepdims=True)
    if not (total > 0).all():
        raise ValueError("probabilities of a row must not all be 0.")
    found = clip + (1 - n_classes * clip) * found / total
    scale = PARTS_OF_A_CLASS * n_classes
    exact = found * scale
    parts: IntArray = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - parts), axis=2, kind="stable")
    rank = np.argsort(order, axis=2, kind="stable")
    parts += rank < scale - parts.sum(axis=2, keepdims=True)
    return parts


def canonical(values: Mapping[str, Any]) -> bytes:
    """Return the bytes of plain values that are signed: the same for the same values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: Any, length: int) -> bytes:
    if not isinstance(text, str):
        raise TypeError("key and signature must be texts.")
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("key and signature must be base64.") from None
    if raw and len(raw) != length:
        raise ValueError(f"key and signature must have 32 and 64 bytes, got {len(raw)}.")
    return raw

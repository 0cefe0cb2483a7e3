"""Votes that were cast elsewhere: by other machines, other owners of data, other software."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._arrow import require_arrow
from evenhand._display import Shown
from evenhand.teachers.ensemble import FittedByRecords, PrivateRecords
from evenhand.typing import Array, ArrayLike, IntArray

FORMATS: Final[tuple[str, ...]] = (".npy", ".npz", ".csv", ".parquet")


@dataclass(frozen=True, kw_only=True)
class CastVotes:
    """Votes that are there already. Prints none of them: they are private."""

    votes: IntArray = field(repr=False)

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return len(self.votes)

    def vote(self, X: ArrayLike) -> IntArray:
        """Return the votes (n_teachers, n_queries), if there is a column for each row of X."""
        n_queries = len(np.asarray(X))
        if n_queries != self.votes.shape[1]:
            raise ValueError(
                f"The votes answer {self.votes.shape[1]} queries, but X has {n_queries} rows. "
                "Give one column of votes for each public row, in the same order, and after these "
                "for each calibration row, where a gate asks about them."
            )
        return self.votes.copy()


class OutsideVotes(FittedByRecords, Shown):
    """Teachers that have voted already; only their votes are here.

    Parameters
    ----------
    source : array of shape (n_teachers, n_queries), DataFrame, or path
        One row for each teacher, one column for each public row, in its order; after these one for
        each calibration row, where FairPATE's gate asks about them. Whole numbers are
        class codes; with ``classes`` they are class names. A file is ``.npy``, ``.npz`` (one
        array), ``.csv`` (a header line, then a line for each teacher) or ``.parquet``. Nothing in
        a file is executed.
    classes : sequence or None
        Class names in the order of their codes. None: the votes are codes already.

    Privacy
    -------
    The caller vouches that one record (or unit) reached one teacher only, and that nothing fitted
    on all private data reached any of them. Votes cannot show it.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.teachers import by_position
    >>> votes = OutsideVotes([["no", "yes"], ["no", "no"], ["yes", "no"]], classes=["no", "yes"])
    >>> deal = by_position(30, 3, random_state=0)
    >>> cast = votes.fit(np.zeros((30, 1)), np.zeros(30, int), deal, 2, np.random.default_rng(0))
    >>> cast.vote(np.zeros((2, 1))).tolist()
    [[0, 1], [0, 0], [1, 0]]
    """

    reads_rows = False
    vouched_for = (
        "the votes were cast elsewhere, and the claim rests on whoever cast them: each record must "
        "have reached one teacher only, and nothing fitted on all private rows any of them"
    )
    """What no vote can show; an estimator writes it into its guarantee as a warning."""

    def __init__(self, source: Any, *, classes: Sequence[Any] | None = None) -> None:
        self.source = source
        self.classes = classes

    @property
    def n_teachers(self) -> int:
        """Number of teachers that cast votes: rows of the source."""
        return len(_read(self.source))

    def _fit(self, given: PrivateRecords) -> CastVotes:
        """Read and check the votes. Rows, labels and ``rng`` are not read."""
        votes = self._codes(_read(self.source), _checks.at_least("n_classes", given.n_classes, 2))
        n_teachers = given.partition.n_teachers
        if len(votes) != n_teachers:
            raise ValueError(
                f"source holds the votes of {len(votes)} teachers, but n_teachers is "
                f"{n_teachers}. Set n_teachers={len(votes)}, or transpose the votes: "
                "one row for each teacher."
            )
        if given.progress is not None:
            given.progress(len(votes), len(votes))
        return CastVotes(votes=votes)

    def _codes(self, votes: Array, n_classes: int) -> IntArray:
        if votes.ndim != 2 or not votes.size:
            raise ValueError(
                f"source must have shape (n_teachers, n_queries), got shape {votes.shape}. "
                "Give one row for each teacher and one column for each public row."
            )
        missing = np.argwhere(np.asarray(pd.isna(votes)))
        if len(missing):
            teacher, query = missing[0]
            raise ValueError(
                f"source must hold a vote of every teacher on every query, and one of teacher "
                f"{teacher + 1} on query {query + 1} (counted from 1) is missing. Ask that teacher "
                f"again, or leave it out altogether."
            )
        if self.classes is not None:
            return self._named(votes, n_classes)
        try:
            numbers = votes.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"source must hold class codes, got {_values.quoted(_plain(votes.flat[0]))}. "
                "Name the classes in the order of their codes: OutsideVotes(source, classes=[...])."
            ) from None
        wrong = np.argwhere((numbers < 0) | (numbers >= n_classes) | (numbers != numbers.round()))
        if len(wrong):
            teacher, query = wrong[0]
            raise ValueError(
                f"source must hold class codes 0 to {n_classes - 1}, "
                f"got {_values.quoted(_plain(votes[teacher, query]))} from teacher {teacher + 1} "
                f"on query {query + 1} (counted from 1)."
            )
        return numbers.astype(np.int64)

    def _named(self, votes: Array, n_classes: int) -> IntArray:
        names = list(self.classes or ())
        if len(names) != n_classes or len(set(names)) != n_classes:
            raise ValueError(
                f"classes must name {n_classes} different classes in the order of their codes, "
                f"got {names!r}."
            )
        found = pd.Index(names).get_indexer(votes.ravel())
        codes = np.asarray(found, dtype=np.int64).reshape(votes.shape)
        unknown = np.argwhere(codes < 0)
        if len(unknown):
            teacher, query = unknown[0]
            name = _plain(votes[teacher, query])
            raise ValueError(
                f"source must hold the classes {', '.join(map(repr, names))}, got "
                f"{_values.quoted(name)} from teacher {teacher + 1} on query {query + 1} (counted "
                f"from 1).{_values.if_shown(_checks.did_you_mean(name, names))}"
            )
        return codes


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python value that a reader knows."""
    return value.item() if isinstance(value, np.generic) else value


def _csv(path: Path) -> Array:
    try:
        return pd.read_csv(path).to_numpy()
    except ValueError as error:  # pandas' ParserError is one, and says which line is too long
        reason = str(error).strip().splitlines()[-1]
        raise ValueError(f"{path} is not a table of votes: {reason}") from None


def _read(source: Any) -> Array:
    """Votes as a 2-D array of whatever they are written in."""
    if isinstance(source, pd.DataFrame):
        return source.to_numpy()
    if not isinstance(source, str | Path):
        return _checks.rectangle("source", source)
    path = Path(source)
    _checks.one_of("The ending of a file of votes", path.suffix.lower(), FORMATS)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file of votes at {path}.")
    match path.suffix.lower():
        case ".csv":
            return _csv(path)
        case ".parquet":
            require_arrow()
            return pd.read_parquet(path).to_numpy()
    try:
        held = np.load(path, allow_pickle=False)
        if isinstance(held, np.ndarray):
            return held
        with held:
            if len(held.files) == 1:
                return np.asarray(held[held.files[0]])
    except ValueError as error:
        raise ValueError(
            f"{path} is not a plain array of votes: {error} Save numbers or fixed-width strings "
            "with numpy.save; pickled objects are not read, because reading them runs code."
        ) from error
    raise ValueError(
        f"{path} must hold one array, got {len(held.files)}: {', '.join(held.files)}. "
        "Save the votes alone."
    )

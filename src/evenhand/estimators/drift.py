"""Whether public rows look like the private ones: noisy counts of columns, within the budget."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values, _words
from evenhand._stored import stored
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, TypedTable
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.privacy import Ledger
from evenhand.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from evenhand.estimators.inputs import FitInputs

PURPOSE: Final = "noisy counts of the private rows, to compare with the public ones"
VOTES: Final = "answers about the public rows"
OF_DRIFT: Final = "Public rows beside private ones: "
"""How a sentence about them begins."""

GROUP: Final = "the group"
MOST_CATEGORIES: Final = 32
"""Categories of a column that are counted apart: the most frequent ones of the public rows."""

DRAWS: Final = 4000
"""Pairs of tables that are drawn alike, by which it is told what is beyond chance and noise."""


class DriftWarning(UserWarning):
    """The public rows do not look like the private ones."""


@stored
@dataclass(frozen=True, kw_only=True)
class DriftCheck:
    """Compare the public rows with the private ones, column by column, before teachers are asked.

    The private rows are counted in each column, and by group where their groups are given to
    ``fit``; the counts are released with noise, and the shares that they give are compared with
    those of the public rows. Cuts and categories come from the public rows, or a schema, alone.

    Parameters
    ----------
    share : float, default 0.05
        Share of the budget (of ``mu_squared``) that the counts cost, in (0, 1).
    n_bins : int, default 8
        Parts of about as many public rows into which a numeric column is cut. At least 2.
    level : float, default 0.05
        Chance that any column at all is said to differ where private and public rows come from one
        distribution, in (0, 1).

    Privacy
    -------
    Neighbors : those of the fit: replace a record, or add or remove a unit, of which the first row
        is counted.
    Sensitivity : a record is in one cell of each of m columns: ``sqrt(m)``, and ``sqrt(2 m)`` for
        replacing it.
    Cost : ``share`` of the budget, charged before the noise is drawn.

    Notes
    -----
    The distance of a column is the total variation of the two distributions: half the sum of the
    differences of shares, in [0, 1], best 0. Its limit is what rows that are drawn alike, in these
    numbers and with this noise, stay below but with probability ``level / m``, by simulation.
    Columns are looked at one by one: what differs only in how they go together, or in the labels,
    is not seen.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Budget, PATEClassifier
    >>> from evenhand.estimators.drift import DriftCheck, DriftWarning
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(4000, 2)), rng.normal([1.0, 0.0], size=(1000, 2))
    >>> model = PATEClassifier(
    ...     Budget(epsilon=4.0, delta=1e-5), check_drift=DriftCheck(share=0.1), random_state=0
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DriftWarning)
    ...     model = model.fit(X, X[:, 0] + X[:, 1] > 0, X_public=X_public)
    >>> [(column.name, column.differs) for column in model.drift_]
    [('x0', True), ('x1', False)]
    """

    share: float = _words.DRIFT_SHARE
    n_bins: int = 8
    level: float = 0.05

    def __post_init__(self) -> None:
        _checks.open_unit("share", self.share)
        _checks.at_least("n_bins", self.n_bins, 2)
        _checks.open_unit("level", self.level)


@dataclass(frozen=True, kw_only=True)
class ColumnDrift:
    """How far apart the public and the private rows are in one column, by noisy counts.

    Parameters
    ----------
    name : str
    distance : float
        Total variation of the noisy table from the public one, in [0, 1].
    limit : float
        What chance and noise alone stay below.
    most : str
        The part of the column in which they differ most.
    private, public : float
        Shares of that part; the private one is noisy.
    """

    name: str
    distance: float
    limit: float
    most: str
    private: float
    public: float

    @property
    def differs(self) -> bool:
        """Whether the distance is beyond chance and noise."""
        return self.distance > self.limit

    @property
    def said(self) -> str:
        """The distance, in words."""
        return (
            f"{self.name} (distance {self.distance:.3f}, by chance and noise below "
            f"{self.limit:.3f}; {self.most}: {self.private:.3f} of the private rows, "
            f"{self.public:.3f} of the public ones)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ColumnDrift:
        """Read what ``to_dict`` wrote."""
        return cls(
            name=str(values["name"]),
            distance=float(values["distance"]),
            limit=float(values["limit"]),
            most=str(values["most"]),
            private=float(values["private"]),
            public=float(values["public"]),
        )


def as_drift_check(check_drift: Any) -> DriftCheck | None:
    """Return what ``check_drift=`` stands for; None where nothing is to be compared.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(check_drift, DriftCheck):
        return check_drift
    if isinstance(check_drift, bool):
        return DriftCheck() if check_drift else None
    raise TypeError(
        f"check_drift must be True, False or DriftCheck(...), got {type(check_drift).__name__}."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """The parts into which one column is cut, by public rows alone.

    Parameters
    ----------
    name : str
    words : tuple of str
        One for each part; the last is for what is missing, or no category of the others.
    edges : ndarray or None
        Of a numeric column, ascending; None for categories.
    categories : tuple of str
    """

    name: str
    words: tuple[str, ...]
    edges: FloatArray | None = None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, column: Column, kind: str, known: tuple[str, ...], n_bins: int) -> Parts:
        """Cut a column of the public rows."""
        if kind == "categorical":
            often = np.bincount(column.codes[column.codes >= 0], minlength=len(column.texts))
            counted = dict(zip(column.texts, often.tolist(), strict=True))
            kept = sorted(known, key=lambda text: -counted.get(text, 0))[:MOST_CATEGORIES]
            return cls(
                name=column.name,
                words=(*map(repr, kept), "any other value, or none"),
                categories=tuple(kept),
            )
        values = column.numbers[~np.isnan(column.numbers)]
        edges = _edges(values, n_bins)
        words = (
            ["any value"]
            if not len(edges)
            else [
                f"below {edges[0]:g}",
                *(f"{a:g} to below {b:g}" for a, b in itertools.pairwise(edges)),
                f"{edges[-1]:g} or more",
            ]
        )
        return cls(name=column.name, words=(*words, "no value"), edges=edges)

    def codes(self, column: Column) -> IntArray:
        """Return the part of each row, which follows from that row alone."""
        last = len(self.words) - 1
        if self.edges is None:
            places = column.places(self.categories, as_numbers=True)
            return np.where(places < 0, last, places)
        numbers = column.numbers
        found = np.searchsorted(self.edges, numbers, side="right")
        return np.where(np.isnan(numbers), last, found).astype(np.int64)


def _edges(values: FloatArray, n_bins: int) -> FloatArray:
    """Return where to cut numbers into parts of about one size; a frequent value stays alone."""
    if not len(values):
        return np.zeros(0)
    levels = np.arange(1, n_bins) / n_bins
    at = np.quantile(values, levels, method="lower")
    frequent = {value for value, n in zip(*np.unique(at, return_counts=True), strict=True) if n > 1}
    distinct = np.unique(values)
    above = [
        distinct[i] for v in frequent if (i := np.searchsorted(distinct, v) + 1) < len(distinct)
    ]
    edges = np.unique(np.concatenate([at, above]))
    inner: FloatArray = edges[edges > distinct[0]]
    return inner


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsToCompare:
    """Private and public rows, read and checked for a comparison; nothing is released yet.

    Parameters
    ----------
    check : DriftCheck
    parts : tuple of Parts
    public : tuple of ndarray
        Counts of the public rows, by part.
    private : ndarray of int64, shape (n_cells,)
        Counts of the private rows, all columns behind each other. Private.
    n_private : int or None
        Private rows; None where their number is private.
    """

    check: DriftCheck
    parts: tuple[Parts, ...]
    public: tuple[IntArray, ...]
    private: IntArray
    n_private: int | None

    @classmethod
    def of(cls, check: DriftCheck, data: FitInputs, schema: Schema | None) -> RowsToCompare:
        """Cut the columns by the public rows, and count the private ones.

        Raises
        ------
        ValueError
            Where there are no two tables to compare, or their columns cannot be read.
        """
        _require_two_tables(data)
        public = TypedTable.of(data.X_public, "public table")
        known = {} if schema is None else {c.name: c for c in schema.columns}
        if strange := [name for name in public if name not in known]:
            known |= {c.name: c for c in Schema.of_public(public.select(strange)).columns}
        parts = [
            Parts.of(public[name], known[name].kind, known[name].categories, check.n_bins)
            for name in public
        ]
        codes = [part.codes(public[part.name]) for part in parts]
        features = tuple(parts)
        groups = data.groups_public if data.sensitive_private is not None else None
        if groups is not None:
            words = (*map(repr, groups.names), "any other group")
            parts.append(Parts(name=GROUP, words=words, categories=groups.names))
            codes.append(groups.codes)
        counter = _counter(parts)
        private = np.zeros(sum(len(part.words) for part in parts), dtype=np.int64)
        for table in _private_tables(data):
            found = [part.codes(table[part.name]) for part in features]
            if groups is not None:
                found.append(_group_codes(data, groups))
            private += counter.total([(0 * column, column) for column in found])
        return cls(
            check=check,
            parts=tuple(parts),
            public=tuple(
                np.bincount(column, minlength=len(part.words))
                for column, part in zip(codes, parts, strict=True)
            ),
            private=private,
            n_private=None if data.by_unit else data.n_private,
        )

    def release(self, ledger: Ledger, rng: np.random.Generator) -> tuple[ColumnDrift, ...]:
        """Release the counts of the private rows, and compare them with those of the public ones.

        Parameters
        ----------
        ledger : Ledger
            All of it is spent.
        rng : Generator
            Draws tables that are alike; none of it is noise of a release.
        """
        counter = _counter(self.parts)
        plan = BudgetPlan(ledger=ledger, shares={PURPOSE: 1.0})
        released = plan.release(counter, self.private, PURPOSE)
        tables = [table[0] for table in counter.apart(released.values)]
        n = self.n_private
        about = n or max(1, round(float(np.median([table.sum() for table in tables]))))
        found = [
            _compared(part, public, noisy, n, about, released.sigma, self.check, len(tables), rng)
            for part, public, noisy in zip(self.parts, self.public, tables, strict=True)
        ]
        drift = tuple(sorted(found, key=lambda one: one.limit - one.distance))
        if words := differing(drift):
            warnings.warn(f"{words}. {_WAY_OUT}", DriftWarning, stacklevel=5)
        return drift


_WAY_OUT: Final = (
    "Take public rows of the same people, or none: rows are then drawn from noisy counts of the "
    "private ones (public='synthetic')."
)


def differing(drift: tuple[ColumnDrift, ...]) -> str:
    """Say in which columns the rows differ, for a claim; empty where they do in none."""
    apart = [column.name for column in drift if column.differs]
    if not apart:
        return ""
    return (
        f"the public rows differ from the private ones in {', '.join(apart)}: what is kept on them "
        f"may not hold for people like the private ones"
    )


def sentences(check: DriftCheck, drift: tuple[ColumnDrift, ...]) -> tuple[str, ...]:
    """Say what was paid for, and what was found."""
    head = (
        f"{OF_DRIFT}{check.share:.0%} of the budget paid for noisy counts of {len(drift)} columns "
        f"of the private rows. Where both are drawn alike, a column is said to differ with "
        f"probability {check.level:g} at most, noise included."
    )
    if apart := [column for column in drift if column.differs]:
        found = "; ".join(column.said for column in apart)
        return (head, f"{OF_DRIFT}they differ in {found}. {_WAY_OUT}")
    widest = max(drift, key=lambda column: column.limit)
    return (
        head,
        f"{OF_DRIFT}no column differs beyond chance and noise, which hide distances up to "
        f"{widest.limit:.3f} ({widest.name}).",
    )


def _compared(
    part: Parts,
    public: IntArray,
    noisy: FloatArray,
    n: int | None,
    about: int,
    sigma: float,
    check: DriftCheck,
    n_columns: int,
    rng: np.random.Generator,
) -> ColumnDrift:
    """Compare one column; ``n`` is the number of private rows where it is public."""
    m, level = int(public.sum()), check.level / n_columns
    together = public + np.maximum(noisy, 0.0)
    alike = together / together.sum()
    draws = max(DRAWS, math.ceil(4 / level))
    drawn = rng.multinomial(about, alike, draws) + sigma * rng.normal(size=(draws, len(alike)))
    by_chance = _distances(_shares(drawn, n), rng.multinomial(m, alike, draws) / m)
    shares, known = _shares(noisy[None], n)[0], public / m
    i = int(np.abs(shares - known).argmax())
    return ColumnDrift(
        name=part.name,
        distance=float(_distances(shares, known)),
        limit=float(np.quantile(by_chance, 1.0 - level, method="higher")),
        most=part.words[i],
        private=float(np.clip(shares[i], 0.0, 1.0)),
        public=float(known[i]),
    )


def _shares(counts: FloatArray, n: int | None) -> FloatArray:
    """Return shares of noisy counts: of the number of rows, or of their noisy sum."""
    total = counts.sum(axis=1, keepdims=True) if n is None else n
    shares: FloatArray = counts / np.maximum(total, 1.0)
    return shares


def _distances(one: FloatArray, other: FloatArray) -> FloatArray:
    distance: FloatArray = np.minimum(np.abs(one - other).sum(axis=-1) / 2, 1.0)
    return distance


def _counter(parts: tuple[Parts, ...] | list[Parts]) -> TableCounts:
    return TableCounts(shapes=tuple((1, len(part.words)) for part in parts))


def _private_tables(data: FitInputs) -> Iterator[TypedTable]:
    """Give the private rows, of each unit the first: at once, or in batches where they stream."""
    if (stream := data.stream) is not None:
        for _, batch in stream.rows.batches(stream.columns):
            yield TypedTable.of(batch, "private table", keeps=False)
        return
    rows = TypedTable.of(data.X_private, "private table", keeps=False)
    if data.units is not None:
        rows = TypedTable(rows.frame.iloc[_first_rows(data)], rows.where, keeps=False)
    yield rows


def _first_rows(data: FitInputs) -> IntArray:
    """Return the first row of each unit: which one follows from the order of its own rows."""
    return np.flatnonzero(~pd.Series(data.units).duplicated().to_numpy())


def _group_codes(data: FitInputs, known: GroupCodes) -> IntArray:
    """Return the groups of the private rows by public names; another group is the last part."""
    own = encode_groups(data.sensitive_private)
    place = {name: i for i, name in enumerate(known.names)}
    codes = np.array([place.get(name, len(place)) for name in own.names])[own.codes]
    return codes if data.units is None else codes[_first_rows(data)]


def _require_two_tables(data: FitInputs) -> None:
    """Refuse rows that are one table, or none: before anything is charged."""
    why = ""
    if data.set_aside:
        why = "the public rows are set aside from the private table itself, so they cannot differ"
    elif data.asks_drawn_rows:
        why = "the public rows are drawn from noisy counts of the private ones"
    elif data.cast is not None:
        why = "the private rows stay with their owners"
    elif data.stream is not None and data.stream.unit is not None:
        why = "of rows that stream it is not known which of a unit comes first"
    elif not hasattr(data.X_public, "columns") and np.ndim(data.X_public) != 2:
        why = "pictures have no columns to count; pass their features"
    if why:
        raise ValueError(
            f"check_drift (--check-drift) compares public rows with private ones, and here {why}. "
            f"Leave it out{_values.if_shown('')}."
        )

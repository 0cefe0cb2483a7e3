"""Private and public rows, counted column by column, and compared by noisy counts."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, TypedTable
from evenhand.estimators.drift import (
    PURPOSE,
    WAY_OUT,
    ColumnDrift,
    DriftCheck,
    DriftWarning,
    differing,
)
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.privacy import Ledger
from evenhand.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from evenhand.estimators.inputs import FitInputs

GROUP: Final = "the group"
MOST_CATEGORIES: Final = 32
"""Categories of a column that are counted apart: the most frequent ones of the public rows."""

DRAWS: Final = 4000
"""Pairs of tables that are drawn alike, by which it is told what is beyond chance and noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """The parts into which one column is cut, by public rows alone."""

    name: str
    words: tuple[str, ...]
    """One for each part; the last is for what is missing, or no category of the others."""
    edges: FloatArray | None = None
    """Of a numeric column, ascending; None for categories."""
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
    """Private and public rows, read and checked for a comparison; nothing is released yet."""

    check: DriftCheck
    parts: tuple[Parts, ...]
    public: tuple[IntArray, ...]
    """Counts of the public rows, by part."""
    private: IntArray
    """Counts of the private rows, all columns behind each other. Private. Shape (n_cells,)."""
    n_private: int | None
    """Private rows; None where their number is private."""

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
            n_private=data.n_private if data.n_is_public else None,
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
            warnings.warn(f"{words}. {WAY_OUT}", DriftWarning, stacklevel=5)
        return drift


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

"""A schema bought from the budget: categories and bounds that stand out of noisy counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy.special import ndtri

from evenhand import _checks
from evenhand._checks import did_you_mean
from evenhand.datasets import ColumnSchema, Schema
from evenhand.datasets.columns import Column, kind_of, natural_order, text_of, to_numbers, to_texts
from evenhand.generators.codec import NO_MISSING
from evenhand.generators.plan import Purse
from evenhand.generators.records import Records
from evenhand.typing import FloatArray, IntArray

PURPOSE: Final = "categories and bounds of the columns"
DELTA_SHARE: Final = 0.1
"""Share of delta that is set aside for categories; the Gaussian releases speak at the rest."""

_POWERS: Final = np.arange(-20, 51)
EDGES: Final[FloatArray] = np.concatenate([-(2.0 ** _POWERS[::-1]), [0.0], 2.0**_POWERS])
"""The public grid of bounds: powers of two, both signs, and zero."""

_MISTAKE: Final = 0.01  # chance that a cell of the grid without records widens the bounds


@dataclass(frozen=True, kw_only=True)
class ColumnHistograms:
    """Counts of each column's values: of those that occur, or over the grid of bounds.

    Parameters
    ----------
    n_columns : int
    per_unit : int
        Records that one unit may have.

    Privacy
    -------
    A record adds 1 to one count per column: L2 ``r sqrt(m)``, and ``r sqrt(2 m)`` for "replace
    one". Which categories occur at all is private: see ``threshold``.
    """

    n_columns: int
    per_unit: int = 1
    unit = 1.0

    def l2_sensitivity(self, neighbors: str) -> float:
        """Largest L2 distance between the counts of neighbors."""
        moved = {"add or remove one": 1, "replace one": 2}[neighbors]
        return self.per_unit * math.sqrt(self.n_columns * moved)


def threshold(sigma: float, delta: float, n_columns: int, per_unit: int) -> float:
    """Return the noisy count from which a category may be named.

    Privacy
    -------
    A category that only one unit has would give it away. Such a category has at most r records,
    and there are at most ``r m`` of them, over m columns. It is named if ``r + N >= threshold``;
    that has a chance of at most ``delta / (r m)`` each, hence of ``delta`` in all, and where none
    is named the rest is the Gaussian release of the categories that neighbors share. So the whole
    is private at (epsilon, delta' + delta) if the Gaussian part is at (epsilon, delta').
    (Korolova et al. 2009; Wilson et al. 2020; the tail of discrete Gaussian noise is at most that
    of continuous noise from one step before, Canonne, Kamath and Steinke 2020, Proposition 25.)
    """
    quantile = -float(ndtri(delta / (n_columns * per_unit)))
    return per_unit + 1.0 + sigma * quantile


def buy_schema(
    records: Records, declared: Schema | None, purse: Purse, delta: float
) -> tuple[Schema, tuple[str, ...]]:
    """Return a schema for all columns: as declared where it is complete, else bought.

    Parameters
    ----------
    records : Records
    declared : Schema or None
    purse : Purse
        With a share for ``PURPOSE`` if anything is to be bought, see ``to_buy``.
    delta : float
        For categories.

    Returns
    -------
    schema : Schema
    notes : tuple of str
        What was bought, and what fell under the noise.
    """
    frame = records.frame
    known = {} if declared is None else {c.name: c for c in declared.columns}
    wanted = to_buy(records, declared)
    columns: dict[str, ColumnSchema] = {
        name: known[name] for name in frame.columns if name not in wanted
    }
    notes: list[str] = []
    if wanted:
        counter = ColumnHistograms(n_columns=len(wanted), per_unit=records.per_unit)
        texts = {name: _texts(frame[name]) for name in wanted if _is_text(records, known, name)}
        counted = [texts[n][1] if n in texts else _grid_counts(frame[n]) for n in wanted]
        released = purse.release(counter, np.concatenate(counted), PURPOSE)
        parts = np.split(released.values, np.cumsum([len(c) for c in counted])[:-1])
        least = threshold(released.sigma, delta, len(wanted), records.per_unit)
        for name, noisy in zip(wanted, parts, strict=True):
            missing = not str(frame[name].dtype).startswith(NO_MISSING)
            if name in records.roles.conditions:
                missing = False
            if name in texts:
                named = [t for t, n in zip(texts[name][0], noisy, strict=True) if n >= least]
                if not named:
                    raise ValueError(
                        f"No category of column {name!r} stands out of the noise: none has about "
                        f"{least:.0f} records. Declare its categories in a schema, raise epsilon, "
                        f"or leave the column out."
                    )
                columns[name] = ColumnSchema(
                    name=name,
                    kind="categorical",
                    categories=natural_order([*named, *_other(records, name, missing)]),
                    missing=missing,
                )
            else:
                low, high = _bounds(name, noisy, released.sigma)
                columns[name] = ColumnSchema(
                    name=name, kind="numeric", bounds=(low, high), missing=missing
                )
        notes.append(
            f"categories or bounds of {len(wanted)} columns were bought from the budget; a "
            f"category below about {least:.0f} records was not named"
        )
    return Schema(columns=tuple(columns[name] for name in frame.columns)), tuple(notes)


def to_buy(records: Records, declared: Schema | None) -> tuple[str, ...]:
    """Return the columns for which the schema does not say enough."""
    if declared is not None:
        for name in declared.names:
            if name not in records.frame.columns and name != records.roles.unit:
                raise ValueError(
                    f"The schema names the column {name!r}, which the private table does not "
                    f"have.{did_you_mean(name, records.frame.columns)}"
                )
    known = {} if declared is None else {c.name: c for c in declared.columns}
    wanted = []
    for name in records.frame.columns:
        column = known.get(name)
        if name in records.roles.conditions and column is not None and column.kind == "numeric":
            raise ValueError(
                f"The column {name!r} is the label or sensitive, so the schema must list its "
                f"categories. For amounts make classes of them first."
            )
        if column is None or (column.kind == "numeric" and column.bounds is None):
            wanted.append(name)
    return tuple(wanted)


def without_unknown(frame: pd.DataFrame, schema: Schema, names: Sequence[str]) -> pd.DataFrame:
    """Return the table with values that were not named made missing, row by row.

    A row whose label or group was not named is left out: it belongs to no condition. Both look at
    the row alone.
    """
    made = {}
    keep = np.ones(len(frame), dtype=np.bool_)
    known = {column.name: column for column in schema.columns}
    for name in names:
        said = known[name]
        if said.kind == "numeric":
            continue
        codes, texts = to_texts(frame[name], "private table")
        place = np.array([*(text in said.categories for text in texts), True])
        named = place[codes]
        if OTHER in said.categories and not named.all():
            texts_only = frame[name].astype(object).where(named, OTHER)
            made[name] = texts_only.astype(frame[name].dtype)
        elif said.missing:
            made[name] = frame[name].where(named)
        else:
            keep &= named
    return frame.assign(**made)[keep]


OTHER: Final = "other"
"""The category of values that were not named, where a column holds text."""


def _is_text(records: Records, known: dict[str, ColumnSchema], name: str) -> bool:
    if name in records.roles.conditions:
        return True
    if name in known:
        return known[name].kind == "categorical"
    kind = kind_of(records.frame[name], "private table")
    if kind is None:
        raise ValueError(
            f"Column {name!r} of the private table has no value at all. Leave it out, or declare "
            f"it in the schema."
        )
    return kind == "categorical"


def _other(records: Records, name: str, missing: bool) -> tuple[str, ...]:
    """Return a place for what was not named: text columns get a category, conditions none."""
    dtype = str(records.frame[name].dtype)
    if name in records.roles.conditions or dtype.lower().startswith(("int", "uint", "bool")):
        return ()
    return () if dtype == "category" else (OTHER,)


def _texts(column: Column) -> tuple[tuple[str, ...], IntArray]:
    codes, texts = to_texts(column, "private table")
    counts = np.bincount(codes[codes >= 0], minlength=len(texts)).astype(np.int64)
    merged: dict[str, int] = {}
    for text, count in zip(texts, counts.tolist(), strict=True):
        merged[text_of(text)] = merged.get(text_of(text), 0) + count
    # In the order of the texts: the order of the rows must not show in what is released.
    ordered = natural_order(merged)
    return ordered, np.array([merged[text] for text in ordered], dtype=np.int64)


def _grid_counts(column: Column) -> IntArray:
    numbers = to_numbers(column, "private table")
    numbers = numbers[~np.isnan(numbers)]
    at = np.clip(np.searchsorted(EDGES, numbers, side="right") - 1, 0, len(EDGES) - 2)
    return np.bincount(at, minlength=len(EDGES) - 1).astype(np.int64)


def _bounds(name: str, noisy: FloatArray, sigma: float) -> tuple[float, float]:
    least = -sigma * float(ndtri(_MISTAKE / len(noisy)))
    seen = np.flatnonzero(noisy > least)
    if not seen.size:
        raise ValueError(
            f"No range of column {name!r} stands out of the noise: none holds about {least:.0f} "
            f"records. Declare its bounds in a schema, raise epsilon, or leave the column out."
        )
    _checks.at_least("cells seen", int(seen.size), 1)
    return float(EDGES[seen[0]]), float(EDGES[seen[-1] + 1])

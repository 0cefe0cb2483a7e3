"""Every column as shares over a few bars, synthetic beside real: computed first, drawn later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from evenhand._numerals import natural_order
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column
from evenhand.typing import FloatArray

N_BARS: Final = 24
MOST_CATEGORIES: Final = 12
REST, MISSING = "all others", "missing"


@dataclass(frozen=True, kw_only=True)
class ColumnView:
    """Shares of one column."""

    name: str
    numeric: bool
    at: tuple[float | str, ...]
    """Middle of each bar of a numeric column, as text if it is a date; or category."""
    synthetic: tuple[float, ...]
    """Share of each bar."""
    real: tuple[float, ...] | None
    """The same of real rows."""
    missing: tuple[float, float | None]
    """Share of missing values, synthetic and real."""

    @property
    def words(self) -> tuple[str, ...]:
        """The middle of each bar, or the category, as it is written."""
        return tuple(value if isinstance(value, str) else f"{value:,.6g}" for value in self.at)


def column_views(
    synthetic: pd.DataFrame, real: pd.DataFrame | None, schema: Schema
) -> tuple[ColumnView, ...]:
    """Return a view of every column, in the table's order."""
    known = {column.name: column for column in schema.columns}
    synthetic = schema.as_measured(synthetic)
    real = None if real is None else schema.as_measured(real)
    views = []
    for name in synthetic.columns:
        view = (_of_numbers if known[name].kind == "numeric" else _of_categories)(
            name, Column(synthetic[name]), None if real is None else Column(real[name])
        )
        if known[name].date_unit is not None:
            view = replace(view, at=tuple(known[name].said(round(float(x))) for x in view.at))
        views.append(view)
    return tuple(views)


def _of_numbers(name: str, synthetic: Column, real: Column | None) -> ColumnView:
    both = [column.numbers for column in (synthetic, real) if column is not None]
    known = np.concatenate([v[np.isfinite(v)] for v in both])
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1.0, N_BARS + 1)
    if high - low < N_BARS and np.array_equal(known, np.round(known)):
        edges = np.arange(low - 0.5, high + 1.0)  # whole numbers: a bar each
    shares = [_shares(v, edges) for v in both]
    return ColumnView(
        name=name,
        numeric=True,
        at=tuple(((edges[:-1] + edges[1:]) / 2).tolist()),
        synthetic=tuple(shares[0].tolist()),
        real=tuple(shares[1].tolist()) if real is not None else None,
        missing=_missing(synthetic, real),
    )


def _of_categories(name: str, synthetic: Column, real: Column | None) -> ColumnView:
    counts: list[dict[str, float]] = []
    for column in (synthetic, real):
        if column is not None:
            codes = column.codes[column.codes >= 0]
            held = np.bincount(codes, minlength=len(column.texts)) / max(len(codes), 1)
            counts.append(dict(zip(column.texts, held.tolist(), strict=True)))
    common = sorted({k for c in counts for k in c}, key=lambda k: -max(c.get(k, 0) for c in counts))
    shown = list(natural_order(common[:MOST_CATEGORIES]))
    rest = common[MOST_CATEGORIES:]
    shares = [[float(c.get(k, 0.0)) for k in shown] for c in counts]
    if rest:
        for share, c in zip(shares, counts, strict=True):
            share.append(float(sum(c.get(k, 0.0) for k in rest)))
        shown.append(REST)
    return ColumnView(
        name=name,
        numeric=False,
        at=tuple(shown),
        synthetic=tuple(shares[0]),
        real=tuple(shares[1]) if real is not None else None,
        missing=_missing(synthetic, real),
    )


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    counts = np.histogram(values[np.isfinite(values)], edges)[0]
    shares: FloatArray = counts / max(counts.sum(), 1)
    return shares


def _missing(synthetic: Column, real: Column | None) -> tuple[float, float | None]:
    return float(synthetic.missing.mean()), None if real is None else float(real.missing.mean())

"""How near a synthetic table is to a real one, column by column and pair by pair.

The definitions are those of SDMetrics (KSComplement, TVComplement, CorrelationSimilarity,
ContingencySimilarity; all in [0, 1], 1 is best), written with NumPy and SciPy: that package needs
an older pandas. ``reproductions/fidelity_beside_sdmetrics.py`` compares all scores with its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from evenhand.datasets import Schema
from evenhand.datasets.columns import Column
from evenhand.typing import IntArray

N_BINS: Final = 10
"""Bins of equal width of a number beside a category, as in SDMetrics."""

MISSING: Final = "missing"


@dataclass(frozen=True, kw_only=True)
class ColumnFidelity:
    """One column of both tables."""

    name: str
    kind: str
    """``"numeric"`` or "categorical"."""
    score: float
    """One minus the Kolmogorov-Smirnov distance (numeric), or one minus the total variation
    distance (categorical), of the values that are there. NaN if a table has none.
    """
    missing_real: float
    missing_synthetic: float
    """``missing_real`` and ``missing_synthetic``: share of missing values."""


@dataclass(frozen=True, kw_only=True)
class PairFidelity:
    """Two columns of both tables."""

    first: str
    second: str
    score: float
    """Numbers: one minus half the difference of Pearson correlations. Else: one minus the total
    variation distance of the joint frequencies, numbers in 10 bins of equal width over the real
    values. NaN where a correlation does not exist.
    """


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """All columns and all pairs."""

    columns: tuple[ColumnFidelity, ...]
    pairs: tuple[PairFidelity, ...]

    @property
    def column_score(self) -> float:
        """Mean over the columns, without NaN; NaN where there is none."""
        return _mean([column.score for column in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with both scores; NaN stays NaN."""
        scores = {"column_score": self.column_score, "pair_score": self.pair_score}
        return asdict(self) | scores

    @property
    def pair_score(self) -> float:
        """Mean over the pairs, without NaN; NaN for a single column."""
        return _mean([pair.score for pair in self.pairs])


def fidelity(
    real: pd.DataFrame, synthetic: pd.DataFrame, *, schema: Schema | None = None
) -> Fidelity:
    """Compare two tables of the same columns.

    Parameters
    ----------
    real, synthetic : DataFrame
    schema : Schema, optional
        Which columns are categorical; else text, booleans and categories are.

    Examples
    --------
    >>> real = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "z": ["a", "a", "b", "b"]})
    >>> found = fidelity(real, real.assign(z=["a", "b", "b", "b"]))
    >>> [(column.name, column.score) for column in found.columns], found.pairs[0].score
    ([('x', 1.0), ('z', 0.75)], 0.75)
    """
    absent = [name for name in real.columns if name not in synthetic.columns]
    if absent:
        raise ValueError(
            f"The synthetic table has no column {absent[0]!r}, which the real one has."
        )
    if not len(real) or not len(synthetic):
        raise ValueError("Both tables need rows to be compared.")
    known = Schema.of_public(real, max_categories=len(real) + 1) if schema is None else schema
    kinds = {c.name: c.kind for c in known.columns if c.name in real.columns}
    both = {name: (Column(real[name]), Column(synthetic[name])) for name in kinds}
    columns = []
    for name, (a, b) in both.items():
        score = _ks(a, b) if kinds[name] == "numeric" else _tv(*_shared_codes(a, b, drop=True))
        columns.append(
            ColumnFidelity(
                name=name,
                kind=kinds[name],
                score=score,
                missing_real=float(a.missing.mean()),
                missing_synthetic=float(b.missing.mean()),
            )
        )
    cut = {
        name: _binned(a, b) if kinds[name] == "numeric" else _shared_codes(a, b, drop=False)
        for name, (a, b) in both.items()
    }
    pairs = []
    for first, second in combinations(both, 2):
        if kinds[first] == kinds[second] == "numeric":
            score = 1.0 - 0.5 * abs(
                _correlation(both[first][0], both[second][0])
                - _correlation(both[first][1], both[second][1])
            )
        else:
            score = _tv(*_joined(cut[first], cut[second]))
        pairs.append(PairFidelity(first=first, second=second, score=score))
    return Fidelity(columns=tuple(columns), pairs=tuple(pairs))


def _mean(scores: Sequence[float]) -> float:
    return float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")


def _ks(a: Column, b: Column) -> float:
    x, y = (column.numbers[~column.missing] for column in (a, b))
    if not len(x) or not len(y):
        return float("nan")
    with np.errstate(divide="ignore"):  # its p-value, which one row does not give
        return 1.0 - float(ks_2samp(x, y, method="asymp").statistic)


def _tv(a: IntArray, b: IntArray) -> float:
    if not len(a) or not len(b):
        return float("nan")
    n = int(max(a.max(), b.max())) + 1
    p, q = (np.bincount(codes, minlength=n) / len(codes) for codes in (a, b))
    return 1.0 - 0.5 * float(np.abs(p - q).sum())


def _shared_codes(a: Column, b: Column, *, drop: bool) -> tuple[IntArray, IntArray]:
    """Codes of both columns by the same texts; a missing value is a category, or dropped."""
    texts = tuple(dict.fromkeys((*a.texts, *b.texts)))
    x, y = (column.places(texts) for column in (a, b))
    if drop:
        return x[x >= 0], y[y >= 0]
    return np.where(x < 0, len(texts), x), np.where(y < 0, len(texts), y)


def _binned(a: Column, b: Column) -> tuple[IntArray, IntArray]:
    x, y = a.numbers, b.numbers
    known = x[np.isfinite(x)]
    edges = np.linspace(known.min(), known.max(), N_BINS + 1)[1:-1] if known.size else np.zeros(0)
    codes = [np.where(np.isnan(v), N_BINS, np.searchsorted(edges, v, "right")) for v in (x, y)]
    return codes[0].astype(np.int64), codes[1].astype(np.int64)


def _joined(
    x: tuple[IntArray, IntArray], y: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Codes of two columns together, alike in both tables and without gaps."""
    stride = int(max(y[0].max(), y[1].max())) + 1
    both = np.concatenate([x[0] * stride + y[0], x[1] * stride + y[1]])
    dense = np.unique(both, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return dense[: len(x[0])], dense[len(x[0]) :]


def _correlation(x: Column, y: Column) -> float:
    both = np.isfinite(x.numbers) & np.isfinite(y.numbers)
    a, b = x.numbers[both], y.numbers[both]
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def worst_pairs(found: Fidelity) -> Sequence[PairFidelity]:
    """Return the ten pairs with the lowest scores, worst first."""
    known = [pair for pair in found.pairs if np.isfinite(pair.score)]
    return sorted(known, key=lambda pair: pair.score)[:10]

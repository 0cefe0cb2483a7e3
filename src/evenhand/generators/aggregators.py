"""What is added up over records or teachers, each sum with the sensitivity that it declares.

An aggregator bounds what one record (or one teacher) adds, adds it up in whole numbers of a small
unit, and says how far the sum of two neighbors can be apart. Its sum leaves through a
:class:`~evenhand.privacy.NoisySum` alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand.typing import FloatArray, IntArray

UNIT: Final = 2.0**-20
"""Real numbers are counted in this unit, after rounding towards zero."""

GRID: Final = 2.0**-14
"""Those of which products are added up are multiples of this."""

DIAGONAL, BESIDE = 985, 1393  # whole numbers; the second over the first is just below sqrt(2)
_AT_ONCE: Final = 2**18  # numbers of right vectors: what is made of them stays in a cache
_NOT_FINITE: Final = "A contribution that is not finite has no bound. Look for NaN or inf."
_EXACT: Final = 2**20  # rows whose products sum below 2**53, where doubles are exact


class Aggregator(Protocol):
    """A bounded sum.

    Whoever implements it returns sums as whole numbers, and rounds every contribution towards
    zero before adding: rounding must not raise a norm.
    """

    @property
    def unit(self) -> float:
        """What one of its whole numbers is worth."""

    def l2_sensitivity(self, neighbors: str) -> float:
        """Largest L2 distance between the sums of two neighbors, in its whole numbers."""


@dataclass(frozen=True, kw_only=True)
class OfRecords:
    """A sum over records; a unit may have several, and all its whole numbers are checked."""

    per_unit: int = 1
    """Records that one unit may have."""

    def __post_init__(self) -> None:
        for size in fields(self):
            if isinstance(getattr(self, size.name), int):
                _checks.at_least(size.name, getattr(self, size.name), 1)


@dataclass(frozen=True, kw_only=True)
class TableCounts(OfRecords):
    """Several tables of counts of the same records, released together.

    Privacy
    -------
    A record is one cell of each of m tables: it moves m counts by 1, L2 ``sqrt(m)``. Replacing
    it moves 2 m counts, ``sqrt(2 m)``. With r records per unit all of them can lie in the same
    cells: r times that.
    """

    shapes: tuple[tuple[int, int], ...]
    """Of each table."""
    unit = 1.0

    def __post_init__(self) -> None:
        _checks.at_least("number of tables", len(self.shapes), 1)
        super().__post_init__()

    def l2_sensitivity(self, neighbors: str) -> float:
        """``r sqrt(m)``, or ``r sqrt(2 m)`` for "replace one"."""
        moved = len(self.shapes) * _cells_moved(neighbors)
        return self.per_unit * math.sqrt(moved)

    def total(self, tables: Sequence[tuple[IntArray, IntArray]]) -> IntArray:
        """Count; a table is given by the row code and the column code of each record."""
        counted = [
            np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1])
            for (row, column), shape in zip(tables, self.shapes, strict=True)
        ]
        return np.concatenate(counted).astype(np.int64)

    def apart(self, values: FloatArray) -> list[FloatArray]:
        """Cut the released vector into tables."""
        sizes = [a * b for a, b in self.shapes]
        parts = np.split(values, np.cumsum(sizes)[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


@dataclass(frozen=True, kw_only=True)
class TableDistances(OfRecords):
    """L1 distances of tables of counts from fixed, public tables.

    Privacy
    -------
    One record moves one count of a table by 1 and hence its distance by at most 1; m distances
    together by ``sqrt(m)``. Replacing it moves two counts: ``2 sqrt(m)``. The fixed tables are
    taken to the nearest multiple of ``UNIT``, so that the sums are exact; rounding them down keeps
    differences of whole size.
    """

    n_tables: int
    unit = 1.0

    def l2_sensitivity(self, neighbors: str) -> float:
        """``r sqrt(m)``, or ``2 r sqrt(m)`` for "replace one"."""
        return self.per_unit * _cells_moved(neighbors) * math.sqrt(self.n_tables)

    def total(self, counted: Sequence[IntArray], fixed: Sequence[FloatArray]) -> IntArray:
        """Distances of ``counted`` from ``fixed``, rounded down."""
        # On a grid of powers of two sums of doubles are exact: no rounding can add to a difference.
        apart = [
            float(np.abs(n - np.rint(m / UNIT) * UNIT).sum())
            for n, m in zip(counted, fixed, strict=True)
        ]
        return np.floor(apart).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class FeatureSums(OfRecords):
    """Sums of features over the records of every condition, jointly with their numbers.

    Privacy
    -------
    What a record adds is ``(phi(x), 1)`` in the block of its own condition, with ``|phi| <= 1``
    enforced here: L2 sqrt(2). Replacing it subtracts one such vector and adds another, at most 2
    apart: in two blocks, or in one, where the counts cancel and two unit vectors are at most 2
    apart.
    """

    n_features: int
    n_conditions: int
    unit = UNIT

    def l2_sensitivity(self, neighbors: str) -> float:
        """``r sqrt(2)``, or ``2 r`` for "replace one", in units."""
        return self.per_unit * math.sqrt(2.0 * _cells_moved(neighbors)) / self.unit

    def total(self, phi: FloatArray, condition: IntArray) -> IntArray:
        """Add up; rows of ``phi`` (n, n_features) longer than 1 are shortened to 1."""
        bounded = within_norm(phi, 1.0, self.unit).astype(np.int64)
        sums = np.zeros((self.n_conditions, self.n_features + 1), dtype=np.int64)
        for c in range(self.n_conditions):
            rows = condition == c
            sums[c, :-1] = bounded[rows].sum(axis=0)
            sums[c, -1] = int(rows.sum()) * round(1.0 / self.unit)
        return sums.reshape(-1)

    def apart(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut released values, in ones, into sums (n_conditions, n_features) and numbers."""
        table = values.reshape(self.n_conditions, -1)
        return table[:, :-1], table[:, -1]


@dataclass(frozen=True, kw_only=True)
class OuterSums(OfRecords):
    """Sums of ``z z'`` over the records of every condition, each once: what covariances need.

    Privacy
    -------
    With ``|z| <= 1`` enforced here, a record adds a matrix of Frobenius norm at most 1 to one
    block. Replacing it moves the sums by at most sqrt(2): in one block ``|zz' - ww'|`` is largest
    for orthogonal unit vectors, in two blocks the norms add in squares. Entries off the diagonal
    are released once, times 1393/985, so that the norm of what is released is Frobenius', or a
    millionth less. z is rounded towards zero before it is multiplied, and products and sums are
    whole numbers: nothing is rounded after it.
    """

    n_features: int
    """Length of z."""
    n_conditions: int
    unit = GRID**2 / DIAGONAL

    def l2_sensitivity(self, neighbors: str) -> float:
        """``r``, or ``r sqrt(2)`` for "replace one", in units."""
        return self.per_unit * math.sqrt(_cells_moved(neighbors)) / self.unit

    def total(self, z: FloatArray, condition: IntArray) -> IntArray:
        """Add up; rows of ``z`` (n, n_features) longer than 1 are shortened to 1."""
        short = within_norm(z, 1.0, GRID)
        i, j = np.triu_indices(self.n_features)
        times = np.where(i == j, DIAGONAL, BESIDE)
        sums = np.zeros((self.n_conditions, len(i)), dtype=np.int64)
        for c in range(self.n_conditions):
            own = short[condition == c]
            for first in range(0, len(own), _EXACT):
                rows = own[first : first + _EXACT]
                sums[c] += (rows.T @ rows)[i, j].astype(np.int64)
        return (sums * times).reshape(-1)

    def apart(self, values: FloatArray) -> FloatArray:
        """Return released values as symmetric matrices, (n_conditions, n_features, n_features)."""
        i, j = np.triu_indices(self.n_features)
        table = values.reshape(self.n_conditions, -1) / np.where(i == j, 1.0, BESIDE / DIAGONAL)
        out = np.zeros((self.n_conditions, self.n_features, self.n_features))
        out[:, i, j] = table
        out[:, j, i] = table
        return out


@dataclass(frozen=True, kw_only=True)
class ProductSums(OfRecords):
    """Sum of the outer products of two vectors of each record: gradients of linear scores.

    Privacy
    -------
    A record adds a matrix of Frobenius norm ``|left| |right| <= 1``, for which the left vector is
    shortened; replacing it subtracts one and adds another. Both vectors are rounded towards zero
    before they are multiplied; products and sums are whole numbers: nothing is rounded after it.
    """

    n_left: int
    n_right: int
    """``n_left`` and ``n_right``: lengths of the vectors."""
    unit = UNIT * GRID

    def l2_sensitivity(self, neighbors: str) -> float:
        """``r``, or ``2 r`` for "replace one", in units."""
        return self.per_unit * _cells_moved(neighbors) / self.unit

    def on_grid(self, right: FloatArray) -> FloatArray:
        """Return right vectors (n, n_right) rounded as ``total`` reads them."""
        return np.trunc(right / GRID) * GRID

    def total(self, left: FloatArray, right: FloatArray) -> IntArray:
        """Add up, in rows of the left vectors (n, n_left) times the right ones (n, n_right)."""
        total = np.zeros((self.n_left, self.n_right), dtype=np.int64)
        step = min(round(2.0**53 * self.unit), max(1, _AT_ONCE // self.n_right))
        for first in range(0, len(right), step):
            rows = slice(first, first + step)
            whole = np.trunc(right[rows] / GRID)
            lengths = np.sqrt(np.einsum("ij,ij->i", whole, whole)) * GRID
            if not np.isfinite(lengths).all():
                raise ValueError(_NOT_FINITE)
            short = within_norm(left[rows], 1.0 / np.maximum(lengths, GRID), UNIT)
            total += (short.T @ whole).astype(np.int64)
        return total.reshape(-1)


@dataclass(frozen=True, kw_only=True)
class ClippedSums(OfRecords):
    """Sum of one vector per record, each clipped: what a step of DP-SGD adds up.

    Privacy
    -------
    A record adds at most ``clip_norm``; replacing it subtracts one vector and adds another.
    """

    clip_norm: float
    """Largest norm of a record's vector. Greater than 0."""
    unit = UNIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip_norm", _checks.positive("clip_norm", self.clip_norm))
        super().__post_init__()

    def l2_sensitivity(self, neighbors: str) -> float:
        """``r clip_norm``, or twice that for "replace one", in units."""
        return self.per_unit * _cells_moved(neighbors) * self.clip_norm / self.unit

    def total(self, vectors: FloatArray) -> IntArray:
        """Clip and add up; ``vectors`` has shape (n, n_values)."""
        total: IntArray = within_norm(vectors, self.clip_norm, self.unit).sum(axis=0)
        return total.astype(np.int64)


def within_norm(rows: FloatArray, norm: float | FloatArray, unit: float) -> FloatArray:
    """Shorten rows to ``norm``, or each to its own, and round towards zero: none is longer then.

    Whole numbers, still as doubles; ``unit`` is a power of two, so that dividing by it is exact.
    """
    whole = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", whole, whole))
    if not np.isfinite(lengths).all():
        raise ValueError(_NOT_FINITE)
    # A breath below the bound: the division rounds, and the norm is a promise.
    factor = np.minimum(1.0, norm * (1.0 - 1e-12) / np.maximum(lengths, 1e-300))
    whole *= factor[:, None] / unit
    return np.trunc(whole, out=whole)


def _cells_moved(neighbors: str) -> int:
    """Cells of one table that differ between neighbors."""
    _checks.one_of("neighbors", neighbors, ("add or remove one", "replace one"))
    return 2 if neighbors == "replace one" else 1

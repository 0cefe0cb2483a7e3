"""A numeric column as whole numbers: cells between public bounds, joined by noisy counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray

MOST_SINGLE: Final = 128
"""Up to so many whole numbers between the bounds, each is a cell of its own."""

N_EVEN: Final = 64
"""Cells of even width between the bounds; powers of two cut them further."""

LEAST_BINS: Final = 4
"""Bins of even width that a column has at least, however loud the noise is."""

LEAST_POWER: Final = 1e-4
"""Smallest cut at a power of two, as a share of the width between the bounds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Intervals that cover the range of a numeric column, in ascending order.

    Privacy
    -------
    A function of the public bounds alone.
    """

    starts: FloatArray
    ends: FloatArray
    """``starts`` and ``ends``: cell i is ``[starts[i], ends[i])``; with ``starts[i] == ends[i]`` it
    is that value alone. The last one holds its end. Of d decimals both are whole numbers of steps
    of 10^-d, which floats add up exactly. Shape (n_cells,).
    """
    decimals: int | None
    """How many decimals the numbers of the column have, 0 for whole ones; None for any number."""

    @classmethod
    def between(cls, low: float, high: float, *, decimals: int | None) -> Cells:
        """Cut the range from ``low`` to ``high``.

        Numbers of so many decimals get a cell each while they are few. Otherwise the cuts are even
        ones and powers of two, which resolve what is near zero; the value 0 is a cell of its own,
        because so many columns hold it for "none".

        Examples
        --------
        >>> Cells.between(1, 5, decimals=0).starts
        array([1., 2., 3., 4., 5.])
        >>> warm = Cells.between(36.0, 36.4, decimals=1)
        >>> warm.starts, warm.draw(np.array([0, 3]), np.random.default_rng(0))
        (array([360., 361., 362., 363., 364.]), array([36. , 36.3]))
        >>> cells = Cells.between(0, 99_999, decimals=0)
        >>> cells.starts[:6].astype(int), len(cells)
        (array([  0,   1,  16,  32,  64, 128]), 78)
        """
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"Bounds must be finite and low < high, got {(low, high)!r}.")
        step = 0 if decimals is None else 1
        if decimals is not None:
            first, last = _inside(low, high, decimals)
            if last < first:
                kind = f"number of {decimals} decimals" if decimals else "whole number"
                raise ValueError(f"There is no {kind} from {low!r} to {high!r}.")
            if last - first < MOST_SINGLE:
                starts = np.arange(first, last + 1, dtype=np.float64)
                return cls(starts=starts, ends=starts + 1, decimals=decimals)
            low, high = first, last
        cuts = [*np.linspace(low, high + step, N_EVEN + 1), *_powers(low, high + step, step)]
        edges = np.unique(np.round(cuts) if step else cuts)
        cells = cls(starts=edges[:-1], ends=edges[1:], decimals=decimals)
        return cells.with_values([0.0]) if low <= 0 <= high else cells

    def with_values(self, values: ArrayLike) -> Cells:
        """Return cells with these values, which lie between the bounds, as cells of their own."""
        alone = self._steps(np.asarray(values, dtype=np.float64))
        if self.step:
            edges = np.unique([*self.starts, self.ends[-1], *alone, *alone + 1])
            return Cells(starts=edges[:-1], ends=edges[1:], decimals=self.decimals)
        alone = np.union1d(alone, self.starts[self.starts == self.ends])
        edges = np.unique([*self.starts, self.ends[-1], *alone])
        at = np.searchsorted(edges[:-1], alone)
        starts, ends = (np.insert(part, at, alone) for part in (edges[:-1], edges[1:]))
        return Cells(starts=starts, ends=ends, decimals=None)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def step(self) -> float:
        """Between two neighboring numbers, in units of ``starts``; 0 where any may be."""
        return 0.0 if self.decimals is None else 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest number that can be drawn."""
        low, high = self._numbers(np.array([self.starts[0], self.ends[-1] - self.step])).tolist()
        return low, high

    def _steps(self, numbers: FloatArray) -> FloatArray:
        """Return numbers in units of ``starts``, of a column with decimals the nearest whole."""
        if self.decimals is None:
            return numbers
        with np.errstate(over="ignore"):  # beyond all bounds
            nearest: FloatArray = np.rint(numbers * 10.0**self.decimals)
        return nearest

    def _numbers(self, steps: FloatArray) -> FloatArray:
        # Divided, not multiplied by .01: a quotient is the float that is written 36.7.
        return steps / 10.0**self.decimals if self.decimals else steps

    @property
    def atoms(self) -> BoolArray:
        """Which cells hold a single value."""
        alone: BoolArray = self.ends - self.starts <= self.step
        return alone

    def codes(self, values: FloatArray) -> IntArray:
        """Return the cell of each value; what lies beyond the bounds goes to the first or last."""
        inside = np.clip(self._steps(values), self.starts[0], self.ends[-1] - self.step)
        found = np.searchsorted(self.starts, inside, side="right") - 1
        # Starts hold a value that is alone twice, and "right" finds the second.
        first = np.maximum(found - 1, 0)
        before = (self.starts[first] == self.ends[first]) & (self.starts[first] == inside)
        codes: IntArray = np.where(before, first, found).astype(np.int64)
        return codes

    def draw(self, codes: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value inside each cell, all values alike."""
        start, end = self.starts[codes], self.ends[codes]
        u = rng.random(len(codes))
        if self.step:
            return self._numbers(np.minimum(start + np.floor(u * (end - start)), end - 1))
        return start + u * (end - start)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bins:
    """Neighboring cells joined, so that each bin holds enough records to outweigh the noise.

    Privacy
    -------
    A function of the cells and of noisy counts: post-processing.
    """

    cells: Cells
    bin_of_cell: IntArray
    """Ascending from 0. Shape (n_cells,)."""
    weights: FloatArray
    """How the values of a bin are spread over its cells; each bin sums to 1. Shape (n_cells,)."""

    @classmethod
    def single(cls, cells: Cells) -> Bins:
        """Make each cell a bin."""
        each = np.arange(len(cells), dtype=np.int64)
        return cls(cells=cells, bin_of_cell=each, weights=np.ones(len(cells)))

    @classmethod
    def from_noisy(cls, cells: Cells, noisy: ArrayLike, *, sigma: float, n_bins: int) -> Bins:
        """Join cells until each bin has about ``1 / n_bins`` of the noisy count beside atoms.

        A cell of a single value that stands out of the noise by four standard deviations, and
        has half a bin's share by itself, stays alone; of a column of few cells every one that
        stands out. Where the noise leaves fewer than ``LEAST_BINS`` bins, that many of even width
        are taken, which are public: a column in one bin says nothing.
        """
        counts = np.asarray(noisy, dtype=np.float64)
        total = max(float(counts.sum()), 1.0)
        aim = total / n_bins
        share = 0.0 if len(cells) <= 2 * n_bins else 0.5 * aim
        alone = cells.atoms & (counts > max(share, 4.0 * sigma))
        # A range beside an atom, such as amounts of those who have any, is cut by its own count.
        aim = max(total - float(counts[alone].sum()), 0.0) / n_bins
        bins = np.zeros(len(cells), dtype=np.int64)
        now, held, width = 0, 0.0, 0
        for i, count in enumerate(counts):
            # The sum of `width` noisy cells errs by sigma * sqrt(width).
            enough = held >= max(aim, 4.0 * sigma * math.sqrt(max(width, 1)))
            if i and (enough or alone[i] or alone[i - 1]):
                now, held, width = now + 1, 0.0, 0
            bins[i] = now
            held, width = held + count, width + 1
        if bins[-1] + 1 < min(LEAST_BINS, n_bins, len(cells)):
            bins = _even(cells, alone, min(LEAST_BINS, n_bins, len(cells)))
        return cls(cells=cells, bin_of_cell=bins, weights=_spread(counts, bins, cells, sigma))

    def with_values(self, values: ArrayLike) -> Bins:
        """Give single numbers a cell of their own, within the bin in which they are.

        Examples
        --------
        >>> cells = Cells.between(0, 999, decimals=0)
        >>> bins = Bins.from_noisy(cells, np.full(len(cells), 10.0), sigma=0.1, n_bins=4)
        >>> own = bins.with_values([10, 505])
        >>> own.n_bins == bins.n_bins, len(own.cells) - len(cells)
        (True, 4)
        """
        cells = self.cells.with_values(values)
        bins = self.bin_of_cell[self.cells.codes(cells.starts)]
        nothing = np.zeros(len(cells))
        return Bins(cells=cells, bin_of_cell=bins, weights=_spread(nothing, bins, cells, 0.0))

    def set_apart(self, noisy: ArrayLike, *, sigma: float, worth: float, most: int) -> Bins:
        """Make bins of single values whose labels are unlike those of the rest of their bin.

        A value is worth it where so many records would have another label if its labels were in the
        shares of the rest. What lies below and above it in its bin become bins of their own. The
        counts also say how the values of a bin are spread.

        Parameters
        ----------
        noisy : array of shape (n_labels, n_cells)
            Noisy counts by label.
        sigma : float
            Standard deviation of the noise on each; a value must stand out by four.
        worth : float
            Records.
        most : int
            Values that are set apart at most, those first that differ most.
        """
        by_label = np.asarray(noisy, dtype=np.float64)
        counts, sigma = by_label.sum(axis=0), sigma * math.sqrt(len(by_label))
        seen = self.cells.atoms & (counts > 4.0 * sigma)
        bins = self.bin_of_cell
        for _ in range(most):
            unlike = np.where(seen, _unlike(by_label, bins), 0.0)
            at = int(unlike.argmax())
            if unlike[at] < worth:
                break
            bins = _apart(bins, at)
        weights = _spread(counts, bins, self.cells, sigma)
        return Bins(cells=self.cells, bin_of_cell=bins, weights=weights)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.bin_of_cell[-1]) + 1

    def draw(self, bins: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value for each bin: a cell by its weight, then a value inside the cell."""
        cumulated = np.cumsum(self.weights)
        u = rng.random(len(bins))
        # Weights of bin b fill the interval from b to b + 1.
        cells = np.searchsorted(cumulated, bins + u, side="right")
        first = np.searchsorted(self.bin_of_cell, bins, side="left")
        last = np.searchsorted(self.bin_of_cell, bins, side="right") - 1
        return self.cells.draw(np.clip(cells, first, last).astype(np.int64), rng)

    def between(self, low: float, high: float) -> tuple[Bins, FloatArray]:
        """Return bins whose draws lie in [low, high], and how often those of each bin do so.

        The law of a draw is that of these bins, given that it lies there.

        Examples
        --------
        >>> cells = Cells.between(0, 9, decimals=0)
        >>> bins = Bins(cells=cells, bin_of_cell=np.arange(10) // 5, weights=np.full(10, 0.2))
        >>> bins.between(3, 4.5)[1].round(6)
        array([0.4, 0. ])
        """
        cells = self.cells
        step = cells.step
        low, high = max(low, cells.bounds[0]), min(high, cells.bounds[1])
        if cells.decimals is not None:
            low, high = map(float, _inside(low, high, cells.decimals))
        width = cells.ends - cells.starts
        inside = np.minimum(cells.ends, high + step) - np.maximum(cells.starts, low)
        alone = (cells.starts >= low) & (cells.starts <= high)  # a cell of no width
        share = np.where(
            width > 0, np.maximum(inside, 0.0) / np.where(width > 0, width, 1.0), alone
        )
        weights = self.weights * share
        chances = np.bincount(self.bin_of_cell, weights, self.n_bins).astype(np.float64)
        of_bin = np.where(chances > 0, chances, 1.0)[self.bin_of_cell]
        weights = np.where(chances[self.bin_of_cell] > 0, weights / of_bin, self.weights)
        starts = np.clip(cells.starts, low, high)
        ends = np.maximum(np.clip(cells.ends, low, high + step), starts + step)
        within = Cells(starts=starts, ends=ends, decimals=cells.decimals)
        return Bins(cells=within, bin_of_cell=self.bin_of_cell, weights=weights), chances

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "starts": self.cells.starts.tolist(),
            "ends": self.cells.ends.tolist(),
            "decimals": self.cells.decimals,
            "bins": self.bin_of_cell.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Bins:
        """Read what ``to_dict`` wrote."""
        # Before there were decimals, files said whether numbers are whole.
        whole = None if "decimals" in values or not values["integer"] else 0
        decimals = values.get("decimals", whole)
        cells = Cells(
            starts=np.array(values["starts"], dtype=np.float64),
            ends=np.array(values["ends"], dtype=np.float64),
            decimals=None if decimals is None else _checks.decimals("decimals", decimals),
        )
        bins = _checks.codes("bins", values["bins"])
        weights = np.array(values["weights"], dtype=np.float64)
        _checks.same_length(starts=cells.starts, ends=cells.ends, bins=bins, weights=weights)
        return cls(cells=cells, bin_of_cell=bins, weights=weights)


def _unlike(by_label: FloatArray, bins: IntArray) -> FloatArray:
    """Return how many records of each cell would have another label by the rest of its bin."""
    held = np.maximum(by_label, 0.0)
    rest = np.stack([np.bincount(bins, of) for of in held])[:, bins] - held
    of_rest = np.maximum(rest.sum(axis=0), 1.0)
    unlike: FloatArray = np.abs(held - held.sum(axis=0) * rest / of_rest).sum(axis=0) / 2.0
    return np.where(rest.sum(axis=0) > 0, unlike, 0.0)


def _apart(bins: IntArray, at: int) -> IntArray:
    """Make a bin of one cell, and of those on either side of it in its bin."""
    new = np.diff(bins, prepend=0) > 0
    new[at : at + 2] = True
    out: IntArray = np.cumsum(new) - int(new[0])
    return out


def _even(cells: Cells, alone: BoolArray, n: int) -> IntArray:
    """Join the cells to ``n`` bins of even width; those that stay alone are beside."""
    low, high = float(cells.starts[0]), float(cells.ends[-1])
    middle = (cells.starts + cells.ends) / 2
    part = np.floor((middle - low) / (high - low) * n)
    new = (np.diff(part) != 0) | alone[1:] | alone[:-1]
    bins: IntArray = np.concatenate([[0], np.cumsum(new)]).astype(np.int64)
    return bins


def _inside(low: float, high: float, decimals: int) -> tuple[int, int]:
    """Return the first and the last number of so many decimals in [low, high], in steps."""
    per_unit = 10**decimals
    # A product of floats may be off by a step; a quotient is the number itself.
    first, last = math.ceil(low * per_unit) - 1, math.floor(high * per_unit) + 1
    while first / per_unit < low:
        first += 1
    while last / per_unit > high:
        last -= 1
    return first, last


def _powers(low: float, high: float, step: float) -> list[float]:
    """Powers of two, of both signs, strictly between the bounds."""
    least = max((high - low) * LEAST_POWER, step)
    largest = max(abs(low), abs(high))
    exponents = range(math.ceil(math.log2(least)), math.ceil(math.log2(largest)) + 1)
    return [x for k in exponents for x in (-(2.0**k), 2.0**k) if low < x < high]


def _spread(noisy: FloatArray, bins: IntArray, cells: Cells, sigma: float) -> FloatArray:
    """Share of each cell in its bin: its noisy count where that is above the noise."""
    held = np.where(noisy > sigma, noisy, 0.0)
    width = np.maximum(cells.ends - cells.starts, 0.0)
    n_bins = int(bins[-1]) + 1
    for values in (width, np.ones(len(bins))):  # nothing above the noise: spread evenly
        empty = np.bincount(bins, held, n_bins) <= 0
        held = np.where(empty[bins], values, held)
    shares: FloatArray = held / np.bincount(bins, held, n_bins)[bins]
    return shares

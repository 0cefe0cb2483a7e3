"""What is added up over teachers at a step: gradients, signs, bins or votes, each with its bound.

One record sits with one teacher, and what a teacher adds is bounded here, whatever it is. So the
sums of neighbors differ by what one teacher can change, for both relations: a teacher without
records adds something too. Where a neighbor moves more than one, ``SeveralTeachers`` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.generators.aggregators import UNIT, Aggregator, within_norm
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class SeveralTeachers:
    """A sum over teachers of whom a neighbor moves more than one.

    Privacy
    -------
    Every one of them moves the sum by at most what ``of_one`` declares: ``n_moved`` times that, by
    the triangle inequality. It is reached where all of them turn the same way.
    """

    of_one: Aggregator
    """Declares how far one teacher can move the sum."""
    n_moved: int
    """Teachers that a neighbor can move."""

    def __post_init__(self) -> None:
        _checks.at_least("n_moved", self.n_moved, 1)

    @property
    def unit(self) -> float:
        """What one whole number of the sum is worth."""
        return self.of_one.unit

    def l2_sensitivity(self, neighbors: str) -> float:
        """``n_moved`` times that of one teacher, in units."""
        return self.n_moved * self.of_one.l2_sensitivity(neighbors)


@dataclass(frozen=True, kw_only=True)
class GradientSum:
    """Sum over teachers of one block of gradients each, clipped jointly.

    Parameters
    ----------
    clip_norm : float
        Largest norm of a teacher's whole block, over all generated rows of a step.

    Privacy
    -------
    One record sits with one teacher, whose block can turn into any other of norm ``clip_norm``:
    L2 ``2 clip_norm``, for both relations (a teacher without records still adds a block).
    """

    clip_norm: float
    unit = UNIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip_norm", _checks.positive("clip_norm", self.clip_norm))

    def l2_sensitivity(self, neighbors: str) -> float:
        """``2 clip_norm``, in units."""
        _checks.one_of("neighbors", neighbors, NEIGHBORS)
        return 2.0 * self.clip_norm / self.unit

    def total(self, blocks: FloatArray) -> IntArray:
        """Clip each teacher's block and add up; ``blocks`` has shape (n_teachers, ...)."""
        flat = np.asarray(blocks).reshape(len(blocks), -1)
        total: IntArray = within_norm(flat, self.clip_norm, self.unit).sum(axis=0).astype(np.int64)
        return total


@dataclass(frozen=True, kw_only=True)
class BinaryVotes:
    """How many teachers take each generated row for a real one.

    Parameters
    ----------
    n_rows : int
        Rows that are judged in one release.

    Privacy
    -------
    One record sits with one teacher, whose vote on each of B rows may flip: L2 ``sqrt(B)``.
    """

    n_rows: int
    unit = 1.0

    def __post_init__(self) -> None:
        _checks.at_least("n_rows", self.n_rows, 1)

    def l2_sensitivity(self, neighbors: str) -> float:
        """``sqrt(n_rows)``."""
        _checks.one_of("neighbors", neighbors, NEIGHBORS)
        return math.sqrt(self.n_rows)

    def total(self, votes: IntArray) -> IntArray:
        """Count the votes; ``votes`` has shape (n_teachers, n_rows), 0 or 1."""
        said = _checks.rectangle("votes", votes)
        if said.ndim != 2 or said.shape[1] != self.n_rows or not np.isin(said, (0, 1)).all():
            raise ValueError(
                f"votes must be 0 or 1 with shape (n_teachers, {self.n_rows}), got shape "
                f"{said.shape}."
            )
        total: IntArray = said.astype(np.int64).sum(axis=0)
        return total


@dataclass(frozen=True, kw_only=True)
class TopKSigns:
    """Signs of each teacher's largest gradients, a few per generated row, added up (DataLens).

    Privacy
    -------
    A teacher's signs form a vector of norm at most ``sqrt(k n_rows)``, which can turn into its
    opposite: L2 ``2 sqrt(k n_rows)`` (Wang et al. 2021 have it for one row). What bounds the norm
    is checked where the signs are added.

    References
    ----------
    Wang, Wu, Long, Xiao and Li 2021 (DataLens).
    """

    n_rows: int
    """Generated rows of a step."""
    width: int
    """Numbers of a row."""
    k: int
    """Of each row so many coordinates may be +1 or -1; all others are 0. At most ``width``."""
    unit = 1.0

    def __post_init__(self) -> None:
        _checks.at_least("n_rows", self.n_rows, 1)
        _checks.at_least("k", self.k, 1)
        if self.k > self.width:
            raise ValueError(
                f"k must be at most the numbers of a row, got k={self.k} of {self.width}."
            )

    def l2_sensitivity(self, neighbors: str) -> float:
        """``2 sqrt(k n_rows)``."""
        _checks.one_of("neighbors", neighbors, NEIGHBORS)
        return 2.0 * math.sqrt(self.k * self.n_rows)

    def total(self, signs: IntArray) -> IntArray:
        """Add up; ``signs`` has shape (n_teachers, n_rows, width) and holds -1, 0 and 1."""
        said = np.asarray(signs)
        if said.ndim != 3 or said.shape[1:] != (self.n_rows, self.width):
            raise ValueError(
                f"signs must have shape (n_teachers, {self.n_rows}, {self.width}), got "
                f"{said.shape}."
            )
        used = np.count_nonzero(said, axis=2)
        if not np.isin(said, (-1, 0, 1)).all() or (used > self.k).any():
            raise ValueError(
                f"A teacher may say -1 or 1 for at most k={self.k} numbers of a row and 0 for the "
                f"others; got values from {said.min()} to {said.max()} and up to {used.max()} of "
                f"them."
            )
        total: IntArray = said.sum(axis=0, dtype=np.int64).reshape(-1)
        return total


@dataclass(frozen=True, kw_only=True)
class ProjectedHistogram:
    """Histograms of each teacher's gradients along a few directions, per generated row (G-PATE).

    Privacy
    -------
    A teacher is in one bin of each histogram; it can leave it and enter another one: two counts
    move by 1 in each, L2 ``sqrt(2)`` per direction and row, ``sqrt(2 n_rows n_directions)``
    together. Whether the fullest bin is full enough is read off the same noisy counts, so this
    check costs nothing (in the paper it is a release of its own).

    References
    ----------
    Long, Wang, Yang, Kailkhura, Zhang, Gunter and Li 2021 (G-PATE).
    """

    n_rows: int
    """Generated rows of a step."""
    n_directions: int
    """Public directions on which each row's gradient is projected."""
    n_bins: int = 10
    """Bins of every histogram, of even width between -``reach`` and ``reach``; what lies beyond
    counts in the last ones.
    """
    reach: float = 1.0
    """Greater than 0."""
    unit = 1.0

    def __post_init__(self) -> None:
        _checks.at_least("n_rows", self.n_rows, 1)
        _checks.at_least("n_directions", self.n_directions, 1)
        _checks.at_least("n_bins", self.n_bins, 2)
        object.__setattr__(self, "reach", _checks.positive("reach", self.reach))

    @property
    def midpoints(self) -> FloatArray:
        """Middle of every bin."""
        return self.reach * ((2.0 * np.arange(self.n_bins) + 1.0) / self.n_bins - 1.0)

    def l2_sensitivity(self, neighbors: str) -> float:
        """``sqrt(2 n_rows n_directions)``."""
        _checks.one_of("neighbors", neighbors, NEIGHBORS)
        return math.sqrt(2.0 * self.n_rows * self.n_directions)

    def total(self, projected: FloatArray, voting: BoolArray | None = None) -> IntArray:
        """Count; ``projected`` has shape (n_teachers, n_rows, n_directions).

        With ``voting`` (n_teachers, n_rows) a teacher counts in the rows where it is True only;
        entering or leaving a histogram moves one count instead of two.
        """
        values = np.asarray(projected, dtype=np.float64)
        if values.ndim != 3 or values.shape[1:] != (self.n_rows, self.n_directions):
            raise ValueError(
                f"projected must have shape (n_teachers, {self.n_rows}, {self.n_directions}), "
                f"got {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError("A contribution that is not finite has no bin. Look for NaN or inf.")
        scaled = np.clip(values / self.reach, -1.0, 1.0)
        place = np.minimum((scaled + 1.0) / 2.0 * self.n_bins, self.n_bins - 1).astype(np.int64)
        cells = self.n_rows * self.n_directions
        at = np.arange(cells) * self.n_bins + place.reshape(len(values), cells)
        if voting is not None:
            at = at[np.repeat(voting, self.n_directions, axis=1)]
        return np.bincount(at.ravel(), minlength=cells * self.n_bins).astype(np.int64)

    def decide(self, noisy: FloatArray, least: float) -> FloatArray:
        """Middle of the fullest bin, or 0 where it holds fewer than ``least``.

        Shape (n_rows, n_directions); reads released counts alone.
        """
        counts = noisy.reshape(self.n_rows, self.n_directions, self.n_bins)
        chosen: FloatArray = self.midpoints[counts.argmax(axis=2)]
        return np.where(counts.max(axis=2) >= least, chosen, 0.0)

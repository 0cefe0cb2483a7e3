"""What a gate did: the gap after each release, and how much of each group was answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand.fairness.notions import parity_gaps
from evenhand.fairness.tally import Tally, answers, ratio
from evenhand.typing import REJECTED, ArrayLike, BoolArray, FloatArray, IntArray

_CELLS = 1 << 22  # float cells per piece of a long trace, 32 MB


def gap_trace(
    groups: ArrayLike,
    labels: ArrayLike,
    events: ArrayLike | None = None,
    *,
    reference: str = "rest",
) -> FloatArray:
    """Largest gap of the given answers after each release event.

    Parameters
    ----------
    groups, labels : array-like of int, shape (n,)
        Given answers in the order in which they were given.
    events : array-like of int, shape (n,), optional
        Number of the event that gave each answer, never falling; answers of one event were given
        together. By default each answer is an event of its own.
    reference : {"rest", "pairwise", "overall"}
        See ``DemographicParity``.

    Returns
    -------
    ndarray of float64, shape (n_events,)
        In [0, 1], 0 is best; 0 while fewer than two groups have an answer, as for a gate.

    Examples
    --------
    >>> gap_trace([0, 0, 1, 1], [0, 1, 0, 1], events=[0, 1, 2, 2])
    array([0., 0., 0.])
    >>> gap_trace([0, 0, 1, 1], [0, 1, 0, 1])
    array([0. , 0. , 0.5, 0. ])
    """
    z, k = _checks.codes("groups", groups), _checks.codes("labels", labels)
    n = _checks.same_length(groups=z, labels=k)
    when = np.arange(n) if events is None else _checks.codes("events", events)
    _checks.same_length(groups=z, events=when)
    if n == 0:
        return np.zeros(0)
    falls = np.flatnonzero(np.diff(when) < 0)
    if falls.size:
        raise ValueError(
            f"events must never fall, but it goes from {when[falls[0]]} to {when[falls[0] + 1]} "
            f"after {_values.row(int(falls[0]))}. Sort the answers by the order in which they were "
            f"given."
        )
    number = np.concatenate([[0], np.cumsum(np.diff(when) > 0)])
    n_events, n_groups, n_classes = int(number[-1]) + 1, int(z.max()) + 1, int(k.max()) + 1
    trace = np.zeros(n_events)
    so_far: IntArray = np.zeros((n_groups, n_classes), dtype=np.int64)
    piece = max(1, _CELLS // (n_groups * n_classes))
    for first in range(0, n_events, piece):
        last = min(first + piece, n_events)
        rows = slice(*np.searchsorted(number, [first, last]))
        steps = np.zeros((last - first, n_groups, n_classes), dtype=np.int64)
        np.add.at(steps, (number[rows] - first, z[rows], k[rows]), 1)
        tables = so_far + np.cumsum(steps, axis=0)
        gaps = np.abs(parity_gaps(tables, reference))
        trace[first:last] = np.where(np.isnan(gaps), 0.0, gaps).max(axis=(1, 2))
        so_far = tables[-1]
    return trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Coverage:
    """How many answers each group and class could have had, and how many were given."""

    offered: IntArray
    given: IntArray
    """``offered`` and ``given``: answers that were there to give, and those that were given. Shape
    (n_groups, n_classes).
    """
    names: tuple[str, ...]
    """Names of the groups."""

    def __post_init__(self) -> None:
        if self.offered.shape != self.given.shape or len(self.names) != len(self.offered):
            raise ValueError(
                f"offered, given and names must agree, got shapes {self.offered.shape} and "
                f"{self.given.shape} and {len(self.names)} names."
            )
        if (self.given < 0).any() or (self.given > self.offered).any():
            raise ValueError("given must lie between 0 and offered in every cell.")

    @property
    def rates(self) -> FloatArray:
        """Share given, shape (n_groups, n_classes), in [0, 1], 1 is best; NaN if none offered."""
        return ratio(self.given, self.offered)

    @property
    def overall(self) -> float:
        """Share given of all answers; NaN if none was offered."""
        return float(ratio(self.given.sum(), self.offered.sum()))

    def most_refused(self, classes: Sequence[str]) -> str:
        """Say in a sentence whose answers, and of which class, are refused most."""
        refused = self.offered - self.given
        if not refused.any():
            return "Nobody was refused." if self.offered.any() else "Nobody asked."
        shares = np.where(self.offered > 0, refused / np.maximum(self.offered, 1), -1.0)
        z, k = divmod(int(shares.argmax()), shares.shape[1])
        of_groups = ratio(refused.sum(axis=1), self.offered.sum(axis=1))
        rows = ", ".join(
            f"{name} {share:.1%}"
            for name, share in zip(self.names, of_groups.tolist(), strict=True)
            if share == share
        )
        return (
            f"Refused most: {self.names[z]} with class {classes[k]}, {refused[z, k]:,} of "
            f"{self.offered[z, k]:,} ({shares[z, k]:.1%}); of all answers {rows} were refused."
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Coverage:
        """Read what ``to_dict`` wrote."""
        return cls(
            offered=Tally(counts=np.array(values["offered"])).counts,
            given=Tally(counts=np.array(values["given"])).counts,
            names=tuple(str(name) for name in values["groups"]),
        )

    def to_dict(self) -> dict[str, object]:
        """Return JSON's types; a share of nothing is None."""
        shares = [[None if r != r else r for r in row] for row in self.rates.tolist()]
        return {
            "groups": list(self.names),
            "offered": self.offered.tolist(),
            "given": self.given.tolist(),
            "coverage": shares,
            "overall": None if self.overall != self.overall else self.overall,
        }


def coverage_table(
    groups: ArrayLike,
    labels: ArrayLike,
    given: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    n_groups: int | None = None,
    n_classes: int | None = None,
) -> Coverage:
    """Count per group and class what could have been answered, and what was.

    Parameters
    ----------
    groups : array-like of int, shape (n,)
    labels : array-like of int, shape (n,)
        The class each query stands for: its answer, had it been given, or its true class. Rows
        that are REJECTED (-1) here have no class and are left out.
    given : array-like of bool, shape (n,)
        Whether the query was answered.
    names : sequence of str, optional
    n_groups, n_classes : int, optional
        Size of the table; by default as many as occur.

    Notes
    -----
    The answer that a rejected query *would* have had is private. In a private run use classes that
    are public (true labels of public data), or call this on simulated votes only.

    Examples
    --------
    >>> table = coverage_table([0, 0, 1, 1], [1, 1, 0, 1], [True, False, True, True])
    >>> table.rates
    array([[nan, 0.5], [1. , 1. ]])
    """
    z = _checks.codes("groups", groups, n_groups)
    if n_groups is None:
        n_groups = len(names) if names is not None else int(z.max(initial=-1)) + 1
    if n_classes is None:
        n_classes = int(np.max(np.asarray(labels), initial=0)) + 1
    k = answers("labels", labels, n_classes)
    kept = np.asarray(given)
    if kept.dtype != np.bool_:
        raise TypeError(f"given must hold True and False, got dtype {kept.dtype}.")
    _checks.same_length(groups=z, labels=k, given=kept)
    _checks.codes("groups", z, n_groups)

    def table(rows: BoolArray) -> IntArray:
        counts: IntArray = np.zeros((n_groups, n_classes), dtype=np.int64)
        np.add.at(counts, (z[rows], k[rows]), 1)
        return counts

    classed: BoolArray = k != REJECTED
    return Coverage(
        offered=table(classed),
        given=table(classed & kept),
        names=tuple(names) if names is not None else tuple(map(str, range(n_groups))),
    )

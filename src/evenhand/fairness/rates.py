"""The rates that a notion of fairness compares between groups, read from a table of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenhand.typing import ArrayLike, BoolArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Rates:
    """One or more kinds of rate, each among the records of some true classes.

    With the joint table ``J_z(k, k')`` (records of group z, true class k, predicted class k'), rate
    r of group z is ``sum of J_z over hits[r] / sum of J_z over the rows among[r]``. What a rate is
    taken among never depends on the predictions, so every rate is *linear* in them.

    Parameters
    ----------
    among : ndarray of bool, shape (n_rates, n_classes)
        True classes that a rate is taken among.
    hits : ndarray of bool, shape (n_rates, n_classes, n_classes)
        Pairs (true, predicted) that count; only within ``among``.
    """

    among: BoolArray
    hits: BoolArray

    def __post_init__(self) -> None:
        if self.hits.shape != (*self.among.shape, self.among.shape[1]):
            raise ValueError(
                f"hits must have shape (n_rates, n_classes, n_classes) for among "
                f"{self.among.shape}, got {self.hits.shape}."
            )
        if (self.hits & ~self.among[:, :, None]).any():
            raise ValueError("hits must lie within among: a rate is at most 1.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.among.shape[1])

    def counted(self, joint: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return successes and trials (n_groups, n_rates) of a table of whole numbers.

        The table has shape (n_groups, n_classes, n_classes): group, true class, predicted class.
        """
        table = np.asarray(joint)
        if table.ndim != 3 or table.shape[1:] != (self.n_classes, self.n_classes):
            raise ValueError(
                f"counts must have shape (n_groups, {self.n_classes}, {self.n_classes}): groups, "
                f"true classes, predicted classes; got {table.shape}."
            )
        if not np.issubdtype(table.dtype, np.integer):
            raise TypeError(f"counts must hold whole numbers, got dtype {table.dtype}.")
        successes = np.einsum("zkj,rkj->zr", table, self.hits.astype(np.int64))
        trials = np.einsum("zkj,rk->zr", table, self.among.astype(np.int64))
        return successes, trials


def predicted_among_each_class(n_classes: int) -> Rates:
    """``P(Yhat = k' | Y = k)`` for all k, k'; with two classes for k' = 1 alone."""
    among, hits = _none(n_classes * (n_classes if n_classes > 2 else 1), n_classes)
    predicted = range(n_classes) if n_classes > 2 else (1,)
    for r, (k, j) in enumerate((k, j) for k in range(n_classes) for j in predicted):
        among[r, k] = hits[r, k, j] = True
    return Rates(among=among, hits=hits)


def wrong(n_classes: int) -> Rates:
    """``P(Yhat != Y)``."""
    among, hits = _none(1, n_classes)
    among[:] = True
    hits[0] = ~np.eye(n_classes, dtype=np.bool_)
    return Rates(among=among, hits=hits)


def predicted_among_others(n_classes: int, classes: Sequence[int]) -> Rates:
    """``P(Yhat = k | Y != k)`` for each k of ``classes``."""
    among, hits = _none(len(classes), n_classes)
    for r, k in enumerate(classes):
        among[r] = np.arange(n_classes) != k
        hits[r, :, k] = among[r]
    return Rates(among=among, hits=hits)


def exact_rate_gap(successes: IntArray, trials: IntArray, reference: str) -> Fraction:
    """Largest difference of a rate (a column) between groups that have trials, as a fraction.

    The definition itself, in the open; 0 where no rate has two groups to compare.
    """
    worst = Fraction(0)
    for hits, among in zip(successes.T.tolist(), trials.T.tolist(), strict=True):
        rows = [(hit, n) for hit, n in zip(hits, among, strict=True) if n]
        if len(rows) < 2:
            continue
        all_hits, all_n = sum(hit for hit, _ in rows), sum(n for _, n in rows)
        for i, (hit, n) in enumerate(rows):
            if reference == "pairwise":
                others = rows[:i]
            elif reference == "rest":
                others = [(all_hits - hit, all_n - n)]
            else:
                others = [(all_hits, all_n)]
            for other_hit, other_n in others:
                worst = max(worst, abs(Fraction(hit, n) - Fraction(other_hit, other_n)))
    return worst


def _none(n_rates: int, n_classes: int) -> tuple[BoolArray, BoolArray]:
    return (
        np.zeros((n_rates, n_classes), dtype=np.bool_),
        np.zeros((n_rates, n_classes, n_classes), dtype=np.bool_),
    )

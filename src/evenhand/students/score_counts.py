"""Scores counted by group: what thresholds by group are set on where the rows are private."""

from __future__ import annotations

from typing import Final

import numpy as np

from evenhand import _checks
from evenhand._probabilities import nearest_on_simplex
from evenhand.typing import ArrayLike, FloatArray, IntArray

N_RANGES: Final = 20
"""Ranges of the score, equally wide. They follow the score and not its mass: where few people are
decided for, all of the decision may lie in the highest two."""

NO_COUNTS: Final[FloatArray] = np.zeros(0)
NO_COUNTS.setflags(write=False)

_ROUNDS: Final = 2  # shares give weights, weights give shares; four rounds give the same
_LEAST: Final = 0.25  # of a row: no range is so empty that its public rows are certain of it


def count_scores(scores: ArrayLike, groups: ArrayLike, n_groups: int) -> IntArray:
    """Return how many rows of each group have a score in each range, (n_groups, N_RANGES).

    Parameters
    ----------
    scores : array-like, shape (n,)
        In [0, 1]; range r holds those from ``r / N_RANGES`` up to the next.
    groups : array-like of int, shape (n,)
        Codes below ``n_groups``.

    Examples
    --------
    >>> count_scores([0.31, 0.33, 0.94], [0, 0, 1], 2)[:, [6, 18]].tolist()
    [[2, 0], [0, 1]]
    """
    p, z = np.asarray(scores, dtype=np.float64), _checks.codes("groups", groups, n_groups)
    _checks.same_length(scores=p, groups=z)
    place = np.minimum((p * N_RANGES).astype(np.int64), N_RANGES - 1)
    table = np.bincount(z * N_RANGES + place, minlength=n_groups * N_RANGES)
    return table.reshape(n_groups, N_RANGES)


def rows_of(
    counts: FloatArray, noise: float, public: IntArray | None = None
) -> tuple[FloatArray, IntArray]:
    """Return scores and groups of rows that stand for noisy counts and public rows together.

    The share of a group in a range is the mean of what both say, each weighed by one over its
    variance: that of a sample, and for the counts that of their noise as well. So public rows
    decide where counts are lost in noise, a range at a time, and counts where public rows are few.

    Parameters
    ----------
    counts : ndarray of float64, shape (n_groups, N_RANGES)
        Noisy counts of private rows.
    noise : float
        Standard deviation of the noise on each; at least 0.
    public : ndarray of int64, shape (n_groups, N_RANGES), optional
        Counts of public rows, other people of the same distribution. Default: none.

    Returns
    -------
    scores : ndarray of float64, shape (n_rows,)
        Spread evenly over each range.
    groups : ndarray of int64, shape (n_rows,)
        As many of each group as its public rows, and its private ones by their noisy total.

    Privacy
    -------
    Free: reads what was released, and public rows (post-processing).
    """
    known = np.zeros(counts.shape) if public is None else public.astype(np.float64)
    n_known = known.sum(axis=1, keepdims=True)
    n_counted = np.maximum(counts.sum(axis=1, keepdims=True), 0.0)
    n = n_known + n_counted
    by_counts, by_rows = counts / np.maximum(n_counted, 1.0), known / np.maximum(n_known, 1.0)
    shares = known + np.maximum(counts, 0.0)
    for _ in range(_ROUNDS):
        likely = np.maximum(shares, _LEAST / np.maximum(n, 1.0))
        likely /= likely.sum(axis=1, keepdims=True)
        variance = likely / np.maximum(n_counted, 1.0) + (noise / np.maximum(n_counted, 1.0)) ** 2
        weight = 1.0 / (1.0 + variance * n_known / likely)  # 1 without a public row
        shares = nearest_on_simplex(weight * by_counts + (1.0 - weight) * by_rows)
    whole = np.diff(np.cumsum(shares * n, axis=1).round(), axis=1, prepend=0.0)
    n_rows = whole.astype(np.int64).ravel()
    cell = np.repeat(np.arange(len(n_rows)), n_rows)
    place = np.arange(len(cell)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    within = (place + 0.5) / n_rows[cell]
    return (cell % N_RANGES + within) / N_RANGES, cell // N_RANGES


def certain_rows(
    counts: FloatArray, noise: float, public: IntArray, rates: FloatArray
) -> FloatArray:
    """Return how many rows of a sample say as much of each group's rate as all is known of it.

    Parameters
    ----------
    counts, noise, public
        As in :func:`rows_of`.
    rates : ndarray of float64, shape (n_groups,)
        Shares of the groups above a score; half of all ranges are taken to lie there. Noise on
        these and on the others moves the share against each other, a quarter of all that there is.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        At least the public rows, at most these and the counted ones.
    """
    n_counted = np.maximum(counts.sum(axis=1), 1.0)
    spread = np.maximum(rates * (1.0 - rates), _LEAST / n_counted)
    lost = 0.25 * N_RANGES * noise**2 / (spread * n_counted)
    found: FloatArray = public.sum(axis=1) + n_counted / (1.0 + lost)
    return found

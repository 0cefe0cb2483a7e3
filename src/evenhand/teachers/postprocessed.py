"""Votes taken at one threshold per group, set by each teacher alone on the public rows."""

from __future__ import annotations

import numpy as np

from evenhand import _checks
from evenhand.fairness import DemographicParity
from evenhand.fairness.notions import parity_gaps
from evenhand.typing import ArrayLike, IntArray


def level_votes(
    scores: ArrayLike, groups: ArrayLike, *, n_groups: int, fairness: DemographicParity
) -> IntArray:
    """Bring every teacher's own rates of class 1 within the margin, for two classes.

    Parameters
    ----------
    scores : array-like, shape (n_teachers, n_queries)
        Each teacher's score of each public row; above 0 its vote is class 1.
    groups : array-like of int, shape (n_queries,)
        Public group codes of the rows.
    n_groups : int
    fairness : DemographicParity

    Returns
    -------
    ndarray of int64, shape (n_teachers, n_queries)
        Votes. In every group the rows of highest score get class 1 (equal scores: the earlier row).

    Privacy
    -------
    Row ``t`` is a function of teacher ``t``, the public rows and their groups: the sensitivity of
    a vote is what it was.

    Notes
    -----
    The rate of each group moves towards the teacher's own overall rate by the factor
    ``min(1, margin / gap)``, which shrinks every difference of rates by it and leaves the overall
    rate. Rates are rounded to whole rows towards the overall rate, so the margin is kept up to one
    row of each group. The promise is about each teacher alone: a noisy majority of votes that
    are each within the margin may be far outside.

    Examples
    --------
    >>> votes = level_votes(
    ...     [[3.0, 2.0, 1.0, -1.0, 1.0, -1.0, -2.0, -3.0]], [0, 0, 0, 0, 1, 1, 1, 1],
    ...     n_groups=2, fairness=DemographicParity(margin=0.1),
    ... )
    >>> votes.tolist()
    [[1, 1, 0, 0, 1, 1, 0, 0]]
    """
    marks = _checks.matrix("scores", scores)
    z = _checks.codes("groups", groups, n_groups)
    if marks.shape[1] != len(z):
        raise ValueError(
            f"scores must have one column for each of {len(z)} rows with a group, got shape "
            f"{marks.shape}."
        )
    votes = (marks > 0).astype(np.int64)
    members = [np.flatnonzero(z == g) for g in range(n_groups)]
    sizes = np.array([len(rows) for rows in members])
    ones = np.stack([votes[:, rows].sum(axis=1) for rows in members], axis=1)
    gaps = np.abs(parity_gaps(np.stack([sizes - ones, ones], axis=2), fairness.reference))
    gap = np.where(np.isnan(gaps), 0.0, gaps).max(axis=(1, 2))
    factor = np.minimum(1.0, fairness.margin / np.maximum(gap, 1e-300))
    overall = ones.sum(axis=1) / max(1, len(z))
    for g, rows in enumerate(members):
        moved = sizes[g] * overall + factor * (ones[:, g] - sizes[g] * overall)
        above = ones[:, g] > sizes[g] * overall
        # The last digits of a product are no part of a row.
        target = np.where(above, np.floor(moved + 1e-9), np.ceil(moved - 1e-9)).astype(np.int64)
        target = np.where(factor < 1.0, target, ones[:, g])
        order = np.argsort(-marks[:, rows], axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(len(rows))[None, :], axis=1)
        votes[:, rows] = rank < target[:, None]
    return votes

"""Pre-processors of a training set: what one record more can change in what they keep.

FairPATE's Theorem 1 says that a pre-processor for demographic parity multiplies the privacy cost of
the training after it by ``K_gamma``. That holds for the pre-processor of its proof
(``cap_majority``), which decides label by label from counts. It does not hold for the one that the
paper prints and uses (``filter_in_turn``, Algorithm 3), which decides record by record from running
rates: there one record more shifts every later decision, and no constant bounds the change.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from evenhand import _checks
from evenhand.fairness.notions import DemographicParity
from evenhand.typing import ArrayLike, BoolArray, IntArray


def k_gamma(margin: float) -> int:
    """Most records by which two outputs of ``cap_majority`` differ when the inputs differ by one.

    ``K = 2 + ceil(2 g / (1 - g))`` for margin g, in exact fractions: 0.05 is 1/20.

    Parameters
    ----------
    margin : float
        In [0, 1).

    Returns
    -------
    int
        Records added or removed. A mechanism that is (epsilon, delta)-private for adding or
        removing one record is, after ``cap_majority``, ``(K epsilon, K exp(K epsilon) delta)``-
        private. For replacing one record take ``2 K``: a record goes, another comes.

    References
    ----------
    FairPATE, Theorem 1 and its proof in Appendix A. The theorem names Algorithm 3, for which no
    such number exists: see ``filter_in_turn``.

    Examples
    --------
    >>> [k_gamma(margin) for margin in (0.0, 0.05, 0.5, 0.9)]
    [2, 3, 4, 20]
    """
    g = DemographicParity(margin=margin).exact_margin
    if g == 1:
        raise ValueError(
            "margin must be below 1 here, got margin=1: nothing is capped then, so one record "
            "more is one record more. Leave the pre-processor out."
        )
    return 2 + math.ceil(2 * g / (1 - g))


def cap_majority(groups: ArrayLike, labels: ArrayLike, *, margin: float) -> BoolArray:
    """Keep, label by label, at most ``(1 + g) / (1 - g)`` times as many of one group as of another.

    Parameters
    ----------
    groups : array-like of int, shape (n,)
        0 or 1.
    labels : array-like of int, shape (n,)
        Class codes.
    margin : float
        g, in [0, 1).

    Returns
    -------
    ndarray of bool, shape (n,)
        Which rows are kept. Of the group that has too many of a label, the last rows go.

    Privacy
    -------
    One row more or less changes at most ``k_gamma(margin)`` kept rows, **if the order of the rows
    is one in which a record stands where its own values put it** (sorted by the record's own
    content or key, not by arrival). The result reads private labels and groups of all rows: it is
    no release by itself, and what is trained on it pays ``k_gamma`` times.

    Notes
    -----
    The kept rows are within the margin: for two groups and any number of classes,
    ``|P(k | z) - P(k | not z)| <= g``.

    References
    ----------
    The pre-processor in the proof of FairPATE's Theorem 1 (Appendix A). It is stated for two
    groups, and so is this.

    Examples
    --------
    >>> cap_majority([0, 1, 1, 1, 1], [1, 1, 1, 1, 1], margin=0.5)
    array([ True,  True,  True,  True, False])
    """
    z, y = _records(groups, labels)
    k_gamma(margin)  # the same margins are refused
    g = DemographicParity(margin=margin).exact_margin
    kept = np.ones(len(z), dtype=np.bool_)
    for label in np.unique(y):
        rows = [np.flatnonzero((z == group) & (y == label)) for group in (0, 1)]
        cap = math.floor(min(map(len, rows)) * (1 + g) / (1 - g))
        for of_group in rows:
            kept[of_group[cap:]] = False
    return kept


def filter_in_turn(
    groups: ArrayLike, labels: ArrayLike, *, margin: float, cold_start: int
) -> BoolArray:
    """Keep a row if the rates of the rows kept before it allow: FairPATE's Algorithm 3 as printed.

    For comparison; it has no bound on what one record changes.

    Parameters
    ----------
    groups : array-like of int, shape (n,)
        0 or 1.
    labels : array-like of int, shape (n,)
        Class codes.
    margin : float
        A row is kept if its group's rate of its label would stay less than this above that of the
        other group. In [0, 1].
    cold_start : int
        Rows that each group keeps untested, at least 0 (M in the paper).

    Returns
    -------
    ndarray of bool, shape (n,)
        Which rows are kept.

    Privacy
    -------
    **``k_gamma`` does not apply, and no constant does.** Each decision reads the running rates, so
    one record more at the start shifts all later ones. In tables of 500, 2000 and 8000 records
    built for it, one record changes 440, 1774 and 7107 of the decisions about others
    (``reproductions/theory.py``); in random tables the number grows with the table,
    too. Group privacy with the number of rows in place of K is all that can be said.

    Examples
    --------
    >>> rest = ([1, 1] + [0] * 500, [0, 1] + [1, 0, 0, 0, 0] * 100)
    >>> more = ([1, *rest[0]], [0, *rest[1]])
    >>> once, again = (filter_in_turn(*t, margin=0.1, cold_start=2) for t in (rest, more))
    >>> int((once != again[1:]).sum()), k_gamma(0.1)
    (442, 3)
    """
    z, y = _records(groups, labels)
    g = DemographicParity(margin=margin).exact_margin
    cold_start = _checks.at_least("cold_start", cold_start, 0)
    counts = [[0] * (int(y.max(initial=0)) + 1) for _ in range(2)]
    kept = np.zeros(len(z), dtype=np.bool_)
    for row, (group, label) in enumerate(zip(z.tolist(), y.tolist(), strict=True)):
        own, other = counts[group], counts[1 - group]
        if sum(own) >= cold_start:
            # 0/0 for an empty other group: nothing is below the margin, so the row is not kept.
            if not sum(other):
                continue
            gap = Fraction(own[label] + 1, sum(own) + 1) - Fraction(other[label], sum(other))
            if not gap < g:
                continue
        own[label] += 1
        kept[row] = True
    return kept


def _records(groups: ArrayLike, labels: ArrayLike) -> tuple[IntArray, IntArray]:
    z, y = _checks.codes("groups", groups, 2), _checks.codes("labels", labels)
    _checks.same_length(groups=z, labels=y)
    return z, y

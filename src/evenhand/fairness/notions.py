"""What "within the margin" means: demographic parity, by the group it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evenhand import _checks
from evenhand.fairness.tally import ratio
from evenhand.typing import ArrayLike, FloatArray

REFERENCES = ("rest", "pairwise", "overall")
"""What a group's rate is compared with: all other groups pooled, each other group, everybody."""


@dataclass(frozen=True, kw_only=True)
class DemographicParity:
    """Each group receives each class at nearly the same rate.

    Parameters
    ----------
    margin : float
        Largest difference of two rates that is within the margin. In [0, 1]; the margin itself is
        within. It is read as the decimal it is written as: 0.05 is exactly 1/20.
    reference : {"rest", "pairwise", "overall"}
        What the rate ``P(k | z)`` of group z is compared with: ``"rest"`` is ``P(k | not z)``
        (FairPATE, Definition 1), ``"pairwise"`` is ``P(k | z')`` of every other group (fairlearn's
        demographic parity difference), ``"overall"`` is ``P(k)`` (SF-PATE).

    Notes
    -----
    A rest gap of at most g bounds the pairwise gap by 2 g, and the overall gap by g.

    Examples
    --------
    >>> DemographicParity(margin=0.25).gap([[6, 4], [8, 2]])
    0.2
    >>> DemographicParity(margin=0.25).holds([[6, 4], [9, 1]])
    False
    """

    margin: float
    reference: str = "rest"

    def __post_init__(self) -> None:
        _checks.closed_unit("margin", self.margin)
        _checks.one_of("reference", self.reference, REFERENCES)

    @property
    def exact_margin(self) -> Fraction:
        """The margin as the fraction that its shortest decimal writes."""
        return Fraction(repr(float(self.margin)))

    def gap(self, counts: ArrayLike) -> float:
        """Largest difference in a table (n_groups, n_classes); 0.0 with fewer than two groups."""
        return float(exact_gap(_rows(counts), self.reference))

    def holds(self, counts: ArrayLike) -> bool:
        """Whether a table (n_groups, n_classes) is within the margin, decided in fractions."""
        return exact_gap(_rows(counts), self.reference) <= self.exact_margin


def exact_gap(counts: Sequence[Sequence[int]], reference: str) -> Fraction:
    """Largest difference of rates between groups that have answers, as a fraction.

    The definition itself, in the open: slow, and what the faster forms are checked against.
    """
    rows = [row for row in counts if sum(row)]
    if len(rows) < 2:
        return Fraction(0)
    everybody = [sum(column) for column in zip(*rows, strict=True)]
    worst = Fraction(0)
    for row in rows:
        if reference == "pairwise":
            others = [other for other in rows if other is not row]
        elif reference == "rest":
            others = [[total - own for total, own in zip(everybody, row, strict=True)]]
        else:
            others = [everybody]
        for other in others:
            for k in range(len(row)):
                difference = Fraction(row[k], sum(row)) - Fraction(other[k], sum(other))
                worst = max(worst, abs(difference))
    return worst


def parity_gaps(counts: ArrayLike, reference: str) -> FloatArray:
    """Signed differences ``P(k | z) - P(k | reference)`` in floats, for a table or a stack of them.

    Parameters
    ----------
    counts : array-like of int, shape (..., n_groups, n_classes)
    reference : {"rest", "pairwise", "overall"}
        For ``"pairwise"`` each group is compared with the other group that is farthest from it.

    Returns
    -------
    ndarray of float64, shape (..., n_groups, n_classes)
        In [-1, 1]; 0 is best. NaN where a group, or what it is compared with, has no answer.
    """
    _checks.one_of("reference", reference, REFERENCES)
    table = np.asarray(counts, dtype=np.float64)
    totals = table.sum(axis=-1, keepdims=True)
    rates = ratio(table, totals)
    everybody = table.sum(axis=-2, keepdims=True)
    if reference == "overall":
        overall: FloatArray = rates - ratio(everybody, everybody.sum(axis=-1, keepdims=True))
        return overall
    if reference == "rest":
        others = everybody - table
        rest: FloatArray = rates - ratio(others, others.sum(axis=-1, keepdims=True))
        return rest
    above = rates - np.where(np.isnan(rates), np.inf, rates).min(axis=-2, keepdims=True)
    below = rates - np.where(np.isnan(rates), -np.inf, rates).max(axis=-2, keepdims=True)
    farthest: FloatArray = np.where(above >= -below, above, below)
    alone = (totals > 0).sum(axis=-2, keepdims=True) < 2
    return np.where(alone, np.nan, farthest)


def _rows(counts: ArrayLike) -> list[list[int]]:
    rows: list[list[int]] = np.asarray(counts).tolist()
    return rows

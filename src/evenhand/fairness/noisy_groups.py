"""Rates of groups that are known by noisy answers only: unbiased counts, and margins to match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.fairness.notion import Notion
from evenhand.typing import FloatArray

SURE: Final = 2.0
"""Standard errors by which the estimated share of a group must be above 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnsweredGroups:
    """How many people gave each group as their answer, each true with a known probability.

    Notes
    -----
    Let A be the true group, Z the answer, h any function of features, labels and decisions, and
    ``S_Z(a)``, ``S_A(a)`` the sums of h over people with Z = a and with A = a. Whatever the data,

        E[S_Z(a)] = p S_A(a) + q (S - S_A(a)) = (p - q) S_A(a) + q S,      S = S_A(0) + S_A(1) + ...

    so ``(S_Z(a) - q S) / (p - q)`` is an unbiased estimate of ``S_A(a)``: the inverse of the matrix
    of responses (Mozannar, Ohannessian and Srebro 2020, section 4). With h = 1 it gives the size
    ``N_A(a) = (N_Z(a) - q N) / (p - q)`` of each group. The estimated difference between the rate
    of a group and that of everybody is then

        S_A(a) / N_A(a) - S / N = (S_Z(a) / N_Z(a) - S / N) * N_Z(a) / (N_Z(a) - q N):

    the difference between answered groups, stretched by a factor that decisions have no part in.
    So a margin on true groups *is* a margin on answered ones, narrower by that factor, and any
    learner that keeps the second keeps the first, as far as the answers tell.

    Examples
    --------
    A thousand people, answers true with probability 3/4; 400 say "0":

    >>> answered = AnsweredGroups(counts=np.array([[400, 600]]), truth=0.75)
    >>> answered.sizes.tolist(), answered.stretch.round(3).tolist()
    ([[300.0, 700.0]], [[2.667, 1.714]])
    """

    counts: FloatArray
    """People by stratum (everybody, or those of one true class; public) and by *answer*. Shape
    (n_strata, n_groups).
    """
    truth: float = 1.0
    """Probability p of the true group, above ``1 / n_groups`` and at most 1, where answers are the
    groups themselves. Each other group is answered with ``q = (1 - p) / (n_groups - 1)``.
    """

    def __post_init__(self) -> None:
        table = np.asarray(self.counts, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] < 2 or not (table >= 0).all():
            raise ValueError(
                f"counts must be numbers of people by stratum and answer, two answers at least, "
                f"got shape {table.shape}."
            )
        object.__setattr__(self, "counts", table)
        _checks.closed_unit("truth", self.truth)
        if self.truth * self.n_groups <= 1:
            raise ValueError(
                f"truth must be above 1 / {self.n_groups}, got truth={self.truth!r}: such answers "
                f"say nothing about the group."
            )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.counts.shape[1])

    @property
    def other(self) -> float:
        """Probability of each group that is not the true one."""
        return (1.0 - self.truth) / (self.n_groups - 1)

    @property
    def totals(self) -> FloatArray:
        """People of each stratum, shape (n_strata, 1)."""
        totals: FloatArray = self.counts.sum(axis=1, keepdims=True)
        return totals

    @property
    def sizes(self) -> FloatArray:
        """Unbiased sizes of the true groups, shape (n_strata, n_groups); may be negative."""
        return unbiased_sums(self.counts, self.truth)

    @property
    def shares(self) -> FloatArray:
        """Unbiased shares of the true groups in their stratum; NaN where it is empty."""
        shares: FloatArray = self.sizes / np.where(self.totals > 0, self.totals, np.nan)
        return shares

    @property
    def standard_error(self) -> FloatArray:
        """Upper bound on the standard error of a share, shape (n_strata, 1)."""
        return share_error(self.totals, self.n_groups, self.truth)

    @property
    def stretch(self) -> FloatArray:
        """Difference of a true group's rate to everybody's, per unit of that of the answers."""
        own = self.counts - self.other * self.totals
        stretch: FloatArray = self.counts / np.where(own > 0, own, np.nan)
        return stretch

    def margins(self, notion: Notion) -> FloatArray:
        """Return how far an answered group's rate may be from everybody's, (n_strata, n_groups).

        The notion compares true groups, with its own reference; between three or more groups
        ``"pairwise"`` is kept by half the margin to everybody.
        """
        if notion.reference == "overall":
            widen = np.ones_like(self.counts)
        elif notion.reference == "rest" or self.n_groups == 2:
            # P(h | a) - P(h) is the share of the others times P(h | a) - P(h | not a).
            widen = 1.0 - self.shares
        else:
            widen = np.full_like(self.counts, 0.5)
        margins: FloatArray = notion.margin * widen / self.stretch
        return margins

    def gap(self, notion: Notion, hits: FloatArray) -> float:
        """Return the notion's gap between the true groups, as the answers tell it.

        ``hits`` (n_strata, n_groups) counts what the notion's rates count, by answer: decisions
        for a class, or wrong ones. It may be above 1, for an estimate may.
        """
        sums, sizes = unbiased_sums(hits, self.truth), self.sizes
        rates = sums / np.where(sizes > 0, sizes, np.nan)
        if notion.reference == "pairwise":
            return float(np.nanmax(np.nanmax(rates, axis=1) - np.nanmin(rates, axis=1)))
        others, among = hits.sum(axis=1, keepdims=True), self.totals
        if notion.reference == "rest":
            others, among = others - sums, among - sizes
        apart = rates - others / np.where(among > 0, among, np.nan)
        return float(np.nanmax(np.abs(apart)))

    def require_told(self, names: Sequence[str]) -> None:
        """Raise ValueError where the answers do not tell that a group has anybody in it."""
        unsure = self.shares <= SURE * self.standard_error
        if self.truth == 1.0 or not unsure.any():
            return
        stratum, group = np.argwhere(unsure)[0]
        among = "" if len(self.counts) == 1 else f" among those of label {stratum}"
        raise ValueError(
            f"The answers put the share of group {names[group]!r}{among} at "
            f"{self.shares[stratum, group]:.3f} with a standard error of "
            f"{self.standard_error[stratum, 0]:.3f}, so its rates cannot be corrected. Raise "
            f"epsilon, give more rows, or join small groups. These answers are spent: asking again "
            f"is another release."
        )


def unbiased_sums(answered: FloatArray, truth: float) -> FloatArray:
    """Turn sums over answered groups into unbiased sums over true ones, along the last axis.

    Parameters
    ----------
    answered : ndarray, shape (..., n_groups)
    truth : float
        Probability of the true answer.
    """
    other = (1.0 - truth) / (answered.shape[-1] - 1)
    out: FloatArray = (answered - other * answered.sum(axis=-1, keepdims=True)) / (truth - other)
    return out


def share_error(n_people: FloatArray, n_groups: int, truth: float) -> FloatArray:
    """Upper bound on the standard error of a group's share, from public numbers alone.

    An answer is a given group with probability p or q, so the count of it has a variance of at most
    ``n max(p (1 - p), q (1 - q))``. Infinite where there is nobody.
    """
    other = (1.0 - truth) / (n_groups - 1)
    spread = np.sqrt(max(truth * (1.0 - truth), other * (1.0 - other)))
    people = np.asarray(n_people, dtype=np.float64)
    error: FloatArray = spread / (truth - other) / np.sqrt(np.where(people > 0, people, np.nan))
    return np.nan_to_num(error, nan=np.inf)

"""How differently a noisy vote treats groups, at the teachers' votes: exact, and private."""

from __future__ import annotations

import numpy as np

from evenhand import _checks
from evenhand._private import Private
from evenhand.fairness.bounds import vote_rates
from evenhand.privacy import GNMax
from evenhand.typing import ArrayLike, FloatArray
from evenhand.voting.blocks import Mechanism
from evenhand.voting.votes import Votes


class ExpectedRates(Private):
    """Expected rate of each class in each group's noisy votes; prints as ``<private>``."""

    __slots__ = ("__rates",)

    _way_out = (
        "An expected disparity is computed from private votes and is itself private. Report the "
        "disparity of released answers; inside the curator's own walls, call reveal_to_curator()."
    )

    __rates: FloatArray

    def __init__(self, rates: FloatArray) -> None:
        object.__setattr__(self, "_ExpectedRates__rates", rates)

    def reveal_to_curator(self) -> FloatArray:
        """Return rates, shape (n_groups, n_classes); NaN for an empty group. Do not publish."""
        return self.__rates.copy()

    def reveal_disparity_to_curator(self) -> float:
        """Return the largest difference between two groups, in [0, 1]. Do not publish."""
        apart = np.nanmax(self.__rates, axis=0) - np.nanmin(self.__rates, axis=0)
        return float(apart.max())


def expected_rates(
    votes: Votes, groups: ArrayLike, mechanism: Mechanism, *, n_groups: int
) -> ExpectedRates:
    """Mean probability of each class to win the noisy vote, per group of queries.

    For two classes the mean over the group of ``Phi((2 n1 - K) / (sigma sqrt 2))``: what SF-PATE's
    Theorem 2 bounds by a distance between joint distributions of votes. That each teacher is nearly
    fair says nothing about it (``docs/theory.md``).

    Parameters
    ----------
    votes : Votes
        Private, and so is the result.
    groups : array-like of int, shape (n_queries,)
        Group codes.
    mechanism : GNMax
        Its noise is taken as continuous.
    n_groups : int
        Number of groups, those without a query included.

    Examples
    --------
    >>> votes = Votes.of([[0, 1], [1, 1], [0, 1]], n_classes=2)
    >>> expected_rates(votes, [0, 1], GNMax(sigma=2.0), n_groups=2)
    <private>
    """
    if not isinstance(mechanism, GNMax):
        raise TypeError(
            f"mechanism must be a GNMax, got {mechanism!r}: the formula is for Gaussian noise, and "
            f"a check that stops queries leaves rows out. Of a ConfidentGNMax pass its .answer."
        )
    z = _checks.codes("groups", groups, n_groups)
    _checks.same_length(votes=votes, groups=z)
    probabilities = vote_rates(votes.counts, sigma=mechanism.sigma)
    sizes = np.bincount(z, minlength=n_groups).astype(np.float64)
    rates = np.full((n_groups, votes.n_classes), np.nan)
    for group in np.flatnonzero(sizes):
        rates[group] = probabilities[z == group].mean(axis=0)
    return ExpectedRates(rates)

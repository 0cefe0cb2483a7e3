"""Noisy shares of the votes: every public row asked once, the whole histogram released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.privacy import Ledger, NoisyHistogram
from evenhand.typing import FloatArray, IntArray
from evenhand.voting.votes import Votes


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """What the teachers said about each public row, in noisy shares. Public.

    Parameters
    ----------
    shares : ndarray of float64, shape (n_queries, n_classes)
        Released shares; noise takes them outside [0, 1], and rows sum to one for two classes only.
    sigma : float
        Standard deviation of the noise of one share: that of the count over the teachers.
    groups : ndarray of int64 or None, shape (n_queries,)
        Public group codes of the rows.
    """

    shares: FloatArray
    sigma: float
    groups: IntArray | None

    def __post_init__(self) -> None:
        if self.shares.ndim != 2 or not np.isfinite(self.shares).all():
            raise ValueError("shares must be finite, with shape (n_queries, n_classes).")
        _checks.positive("sigma", self.sigma)

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.shares.shape[1])

    @property
    def n_asked(self) -> int:
        """Number of rows that were asked: all."""
        return len(self)

    @property
    def n_answered(self) -> int:
        """Number of rows whose shares were released: all."""
        return len(self)

    @property
    def n_rejected(self) -> int:
        """Number of refusals: none, a share is not a decision about anybody."""
        return 0

    @property
    def coverage(self) -> float:
        """Share of the rows that carry an answer: 1."""
        return 1.0

    def table(self) -> dict[str, int]:
        """Return what became of the rows, in words."""
        return {"answered with noisy shares": len(self)}

    def __repr__(self) -> str:
        return f"Shares(n_queries={len(self)}, n_classes={self.n_classes}, sigma={self.sigma:.3g})"


def release_shares(
    votes: Votes, mechanism: NoisyHistogram, ledger: Ledger, *, groups: IntArray | None = None
) -> Shares:
    """Release the noisy shares of all votes at once.

    Raises
    ------
    BudgetExceeded
        If the budget does not cover all rows; nothing is charged then.

    Privacy
    -------
    Cost: ``len(votes)`` histograms, charged before any noise is drawn. What a released row costs
    covers the whole noisy histogram: a student that knows the noise learns more from it than from
    the winner alone, at the same price.
    """
    noisy = ledger.release(mechanism, votes.counts, purpose="shares of the votes on public rows")
    return Shares(
        shares=noisy / votes.n_teachers,
        sigma=mechanism.sigma / votes.n_teachers,
        groups=groups,
    )

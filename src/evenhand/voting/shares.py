"""Noisy shares of the votes: the whole histogram of a row released, in one round or in several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from evenhand import _checks
from evenhand.privacy import Ledger, NoisyHistogram
from evenhand.privacy.noise import Noise
from evenhand.typing import FloatArray, IntArray
from evenhand.voting.votes import Votes


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """What the teachers said about each public row, in noisy shares. Public.

    Parameters
    ----------
    shares : ndarray of float64, shape (n_queries, n_classes)
        Released shares; noise takes them outside [0, 1], and rows sum to one for two classes only.
        A row that was asked more than once has the mean of its answers, weighted by precision.
    variance : ndarray of float64, shape (n_queries,)
        Variance of the noise of one share of each row: that of the count over the teachers squared.
    n_asked : int
        Histograms that were released; more than there are rows where some were asked again.
    groups : ndarray of int64 or None, shape (n_queries,)
        Public group codes of the rows.
    """

    shares: FloatArray
    variance: FloatArray
    n_asked: int
    groups: IntArray | None

    def __post_init__(self) -> None:
        if self.shares.ndim != 2 or not np.isfinite(self.shares).all():
            raise ValueError("shares must be finite, with shape (n_queries, n_classes).")
        if self.variance.shape != (len(self.shares),) or not (self.variance > 0).all():
            raise ValueError(
                f"variance must be one positive number for each of the {len(self.shares)} rows, "
                f"got shape {self.variance.shape}."
            )
        _checks.at_least("n_asked", self.n_asked, len(self.shares))

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.shares.shape[1])

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
        table = {"answered with noisy shares": len(self)}
        if again := self.n_asked - len(self):
            table["asked again where the student was unsure"] = again
        return table

    def __repr__(self) -> str:
        return (
            f"Shares(n_queries={len(self)}, n_classes={self.n_classes}, n_asked={self.n_asked}, "
            f"sigma={np.sqrt(np.median(self.variance)):.3g})"
        )


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """A plan: which histogram is drawn in each round, and how many rows each round asks.

    Examples
    --------
    >>> plan = Rounds.once(NoisyHistogram(sigma=40.0, n_classes=2), 1000)
    >>> plan.n_asked, plan.uses
    (1000, {NoisyHistogram(sigma=40.0, n_classes=2): 1000})
    """

    histograms: tuple[NoisyHistogram, ...]
    """One for each round, all of the same number of classes."""
    n_rows: tuple[int, ...]
    """Rows asked in each round. The first asks all rows; later ones at most as many."""

    def __post_init__(self) -> None:
        if not self.histograms or len(self.histograms) != len(self.n_rows):
            raise ValueError(
                f"Rounds needs one histogram for each round, and at least one round; got "
                f"{len(self.histograms)} histograms and {len(self.n_rows)} numbers of rows."
            )
        if len({histogram.n_classes for histogram in self.histograms}) > 1:
            raise ValueError("All histograms of Rounds must have the same number of classes.")
        for n in self.n_rows:
            _checks.at_least("n_rows", n, 1)
        if max(self.n_rows) > self.n_rows[0]:
            raise ValueError(
                f"The first round asks all rows, so no later one can ask more: n_rows={self.n_rows}"
            )

    @classmethod
    def once(cls, histogram: NoisyHistogram, n_rows: int) -> Rounds:
        """Return the plan that asks every row once."""
        return cls(histograms=(histogram,), n_rows=(n_rows,))

    @property
    def n_asked(self) -> int:
        """Histograms that are released in all rounds."""
        return sum(self.n_rows)

    @property
    def uses(self) -> dict[NoisyHistogram, int]:
        """How often each histogram is used; rounds with equal noise are added up."""
        uses: Counter[NoisyHistogram] = Counter()
        for histogram, n in zip(self.histograms, self.n_rows, strict=True):
            uses[histogram] += n
        return dict(uses)

    def mu_squared(self, noise: Noise) -> float:
        """Cost of all rounds."""
        return sum(histogram.mu_squared(noise) * n for histogram, n in self.uses.items())


Unsure: TypeAlias = Callable[[Shares], FloatArray]
"""From all shares released so far to one number for each row; the largest are asked again."""


def histogram_for(ledger: Ledger, n_rows: int, n_classes: int, mu_squared: float) -> NoisyHistogram:
    """Return the least noisy histogram that can be drawn ``n_rows`` times for this cost."""
    moved = 1.0 if n_classes == 2 else 2.0
    votes = round(1e6 * ledger.noise.gaussian_mu(1e6))  # that one unit moves
    sigma = votes * math.sqrt(moved * n_rows / mu_squared)
    # Discrete noise costs a little more than 1 / sigma**2: widen until it fits.
    while True:
        found = NoisyHistogram(sigma=sigma, n_classes=n_classes)
        over = found.mu_squared(ledger.noise) * n_rows / mu_squared
        if over <= 1:
            return found
        sigma *= math.sqrt(over) * (1 + 1e-9)


def release_shares(
    votes: Votes,
    plan: Rounds | NoisyHistogram,
    ledger: Ledger,
    *,
    unsure: Unsure | None = None,
    groups: IntArray | None = None,
) -> Shares:
    """Release noisy shares: of all rows, and then again of those that matter most.

    Parameters
    ----------
    votes : Votes
        Private.
    plan : Rounds or NoisyHistogram
        A single histogram asks every row once.
    ledger : Ledger
        Charged with all rounds before the first noise is drawn.
    unsure : callable, optional
        Ranks the rows for the next round. Needed with more than one round. It must read public
        values and the shares that it is given, and nothing else.
    groups : ndarray of int64, optional
        Public group codes of the rows.

    Raises
    ------
    ValueError
        If the plan does not ask all rows first, or has rounds and no ``unsure``.
    BudgetExceeded
        If the budget does not cover all rounds; nothing is charged then.

    Privacy
    -------
    Cost: ``plan.n_asked`` histograms. What a released row costs covers the whole noisy histogram:
    a student that knows the noise learns more from it than from the winner alone, at the same
    price. Later rounds are chosen by what was released before, which Gaussian DP composes without
    loss (Dong, Roth and Su 2022, Corollary 3.3, holds for adaptive choices).
    """
    if isinstance(plan, NoisyHistogram):
        plan = Rounds.once(plan, len(votes))
    if plan.n_rows[0] != len(votes):
        raise ValueError(
            f"The first round must ask all {len(votes)} rows, the plan asks {plan.n_rows[0]}."
        )
    if unsure is None and len(plan.n_rows) > 1:
        raise ValueError(
            f"A plan of {len(plan.n_rows)} rounds needs unsure=, which ranks the rows to ask again."
        )
    total = np.zeros((len(votes), votes.n_classes))
    precision = np.zeros(len(votes))
    asked = 0
    with ledger.reserve(plan.uses, purpose="shares of the votes") as grant:
        drawn = {histogram: grant.draw(histogram, votes.n_classes) for histogram in plan.uses}
        rows = np.arange(len(votes))
        for histogram, n in zip(plan.histograms, plan.n_rows, strict=True):
            if asked:
                assert unsure is not None
                so_far = _shares(total, precision, asked, groups)
                rows = np.argsort(-unsure(so_far), kind="stable")[:n]
            noise, drawn[histogram] = drawn[histogram][:n], drawn[histogram][n:]
            said = histogram.decide(votes.counts[rows], noise) / votes.n_teachers
            weight = (votes.n_teachers / histogram.sigma) ** 2
            total[rows] += weight * said
            precision[rows] += weight
            asked += n
    return _shares(total, precision, asked, groups)


def _shares(
    total: FloatArray, precision: FloatArray, asked: int, groups: IntArray | None
) -> Shares:
    return Shares(
        shares=total / precision[:, None], variance=1.0 / precision, n_asked=asked, groups=groups
    )

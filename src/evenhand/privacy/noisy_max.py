"""The noisy-max family: which class won the vote, and whether it won by enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _values
from evenhand._checks import at_least, positive
from evenhand._stored import stored
from evenhand.privacy.noise import Noise
from evenhand.privacy.renyi import NEIGHBORS, ORDERS, RenyiCurve
from evenhand.typing import Array, ArrayLike, BoolArray, IntArray

MOST_VOTES: Final = 2**52
"""A count and its noise must add without overflow in int64, and exactly in float64."""

_HINT = "Zero noise would release the votes exactly."


class _NoisyWinner:
    """What decides by the largest noisy count, whatever the noise."""

    neighbors: ClassVar[tuple[str, ...]] = NEIGHBORS
    delta: ClassVar[None] = None

    def decide(self, counts: ArrayLike, drawn: Array) -> IntArray:
        """Return the winning class of each row of ``counts`` (n, n_classes) plus ``drawn``.

        The first class with the largest noisy count.
        """
        votes = _votes(counts)
        if drawn.shape != votes.shape:
            raise ValueError(
                f"drawn must have the shape of counts {votes.shape}, got {drawn.shape}."
            )
        winners: IntArray = (votes + drawn).argmax(axis=1).astype(np.int64, copy=False)
        return winners

    def decide_row(self, row: Sequence[int], drawn: Sequence[float]) -> int:
        """Decide one query, in plain numbers: where every answer changes what is asked next."""
        noisy = [votes + noise for votes, noise in zip(row, drawn, strict=True)]
        return noisy.index(max(noisy))


@stored
@dataclass(frozen=True, kw_only=True)
class GNMax(_NoisyWinner):
    """Report the class with the most votes after adding Gaussian noise to the counts.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in votes. Greater than 0.

    Privacy
    -------
    Neighbors : replace one private record, or add or remove one unit; it sits in one partition,
        so one teacher moves its vote.
    Sensitivity : one count falls by 1 and one rises by 1, hence L2 sensitivity sqrt(2).
    Cost : two counts that move by 1, hence ``mu**2 = 2 / sigma**2`` per query under Gaussian
        noise (Dong, Roth and Su 2019, Theorem 2.7), and a little more under discrete noise;
        ``rdp(alpha) = alpha / sigma**2`` (Papernot et al. 2018, Proposition 8).

    Notes
    -----
    A tie goes to the first class. Integer noise ties with positive probability; the rule for
    ties reads the noisy counts only, so it is post-processing and costs nothing.

    Examples
    --------
    >>> round(GNMax(sigma=40.0).cost(1000).epsilon(delta=1e-5), 3)
    5.378
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive("sigma", self.sigma, _HINT))

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one query, whatever the votes are."""
        mu = noise.gaussian_mu(self.sigma)
        return 2.0 * (mu * mu)

    def cost(self, n_queries: int) -> RenyiCurve:
        """Rényi cost of ``n_queries`` queries, as the papers count it."""
        return RenyiCurve(ORDERS, ORDERS / self.sigma**2) * at_least("n_queries", n_queries, 0)

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` queries, shape (n, n_classes). For the ledger only."""
        return noise.gaussian(self.sigma, (n, n_classes))


@stored
@dataclass(frozen=True, kw_only=True)
class LNMax(_NoisyWinner):
    """Report the class with the most votes after adding Laplace noise to the counts.

    Parameters
    ----------
    scale : float
        Scale of the noise, in votes: its standard deviation is ``sqrt(2) * scale``.

    Privacy
    -------
    Neighbors : as for ``GNMax``.
    Sensitivity : one count falls by 1 and one rises by 1, hence L1 sensitivity 2.
    Cost : each query is (2 / scale, 0)-differentially private (Papernot et al. 2017, Section 3).
        The ledger charges the smallest ``mu`` that covers one count, twice.

    Examples
    --------
    >>> round(LNMax(scale=20.0).cost(100).epsilon(delta=1e-5), 3)
    3.127
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale, _HINT))

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one query, whatever the votes are."""
        mu = noise.laplace_mu(self.scale)
        return 2.0 * (mu * mu)

    def cost(self, n_queries: int) -> RenyiCurve:
        """Rényi cost: two Laplace mechanisms per query (Mironov 2017, Proposition 6)."""
        a = ORDERS
        one_count = np.logaddexp(
            np.log(a / (2 * a - 1)) + (a - 1) / self.scale,
            np.log((a - 1) / (2 * a - 1)) - a / self.scale,
        ) / (a - 1)
        return RenyiCurve(ORDERS, 2.0 * one_count) * at_least("n_queries", n_queries, 0)

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` queries, shape (n, n_classes). For the ledger only."""
        return noise.laplace(self.scale, (n, n_classes))


@dataclass(frozen=True, kw_only=True)
class NoisyThreshold:
    """Report whether the largest count, plus noise, reaches a threshold.

    Parameters
    ----------
    threshold : float
        Votes that the noisy largest count must reach.
    sigma : float
        Standard deviation of the noise, in votes. Greater than 0.

    Privacy
    -------
    Neighbors : as for ``GNMax``.
    Sensitivity : when one teacher moves its vote, the largest count moves by at most 1; so does
        the largest over any set of classes fixed without looking at the votes.
    Cost : ``mu**2 = 1 / sigma**2`` per query under Gaussian noise;
        ``rdp(alpha) = alpha / (2 * sigma**2)`` (Mironov 2017, Proposition 7).

    Examples
    --------
    >>> check = NoisyThreshold(threshold=30.0, sigma=10.0)
    >>> check.decide([[35, 5], [21, 19]], drawn=np.array([-2, 3]))
    array([ True, False])
    """

    neighbors: ClassVar[tuple[str, ...]] = NEIGHBORS
    delta: ClassVar[None] = None

    threshold: float
    sigma: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got threshold={self.threshold!r}.")
        object.__setattr__(self, "threshold", float(self.threshold))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma, _HINT))

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one check, whatever the votes are."""
        mu = noise.gaussian_mu(self.sigma)
        return mu * mu

    def cost(self, n_checks: int) -> RenyiCurve:
        """Rényi cost of ``n_checks`` checks, as the papers count it."""
        return RenyiCurve(ORDERS, ORDERS / (2.0 * self.sigma**2)) * at_least(
            "n_checks", n_checks, 0
        )

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` checks, shape (n,). For the ledger only."""
        return noise.gaussian(self.sigma, (n,))

    def decide(
        self, counts: ArrayLike, drawn: Array, admissible: ArrayLike | None = None
    ) -> BoolArray:
        """Return which rows of ``counts`` (n, n_classes) reach the threshold.

        Parameters
        ----------
        counts : array of int, shape (n, n_classes)
            Votes.
        drawn : array, shape (n,)
            Noise.
        admissible : array of bool, shape (n, n_classes) or (n_classes,), optional
            Classes among which the largest count is sought. It must be public: computed without
            these votes. Each row needs at least one.

        Returns
        -------
        array of bool, shape (n,)
            True where the noisy largest count is at least the threshold.
        """
        votes = _votes(counts)
        if drawn.shape != votes.shape[:1]:
            raise ValueError(
                f"drawn must hold one number per row of counts {votes.shape}, got {drawn.shape}."
            )
        largest = votes.max(axis=1) if admissible is None else _largest(votes, admissible)
        reached: BoolArray = largest + drawn >= self.threshold
        return reached

    def decide_row(
        self, row: Sequence[int], drawn: float, admissible: Iterable[int] | None = None
    ) -> bool:
        """Decide one query, in plain numbers; ``admissible`` lists classes, all if not given."""
        largest = max(row) if admissible is None else max([row[k] for k in admissible])
        return largest + drawn >= self.threshold


@stored
@dataclass(frozen=True, kw_only=True)
class ConfidentGNMax:
    """Check first that the teachers agree, then report the class that won: two mechanisms.

    Parameters
    ----------
    threshold : float
        Votes that the noisy largest count must reach for an answer.
    sigma_check : float
        Standard deviation of the noise of the check, in votes.
    sigma : float
        Standard deviation of the noise of the answer, in votes.

    Privacy
    -------
    Cost : every query pays for its check, and a query that passes pays for its answer
        (Papernot et al. 2018, Algorithm 1); ``mu**2 = 1 / sigma_check**2 + 2 / sigma**2``.

    Examples
    --------
    >>> cautious = ConfidentGNMax(threshold=200.0, sigma_check=150.0, sigma=40.0)
    >>> cautious.answer
    GNMax(sigma=40.0)
    >>> round(cautious.cost(n_checks=1000, n_answers=500).epsilon(delta=1e-5), 3)
    3.761
    """

    neighbors: ClassVar[tuple[str, ...]] = NEIGHBORS
    delta: ClassVar[None] = None

    threshold: float
    sigma_check: float
    sigma: float

    def __post_init__(self) -> None:
        positive("sigma_check", self.sigma_check, _HINT)
        _ = self.check, self.answer  # their own checks of the other two

    @property
    def check(self) -> NoisyThreshold:
        """The first stage."""
        return NoisyThreshold(threshold=self.threshold, sigma=self.sigma_check)

    @property
    def answer(self) -> GNMax:
        """The second stage."""
        return GNMax(sigma=self.sigma)

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one query that is answered: both stages."""
        return self.check.mu_squared(noise) + self.answer.mu_squared(noise)

    def cost(self, n_checks: int, n_answers: int) -> RenyiCurve:
        """Rényi cost of ``n_checks`` checks and ``n_answers`` answers, as the papers count it."""
        return self.check.cost(n_checks) + self.answer.cost(n_answers)


def _largest(votes: IntArray, admissible: ArrayLike) -> IntArray:
    """Largest count of each row among its admissible classes."""
    mask = np.asarray(admissible)
    if mask.dtype != np.bool_ or mask.shape not in (votes.shape, votes.shape[1:]):
        raise ValueError(
            f"admissible must be boolean with shape {votes.shape} or {votes.shape[1:]}, "
            f"got {mask.dtype} with shape {mask.shape}."
        )
    mask = np.broadcast_to(mask, votes.shape)
    closed = np.flatnonzero(~mask.any(axis=1))
    if closed.size:
        raise ValueError(
            f"admissible leaves no class in {_values.row(int(closed[0]))}. Skip such a query "
            f"before asking: the skip is public and costs nothing."
        )
    largest: IntArray = np.where(mask, votes, -1).max(axis=1)
    return largest


def _votes(counts: ArrayLike) -> IntArray:
    """Check that counts are whole: sensitivity and discrete noise are stated for such."""
    votes: Array = np.asarray(counts)
    if votes.ndim != 2 or votes.shape[1] < 1:
        raise ValueError(f"counts must have shape (n, n_classes), got {votes.shape}.")
    if not np.issubdtype(votes.dtype, np.integer):
        raise TypeError(
            f"counts must be whole numbers of votes, got dtype {votes.dtype}. The cost of integer "
            f"noise holds for counts that move by whole votes."
        )
    if votes.size and (votes.min() < 0 or votes.max() > MOST_VOTES):
        raise ValueError(
            f"counts must lie between 0 and 2**52, got values from "
            f"{_values.count(int(votes.min()))} to {_values.count(int(votes.max()))}."
        )
    return votes.astype(np.int64, copy=False)

"""Randomised response: each person's group, true or not by a coin of that person's own."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from evenhand._checks import at_least, codes, open_unit, positive
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import SLACK, mu_from_epsilon
from evenhand.privacy.integer_noise import discrete_laplace_mu
from evenhand.privacy.noise import WORD, DiscreteNoise, Noise, SeededNoise
from evenhand.privacy.relation import GROUP_LABEL
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

RESPONSE_ACCOUNTING: Final = "k-ary randomised response (delta 0, local)"

SMALLEST_EPSILON: Final = 1e-9
"""Below it a word of 63 bits no longer tells a truthful answer from a random one."""

_LARGEST: Final = (
    64  # the answer is true with probability 1 - 2**-63 at most, which is less than this
)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse:
    """Answer with the true group, or with one of the others chosen evenly.

    Each person's answer is made apart from all others, so it could be made on that person's own
    device, and nobody need be trusted with the groups ("local" privacy): no use of the answers, by
    whomever, can cost more.

    Parameters
    ----------
    epsilon : float
        At least ``1e-9``. Above 64 the answers are those of 64.
    n_groups : int
        At least 2. Public.
    delta : float, optional
        As for ``LaplaceTable``: with it the cost is smaller, and for a ``single`` ledger.

    Privacy
    -------
    Neighbors : change one group label.
    Sensitivity : one person's label is read by that person's answer alone.
    Cost : ``epsilon`` with delta 0 (Warner 1965; Kairouz, Oh and Viswanath 2016). The answer is
        true with probability ``T / 2**63``, where T is the largest whole number whose ratio to the
        probability of a given other answer is at most ``exp(epsilon)``, decided with 80 digits; and
        the draws are of whole numbers. So the probabilities are those that are charged for.

    Notes
    -----
    A pure epsilon is no Gaussian cost. With ``delta``, ``mu_squared`` is the Gaussian whose curve
    passes through (epsilon, delta). Without, it is the least one that any epsilon-DP release keeps
    to at every delta, ``mu = 2 Phi^-1(e^eps / (1 + e^eps))``: that of discrete Laplace noise.

    Examples
    --------
    >>> response = RandomizedResponse(epsilon=1.0, n_groups=2, delta=1e-6)
    >>> round(float(response.truth), 4), response.matrix.round(3).tolist()
    (0.7311, [[0.731, 0.269], [0.269, 0.731]])
    """

    neighbors: ClassVar[tuple[str, ...]] = (GROUP_LABEL,)

    epsilon: float
    n_groups: int
    delta: float | None = None

    def __post_init__(self) -> None:
        hint = "Without randomness the groups would leave as they are."
        epsilon = positive("epsilon", self.epsilon, hint)
        if epsilon < SMALLEST_EPSILON:
            raise ValueError(
                f"epsilon must be at least {SMALLEST_EPSILON}, got epsilon={epsilon!r}: such "
                f"answers say nothing, and words of 63 bits cannot be that even."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "n_groups", at_least("n_groups", self.n_groups, 2))
        if self.delta is not None:
            object.__setattr__(self, "delta", open_unit("delta", self.delta))

    @classmethod
    def within(cls, budget: Budget, *, n_groups: int) -> RandomizedResponse:
        """Return the truest response within ``budget``, for a ledger of its own."""
        # A ledger leaves a share SLACK of its budget unused; this much less epsilon is within.
        epsilon = budget.epsilon * (1.0 - 1000.0 * SLACK)
        return cls(epsilon=epsilon, n_groups=n_groups, delta=budget.delta)

    @property
    def truth(self) -> Fraction:
        """Probability of the true group, exactly."""
        return Fraction(_truthful_words(self.epsilon, self.n_groups), WORD)

    @property
    def other(self) -> Fraction:
        """Probability of each other group, exactly."""
        return (1 - self.truth) / (self.n_groups - 1)

    @property
    def matrix(self) -> FloatArray:
        """Probability of each answer (columns) given each true group (rows)."""
        out = np.full((self.n_groups, self.n_groups), float(self.other))
        np.fill_diagonal(out, float(self.truth))
        return out

    def said(self, noise: Noise) -> str:
        """Words for the guarantee: where the answers came from."""
        if isinstance(noise, DiscreteNoise):
            return "exact random answers from the operating system's randomness"
        if isinstance(noise, SeededNoise):
            return noise.name
        return "random answers from a cryptographic generator"

    def mu_squared(self, noise: Noise) -> float:
        """``mu**2`` at every delta, or of the Gaussian with this epsilon at ``self.delta``."""
        if self.delta is None:
            return discrete_laplace_mu(1.0 / self.epsilon) ** 2
        return mu_from_epsilon(self.epsilon, self.delta) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw steps away from the truth, shape (n, n_classes). For the ledger only.

        ``n_classes`` is the number of people who answer; a step of 0 is the truth.
        """
        shape = (n, n_classes)
        lies = noise.random_words(shape) >= _truthful_words(self.epsilon, self.n_groups)
        steps = np.zeros(shape, dtype=np.int64)
        steps[lies] = 1 + _below(self.n_groups - 1, int(lies.sum()), noise)
        return steps

    def decide(self, counts: ArrayLike, drawn: Array) -> IntArray:
        """Return the answers (n, n_people) for group codes ``counts`` of the same shape."""
        groups = codes("groups", np.ravel(counts), self.n_groups).reshape(np.shape(counts))
        answers: IntArray = (groups + drawn) % self.n_groups
        return answers


def _below(n: int, size: int, noise: Noise) -> IntArray:
    """Draw numbers, even on [0, n): words beyond the last whole multiple of n are drawn again."""
    out = np.zeros(size, dtype=np.int64)
    if n == 1:
        return out
    wanting, limit = np.arange(size), WORD - WORD % n
    while wanting.size:
        words = noise.random_words((wanting.size,))
        fit = words <= limit - 1
        out[wanting[fit]] = words[fit] % n
        wanting = wanting[~fit]
    return out


@lru_cache(maxsize=1024)
def _truthful_words(epsilon: float, n_groups: int) -> int:
    """Return T, the number of words of 2**63 that mean the truth.

    ``T (k - 1) / (2**63 - T) <= exp(epsilon)``, so ``T <= 2**63 / (1 + (k - 1) exp(-epsilon))``,
    rounded down. The logarithm of the ratio falls short of epsilon by less than
    ``k exp(epsilon) / 2**63``.
    """
    with localcontext() as context:
        context.prec = 80
        shrunk = (-Decimal(min(epsilon, float(_LARGEST)))).exp() * (1 + Decimal(10) ** -70)
        most = Decimal(WORD) / (1 + (n_groups - 1) * shrunk) * (1 - Decimal(10) ** -70)
    return min(int(most), WORD - 1)

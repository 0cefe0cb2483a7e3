"""Many noisy sums over random subsets of the records: what DP-SGD releases, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar, Final

import numpy as np
from scipy.optimize import brentq

from evenhand._checks import at_least, closed_unit, non_negative, open_unit, positive
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import SLACK, epsilon_from_mu, mu_from_epsilon
from evenhand.privacy.keystream import Keystream, uniform
from evenhand.privacy.noise import WORD, Noise, require_real
from evenhand.typing import Array, BoolArray, IntArray

SUBSAMPLED_ACCOUNTING: Final = "the privacy loss distribution of the Poisson-subsampled Gaussian"

SMALLEST_AMPLIFIED: Final = 0.4
"""Below this noise multiplier the cost is taken without amplification: hardly any is left there,
and the privacy loss distribution of many such steps would fill the memory."""

# Step of the privacy loss grid times the noise multiplier. At any step the result is an upper
# bound; with less noise losses reach further, and a coarser grid is as good (1e-4 of epsilon).
_GRID, _FINEST, _COARSEST = 1e-3, 1e-4, 2e-3
_TOLERANCE: Final = 1e-4  # of the logarithm of the noise multiplier, on the safe side
_SEED_DRAWS: Final = 8


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian:
    """Release, at each of many steps, a sum over a Poisson sample plus Gaussian noise.

    At every step each record enters the sample with probability ``sampling_rate``, independently;
    what it adds to the sum is a vector of L2 norm at most ``clip_norm``; the noise has standard
    deviation ``noise_multiplier * clip_norm`` in every coordinate.

    Parameters
    ----------
    noise_multiplier : float
        Greater than 0.
    sampling_rate : float
        In (0, 1]. Public: it may not be computed from a private number of records, unless that
        number is declared public.
    n_steps : int
        At least 1. One use of this mechanism is all steps.
    clip_norm : float
        Largest norm of one record's vector. Greater than 0.
    delta : float
        The delta at which ``mu_squared`` speaks, in (0, 1).
    beside : float
        ``mu**2`` of Gaussian releases about the same records, not sampled, whose cost is counted
        together with that of the steps: before, between or after them. At least 0. They are drawn
        by the ledger that ``Grant.beside`` opens.

    Privacy
    -------
    Neighbors : add or remove one record.
    Sensitivity : L2 ``clip_norm`` at every step, also when a step depends on those before.
    Cost : ``epsilon(delta)``, from the privacy loss distribution (Koskela, Jaelkoe, Honkela 2020;
        Doroshenko et al. 2022, whose pessimistic grid makes it an upper bound), or that of
        ``n_steps`` plain Gaussian releases where this is less. One Gaussian of ``beside`` dominates
        all that stands beside the steps, and the loss distributions of dominating pairs compose,
        whatever each release follows from the others (Zhu, Dong and Wang 2022, Theorem 10; with
        releases in between Vadhan and Zhang 2023).

    Notes
    -----
    The release is not Gaussian-DP in a useful sense: its tail is heavier than that of the
    Gaussian through the same (epsilon, delta). ``mu_squared`` is the Gaussian whose curve passes
    through (epsilon(delta), delta): true at this delta, and at no smaller one. It adds up with no
    other cost, so a ledger takes it only as a ``single`` one of this delta.

    Examples
    --------
    >>> step = SubsampledGaussian(
    ...     noise_multiplier=2.0, sampling_rate=0.04, n_steps=500, clip_norm=1.0, delta=1e-5
    ... )
    >>> round(step.epsilon(delta=1e-5), 2)
    1.98
    """

    neighbors: ClassVar[tuple[str, ...]] = ("add or remove one",)

    noise_multiplier: float
    sampling_rate: float
    n_steps: int
    clip_norm: float
    delta: float
    beside: float = 0.0

    def __post_init__(self) -> None:
        hint = "Without noise the sums would leave as they are."
        object.__setattr__(
            self, "noise_multiplier", positive("noise_multiplier", self.noise_multiplier, hint)
        )
        rate = positive("sampling_rate", self.sampling_rate)
        if rate > 1:
            raise ValueError(
                f"sampling_rate must be at most 1, got sampling_rate={rate!r}. It is the "
                f"probability of a record to enter a step: expected batch size / number of records."
            )
        object.__setattr__(self, "sampling_rate", rate)
        object.__setattr__(self, "n_steps", at_least("n_steps", self.n_steps, 1))
        object.__setattr__(self, "clip_norm", positive("clip_norm", self.clip_norm))
        object.__setattr__(self, "delta", open_unit("delta", self.delta))
        object.__setattr__(self, "beside", non_negative("beside", self.beside))

    @classmethod
    def within(
        cls,
        budget: Budget,
        *,
        sampling_rate: float,
        n_steps: int,
        clip_norm: float,
        beside: float = 0.0,
    ) -> SubsampledGaussian:
        """Return the mechanism with the least noise that stays within ``budget``."""
        positive("sampling_rate", sampling_rate)
        if non_negative("beside", beside) >= budget.mu_squared * (1.0 - 100.0 * SLACK):
            raise ValueError(
                f"beside must be less than the budget's mu_squared={budget.mu_squared:.6g}, got "
                f"beside={beside:.6g}: nothing would be left for the steps."
            )
        rate = min(1.0, sampling_rate)
        sigma = _calibrated(budget.epsilon, budget.delta, rate, n_steps, beside)
        return cls(
            noise_multiplier=sigma,
            sampling_rate=sampling_rate,
            n_steps=n_steps,
            clip_norm=clip_norm,
            delta=budget.delta,
            beside=beside,
        )

    @property
    def accounting(self) -> str:
        """How its cost is counted, in the words of a claim."""
        more = ", with Gaussian releases beside it" if self.beside else ""
        return SUBSAMPLED_ACCOUNTING + more

    def epsilon(self, delta: float) -> float:
        """Upper bound on epsilon at ``delta`` for all steps, and what stands beside, together."""
        delta = open_unit("delta", delta)
        return _epsilon(self.noise_multiplier, self.sampling_rate, self.n_steps, delta, self.beside)

    def mu_squared(self, noise: Noise) -> float:
        """``mu**2`` of the Gaussian that costs the same epsilon at ``self.delta``."""
        require_real(noise)
        return mu_from_epsilon(self.epsilon(self.delta), self.delta) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` uses, shape (n * n_steps, n_classes). For the ledger only.

        ``n_classes`` is the length of the vector that each step releases.
        """
        scale = self.noise_multiplier * self.clip_norm
        return noise.gaussian(scale, (n * self.n_steps, n_classes))

    def draw_noise_by_step(self, noise: Noise, n_classes: int) -> Iterator[Array]:
        """Draw the same noise of one use, (n_classes,) at each step. For the ledger only."""
        scale = self.noise_multiplier * self.clip_norm
        return (noise.gaussian(scale, (n_classes,)) for _ in range(self.n_steps))


def poisson_batches(noise: Noise, mechanism: SubsampledGaussian, n_records: int) -> Batches:
    """Return the samples of a run: one array of row numbers per step.

    Parameters
    ----------
    noise : Noise
        With noise that protects, the samples come from a cryptographic generator of their own, for
        amplification needs samples that nobody can repeat: a ``random_state`` would betray them.
        With a seeded noise they follow from its seed.
    mechanism : SubsampledGaussian
        Names the probability and the number of steps.
    n_records : int
        Records to sample from.

    Notes
    -----
    One independent coin per record, without n coins: the records between one member of a sample
    and the next are geometric in number, and those numbers are drawn.
    """
    at_least("n_records", n_records, 0)
    return Batches(record_words(noise), mechanism.sampling_rate, mechanism.n_steps, n_records)


def record_words(noise: Noise) -> Callable[[int], IntArray]:
    """Return ``words(n)``: n whole numbers, uniform on [0, 2**63), that records are sampled by.

    With noise that protects they come from a cryptographic generator of their own, and nobody can
    repeat them; with a seeded noise they follow from its seed, which is read when they are first
    asked for.
    """
    return Keystream().words if noise.protects else _repeatable_words(noise)


def secret_coins(noise: Noise, n: int, probability: float) -> BoolArray:
    """Toss one coin per record, from the randomness of a noise that protects.

    Privacy
    -------
    Nobody can repeat the coins, so those of the other records have the same distribution whether a
    record is there or not. Coins from a public seed belong to positions: without the first record
    all others get another one (an attack on DP-SGD showed epsilon 2.8 where 0.3 was claimed).
    """
    if not noise.protects:
        raise ValueError(f"{noise!r} can be repeated, and so could these coins. Seed an rng.")
    words = noise.random_words((at_least("n_records", n, 0),))
    tossed: BoolArray = words < int(closed_unit("probability", probability) * WORD)
    return tossed


def record_keys(noise: Noise, n: int) -> IntArray:
    """Return a key for each record, uniform on [0, 2**63): of it the record's own draws follow.

    Privacy
    -------
    What a record adds may depend on draws of its own if these say nothing of the others: given the
    keys it is a function of the record, and keys of the others have the same distribution whether
    a record is there or not. Nobody may know them where noise protects (``secret_coins``).
    """
    return noise.random_words((at_least("n_records", n, 0),))


class Batches:
    """Poisson samples, drawn one after another and never twice."""

    def __init__(
        self,
        words: Callable[[int], IntArray],
        sampling_rate: float,
        n_steps: int,
        n_records: int,
    ) -> None:
        self._words = words  # words(n): n whole numbers, uniform on [0, 2**63)
        self._rate = sampling_rate
        self._left = n_steps
        self._n = n_records

    def __iter__(self) -> Iterator[IntArray]:
        return self

    def __next__(self) -> IntArray:
        if not self._left:
            raise StopIteration
        self._left -= 1
        if self._rate == 1.0:
            return np.arange(self._n)
        parts, reached = [], -1  # the last member so far
        while reached < self._n:
            expected = (self._n - 1 - reached) * self._rate
            n_drawn = int(expected + 4.0 * math.sqrt(expected)) + 8
            gaps = np.log(uniform(self._words(n_drawn))) / math.log1p(-self._rate)
            steps = np.minimum(gaps, float(self._n)).astype(np.int64) + 1
            members = reached + np.cumsum(steps)
            parts.append(members[members < self._n])
            reached = int(members[-1])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _repeatable_words(noise: Noise) -> Callable[[int], IntArray]:
    @cache
    def rng() -> np.random.Generator:
        drawn = np.ascontiguousarray(noise.gaussian(1.0, (_SEED_DRAWS,)), dtype=np.float64)
        return np.random.default_rng(drawn.view(np.uint32))

    return lambda n: rng().integers(WORD, size=n)


@lru_cache(maxsize=4096)
def _epsilon(
    noise_multiplier: float, sampling_rate: float, n_steps: int, delta: float, beside: float
) -> float:
    plain = epsilon_from_mu(math.sqrt(n_steps / noise_multiplier**2 + beside), delta)
    if sampling_rate == 1.0 or noise_multiplier < SMALLEST_AMPLIFIED:
        return plain
    import dp_accounting  # a second to import, so only when a run needs it
    from dp_accounting import pld

    grid = min(_COARSEST, max(_FINEST, _GRID / noise_multiplier))
    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=grid
    )
    event = dp_accounting.PoissonSampledDpEvent(
        sampling_rate, dp_accounting.GaussianDpEvent(noise_multiplier)
    )
    accountant.compose(event, n_steps)
    if beside:
        accountant.compose(dp_accounting.GaussianDpEvent(1.0 / math.sqrt(beside)))
    return min(plain, float(accountant.get_epsilon(delta)))


@lru_cache(maxsize=4096)
def _calibrated(
    epsilon: float, delta: float, sampling_rate: float, n_steps: int, beside: float
) -> float:
    """Return the least noise multiplier within (epsilon, delta), rounded to the safe side."""
    # The ledger keeps a share SLACK of the budget; a little more covers the root search of mu.
    kept = 1.0 - 10.0 * SLACK
    target = epsilon * kept
    # What is left for the steps. Of all of mu a share is kept: with much beside, one of the rest
    # alone would leave epsilon above the target even at ``enough``.
    mu = math.sqrt((mu_from_epsilon(epsilon, delta) * kept) ** 2 - beside)
    enough = math.sqrt(n_steps) / mu  # without amplification
    if enough <= SMALLEST_AMPLIFIED or sampling_rate == 1.0:
        return enough

    def excess(log_sigma: float) -> float:
        found = _epsilon(math.exp(log_sigma), sampling_rate, n_steps, delta, beside)
        return math.log(max(found, 1e-12) / target)

    # By the central limit theorem mu is near q sqrt(T (exp(1 / sigma^2) - 1)) (Bu et al. 2020).
    near = 1.0 / math.sqrt(math.log1p((mu / sampling_rate) ** 2 / n_steps))
    low = math.log(max(SMALLEST_AMPLIFIED, 0.9 * near))
    high = math.log(max(SMALLEST_AMPLIFIED, min(1.2 * near, enough)))
    least = math.log(SMALLEST_AMPLIFIED)
    while low > least and excess(low) <= 0:
        low = max(least, low - 0.3)
    while excess(high) > 0:
        low, high = high, high + 0.3
        if high >= math.log(enough):
            high = math.log(enough)
            break
    if low >= high or excess(low) <= 0:
        return math.exp(low)
    root = float(brentq(excess, low, high, xtol=_TOLERANCE / 4))
    while excess(root) > 0:
        root += _TOLERANCE
    return math.exp(root)

"""What the budget is spent on, fixed before anything is learnt: shares, steps, sigma."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from evenhand import _checks
from evenhand.generators.aggregators import Aggregator, TableCounts
from evenhand.privacy import Ledger
from evenhand.privacy.noise import Noise
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.typing import FloatArray, IntArray

LEAST_SNR: Final = 50.0
"""Below this predicted signal-to-noise a run warns: what is learnt is mostly noise."""


Door: TypeAlias = Callable[[IntArray], FloatArray]
"""Takes whole totals; charges, draws noise, and gives what left, in the aggregator's scale."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class Released:
    """Noisy sums as they left, in the aggregator's own scale."""

    values: FloatArray
    """Shape (n_values,)."""
    sigma: float
    """Standard deviation of the noise on each."""


@dataclass(frozen=True, kw_only=True)
class BudgetPlan:
    """A ledger, and the public plan of which share of its budget goes to which purpose."""

    ledger: Ledger
    """Everything is charged to it before noise is drawn."""
    shares: Mapping[str, float]
    """Purposes with their shares of mu squared; they sum to at most 1."""
    prefix: str = ""
    """What stands before each purpose in the ledger."""

    def __post_init__(self) -> None:
        for purpose, share in self.shares.items():
            _checks.positive(f"share of {purpose!r}", share)
        total = math.fsum(self.shares.values())
        if total > 1 + 1e-12:
            raise ValueError(f"The shares of the budget must sum to at most 1, got {total!r}.")

    @property
    def account(self) -> Ledger:
        """The ledger that the claim rests on."""
        return self.ledger

    @contextmanager
    def set_aside(self) -> Iterator[BudgetPlan]:
        """Charge the whole plan at once, or nothing: half a plan makes no generator.

        Raises
        ------
        BudgetExceeded
            With what is left. Nothing is charged then.
        """
        whole = self.ledger.budget.mu_squared
        with self.ledger.set_aside({p: whole * share for p, share in self.shares.items()}) as inner:
            yield replace(self, ledger=inner)

    def joined(self, purpose: str, others: Collection[str]) -> BudgetPlan:
        """Return the plan in which a purpose has the shares of others, which are not released.

        Privacy
        -------
        Which these are may depend on what was released before: the sum of the shares stays, and a
        filter of Gaussian costs is free (Smith and Thakurta 2022).
        """
        if not others:
            return self
        shares = {name: share for name, share in self.shares.items() if name not in others}
        shares[purpose] += math.fsum(self.shares.values()) - math.fsum(shares.values())
        return replace(self, shares=shares)

    def part(self, name: str) -> BudgetPlan:
        """Return the plan of the purposes that begin with ``name``, which it goes on to say."""
        return replace(self, shares=under(self.shares, name), prefix=self.prefix + name)

    def release(
        self, aggregator: Aggregator, total: IntArray, purpose: str, *, n_steps: int = 1
    ) -> Released:
        """Release one sum; with ``n_steps`` it is one of so many of the same purpose."""
        mechanism = self.mechanism(aggregator, purpose, n_steps=n_steps)
        noisy = self.ledger.release(mechanism, total[None, :], purpose=self.prefix + purpose)
        return Released(values=noisy[0] * aggregator.unit, sigma=mechanism.sigma * aggregator.unit)

    def release_counts(self, codes: IntArray, n: int, purpose: str, *, per_unit: int) -> Released:
        """Release how many records have each of ``n`` codes."""
        counter = TableCounts(shapes=((1, n),), per_unit=per_unit)
        return self.release(counter, counter.total([(0 * codes, codes)]), purpose)

    def door(
        self, aggregator: Aggregator, purpose: str, *, n_steps: int, length: int | None = None
    ) -> Door:
        """Return what releases one total after the other, each charged when it comes.

        Given the ``length`` of a total all are charged now, together, and have their noise.
        """
        mechanism = self.mechanism(aggregator, purpose, n_steps=n_steps)
        said, left = self.prefix + purpose, []
        if length is not None:
            with self.ledger.reserve({mechanism: n_steps}, purpose=said) as grant:
                left = list(grant.draw(mechanism, length)[::-1])

        def release(total: IntArray) -> FloatArray:
            if length is None:
                noisy = self.ledger.release(mechanism, total[None, :], purpose=said)
            else:
                noisy = mechanism.decide(total[None, :], left.pop()[None, :])
            values: FloatArray = noisy[0] * aggregator.unit
            return values

        return release

    def rounds(
        self, aggregator: Aggregator, purpose: str, *, n_rounds: int, n_blocks: int, length: int
    ) -> Rounds:
        """Return what releases one block after the other, ``n_blocks`` of them in a round."""
        mechanism = self.mechanism(aggregator, purpose, n_steps=n_rounds)
        said = self.prefix + purpose
        return Rounds(self.ledger, mechanism, said, n_blocks, length, aggregator.unit)

    def mechanism(self, aggregator: Aggregator, purpose: str, *, n_steps: int = 1) -> NoisySum:
        """Return the release of which ``n_steps`` cost the share of this purpose, exactly."""
        share = self.ledger.budget.mu_squared * self.shares[purpose]
        return noisy_sum(
            aggregator,
            mu_squared=share * (1.0 - 1e-9),
            n_steps=n_steps,
            neighbors=self.ledger.neighbors,
            noise=self.ledger.noise,
        )


def under(named: Mapping[str, _Value], prefix: str) -> dict[str, _Value]:
    """Return what stands under names that begin with ``prefix``, by the rest of them.

    Examples
    --------
    >>> under({"visits: counts": 0.5, "persons: counts": 0.5}, "visits: ")
    {'counts': 0.5}
    """
    return {n.removeprefix(prefix): value for n, value in named.items() if n.startswith(prefix)}


class Rounds:
    """The door for blocks that come one after the other, one from each part of the records.

    The blocks of a pass are one vector, of which one record moves one block: one release. It is
    charged in full, and its noise drawn, when the pass begins; that later blocks depend on earlier
    ones as released is adaptive composition inside it, over disjoint parts.

    Parameters
    ----------
    ledger : Ledger
    mechanism : NoisySum
        Its sensitivity is that of one block.
    purpose : str
    n_blocks, length : int
        Blocks of a pass, and numbers of a block.
    unit : float
        What one whole number is worth.
    """

    def __init__(
        self,
        ledger: Ledger,
        mechanism: NoisySum,
        purpose: str,
        n_blocks: int,
        length: int,
        unit: float,
    ) -> None:
        self._ledger, self._mechanism, self._purpose = ledger, mechanism, purpose
        self._n_blocks, self._length, self._unit = n_blocks, length, unit
        self._left: list[FloatArray] = []

    def __call__(self, total: IntArray) -> FloatArray:
        """Release the next block."""
        if not self._left:
            with self._ledger.reserve({self._mechanism: 1}, purpose=self._purpose) as grant:
                drawn = grant.draw(self._mechanism, self._n_blocks * self._length)
            self._left = list(drawn.reshape(self._n_blocks, self._length)[::-1])
        noise = self._left.pop()
        released: FloatArray = self._mechanism.decide(total[None, :], noise[None, :])[0]
        return released * self._unit


def noisy_sum(
    aggregator: Aggregator, *, mu_squared: float, n_steps: int, neighbors: str, noise: Noise
) -> NoisySum:
    """Return the release of which ``n_steps`` cost ``mu_squared``: sigma ~ sqrt(T) / mu.

    Examples
    --------
    >>> from evenhand.generators.teacher_sums import BinaryVotes
    >>> from evenhand.privacy import Budget, FloatNoise
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> step = noisy_sum(BinaryVotes(n_rows=1), mu_squared=budget.mu_squared, n_steps=1000,
    ...                  neighbors="add or remove one", noise=FloatNoise())
    >>> round(step.sigma, 1), round(1000**0.5 / budget.mu, 1)
    (118.0, 118.0)
    """
    return NoisySum.within(mu_squared, n_steps, aggregator.l2_sensitivity(neighbors), noise)


@dataclass(frozen=True, kw_only=True)
class SignalToNoise:
    """How far the released numbers stand above their noise, as predicted."""

    value: float
    """Squared ratio of signal to noise per released number."""
    formula: str
    """How it was computed, in words."""

    @property
    def enough(self) -> bool:
        """Whether it is at least 50."""
        return self.value >= LEAST_SNR

    def warning(self, way_out: str) -> str:
        """Return the warning to the user, with the way out of a generator; empty if enough."""
        if self.enough:
            return ""
        return (
            f"the predicted signal-to-noise is {self.value:.3g}, below {LEAST_SNR:g} "
            f"({self.formula}): much of what is learnt may be noise. Raise epsilon, use more "
            f"records, or {way_out}"
        )

    def __str__(self) -> str:
        return f"predicted signal-to-noise {self.value:.3g} ({self.formula})"


def snr_of_counts(n_records: float, n_cells: int, sigma: float) -> SignalToNoise:
    """Of tables of counts: records per cell over the noise, squared.

    Examples
    --------
    >>> snr_of_counts(30_000, 64, 15.0).enough
    True
    """
    value = (max(n_records, 0.0) / n_cells / sigma) ** 2
    return SignalToNoise(
        value=value,
        formula=f"records per cell over the noise on a cell, sigma {sigma:.3g}, squared",
    )


def snr_of_gradients(n_teachers: int, mu: float, n_values: int) -> SignalToNoise:
    """Of a sum over all teachers at every step: ``n_teachers**2 mu**2 / (4 n_values)``.

    It does not depend on the number of steps: each costs a part of the budget, and all are seen.
    ``n_values`` are the numbers in one teacher's block, rows of a step times their width.

    Examples
    --------
    >>> round(snr_of_gradients(1000, mu=2.0, n_values=32 * 196).value)
    159
    """
    return SignalToNoise(
        value=n_teachers**2 * mu**2 / (4 * n_values),
        formula="teachers squared times mu squared over four times the numbers of one block",
    )

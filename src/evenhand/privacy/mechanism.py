"""What a ledger can charge for and draw: protocols of mechanisms."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol, TypeVar

from evenhand.privacy.noise import Noise
from evenhand.typing import Array, ArrayLike


class Mechanism(Hashable, Protocol):
    """What the ledger can charge for and draw: an immutable value."""

    @property
    def neighbors(self) -> tuple[str, ...]:
        """Relations between data sets for which its cost holds."""

    @property
    def delta(self) -> float | None:
        """The one delta at which its cost holds; None if it holds at all, and so adds up."""

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one use, whatever the data are."""

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Noise for ``n`` uses."""


T_co = TypeVar("T_co", covariant=True)


class SteppedMechanism(Mechanism, Protocol):
    """A mechanism of which one use is many steps."""

    def draw_noise_by_step(self, noise: Noise, n_classes: int) -> Iterator[Array]:
        """Draw the noise of one use, (n_classes,) at each step. For the ledger only."""


class JointMechanism(Mechanism, Protocol):
    """A mechanism whose cost is that of its own draws and of Gaussian releases beside them."""

    @property
    def beside(self) -> float:
        """``mu**2`` of those releases, in all."""


class Decider(Mechanism, Protocol[T_co]):
    """A mechanism whose result is a function of the counts and the noise."""

    def decide(self, counts: ArrayLike, drawn: Array) -> T_co:
        """Return the result: post-processing of the noisy counts."""

"""What every mechanism must keep: subclass the contract in your tests and name your own.

The last test is an attack: it releases two neighboring inputs thousands of times and shows how
far apart they can be told, wrongly once in a million times. That may be no more than the ledger
charges. It must also be more than half of it, or half of the noise could be missing unseen.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
import pytest

from evenhand.privacy import Budget, BudgetExceeded, FloatNoise, Ledger
from evenhand.privacy.audit import audit_epsilon_lower_bound, audit_mu_lower_bound
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.noise import InversionNoise, Noise
from evenhand.privacy.relation import attribute_of
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.typing import Array, FloatArray

FALSE_ALARM: Final = 1e-6
"""Probability that the attack fails a mechanism that keeps its claim."""

N_RELEASES: Final = 10_000


class MechanismContract:
    """What holds of every ``Mechanism``; subclass it, write :meth:`mechanism` and :meth:`pair`."""

    noises: ClassVar[tuple[Noise, ...]] = (InversionNoise(), FloatNoise())
    """Sources of noise that the mechanism is for."""

    def mechanism(self) -> Any:
        """Return the mechanism to check."""
        raise NotImplementedError("Return the mechanism to check, for example GNMax(sigma=2.0).")

    def pair(self) -> tuple[Array, Array]:
        """Return the inputs of one use for two neighbors that are as hard to hide as any.

        Each has shape (width,): counts of votes, numbers of a sum, or group codes.
        """
        raise NotImplementedError("Return two inputs of neighbors, for example one vote apart.")

    def release(self, mechanism: Any, inputs: Array, drawn: Array) -> Array:
        """Return what leaves for inputs (n, width). For a mechanism without ``decide``: the sum."""
        if not hasattr(mechanism, "decide"):
            return np.asarray(inputs + drawn)
        return np.asarray(mechanism.decide(inputs, drawn))

    def ledger(self, noise: Noise, *, uses: int, neighbors: str | None = None) -> Ledger:
        """Open a ledger that the mechanism may be charged to ``uses`` times, and no more."""
        made = self.mechanism()
        relation = made.neighbors[0] if neighbors is None else neighbors
        delta = 1e-5 if made.delta is None else made.delta
        unit = "record"
        if relation.startswith("change"):
            unit = attribute_of("person", and_class_label="class" in relation)
        price = made.mu_squared(noise) * uses
        return Ledger(
            _budget_of(price * (1.0 + 1e-6), delta),
            noise=noise,
            unit=unit,
            neighbors=relation,
            single=made.delta is not None,
        )

    def test_it_is_a_value(self) -> None:
        made, same = self.mechanism(), self.mechanism()
        assert made == same
        assert hash(made) == hash(same)
        assert copy.deepcopy(made) == made
        assert repr(made) == repr(same)
        assert type(made).__name__ in repr(made)
        for name in vars(made):
            with pytest.raises((AttributeError, TypeError)):
                setattr(made, name, getattr(made, name))

    def test_it_says_for_which_neighbors_and_at_which_delta_its_cost_holds(self) -> None:
        made = self.mechanism()
        assert made.neighbors
        assert set(made.neighbors) <= set(NEIGHBORS)
        assert made.delta is None or 0 < made.delta < 1

    def test_its_cost_is_one_number_above_0(self) -> None:
        for noise in self.noises:
            cost = self.mechanism().mu_squared(noise)
            assert 0 < cost < np.inf
            assert cost == self.mechanism().mu_squared(noise)

    def test_each_use_has_noise_of_its_own(self) -> None:
        width = len(self.pair()[0])
        for noise in self.noises:
            one = self.mechanism().draw_noise(noise, 1, width)
            # So many that a coin which seldom turns up its other side does so once.
            some = self.mechanism().draw_noise(noise, 400, width)
            assert len(some) == 400 * len(one)
            assert some.shape[1:] == one.shape[1:]
            assert len(np.unique(some)) > 1

    def test_what_leaves_is_a_function_of_input_and_noise(self) -> None:
        made, (one, other) = self.mechanism(), self.pair()
        # So many that noise of its own cannot decide all of them alike twice by chance.
        inputs = np.stack([one, other] * 50)
        for noise in self.noises:
            drawn = np.asarray(made.draw_noise(noise, len(inputs), len(one)))
            kept = drawn.copy()
            inputs.flags.writeable = drawn.flags.writeable = False
            first = self.release(made, inputs, drawn)
            assert np.array_equal(first, self.release(made, inputs, drawn))
            assert np.array_equal(drawn, kept)

    def test_the_ledger_charges_every_use_before_it_is_drawn(self) -> None:
        made, width = self.mechanism(), len(self.pair()[0])
        uses = 1 if made.delta is not None else 3
        for noise in self.noises:
            seen: list[float] = []
            watched: Any = _Watched(noise, lambda: seen.append(ledger.spent))  # noqa: B023
            ledger = self.ledger(watched, uses=uses)
            with ledger.reserve({made: uses}, purpose="contract") as grant:
                grant.draw(made, width)
            price = uses * made.mu_squared(noise)
            assert seen
            assert min(seen) == pytest.approx(price, rel=1e-5)
            assert ledger.spent == min(seen)

    def test_over_budget_nothing_is_charged_or_drawn(self) -> None:
        made = self.mechanism()
        for noise in self.noises:
            drawn: list[int] = []
            watched: Any = _Watched(noise, lambda: drawn.append(1))  # noqa: B023
            ledger = self.ledger(watched, uses=1)
            with pytest.raises(BudgetExceeded):
                ledger.reserve({made: 2}, purpose="contract")
            assert ledger.spent == 0
            assert not drawn

    def test_a_ledger_of_other_neighbors_refuses_it(self) -> None:
        for relation in set(NEIGHBORS) - set(self.mechanism().neighbors):
            ledger = self.ledger(self.noises[0], uses=1, neighbors=relation)
            with pytest.raises(ValueError, match="is about neighbors"):
                ledger.reserve({self.mechanism(): 1}, purpose="contract")
            assert ledger.spent == 0

    def test_an_attack_shows_no_more_than_is_charged_and_more_than_half(self) -> None:
        for noise in self.noises:
            made = self.mechanism()
            mu = made.mu_squared(noise) ** 0.5
            sides = self._sides(noise)
            shares = [audit_mu_lower_bound(*sides, confidence=1 - FALSE_ALARM) / mu]
            if made.delta is not None:  # only there it must hold
                epsilon = epsilon_from_mu(mu, made.delta)
                shown = audit_epsilon_lower_bound(
                    *sides, delta=made.delta, confidence=1 - FALSE_ALARM
                )
                shares.append(shown / epsilon)
            assert shares[-1] <= 1, "more can be told than the ledger charges"
            assert max(shares) > 0.5, "pair() is too hard to tell apart to judge the noise by it"

    def _sides(self, noise: Noise) -> tuple[FloatArray, FloatArray]:
        """Release either input many times: one number for each release."""
        made, (one, other) = self.mechanism(), self.pair()
        sides = []
        for inputs in (one, other):
            drawn = np.asarray(made.draw_noise(noise, N_RELEASES, len(one)))
            many = np.broadcast_to(inputs, (N_RELEASES, len(inputs)))
            left = self.release(made, many, drawn).astype(np.float64)
            sides.append(_scores(left, other - one))
        return sides[0], sides[1]


class WinnerContract(MechanismContract):
    """What holds of a mechanism that votes are answered by: one class for each row of counts."""

    n_classes: ClassVar[int] = 4
    """Classes that are counted: 2 for a mechanism of two classes."""

    def test_a_winner_is_a_class(self) -> None:
        made, rng = self.mechanism(), np.random.default_rng(0)
        counts = rng.integers(0, 9, size=(200, self.n_classes))
        for noise in self.noises:
            winners = made.decide(counts, made.draw_noise(noise, 200, self.n_classes))
            assert winners.dtype == np.int64
            assert winners.shape == (200,)
            assert winners.min() >= 0
            assert winners.max() < self.n_classes

    def test_a_landslide_wins(self) -> None:
        made, n = self.mechanism(), self.n_classes
        for noise in self.noises:
            landslide = np.eye(n, dtype=np.int64) * 10**9
            winners = made.decide(landslide, made.draw_noise(noise, n, n))
            assert winners.tolist() == list(range(n))

    def test_one_by_one_it_decides_as_it_does_all_at_once(self) -> None:
        made, rng = self.mechanism(), np.random.default_rng(1)
        counts = rng.integers(0, 9, size=(300, self.n_classes))
        for noise in self.noises:
            drawn = made.draw_noise(noise, 300, self.n_classes)
            rows = zip(counts.tolist(), drawn.tolist(), strict=True)
            one_by_one = [made.decide_row(row, own) for row, own in rows]
            assert one_by_one == made.decide(counts, drawn).tolist()


class _Watched:
    """A source of noise that says when it is drawn from."""

    def __init__(self, noise: Noise, on_draw: Callable[[], None]) -> None:
        self._noise, self._on_draw = noise, on_draw

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> Array:
        self._on_draw()
        return self._noise.gaussian(sigma, shape)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> Array:
        self._on_draw()
        return self._noise.laplace(scale, shape)

    def random_words(self, shape: tuple[int, ...]) -> Array:
        self._on_draw()
        return self._noise.random_words(shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)


def _scores(left: Array, direction: Array) -> FloatArray:
    """Return one number per release: how far it lies from one input towards the other."""
    if left.ndim == 2 and left.shape[1] == len(direction):
        return np.asarray(left @ direction, dtype=np.float64)
    return np.asarray(left, dtype=np.float64).reshape(len(left))


def _budget_of(mu_squared: float, delta: float) -> Budget:
    """Return the budget that holds this cost, to the last digits."""
    return Budget(epsilon=epsilon_from_mu(mu_squared**0.5, delta), delta=delta)

"""Every mechanism meets the published contract, and one that breaks its claim does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from evenhand.privacy import (
    FloatNoise,
    GNMax,
    LNMax,
    NoisyHistogram,
    RandomizedResponse,
    SubsampledGaussian,
)
from evenhand.privacy.noise import Noise
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.privacy.table import LaplaceTable
from evenhand.testing.mechanisms import MechanismContract, WinnerContract
from evenhand.typing import Array


class TestGNMax(WinnerContract):
    def mechanism(self) -> GNMax:
        return GNMax(sigma=2.0)

    def pair(self) -> tuple[Array, Array]:
        return np.array([11, 10]), np.array([10, 11])


class TestLNMax(WinnerContract):
    def mechanism(self) -> LNMax:
        return LNMax(scale=1.0)

    def pair(self) -> tuple[Array, Array]:
        return np.array([11, 10]), np.array([10, 11])


@dataclass(frozen=True, kw_only=True)
class DifferenceMax:
    """Of two classes the one of the larger count, by one noisy difference of sensitivity 2."""

    sigma: float
    neighbors: ClassVar[tuple[str, ...]] = NEIGHBORS
    delta: ClassVar[None] = None

    def mu_squared(self, noise: Noise) -> float:
        return 4.0 * noise.gaussian_mu(self.sigma) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        if n_classes != 2:
            raise ValueError(f"n_classes must be 2, got {n_classes}.")
        return noise.gaussian(self.sigma, (n, 1))

    def decide(self, counts: Array, drawn: Array) -> Array:
        return (counts[:, 1] - counts[:, 0] + drawn[:, 0] > 0).astype(np.int64)

    def decide_row(self, row: Sequence[int], drawn: Sequence[float]) -> int:
        return int(row[1] - row[0] + drawn[0] > 0)


class TestAWinnerOfTwoClasses(WinnerContract):
    n_classes = 2

    def mechanism(self) -> DifferenceMax:
        return DifferenceMax(sigma=4.0)

    def pair(self) -> tuple[Array, Array]:
        return np.array([11, 10]), np.array([10, 11])


class TestNoisyThreshold(MechanismContract):
    def mechanism(self) -> NoisyThreshold:
        return NoisyThreshold(threshold=10.5, sigma=1.0)

    def pair(self) -> tuple[Array, Array]:
        return np.array([10, 4]), np.array([11, 3])


@pytest.mark.parametrize("n_classes", [2, 3])
class TestNoisyHistogram(MechanismContract):
    n_classes = 2

    @pytest.fixture(autouse=True)
    def _of(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def mechanism(self) -> NoisyHistogram:
        return NoisyHistogram(sigma=1.5, n_classes=self.n_classes)

    def pair(self) -> tuple[Array, Array]:
        counts = np.full(self.n_classes, 5)
        moved = counts.copy()
        moved[:2] += (-1, 1)
        return counts, moved


class TestNoisySum(MechanismContract):
    def mechanism(self) -> NoisySum:
        return NoisySum(sigma=4.0, l2_sensitivity=5.0)

    def pair(self) -> tuple[Array, Array]:
        return np.array([0, 0]), np.array([3, 4])


@pytest.mark.parametrize("delta", [None, 1e-5])
class TestLaplaceTable(MechanismContract):
    delta: float | None = None

    @pytest.fixture(autouse=True)
    def _of(self, delta: float | None) -> None:
        self.delta = delta

    def mechanism(self) -> LaplaceTable:
        return LaplaceTable(scale=0.5, delta=self.delta)

    def pair(self) -> tuple[Array, Array]:
        return np.array([7, 0]), np.array([8, 0])


@pytest.mark.parametrize("delta", [None, 1e-5])
class TestRandomizedResponse(MechanismContract):
    delta: float | None = None

    @pytest.fixture(autouse=True)
    def _of(self, delta: float | None) -> None:
        self.delta = delta

    def mechanism(self) -> RandomizedResponse:
        return RandomizedResponse(epsilon=1.5, n_groups=2, delta=self.delta)

    def pair(self) -> tuple[Array, Array]:
        return np.array([0]), np.array([1])


class TestSubsampledGaussian(MechanismContract):
    noises = (FloatNoise(),)

    def mechanism(self) -> SubsampledGaussian:
        return SubsampledGaussian(
            noise_multiplier=1.0, sampling_rate=1.0, n_steps=1, clip_norm=2.0, delta=1e-5
        )

    def pair(self) -> tuple[Array, Array]:
        return np.array([0.0, 0.0]), np.array([2.0, 0.0])


# ---------------------------------------------------------------- broken mechanisms fail


@dataclass(frozen=True, kw_only=True)
class HalfOfTheNoise(GNMax):
    """It draws half of what it charges for."""

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        return super().draw_noise(noise, n, n_classes) / 2


@dataclass(frozen=True, kw_only=True)
class OneDrawForAll(GNMax):
    """All uses share one noise: the difference of two answers has none."""

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        return super().draw_noise(noise, 1, n_classes)


@dataclass(frozen=True, kw_only=True)
class Forgetful(GNMax):
    """It draws once more when it decides: what leaves is not what was charged."""

    def decide(self, counts: Any, drawn: Array) -> Array:
        return (np.asarray(counts) + FloatNoise().gaussian(self.sigma, drawn.shape)).argmax(axis=1)


@dataclass(kw_only=True, unsafe_hash=True)
class Changeable:
    """No value: its noise can be changed after it was charged."""

    sigma: float = 2.0
    neighbors = ("replace one",)
    delta = None

    def mu_squared(self, noise: Noise) -> float:
        return GNMax(sigma=self.sigma).mu_squared(noise)

    draw_noise = GNMax.draw_noise
    decide = GNMax.decide


BROKEN = {
    HalfOfTheNoise: "an_attack_shows_no_more_than_is_charged_and_more_than_half",
    OneDrawForAll: "each_use_has_noise_of_its_own",
    Forgetful: "what_leaves_is_a_function_of_input_and_noise",
    Changeable: "it_is_a_value",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_mechanism_fails_the_contract(broken: Any) -> None:
    class Contract(TestGNMax):
        def mechanism(self) -> Any:
            return broken(sigma=2.0)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(Contract(), f"test_{BROKEN[broken]}")()

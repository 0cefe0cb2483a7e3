"""The noisy sum: its cost bounds every shift of the declared length, discrete noise included."""

import itertools
import math

import numpy as np
import pytest
from runs import FALSE_ALARM, p_value_of_noise
from scipy.stats import norm

from evenhand.privacy import Budget, DiscreteNoise, FloatNoise, Ledger
from evenhand.privacy.gaussian import delta_from_mu
from evenhand.privacy.noisy_sum import NoisySum


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("shift", [(1, 0), (2, 0), (1, 1), (3, 1), (0, 4)])
@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_the_cost_bounds_the_exact_divergence_of_a_shift_by_discrete_noise(
    shift: tuple[int, int], sigma: float
) -> None:
    # Brute force over the grid: the two-dimensional discrete Gaussian, against itself shifted.
    grid = np.arange(-40, 41)
    one = np.exp(-(grid**2) / (2 * sigma**2))
    one /= one.sum()
    p = np.multiply.outer(one, one)
    q = np.roll(p, shift, axis=(0, 1))
    mechanism = NoisySum(sigma=sigma, l2_sensitivity=math.hypot(*shift))
    mu = math.sqrt(mechanism.mu_squared(DiscreteNoise()))
    for epsilon, (a, b) in itertools.product((0.1, 0.5, 1.0, 3.0), ((p, q), (q, p))):
        assert hockey_stick(a, b, epsilon) <= delta_from_mu(mu, epsilon) + 1e-12


def test_continuous_noise_costs_the_distance_over_sigma() -> None:
    mechanism = NoisySum(sigma=5.0, l2_sensitivity=3.0)
    assert mechanism.mu_squared(FloatNoise()) == pytest.approx(0.36)


@pytest.mark.parametrize("noise", [DiscreteNoise(), FloatNoise()])
def test_the_noise_has_the_variance_that_is_charged_for(noise: object) -> None:
    n, sigma = 20_000, 8.0
    ledger = Ledger(Budget(epsilon=1e7, delta=1e-5), noise=noise)  # type: ignore[arg-type]
    sums = np.full((1, n), 5)
    apart = ledger.release(NoisySum(sigma=sigma, l2_sensitivity=1.0), sums, purpose="test")[0] - 5

    assert p_value_of_noise(apart, sigma) > FALSE_ALARM
    assert p_value_of_noise(apart, sigma / 0.9) < FALSE_ALARM  # 10 % too small would be seen
    assert abs(apart.mean()) < sigma / np.sqrt(n) * norm.isf(FALSE_ALARM / 2)


def test_real_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="Round every contribution towards zero"):
        NoisySum(sigma=1.0, l2_sensitivity=1.0).decide(np.ones((1, 2)), np.zeros((1, 2)))


@pytest.mark.parametrize("field", ["sigma", "l2_sensitivity"])
def test_zero_is_refused(field: str) -> None:
    values = {"sigma": 1.0, "l2_sensitivity": 1.0, field: 0.0}
    with pytest.raises(ValueError, match=f"{field} must be finite and > 0"):
        NoisySum(**values)

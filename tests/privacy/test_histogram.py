"""The noisy histogram: its cost bounds every neighbor, and its noise is what it says."""

import itertools

import numpy as np
import pytest
from runs import FALSE_ALARM, p_value_of_noise
from scipy.stats import norm

from evenhand.privacy import (
    Budget,
    DiscreteNoise,
    FloatNoise,
    GNMax,
    Ledger,
    NoisyHistogram,
    SeededNoise,
)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_the_cost_is_the_largest_distance_between_neighbors(n_classes: int) -> None:
    # Brute force: five teachers, every histogram, every vote that one record can move. What is
    # released is Gaussian around `decide` without noise, so mu is the distance over sigma.
    mechanism = NoisyHistogram(sigma=3.0, n_classes=n_classes)
    still = np.zeros((1, mechanism.n_noised))
    noised = slice(1, None) if n_classes == 2 else slice(None)
    worst = 0.0
    for counts in itertools.product(range(6), repeat=n_classes):
        if sum(counts) != 5:
            continue
        for a, b in itertools.permutations(range(n_classes), 2):
            if counts[a] == 0:
                continue
            moved = np.array(counts)
            moved[a] -= 1
            moved[b] += 1
            pair = mechanism.decide([counts], still), mechanism.decide([moved], still)
            worst = max(worst, float(np.linalg.norm((pair[0] - pair[1])[0, noised])))
    assert mechanism.mu_squared(FloatNoise()) == pytest.approx((worst / 3.0) ** 2)


def test_two_classes_cost_half_of_what_a_winner_of_two_noisy_counts_costs() -> None:
    noise = FloatNoise()
    assert 2 * NoisyHistogram(sigma=7.0, n_classes=2).mu_squared(noise) == pytest.approx(
        GNMax(sigma=7.0).mu_squared(noise)
    )


def test_two_noisy_counts_sum_to_the_teachers() -> None:
    ledger = Ledger(Budget(epsilon=50.0, delta=1e-5))
    counts = np.array([[30, 70], [100, 0], [0, 100]])
    noisy = ledger.release(NoisyHistogram(sigma=9.0, n_classes=2), counts, purpose="test")
    assert np.array_equal(noisy.sum(axis=1), [100, 100, 100])


@pytest.mark.parametrize("noise", [DiscreteNoise(), FloatNoise(), SeededNoise(3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_noise_has_the_variance_that_is_charged_for(noise: object, n_classes: int) -> None:
    n, sigma = 20_000, 8.0
    ledger = Ledger(Budget(epsilon=1e7, delta=1e-5), noise=noise)  # type: ignore[arg-type]
    mechanism = NoisyHistogram(sigma=sigma, n_classes=n_classes)
    counts = np.full((n, n_classes), 5)
    apart = ledger.release(mechanism, counts, purpose="test")[:, -1] - 5
    assert p_value_of_noise(apart, sigma) > FALSE_ALARM
    assert p_value_of_noise(apart, sigma / 0.9) < FALSE_ALARM  # 10 % too small would be seen
    assert abs(apart.mean()) < sigma / np.sqrt(n) * norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize(
    ("counts", "message"),
    [([[1, 2, 3]], "shape"), ([[0.5, 1.5]], "whole numbers")],
)
def test_other_counts_are_refused(counts: list[list[float]], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        NoisyHistogram(sigma=1.0, n_classes=2).decide(counts, np.zeros((1, 1)))

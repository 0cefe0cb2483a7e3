"""Noise in shares: what a sum of discrete Gaussians costs, by its exact law."""

import math

import numpy as np
import pytest
from scipy.special import ndtri_exp

from evenhand.privacy import Budget, Ledger, NoisyHistogram
from evenhand.privacy.integer_noise import discrete_gaussian_mu
from evenhand.privacy.noise import DiscreteNoise, UnitNoise
from evenhand.privacy.shared_noise import OneShare, SharedNoise, sum_mu


def exact_mu(share: float, m: int) -> float:
    """The largest step of Phi^-1(P(S <= k)), by the law itself: all probabilities are sums."""
    width = math.ceil(9 * share)
    k = np.arange(-width, width + 1.0)
    one = np.exp(-(k**2) / (2 * share**2))
    law = one / one.sum()
    total = law
    for _ in range(m - 1):
        total = np.convolve(total, law)
    tail = np.cumsum(total)  # from the left, where probabilities are small and sums of positives
    middle = len(total) // 2
    known = tail[: middle + 1] > 1e-14 * 1e-6  # further out the cut of the law would show
    low = ndtri_exp(np.log(tail[: middle + 1][known]))
    steps = np.diff(low[low < 0])
    # The step over the middle, from P(S <= -1) to its mirror image.
    center = -2 * ndtri_exp(np.log(tail[middle - 1]))
    return float(max(steps[np.isfinite(steps)][5:].max(initial=0.0), center))


@pytest.mark.parametrize("m", [2, 3, 7, 12])
@pytest.mark.parametrize("share", [0.6, 0.8, 1.0, 1.5])
def test_the_bound_covers_the_exact_cost_and_is_near_it(share: float, m: int) -> None:
    sigma = share * math.sqrt(m)
    exact, bound = exact_mu(share, m), sum_mu(sigma, m)
    assert exact <= bound * (1 + 1e-9)
    if share >= 1:
        assert bound <= exact * 1.01


def test_a_sum_costs_more_than_the_discrete_gaussian_that_it_is_taken_for() -> None:
    """Why the term is there: at a small share the uncorrected value is below the exact cost."""
    assert exact_mu(0.5, 12) > discrete_gaussian_mu(0.5 * math.sqrt(12)) * (1 + 1e-6)
    assert exact_mu(0.5, 12) <= sum_mu(0.5 * math.sqrt(12), 12)


def test_one_share_is_a_discrete_gaussian_and_many_tiny_ones_are_no_better_than_one() -> None:
    assert sum_mu(7.0, 1) == discrete_gaussian_mu(7.0)
    assert sum_mu(2.0, 100) == discrete_gaussian_mu(0.2)
    assert exact_mu(0.3, 4) <= sum_mu(0.6, 4)
    with pytest.raises(ValueError, match="nobody is left"):
        SharedNoise(5, n_colluding=3, n_dropouts=2)


def test_the_honest_shares_have_the_noise_that_is_charged_for() -> None:
    noise = SharedNoise(20, n_colluding=4, n_dropouts=6)
    assert noise.n_honest * noise.share(30.0) ** 2 == pytest.approx(30.0**2)
    n = 2_000
    drawn = noise.gaussian(30.0, (n,))
    # All 20 answer: variance 30^2 * 20 / 10, whose estimate has this spread; 6 spreads are 2e-9.
    wanted = 30.0**2 * 20 / 10
    assert abs(drawn.var() - wanted) < 6 * wanted * math.sqrt(2 / n)
    one = OneShare(20, n_colluding=4, n_dropouts=6).gaussian(30.0, (n,))
    assert abs(one.var() - 90.0) < 6 * 90.0 * math.sqrt(2 / n)


def test_a_ledger_charges_for_the_honest_shares_and_an_owner_for_the_same() -> None:
    histogram = NoisyHistogram(sigma=30.0, n_classes=2)
    prices = {histogram.mu_squared(kind(20, n_colluding=4)) for kind in (SharedNoise, OneShare)}
    assert len(prices) == 1
    assert prices.pop() >= histogram.mu_squared(DiscreteNoise())
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-5), noise=UnitNoise(OneShare(20), 3), unit="owner")
    with ledger.reserve({histogram: 2}, purpose="a share of the noise") as grant:
        assert grant.draw(histogram, 2).shape == (2, 1)
    assert ledger.spent == pytest.approx(2 * 9 * histogram.mu_squared(OneShare(20)), rel=1e-9)

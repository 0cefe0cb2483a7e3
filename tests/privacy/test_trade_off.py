"""What a claim leaves an attacker, against the best test of the worst case it allows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.privacy.gaussian import epsilon_from_mu, mu_from_epsilon
from evenhand.privacy.trade_off import NO_BOUND, TradeOff

CLAIM = Guarantee(
    epsilon=3.0,
    delta=1e-5,
    unit="record",
    neighbors="add or remove one",
    noise="exact noise",
    accounting="exact accounting",
    public=(),
    not_covered=(),
)


def worst_case(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Four outputs that are as far apart as the claim allows (Kairouz, Oh and Viswanath 2015)."""
    kept, flipped = 1 / (1 + math.exp(-epsilon)), math.exp(-epsilon) / (1 + math.exp(-epsilon))
    member = [delta, (1 - delta) * kept, (1 - delta) * flipped, 0.0]
    return member, member[::-1]


@pytest.mark.parametrize("mu", [0.05, 0.719, 2.0])
def test_under_gaussian_noise_it_is_the_likelihood_ratio_test_by_quadrature(mu: float) -> None:
    delta = 1e-5
    epsilon = epsilon_from_mu(mu, delta) + 1e-9
    allowed = TradeOff.of(replace(CLAIM, epsilon=epsilon, delta=delta, mu_squared=mu**2))
    # The best attacker says "a member" above a threshold: x is N(mu, 1) with it, N(0, 1) without.
    for threshold in (-1.0, 0.3, mu / 2, 2.5):
        found = quad(lambda x: norm.pdf(x, mu), threshold, 40)[0]
        accused = quad(lambda x: norm.pdf(x, 0), threshold, 40)[0]
        assert float(allowed.found(accused)) == pytest.approx(found, abs=1e-7)
        assert allowed.best_guess >= (1 + found - accused) / 2 - 1e-7
        if threshold == mu / 2:
            assert allowed.best_guess == pytest.approx((1 + found - accused) / 2, abs=1e-7)
    # The area is the probability that a member's x is the larger one.
    area = quad(lambda x: norm.pdf(x, mu) * norm.cdf(x), -40, 40)[0]
    assert allowed.auc == pytest.approx(area, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
def test_of_epsilon_and_delta_it_is_reached_by_their_worst_case(
    epsilon: float, delta: float
) -> None:
    allowed = TradeOff.of(replace(CLAIM, epsilon=epsilon, delta=delta))
    member, other = worst_case(epsilon, delta)
    corners = [(sum(other[:k]), sum(member[:k])) for k in range(1, 5)]  # by falling ratio
    accused, found = np.clip(corners, 0.0, 1.0).T
    assert allowed.found(accused) == pytest.approx(found, abs=1e-12)
    assert allowed.auc == pytest.approx(float(np.trapezoid(found, accused)), abs=1e-12)
    best = sum(max(p, q) for p, q in zip(member, other, strict=True)) / 2
    assert allowed.best_guess == pytest.approx(best, rel=1e-12)


def test_a_large_epsilon_does_not_overflow() -> None:
    allowed = TradeOff.of(replace(CLAIM, epsilon=800.0))
    assert allowed.found([0.0, 0.01]) == pytest.approx([1e-5, 1.0])
    assert (allowed.auc, allowed.best_guess) == (1.0, 1.0)


@given(st.floats(0.01, 20), st.sampled_from([1e-9, 1e-5, 1e-2]))
def test_knowing_mu_never_lets_the_attacker_gain_more(epsilon: float, delta: float) -> None:
    loose = TradeOff.of(replace(CLAIM, epsilon=epsilon, delta=delta))
    mu = mu_from_epsilon(epsilon, delta)
    tight = TradeOff.of(replace(CLAIM, epsilon=epsilon, delta=delta, mu_squared=mu**2))
    shares = np.linspace(0, 1, 101)
    assert (tight.found(shares) <= loose.found(shares) + 1e-9).all()
    assert tight.auc <= loose.auc + 1e-12
    assert tight.best_guess <= loose.best_guess + 1e-12


def test_where_a_part_of_delta_was_set_aside_the_ledger_speaks_at_the_rest() -> None:
    # A mechanism that gives all away with probability 1e-7, and is Gaussian otherwise.
    ledger = Ledger(Budget(epsilon=1.0, delta=9e-7), neighbors="add or remove one")
    claim = replace(CLAIM, epsilon=1.0, delta=1e-6)
    allowed = TradeOff.of(claim, ledger)
    mu, aside = ledger.budget.mu_squared**0.5, 1e-7
    shares = np.array([0.001, 0.1, 0.5])
    exact = aside + (1 - aside) * norm.cdf(norm.ppf(shares) + mu)
    assert (allowed.found(shares) >= exact).all()
    assert allowed.found(shares) == pytest.approx(exact, abs=2e-7)
    assert allowed.auc < TradeOff.of(claim).auc - 0.1
    # The claim's own mu stands where it has one.
    known = replace(claim, mu_squared=0.25 * mu**2)
    assert TradeOff.of(known, ledger).mu == pytest.approx(mu / 2)


def test_without_a_claim_everybody_may_be_found() -> None:
    assert NO_BOUND.found([0.0, 0.5]).tolist() == [1.0, 1.0]
    assert (NO_BOUND.auc, NO_BOUND.best_guess) == (1.0, 1.0)


def test_shares_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"false_alarms must be shares in \[0, 1\], got 1.5"):
        NO_BOUND.found(1.5)

"""What a claim leaves an attacker, against the best test of the worst case it allows."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from claims import a_claim
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from evenhand import privacy
from evenhand.estimators.ledgers import SeparateLedgers
from evenhand.privacy import Budget, FloatNoise, GNMax, Guarantee, Ledger, SubsampledGaussian
from evenhand.privacy.gaussian import epsilon_from_mu, mu_from_epsilon
from evenhand.privacy.saved_claim import _NO_GAUSSIAN, SavedLedger
from evenhand.privacy.trade_off import NO_BOUND, TradeOff

PAID = GNMax(sigma=40.0)
CLAIM = a_claim(neighbors="add or remove one")


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
    ledger.release(PAID, [[190, 60]], purpose="an answer")
    claim = replace(CLAIM, epsilon=1.0, delta=1e-6)
    allowed = TradeOff.of(claim, ledger)
    mu, aside = ledger.budget.mu_squared**0.5, 1e-7
    shares = np.array([0.001, 0.1, 0.5])
    exact = aside + (1 - aside) * norm.cdf(norm.ppf(shares) + mu)
    assert (allowed.found(shares) >= exact).all()
    assert allowed.found(shares) == pytest.approx(exact, abs=2e-7)
    assert allowed.auc < TradeOff.of(claim).auc - 0.1
    assert TradeOff.of(claim, SavedLedger(record=ledger.to_dict())) == allowed
    # The claim's own mu stands where it has one.
    known = replace(claim, mu_squared=0.25 * mu**2)
    assert TradeOff.of(known, ledger).mu == pytest.approx(mu / 2)


def subsampled() -> tuple[Guarantee, Ledger, SubsampledGaussian]:
    """Return a run of one noisy step: private at one delta, and not Gaussian at its mu."""
    budget = Budget(epsilon=1.0, delta=1e-6)
    steps = SubsampledGaussian.within(budget, sampling_rate=0.02, n_steps=1, clip_norm=1.0)
    ledger = Ledger(budget, noise=FloatNoise(), neighbors="add or remove one", single=True)
    with ledger.reserve({steps: 1}, purpose="steps"):
        pass
    return replace(CLAIM, epsilon=1.0, delta=1e-6), ledger, steps


def test_a_cost_that_is_no_gaussian_one_is_told_by_epsilon_and_delta_alone() -> None:
    claim, ledger, steps = subsampled()
    allowed = TradeOff.of(claim, ledger)
    assert allowed == TradeOff.of(claim)
    # By the definition: q N(1, z^2) + (1 - q) N(0, z^2) against N(0, z^2). Far out it finds more
    # than the mu that the budget alone would give; epsilon and delta allow it.
    z, q = steps.noise_multiplier, steps.sampling_rate
    thresholds = np.linspace(-3 * z, 8 * z, 400)
    accused = norm.sf(thresholds / z)
    found = q * norm.sf((thresholds - 1) / z) + (1 - q) * accused
    assert (found <= allowed.found(accused) + 1e-15).all()
    unsound = TradeOff(epsilon=1.0, delta=1e-6, mu=ledger.budget.mu_squared**0.5)
    assert (found > 1.01 * ndtr(ndtri(accused) + unsound.mu)).any()
    saved = SavedLedger(record=ledger.to_dict())
    assert TradeOff.of(claim, saved) == TradeOff.of(claim)


def test_a_ledger_that_does_not_cover_the_whole_claim_tells_nothing() -> None:
    ledger = Ledger(Budget(epsilon=1.0, delta=9e-7), neighbors="add or remove one")
    claim = replace(CLAIM, epsilon=1.0, delta=1e-6)
    assert TradeOff.of(claim, ledger).mu is None  # nothing was charged
    ledger.release(PAID, [[190, 60]], purpose="an answer")
    assert TradeOff.of(claim, ledger).mu is not None
    others = (
        replace(claim, epsilon=2.0),  # something beside the ledger is counted
        replace(claim, delta=1e-7),
        replace(claim, unit="person"),
        replace(claim, neighbors="replace one"),
    )
    for other in others:
        assert TradeOff.of(other, ledger) == TradeOff.of(other)
    _, apart, _ = subsampled()
    both = replace(claim, epsilon=2.0, delta=1.9e-6)
    assert TradeOff.of(both, SeparateLedgers(ledger, apart)) == TradeOff.of(both)


@given(
    mu=st.floats(0.05, 4.0),
    aside=st.sampled_from([1e-9, 1e-6, 1e-3, 0.05]),
    share=st.floats(0.0, 1.0),
)
def test_with_a_part_set_aside_no_test_of_the_two_outcomes_finds_more(
    mu: float, aside: float, share: float
) -> None:
    # The worst run by brute force: with probability ``aside`` a member is named outright, else
    # the output is N(mu, 1) against N(0, 1). Every threshold, and naming, is a test.
    delta = 1e-5
    epsilon = epsilon_from_mu(mu, delta) + 1e-9
    allowed = TradeOff(epsilon=epsilon, delta=delta + aside, mu=mu, slack=aside)
    accused = (1 - aside) * share
    found = aside + (1 - aside) * norm.cdf(norm.ppf(share) + mu)
    assert found <= float(allowed.found(accused)) + 1e-9
    assert (found + 1 - accused) / 2 <= allowed.best_guess + 1e-9


def test_every_cost_at_one_delta_alone_is_known_as_one() -> None:
    known = [
        kind
        for kind in vars(privacy).values()
        if isinstance(kind, type) and hasattr(kind, "mu_squared") and is_dataclass(kind)
    ]
    # A mechanism has its one delta as a field; one whose costs add up says None for all of it.
    alone = {kind.__name__ for kind in known if "delta" in {f.name for f in fields(kind)}}
    alone -= {"Budget", "Guarantee"}
    assert "SubsampledGaussian" in alone
    assert alone <= set(_NO_GAUSSIAN)
    assert {"GNMax", "NoisyHistogram"} <= {kind.__name__ for kind in known} - alone


def test_without_a_claim_everybody_may_be_found() -> None:
    assert NO_BOUND.found([0.0, 0.5]).tolist() == [1.0, 1.0]
    assert (NO_BOUND.auc, NO_BOUND.best_guess) == (1.0, 1.0)


def test_shares_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"false_alarms must be shares in \[0, 1\], got 1.5"):
        NO_BOUND.found(1.5)

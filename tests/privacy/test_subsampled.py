"""The cost of many subsampled sums: second derivations, laws, samples, and an attack."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import dp_accounting
import numpy as np
import pytest
from claims import a_claim
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import FALSE_ALARM, p_value_of_noise
from scipy import stats
from scipy.integrate import quad

from evenhand.privacy import (
    Budget,
    DiscreteNoise,
    FloatNoise,
    Ledger,
    SeededNoise,
    SubsampledGaussian,
    audit_epsilon_lower_bound,
)
from evenhand.privacy.gaussian import epsilon_from_mu, mu_from_epsilon
from evenhand.privacy.noise import Noise
from evenhand.privacy.subsampled import poisson_batches, record_keys


def own_ledger(budget: Budget, noise: Noise) -> Ledger:
    return Ledger(budget, noise=noise, neighbors="add or remove one", single=True)


def mechanism(**changes: Any) -> SubsampledGaussian:
    values: dict[str, Any] = {
        "noise_multiplier": 2.0,
        "sampling_rate": 0.04,
        "n_steps": 500,
        "clip_norm": 1.0,
        "delta": 1e-5,
    }
    return SubsampledGaussian(**(values | changes))


def integrated(sigma: float, q: float, beyond: Callable[[float, Any, Any], float]) -> float:
    """Integrate over the densities N(0) and (1 - q) N(0) + q N(1), the worse of both directions."""

    def p(x: float) -> float:
        return float(stats.norm.pdf(x, 0, sigma))

    def mixed(x: float) -> float:
        return (1 - q) * p(x) + q * float(stats.norm.pdf(x, 1, sigma))

    pieces = list(pairwise(np.linspace(-12 * sigma, 12 * sigma + 1, 41)))
    return max(
        sum(quad(beyond, *piece, args=pair, limit=400)[0] for piece in pieces)
        for pair in ((mixed, p), (p, mixed))
    )


def delta_of_one_step(sigma: float, q: float, epsilon: float) -> float:
    """Hockey-stick divergence of N(0) and (1 - q) N(0) + q N(1), the worse of both directions."""

    def beyond(x: float, a: Any, b: Any) -> float:
        return max(0.0, a(x) - math.exp(epsilon) * b(x))

    return integrated(sigma, q, beyond)


@pytest.mark.parametrize(("sigma", "q"), [(0.8, 0.1), (1.5, 0.3), (3.0, 0.5)])
def test_one_step_costs_what_integrating_the_densities_gives(sigma: float, q: float) -> None:
    step = mechanism(noise_multiplier=sigma, sampling_rate=q, n_steps=1, delta=1e-4)
    exact = delta_of_one_step(sigma, q, step.epsilon(1e-4))
    # An upper bound on epsilon: at it the true delta is at most 1e-4, and not much less.
    assert 0.97e-4 < exact <= 1e-4 * (1 + 1e-6)


@pytest.mark.parametrize(("sigma", "q", "steps"), [(8.1, 0.038, 1500), (1.1, 0.01, 1000)])
def test_the_cost_lies_below_the_renyi_bound_and_agrees_with_dp_accounting(
    sigma: float, q: float, steps: int
) -> None:
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    renyi = rdp.RdpAccountant().compose(event, steps)
    fine = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=5e-5
    ).compose(event, steps)
    ours = mechanism(noise_multiplier=sigma, sampling_rate=q, n_steps=steps).epsilon(1e-6)
    assert ours < renyi.get_epsilon(1e-6)
    # From above, by less than what one thousandth more noise would save.
    assert fine.get_epsilon(1e-6) * (1 - 1e-6) <= ours <= fine.get_epsilon(1e-6) + 1e-3


def test_a_sampling_rate_of_one_is_a_plain_gaussian() -> None:
    step = mechanism(sampling_rate=1.0, n_steps=9, noise_multiplier=6.0)
    assert step.epsilon(1e-5) == epsilon_from_mu(0.5, 1e-5)


def delta_of_one_step_and_a_gaussian(sigma: float, q: float, mu: float, epsilon: float) -> float:
    """Hockey-stick divergence of one step with one Gaussian release, the worse of both directions.

    The release is integrated in closed form: at a sum x with loss l it has the delta of a Gaussian
    at epsilon - l, which may be negative.
    """

    def beyond(x: float, a: Any, b: Any) -> float:
        left = epsilon - math.log(a(x) / b(x))
        far = stats.norm.cdf(-left / mu - mu / 2)
        return float(a(x) * (stats.norm.cdf(-left / mu + mu / 2) - math.exp(left) * far))

    return integrated(sigma, q, beyond)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "q", "mu"), [(0.8, 0.1, 0.3), (1.5, 0.3, 0.7), (3.0, 0.5, 0.1)])
def test_a_step_with_a_release_beside_costs_what_integrating_both_gives(
    sigma: float, q: float, mu: float
) -> None:
    step = mechanism(noise_multiplier=sigma, sampling_rate=q, n_steps=1, delta=1e-4, beside=mu**2)
    exact = delta_of_one_step_and_a_gaussian(sigma, q, mu, step.epsilon(1e-4))
    assert 0.97e-4 < exact <= 1e-4 * (1 + 1e-6)
    # What the step alone costs would not cover both.
    alone = mechanism(noise_multiplier=sigma, sampling_rate=q, n_steps=1, delta=1e-4)
    assert delta_of_one_step_and_a_gaussian(sigma, q, mu, alone.epsilon(1e-4)) > 1.05e-4


def test_what_stands_beside_steps_that_are_not_sampled_adds_up_in_mu_squared() -> None:
    step = mechanism(sampling_rate=1.0, n_steps=9, noise_multiplier=6.0, beside=0.11)
    assert step.epsilon(1e-5) == pytest.approx(epsilon_from_mu(0.6, 1e-5), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "rate"), [(0.5, 0.04), (3.0, 0.04), (1.0, 1.0), (50.0, 0.5)])
def test_steps_leave_room_for_what_stands_beside_them_and_no_more(
    epsilon: float, rate: float
) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    shape: dict[str, Any] = {"sampling_rate": rate, "n_steps": 200, "clip_norm": 1.0}
    beside = 0.1 * budget.mu_squared
    found = SubsampledGaussian.within(budget, **shape, beside=beside)
    assert found.beside == beside
    assert found.epsilon(1e-6) <= epsilon
    less = mechanism(
        **shape, noise_multiplier=found.noise_multiplier * 0.998, delta=1e-6, beside=beside
    )
    assert less.epsilon(1e-6) > epsilon or found.noise_multiplier < 0.41
    assert own_ledger(budget, SeededNoise(0)).affordable(found) == 1
    # Dearer than nothing beside; far cheaper than two budgets that add up by epsilon.
    alone = SubsampledGaussian.within(budget, **shape).noise_multiplier
    released = epsilon_from_mu(math.sqrt(beside), 5e-7)
    if epsilon > released:
        rest = Budget(epsilon=epsilon - released, delta=5e-7)
        split = SubsampledGaussian.within(rest, **shape).noise_multiplier
        assert alone < found.noise_multiplier < split
    assert alone < found.noise_multiplier


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps"),
    [
        (0.5, 0.04, 300),
        (1.0, 0.01, 100),
        (3.0, 0.04, 300),
        (8.0, 0.2, 50),
        (50.0, 0.5, 20),
        (1e6, 0.1, 10),
    ],
)
def test_the_calibrated_noise_fits_the_budget_and_a_little_less_does_not(
    epsilon: float, rate: float, steps: int
) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    found = SubsampledGaussian.within(budget, sampling_rate=rate, n_steps=steps, clip_norm=2.0)
    assert found.epsilon(1e-6) <= epsilon
    less = mechanism(
        noise_multiplier=found.noise_multiplier * 0.998,
        sampling_rate=rate,
        n_steps=steps,
        delta=1e-6,
    )
    amplified = found.noise_multiplier > 0.41
    assert (less.epsilon(1e-6) > epsilon) or not amplified
    # And the ledger of this budget takes it: once, and not twice.
    ledger = own_ledger(budget, SeededNoise(0))
    assert ledger.affordable(found) == 1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-4])
def test_tiny_budgets_with_much_beside_are_calibrated(epsilon: float, share: float) -> None:
    # Sampling amplifies nothing there: the noise is what the steps need without it.
    budget = Budget(epsilon=epsilon, delta=1e-9)
    beside = share * budget.mu_squared
    found = SubsampledGaussian.within(
        budget, sampling_rate=0.02, n_steps=5, clip_norm=1.0, beside=beside
    )
    assert 0.98 * epsilon < found.epsilon(1e-9) <= epsilon
    assert own_ledger(budget, SeededNoise(0)).affordable(found) == 1


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    sigma=st.floats(1.0, 6.0),
    rate=st.floats(0.005, 0.5),
    steps=st.integers(1, 30),
)
def test_more_noise_fewer_steps_and_smaller_samples_never_cost_more(
    sigma: float, rate: float, steps: int
) -> None:
    base = mechanism(noise_multiplier=sigma, sampling_rate=rate, n_steps=steps).epsilon(1e-5)
    slack = 1e-3  # of the two grids
    assert (
        mechanism(noise_multiplier=sigma * 1.2, sampling_rate=rate, n_steps=steps).epsilon(1e-5)
        <= base + slack
    )
    assert (
        mechanism(noise_multiplier=sigma, sampling_rate=rate / 2, n_steps=steps).epsilon(1e-5)
        <= base + slack
    )
    assert base <= (
        mechanism(noise_multiplier=sigma, sampling_rate=rate, n_steps=steps + 5).epsilon(1e-5)
        + slack
    )
    # Never above the same releases without sampling.
    assert base <= epsilon_from_mu(math.sqrt(steps) / sigma, 1e-5)


def test_mu_squared_is_the_gaussian_through_the_budget_at_its_delta_and_too_little_below() -> None:
    step = mechanism(noise_multiplier=1.0, sampling_rate=0.02, n_steps=100)
    mu = math.sqrt(step.mu_squared(FloatNoise()))
    assert mu == pytest.approx(mu_from_epsilon(step.epsilon(1e-5), 1e-5))
    # Why it may not be added to Gaussian costs: at a smaller delta this Gaussian promises more
    # than is true.
    assert epsilon_from_mu(mu, 1e-10) < step.epsilon(1e-10)


def test_discrete_noise_is_refused() -> None:
    ledger = own_ledger(Budget(epsilon=5.0, delta=1e-5), DiscreteNoise())
    with pytest.raises(ValueError, match=r"Gradients are real numbers.*Use FloatNoise\(\)"):
        ledger.reserve({mechanism(): 1}, purpose="wrong noise")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise_multiplier": 0.0}, r"noise_multiplier must be finite and > 0.*would leave"),
        ({"sampling_rate": 1.5}, r"sampling_rate must be at most 1, got sampling_rate=1.5"),
        ({"sampling_rate": 0.0}, r"sampling_rate must be finite and > 0"),
        ({"n_steps": 0}, r"n_steps must be at least 1, got n_steps=0"),
        ({"clip_norm": -1.0}, r"clip_norm must be finite and > 0"),
        ({"delta": 0.0}, r"delta must lie strictly between 0 and 1"),
        ({"beside": -0.1}, r"beside must be finite and >= 0"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mechanism(**changes)


def test_a_budget_without_room_for_steps_is_refused() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match=r"beside must be less than .* nothing would be left"):
        SubsampledGaussian.within(
            budget, sampling_rate=0.1, n_steps=10, clip_norm=1.0, beside=budget.mu_squared
        )


def test_noise_has_the_scale_that_is_charged() -> None:
    step = mechanism(noise_multiplier=3.0, clip_norm=0.5, n_steps=400)
    ledger = own_ledger(Budget(epsilon=10.0, delta=1e-5), SeededNoise(1))
    with ledger.reserve({step: 1}, purpose="all steps") as grant:
        drawn = grant.draw(step, 50)
    assert drawn.shape == (400, 50)
    assert p_value_of_noise(drawn, 1.5) > FALSE_ALARM
    assert p_value_of_noise(drawn, 1.5 * 1.1) < FALSE_ALARM  # noise that is 10 % off would be seen


def test_samples_are_those_of_one_independent_coin_per_record() -> None:
    n, q, steps = 40, 0.3, 4000
    batches = list(poisson_batches(SeededNoise(3), mechanism(sampling_rate=q, n_steps=steps), n))
    inside = np.zeros((steps, n), dtype=bool)
    for t, rows in enumerate(batches):
        assert len(set(rows.tolist())) == len(rows)
        inside[t, rows] = True
    # Each record: binomial. Sizes: binomial with all n coins. Pairs: q squared.
    counts = inside.sum(axis=0)
    worst = min(stats.binomtest(int(c), steps, q).pvalue for c in counts)
    assert worst * n > FALSE_ALARM
    sizes = inside.sum(axis=1)
    z = (sizes.var() / (n * q * (1 - q)) - 1) / math.sqrt(2 / steps)
    assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM
    pairs = (inside[:, :-1] & inside[:, 1:]).sum(axis=0)
    assert min(stats.binomtest(int(c), steps, q * q).pvalue for c in pairs) * n > FALSE_ALARM
    # Samples of a fixed size, the usual mistake, would be seen.
    assert (sizes == round(n * q)).mean() < 0.5


def test_samples_of_protecting_noise_cannot_be_repeated_and_seeded_ones_can() -> None:
    step = mechanism(n_steps=3, sampling_rate=0.5)

    def first(noise: Any) -> list[list[int]]:
        return [rows.tolist() for rows in poisson_batches(noise, step, 100)]

    np.random.seed(0)  # noqa: NPY002  # the global seed must not matter
    one = first(FloatNoise())
    np.random.seed(0)  # noqa: NPY002
    assert one != first(FloatNoise())
    assert first(SeededNoise(5)) == first(SeededNoise(5))
    assert first(SeededNoise(5)) != first(SeededNoise(6))


def test_its_guarantee_adds_up_by_basic_composition_only() -> None:
    from evenhand.privacy.subsampled import SUBSAMPLED_ACCOUNTING

    one = a_claim(epsilon=1.0, neighbors="add or remove one", accounting=SUBSAMPLED_ACCOUNTING)
    assert (one + one).epsilon == 2.0


@pytest.mark.slow
@pytest.mark.parametrize(("share", "convicted"), [(1.0, False), (0.5, True)])
def test_an_audit_of_one_step_convicts_half_the_noise_only(share: float, convicted: bool) -> None:
    # Distinguish "the record is there" from "it is not" by the noisy sum in its direction.
    claim = Budget(epsilon=2.0, delta=1e-5)
    step = SubsampledGaussian.within(claim, sampling_rate=0.9, n_steps=1, clip_norm=1.0)
    # Over seeds the bound is 2.4 +- .06 at half the noise with as many runs, and .6 at the claim's.
    n = 300_000
    noise = share * step.draw_noise(SeededNoise(8), 2 * n, 1)[:, 0]
    there = np.array(
        [
            len(rows)
            for rows in poisson_batches(SeededNoise(9), mechanism(sampling_rate=0.9, n_steps=n), 1)
        ]
    )
    found = audit_epsilon_lower_bound(
        noise[:n] + there, noise[n:], delta=1e-5, confidence=1 - FALSE_ALARM
    )
    assert (found > claim.epsilon) == convicted


def test_keys_of_records_are_secret_where_noise_protects_and_follow_a_seed_where_it_does_not() -> (
    None
):
    one, other = record_keys(FloatNoise(), 1000), record_keys(FloatNoise(), 1000)
    # Of 2000 words of 63 bits two are alike with a probability below 1e-12.
    assert len(np.union1d(one, other)) == 2000
    assert (one >= 0).all()
    assert np.array_equal(record_keys(SeededNoise(3), 5), record_keys(SeededNoise(3), 5))
    assert record_keys(SeededNoise(3), 0).shape == (0,)

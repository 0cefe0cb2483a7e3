import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.estimators.plan import (
    LARGEST_NOISE_SHARE,
    choose_n_teachers,
    default_mechanism,
    default_n_teachers,
    default_rounds,
    default_steps,
    network_steps,
)
from evenhand.privacy import Budget, DiscreteNoise, Ledger, SeededNoise, SubsampledGaussian


@given(
    epsilon=st.floats(0.05, 50),
    n_teachers=st.integers(10, 5000),
    n_queries=st.integers(1, 100_000),
)
def test_the_default_noise_asks_every_row_it_can_afford(
    epsilon: float, n_teachers: int, n_queries: int
) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-5)
    mechanism = default_mechanism(budget, n_teachers=n_teachers, n_queries=n_queries)
    affordable = Ledger(budget, noise=SeededNoise(0)).affordable(mechanism)
    most = round(LARGEST_NOISE_SHARE * n_teachers, 1)
    assert mechanism.sigma <= most
    if mechanism.sigma < most:
        assert n_queries - 1 <= affordable <= n_queries + 1
    else:
        assert affordable <= n_queries


def test_the_largest_noise_is_written_as_people_write_it() -> None:
    mechanism = default_mechanism(Budget(epsilon=3.0, delta=1e-5), n_teachers=106, n_queries=5000)
    assert repr(mechanism) == "GNMax(sigma=42.4)"


def test_more_budget_never_means_more_noise() -> None:
    sigmas = [
        default_mechanism(Budget(epsilon=e, delta=1e-5), n_teachers=250, n_queries=500).sigma
        for e in (0.5, 1, 2, 4, 8)
    ]
    assert sigmas == sorted(sigmas, reverse=True)
    assert sigmas[-1] == pytest.approx(
        math.sqrt(1000) / Budget(epsilon=8, delta=1e-5).mu, rel=1e-12
    )


@pytest.mark.parametrize("noise", [SeededNoise(0), DiscreteNoise()], ids=["float", "exact"])
@given(
    epsilon=st.floats(0.05, 50),
    n_queries=st.integers(1, 50_000),
    n_classes=st.integers(2, 12),
)
def test_the_rounds_spend_the_budget_and_never_more(
    noise: SeededNoise | DiscreteNoise, epsilon: float, n_queries: int, n_classes: int
) -> None:
    ledger = Ledger(Budget(epsilon=epsilon, delta=1e-5), noise=noise)
    rounds = default_rounds(ledger, n_queries=n_queries, n_classes=n_classes)
    assert rounds.n_rows[0] == n_queries
    cost = rounds.mu_squared(ledger.noise)
    assert cost <= ledger.remaining
    # Exact noise on few rows comes in steps: below about one vote a finer sigma costs the same.
    if min(histogram.sigma for histogram in rounds.histograms) > 2:
        assert cost >= 0.97 * ledger.remaining


@given(st.integers(1, 10**7), st.floats(0.01, 20.0))
def test_teachers_by_default_have_records_to_learn_from(n_private: int, mu: float) -> None:
    n = default_n_teachers(n_private, mu)
    assert 1 <= n <= max(1, n_private // 4)
    assert default_n_teachers(8 * n_private, mu) >= n
    assert default_n_teachers(n_private, mu / 8) >= n


def test_the_number_of_teachers_reads_no_private_number() -> None:
    # Whoever protects units keeps the number of units private, so nothing is computed from it.
    assert choose_n_teachers(None, n_private=None, mu=0.3)[0] == 250
    assert choose_n_teachers(None, n_private=None, mu=3.0)[0] == 250
    assert choose_n_teachers(40, n_private=10_000, mu=0.3) == (40, "40 teachers were asked for.")
    n, why = choose_n_teachers(None, n_private=8_000, mu=1.0)
    assert n == 100
    assert "5 (n / mu^2)^(1/3) for n = 8,000 private records and mu = 1.000" in why


@given(
    n=st.integers(1, 10**7),
    d=st.integers(1, 5000),
    mu=st.floats(1e-3, 10.0),
    margin=st.booleans(),
)
def test_steps_rise_with_records_and_budget_and_fall_with_columns(
    n: int, d: int, mu: float, margin: bool
) -> None:
    steps, part = default_steps(n, d, mu, margin=margin)
    assert (300 if margin else 30) <= steps <= 1500
    assert 0 < part <= 1
    for more in ((2 * n, d, mu), (n, d, 2 * mu)):
        assert default_steps(*more, margin=margin) >= (steps, part)
    assert default_steps(n, 2 * d, mu, margin=margin) <= (steps, part)
    # Between the bounds they are the signal, whatever it is made of.
    if 30 < steps < 1500 and not margin:
        assert abs(steps - n * mu / d**0.5) <= 0.5
        assert part == 1.0


@given(n=st.integers(1, 10**6), mu=st.floats(1e-2, 3.0), clip=st.floats(0.5, 4.0))
def test_the_noise_that_ends_in_a_weight_of_a_network_is_the_same_whatever_the_budget(
    n: int, mu: float, clip: float
) -> None:
    steps, rate = network_steps(n, mu, clip)
    assert 100 <= steps <= 1500
    assert network_steps(n, mu, clip, margin=True)[0] >= 300
    noise = rate * steps * clip / (mu * n)
    assert noise == pytest.approx(0.3) if rate < 2.0 else noise <= 0.3 * (1 + 1e-9)
    # Steps that are named change the rate alone.
    fewer, faster = network_steps(n, mu, clip, n_steps=50)
    assert fewer == 50
    assert faster >= rate


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("n", [2_000, 27_000])
def test_the_noise_in_a_weight_is_that_of_the_mechanism_which_pays_for_the_steps(
    n: int, epsilon: float
) -> None:
    # A second derivation: the noise of every step as the accountant sets it, added up.
    budget = Budget(epsilon=epsilon, delta=1e-5)
    steps, rate = network_steps(n, budget.mu, 1.0)
    q = min(1.0, 1024 / n)
    mechanism = SubsampledGaussian.within(budget, sampling_rate=q, n_steps=steps, clip_norm=1.0)
    moved = rate * steps**0.5 * mechanism.noise_multiplier / (q * n)
    assert moved == pytest.approx(0.3, rel=0.05)

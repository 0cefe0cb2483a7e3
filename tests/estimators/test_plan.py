import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.estimators.plan import LARGEST_NOISE_SHARE, default_mechanism
from evenhand.privacy import Budget, Ledger, SeededNoise


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
    assert mechanism.sigma <= LARGEST_NOISE_SHARE * n_teachers
    if mechanism.sigma < LARGEST_NOISE_SHARE * n_teachers:
        assert n_queries - 1 <= affordable <= n_queries + 1
    else:
        assert affordable <= n_queries


def test_more_budget_never_means_more_noise() -> None:
    sigmas = [
        default_mechanism(Budget(epsilon=e, delta=1e-5), n_teachers=250, n_queries=500).sigma
        for e in (0.5, 1, 2, 4, 8)
    ]
    assert sigmas == sorted(sigmas, reverse=True)
    assert sigmas[-1] == pytest.approx(
        math.sqrt(1000) / Budget(epsilon=8, delta=1e-5).mu, rel=1e-12
    )

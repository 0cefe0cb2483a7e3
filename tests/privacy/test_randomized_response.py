"""Randomised response: its epsilon in exact fractions, its draws by an exact test, an attack.

FALSE_ALARM is the probability that correct code fails one statistical test.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy import stats

from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    DiscreteNoise,
    FloatNoise,
    Ledger,
    RandomizedResponse,
    SeededNoise,
    attribute_of,
    audit_epsilon_lower_bound,
)
from evenhand.privacy.randomized_response import SMALLEST_EPSILON, _below
from evenhand.privacy.relation import GROUP_LABEL

SOURCES = [DiscreteNoise(), FloatNoise(), SeededNoise(3)]
each_source = pytest.mark.parametrize("noise", SOURCES, ids=lambda n: type(n).__name__)


def response(epsilon: float = 1.0, n_groups: int = 3) -> RandomizedResponse:
    return RandomizedResponse(epsilon=epsilon, n_groups=n_groups, delta=1e-6)


def opened(budget: Budget, noise: Any) -> Ledger:
    unit = attribute_of("record")
    return Ledger(budget, noise=noise, unit=unit, neighbors=GROUP_LABEL, single=True)


def answers(mechanism: RandomizedResponse, groups: Any, noise: Any) -> np.ndarray:
    ledger = opened(Budget(epsilon=1e3, delta=1e-6), noise)
    return ledger.release(mechanism, np.asarray(groups)[None, :], purpose="groups")[0]


@given(
    epsilon=st.one_of(st.floats(SMALLEST_EPSILON, 1e-3), st.floats(1e-3, 60.0), st.just(1e7)),
    n_groups=st.integers(2, 12),
)
def test_no_answer_is_likelier_than_epsilon_allows_decided_in_fractions(
    epsilon: float, n_groups: int
) -> None:
    # The definition: every answer, every pair of true groups; exp(epsilon) enclosed by intervals.
    made = response(epsilon, n_groups)
    assert made.truth + (n_groups - 1) * made.other == 1
    probability = [
        [made.truth if a == b else made.other for b in range(n_groups)] for a in range(n_groups)
    ]
    worst = max(
        probability[a][b] / probability[other][b]
        for a, other in itertools.permutations(range(n_groups), 2)
        for b in range(n_groups)
    )
    mpmath.iv.dps = 60
    allowed = mpmath.iv.exp(mpmath.iv.mpf(min(epsilon, 100.0)))
    # A ratio of integers, moved to the other side: no division is rounded.
    assert mpmath.iv.mpf(worst.numerator) <= allowed * mpmath.iv.mpf(worst.denominator)
    if epsilon < 30:  # and no noise is wasted, beyond what a word of 63 bits must
        lost = epsilon - float(mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator))
        assert -1e-14 < lost < 1e-14 + n_groups * math.exp(epsilon) / 2**62


@given(epsilon=st.floats(0.01, 20.0), n_groups=st.integers(2, 8))
def test_the_probabilities_are_those_of_the_formula(epsilon: float, n_groups: int) -> None:
    made = response(epsilon, n_groups)
    weight = math.exp(epsilon)
    assert float(made.truth) == pytest.approx(weight / (weight + n_groups - 1), rel=1e-12)
    assert float(made.other) == pytest.approx(1 / (weight + n_groups - 1), rel=1e-9)
    np.testing.assert_allclose(made.matrix.sum(axis=1), 1.0)


def p_value(drawn: np.ndarray, probability: list[float]) -> float:
    counts = np.bincount(drawn, minlength=len(probability))
    return float(stats.chisquare(counts, np.array(probability) * drawn.size).pvalue)


@each_source
@pytest.mark.parametrize("n_groups", [2, 4])
def test_answers_have_the_probabilities_that_are_charged(noise: Any, n_groups: int) -> None:
    made, n = response(1.0, n_groups), 60_000
    for group in range(n_groups):
        drawn = answers(made, np.full(n, group), noise)
        assert p_value(drawn, made.matrix[group].tolist()) > FALSE_ALARM
        # A truth told for 5 % more epsilon would be seen.
        assert p_value(drawn, response(1.1, n_groups).matrix[group].tolist()) < FALSE_ALARM


@each_source
def test_the_numbers_below_n_are_even(noise: Any) -> None:
    # Words are one and a half times as many: without drawing anew the lower half of the numbers
    # would come twice as often.
    n = 2**64 // 3
    drawn = _below(n, 20_000, noise)
    assert stats.kstest(drawn / n, "uniform").pvalue > FALSE_ALARM
    skewed = noise.random_words((20_000,)) % n
    assert stats.kstest(skewed / n, "uniform").pvalue < FALSE_ALARM
    assert drawn.max() < n


@each_source
def test_people_answer_independently(noise: Any) -> None:
    lies = (answers(response(1.0, 2), np.zeros(40_000, dtype=int), noise) > 0).astype(float)
    limit = stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(lies.size)
    for lag in (1, 2, 63, 64):
        assert abs(np.corrcoef(lies[:-lag], lies[lag:])[0, 1]) < 1.1 * limit
    shared = np.repeat(lies[::2], 2)  # a build in which neighbors share a coin is caught
    assert abs(np.corrcoef(shared[:-1], shared[1:])[0, 1]) > limit


def test_two_draws_of_the_operating_system_differ_and_a_seed_repeats() -> None:
    groups = np.zeros(500, dtype=int)
    for noise in (DiscreteNoise(), FloatNoise()):
        first, again = (answers(response(), groups, noise) for _ in range(2))
        assert not np.array_equal(first, again)
    one, two = (answers(response(), groups, SeededNoise(5)) for _ in range(2))
    assert np.array_equal(one, two)


def test_an_attack_stays_below_the_claim_and_convicts_half_the_noise() -> None:
    # The answer itself is the best statistic. Confidence 1 - 1e-6: correct code fails one in 1e6.
    n, sure = 40_000, 1 - 1e-6

    def bound(drawn_at: float) -> float:
        made = response(drawn_at, 2)
        zero, one = (answers(made, np.full(n, group), DiscreteNoise()) for group in (0, 1))
        return audit_epsilon_lower_bound(zero, one, delta=0.0, confidence=sure)

    assert 0.8 < bound(1.0) <= 1.0
    assert bound(2.0) > 1.0  # half the noise: the answers of epsilon 2


def test_one_use_covers_everybody_fills_its_budget_and_a_second_is_refused() -> None:
    budget = Budget(epsilon=0.7, delta=1e-6)
    ledger = opened(budget, SeededNoise(0))
    made = RandomizedResponse.within(budget, n_groups=2)
    assert made.epsilon <= 0.7
    assert made.epsilon > 0.7 * (1 - 1e-5)
    assert ledger.release(made, [[0, 1, 1]], purpose="groups").shape == (1, 3)
    assert 0.999 * budget.mu_squared < ledger.spent <= budget.mu_squared
    with pytest.raises(BudgetExceeded):
        ledger.release(made, [[0, 1, 1]], purpose="groups again")


def test_the_words_name_where_the_answers_came_from() -> None:
    said = [response().said(noise) for noise in SOURCES]
    assert said[0] == "exact random answers from the operating system's randomness"
    assert "cryptographic generator" in said[1]
    assert said[2] == SeededNoise(3).name


def test_words_fill_their_range() -> None:
    for noise in SOURCES:
        words = noise.random_words((200, 100))
        assert words.dtype == np.int64
        assert words.min() >= 0
        scaled = words.ravel() / 2**63
        assert stats.kstest(scaled, "uniform").pvalue > FALSE_ALARM
        assert stats.kstest(scaled / 1.05, "uniform").pvalue < FALSE_ALARM
        low = (words & 0xFF).ravel()  # the low bits as well
        assert p_value(low, [1 / 256] * 256) > FALSE_ALARM


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be finite and > 0, got epsilon=0.0. Without randomness"),
        ({"epsilon": 1e-12}, "epsilon must be at least 1e-09, got epsilon=1e-12"),
        ({"n_groups": 1}, "n_groups must be at least 2"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1"),
    ],
)
def test_what_cannot_be_a_response_is_refused(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomizedResponse(**({"epsilon": 1.0, "n_groups": 2, "delta": 1e-6} | given_))


def test_a_group_that_is_none_of_them_is_refused() -> None:
    with pytest.raises(ValueError, match="groups must be at least 0 and below 3"):
        response().decide([[0, 3]], np.zeros((1, 2), dtype=int))


def test_the_truth_is_a_fraction_of_words() -> None:
    assert response(1e7).truth == 1 - Fraction(1, 2**63)

"""Bounds are never violated over random finite laws, and are attained somewhere."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import FALSE_ALARM
from scipy.integrate import quad
from scipy.stats import binom, binomtest, norm

from evenhand.fairness import noisy_certificate
from evenhand.fairness.bounds import alpha_from_eta, attribute_certificate, vote_rates
from evenhand.fairness.intervals import clopper_pearson

units = st.floats(0, 1, allow_subnormal=False)


def laws(n: int) -> st.SearchStrategy[np.ndarray]:
    """Weights of n points, and three numbers in [0, 1] of each."""
    return hnp.arrays(np.float64, (4, n), elements=units).filter(lambda a: a[0].sum() > 0.01)


# ---- SF-PATE, Theorem 1 --------------------------------------------------------------------


@given(
    law=st.integers(1, 5).flatmap(laws), bound=st.sampled_from([0.5, 1.0, 3.0]), sign=st.booleans()
)
def test_the_tightened_theorem_1_is_never_violated(
    law: np.ndarray, bound: float, sign: bool
) -> None:
    # Point i stands for (x, y): weight w, P(A=a|x,y) = f, P(A~=a|x,y) = g, fairness function h.
    w, f, g, h = law[0] / law[0].sum(), *law[1:]
    h = bound * (2 * h - 1 if sign else h)
    p, q = w @ f, w @ g
    assume(min(p, q) > 1e-6)
    violation, noisy = abs(w @ (h * f) / p - w @ h), abs(w @ (h * g) / q - w @ h)
    claimed = alpha_from_eta(
        noisy, np.abs(f - g).max(), min(p, 1), min(q, 1), bound=bound, signed=sign
    )
    assert violation <= claimed + 1e-9
    printed = noisy + 2 * np.abs(f - g).max() * bound / (p * q)
    assert claimed <= printed + 1e-9


@pytest.mark.parametrize("rare", [1e-2, 1e-4])
def test_the_tightened_theorem_1_cannot_be_made_smaller(rare: float) -> None:
    # Nearly everybody has h = 1, A with probability eta and never A~; the rare rest has h = 0.
    eta, w, f, g, h = 0.3, [1 - rare, rare], [0.3, 1.0], [0.0, 1.0], [1.0, 0.0]
    p, q = np.dot(w, f), np.dot(w, g)
    difference = np.dot(w, np.multiply(h, f)) / p - np.dot(w, np.multiply(h, g)) / q
    assert difference <= alpha_from_eta(0.0, eta, p, q)
    assert difference == pytest.approx(alpha_from_eta(0.0, eta, p, q), rel=2 * rare)
    # With h = 1 and -1 instead of 1 and 0, and B = 1, both sides double.
    assert alpha_from_eta(0.0, eta, p, q, signed=True) == pytest.approx(
        2 * difference, rel=2 * rare
    )


def test_an_empty_group_and_a_wrong_eta_are_refused() -> None:
    with pytest.raises(ValueError, match="noisy_share must be above 0"):
        alpha_from_eta(0.1, 0.1, 0.5, 0.0)
    with pytest.raises(ValueError, match=r"eta must lie in \[0, 1\]"):
        alpha_from_eta(0.1, 1.5, 0.5, 0.5)


# ---- the certificate -----------------------------------------------------------------------


@given(
    law=hnp.arrays(np.float64, (3, 3, 2), elements=units),
    h=hnp.arrays(np.float64, (3, 3, 2), elements=units),
)
def test_the_certificate_is_never_violated_even_by_functions_that_read_both_attributes(
    law: np.ndarray, h: np.ndarray
) -> None:
    # law[a, b, x]: weight of A=a, A~=b and of two kinds of people x.
    table = law.sum(axis=2)
    assume(min(table.sum(axis=0).min(), table.sum(axis=1).min()) > 1e-6)
    found = attribute_certificate(table)
    for a in range(3):
        true = (law[a] * h[a]).sum() / law[a].sum()
        noisy = (law[:, a] * h[:, a]).sum() / law[:, a].sum()
        assert abs(true - noisy) <= found[a] + 1e-9


@given(table=hnp.arrays(np.int64, (3, 3), elements=st.integers(0, 30)))
def test_the_certificate_is_attained_in_every_table(table: np.ndarray) -> None:
    assume(min(table.sum(axis=0).min(), table.sum(axis=1).min()) > 0)
    for a, claimed in enumerate(attribute_certificate(table, bound=2.0)):
        row, column = table[a], table[:, a]
        # Twice the indicator of those who are only in the larger of the two groups.
        larger = max(row.sum(), column.sum())
        assert 2 * (larger - table[a, a]) / larger == pytest.approx(claimed)


def test_a_group_without_records_has_no_certificate() -> None:
    assert np.isnan(attribute_certificate([[5, 0], [0, 0]])).tolist() == [False, True]
    with pytest.raises(ValueError, match="noisy_certificate"):
        attribute_certificate([[5, -1], [0, 0]])
    with pytest.raises(ValueError, match="one row per true group"):
        attribute_certificate([[5, 1]])


@pytest.mark.parametrize("m", [2, 4])
def test_the_noisy_certificate_holds_up_to_the_stated_tails_and_fails_beyond(m: int) -> None:
    # Every one of 3 m one-sided events at its own quantile, all against us at once.
    table = np.full((m, m), 40.0) + np.diag([1000.0] * m)
    exact, sigma, level = attribute_certificate(table), 12.0, 0.9
    tail = float(norm.isf((1 - level) / (3 * m)))

    def bad_luck(size: float) -> np.ndarray:
        noise = np.full((m, m), -size * sigma / math.sqrt(m - 1))
        np.fill_diagonal(noise, size * sigma)
        return noise

    for size, holds in ((tail, True), (1.7 * tail, False)):
        found = noisy_certificate(
            table + bad_luck(size), sigma=sigma, level=level, population=False
        )
        assert (found >= exact).all() == holds


def test_without_noise_the_population_is_bounded_by_exact_binomial_limits() -> None:
    table = np.array([[90, 10], [5, 95]])
    found = noisy_certificate(table, sigma=0.0, level=0.95)
    limits = [
        clopper_pearson([90, 90], [100, 95], error=0.05 / 2)[0].min(),
        clopper_pearson([95, 95], [100, 105], error=0.05 / 2)[0].min(),
    ]
    assert found == pytest.approx([1 - limit for limit in limits])


def miss_p_value(level: float, told: float, repeats: int = 400) -> float:
    """Probability of so many misses if the bound covered with its level; noise of scale 60."""
    rng = np.random.default_rng(5)
    law = np.array([[0.45, 0.05], [0.03, 0.47]])
    exact = attribute_certificate(law)
    missed = 0
    for _ in range(repeats):
        table = rng.multinomial(4000, law.ravel()).reshape(2, 2) + rng.normal(0, 60, (2, 2))
        missed += bool((noisy_certificate(table, sigma=told, level=level) < exact).any())
    return float(binomtest(missed, repeats, 1 - level, alternative="greater").pvalue)


def test_the_noisy_certificate_covers_and_the_test_would_see_noise_left_out() -> None:
    assert miss_p_value(0.6, told=60.0) > FALSE_ALARM
    assert miss_p_value(0.9, told=0.0) < FALSE_ALARM


def test_noise_that_drowns_the_table_leaves_nothing_to_say() -> None:
    assert noisy_certificate([[3, 1], [1, 3]], sigma=100.0, level=0.95).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="finite"):
        noisy_certificate([[np.nan, 1], [1, 3]], sigma=1.0, level=0.95)


# ---- SF-PATE, Theorem 2 --------------------------------------------------------------------


def test_vote_rates_agree_with_draws() -> None:
    rng = np.random.default_rng(2)
    counts, n = np.array([[126, 124], [100, 150], [130, 120], [10, 240]]), 40_000
    p_values = {
        sigma: [
            binomtest(int(wins), n, probability).pvalue
            for wins, probability in zip(
                ((counts[:, None] + rng.normal(0, 40, (4, n, 2))).argmax(axis=2) == 1).sum(axis=1),
                vote_rates(counts, sigma=sigma)[:, 1],
                strict=True,
            )
        ]
        for sigma in (40.0, 36.0)
    }
    assert min(p_values[40.0]) > FALSE_ALARM
    assert min(p_values[36.0]) < FALSE_ALARM  # the test would see noise that is 10 % too small


@pytest.mark.parametrize("counts", [[3, 4, 5], [10, 10, 10], [0, 30, 0], [20, 21, 1, 4]])
def test_more_classes_agree_with_adaptive_quadrature(counts: list[int]) -> None:
    sigma = 5.0

    def wins(j: int) -> float:
        others = [c for i, c in enumerate(counts) if i != j]
        return quad(
            lambda x: (
                norm.pdf(x) * math.prod(norm.cdf(x + (counts[j] - c) / sigma) for c in others)
            ),
            -12,
            12,
            epsabs=1e-13,
        )[0]

    found = vote_rates([counts], sigma=sigma)[0]
    assert found == pytest.approx([wins(j) for j in range(len(counts))], abs=1e-10)


def test_two_classes_by_the_formula_agree_with_the_quadrature_for_three() -> None:
    two = vote_rates([[30, 40]], sigma=5.0)[0]
    three = vote_rates([[30, 40, -500]], sigma=5.0)[0]
    assert three == pytest.approx([*two, 0.0], abs=1e-10)


def test_teachers_of_nearly_equal_rates_vote_far_apart() -> None:
    # 300 teachers. In group 0 all agree, in group 1 each decides by itself: rates .597 and .607.
    together = 0.597 * vote_rates([[0, 300]], sigma=0.0)[0, 1]
    ones = np.arange(301)
    alone = binom.pmf(ones, 300, 0.607)
    for sigma, expected in ((0.0, 1.0), (20.0, 0.97), (40.0, 0.85)):
        rates = vote_rates(np.stack([300 - ones, ones], axis=1), sigma=sigma)[:, 1]
        assert alone @ rates == pytest.approx(expected, abs=0.02)
        assert alone @ rates - together > 0.2  # teachers: 0.01 apart


def test_without_noise_a_tie_is_shared() -> None:
    assert vote_rates([[5, 5], [6, 4]], sigma=0.0).tolist() == [[0.5, 0.5], [1.0, 0.0]]
    with pytest.raises(ValueError, match="at least 2 classes"):
        vote_rates([[5]], sigma=1.0)


def test_rows_of_vote_rates_sum_to_one() -> None:
    rows = np.array(list(itertools.product(range(0, 20, 5), repeat=3)))
    assert vote_rates(rows, sigma=3.0).sum(axis=1) == pytest.approx(1.0)

"""What a noisy vote does to groups is exact and private; a certificate is bought."""

import json
import pickle

import numpy as np
import pytest

from evenhand.fairness.bounds import attribute_certificate
from evenhand.privacy import Budget, BudgetExceeded, ConfidentGNMax, GNMax, Ledger, SeededNoise
from evenhand.voting import Votes
from evenhand.voting.certificate import release_certificate
from evenhand.voting.disparity import expected_rates


def votes() -> tuple[Votes, np.ndarray]:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 2, 200)
    ones = rng.binomial(100, np.where(groups == 0, 0.45, 0.55))
    return Votes(counts=np.stack([100 - ones, ones], axis=1), n_teachers=100), groups


def test_expected_rates_are_the_mean_of_many_noisy_votes_per_group() -> None:
    cast, groups = votes()
    rates = expected_rates(cast, groups, GNMax(sigma=10.0), n_groups=2).reveal_to_curator()
    rng = np.random.default_rng(2)
    n = 2000
    wins = (cast.counts + rng.normal(0, 10, (n, 200, 2))).argmax(axis=2) == 1
    for group in (0, 1):
        drawn = wins[:, groups == group].mean(axis=1)
        # Six standard errors: a correct build fails with a probability below 1e-8.
        assert abs(drawn.mean() - rates[group, 1]) < 6 * drawn.std() / np.sqrt(n)
    wrong = expected_rates(cast, groups, GNMax(sigma=5.0), n_groups=2).reveal_to_curator()
    assert abs(wrong - rates).max() > 0.05  # half of the noise would be seen


def test_the_disparity_is_the_largest_difference_and_an_empty_group_is_left_out() -> None:
    cast, groups = votes()
    found = expected_rates(cast, groups, GNMax(sigma=10.0), n_groups=3)
    rates = found.reveal_to_curator()
    assert np.isnan(rates[2]).all()
    assert found.reveal_disparity_to_curator() == pytest.approx(abs(rates[0, 1] - rates[1, 1]))


def test_expected_rates_do_not_leave_by_accident() -> None:
    found = expected_rates(*votes(), GNMax(sigma=10.0), n_groups=2)
    assert (repr(found), f"{found}") == ("<private>", "<private>")
    for leak in (float, list, np.asarray, pickle.dumps, json.dumps, lambda r: r == 0.5, bool):
        with pytest.raises(TypeError):
            leak(found)


def test_a_check_that_stops_queries_is_refused_with_the_way_out() -> None:
    mechanism = ConfidentGNMax(threshold=60.0, sigma_check=10.0, sigma=10.0)
    with pytest.raises(TypeError, match=r"Of a ConfidentGNMax pass its \.answer"):
        expected_rates(*votes(), mechanism, n_groups=2)


def attributes(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    true = rng.integers(0, 3, n)
    return true, np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), true)


def test_a_certificate_is_one_noisy_table_and_costs_two_over_sigma_squared() -> None:
    true, noisy = attributes(5000)
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-5), noise=SeededNoise(0))
    found = release_certificate(true, noisy, n_groups=3, sigma=10.0, ledger=ledger)
    table = np.zeros((3, 3))
    np.add.at(table, (true, noisy), 1)
    drawn = SeededNoise(0).gaussian(10.0, (1, 9)).reshape(3, 3)
    assert found.noisy_table == pytest.approx(table + drawn)
    assert ledger.spent == pytest.approx(2 / 100)
    assert (found.bounds >= attribute_certificate(table)).all()
    assert found.alpha(0.05) == pytest.approx(0.05 + found.bounds.max())
    assert "95% confidence" in str(found)


def test_one_record_moves_the_table_by_the_sensitivity_that_is_charged() -> None:
    true, noisy = attributes(30)
    for row in range(30):
        for a, b in ((a, b) for a in range(3) for b in range(3)):
            other_true, other_noisy = true.copy(), noisy.copy()
            other_true[row], other_noisy[row] = a, b
            tables = []
            for z, w in ((true, noisy), (other_true, other_noisy)):
                # One seed, one noise: what is left between the tables is what the record moved.
                ledger = Ledger(Budget(epsilon=9.0, delta=1e-5), noise=SeededNoise(0))
                tables.append(
                    release_certificate(z, w, n_groups=3, sigma=10.0, ledger=ledger).noisy_table
                )
            assert np.linalg.norm(tables[0] - tables[1]) <= np.sqrt(2) + 1e-9


def test_a_short_budget_or_a_ledger_of_units_releases_nothing() -> None:
    true, noisy = attributes(50)
    ledger = Ledger(Budget(epsilon=0.1, delta=1e-5), noise=SeededNoise(0))
    with pytest.raises(BudgetExceeded):
        release_certificate(true, noisy, n_groups=3, sigma=1.0, ledger=ledger)
    assert ledger.spent == 0
    people = Ledger(Budget(epsilon=9.0, delta=1e-5), noise=SeededNoise(0), unit="person")
    with pytest.raises(ValueError, match="guards one person, which may own several rows"):
        release_certificate(true, noisy, n_groups=3, sigma=10.0, ledger=people)
    assert people.spent == 0

"""The cost of one bit: high-precision brute force over margins, both directions, and its limits."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from evenhand.privacy.local import exact_local_rdp
from evenhand.privacy.one_bit import one_bit_rdp
from evenhand.privacy.renyi import ORDERS


def coin_divergence(m, m2, sigma, order):
    """Return D of the coins at margins m and m2 with 50 digits."""
    with mpmath.workdps(50):
        a = mpmath.mpf(order)
        yes, yes2 = (mpmath.ncdf(mpmath.mpf(x) / sigma) for x in (m, m2))
        no, no2 = (mpmath.ncdf(-mpmath.mpf(x) / sigma) for x in (m, m2))
        both = yes**a * yes2 ** (1 - a) + no**a * no2 ** (1 - a)
        return float(mpmath.log(both) / (a - 1))


def worst_divergence(margins, sigma, order):
    """Return the largest divergence, both directions, on a grid made finer around its best."""

    def both_ways(m):
        there = coin_divergence(m, m + 1, sigma, order)
        return max(there, coin_divergence(m + 1, m, sigma, order))

    for _ in range(4):
        values = [both_ways(m) for m in margins]
        best = int(np.argmax(values))
        margins = np.linspace(
            margins[max(best - 1, 0)], margins[min(best + 1, len(margins) - 1)], 21
        )
    return max(values)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 40.0, 1e4])
@pytest.mark.parametrize("order", [1.05, 2.0, 12.0, 100.0])
def test_no_margin_costs_more_in_either_direction_and_one_costs_as_much(sigma, order):
    cost = float(one_bit_rdp(sigma, [order]).rdp[0])
    margins = np.concatenate(
        [np.linspace(-4 * sigma - 2, 4 * sigma + 1, 60), np.linspace(-order - 1, order, 60)]
    )
    found = worst_divergence(np.sort(margins), sigma, order)
    assert found <= cost
    assert cost == pytest.approx(found, abs=0.0, rel=1e-7)


@pytest.mark.parametrize("sigma", [20.0, 40.0, 200.0])
def test_at_low_orders_it_is_two_over_pi_of_the_count(sigma):
    cost = one_bit_rdp(sigma, [1.1, 2.0])
    assert cost.rdp / (cost.orders / (2 * sigma**2)) == pytest.approx(
        2 / math.pi, abs=0.0, rel=1e-3
    )


@pytest.mark.parametrize("sigma", [0.5, 3.0, 40.0])
def test_it_never_costs_more_than_the_count_and_its_share_rises_with_the_order(sigma):
    cost = one_bit_rdp(sigma)
    share = cost.rdp / (cost.orders / (2 * sigma**2))
    assert share.max() <= 1.0
    assert np.diff(share).min() > -1e-8
    assert share[-1] > 0.99


@pytest.mark.parametrize("n_teachers", [5, 6])
@pytest.mark.parametrize("sigma", [1.0, 2.0, 10.0])
def test_two_classes_by_brute_force_over_every_histogram(n_teachers, sigma):
    # GNMax of two classes with sigma on both counts is a bit at noise sigma / sqrt(2).
    orders = [1.2, 3.0, 10.0, 50.0]
    cost = one_bit_rdp(sigma / math.sqrt(2.0), orders).rdp
    for n, m in itertools.permutations(range(n_teachers + 1), 2):
        if abs(n - m) == 1:
            p, p2 = (ndtr((2 * k - n_teachers) / (sigma * math.sqrt(2.0))) for k in (n, m))
            for order, bound in zip(orders, cost, strict=True):
                both = p**order * p2 ** (1 - order) + (1 - p) ** order * (1 - p2) ** (1 - order)
                assert math.log(both) / (order - 1) <= bound


def test_it_bounds_the_exact_local_cost_of_two_classes():
    votes = [[n, 40 - n] for n in range(41)]
    local = exact_local_rdp(votes, 8.0, ORDERS[::20]).reveal_to_curator()
    assert (local <= one_bit_rdp(8.0 / math.sqrt(2.0), ORDERS[::20]).rdp).all()
    assert local[:, 0].max() == pytest.approx(
        one_bit_rdp(8.0 / math.sqrt(2.0), ORDERS[::20]).rdp[0], abs=0.0, rel=0.01
    )


def test_a_largest_count_helps_high_orders_only():
    free, capped = one_bit_rdp(10.0), one_bit_rdp(10.0, max_count=30)
    assert (capped.rdp <= free.rdp).all()
    low, high = free.orders < 10, free.orders > 100
    assert capped.rdp[low] == pytest.approx(free.rdp[low], abs=0.0, rel=1e-8)
    assert (capped.rdp[high] < 0.9 * free.rdp[high]).all()


@pytest.mark.parametrize("order", [2.0, 60.0])
@pytest.mark.parametrize("max_count", [1, 10])
def test_the_cap_by_brute_force(order, max_count):
    capped = float(one_bit_rdp(3.0, [order], max_count).rdp[0])
    found = worst_divergence(np.linspace(-max_count, max_count - 1, 60), 3.0, order)
    assert found <= capped
    assert capped == pytest.approx(found, abs=0.0, rel=1e-7)


def test_the_curve_knows_its_neighbors():
    unit = one_bit_rdp(5.0, [2.0], neighbors="add or remove one")
    assert unit.neighbors == "add or remove one"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: one_bit_rdp(0.0), "sigma must be finite and > 0"),
        (lambda: one_bit_rdp(1.0, [0.5]), "greater than 1"),
        (lambda: one_bit_rdp(1.0, max_count=0), "max_count must be at least 1"),
    ],
)
def test_doubtful_bits_stop(call, message):
    with pytest.raises(ValueError, match=message):
        call()

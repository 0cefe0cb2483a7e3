"""Local costs: what they refuse to show, and every number against quadrature with 30 digits."""

import copy
import functools
import itertools
import json
import pickle
import re

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from evenhand.privacy import GNMax
from evenhand.privacy.local import LocalCost, exact_local_rdp
from evenhand.privacy.local.cost import theorem6
from evenhand.privacy.local.exact import _divergence

ORDERS = np.array([1.05, 1.5, 3.0, 10.0, 40.0])


def some_counts(n_queries, n_classes, n_teachers, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.4), size=n_queries)
    return np.array([rng.multinomial(n_teachers, share) for share in shares])


@functools.cache
def probabilities(votes, sigma):
    """Return P(j wins) with 30 digits: a trapezoidal sum over the whole line, no shortcut."""
    with mpmath.workdps(30):
        step = mpmath.mpf(sigma) / 5
        low, high = min(votes) - 14 * sigma, max(votes) + 14 * sigma
        points = [low + k * step for k in range(int((high - low) / step) + 1)]
        below = {n: [mpmath.ncdf((x - n) / sigma) for x in points] for n in set(votes)}
        out = []
        for j, n in enumerate(votes):
            terms = [mpmath.npdf(x, n, sigma) * step for x in points]
            for i, other in enumerate(votes):
                if i != j:
                    terms = [t * phi for t, phi in zip(terms, below[other], strict=True)]
            out.append(mpmath.fsum(terms))
        return tuple(out)


def divergence(p, p2, order):
    with mpmath.workdps(30):
        a = mpmath.mpf(float(order))
        return float(
            mpmath.log(mpmath.fsum(x**a * y ** (1 - a) for x, y in zip(p, p2, strict=True)))
            / (a - 1)
        )


def brute_force(votes, sigma, orders=ORDERS):
    """Return the worst forward and the worst reverse divergence over every vote that can move."""
    forward, reverse = np.zeros(len(orders)), np.zeros(len(orders))
    p = probabilities(votes, sigma)
    for a, b in itertools.permutations(range(len(votes)), 2):
        if votes[a]:
            moved = list(votes)
            moved[a] -= 1
            moved[b] += 1
            p2 = probabilities(tuple(moved), sigma)
            forward = np.maximum(forward, [divergence(p, p2, order) for order in orders])
            reverse = np.maximum(reverse, [divergence(p2, p, order) for order in orders])
    return forward, reverse


def histograms(n_teachers, n_classes):
    """Return all ways in which the teachers can vote, up to the names of the classes."""
    ways = itertools.combinations_with_replacement(range(n_teachers + 1), n_classes)
    return [way[::-1] for way in ways if sum(way) == n_teachers]


# The exact local cost.


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0])
@pytest.mark.parametrize(("n_classes", "n_teachers"), [(2, 6), (3, 5)])
def test_exact_cost_is_brute_force_over_every_histogram(n_classes, n_teachers, sigma):
    every = histograms(n_teachers, n_classes)
    expected = np.array([brute_force(votes, sigma) for votes in every])
    for k, direction in enumerate(("forward", "reverse")):
        ours = exact_local_rdp(every, sigma, ORDERS, direction=direction).reveal_to_curator()
        assert ours == pytest.approx(expected[:, k], abs=0.0, rel=1e-9)
    both = exact_local_rdp(every, sigma, ORDERS).reveal_to_curator()
    assert both == pytest.approx(expected.max(axis=1), abs=0.0, rel=1e-9)


@pytest.mark.parametrize(
    ("votes", "sigma"),
    [
        ((120, 80, 30), 40.0),
        ((230, 20), 20.0),  # a sure winner: an upset has a probability of 1e-13
        ((30, 2, 1), 3.0),
        ((3, 2, 1), 0.3),
        ((2, 2, 2, 2), 4.0),
        ((0, 0, 7), 2.0),  # not sorted, with twins
    ],
)
def test_exact_cost_is_quadrature_with_30_digits(votes, sigma):
    expected = brute_force(votes, sigma)
    for direction, rdp in zip(("forward", "reverse"), expected, strict=True):
        ours = exact_local_rdp([votes], sigma, ORDERS, direction=direction)
        assert ours.reveal_to_curator()[0] == pytest.approx(rdp, abs=0.0, rel=1e-8)


@given(
    votes=st.lists(st.integers(0, 30), min_size=2, max_size=5),
    sigma=st.sampled_from([0.4, 3.0, 12.0]),
    data=st.data(),
)
@settings(deadline=None, max_examples=30)
def test_renaming_classes_changes_no_cost(votes, sigma, data):
    renamed = data.draw(st.permutations(votes))
    first, second = exact_local_rdp([votes, renamed], sigma, ORDERS).reveal_to_curator()
    assert (first == second).all()


@given(
    votes=st.lists(st.integers(0, 60), min_size=2, max_size=6),
    sigma=st.sampled_from([0.3, 1.0, 5.0, 40.0]),
)
@settings(deadline=None, max_examples=60)
def test_no_votes_cost_more_than_the_worst_case(votes, sigma):
    orders = np.array([1.02, 2.0, 30.0, 3000.0])
    rdp = exact_local_rdp([votes], sigma, orders).reveal_to_curator()[0]
    assert (rdp >= 0).all()
    assert (rdp <= orders / sigma**2 * (1 + 1e-9)).all()


def test_many_queries_cost_what_each_costs_alone():
    counts = some_counts(40, 4, 50)
    together = exact_local_rdp(counts, 10.0, ORDERS).reveal_to_curator()
    alone = [exact_local_rdp([row], 10.0, ORDERS).reveal_to_curator()[0] for row in counts]
    # The table of logarithms is shared, and a little wider for many: the last digits differ.
    assert together == pytest.approx(np.array(alone), abs=0.0, rel=1e-10)


@pytest.mark.parametrize("direction", [1, -1])
def test_power_sums_too_large_for_floats_keep_every_class(direction):
    # Two classes grow alike: exp(30) is passed, and one of the two alone is 0.1 % too small.
    p, p2 = [(0.4, 0.35, 0.25), (3e-4, 2e-4, 1 - 5e-4)][::direction]
    orders = np.array([1.5, 3.0, 6.0, 20.0, 400.0])
    ours = _divergence(np.log([p]), np.log([p2]), orders)[0]
    exact = [divergence([mpmath.mpf(x) for x in p], p2, order) for order in orders]
    assert ours == pytest.approx(exact, abs=0.0, rel=1e-12)


def test_without_votes_nothing_can_move():
    assert (exact_local_rdp([[0, 0, 0]], 2.0, ORDERS).reveal_to_curator() == 0).all()
    assert exact_local_rdp(np.zeros((0, 3), int), 2.0, ORDERS).n_queries == 0


# Theorem 6.


def plain_theorem6(votes, sigma, order):
    """Return the bound as the paper prints it, one query and one order, with 60 digits."""
    with mpmath.workdps(60):
        top = max(votes)
        q = sum(mpmath.erfc((top - n) / (2 * mpmath.mpf(sigma))) / 2 for n in votes) - 0.5
        q = min(q, 1 - mpmath.mpf(1) / len(votes))
        worst = mpmath.mpf(order) / mpmath.mpf(sigma) ** 2
        mu2 = sigma * mpmath.sqrt(-mpmath.log(q))
        mu1 = mu2 + 1
        eps1, eps2 = mu1 / mpmath.mpf(sigma) ** 2, mu2 / mpmath.mpf(sigma) ** 2
        if mu2 <= 1 or order > mu1:
            return float(worst)
        if q > mpmath.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
            return float(worst)
        if q * mpmath.exp(eps2) >= 1:
            return float(worst)
        a = (1 - q) / (1 - (q * mpmath.exp(eps2)) ** ((mu2 - 1) / mu2))
        b = mpmath.exp(eps1) / q ** (1 / (mu1 - 1))
        bound = mpmath.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
        return float(min(bound, worst))


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_theorem_6_is_the_formula_of_the_paper(n_classes, sigma):
    clear = np.array([[230 - k, 20 + k, *[0] * (n_classes - 2)] for k in range(0, 60, 10)])
    counts = np.vstack([some_counts(60, n_classes, 250), clear])
    rdp = theorem6(counts, sigma, ORDERS).reveal_to_curator()
    # A probability of an upset below 1e-50 is lost in the plain sum over classes minus 1/2.
    sure = np.sort(counts, axis=1)[:, -2:] @ [-1, 1] > 15 * sigma
    plain = [[plain_theorem6(row.tolist(), sigma, a) for a in ORDERS] for row in counts[~sure]]
    assert rdp[~sure] == pytest.approx(np.array(plain), abs=0.0, rel=1e-7)
    assert (rdp < ORDERS / sigma**2).any(axis=1).sum() >= 5  # the theorem did apply


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0, 40.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_theorem_6_bounds_the_forward_divergence(n_classes, sigma):
    counts = some_counts(150, n_classes, 60 if sigma < 10 else 250)
    exact = exact_local_rdp(counts, sigma, ORDERS, direction="forward").reveal_to_curator()
    bound = theorem6(counts, sigma, ORDERS)
    assert bound.direction == "forward"
    assert (exact <= bound.reveal_to_curator() * (1 + 1e-6) + 1e-13).all()


def test_theorem_6_is_no_bound_in_the_reverse_direction():
    # Sigma 2: the neighbor's loss is hundreds of times what the theorem says.
    counts = [[n, 30 - n] for n in range(15, 31)]
    bound = theorem6(counts, 2.0, ORDERS).reveal_to_curator()
    reverse = exact_local_rdp(counts, 2.0, ORDERS, direction="reverse").reveal_to_curator()
    assert (reverse / bound).max() > 100


def test_discrete_noise_costs_more_than_continuous_noise_in_theorem_6():
    counts = some_counts(50, 4, 60)
    for sigma in (1.0, 5.0):
        discrete = theorem6(counts, sigma, ORDERS, discrete=True).reveal_to_curator()
        continuous = theorem6(counts, sigma, ORDERS).reveal_to_curator()
        assert (discrete >= continuous).all()
        assert (discrete > continuous).any()


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0, 10.0])
def test_half_a_vote_covers_the_probability_of_an_upset_under_discrete_noise(sigma):
    # The exact sum over two discrete Gaussians. At gap 0 (a tie) the formula fails, so it is 1.
    reach = int(20 * sigma) + 10
    weight = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    weight /= weight.sum()
    difference = np.convolve(weight, weight)
    k = np.arange(-2 * reach, 2 * reach + 1)
    upset = np.array([difference[k >= g][::-1].sum() for g in range(int(9 * sigma) + 1)])
    gaps = np.arange(len(upset))
    formula = ndtr(-(gaps - 0.5) / (sigma * np.sqrt(2.0)))
    assert (upset[1:] <= formula[1:]).all()
    assert upset[0] > formula[0]
    erfc_based = ndtr(-gaps / (sigma * np.sqrt(2.0)))
    assert (upset > erfc_based).all()  # why the continuous formula may not be used


# The type.


@pytest.fixture
def cost():
    return theorem6([[60, 3], [31, 30]], 5.0, ORDERS)


@pytest.mark.parametrize(
    "show",
    [repr, str, format, "{:.3f}".format, lambda c: f"{c!r:>9}".strip(), lambda c: "%s" % c],  # noqa: UP031 - that way of printing too
)
def test_a_local_cost_prints_as_private(cost, show):
    assert show(cost) == "<private>"
    assert str([cost]) == "[<private>]"


@pytest.mark.parametrize(
    "use",
    [
        pickle.dumps,
        json.dumps,
        float,
        int,
        bool,
        complex,
        round,
        list,
        len,
        hash,
        vars,
        np.asarray,
        np.array,
        np.exp,
        sum,
        lambda c: c == c,
        lambda c: c != 1.0,
        lambda c: c < c,
        lambda c: c >= 0.5,
        lambda c: 1.0 in c,
        lambda c: c[0],
        lambda c: np.float64(0.5) * c,
        lambda c: c + 1.0,
        lambda c: 1.0 + c,
        lambda c: c * 0.5,
        lambda c: sorted([c, c]),
        lambda c: setattr(c, "direction", "both"),
    ],
)
def test_every_other_way_out_is_refused(cost, use):
    with pytest.raises(TypeError) as refusal:
        use(cost)
    assert re.search(r"\d\.\d", str(refusal.value).replace("0.5", "")) is None


def test_the_refusal_says_the_way_out(cost):
    with pytest.raises(TypeError, match=r"itself private.*Guarantee.*reveal_to_curator\(\)"):
        float(cost)


def test_a_copy_is_the_same_value(cost):
    assert copy.copy(cost) is cost
    assert copy.deepcopy(cost) is cost


def test_what_is_revealed_cannot_change_the_cost(cost):
    cost.reveal_to_curator()[:] = 0.0
    assert (cost.reveal_to_curator() > 0).all()


def test_costs_add_row_by_row_and_in_total(cost):
    rdp = cost.reveal_to_curator()
    assert ((cost + cost).reveal_to_curator() == 2 * rdp).all()
    assert ((3 * cost).reveal_to_curator() == 3 * rdp).all()
    assert (cost.total().reveal_to_curator()[0] == rdp.sum(axis=0)).all()
    assert cost.reveal_epsilon_to_curator(1e-5) == cost.total().reveal_epsilon_to_curator(1e-5)


def test_the_whole_of_many_local_costs_stays_below_the_worst_case():
    counts, orders = some_counts(200, 10, 250), 1.0 + np.geomspace(1.0, 100.0, 40)
    local = exact_local_rdp(counts, 40.0, orders).reveal_epsilon_to_curator(1e-5)
    bound = theorem6(counts, 40.0, orders).reveal_epsilon_to_curator(1e-5)
    assert local < bound < GNMax(sigma=40.0).cost(200).epsilon(1e-5)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"direction": "both"}, "different direction do not add: 'forward' and 'both'"),
        ({"neighbors": "change one group label"}, "different neighbors do not add"),
        ({"orders": ORDERS + 1}, "only on the same orders"),
        ({"rdp": np.ones((1, 5))}, r"Costs of 2 and 1 queries.*a.total\(\) \+ b.total\(\)"),
    ],
)
def test_local_costs_of_different_kinds_do_not_add(cost, other, message):
    given_ = {"rdp": np.ones((2, 5)), "orders": ORDERS, "direction": "forward"} | other
    with pytest.raises(ValueError, match=message):
        cost + LocalCost(given_.pop("rdp"), **given_)


@pytest.mark.parametrize("cost_of", [theorem6, exact_local_rdp])
@pytest.mark.parametrize(
    ("counts", "sigma", "error", "message"),
    [
        ([[3], [4]], 2.0, ValueError, "at least 2 classes"),
        ([3, 4], 2.0, ValueError, r"shape \(n_queries, n_classes\)"),
        ([[3.0, 4.0]], 2.0, TypeError, "whole numbers of votes, got dtype float64"),
        ([[3, -4]], 2.0, ValueError, "counts must be at least 0, got -4"),
        ([[3, 4]], 0.0, ValueError, "sigma must be finite and > 0"),
    ],
)
def test_doubtful_votes_stop(cost_of, counts, sigma, error, message):
    with pytest.raises(error, match=message):
        cost_of(counts, sigma)


def test_misspelt_directions_and_tiny_noise_stop():
    with pytest.raises(ValueError, match="Did you mean 'reverse'"):
        exact_local_rdp([[3, 4]], 2.0, direction="revers")
    with pytest.raises(ValueError, match=r"sigma must be at least 0\.1 votes here, got 0\.05"):
        exact_local_rdp([[3, 4]], 0.05)
    with pytest.raises(ValueError, match=r"shape \(n_queries, 5\)"):
        LocalCost(np.ones(5), orders=ORDERS, direction="both")

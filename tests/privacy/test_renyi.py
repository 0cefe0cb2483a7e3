"""Renyi curves: figures of the literature, another library, and what may not be added."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st

from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.renyi import ORDERS, RenyiCurve

FINE = 1.0 + np.geomspace(0.02, 5000.0, 100_000)


def gaussian(mu, orders=ORDERS):
    return RenyiCurve(orders, orders * mu**2 / 2)


def test_a_thousand_answers_at_sigma_40_have_three_epsilons():
    curve = gaussian(math.sqrt(2) / 40) * 1000
    assert round(curve.epsilon(1e-5), 3) == 5.378
    assert round(curve.epsilon(1e-5, "classic"), 3) == 5.99
    exact = epsilon_from_mu(math.sqrt(1000 * 2) / 40, 1e-5)
    assert round(exact, 3) == 4.983


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0, 5.0])
def test_the_tight_conversion_agrees_with_another_library(mu, delta):
    curve = gaussian(mu)
    theirs, _ = rdp_privacy_accountant.compute_epsilon(curve.orders, curve.rdp, delta)
    assert curve.epsilon(delta) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("mu", [0.02, 0.3, 2.0, 15.0])
def test_the_classic_conversion_is_its_closed_form(mu):
    # Minimum over all orders of order * mu^2/2 + ln(1/delta) / (order - 1).
    closed = mu**2 / 2 + mu * math.sqrt(2 * math.log(1e5))
    assert closed <= gaussian(mu).epsilon(1e-5, "classic") <= closed * 1.0002


@pytest.mark.parametrize("mu", [0.05, 0.4, 1.1, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-10])
def test_exact_below_tight_below_classic(mu, delta):
    curve = gaussian(mu)
    exact, tight = epsilon_from_mu(mu, delta), curve.epsilon(delta)
    assert exact < tight < curve.epsilon(delta, "classic")
    assert tight <= gaussian(mu, FINE).epsilon(delta) * 1.0002  # the grid of orders is fine enough


@given(n=st.integers(0, 200), m=st.integers(0, 200))
def test_n_uses_and_m_uses_cost_n_plus_m(n, m):
    curve = RenyiCurve([2.0, 8.0], [1.0, 4.0])
    assert curve * n + m * curve == curve * (n + m)
    assert hash(curve * n + curve * m) == hash(curve * (n + m))


def test_no_use_of_an_unbounded_cost_is_free():
    curve = RenyiCurve([2.0, 8.0], [1.0, math.inf])
    assert (curve * 0).rdp.tolist() == [0.0, 0.0]
    assert curve.epsilon(1e-5) < math.inf
    assert RenyiCurve([2.0], [math.inf]).epsilon(1e-5) == math.inf


def test_epsilon_is_zero_when_delta_covers_everything():
    # Total variation of N(0, 1) against N(1e-7, 1) is 4e-8, below delta.
    assert gaussian(1e-7).epsilon(1e-6) == 0.0
    assert gaussian(1e-7).epsilon(1e-9) > 0.0


def test_a_curve_cannot_be_changed_by_its_maker():
    rdp = np.ones(2)
    curve = RenyiCurve(np.array([2.0, 3.0]), rdp)
    rdp[0] = 0.0
    assert curve.rdp[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        curve.rdp[0] = 0.0
    with pytest.raises(AttributeError):
        curve.rdp = rdp


def test_costs_for_other_neighbors_do_not_add():
    record = RenyiCurve([2.0], [1.0])
    label = RenyiCurve([2.0], [1.0], neighbors="change one group label")
    assert record != label
    with pytest.raises(ValueError, match=r"'replace one' and 'change one group label'.*side by"):
        record + label


def test_curves_on_other_orders_do_not_add():
    with pytest.raises(ValueError, match="only on the same orders, got 1 and 2 orders"):
        RenyiCurve([2.0], [1.0]) + RenyiCurve([2.0, 3.0], [1.0, 1.0])


def test_a_curve_and_a_number_do_not_add():
    with pytest.raises(TypeError):
        RenyiCurve([2.0], [1.0]) + 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RenyiCurve([2.0], [1.0, 2.0]), r"one value per order, got shape \(2,\) for 1"),
        (lambda: RenyiCurve([2.0], [-1.0]), "rdp must be at least 0 at every order, got -1.0"),
        (lambda: RenyiCurve([2.0], [math.nan]), "got nan"),
        (lambda: RenyiCurve([1.0, 2.0], [1.0, 2.0]), "greater than 1 and increasing, got 1.0"),
        (lambda: RenyiCurve([3.0, 2.0], [1.0, 2.0]), "increasing.*ORDERS is a grid"),
        (lambda: RenyiCurve([], []), "at least one order"),
        (lambda: RenyiCurve([2.0], [1.0], "replace won"), "Did you mean 'replace one'"),
        (lambda: gaussian(1.0).epsilon(1e-5, "tigth"), "Did you mean 'tight'"),
        (lambda: gaussian(1.0).epsilon(0.0), "delta must lie strictly between 0 and 1"),
        (lambda: gaussian(1.0) * -1, "n_uses must be at least 0"),
    ],
)
def test_doubtful_curves_stop(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_half_a_use_is_refused():
    with pytest.raises(TypeError, match="n_uses must be a whole number"):
        gaussian(1.0) * 0.5

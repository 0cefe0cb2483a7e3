"""Exact Gaussian DP against 80 digits, another library, and its own laws."""

import math

import mpmath
import pytest
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.privacy.gaussian import (
    delta_from_mu,
    epsilon_from_mu,
    mu_from_epsilon,
    n_affordable,
    sigma_for,
)

MUS = [1e-6, 1e-3, 0.3, 0.999, 1.0, 3.0, 40.0, 1e3]
DELTAS = [1e-300, 1e-100, 1e-20, 1e-9, 1e-5, 1e-2, 0.5, 0.99]


def exact_delta(mu, epsilon):
    """Compute the definition with enough digits for any cancellation."""
    with mpmath.workdps(80 + int(epsilon / 2)):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        lower, upper = (
            mpmath.erfc((epsilon / mu + sign * mu / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)
        )
        return float(lower - mpmath.exp(epsilon) * upper)


@pytest.mark.parametrize("mu", [mu for mu in MUS if mu <= 40])
@pytest.mark.parametrize("x", [-20.0, -1.0, 0.0, 0.7, 5.0, 15.0, 36.0])
def test_delta_is_the_definition_to_eleven_digits(mu, x):
    # x is the distance of the test from its center, in standard deviations: delta spans 1e-290..1.
    epsilon = max(mu * (x + mu / 2), 0.0)
    assert delta_from_mu(mu, epsilon) == pytest.approx(exact_delta(mu, epsilon), abs=0.0, rel=1e-11)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_and_mu_invert_delta(mu, delta):
    epsilon = epsilon_from_mu(mu, delta)
    if epsilon == 0.0:
        assert delta_from_mu(mu, 0.0) <= delta
    else:
        assert delta_from_mu(mu, epsilon) == pytest.approx(delta, abs=0.0, rel=1e-9)
        assert mu_from_epsilon(epsilon, delta) == pytest.approx(mu, abs=0.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-3, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("delta", DELTAS)
def test_the_budget_of_any_epsilon_gives_its_delta_back(epsilon, delta):
    assert delta_from_mu(mu_from_epsilon(epsilon, delta), epsilon) == pytest.approx(
        delta, abs=0.0, rel=1e-9
    )


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.118, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_epsilon_agrees_with_another_library(mu, delta):
    loss = GaussianPrivacyLoss(standard_deviation=1 / mu)
    theirs = loss.get_delta_for_epsilon(epsilon_from_mu(mu, delta))
    assert theirs == pytest.approx(delta, abs=0.0, rel=1e-6)
    sigma = GaussianPrivacyLoss.from_privacy_guarantee(
        DifferentialPrivacyParameters(1.0, delta)
    ).standard_deviation
    assert mu_from_epsilon(1.0, delta) == pytest.approx(1 / sigma, abs=0.0, rel=1e-3)


def test_a_thousand_answers_at_sigma_40_cost_epsilon_4_983():
    # MATHS of the project and dp_accounting's get_epsilon_gaussian give the same three decimals.
    assert round(epsilon_from_mu(math.sqrt(1000 * 2 / 40**2), 1e-5), 3) == 4.983


@given(
    mu=st.floats(1e-6, 1e3),
    more=st.floats(1.001, 3.0),
    delta=st.floats(1e-200, 0.9),
)
@settings(deadline=None)
def test_more_mu_never_costs_less(mu, more, delta):
    assert epsilon_from_mu(mu * more, delta) >= epsilon_from_mu(mu, delta)
    assert epsilon_from_mu(mu, delta / more) >= epsilon_from_mu(mu, delta)


def test_no_release_costs_nothing():
    assert delta_from_mu(0.0, 1.0) == 0.0
    assert epsilon_from_mu(0.0, 1e-5) == 0.0


@given(
    budget=st.floats(1e-6, 1e3),
    n=st.integers(1, 3000),
    sensitivity=st.sampled_from([1.0, math.sqrt(2.0), 2.0]),
)
@settings(deadline=None)
def test_what_was_planned_is_affordable_and_one_more_is_not(budget, n, sensitivity):
    sigma = sigma_for(budget, n, sensitivity)
    each = (sensitivity / sigma) ** 2
    assert n_affordable(budget, each) == n
    assert math.fsum([each] * (n + 1)) > budget


@given(each=st.floats(1e-6, 1.0), n=st.integers(0, 3000), nudge=st.sampled_from([-1, 0, 1]))
@settings(deadline=None)
def test_adding_up_what_is_affordable_never_passes_the_budget(each, n, nudge):
    # Budgets within one rounding step of a whole number of releases: where floats go wrong.
    budget = each * n
    budget = max(0.0, math.nextafter(budget, nudge * math.inf)) if nudge else budget
    spent = 0.0
    for _ in range(n_affordable(budget, each)):
        spent += each
    assert spent <= budget


def test_affordable_is_not_stingy():
    assert n_affordable(1.0, 1 / 1000.5) == 1000
    assert n_affordable(0.0, 0.1) == 0


def test_sigma_for_other_noise_is_the_smallest_that_fits():
    def worse(sigma):  # some noise that costs 10 % more
        return 1.1 / sigma

    sigma = sigma_for(0.7, 500, math.sqrt(2.0), gaussian_mu=worse)
    assert sigma == pytest.approx(1.1 * sigma_for(0.7, 500, math.sqrt(2.0)), abs=0.0, rel=1e-9)
    assert n_affordable(0.7, 2 * worse(sigma) ** 2) == 500


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: delta_from_mu(-1.0, 1.0), "mu must be finite and >= 0, got mu=-1.0"),
        (lambda: delta_from_mu(1.0, -0.1), "epsilon must be finite and >= 0"),
        (lambda: epsilon_from_mu(math.nan, 1e-5), "mu must be finite"),
        (lambda: epsilon_from_mu(1.0, 0.0), "delta must lie strictly between 0 and 1"),
        (lambda: mu_from_epsilon(1.0, 1.0), "delta must lie strictly between 0 and 1"),
        (lambda: sigma_for(0.0, 10), "mu_squared_budget must be finite and > 0"),
        (lambda: sigma_for(1.0, 0), "n_releases must be at least 1"),
        (lambda: sigma_for(1.0, 1, 0.0), "l2_sensitivity must be finite and > 0"),
        (lambda: n_affordable(1.0, 0.0), "A release without cost has no limit"),
    ],
)
def test_doubtful_numbers_stop(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""The cost of integer noise: every step with 50 digits, and the composed privacy loss itself."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import log_ndtr, ndtri_exp

from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.integer_noise import discrete_gaussian_mu, discrete_laplace_mu, laplace_mu


def quantile_above(tail):
    """Return x with 1 - Phi(x) = tail, to the working precision, however small the tail."""
    x = mpmath.mpf(-ndtri_exp(float(mpmath.log(tail))))  # 15 digits; Newton doubles them
    for _ in range(3):
        over = mpmath.erfc(x / mpmath.sqrt(2)) / 2
        x += (over / tail - 1) * tail / mpmath.npdf(x)
    return x


def steps(weight, n_steps):
    """Return d(0), d(1), ... of symmetric integer noise; ``weight(k)`` for k >= 0, until tiny."""
    weights = [weight(0)]
    while weights[-1] > mpmath.mpf(10) ** -400 or len(weights) < n_steps + 10:
        weights.append(weight(len(weights)))
    total = 2 * sum(weights) - weights[0]
    tails, tail = [], mpmath.mpf(0)
    for w in reversed(weights):  # from the far end, so that small tails keep their digits
        tails.append(tail / total)
        tail += w
    tails = tails[::-1][:n_steps]
    levels = [quantile_above(t) for t in tails]
    return [2 * levels[0]] + [b - a for a, b in itertools.pairwise(levels)]


@pytest.mark.parametrize("sigma", [0.2, 0.3, 0.4, 0.45, 0.5, 0.7, 1.0, 1.5, 3.0, 10.0])
def test_the_central_step_is_the_largest_and_is_mu(sigma):
    with mpmath.workdps(50):
        s = mpmath.mpf(sigma)
        d = steps(lambda k: mpmath.exp(-((k / s) ** 2) / 2), max(6, int(10 * sigma)))
        assert max(d) == d[0]
        assert all(step > 1 / s for step in d)  # the limit, from above
        assert discrete_gaussian_mu(sigma) == pytest.approx(float(d[0]), abs=0.0, rel=1e-14)


@pytest.mark.parametrize("sigma", [100.0, 300.0, 1e3])
def test_large_sigma_matches_the_central_step_by_the_theta_function(sigma):
    with mpmath.workdps(50):
        nome = mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2))
        p_0 = 1 / mpmath.jtheta(3, 0, nome)
        mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(p_0)
        assert discrete_gaussian_mu(sigma) == pytest.approx(float(mu), abs=0.0, rel=1e-14)


def test_very_large_sigma_matches_the_first_term_of_its_expansion():
    # The next term is of order sigma**-4, below rounding.
    assert discrete_gaussian_mu(1e5) * 1e5 == pytest.approx(1 + 1 / (24 * 1e10), abs=0.0, rel=1e-14)


def test_two_formulas_of_the_center_agree_where_they_meet():
    below, above = discrete_gaussian_mu(math.nextafter(1.0, 0.0)), discrete_gaussian_mu(1.0)
    assert below == pytest.approx(above, abs=0.0, rel=1e-14)
    for mu in (laplace_mu, discrete_laplace_mu):
        assert mu(math.nextafter(1.0, 2.0)) == pytest.approx(mu(1.0), abs=0.0, rel=1e-14)


@pytest.mark.parametrize("sigma", [5.0, 40.0, 200.0])
def test_discreteness_costs_a_share_of_one_over_12_sigma_squared(sigma):
    inflation = (discrete_gaussian_mu(sigma) * sigma) ** 2 - 1
    assert inflation == pytest.approx(1 / (12 * sigma**2), abs=0.0, rel=0.05)


def test_the_curvature_in_the_proof_rises_with_position_and_width():
    # Steps 1 and 2 of the proof in the module: E(d, s) on a grid, for d up to 2.8 and beyond.
    def log_mass(s, d):
        high, low = log_ndtr(d / 2 - s), log_ndtr(-d / 2 - s)
        return high + np.log(-np.expm1(low - high))

    s = np.linspace(0.0, 12.0, 241)
    d = np.linspace(0.02, 2.8, 140)[:, np.newaxis]
    curvature = 2 * log_mass(s, d) - log_mass(s + d, d) - log_mass(np.abs(s - d), d)
    assert np.diff(curvature, axis=0).min() > 0
    assert np.diff(curvature, axis=1).min() > -1e-12
    wide = np.linspace(2.8, 9.0, 100)
    assert (2 * log_mass(0.0, wide) - 2 * log_mass(wide, wide)).min() > 4.6


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 4.0, 10.0])
def test_discrete_laplace_steps_are_largest_in_the_center(scale):
    with mpmath.workdps(50):
        d = steps(lambda k: mpmath.exp(-k / mpmath.mpf(scale)), 8 if scale < 1 else 40)
        assert max(d) == d[0]
        assert discrete_laplace_mu(scale) == pytest.approx(float(d[0]), abs=0.0, rel=1e-13)


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 4.0, 30.0])
def test_laplace_is_the_supremum_over_all_thresholds(scale):
    def quantile(t):  # of the Laplace distribution function at t, by the smaller tail
        log_tail = -np.abs(t) / scale - math.log(2.0)
        return np.sign(t) * -ndtri_exp(log_tail)

    t = np.linspace(-20 * scale, 20 * scale + 1, 40001)
    found = (quantile(t) - quantile(t - 1)).max()
    assert found <= laplace_mu(scale) * (1 + 1e-12)
    assert found == pytest.approx(laplace_mu(scale), abs=0.0, rel=1e-3)
    assert laplace_mu(scale) < discrete_laplace_mu(scale)


@pytest.mark.parametrize(("sigma", "n"), [(2.0, 10), (5.0, 100), (20.0, 400)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_mu_bounds_the_composed_privacy_loss_of_discrete_gaussians(sigma, n, delta):
    # dp_accounting composes the discrete privacy loss itself; rounded down, it is a lower bound.
    def loss(pessimistic):
        one = pld.from_discrete_gaussian_mechanism(
            sigma, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )
        return one.self_compose(n).get_epsilon_for_delta(delta)

    ours = epsilon_from_mu(math.sqrt(n) * discrete_gaussian_mu(sigma), delta)
    assert loss(pessimistic=False) <= ours
    assert ours <= (1.002 + 1 / (12 * sigma**2)) * loss(pessimistic=True)


@pytest.mark.parametrize(("scale", "n"), [(2.0, 10), (20.0, 300)])
def test_mu_bounds_the_composed_privacy_loss_of_laplace(scale, n):
    one = pld.from_laplace_mechanism(
        scale, pessimistic_estimate=False, value_discretization_interval=1e-3
    )
    theirs = one.self_compose(n).get_epsilon_for_delta(1e-5)
    assert theirs <= epsilon_from_mu(math.sqrt(n) * laplace_mu(scale), 1e-5)
    assert theirs <= epsilon_from_mu(math.sqrt(n) * discrete_laplace_mu(scale), 1e-5)


@pytest.mark.parametrize("sigma", [0.01, 0.05, 0.1])
def test_tiny_noise_has_a_finite_and_falling_cost(sigma):
    assert discrete_gaussian_mu(2 * sigma) < discrete_gaussian_mu(sigma) < math.inf
    assert discrete_laplace_mu(2 * sigma) < discrete_laplace_mu(sigma) < math.inf
    assert laplace_mu(2 * sigma) < laplace_mu(sigma) < math.inf


@pytest.mark.parametrize("mu", [discrete_gaussian_mu, discrete_laplace_mu, laplace_mu])
@pytest.mark.parametrize("amount", [0.0, -1.0, math.inf, math.nan])
def test_no_noise_is_refused(mu, amount):
    with pytest.raises(ValueError, match="Zero noise releases the count exactly"):
        mu(amount)

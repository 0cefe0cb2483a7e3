"""The price of publishing the best of many runs bounds what it truly gives away."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.renyi import ORDERS, RenyiCurve
from evenhand.privacy.selection import (
    NegativeBinomialRepetitions,
    PoissonRepetitions,
    gaussian_curve,
)

SOME_ORDERS = ORDERS[::20]
N_TERMS = 4000


def negative_binomial(shape: float, gamma: float) -> np.ndarray:
    """P(K = k) for k = 0, 1, ..., term by term from the definition (nothing at 0)."""
    weights = np.zeros(N_TERMS)
    weights[1] = 1.0
    for k in range(1, N_TERMS - 1):
        weights[k + 1] = weights[k] * (1 - gamma) * (k + shape) / (k + 1)
    return weights / weights.sum()


def poisson(mean: float) -> np.ndarray:
    logs = [k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(N_TERMS)]
    return np.exp(logs)


def best_of(single: np.ndarray, n_runs: np.ndarray) -> np.ndarray:
    """Law of the best outcome, outcomes in order of their score; the first stands for no run."""
    k = np.arange(N_TERMS)[:, None]
    reached = np.concatenate([[0.0], single.cumsum()]) ** k  # 0**0 = 1: no run, no outcome
    law = n_runs @ (reached[:, 1:] - reached[:, :-1])
    return np.concatenate([[n_runs[0]], law])


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    both = p > 0
    terms = order * np.log(p[both]) + (1 - order) * np.log(q[both])
    return float(logsumexp(terms) / (order - 1))


def exact_curve(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([max(divergence(p, q, a), divergence(q, p, a), 0.0) for a in SOME_ORDERS])


LAWS = [
    *(("binomial", shape, gamma) for shape in (-0.5, 0.0, 1.0, 3.0) for gamma in (0.05, 0.5)),
    *(("poisson", mean, 0.0) for mean in (1.0, 5.0, 40.0)),
]


def repetitions(kind: str, first: float, gamma: float):
    if kind == "poisson":
        return PoissonRepetitions(mean=first), poisson(first)
    law = NegativeBinomialRepetitions(shape=first, gamma=gamma)
    return law, negative_binomial(first, gamma)


@pytest.mark.parametrize(("kind", "first", "gamma"), LAWS)
def test_the_cost_bounds_the_exact_divergence_of_the_best_run(kind, first, gamma) -> None:
    # Brute force: a run has four outcomes, the choice takes the best; every divergence, exactly.
    ours, n_runs = repetitions(kind, first, gamma)
    assert ours.mean == pytest.approx(n_runs @ np.arange(N_TERMS), rel=1e-9)
    rng = np.random.default_rng(0)
    closest = math.inf
    for scale in (0.05, 0.3, 1.0, 3.0):
        for _ in range(8):
            p = rng.dirichlet(np.ones(4))
            # Neighbors that differ most where the choice looks: in the best outcome.
            q = p * np.exp(scale * np.array([0, 0, 0, 1]))
            q = q / q.sum()
            run = RenyiCurve(SOME_ORDERS, exact_curve(p, q))
            exact = exact_curve(best_of(p, n_runs), best_of(q, n_runs))
            cost = ours.cost(run).rdp
            assert np.all(exact <= cost + 1e-9)
            closest = min(closest, float(np.min(cost / np.maximum(exact, 1e-12))))
    assert closest < 40  # and the bound says something


def test_one_runs_cost_is_too_little_for_the_best_of_many() -> None:
    ours, n_runs = repetitions("binomial", 1.0, 0.02)
    p, q = np.array([0.99, 0.01]), np.array([0.995, 0.005])
    run = RenyiCurve(SOME_ORDERS, exact_curve(p, q))
    exact = exact_curve(best_of(p, n_runs), best_of(q, n_runs))
    assert (exact > run.rdp).any()
    assert (exact <= ours.cost(run).rdp).all()


@pytest.mark.parametrize("mean", [1.5, 10.0, 300.0])
@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 4.0, math.inf])
def test_the_cost_is_that_of_dp_accounting(mean: float, shape: float) -> None:
    # A second implementation, by others, of the same two theorems.
    run = gaussian_curve(0.3)
    theirs = rdp_privacy_accountant._compute_rdp_repeat_and_select(ORDERS, run.rdp, mean, shape)
    ours = (
        PoissonRepetitions(mean=mean)
        if shape == math.inf
        else NegativeBinomialRepetitions.of_mean(mean, shape=shape)
    )
    for delta in (1e-3, 1e-6):
        expected = RenyiCurve(ORDERS, np.array(theirs)).epsilon(delta)
        assert ours.cost(run).epsilon(delta) == pytest.approx(expected, rel=1e-6)


@given(st.floats(0.001, 2.0), st.floats(1.01, 1000.0), st.floats(-0.9, 5.0))
def test_choosing_costs_more_than_one_run_and_more_runs_cost_more(mu2, mean, shape) -> None:
    run = gaussian_curve(mu2)
    cost = NegativeBinomialRepetitions.of_mean(mean, shape=shape).cost(run).rdp
    more = NegativeBinomialRepetitions.of_mean(2 * mean, shape=shape).cost(run).rdp
    assert (cost >= run.rdp).all()
    assert (more >= cost).all()


def test_the_curve_of_a_gaussian_bounds_its_exact_epsilon() -> None:
    for mu2 in (0.01, 0.5, 4.0):
        exact = epsilon_from_mu(math.sqrt(mu2), 1e-5)
        assert exact < gaussian_curve(mu2).epsilon(1e-5) < 1.2 * exact


def test_a_curve_keeps_its_neighbors() -> None:
    run = gaussian_curve(0.3, "add or remove one")
    for law in (PoissonRepetitions(mean=3), NegativeBinomialRepetitions(shape=1, gamma=0.5)):
        assert law.cost(run).neighbors == "add or remove one"


def test_what_is_no_distribution_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape must be finite and > -1, got shape=-1\. 1 is the"):
        NegativeBinomialRepetitions(shape=-1, gamma=0.5)
    with pytest.raises(ValueError, match="gamma must lie strictly between 0 and 1, got gamma=1"):
        NegativeBinomialRepetitions(shape=1, gamma=1)
    with pytest.raises(ValueError, match=r"mean must be finite and greater than 1, got mean=1\.0"):
        NegativeBinomialRepetitions.of_mean(1.0, shape=1)
    with pytest.raises(ValueError, match=r"mean must be at least 1, got mean=0\.5"):
        PoissonRepetitions(mean=0.5)
    with pytest.raises(ValueError, match="mu_squared must be finite and > 0"):
        gaussian_curve(0.0)

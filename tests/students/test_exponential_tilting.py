"""Probabilities of groups that agree with released sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from evenhand.students import exponential_tilting as module
from evenhand.students.exponential_tilting import exponential_tilting
from evenhand.voting.group_moments import GroupMoments


def town(n: int = 2000, n_groups: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    phi = np.column_stack([np.ones(n), rng.normal(size=(n, 3)).clip(-2, 2)])
    scores = phi @ rng.normal(size=(4, n_groups))
    true = softmax(scores, axis=1)
    z = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    flat = softmax(0.2 * scores, axis=1)  # undecided
    return phi, true, z, flat


def moments(phi, z, n_groups, variance=1e-9) -> GroupMoments:
    sums = np.stack([phi[z == a].sum(axis=0) for a in range(n_groups)])
    return GroupMoments(features=phi, sums=sums, variance=variance)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_exact_sums_are_met_and_so_is_every_mean_of_what_the_features_span(n_groups) -> None:
    phi, _, z, flat = town(n_groups=n_groups)
    q = exponential_tilting(flat, moments(phi, z, n_groups))
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    for a in range(n_groups):
        np.testing.assert_allclose(q[:, a] @ phi, phi[z == a].sum(axis=0), atol=0.5)
        h = phi @ [0.3, -1.0, 0.5, 0.2]
        assert q[:, a] @ h / q[:, a].sum() == pytest.approx(h[z == a].mean(), abs=2e-3)


def test_undecided_probabilities_come_near_the_true_ones() -> None:
    phi, true, z, flat = town(n=20_000)
    q = exponential_tilting(flat, moments(phi, z, 2))
    assert np.abs(q - true).mean() < 0.02 < 0.1 < np.abs(flat - true).mean()


@pytest.mark.parametrize("n_groups", [2, 3])
def test_from_nothing_it_is_the_logistic_regression_of_the_group(n_groups) -> None:
    # Another library, which has seen every row's group; here are sums alone.
    phi, _, z, _ = town(n_groups=n_groups)
    told = moments(phi, z, n_groups, variance=1e-6)
    q = exponential_tilting(np.full((len(z), n_groups), 1.0 / n_groups), told)
    known = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(phi[:, 1:], z)
    np.testing.assert_allclose(q, known.predict_proba(phi[:, 1:]), atol=2e-3)


@pytest.mark.parametrize("variance", [0.5, 50.0])
def test_it_is_the_nearest_to_what_was_said_by_a_second_derivation(variance) -> None:
    # The primal, solved over the probabilities of 30 rows themselves: KL plus squared misfit.
    phi, _, z, flat = town(n=30)
    told = moments(phi, z, 2, variance)
    q = exponential_tilting(flat, told)

    def primal(logits):
        p = expit(logits)
        prior = flat[:, 1]
        kl = p * np.log(p / prior) + (1 - p) * np.log((1 - p) / (1 - prior))
        return kl.sum() + ((p @ phi - told.sums[1]) ** 2).sum() / (2 * variance)

    found = minimize(primal, np.log(flat[:, 1] / flat[:, 0]), method="BFGS")
    np.testing.assert_allclose(q[:, 1], expit(found.x), atol=2e-3)


def test_sums_that_drown_in_noise_change_nothing() -> None:
    phi, _, z, flat = town()
    np.testing.assert_allclose(
        exponential_tilting(flat, moments(phi, z, 2, variance=1e12)), flat, atol=1e-6
    )


def test_probabilities_of_0_and_1_can_still_be_told_otherwise() -> None:
    phi, _, z, _ = town()
    hard = np.eye(2)[np.zeros(len(z), dtype=int)]  # everybody is said to be of the first group
    q = exponential_tilting(hard, moments(phi, z, 2))
    assert q[:, 1].sum() == pytest.approx((z == 1).sum(), rel=1e-3)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_from_nothing_sums_of_many_rows_are_met_up_to_their_noise_and_no_nearer(n_groups) -> None:
    # Features that tell the group of 20,000 rows, and noise that is small beside them: even
    # probabilities are no witnesses, and must not hold the sums back by many times the noise.
    phi, true, z, _ = town(n=20_000, n_groups=n_groups)
    told = moments(phi, z, n_groups, variance=70.0**2)
    even = np.full((len(z), n_groups), 1.0 / n_groups)

    def apart(q: np.ndarray) -> float:
        away = (q.T @ phi - told.sums)[-1 if n_groups == 2 else slice(None)]
        return float(np.sqrt((away**2).mean()) / 70.0)

    loose, met, tight = (
        exponential_tilting(even, told, within=within) for within in (None, 1.0, 0.1)
    )
    assert apart(loose) > 2.0
    assert 0.25 <= apart(met) <= 1.01  # each ridge is a quarter of the last
    assert apart(tight) <= 0.101
    assert np.abs(met - true).mean() < np.abs(loose - true).mean()


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("within", [1.0, 0.1])
def test_ridges_that_are_passed_over_would_not_have_been_kept(
    n_groups, within, monkeypatch: pytest.MonkeyPatch
) -> None:
    phi, _, z, _ = town(n=20_000, n_groups=n_groups)
    told = moments(phi, z, n_groups, variance=20.0**2)
    even = np.full((len(z), n_groups), 1.0 / n_groups)
    tried = []
    solve = module._descend

    def noted(family, theta, ridge, precision):
        tried.append(ridge)
        return solve(family, theta, ridge, precision)

    monkeypatch.setattr(module, "_descend", noted)
    some = exponential_tilting(even, told, within=within)
    fewer, tried[:] = len(tried), []
    monkeypatch.setattr(module, "_too_large", lambda family, within: 0)
    every = exponential_tilting(even, told, within=within)
    assert fewer < len(tried)
    np.testing.assert_allclose(some, every, atol=1e-4)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_features_that_say_the_same_twice_and_exact_sums_do_no_harm(n_groups) -> None:
    phi, _, z, flat = town(n_groups=n_groups)
    twice = np.column_stack([phi, phi[:, 1] + phi[:, 2], np.zeros(len(phi))])
    for within in (None, 1.0):
        q = exponential_tilting(flat, moments(twice, z, n_groups, variance=1e-16), within=within)
        once = exponential_tilting(flat, moments(phi, z, n_groups, variance=1e-16), within=within)
        np.testing.assert_allclose(q, once, atol=5e-3)


def test_sums_that_drown_in_noise_leave_the_probabilities_where_they_were() -> None:
    phi, _, z, _ = town(n=200)
    told = moments(phi, z, 2, variance=1e8)
    q = exponential_tilting(np.full((200, 2), 0.5), told, within=1.0)
    np.testing.assert_allclose(q, 0.5, atol=1e-3)

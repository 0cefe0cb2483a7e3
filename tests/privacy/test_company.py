"""Which costs a ledger adds up: relations, deltas, and what a sound price of a pure epsilon is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    ConfidentGNMax,
    DiscreteNoise,
    FloatNoise,
    GNMax,
    Ledger,
    LNMax,
    NoisyHistogram,
    RandomizedResponse,
    SeededNoise,
    SubsampledGaussian,
    attribute_of,
)
from evenhand.privacy.gaussian import delta_from_mu, epsilon_from_mu, mu_from_epsilon
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.privacy.relation import GROUP_LABEL
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.privacy.table import LaplaceTable

DELTA = 1e-5
EPSILONS = np.concatenate([np.linspace(0.0, 12.0, 241), [20.0, 40.0]])
STEPS = SubsampledGaussian(
    noise_multiplier=2.0, sampling_rate=0.04, n_steps=500, clip_norm=1.0, delta=DELTA
)


def ledger(budget: Budget | None = None, **options: Any) -> Ledger:
    given = {"noise": SeededNoise(0), "neighbors": "add or remove one"} | options
    return Ledger(budget or Budget(epsilon=20.0, delta=DELTA), **given)


# The definition: delta(epsilon) = sum over outputs of max(0, p - exp(epsilon) q), both directions.


def profile(p: np.ndarray, q: np.ndarray, times: int) -> np.ndarray:
    """Return the exact delta at each of EPSILONS of ``times`` independent uses."""
    p_all, q_all = p, q
    for _ in range(times - 1):
        p_all, q_all = np.outer(p_all, p).ravel(), np.outer(q_all, q).ravel()
    factor = np.exp(EPSILONS)[:, np.newaxis]
    one = np.maximum(p_all - factor * q_all, 0.0).sum(axis=1)
    other = np.maximum(q_all - factor * p_all, 0.0).sum(axis=1)
    return np.asarray(np.maximum(one, other))


def table_profile(scale: float, times: int) -> np.ndarray:
    """A count under discrete Laplace noise, at 0 and at 1 records; far tails weigh nothing."""
    k = np.arange(-int(40 * scale) - 3, int(40 * scale) + 4)
    p, q = (np.exp(-np.abs(k - n) / scale) for n in (0, 1))
    norm = math.tanh(0.5 / scale)
    return profile(p * norm, q * norm, times)


def response_profile(epsilon: float, n_groups: int, times: int) -> np.ndarray:
    made = RandomizedResponse(epsilon=epsilon, n_groups=n_groups)
    return profile(made.matrix[0], made.matrix[1], times)


def allowed(mu_squared: float) -> np.ndarray:
    return np.array([delta_from_mu(math.sqrt(mu_squared), e) for e in EPSILONS])


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("scale", [0.11, 0.5, 1.0, 4.0])
def test_a_table_without_a_delta_costs_what_it_is_charged_at_every_delta(
    scale: float, times: int
) -> None:
    cost = times * LaplaceTable(scale=scale).mu_squared(DiscreteNoise())
    exact = table_profile(scale, times)
    assert np.all(exact <= allowed(cost) + 1e-13)
    if times == 1:  # and with two hundredths less it would not
        assert np.any(exact > allowed(cost * 0.98) + 1e-13)


@pytest.mark.parametrize("scale", [0.11, 0.5, 1.0, 10.0])
def test_a_table_of_real_noise_too_by_its_closed_form(scale: float) -> None:
    # Balle and Wang 2018: delta(epsilon) = 1 - exp((epsilon - 1 / scale) / 2), and 0 beyond.
    cost = LaplaceTable(scale=scale).mu_squared(FloatNoise())
    exact = np.maximum(0.0, -np.expm1((EPSILONS - 1.0 / scale) / 2.0))
    assert np.all(exact <= allowed(cost) + 1e-13)
    assert np.any(exact > allowed(cost * 0.98) + 1e-13)


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize(("epsilon", "n_groups"), [(0.3, 2), (1.0, 2), (3.0, 4), (9.09, 3)])
def test_a_response_without_a_delta_costs_what_it_is_charged_at_every_delta(
    epsilon: float, n_groups: int, times: int
) -> None:
    cost = times * RandomizedResponse(epsilon=epsilon, n_groups=n_groups).mu_squared(SeededNoise(0))
    exact = response_profile(epsilon, n_groups, times)
    assert np.all(exact <= allowed(cost) + 1e-13)
    if times == 1 and n_groups == 2:
        assert np.any(exact > allowed(cost * 0.98) + 1e-13)


def test_what_a_price_at_one_delta_would_hide() -> None:
    # Two tables of epsilon 1 at delta 1e-5 look like one Gaussian; two uses cost more than it says.
    price = mu_from_epsilon(1.0, DELTA) ** 2
    claimed = epsilon_from_mu(math.sqrt(2 * price), DELTA)
    at = int(np.argmin(np.abs(EPSILONS - claimed)))
    assert table_profile(1.0, 2)[at] > 100 * DELTA
    # Priced at another delta than the ledger's: epsilon 9.09 would be charged as less than one.
    elsewhere = LaplaceTable(scale=0.11, delta=1e-300).mu_squared(SeededNoise(0))
    assert epsilon_from_mu(math.sqrt(elsewhere), DELTA) < 0.95


TABLE, RESPONSE = (
    LaplaceTable(scale=1.0, delta=DELTA),
    RandomizedResponse(epsilon=1.0, n_groups=2, delta=DELTA),
)
OF_LABELS = {"neighbors": GROUP_LABEL, "unit": attribute_of("record")}


@pytest.mark.parametrize(
    ("mechanism", "given"), [(TABLE, {}), (STEPS, {}), (RESPONSE, OF_LABELS)], ids=repr
)
def test_a_cost_at_one_delta_needs_an_account_of_its_own(mechanism: Any, given: Any) -> None:
    with pytest.raises(ValueError, match=r"known at delta=1e-05 alone.*single=True"):
        ledger(**given).reserve({mechanism: 1}, purpose="in company")
    other = ledger(Budget(epsilon=20.0, delta=1e-6), single=True, **given)
    with pytest.raises(ValueError, match=r"delta=1e-05 alone, and this ledger's budget.*1e-06"):
        other.reserve({mechanism: 1}, purpose="at another delta")
    own = ledger(single=True, **given)
    for uses in ({mechanism: 2}, {mechanism: 1, **_another(mechanism)}):
        with pytest.raises(BudgetExceeded):
            own.reserve(uses, purpose="two at once")
    own.reserve({mechanism: 1}, purpose="alone")
    assert own.remaining == 0.0
    with pytest.raises(BudgetExceeded):
        own.reserve({mechanism: 1}, purpose="again")
    with pytest.raises(ValueError, match="adds up with others"):
        ledger(single=True, **given).reserve({GNMax(sigma=40.0): 1}, purpose="company")
    with pytest.raises(ValueError, match="holds no runs"):
        own.run(Budget(epsilon=1.0, delta=DELTA), purpose="a run")


def _another(mechanism: Any) -> dict[Any, int]:
    """The same kind of mechanism with a slightly other price."""
    changed = {
        "LaplaceTable": {"scale": 30.0},
        "RandomizedResponse": {"epsilon": 0.01},
        "SubsampledGaussian": {"n_steps": 1},
    }[type(mechanism).__name__]
    return {replace(mechanism, **changed): 1}


@pytest.mark.parametrize(
    ("mechanism", "given"), [(TABLE, {}), (STEPS, {}), (RESPONSE, OF_LABELS)], ids=repr
)
def test_a_cost_about_other_neighbors_is_refused(mechanism: Any, given: Any) -> None:
    stated = {"neighbors": "add or remove one"} | given
    for relation in set(NEIGHBORS) - {stated["neighbors"]}:
        unit = attribute_of("record", and_class_label="class" in relation)
        there = {"neighbors": relation, "unit": unit if "label" in relation else "record"}
        with pytest.raises(ValueError, match=r"is about neighbors.*this ledger counts for"):
            ledger(single=True, **there).reserve({mechanism: 1}, purpose="half price")


def test_votes_move_by_one_teacher_under_every_relation() -> None:
    mechanisms = [
        GNMax(sigma=40.0),
        LNMax(scale=40.0),
        NoisyThreshold(threshold=3.0, sigma=40.0),
        NoisyHistogram(sigma=40.0, n_classes=2),
        NoisySum(sigma=40.0, l2_sensitivity=1.0),
    ]
    for mechanism in [*mechanisms, ConfidentGNMax(threshold=3.0, sigma_check=9.0, sigma=9.0)]:
        assert set(mechanism.neighbors) == set(NEIGHBORS)
        assert mechanism.delta is None


def test_a_mechanism_that_states_neither_is_refused() -> None:
    class Unstated:
        def mu_squared(self, noise: Any) -> float:
            return 0.1

    with pytest.raises(TypeError, match="does not state 'neighbors'"):
        ledger().reserve({Unstated(): 1}, purpose="who knows")


def test_the_claim_of_a_single_release_adds_up_by_epsilon_only() -> None:
    own = ledger(Budget(epsilon=1.0, delta=DELTA), single=True)
    claim = own.guarantee()
    assert claim.mu_squared is None
    both = claim + claim
    assert (both.epsilon, both.delta) == (2.0, 2 * DELTA)
    assert own.spent_epsilon(1e-3) == own.spent_epsilon(DELTA)
    with pytest.raises(ValueError, match=r"known at delta=1e-05 alone.*Ask at that delta"):
        own.spent_epsilon(1e-6)


def test_tables_that_add_up_share_a_ledger_with_votes() -> None:
    account = ledger()
    tables, answer = LaplaceTable(scale=2.0), GNMax(sigma=10.0)
    with account.reserve({tables: 2, answer: 3}, purpose="both") as grant:
        for mechanism in (tables, answer):
            grant.draw(mechanism, 2)
    noise = SeededNoise(0)
    assert account.spent == pytest.approx(
        2 * tables.mu_squared(noise) + 3 * answer.mu_squared(noise)
    )


# ------------------------------------------- Gaussian releases beside a cost at one delta


BESIDE = 0.1
JOINT = replace(STEPS, noise_multiplier=4.0, beside=BESIDE)
TABLE = NoisySum(sigma=BESIDE**-0.5 * (1 + 1e-9), l2_sensitivity=1.0)


def single(epsilon: float = 20.0) -> Ledger:
    return ledger(Budget(epsilon=epsilon, delta=DELTA), single=True, noise=SeededNoise(0))


def test_a_release_beside_is_paid_for_by_the_steps_and_by_no_other() -> None:
    account = single()
    with account.reserve({JOINT: 1}, purpose="both") as grant:
        assert account.remaining == 0  # the whole account, before anything was drawn
        inner = grant.beside(JOINT)
        assert inner.remaining == pytest.approx(BESIDE)
        assert not inner.single
        drawn = inner.release(TABLE, np.zeros((1, 3), dtype=int), purpose="counts")
        assert drawn.shape == (1, 3)
        with pytest.raises(BudgetExceeded):
            inner.release(TABLE, np.zeros((1, 3), dtype=int), purpose="once more")
        with pytest.raises(RuntimeError, match="opened before: it is paid for once"):
            grant.beside(JOINT)
        next(grant.draw_by_step(JOINT, 2))
    assert account.remaining == 0


def test_nothing_comes_back_of_a_grant_that_released_beside_alone() -> None:
    account = single()
    with account.reserve({JOINT: 1}, purpose="both") as grant:
        grant.beside(JOINT)
    assert account.remaining == 0
    fresh = single()
    with fresh.reserve({JOINT: 1}, purpose="both"):
        pass
    assert fresh.spent == 0


def test_what_costs_more_or_is_known_at_one_delta_stands_beside_nothing() -> None:
    with single().reserve({JOINT: 1}, purpose="both") as grant:
        inner = grant.beside(JOINT)
        with pytest.raises(ValueError, match=r"known at delta=1e-05 alone"):
            inner.reserve({STEPS: 1}, purpose="steps within")
        with pytest.raises(BudgetExceeded):
            inner.reserve({NoisySum(sigma=2.0, l2_sensitivity=1.0): 1}, purpose="too dear")
        assert inner.spent == 0


def test_steps_that_pay_for_nothing_beside_open_nothing() -> None:
    account = single()
    with account.reserve({STEPS: 1}, purpose="steps") as grant:
        with pytest.raises(ValueError, match="pays for nothing beside its own draws"):
            grant.beside(STEPS)
        with pytest.raises(KeyError, match="is not part of this grant"):
            grant.beside(JOINT)
    assert account.spent == 0
    with pytest.raises(RuntimeError, match="settled"):
        grant.beside(STEPS)

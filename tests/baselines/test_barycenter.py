"""DPBarycenterClassifier: noisy distributions, transports, the bound, what is spent, saving."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from evenhand import Budget, DemographicParity
from evenhand.baselines.barycenter import (
    DPBarycenterClassifier,
    accepted,
    bound,
    distributions,
    transports,
)

PARITY = DemographicParity(margin=0.0, reference="pairwise")


def fit(parts: Any, model: Any, **changes: Any) -> Any:
    told = {"X": parts.X, "y": parts.y, "X_public": parts.X_public}
    return model.fit(**(told | {"sensitive_features": parts.groups} | changes))


def parity(margin: float) -> DemographicParity:
    return DemographicParity(margin=margin, reference="pairwise")


@given(
    counts=st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(sum),
    noise=st.lists(st.floats(-4, 4), min_size=6, max_size=6),
)
def test_a_noisy_distribution_is_one_and_no_further_from_the_true_one(
    counts: list[int], noise: list[float]
) -> None:
    true, noisy = np.array(counts, dtype=float), np.add(counts, noise)
    if noisy.sum() <= 0:
        assert distributions([noisy])[0][0].tolist() == [1 / 6] * 6
        return
    (found,), _ = distributions([noisy])
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)
    below = np.cumsum(true) / true.sum()
    before = np.abs(np.cumsum(noisy) / noisy.sum() - below).max()
    assert np.abs(np.cumsum(found) - below).max() <= before + 1e-12
    np.testing.assert_allclose(distributions([true])[0][0], true / true.sum(), atol=1e-12)


shares = (
    st.lists(st.integers(0, 9), min_size=4, max_size=4)
    .filter(sum)
    .map(lambda cells: np.array(cells) / sum(cells))
)


@given(groups=st.lists(shares, min_size=3, max_size=3), margin=st.sampled_from([0.0, 0.1, 1.0]))
def test_no_other_transports_within_the_margin_move_scores_less(
    groups: list[np.ndarray], margin: float
) -> None:
    # Second derivation: every two groups and every range, in dense rows.
    own, sizes, k = np.array(groups), np.array([0.5, 0.3, 0.2]), 4
    moved = transports(own, sizes, margin)
    np.testing.assert_allclose(moved.sum(axis=2), own, atol=1e-7)
    ends = np.cumsum(moved.sum(axis=1), axis=1)
    assert np.ptp(ends, axis=0).max() <= margin + 1e-7
    place = np.arange(3 * k * k).reshape(3, k, k)
    upper = []
    for (g, h), last in itertools.product(itertools.permutations(range(3), 2), range(k - 1)):
        row = np.zeros(place.size)
        row[place[g, :, : last + 1].ravel()], row[place[h, :, : last + 1].ravel()] = 1.0, -1.0
        upper.append(row)
    equal = np.zeros((3 * k, place.size))
    for at, (g, start) in enumerate(itertools.product(range(3), range(k))):
        equal[at, place[g, start]] = 1.0
    far = (np.subtract.outer(np.arange(k), np.arange(k)) / k) ** 2
    cost = (sizes[:, None, None] * far).ravel()
    best = linprog(cost, upper, [margin] * len(upper), equal, own.ravel())
    assert cost @ moved.ravel() == pytest.approx(best.fun, abs=1e-6)


def test_with_two_ranges_the_smaller_group_moves_to_the_other() -> None:
    own = np.array([[0.7, 0.3], [0.2, 0.8]])
    rule = accepted(transports(own, np.array([0.75, 0.25]), 0.1), own)
    # By hand: group 1 falls from .8 to .4, half of its accepted; group 0 stays.
    np.testing.assert_allclose(rule, [[0.0, 1.0], [0.0, 0.5]], atol=1e-7)


def test_without_a_margin_and_in_empty_ranges_the_model_decides() -> None:
    own = np.array([[0.5, 0.0, 0.0, 0.5], [0.1, 0.2, 0.3, 0.4]])
    rule = accepted(transports(own, np.array([0.5, 0.5]), 1.0), own)
    np.testing.assert_allclose(rule, [[0, 0, 1, 1]] * 2, atol=1e-7)


@pytest.mark.slow
@given(
    true=st.lists(st.integers(0, 900), min_size=12, max_size=12),
    signs=st.lists(st.sampled_from([-1.0, 0.3, 1.0]), min_size=12, max_size=12),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_no_noise_within_the_limit_moves_rates_further_than_the_bound(
    true: list[int], signs: list[float], margin: float
) -> None:
    scale = 1.5
    off = math.ceil(scale * math.log(12 / 0.05))
    assert (1.0 - math.exp(-off / scale)) ** 12 >= 0.95  # all cells of Laplace noise
    counts = np.array(true, dtype=float).reshape(2, 6) + 5.0
    table = counts + off * np.reshape(signs, (2, 6))
    own, sizes = distributions(table)
    rule = accepted(transports(own, sizes, margin), own)
    exact = counts / counts.sum(axis=1, keepdims=True)
    by_table, among = (np.ptp((rule * rows).sum(axis=1)) for rows in (own, exact))
    assert among - by_table <= bound(table, rule, scale) + 1e-9


def test_the_bound_is_at_most_twice_what_noise_can_do() -> None:
    off = math.ceil(2.0 * math.log(12 / 0.05))
    signs = np.outer([1.0, -1.0], [-1, -1, -1, 1, 1, 1])
    table = np.full((2, 6), 5000.0) + off * signs
    rule = np.tile([0.0, 0, 0, 1, 1, 1], (2, 1))
    rates = (rule * distributions(table)[0]).sum(axis=1)
    assert 2.01 * np.ptp(rates) > bound(table, rule, 2.0) >= np.ptp(rates)


def test_steps_and_table_spend_the_budget_and_each_before_it_draws(
    parts: Any, loose: dict[str, Any], draws: Any
) -> None:
    settings = loose | {"budget": Budget(epsilon=3.0, delta=1e-5)}
    model = fit(parts, DPBarycenterClassifier(**settings, table_budget=0.5))
    assert min(draws.spent) > 1 - 1e-6
    table = model.ledger_.entries[-1]
    assert 1.5 * (1 - 1e-3) < model.mechanism_.epsilon(1e-5) <= 1.5
    assert "group and score" in table.purpose
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (3.0, 1e-5)
    assert model.guarantee_.neighbors == "add or remove one"


def test_rates_among_the_private_rows_are_within_the_margin_and_the_bound(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(parts, DPBarycenterClassifier(**loose, fairness=PARITY))
    assert model.table_gap_ <= 1e-6
    codes = (parts.groups == model.groups_[1]).to_numpy()
    expected = model.predict_proba(parts.X, sensitive_features=parts.groups)[:, 1]
    assert abs(expected[codes].mean() - expected[~codes].mean()) <= model.noise_bound_ + 1e-6
    for margin in (0.01, 0.02, 0.04):
        assert model.with_fairness(parity(margin)).table_gap_ <= margin + 1e-6
    free = model.with_fairness(parity(1.0))
    own = free.predict_proba(parts.X, sensitive_features=parts.groups)[:, 1]
    assert abs(own[codes].mean() - own[~codes].mean()) > 0.05  # there was something to even
    scores = model.student_.decision_function(model.encoder_.transform(parts.X))
    shifted = scores + model.group_shifts_[codes.astype(int)]
    np.testing.assert_allclose(own, shifted > 0, atol=1e-6)
    assert np.array_equal(free.table_, model.table_)


def test_the_table_counts_every_record_once_by_group_and_score(
    parts: Any, loose: dict[str, Any]
) -> None:
    settings = loose | {"budget": Budget(epsilon=1e6, delta=1e-5)}
    model = fit(parts, DPBarycenterClassifier(**settings, n_bins=4))
    codes = (parts.groups == model.groups_[1]).to_numpy().astype(int)
    scores = model.student_.decision_function(model.encoder_.transform(parts.X))
    p = 1.0 / (1.0 + np.exp(-(scores + model.group_shifts_[codes])))
    counts = [np.histogram(p[codes == g], [0, 0.25, 0.5, 0.75, 1])[0] for g in range(2)]
    np.testing.assert_allclose(model.table_, counts, atol=0.01)

"""DP-FERMI: the information as a maximum, gradients against differences, and the clipping."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from populations import unequal
from runs import falls_short
from scipy.optimize import minimize

from evenhand.baselines.fermi_descent import FERMI, FERMIState
from evenhand.learners.gradients import probabilities


def psi(F: np.ndarray, W: np.ndarray, groups: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Value of psi for each record, shape (n,), in one stratum: W (n_groups, n_classes)."""
    v = 2.0 * W[groups] / np.sqrt(shares[groups])[:, None] - np.einsum("zk,zk->k", W, W)
    return np.einsum("ij,ij->i", F, v) - 1.0


CLIP = 0.7


def shares_of(n_strata: int) -> np.ndarray:
    return np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.25, 0.25, 0.5]])[:n_strata]


def state_of(n_classes: int, *, by_label: bool, seed: int = 0, **changes: Any) -> FERMIState:
    """A state in the middle of a run: no weight and no dual variable is special."""
    rng = np.random.default_rng(seed)
    learner = FERMI(**({"strength": 2.0, "clip_norm": CLIP, "share": 0.4} | changes))
    network = learner.network((5,), n_classes, rng)
    state = FERMIState.start(learner, network, shares_of(n_classes if by_label else 1))
    state.weights = rng.normal(size=state.weights.shape) / 2
    state.W = state.W + 2.0 * rng.normal(size=state.W.shape)
    return state


def table(n: int = 40, n_classes: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * rng.choice([0.05, 1.0, 10.0], (n, 1))
    return X, rng.integers(0, n_classes, n), rng.integers(0, 3, n)


def test_the_maximum_over_the_duals_is_the_information_of_the_table() -> None:
    # Exact: chi-square over n of a table of 20 decisions, in fractions, by its definition.
    counts = [[4, 1], [3, 4], [1, 7]]
    n = sum(map(sum, counts))
    rows, columns = [sum(r) for r in counts], [sum(c) for c in zip(*counts, strict=True)]
    information = float(
        sum(Fraction(counts[z][k] ** 2, rows[z] * columns[k]) for z in range(3) for k in range(2))
        - 1
    )
    groups = np.repeat(np.arange(3), rows)
    F = np.concatenate([np.repeat(np.eye(2), row, axis=0) for row in counts])
    P = np.array(rows) / n
    closed = np.array(counts) / np.array(columns) / np.sqrt(P)[:, None]
    assert psi(F, closed, groups, P).mean() == pytest.approx(information, abs=1e-12)
    # And by another road: a general optimiser finds the same value at the same place.
    found = minimize(
        lambda w: -psi(F, w.reshape(3, 2), groups, P).mean(), np.zeros(6), method="BFGS"
    )
    assert -found.fun == pytest.approx(information, abs=1e-8)
    np.testing.assert_allclose(found.x.reshape(3, 2), closed, atol=1e-3)


@settings(max_examples=50, deadline=None)
@given(
    F=st.lists(st.floats(0.01, 0.99), min_size=12, max_size=12),
    groups=st.permutations([0] * 6 + [1] * 4 + [2] * 2),
)
def test_the_maximum_lies_in_the_ball_that_every_step_projects_onto(
    F: list[float], groups: list[int]
) -> None:
    soft, z = np.column_stack([1 - np.array(F), F]), np.array(groups)
    P = np.bincount(z) / len(z)
    joint = np.array([soft[z == g].sum(axis=0) for g in range(3)]) / len(z)
    closed = joint / joint.sum(axis=0) / np.sqrt(P)[:, None]
    network = FERMI().network((1,), 2, np.random.default_rng(0))
    start = FERMIState.start(FERMI(), network, P[None, :])
    assert np.linalg.norm(closed) <= start.radius[0]
    assert np.linalg.norm(start.W) <= start.radius[0]
    # The start is independence: nothing pulls, and psi is 0.
    np.testing.assert_allclose(psi(soft, start.W[0], z, P), 0.0, atol=1e-12)


def objective(state: FERMIState, weights: Any, W: Any, x: Any, y: int, g: int) -> float:
    """Loss + strength * psi of one record, from the formulas with matrices of the paper."""
    seen = x[None, :]
    *inner, last = state.network.layers(weights)  # type: ignore[attr-defined]
    for layer in inner:
        seen = np.maximum(seen @ layer[:-1] + layer[-1], 0.0)
    F = probabilities(seen @ last[:-1] + last[-1])[0]
    s = y if len(W) > 1 else 0
    P, w = np.diag(state.shares[s] ** -0.5), W[s]
    member = np.eye(3)[g]
    information = -np.trace(w @ np.diag(F) @ w.T) + 2 * np.trace(w @ np.outer(F, member) @ P) - 1
    return float(-np.log(F[y]) + state.learner.strength * information)


def gradient(f: Any, at: np.ndarray) -> np.ndarray:
    h = 1e-6
    steps = np.eye(at.size).reshape(at.size, *at.shape) * h
    return np.array([(f(at + e) - f(at - e)) / (2 * h) for e in steps])


def vector(state: FERMIState, x: Any, y: int, g: int) -> np.ndarray:
    """One record's vector by the definition: numerical gradients, clipped part by part."""
    learner = state.learner
    down = gradient(lambda w: objective(state, w, state.W, x, y, g), state.weights)
    up = gradient(lambda W: objective(state, state.weights, W, x, y, g), state.W) / learner.strength
    up *= learner.clip_norm * learner.share / state.reach
    room = learner.clip_norm * np.sqrt(1 - learner.share**2)
    down *= min(1.0, room / max(np.linalg.norm(down), 1e-12))
    up *= min(1.0, learner.clip_norm * learner.share / max(np.linalg.norm(up), 1e-12))
    return np.concatenate([down, up])


@pytest.mark.parametrize("hidden", [(), (4,)])
@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_sum_is_that_of_numerical_gradients_clipped_one_by_one(
    n_classes: int, by_label: bool, hidden: tuple[int, ...]
) -> None:
    X, y, g = table(n_classes=n_classes)
    state = state_of(n_classes, by_label=by_label, hidden=hidden)
    loop = [vector(state, X[i], y[i], g[i]) for i in range(len(X))]
    np.testing.assert_allclose(state.clipped_sum(X, y, g), np.sum(loop, axis=0), atol=3e-6)
    # Records of both kinds occur in both parts, clipped and not, over the states that follow.
    k, learner = state.weights.size, state.learner
    parts: list[list[float]] = [[], []]
    for seed in range(5):
        X, y, g = table(n_classes=n_classes, seed=seed)
        other = state_of(n_classes, by_label=by_label, seed=seed, hidden=hidden)
        for i in range(len(X)):
            v = vector(other, X[i], y[i], g[i])
            parts[0].append(np.linalg.norm(v[:k]))
            parts[1].append(np.linalg.norm(v[k:]))
    for part, most in (
        (parts[0], CLIP * np.sqrt(1 - learner.share**2)),
        (parts[1], CLIP * learner.share),
    ):
        assert min(part) < 0.99 * most < most * (1 - 1e-6) < max(part)


@settings(max_examples=80, deadline=None)
@given(
    wild=st.lists(st.sampled_from([0.0, -1.0, 1e-3, 1e4, -1e6, 1e8]), min_size=5, max_size=5),
    label=st.integers(0, 2),
    group=st.integers(0, 2),
    n_classes=st.sampled_from([2, 3]),
    by_label=st.booleans(),
    strength=st.sampled_from([0.0, 1.0, 1e6]),
    duals=st.sampled_from([1.0, 1e3]),
    seed=st.integers(0, 5),
)
def test_one_wild_record_moves_the_sum_by_at_most_the_clip_norm(
    wild: list[float],
    label: int,
    group: int,
    n_classes: int,
    by_label: bool,
    strength: float,
    duals: float,
    seed: int,
) -> None:
    # A huge gradient: dividing by the batch before comparing with C would let it through.
    X, y, g = table(n_classes=n_classes, seed=seed)
    state = state_of(n_classes, by_label=by_label, seed=seed, strength=strength)
    state.W *= duals
    more = np.vstack([X, wild]), np.append(y, label % n_classes), np.append(g, group)
    moved = state.clipped_sum(*more) - state.clipped_sum(X, y, g)
    assert np.linalg.norm(moved) <= CLIP * (1 + 1e-9)


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_a_record_that_is_far_too_long_adds_exactly_the_clip_norm_in_any_batch(n: int) -> None:
    # It is wrong (label 0 at a score of 1e8 and more), and its group is a surprise to the duals.
    state = state_of(2, by_label=False, strength=0.0)
    state.weights = np.ones_like(state.weights)
    state.W = 5.0 * np.ones_like(state.W)
    X, y, g = np.full((n, 5), 1e8), np.zeros(n, dtype=np.int64), np.full(n, 2)
    assert np.linalg.norm(state.clipped_sum(X, y, g)) == pytest.approx(n * CLIP)


def test_every_step_of_a_run_keeps_the_sensitivity() -> None:
    # Replay the states of one run on both data sets: after a step that differs they drift apart.
    X, y, g = table(200)
    learner = FERMI(clip_norm=CLIP, strength=5.0, multiplier_rate=0.5, hidden=(4,))
    network = learner.network((5,), 2, np.random.default_rng(0))
    state = FERMIState.start(learner, network, shares_of(1))
    rng = np.random.default_rng(1)
    for t in range(60):
        rows = np.flatnonzero(rng.random(200) < 0.4)
        without = state.clipped_sum(X[rows], y[rows], g[rows])
        with_it = state.clipped_sum(
            np.vstack([X[rows], np.full(5, (-1.0) ** t * 10.0 ** (t % 9))]),
            np.append(y[rows], t % 2),
            np.append(g[rows], t % 3),
        )
        assert np.linalg.norm(with_it - without) <= CLIP * (1 + 1e-9)
        state.update((without + rng.normal(size=without.shape)) / 80, t)
        assert np.linalg.norm(state.W) <= state.radius[0] * (1 + 1e-12)


def test_a_step_that_leaves_the_ball_ends_on_its_surface_in_its_own_stratum_only() -> None:
    state = state_of(2, by_label=True)
    state.W = np.stack([100.0 * np.ones((3, 2)), np.sqrt(state.shares[1])[:, None] * [1.0, 1.0]])
    inside = state.W[1].copy()
    state.update(np.zeros(FERMI().n_released(state.network, state.shares)), 0)
    assert np.linalg.norm(state.W[0]) == pytest.approx(np.sqrt(2 / 0.2))  # classes / rarest share
    assert np.array_equal(state.W[1], inside)


@pytest.mark.parametrize("by_label", [False, True])
def test_an_empty_sample_is_only_noise(by_label: bool) -> None:
    X, y, g = table()
    state = state_of(2, by_label=by_label)
    none = np.zeros(0, dtype=np.int64)
    out = state.clipped_sum(X[none], y[none], g[none])
    assert not out.any()
    assert len(out) == FERMI().n_released(state.network, state.shares)


def run(
    strength: float, *, by_label: bool, noise: float = 1.0, rate: float = 0.1, seed: int = 3
) -> Any:
    X, y, g = unequal(seed=seed)
    cells = np.array([np.bincount(g[y == k], minlength=3) for k in (0, 1)])
    cells = cells if by_label else cells.sum(axis=0, keepdims=True)
    P = cells / cells.sum(axis=1, keepdims=True)
    learner = FERMI(strength=strength, multiplier_rate=0.1)
    rng = np.random.default_rng(0)
    network = learner.network((4,), 2, rng)
    model = learner.fit(
        network,
        X,
        y,
        g,
        shares=P,
        n_steps=600,
        batches=[np.flatnonzero(rng.random(len(X)) < rate) for _ in range(600)],
        noise=noise * rng.normal(size=(600, learner.n_released(network, P))),
        batch_size=rate * len(X),
    )
    weights, bias = model.network[0]
    return model, (X @ weights + bias)[:, 0] > 0, X, y, g, P


def spread(decided: Any, groups: Any, among: Any) -> float:
    rates = [decided[among & (groups == k)].mean() for k in range(3)]
    return float(max(rates) - min(rates))


@pytest.mark.slow
def test_more_weight_brings_three_groups_closer() -> None:
    found = []
    for seed, strength in itertools.product(range(10), (0.0, 50.0)):
        _, h, _, _, g, _ = run(strength, by_label=False, seed=seed)
        found.append(spread(h, g, np.ones(len(h), dtype=bool)))
    free, held = np.reshape(found, (10, 2)).T
    assert not falls_short(free - 3 * held)
    assert falls_short(free - 3 * free)  # a weight that does nothing


@pytest.mark.slow
def test_equalized_odds_brings_the_groups_closer_within_each_label() -> None:
    found = []
    for seed, strength in itertools.product(range(10), (0.0, 50.0)):
        _, h, _, y, g, _ = run(strength, by_label=True, seed=seed)
        found.append([spread(h, g, y == label) for label in (0, 1)])
    for free, held in np.reshape(found, (10, 2, 2)).T:
        assert not falls_short(free - 1.5 * held)
        assert falls_short(free - 1.5 * free)


def test_without_noise_the_duals_reach_their_closed_form() -> None:
    # Full batches, and weights that ignore them (strength 0), so that everything settles.
    model, _, X, _, g, P = run(0.0, by_label=False, noise=0.0, rate=1.0)
    weights, bias = model.network[0]
    F = probabilities(X @ weights + bias)
    joint = np.array([F[g == k].sum(axis=0) for k in range(3)]) / len(g)
    closed = joint / joint.sum(axis=0) / np.sqrt(P[0])[:, None]
    np.testing.assert_allclose(model.multipliers[0], closed, atol=0.01)
    assert np.abs(model.multipliers[0] - np.sqrt(P[0])[:, None]).max() > 0.1  # they moved


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"strength": -1.0}, "strength must be finite and >= 0"),
        ({"clip_norm": 0.0}, "clip_norm must be finite and > 0"),
        ({"share": 1.0}, "share must lie strictly between 0 and 1"),
        ({"multiplier_rate": 1.0}, "W swings without end from a rate of 1 on"),
        ({"learning_rate": 0.0}, "learning_rate must be finite and > 0"),
        ({"averaged": 0.0}, r"averaged must lie in \(0, 1\], got averaged=0.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FERMI(**settings_)


@pytest.mark.parametrize("shares", [[[0.5, 0.0]], [[0.5, 0.5]] * 3, [0.5, 0.5]])
def test_shares_that_cannot_be_are_refused(shares: Any) -> None:
    network = FERMI().network((2,), 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="A group without a share cannot be compared"):
        FERMIState.start(FERMI(), network, np.array(shares))

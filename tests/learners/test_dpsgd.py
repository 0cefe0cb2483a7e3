"""DP-SGD: clipping against a loop over records, sensitivity, and what the pull does."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from populations import unequal
from runs import falls_short
from sklearn.linear_model import LogisticRegression

from evenhand.learners.dpsgd import DPSGD, GroupPull, State
from evenhand.learners.gradients import DenseGradients

CLIP = 0.7
PULL = GroupPull(margin=0.02, strength=3.0, share=0.3)


def table(n: int = 40, d: int = 5, n_classes: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 10.0], (n, 1))
    return X, rng.integers(0, n_classes, n), rng.integers(0, 3, n)


def state_of(learner: DPSGD, d: int, n_classes: int, seed: int = 0) -> State:
    """A state in the middle of a run: no weight, multiplier or share is special."""
    rng = np.random.default_rng(seed)
    state = State.start(learner, learner.network((d,), n_classes, rng), 3)
    state.weights = rng.normal(size=state.weights.shape) / 2
    if learner.pull is not None:
        state.W = rng.normal(size=state.W.shape)
        state.shares = np.array([0.5, 0.3, 0.2])
    return state


def scores(state: State, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    layers, row = DenseGradients.layers(state.network, weights), x  # type: ignore[arg-type]
    for layer in layers[:-1]:
        x = np.maximum(x @ layer[:-1] + layer[-1], 0.0)
    if state.learner.skip and len(layers) > 1:
        x = np.concatenate([x, row])
    return x @ layers[-1][:-1] + layers[-1][-1]


def probabilities(state: State, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    s = scores(state, weights, x)
    s = np.array([0.0, s[0]]) if len(s) == 1 else s
    return np.exp(s - s.max()) / np.exp(s - s.max()).sum()


def objective(state: State, weights: np.ndarray, x: Any, y: int, g: int) -> float:
    """The term of one record: loss, and v . p for the multipliers and shares of the state."""
    p = probabilities(state, weights, x)
    out = -np.log(p[y])
    if state.learner.pull is not None:
        out += (state.W[g] - state.shares @ state.W) @ p
    return float(out)


def vector(state: State, x: np.ndarray, y: int, g: int) -> np.ndarray:
    """One record's vector by the definition: a numerical gradient, clipped, and its table entry."""
    h, k = 1e-6, len(state.weights)
    gradient = np.array(
        [
            (
                objective(state, state.weights + h * e, x, y, g)
                - objective(state, state.weights - h * e, x, y, g)
            )
            / (2 * h)
            for e in np.eye(k)
        ]
    )
    pull, norm = state.learner.pull, max(float(np.linalg.norm(gradient)), 1e-30)  # saturated
    if pull is None:
        return gradient * min(1.0, state.learner.clip_norm / norm)
    entry = np.zeros_like(state.W)
    entry[g, probabilities(state, state.weights, x).argmax()] = pull.share * state.learner.clip_norm
    room = state.learner.clip_norm * np.sqrt(1 - pull.share**2)
    return np.concatenate([gradient * min(1.0, room / norm), entry.ravel()])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("pull", [None, PULL])
def test_the_sum_is_that_of_a_loop_over_records(
    n_classes: int, hidden: tuple[int, ...], skip: bool, pull: GroupPull | None
) -> None:
    X, y, g = table(n_classes=n_classes)
    kind = partial(DPSGD, hidden=hidden, skip=skip, pull=pull)
    free = state_of(kind(clip_norm=1e9), 5, n_classes)
    k = len(free.weights)
    norms = [np.linalg.norm(vector(free, X[i], y[i], g[i])[:k]) for i in range(len(X))]
    # Both kinds of record occur, clipped and not: the room is the median norm.
    clip = float(np.median(norms)) / (1.0 if pull is None else np.sqrt(1 - PULL.share**2))
    state = state_of(kind(clip_norm=clip), 5, n_classes)
    loop = sum(vector(state, X[i], y[i], g[i]) for i in range(len(X)))
    ours = state.clipped_sum(X, y, None if pull is None else g)
    np.testing.assert_allclose(ours, loop, atol=2e-6 * max(1.0, clip))
    assert min(norms) < 0.99 * np.median(norms) < np.median(norms) < max(norms)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("hidden", [(), (4,), (4, 3, 2)])
def test_what_skips_the_hidden_layers_is_folded_into_plain_ones(
    hidden: tuple[int, ...], n_classes: int
) -> None:
    X, _, _ = table()
    state = state_of(DPSGD(hidden=hidden, skip=True), 5, n_classes)
    direct = np.array([scores(state, state.weights, x) for x in X])
    *inner, (weight, bias) = state.network.trained(state.weights)
    assert len(inner) == len(hidden)
    a = X
    for own, own_bias in inner:
        a = np.maximum(a @ own + own_bias, 0.0)
    np.testing.assert_allclose(a @ weight + bias, direct, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    wild=st.lists(st.sampled_from([0.0, -1.0, 1e-3, 1e4, -1e6, 1e8]), min_size=5, max_size=5),
    label=st.integers(0, 2),
    group=st.integers(0, 2),
    n_classes=st.sampled_from([2, 3]),
    hidden=st.sampled_from([(), (4,)]),
    skip=st.booleans(),
    pulled=st.booleans(),
    seed=st.integers(0, 5),
)
def test_one_wild_record_moves_the_sum_by_at_most_the_clip_norm(
    wild: list[float],
    label: int,
    group: int,
    n_classes: int,
    hidden: tuple[int, ...],
    skip: bool,
    pulled: bool,
    seed: int,
) -> None:
    X, y, g = table(n_classes=n_classes, seed=seed)
    pull = PULL if pulled else None
    learner = DPSGD(clip_norm=CLIP, hidden=hidden, skip=skip, pull=pull)
    state = state_of(learner, 5, n_classes, seed)
    more = np.vstack([X, wild]), np.append(y, label % n_classes), np.append(g, group)
    moved = state.clipped_sum(*more[:2], more[2] if pulled else None) - state.clipped_sum(
        X, y, g if pulled else None
    )
    assert np.linalg.norm(moved) <= CLIP * (1 + 1e-9)
    if pulled:
        assert np.linalg.norm(moved) >= PULL.share * CLIP * (1 - 1e-9)


def test_every_step_of_a_run_keeps_the_sensitivity() -> None:
    # With the same noise both runs would drift apart after the first step that differs, which is
    # the release telling them apart; so replay the states of one run on both data sets.
    X, y, g = table(200)
    learner = DPSGD(clip_norm=CLIP, pull=PULL, learning_rate=2.0)
    network = learner.network((5,), 2, np.random.default_rng(0))
    state = State.start(learner, network, 3)
    rng = np.random.default_rng(1)
    for t in range(60):
        rows = np.flatnonzero(rng.random(200) < 0.4)
        without = state.clipped_sum(X[rows], y[rows], g[rows])
        with_it = state.clipped_sum(
            np.vstack([X[rows], np.full(5, (-1.0) ** t * 10.0**t)]),
            np.append(y[rows], t % 2),
            np.append(g[rows], t % 3),
        )
        assert np.linalg.norm(with_it - without) <= CLIP * (1 + 1e-9)
        noise = rng.normal(size=without.shape)
        state.update((without + noise) / 80, t)


def run(
    X: Any,
    y: Any,
    *,
    n_classes: int,
    learner: DPSGD,
    groups: Any = None,
    noise: float = 0.0,
    n_steps: int = 600,
    rate: float = 1.0,
) -> Any:
    rng = np.random.default_rng(0)
    n_groups = 0 if groups is None else int(groups.max()) + 1
    network = learner.network(X.shape[1:], n_classes, rng)
    drawn = noise * rng.normal(size=(n_steps, learner.n_released(network, n_groups)))
    batches = [np.flatnonzero(rng.random(len(X)) < rate) for _ in range(n_steps)]
    return learner.fit(
        network,
        X,
        y,
        n_steps=n_steps,
        batches=batches,
        noise=drawn,
        batch_size=rate * len(X),
        groups=groups,
        n_groups=n_groups,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_noise_and_clipping_it_is_logistic_regression(n_classes: int) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = (X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(300, n_classes))).argmax(axis=1)
    learner = DPSGD(clip_norm=1e6, learning_rate=1.0, averaged=0.01)
    weights, bias = run(X, y, n_classes=n_classes, learner=learner, n_steps=4000).network[0]
    exact = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    ours = X @ weights + bias
    theirs = np.atleast_2d(exact.decision_function(X).T).T
    # Several classes: scores are known up to a shift of all.
    if n_classes > 2:
        ours, theirs = (s - s.mean(axis=1, keepdims=True) for s in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def gaps(model: Any, X: Any, g: Any) -> Any:
    weights, bias = model.network[0]
    h = (X @ weights + bias)[:, 0] > 0
    return np.array([h[g == k].mean() - h[g != k].mean() for k in range(3)])


def test_training_reaches_the_margin_between_three_groups_and_goes_no_further() -> None:
    X, y, g = unequal()
    free = run(X, y, n_classes=2, learner=DPSGD(), rate=0.1)
    assert np.abs(gaps(free, X, g)).max() > 0.2
    learner = DPSGD(pull=GroupPull(margin=0.1, strength=20.0))
    held = run(X, y, n_classes=2, learner=learner, groups=g, noise=2.0, rate=0.1)
    # "At" the margin: the multipliers hover, and the averaged model is not any one iterate.
    assert 0.04 < np.abs(gaps(held, X, g)).max() < 0.13
    wide = DPSGD(pull=GroupPull(margin=0.9, strength=20.0))
    unmoved = run(X, y, n_classes=2, learner=wide, groups=g, noise=2.0, rate=0.1)
    assert not unmoved.multipliers.any()


def test_multipliers_move_by_what_a_gap_exceeds_the_margin() -> None:
    # Two groups of equal size; group 0 gets class 1 at rate 0.5 + gap / 2, so Gamma is the gap.
    def after(gap: float, before: float, strength: float = 5.0) -> float:
        pull = GroupPull(margin=0.1, strength=strength, step=0.5, memory=1)
        learner = DPSGD(pull=pull)
        network = learner.network((1,), 2, np.random.default_rng(0))
        state = State.start(learner, network, 2)
        state.W = before * np.array([[-1.0, 1.0], [1.0, -1.0]])
        up, down = 0.5 + gap / 2, 0.5 - gap / 2
        table = pull.share * np.array([[1 - up, up], [1 - down, down]]) / 2
        state.update(np.concatenate([np.zeros(2), table.ravel()]), 0)
        return float(state.W[0, 1])

    assert after(0.3, before=0.0) == pytest.approx(0.5 * 0.2)
    assert after(-0.3, before=0.0) == pytest.approx(-0.5 * 0.2)
    assert after(0.3, before=0.4, strength=0.45) == 0.45  # the largest multiplier
    assert after(0.1, before=0.4) == pytest.approx(0.4)  # at the margin it stays
    assert after(0.06, before=0.4) == pytest.approx(0.4 - 0.5 * 0.04)  # within, it falls back
    assert after(0.06, before=0.01) == 0.0  # and not beyond 0
    assert after(-0.06, before=0.4) == pytest.approx(0.4 - 0.5 * 0.04)


@pytest.mark.slow
def test_the_penalty_bounds_the_multipliers_and_more_of_it_narrows_the_gap() -> None:
    found = []
    for seed in range(10):
        X, y, g = unequal(seed=seed)
        for strength in (0.2, 1.2):
            learner = DPSGD(pull=GroupPull(strength=strength))
            model = run(X, y, n_classes=2, learner=learner, groups=g, noise=2.0, rate=0.1)
            assert np.abs(model.multipliers).max() <= strength
            found.append(np.abs(gaps(model, X, g)).max())
    little, much = np.reshape(found, (10, 2)).T
    assert not falls_short(little - 2 * much)
    assert falls_short(little - 2 * little)  # a penalty that does nothing


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"clip_norm": 0.0}, "clip_norm must be finite and > 0"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and > 0"),
        ({"averaged": 0.0}, r"averaged must lie in \(0, 1\], got averaged=0.0"),
        ({"hidden": (0,)}, "hidden must be at least 1"),
        ({"hidden": (4,), "architecture": object()}, "are two networks"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DPSGD(**settings_)


def test_a_pull_without_groups_is_refused() -> None:
    X, y, _ = table()
    with pytest.raises(ValueError, match="needs the group of every record"):
        run(X, y, n_classes=2, learner=DPSGD(pull=PULL))


def test_an_empty_sample_is_only_noise() -> None:
    X, y, g = table()
    state = state_of(DPSGD(clip_norm=CLIP, pull=PULL), 5, 2)
    none = np.zeros(0, dtype=np.int64)
    assert not state.clipped_sum(X[none], y[none], g[none]).any()

"""GroupDifferences of means over soft groups, and the steps of their multipliers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.learners.multipliers import GroupDifferences, Multipliers


def case(seed: int, n: int = 12, n_groups: int = 3, m: int = 2):
    rng = np.random.default_rng(seed)
    return (
        rng.dirichlet(np.ones(n_groups), size=n) * 3,
        rng.integers(2, size=(n, m)).astype(float),
        rng.normal(size=(n, m)),
    )


@given(st.integers(0, 10_000))
def test_differences_are_those_of_weighted_means(seed: int) -> None:
    weights, among, values = case(seed)
    apart = GroupDifferences(weights, among).apart(values)
    for a in range(3):
        for j in range(2):
            w, b, h = weights[:, a], among[:, j], values[:, j]
            if (w * b).sum() < 1 or b.sum() < 1:
                assert apart[a, j] == 0.0
            else:
                wanted = (w * b * h).sum() / (w * b).sum() - (b * h).sum() / b.sum()
                assert apart[a, j] == pytest.approx(wanted, abs=1e-12)


@given(st.integers(0, 10_000))
def test_back_is_the_transpose_of_apart(seed: int) -> None:
    weights, among, values = case(seed)
    multipliers = np.random.default_rng(seed + 1).normal(size=(3, 2))
    both = GroupDifferences(weights, among)
    there = (multipliers * both.apart(values)).sum()
    assert (both.back(multipliers) * values).sum() == pytest.approx(there, abs=1e-10)


def test_a_stack_gets_what_each_model_gets_alone_and_padding_counts_nowhere() -> None:
    parts = [case(seed) for seed in range(3)]
    stacked = [np.stack([part[i] for part in parts]) for i in range(3)]
    # Two rows of padding: no weight, counted nowhere, with values that would show.
    padded = [
        np.concatenate([array, np.full((3, 2, array.shape[2]), fill)], axis=1)
        for array, fill in zip(stacked, (0.0, 0.0, 99.0), strict=True)
    ]
    apart = GroupDifferences(padded[0], padded[1]).apart(padded[2])
    pull = GroupDifferences(padded[0], padded[1]).back(np.ones((3, 3, 2)))
    assert not pull[:, -2:].any()
    for t, (weights, among, values) in enumerate(parts):
        np.testing.assert_allclose(
            apart[t], GroupDifferences(weights, among).apart(values), atol=1e-12
        )


def test_unbiased_weights_may_be_negative_and_find_the_true_means_on_average() -> None:
    # Groups flipped with probability .3; weights of the inverse matrix undo it in expectation.
    rng = np.random.default_rng(0)
    n = 200_000
    z = rng.integers(2, size=n)
    values = (rng.random(n) < np.where(z == 1, 0.6, 0.3)).astype(float)[:, None]
    told = np.where(rng.random(n) < 0.3, 1 - z, z)
    undo = np.linalg.inv([[0.7, 0.3], [0.3, 0.7]])
    among = np.ones((n, 1))
    true = GroupDifferences(np.eye(2)[z], among).apart(values)
    undone = GroupDifferences(undo[told], among).apart(values)
    naive = GroupDifferences(np.eye(2)[told], among).apart(values)
    # Standard error of a debiased mean: at most 2.5 sqrt(.25 / 1e5) = .004; six of them.
    assert np.abs(undone - true).max() < 0.024
    assert np.abs(naive - true).max() > 0.07


def test_multipliers_rise_outside_the_margin_and_fall_inside_never_below_0() -> None:
    made = Multipliers(alpha=0.1, step=np.full((1, 3), 2.0))
    made.ascend(np.array([[0.3, -0.3, 0.05]]))
    np.testing.assert_allclose(made.net, [[0.4, -0.4, 0.0]])
    made.ascend(np.array([[0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(made.net, [[0.2, -0.2, 0.0]])
    made.ascend(np.array([[-0.1, 0.1, 0.1]]))
    assert made.above[0, 0] == 0.0
    assert (made.above >= 0).all()
    assert (made.below >= 0).all()


def test_a_step_grows_while_its_own_violation_stays_and_halves_when_it_turns() -> None:
    made = Multipliers(alpha=0.0, step=np.ones((1, 3)))
    made.ascend(np.array([[0.4, 0.4, 0.4]]))
    np.testing.assert_allclose(made.step, 1.0)
    made.ascend(np.array([[0.39, 0.1, -0.4]]))
    np.testing.assert_allclose(made.step, [[1.5, 1.0, 0.5]])


def test_a_negative_margin_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha must be finite and >= 0, got alpha=-0.1"):
        Multipliers(alpha=-0.1, step=np.ones((1, 1)))

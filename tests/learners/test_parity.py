"""Logistic regressions with equal mean scores: the optimum, its limits, and whom it reads."""

import numpy as np
import pytest
from scipy.optimize import minimize

from evenhand.learners.linear import StackedLogistic
from evenhand.learners.parity import StackedParityLogistic
from evenhand.typing import FloatArray, IntArray

RNG = np.random.default_rng(0)


def rows_of(n: int, n_groups: int = 2, seed: int = 1) -> tuple[FloatArray, IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += groups
    X[:, 3] = X[:, 3] > 0.8
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.5).astype(np.int64)
    return X, y, groups


def apart(X: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    return np.array(
        [X[groups == z].mean(axis=0) - X[groups != z].mean(axis=0) for z in range(n_groups)]
    )


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("weight", [0.0, 0.3, 5.0])
def test_it_is_the_minimum_of_its_objective(weight: float, n_groups: int) -> None:
    # A second derivation: the penalised loss as it is written, by a general optimiser.
    X, y, groups = rows_of(200, n_groups)
    D, C = apart(X, groups, n_groups), 2.0

    def objective(theta: FloatArray) -> float:
        score = X @ theta[:-1] + theta[-1]
        loss = float((np.logaddexp(0, score) - y * score).sum())
        w = theta[:-1]
        return loss + float(w @ w) / (2 * C) + weight * len(y) / 2 * float(((D @ w) ** 2).sum())

    direct = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-7}).x
    stack = StackedParityLogistic(weight=weight, C=C).fit(
        X, y, [np.arange(200)], n_classes=2, rng=RNG, groups=groups, n_groups=n_groups
    )
    assert np.abs(stack.coef[0, 0] - direct[:-1]).max() < 1e-4
    assert abs(stack.intercept[0, 0] - direct[-1]) < 1e-4


def test_an_infinite_weight_makes_mean_scores_equal() -> None:
    X, y, groups = rows_of(150, 3)
    stack = StackedParityLogistic(weight=np.inf).fit(
        X, y, [np.arange(150)], n_classes=2, rng=RNG, groups=groups, n_groups=3
    )
    assert np.abs(apart(X, groups, 3) @ stack.coef[0, 0]).max() < 1e-12
    assert np.abs(stack.coef[0, 0]).max() > 0.1


def test_more_weight_never_takes_mean_scores_further_apart() -> None:
    X, y, groups = rows_of(300)
    gaps = []
    for weight in (0.0, 0.01, 0.1, 1.0, 10.0, np.inf):
        stack = StackedParityLogistic(weight=weight).fit(
            X, y, [np.arange(300)], n_classes=2, rng=RNG, groups=groups, n_groups=2
        )
        gaps.append(float(np.abs(apart(X, groups, 2)[0] @ stack.coef[0, 0])))
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 10 * gaps[-2]


@pytest.mark.parametrize("of_one_group", [False, True])
def test_without_weight_or_a_second_group_it_is_the_plain_stack_bit_for_bit(
    of_one_group: bool,
) -> None:
    X, y, groups = rows_of(200)
    rows = [np.flatnonzero(groups == 0)] if of_one_group else np.split(np.arange(200), [90])
    mine = StackedParityLogistic(weight=9.0 if of_one_group else 0.0).fit(
        X, y, rows, n_classes=2, rng=RNG, groups=groups, n_groups=2
    )
    plain = StackedLogistic().fit(X, y, rows, n_classes=2, rng=RNG)
    assert np.array_equal(mine.coef, plain.coef)


def test_a_weight_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="weight must be finite and >= 0, got weight=-1"):
        StackedParityLogistic(weight=-1.0)

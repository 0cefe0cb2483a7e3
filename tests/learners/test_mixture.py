"""A mixture: the shares of its weights, the same answer for the same row, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import binomtest, kstest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Perceptron

from evenhand.learners.mixture import Mixture, uniform_of_rows


def constant(k: int) -> Any:
    return DummyClassifier(strategy="constant", constant=k).fit([[0.0], [0.0]], [0, 1])


def always_and_never(share: float, seed: int = 0) -> Mixture:
    return Mixture.of([constant(0), constant(1)], [1 - share, share], seed=seed)


def p_of(ones: int, n: int, share: float) -> float:
    return float(binomtest(ones, n, share).pvalue)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("kind", ["counted", "one of many columns", "real"])
def test_members_decide_on_their_share_of_rows_that_differ(share: float, kind: str) -> None:
    # 5e5 rows: a share that is a tenth too large lies 10 standard deviations off at the least, of
    # which the test takes 4.9: it is missed with probability 1e-6.
    n = 500_000
    rows = {
        "counted": np.arange(n, dtype=float)[:, None],  # neighbors in value, far apart in hash
        "one of many columns": np.column_stack([np.zeros((n, 5)), np.arange(n)]),
        "real": np.random.default_rng(0).normal(size=(n, 3)),
    }[kind]
    ones = int(always_and_never(share).predict(rows).sum())
    assert p_of(ones, n, share) > FALSE_ALARM
    assert p_of(ones, n, share * 1.1) < FALSE_ALARM  # a share that is 10 % off would be seen


def test_the_draws_of_rows_are_uniform_and_independent_of_their_neighbors() -> None:
    u = uniform_of_rows(np.arange(100_000, dtype=float)[:, None], 7)
    assert kstest(u, "uniform").pvalue > FALSE_ALARM
    # Under independence the correlation of 1e5 pairs is within 5.5 standard deviations.
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 5.5 / np.sqrt(len(u))
    other = uniform_of_rows(np.arange(100_000, dtype=float)[:, None], 8)
    assert abs(np.corrcoef(u, other)[0, 1]) < 5.5 / np.sqrt(len(u))


@given(st.integers(0, 2**62), st.integers(0, 2**32), st.permutations(range(12)))
def test_a_row_gets_its_answer_alone_and_in_any_company(
    seed: int, data: int, order: list[int]
) -> None:
    X = np.random.default_rng(data).normal(size=(12, 3))
    mixture = always_and_never(0.5, seed)
    together = mixture.predict(X)
    assert np.array_equal(mixture.predict(X[order]), together[order])
    assert np.array_equal([mixture.predict(X[i : i + 1])[0] for i in range(12)], together)


def test_the_two_zeros_are_one_number() -> None:
    assert uniform_of_rows(np.array([[0.0]]), 0) == uniform_of_rows(np.array([[-0.0]]), 0)


def test_each_answer_is_that_of_the_member_that_was_drawn() -> None:
    # By hand: the member whose stretch of the weights the row's draw falls into.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    members = [LogisticRegression().fit(X[i::3], y[i::3]) for i in range(3)]
    mixture = Mixture.of(members, [2.0, 5.0, 3.0], seed=4)
    draws = uniform_of_rows(X, 4)
    for row, u, said in zip(X, draws, mixture.predict(X), strict=True):
        at = 0 if u < 0.2 else 1 if u < 0.7 else 2
        assert said == members[at].predict(row[None])[0]
    mean = sum(w * m.predict_proba(X) for w, m in zip([0.2, 0.5, 0.3], members, strict=True))
    np.testing.assert_allclose(mixture.predict_proba(X), mean)


def test_a_member_without_weight_is_left_out_and_without_probabilities_there_are_none() -> None:
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    mixture = Mixture.of([constant(0), LogisticRegression().fit(X, y)], [0.0, 2.0], seed=0)
    assert len(mixture.members_) == 1
    assert mixture.weights_.tolist() == [1.0]
    assert not hasattr(Mixture.of([Perceptron().fit(X, y)], [1.0], seed=0), "predict_proba")


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, 2.0], [float("nan"), 1.0]])
def test_weights_that_are_no_shares_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights must be >= 0 with a positive sum"):
        Mixture.of([constant(0), constant(1)], weights, seed=0)

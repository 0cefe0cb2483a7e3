"""Whitening: what its frame is, and that a layer leaves it for the rows as they were."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenhand.learners.preconditioner import Whitening
from evenhand.typing import FloatArray


def mixed(n: int = 400, d: int = 4, seed: int = 0) -> FloatArray:
    """Rows whose columns say much of each other, far from 0."""
    rng = np.random.default_rng(seed)
    rows: FloatArray = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3.0
    return rows


def test_a_layer_outside_the_frame_computes_the_same_and_columns_inside_are_uncorrelated() -> None:
    X = mixed()
    whitening = Whitening.of(X, damping=0.01)
    inside = whitening.rows(X)
    rng = np.random.default_rng(2)
    weights, bias = rng.normal(size=(4, 2)), rng.normal(size=2)
    outside, moved = whitening.layer(weights, bias)
    np.testing.assert_allclose(inside @ weights + bias, X @ outside + moved, atol=1e-9)
    spread = np.cov(inside.T, bias=True)
    np.testing.assert_allclose(spread - np.diag(np.diag(spread)), 0.0, atol=1e-9)
    assert (np.diag(spread) <= 1.0).all()
    doubled = Whitening.of(np.hstack([X, X]), damping=0.01)  # a direction that no row has
    assert np.abs(doubled.rows(np.hstack([X, X]))).max() < 10


@given(st.integers(2, 40), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_halfway_a_variance_v_becomes_v_over_v_and_the_usual_one_at_the_same_length(
    n: int, d: int, seed: int
) -> None:
    X = mixed(n, d, seed)
    inside = Whitening.halfway(X).rows(X)
    before = np.linalg.eigvalsh(np.atleast_2d(np.cov(X.T, bias=True)))
    expected = before / (before + (before**2).sum() / before.sum())
    expected *= before.sum() / expected.sum()
    found = np.linalg.eigvalsh(np.atleast_2d(np.cov(inside.T, bias=True)))
    np.testing.assert_allclose(found, expected, atol=1e-7 * before.sum())
    np.testing.assert_allclose(inside.mean(axis=0), 0.0, atol=1e-6 * np.sqrt(before.sum()))


def test_halfway_rows_that_are_all_alike_are_centered_alone() -> None:
    rows = np.tile([1.0, -2.0], (5, 1))
    whitening = Whitening.halfway(rows)
    np.testing.assert_allclose(whitening.rows(rows + 1.0), 1.0)

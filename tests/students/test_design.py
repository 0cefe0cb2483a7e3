"""Rows against plain matrix products, sparse and dense, narrow and wide."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from evenhand.students.design import DAMPING_BY_ROWS, ENOUGH_ROWS, SPARSE, WIDEST, DesignMatrix
from evenhand.typing import FloatArray


def table(kind: str, n_features: int = 7) -> FloatArray:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, n_features))
    return X * (rng.random(X.shape) < SPARSE / 2) if kind == "sparse" else X


def with_ones(X: FloatArray) -> FloatArray:
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_products_are_those_of_the_matrix_with_an_intercept(kind: str, n_columns: int) -> None:
    X = table(kind)
    rng = np.random.default_rng(5)
    W, gradient = rng.normal(size=(8, n_columns)), rng.normal(size=(60, n_columns))
    assert np.allclose(DesignMatrix(X).scores(W), with_ones(X) @ W, rtol=1e-12, atol=1e-12)
    assert np.allclose(
        DesignMatrix(X).back(gradient), with_ones(X).T @ gradient, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("n_features", [7, 80, WIDEST + 1])
def test_weights_go_into_the_frame_and_come_back(kind: str, n_features: int) -> None:
    rows = DesignMatrix(table(kind, n_features))
    W = np.random.default_rng(6).normal(size=(n_features + 1, 2))
    assert np.allclose(
        rows.preconditioner.weights(rows.preconditioner.coordinates(W)), W, rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_gradient_in_the_frame_gives_the_same_change_as_the_gradient(kind: str) -> None:
    rows = DesignMatrix(table(kind))
    rng = np.random.default_rng(7)
    gradient, step = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    here = np.vdot(gradient, step)
    there = np.vdot(rows.preconditioner.gradient(gradient), rows.preconditioner.coordinates(step))
    assert np.isclose(here, there, rtol=1e-10)


def test_in_the_frame_the_expected_curvature_is_the_same_all_round() -> None:
    X = table("dense") * np.array([1e-2, 1, 10, 1, 1, 1, 1e2])
    rows = DesignMatrix(X)
    curved = 0.1 / len(X) * with_ones(X).T @ with_ones(X) + 1e-3 * np.eye(8)
    back = rows.preconditioner.gradient(curved) @ rows.preconditioner.gradient(np.eye(8)).T
    assert np.allclose(back, np.eye(8), atol=1e-8)
    assert np.linalg.cond(curved) > 1e4


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_frame_evens_out_the_curvature_of_the_rows_and_of_stiff_directions(kind: str) -> None:
    X = table(kind) * np.array([1e-2, 1, 10, 1, 1, 1, 1e2])
    rng = np.random.default_rng(8)
    weight, stiff = rng.random(60) * (rng.random(60) < 0.7), 30 * rng.normal(size=(2, 8))
    curved = with_ones(X).T @ (weight[:, None] * with_ones(X)) + stiff.T @ stiff
    curved += (2 * 0.01 + DAMPING_BY_ROWS * weight.sum()) * np.eye(8)
    preconditioner = DesignMatrix(X).preconditioner_of(weight, 0.01, stiff)
    assert np.allclose(
        preconditioner.gradient(curved) @ preconditioner.gradient(np.eye(8)).T, np.eye(8), atol=1e-7
    )


def test_a_part_of_many_rows_tells_about_the_curvature_of_all() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20 * ENOUGH_ROWS, 3)) * np.array([1.0, 5.0, 0.2])
    weight = rng.random(len(X)) / len(X)
    curved = with_ones(X).T @ (weight[:, None] * with_ones(X))
    preconditioner = DesignMatrix(X).preconditioner_of(weight, 0.0, np.empty((0, 4)))
    even = preconditioner.gradient(curved) @ preconditioner.gradient(np.eye(4)).T
    assert np.abs(even - np.eye(4)).max() < 0.2


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_some_of_the_rows_are_rows_of_their_own(kind: str) -> None:
    X, some = table(kind), np.array([3, 3, 50, 7])
    rng = np.random.default_rng(10)
    W, gradient = rng.normal(size=(8, 1)), rng.normal(size=(4, 1))
    taken = DesignMatrix(X).take(some)
    assert np.allclose(taken.scores(W), DesignMatrix(X[some]).scores(W), rtol=1e-12, atol=1e-12)
    assert np.allclose(
        taken.back(gradient), DesignMatrix(X[some]).back(gradient), rtol=1e-12, atol=1e-12
    )
    assert taken.n_weights == 8


def test_the_rows_of_an_array_are_made_once_and_do_not_keep_it_alive() -> None:
    X, other = table("dense"), table("dense")
    first = DesignMatrix.of(X)
    assert DesignMatrix.of(X) is first
    assert DesignMatrix.of(other) is not first  # equal, but not the same: it could be changed
    assert DesignMatrix.of(X) is not first
    kept = weakref.ref(X)
    del X, first
    gc.collect()
    assert kept() is None

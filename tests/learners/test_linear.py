"""The stacked solver finds the optimum, the one scikit-learn finds, and mixes no two models."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand.learners.linear as linear
from evenhand.learners.linear import LogisticStack, StackedLogistic
from evenhand.typing import FloatArray, IntArray


def table(
    n_models: int, n: int, d: int, n_classes: int, seed: int = 0
) -> tuple[FloatArray, IntArray, list[IntArray]]:
    """Ragged partitions with dense columns, rare categories and one column that never varies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_models * n, d))
    X[:, 2] = X[:, 2] > 2.0
    X[:, 3] = 0.0
    scores = X @ rng.normal(size=(d, n_classes)) + 2 * rng.gumbel(size=(len(X), n_classes))
    X[:, 3] = 4.0
    rows = [np.arange(t * n, (t + 1) * n - 2 * t, dtype=np.int64) for t in range(n_models)]
    return X, scores.argmax(axis=1).astype(np.int64), rows


def fit(
    X: FloatArray, y: IntArray, rows: list[IntArray], n_classes: int, **settings: float
) -> LogisticStack:
    rng = np.random.default_rng(0)
    return StackedLogistic(**settings).fit(X, y, rows, n_classes=n_classes, rng=rng)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    ("n", "d", "n_classes"),
    [(90, 8, 2), (50, 70, 2), (100, 8, 3), (50, 60, 3), (110, 6, 5)],
    ids=["two classes", "two, wide", "three classes", "three, wide", "five classes"],
)
def test_coefficients_agree_with_scikit_learn(C: float, n: int, d: int, n_classes: int) -> None:
    # A second derivation: other code, another solver, to 1e-4 of each coefficient.
    X, y, rows = table(4, n, d, n_classes)
    ours = fit(X, y, rows, n_classes, C=C)
    solver = "newton-cholesky" if n_classes == 2 else "newton-cg"
    for t, own in enumerate(rows):
        theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver=solver)
        theirs.fit(X[own], y[own])
        assert np.array_equal(theirs.classes_, np.arange(n_classes))
        assert ours.coef[t] == pytest.approx(theirs.coef_, abs=1e-4)
        assert ours.intercept[t] == pytest.approx(theirs.intercept_, abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gradient_of_the_stated_objective_is_zero(n_classes: int) -> None:
    # The definition: finite differences of sum_i loss_i + |w|^2 / 2C, written out once more.
    X, y, rows = table(3, 60, 6, n_classes)
    C = 5.0
    stack = fit(X, y, rows, n_classes, C=C)

    def objective(coef: FloatArray, intercept: FloatArray, own: IntArray) -> float:
        scores = X[own] @ coef.T + intercept
        if n_classes == 2:
            scores = np.column_stack([np.zeros(len(own)), scores])
        log_total = np.log(np.exp(scores).sum(axis=1))
        loss = log_total - scores[np.arange(len(own)), y[own]]
        return float(loss.sum() + (coef**2).sum() / (2 * C))

    for t, own in enumerate(rows):
        best = objective(stack.coef[t], stack.intercept[t], own)
        for step in (1e-3, -1e-3):
            for index in np.ndindex(stack.coef[t].shape):
                coef = stack.coef[t].copy()
                coef[index] += step
                assert objective(coef, stack.intercept[t], own) > best
            for k in range(len(stack.intercept[t])):
                intercept = stack.intercept[t].copy()
                intercept[k] += step
                assert objective(stack.coef[t], intercept, own) > best


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_is_the_same_bits_alone_and_in_any_company(n_classes: int) -> None:
    X, y, rows = table(9, 70, 12, n_classes)
    together = fit(X, y, rows, n_classes, C=100.0)
    for t in range(9):
        alone = fit(X, y, [rows[t]], n_classes, C=100.0)
        some = fit(X, y, [*rows[t:], *rows[:2]], n_classes, C=100.0)
        for other in (alone, some):
            assert np.array_equal(together.coef[t], other.coef[0])
            assert np.array_equal(together.intercept[t], other.intercept[0])


@pytest.mark.parametrize("d", [12, 100])
def test_a_much_larger_partition_beside_it_moves_no_bit_of_a_model(d: int) -> None:
    # Padding all to the largest would take another path (d = 100: no row space) or sum in another
    # order.
    X, y, rows = table(30, 70, d, 2)
    alone = fit(X, y, rows[:2], 2, C=100.0)
    beside = fit(X, y, [*rows[:2], np.concatenate(rows[2:])], 2, C=100.0)
    assert np.array_equal(alone.coef, beside.coef[:2])
    assert np.array_equal(alone.intercept, beside.intercept[:2])


def test_memory_chunks_do_not_change_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, rows = table(7, 50, 6, 2)
    whole = fit(X, y, rows, 2)
    queries = X[:30]
    votes = whole.predict(queries)
    monkeypatch.setattr(linear, "CHUNK_BYTES", 10_000)
    pieces = fit(X, y, rows, 2)
    assert np.array_equal(whole.coef, pieces.coef)
    assert np.array_equal(votes, pieces.predict(queries))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_rows_have_a_finite_optimum(n_classes: int) -> None:
    # Without damping, Newton steps overshoot here; scikit-learn's optimum is the judge.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    y = X[:, :n_classes].argmax(axis=1).astype(np.int64)
    C = 1e4
    ours = fit(X, y, [np.arange(60)], n_classes, C=C)
    with warnings.catch_warnings():  # its line search stops where doubles end
        warnings.simplefilter("ignore")
        theirs = LogisticRegression(C=C, tol=1e-12, max_iter=100_000, solver="newton-cg").fit(X, y)
    assert ours.coef[0] == pytest.approx(theirs.coef_, abs=1e-2)
    assert np.array_equal(ours.predict(X)[0], y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1e2, 1e5])
def test_steps_are_shortened_until_they_descend(C: float, n_classes: int) -> None:
    # Rows of very different length: whole Newton steps fail on several of these tables (93, for
    # one).
    for seed in range(80, 130):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(4, 40)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)) * 2)
        slope = rng.normal(size=d) * rng.choice([0, 3, 30])
        score = X @ slope + rng.logistic(size=n) + 3 * rng.normal()
        y = np.where(score > 0, n_classes - 1, 0).astype(np.int64)
        y[:n_classes] = np.arange(n_classes)
        stack = fit(X, y, [np.arange(n)], n_classes, C=C)
        assert np.isfinite(stack.coef).all()


def test_extreme_columns_still_converge() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * np.array([1e-3, 1.0, 1e4])
    y = (X[:, 1] + X[:, 2] / 1e4 + rng.normal(size=80) > 0).astype(np.int64)
    stack = fit(X, y, [np.arange(80)], 2, C=1.0)
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(X, y)
    assert stack.coef[0] == pytest.approx(theirs.coef_, rel=1e-4, abs=1e-7)


def test_columns_constant_in_a_partition_get_coefficient_zero() -> None:
    X, y, rows = table(3, 60, 6, 2)
    stack = fit(X, y, rows, 2)
    assert np.all(stack.coef[:, :, 3] == 0.0)
    assert np.all(stack.coef[:, :, 0] != 0.0)


def test_one_class_and_no_rows_give_constants_without_reading_others() -> None:
    X, y, rows = table(4, 50, 6, 3)
    y[rows[1]] = 2
    rows[2] = rows[2][:0]
    votes = fit(X, y, rows, 3).predict(X[:40])
    assert np.all(votes[1] == 2)
    assert np.all(votes[2] == 0)
    assert len(np.unique(votes[0])) > 1


def test_a_tie_answers_class_0() -> None:
    stack = LogisticStack(coef=np.ones((1, 1, 1)), intercept=np.zeros((1, 1)))
    assert stack.predict(np.array([[0.0], [1e-9], [-1e-9]])).tolist() == [[0, 1, 0]]


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"C must be finite and > 0, got C=0\.0"):
        StackedLogistic(C=0.0)
    with pytest.raises(ValueError, match="tolerance must be finite and > 0"):
        StackedLogistic(tolerance=-1.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_that_no_newton_step_can_solve_are_refused_with_the_way_out(n_classes: int) -> None:
    X = np.array([[1e200], [-1e200], [3e200], [-2e200], [1e100]])
    y = np.array([0, 1, 1, 0, n_classes - 1])
    said = r"of 1 partition\(s\) did not converge .* Scale the columns with public statistics"
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=said):
        fit(X, y, [np.arange(5)], n_classes)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_very_strong_and_very_weak_penalties_converge(n_classes: int, C: float) -> None:
    X, y, rows = table(4, 60, 40, n_classes)
    votes = fit(X, y, rows, n_classes, C=C).predict(X)
    for t, own in enumerate(rows):
        right = (votes[t, own] == y[own]).mean()
        assert right == 1.0 if C == 1e6 else right > 1 / n_classes

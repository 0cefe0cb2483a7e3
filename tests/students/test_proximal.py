"""The loss of a student that follows noisy votes, near a first model."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.students.constrained import fit_linear
from evenhand.students.lagrangian import fit_lagrangian
from evenhand.students.objective import LabelLoss, ShareLoss
from evenhand.students.proximal import ProximalLoss

QUERIED = np.arange(0, 200, 4)


def answers(n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, ShareLoss]:
    """Rows, and noisy shares of some of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    shares = rng.dirichlet(np.ones(n_classes), size=len(QUERIED))
    shares = shares + rng.normal(0.0, 0.3, size=shares.shape)
    variance = rng.uniform(0.05, 0.2, size=len(QUERIED))
    return X, ShareLoss(shares=shares, variance=variance)


def first_of(X: np.ndarray, n_classes: int = 2) -> np.ndarray:
    weights = np.random.default_rng(1).normal(size=(3, 1 if n_classes == 2 else n_classes))
    return X @ weights + 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_loss_and_the_loss_is_its_definition(n_classes: int) -> None:
    X, told = answers(n_classes)
    first = first_of(X, n_classes)
    loss = ProximalLoss(answers=told, queried=QUERIED, first=first, pull=0.7)
    scores = np.random.default_rng(2).normal(size=first.shape)
    value, gradient = loss.loss(scores)
    away = ((scores - first) ** 2).sum(axis=1).mean()
    assert value == pytest.approx(told.loss(scores[QUERIED])[0] + 0.7 * away)
    for row in (0, 1, 4, 199):  # asked and not
        for column in range(scores.shape[1]):
            nudge = np.zeros_like(scores)
            nudge[row, column] = 1e-5
            rise = loss.loss(scores + nudge)[0] - loss.loss(scores - nudge)[0]
            assert gradient[row, column] == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-10)


def test_without_a_first_model_it_is_the_loss_of_the_asked_rows_ridge_and_all() -> None:
    X, told = answers()
    alone = fit_lagrangian(X[QUERIED], told, None)
    among = fit_lagrangian(X, ProximalLoss(answers=told, queried=QUERIED), None)
    np.testing.assert_allclose(alone.coef, among.coef, atol=1e-3)
    np.testing.assert_allclose(alone.intercept, among.intercept, atol=1e-3)


def test_it_ends_at_the_first_model_as_the_pull_grows_and_nears_it_on_the_way() -> None:
    X, told = answers()
    first = first_of(X)
    away = []
    for pull in (0.01, 0.1, 1.0, 1000.0):
        loss = ProximalLoss(answers=told, queried=QUERIED, first=first, pull=pull)
        fit = fit_lagrangian(X, loss, None)
        away.append(float(np.abs(X @ fit.coef.T + fit.intercept - first).mean()))
    assert away == sorted(away, reverse=True)
    assert away[0] > 0.1
    assert away[-1] < 0.01


@pytest.mark.parametrize("pull", [0.0, 0.4])
def test_a_frame_that_knows_its_curvature_ends_where_one_that_does_not_does(pull: float) -> None:
    # Of labels' own optimiser, which asks for curvature and for the rows that are read.
    X, told = answers()
    loss = ProximalLoss(
        answers=told, queried=QUERIED, first=first_of(X) if pull else None, pull=pull
    )
    other = fit_lagrangian(X, loss, None)
    found = fit_linear(X, loss, None)
    np.testing.assert_allclose(found.coef, other.coef, atol=2e-3)
    assert (loss.rows is None) is (pull > 0)


def test_a_pull_needs_a_first_model_and_a_first_model_a_pull() -> None:
    X, told = answers()
    with pytest.raises(ValueError, match=r"got pull=0\.5 with first=None"):
        ProximalLoss(answers=told, queried=QUERIED, pull=0.5)
    with pytest.raises(ValueError, match="got pull=0 and first=scores"):
        ProximalLoss(answers=told, queried=QUERIED, first=first_of(X))
    with pytest.raises(ValueError, match="queried"):
        ProximalLoss(answers=told, queried=QUERIED[:3])


def test_a_column_that_hardly_varies_does_not_hold_the_student_back() -> None:
    # The same student in other units: the pull is about scores, and weights have units.
    X, told = answers()
    rng = np.random.default_rng(3)
    labels = LabelLoss(labels=rng.integers(2, size=200), rows=np.arange(200), n_classes=2, C=1e6)
    units = np.array([1.0, 30.0, 0.05])
    said = []
    for rows in (X, X * units):
        free = fit_lagrangian(rows, labels, None)
        first = rows @ free.coef.T + free.intercept
        loss = ProximalLoss(answers=told, queried=QUERIED, first=first, pull=0.1)
        fit = fit_lagrangian(rows, loss, None)
        said.append(rows @ fit.coef.T + fit.intercept)
    np.testing.assert_allclose(said[0], said[1], atol=0.05)

"""Fair-tuning: its gradient, its limits, and the weight found by the gap that it gives."""

import itertools

import numpy as np
import pytest
from populations import population, within
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit

from evenhand.fairness.notions import exact_gap
from evenhand.students import MarginNotMet
from evenhand.students.constrained import DEFAULT_C, fit_linear
from evenhand.students.fair_tuning import _Tuning, fair_tune
from evenhand.students.objective import LabelLoss
from evenhand.typing import FloatArray, IntArray


def trained(X: FloatArray, y: IntArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
    loss = LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=n_classes, C=0.3)
    fit = fit_linear(X, loss, None)
    return fit.coef, fit.intercept


def counts_of(fit: object, X: FloatArray, groups: IntArray, n_classes: int) -> list[list[int]]:
    scores = X @ fit.coef.T + fit.intercept  # type: ignore[attr-defined]
    decided = scores.argmax(axis=1) if n_classes > 2 else (scores[:, 0] > 0).astype(int)
    counts = np.zeros((int(groups.max()) + 1, n_classes), dtype=int)
    np.add.at(counts, (groups, decided), 1)
    return counts.tolist()


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_value(n_classes: int, reference: str) -> None:
    X, y, groups = population(300, 3, n_classes)
    coef, intercept = trained(X, y, n_classes)
    problem = _Tuning(coef, intercept, X, y, within(0.05, groups, reference))
    rng = np.random.default_rng(1)
    flat = problem.start.ravel() + rng.normal(size=problem.start.size) / 3
    for weight in (0.0, 2.0):
        numeric = approx_fprime(flat, lambda w, v=weight: problem.value(w, v, 0.3, 0.05)[0], 1e-7)
        _, gradient = problem.value(flat, weight, 0.3, 0.05)
        assert np.abs(gradient - numeric).max() < 1e-4 * max(1.0, np.abs(gradient).max())


def test_the_value_is_equation_1_up_to_its_rounding() -> None:
    # A second derivation, with max and without rounding, on smooth decisions.
    X, y, groups = population(400)
    coef, intercept = trained(X, y, 2)
    problem = _Tuning(coef, intercept, X, y, within(0.05, groups))
    for shift in (0.0, 0.4, -0.6):
        W = problem.start + shift * np.eye(6)[:, :1]
        score = (problem.X @ W)[:, 0]
        loss = (np.logaddexp(0, score) - y * score).mean()
        smooth = expit(score / 0.3)
        gap = abs(smooth[groups == 0].mean() - smooth[groups == 1].mean())
        pull = 0.5 / (0.3 * 400) * shift**2
        direct = loss + 3.0 * max(0.0, gap - 0.05) + pull
        value, _ = problem.value(W.ravel(), 3.0, 0.3, 0.05)
        # Two roundings, each at most 0.002 log 2, lie above the corners of max.
        assert 0 <= value - direct <= 3.0 * 2 * 0.002 * np.log(2) + 1e-12


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_the_weight_that_is_found_gives_a_gap_within_the_margin(
    n_groups: int, n_classes: int, reference: str
) -> None:
    X, y, groups = population(900, n_groups, n_classes)
    coef, intercept = trained(X, y, n_classes)
    rule = within(0.08, groups, reference)
    found = fair_tune(coef, intercept, X, y, rule, n_classes)
    assert found.fit.met
    assert found.weight > 0
    counts = counts_of(found.fit, X, groups, n_classes)
    assert float(exact_gap(counts, reference)) == pytest.approx(found.fit.gap)
    assert rule.notion.holds(counts)


def test_the_weight_that_is_found_is_hardly_more_than_is_needed() -> None:
    X, y, groups = population()
    coef, intercept = trained(X, y, 2)
    found = fair_tune(coef, intercept, X, y, within(0.05, groups), 2)
    with pytest.warns(MarginNotMet):
        less = fair_tune(coef, intercept, X, y, within(0.05, groups), 2, weight=0.5 * found.weight)
    assert less.fit.gap > 0.05


def test_a_margin_that_holds_already_needs_no_weight() -> None:
    X, y, groups = population()
    coef, intercept = trained(X, y, 2)
    found = fair_tune(coef, intercept, X, y, within(1.0, groups), 2)
    assert found.weight == 0.0
    assert found.fit.met


def test_without_a_penalty_it_learns_the_labels_from_where_it_stands() -> None:
    X, y, groups = population()
    coef, intercept = np.zeros((1, 5)), np.zeros(1)
    found = fair_tune(coef, intercept, X, y, within(1.0, groups), 2, weight=0.0)

    def objective(theta: FloatArray) -> float:
        score = X @ theta[:5] + theta[5]
        loss = float((np.logaddexp(0, score) - y * score).mean())
        return loss + 0.5 / (0.3 * len(y)) * float(theta @ theta)

    direct = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-8}).x
    assert np.abs(found.fit.coef[0] - direct[:5]).max() < 1e-3


def test_few_rows_move_a_student_less_than_many() -> None:
    # The same rows, repeated: the pull of the ridge is then weaker beside the same mean loss, and
    # what is least of a convex loss plus a pull is never nearer where the pull is weaker. Where the
    # gradient is zero, the weights have moved by C times the gradients of all rows added up.
    X, y, groups = population(60)
    coef, intercept = trained(X, 1 - y, 2)  # trained on the wrong labels
    start, away = np.append(coef[0], intercept), []
    for times in (1, 8, 64):
        many, right, of = np.tile(X, (times, 1)), np.tile(y, times), np.tile(groups, times)
        fit = fair_tune(coef, intercept, many, right, within(1.0, of), 2, weight=0.0).fit
        moved = np.append(fit.coef[0], fit.intercept) - start
        rows = np.hstack([many, np.ones((len(many), 1))])
        errors = expit(rows @ (start + moved)) - right
        mean_gradient = rows.T @ errors / len(rows)
        assert np.abs(mean_gradient + moved / (DEFAULT_C * len(rows))).max() < 1e-4
        away.append(float(np.linalg.norm(moved)))
    assert away == sorted(away)


def test_more_weight_never_widens_the_smoothed_gap() -> None:
    X, y, groups = population()
    coef, intercept = trained(X, y, 2)
    problem = _Tuning(coef, intercept, X, y, within(0.01, groups))
    gaps = []
    for weight in (0.0, 0.03, 0.1, 0.3, 1.0):
        fit = problem.tuned(weight, 0.1, 0.01).fit
        smooth = expit((X @ fit.coef[0] + fit.intercept[0]) / (0.1 * problem.spread))
        gaps.append(abs(smooth[groups == 0].mean() - smooth[groups == 1].mean()))
    assert all(later <= earlier + 1e-3 for earlier, later in itertools.pairwise(gaps))
    assert gaps[-1] < 0.3 * gaps[0]


def test_a_margin_that_cannot_be_met_is_said_and_the_best_is_kept() -> None:
    # Groups of 30 and 31 rows have equal rates only if both get all, or nothing.
    groups = np.array([0] * 30 + [1] * 31)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(61, 2))
    y = (X[:, 0] > 0).astype(int)
    coef, intercept = np.array([[8.0, 0.0]]), np.zeros(1)
    with pytest.warns(MarginNotMet, match="This weight .* it is 0.*, and the student is kept"):
        fit = fair_tune(coef, intercept, X, y, within(0.0, groups), 2, weight=0.0).fit
    assert not fit.met
    assert fit.gap > 0


def test_a_weight_below_zero_is_refused() -> None:
    X, y, groups = population(50)
    with pytest.raises(ValueError, match="weight must be finite and >= 0, got weight=-1"):
        fair_tune(np.zeros((1, 5)), np.zeros(1), X, y, within(0.1, groups), 2, weight=-1.0)

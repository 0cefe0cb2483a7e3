"""The Lagrangian dual for linear students: gradients, optima of small cases, the margin."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from evenhand import DemographicParity, GeneralizedDemographicParity
from evenhand._notions import SHIPPED
from evenhand.fairness import FunctionParity
from evenhand.fairness.functions import worst_violation
from evenhand.fairness.notions import notion_named
from evenhand.students import MarginNotMet
from evenhand.students.lagrangian import Constraint, _Problem, fit_lagrangian
from evenhand.students.objective import LabelLoss, ShareLoss

KINDS = [notion_named(name) for name in sorted(SHIPPED)]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def to_all(kind, **settings):
    return kind(**{"margin": 0.02, "reference": "overall", **settings})


PARITY = to_all(DemographicParity)


def people(seed: int = 0, n: int = 600, n_classes: int = 2, n_groups: int = 2):
    """Rows whose second column tells groups apart, and labels that lean on it."""
    rng = np.random.default_rng(seed)
    z = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 1] += 1.5 * z
    leans = np.array([[0.0, 1.0, -1.0], [0.0, 1.2, 0.3], [0.0, 0.0, 1.0]])[:, :n_classes]
    y = (X @ leans - [0.0, 1.0, 0.0][:n_classes] + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, y, z


def problem(notion, *, seed=0, n_classes=2, n_groups=2, rows=None):
    X, y, z = people(seed, n_classes=n_classes, n_groups=n_groups)
    loss = LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=n_classes, C=1.0)
    some = slice(None) if rows is None else rows
    constraint = Constraint(
        notion=notion,
        truth=np.eye(n_classes)[y[some]],
        weights=np.eye(n_groups)[z[some]],
        rows=rows,
    )
    return X, y, z, loss, constraint


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rows", [None, np.arange(0, 600, 2)], ids=["all rows", "some rows"])
@each_kind
def test_the_gradient_is_that_of_the_multiplied_problem(kind, rows, n_classes: int) -> None:
    X, _, _, loss, constraint = problem(to_all(kind), n_classes=n_classes, rows=rows)
    made = _Problem(X, loss, constraint)
    rng = np.random.default_rng(1)
    made.anchor, made.pull = rng.normal(size=made.n_weights), 0.3
    weights = rng.normal(size=made.n_weights)
    pull = made.differences.back(rng.normal(size=made.differences.read.shape))
    _, gradient = made._value(weights, pull)
    for i in range(made.n_weights):
        nudge = np.zeros(made.n_weights)
        nudge[i] = 1e-5
        rise = made._value(weights + nudge, pull)[0] - made._value(weights - nudge, pull)[0]
        assert gradient[i] == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("n_groups", [2, 3])
@each_kind
def test_the_violation_falls_to_alpha_by_the_definition(kind, n_groups: int) -> None:
    # Where alpha is met that is the definition's word, not the solver's. A function of decisions
    # moves in steps of single rows, and need not meet alpha: then the least violation is kept.
    function = to_all(kind)
    X, y, z, loss, constraint = problem(function, n_groups=n_groups)
    free = fit_lagrangian(X, loss, None).classifier(2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = fit_lagrangian(X, loss, constraint)
    after = worst_violation(function, fit.classifier(2).predict_proba(X), y, z)
    before = worst_violation(function, free.predict_proba(X), y, z)
    assert fit.gap == pytest.approx(after, abs=1e-12)
    assert fit.met == (after <= 0.02)
    assert fit.met or function.on_decisions
    assert [w.category for w in said] == ([] if fit.met else [MarginNotMet])
    assert after < before or before <= 0.02


def test_three_classes_and_three_groups_are_held_together() -> None:
    function = to_all(DemographicParity, margin=0.03)
    X, y, z, loss, constraint = problem(function, n_classes=3, n_groups=3)
    before = worst_violation(function, _proba(fit_lagrangian(X, loss, None), X, 3), y, z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginNotMet)  # decisions of 600 rows move in steps
        fit = fit_lagrangian(X, loss, constraint)
    after = worst_violation(function, _proba(fit, X, 3), y, z)
    assert fit.met == (after <= 0.03)
    assert after < before / 2


def test_the_student_is_near_the_optimum_that_a_general_solver_finds() -> None:
    # A second derivation: SLSQP on the smooth problem, whose constraints it knows as such.
    X, _, _, loss, constraint = problem(to_all(GeneralizedDemographicParity))
    fit = fit_lagrangian(X, loss, constraint, rounds=200)
    made = _Problem(X, loss, constraint)
    inside = {
        "type": "ineq",
        "fun": lambda w: 0.02 - np.abs(made.apart(w)).ravel(),
    }
    best = minimize(
        lambda w: made._value(w, None), np.zeros(made.n_weights), jac=True, constraints=inside
    )
    weights = np.append(fit.coef[0], fit.intercept[0])
    free = made.loss(made.solve(np.zeros(made.n_weights), None, steps=400))
    assert best.success
    # Of what the constraint costs, at most a fifth more (the multipliers aim for 0.9 alpha).
    assert made.loss(weights) - free <= 1.2 * (best.fun - free) + 1e-6


def test_a_model_within_alpha_is_left_as_it_is() -> None:
    X, _, _, loss, constraint = problem(to_all(DemographicParity, margin=1.0))
    free, kept = fit_lagrangian(X, loss, None), fit_lagrangian(X, loss, constraint)
    np.testing.assert_array_equal(free.coef, kept.coef)


def test_the_pull_to_theta_star_trades_fairness_for_nearness() -> None:
    X, _, _, loss, constraint = problem(to_all(DemographicParity, margin=0.02))
    free = fit_lagrangian(X, loss, None)
    theta = np.column_stack([free.coef, free.intercept])

    def away(pull: float) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarginNotMet)
            fit = fit_lagrangian(X, loss, constraint, pull=pull, rounds=15)
        return float(np.linalg.norm(np.column_stack([fit.coef, fit.intercept]) - theta))

    assert away(0.0) > away(0.03) > away(1.0) > 0.0


def test_the_pull_is_to_the_anchor_that_is_given() -> None:
    X, _, _, loss, constraint = problem(to_all(DemographicParity, margin=0.001))
    there = np.array([[0.0, 0.0, 0.0, -5.0]])  # predicts one class: no violation, all loss
    fit = fit_lagrangian(X, loss, constraint, anchor=there, pull=100.0, rounds=3)
    np.testing.assert_allclose(np.append(fit.coef, fit.intercept), there[0], atol=0.05)


def test_soft_weights_that_are_right_on_average_hold_the_true_groups() -> None:
    function = to_all(DemographicParity, margin=0.01)
    rng = np.random.default_rng(3)
    X, y, z = people(0, n=20_000)
    loss = LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=2, C=1.0)
    noisy = np.eye(2)[z] + rng.normal(0.0, 1.0, size=(len(z), 1)) * [[1.0, -1.0]]
    constraint = Constraint(notion=function, truth=np.eye(2)[y], weights=noisy)
    fit = fit_lagrangian(X, loss, constraint)
    free = fit_lagrangian(X, loss, None)
    # Noise of 1 in each of 20,000 weights moves a group's rate by sqrt(20,000) / 10,000 = .014.
    assert worst_violation(function, _proba(fit, X, 2), y, z) < 0.01 + 3 * 0.014
    assert worst_violation(function, _proba(free, X, 2), y, z) > 0.2


def test_shares_can_be_followed_under_a_constraint_too() -> None:
    function = PARITY
    X, y, z, _, constraint = problem(function)
    told = ShareLoss(shares=np.eye(2)[y] * 0.6 + 0.2, variance=np.full(len(y), 0.1))
    fit = fit_lagrangian(X, told, constraint)
    assert worst_violation(function, _proba(fit, X, 2), y, z) <= 0.02


def test_a_function_of_ones_own_needs_no_gradient() -> None:
    false_alarms = to_all(
        FunctionParity, h=lambda p, truth: p[:, 1] * truth[:, 0], on_decisions=True
    )
    X, y, z, loss, _ = problem(false_alarms)
    free = worst_violation(false_alarms, _proba(fit_lagrangian(X, loss, None), X, 2), y, z)
    *_, constraint = problem(
        replace(false_alarms, margin=free / 3)
    )  # whatever it is, a third of it
    fit = fit_lagrangian(X, loss, constraint)
    assert worst_violation(false_alarms, _proba(fit, X, 2), y, z) <= free / 3


def test_an_alpha_that_no_model_meets_keeps_the_best_and_says_so() -> None:
    # h reads the truth alone, so no model can change it.
    fixed = to_all(
        FunctionParity,
        margin=0.001,
        h=lambda p, truth: truth[:, 1] + 0.0 * p[:, 0],
        title="the base rate",
    )
    X, y, z, loss, constraint = problem(fixed)
    with pytest.warns(MarginNotMet, match=r"of the base rate of at most 0.001 was found"):
        fit = fit_lagrangian(X, loss, constraint, rounds=5)
    assert not fit.met
    assert fit.gap == pytest.approx(worst_violation(fixed, np.eye(2)[y], y, z))


def test_wrong_settings_are_refused() -> None:
    X, _, _, loss, constraint = problem(PARITY)
    with pytest.raises(ValueError, match=r"pull must be finite and >= 0, got pull=-1"):
        fit_lagrangian(X, loss, constraint, pull=-1.0)
    with pytest.raises(ValueError, match=r"margin must lie in \[0, 1\]"):
        problem(to_all(DemographicParity, margin=-0.1))
    with pytest.raises(ValueError, match="These need one row each for the same records"):
        Constraint(
            notion=PARITY,
            truth=np.eye(2),
            weights=np.ones((3, 2)),
        )


def _proba(fit, X, n_classes: int):
    return fit.classifier(n_classes).predict_proba(X)

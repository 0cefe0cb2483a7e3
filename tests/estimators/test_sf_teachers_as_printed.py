"""SF_T as the paper prints it: the student learns winners, near theta* by the norm of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.estimators.test_sf_pate import people, to_all

from evenhand import SFPATEClassifier
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.students import NetworkStudent

N_QUERIES = 600
X, Y, Z = people()
FRESH = people(seed=1, n=500)[0]


def fitted(*, seed: int = 0, **settings: Any) -> tuple[SFPATEClassifier, np.ndarray]:
    """Return the model, and the rows that its teachers voted on."""
    model = SFPATEClassifier(
        Budget(epsilon=1.0, delta=1e-6),
        "teachers",
        fairness=to_all(0.02),
        n_teachers=30,
        answers="labels",
        n_queries=N_QUERIES,
        noise=SeededNoise(seed),
        random_state=seed,
        **settings,
    )
    seen: list[np.ndarray] = []
    read = model.read

    def remember(given: Any) -> Any:
        told = read(given)
        seen.append(told.rows)
        return told

    model.read = remember  # type: ignore[method-assign]
    return model.fit(X, Y, sensitive_features=Z), seen[0]


def regression(model: SFPATEClassifier, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probabilities of scikit-learn's logistic regression on these rows and labels."""
    encoded = model.encoder_.transform(X[rows])
    other = LogisticRegression(C=1.0, max_iter=1000, tol=1e-8).fit(encoded, labels)
    return other.predict_proba(model.encoder_.transform(FRESH))[:, 1]


def test_without_a_pull_it_is_a_regression_on_the_winners_and_protects_labels_too() -> None:
    model, rows = fitted(pull=0.0)
    winners = model.answers_.shares.argmax(axis=1)
    other = regression(model, rows, winners)
    assert model.predict_proba(FRESH)[:, 1] == pytest.approx(other, abs=5e-3)
    assert model.guarantee_.neighbors == GROUP_AND_CLASS_LABEL


def test_the_pull_goes_to_the_model_of_true_labels_on_the_same_rows() -> None:
    # At a large lambda the student is theta*, and near 0 it is the regression on the winners.
    at = {}
    for pull in (1e-6, 1e-2, 1e4):
        model, rows = fitted(pull=pull)
        truth = regression(model, rows, np.searchsorted(["no", "yes"], Y[rows]))
        told = regression(model, rows, model.answers_.shares.argmax(axis=1))
        shown = model.predict_proba(FRESH)[:, 1]
        at[pull] = [float(np.abs(shown - one).mean()) for one in (truth, told)]
    assert np.abs(truth - told).mean() > 0.02  # else the test could not tell them apart
    assert at[1e4][0] < 2e-3
    assert at[1e-6][1] < 5e-3
    assert at[1e4][0] < at[1e-2][0] < at[1e-6][0]
    assert model.guarantee_.neighbors == GROUP_LABEL


def test_the_whole_budget_goes_to_the_votes_and_no_group_is_summed() -> None:
    model, _ = fitted()
    purposes = {entry.purpose for entry in model.ledger_.entries}
    assert len(purposes) == 1
    assert model.ledger_.spent == pytest.approx(model.ledger_.budget.mu_squared, rel=1e-6)
    assert np.isnan(model.noisy_violation_)
    assert any("as the paper prints it" in words for words in model.choices_)


def test_a_network_learns_the_winners_near_its_own_theta() -> None:
    pytest.importorskip("torch")
    student = NetworkStudent(hidden=(8,), epochs=20, fair_epochs=20)
    near, rows = fitted(student=student, pull=1e3)
    free, _ = fitted(student=student, pull=0.0)
    # theta* of the pulled one knows the labels, the other one knows the votes alone.
    truth = regression(near, rows, np.searchsorted(["no", "yes"], Y[rows]))
    off = [float(np.abs(m.predict_proba(FRESH)[:, 1] - truth).mean()) for m in (near, free)]
    assert off[0] < off[1]


@pytest.mark.parametrize("answers", ["labels", "shares"])
def test_a_network_student_is_held_on_the_rows_whose_groups_are_known(answers: str) -> None:
    pytest.importorskip("torch")
    model = SFPATEClassifier(
        Budget(epsilon=20.0, delta=1e-6),
        fairness=to_all(0.1),
        n_teachers=30,
        answers=answers,
        n_queries=N_QUERIES,
        student=NetworkStudent(hidden=(8,), epochs=20, fair_epochs=40),
        noise=SeededNoise(0),
        random_state=0,
    ).fit(X, Y, sensitive_features=Z)
    # Half of what lies between two groups of one size is what lies between one and everybody.
    apart = [np.mean(Y[z == Z] == "yes") for z in "ab"]
    assert abs(apart[0] - apart[1]) / 2 > 0.13
    assert model.within_alpha_
    assert model.noisy_violation_ <= 0.1

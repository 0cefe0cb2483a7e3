"""Students that an ensemble cannot teach are refused before anything is spent."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity, FairPATEClassifier, PATEClassifier
from evenhand.baselines.intervention import InterventionClassifier
from evenhand.privacy import Ledger, SeededNoise
from evenhand.students.reduction import ReductionStudent

THREE = np.array(["a", "b", "c"])
WITHIN = DemographicParity(margin=0.1)


@pytest.mark.parametrize(
    ("model", "labels", "message"),
    [
        (
            PATEClassifier(answers="shares", student=LogisticRegression()),
            THREE[:2],
            "Noisy shares are not labels, and LogisticRegression learns labels",
        ),
        (PATEClassifier(student=LogisticRegression), THREE[:2], "student must be a scikit-learn"),
        (PATEClassifier(student="logistic"), THREE[:2], "student must be a scikit-learn"),
        (
            FairPATEClassifier(fairness=WITHIN, student=ReductionStudent()),
            THREE,
            "The reduction is for two classes",
        ),
        (
            FairPATEClassifier(fairness=WITHIN, student=ReductionStudent(constraints="parity")),
            THREE[:2],
            "constraints must be one of",
        ),
        (
            FairPATEClassifier(fairness=WITHIN, student=ReductionStudent(max_iter=0)),
            THREE[:2],
            "max_iter must be at least 1",
        ),
        (
            InterventionClassifier(fairness=WITHIN, at="S_post"),
            THREE,
            "Group thresholds are for two classes",
        ),
    ],
    ids=str,
)
def test_a_student_that_could_not_learn_is_refused_before_labels_are_paid_for(
    model: Any, labels: Any, message: str
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.choice(labels, 300)
    budget = Budget(epsilon=8.0, delta=1e-4)
    account = Ledger(budget, noise=SeededNoise(0))
    fair = getattr(model, "fairness", None) is not None
    groups = {"sensitive_features_public": rng.integers(2, size=100)} if fair else {}
    model.set_params(budget=budget, n_teachers=5)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X[:200], y[:200], X_public=X[200:], ledger=account, **groups)
    assert account.spent == 0.0

"""What a linear student decides about encoded rows is what scikit-learn says of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.students.decisions import decisions


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("kind", [LogisticRegression, DecisionTreeClassifier])
def test_decisions_are_those_of_predict(kind: type, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 7))
    y = rng.permutation(np.arange(400) % n_classes) + 3
    student = kind().fit(X, y)
    for rows in (X, X[:1], rng.normal(size=(50, 7)) * 1e6):
        assert decisions(student, rows).tolist() == student.predict(rows).tolist()
    assert len(set(decisions(student, X).tolist())) == n_classes


def test_a_score_of_zero_is_the_first_class() -> None:
    student = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    student.intercept_ = np.zeros(1)
    rows = np.zeros((1, 1))
    assert decisions(student, rows).tolist() == student.predict(rows).tolist() == [0]

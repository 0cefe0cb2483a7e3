"""The student: a model fitted on the public rows that were answered."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from evenhand.typing import FloatArray
from evenhand.voting import Answers


class ConstantStudentWarning(UserWarning):
    """All answers were of one class, so the student can only repeat it."""


def default_student() -> LogisticRegression:
    """Logistic regression with a firm ridge: released labels are noisy, and few."""
    return LogisticRegression(C=0.3, max_iter=1000)


def fit_student(student: Any, X_public: FloatArray, answers: Answers) -> Any:
    """Fit a clone of ``student`` on the answered public rows.

    Parameters
    ----------
    student : scikit-learn classifier or None
        Anything with ``fit`` and ``predict``. None means :func:`default_student`.
    X_public : ndarray of float64, shape (n_queries, n_features)
        Encoded public rows, all of them.
    answers : Answers
        What the teachers released about these rows.

    Returns
    -------
    fitted classifier
        Trained on class codes. Where all answers are of one class: a constant classifier, with a
        :class:`ConstantStudentWarning`.

    Raises
    ------
    ValueError
        If no row was answered.

    Privacy
    -------
    Free: reads public rows and released answers only (post-processing).
    """
    rows = answers.answered
    if not rows.any():
        reasons = "; ".join(f"{n} {words}" for words, n in answers.table().items())
        raise ValueError(
            f"No public row was answered, so there is nothing to learn from ({reasons}). Lower the "
            f"threshold, raise epsilon, or widen the margin."
        )
    labels = answers.labels[rows]
    if len(np.unique(labels)) == 1:
        warnings.warn(
            f"All {len(labels)} answers are of one class, so the student always predicts it. "
            f"Raise epsilon, or lower sigma or the number of teachers.",
            ConstantStudentWarning,
            stacklevel=3,
        )
        # One row of another class would make most learners raise; a constant says what is known.
        return DummyClassifier(strategy="constant", constant=int(labels[0])).fit(
            X_public[rows], labels
        )
    return clone(default_student() if student is None else student).fit(X_public[rows], labels)

"""What a student decides about rows that the encoder of its model made."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.typing import FloatArray, IntArray


def decisions(student: Any, rows: FloatArray) -> IntArray:
    """Return class codes, shape (n,): what ``student.predict`` says.

    Encoded rows are finite float64 by construction. Of a linear student they are not checked for
    that again, which for a single row takes ten times as long as to decide.

    Examples
    --------
    >>> student = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> decisions(student, np.array([[0.1], [0.9]]))
    array([0, 1])
    """
    if type(student) is not LogisticRegression or rows.ndim != 2:
        return np.asarray(student.predict(rows)).astype(np.int64)
    scores = rows @ student.coef_.T + student.intercept_
    places = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)
    codes: IntArray = student.classes_[places].astype(np.int64)
    return codes


def draw(expected: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a class code, shape (n,), for each row of probabilities (n, n_classes)."""
    upto = np.cumsum(expected, axis=1)
    drawn = rng.random(len(upto))[:, None]
    # The last class takes what rounding leaves above the sum.
    out: IntArray = (drawn >= upto[:, :-1]).sum(axis=1).astype(np.int64)
    return out

"""AdditiveScores: steps added up, both links, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.students.additive import AdditiveScores

numbers = st.floats(-5, 5, width=32)


@given(rows=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
def test_a_score_is_the_sum_of_one_step_per_column(rows: list[tuple[float, float]]) -> None:
    # A loop over rows and columns, in the words of the definition.
    edges, values = [[-1.0, 2.0], []], [[0.5, -0.25, 3.0], [0.125]]
    student = AdditiveScores(edges, values, intercept=-1.0, link="logit")
    for row, score in zip(rows, student.decision_function(np.array(rows)), strict=True):
        first = values[0][0] if row[0] < -1.0 else values[0][1] if row[0] < 2.0 else values[0][2]
        assert score == -1.0 + first + 0.125


def test_the_links_say_the_same_class_and_probabilities_of_their_own() -> None:
    rows = np.array([[-2.0], [0.0], [3.0]])
    logit = AdditiveScores([[-1.0, 1.0]], [[-1.0, 0.0, 1.0]], intercept=0.5, link="logit")
    direct = AdditiveScores([[-1.0, 1.0]], [[-1.0, 0.0, 1.0]], intercept=0.6, link="identity")
    assert logit.predict(rows).tolist() == direct.predict(rows).tolist() == [0, 1, 1]
    np.testing.assert_allclose(logit.predict_proba(rows)[:, 1], [0.378, 0.622, 0.818], atol=5e-4)
    np.testing.assert_allclose(direct.predict_proba(rows)[:, 1], [0.0, 0.6, 1.0])
    assert (logit.predict_proba(rows).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("edges", "values", "link", "message"),
    [
        ([[0.0]], [[1.0]], "logit", "one value more than these, got 1 edges and values of"),
        ([[1.0, 0.0]], [[1.0, 2.0, 3.0]], "logit", "ascending edges"),
        ([[0.0]], [[1.0, 2.0], [0.0]], "logit", "edges"),
        ([[0.0]], [[1.0, 2.0]], "probit", "'logit', 'identity'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    edges: list[list[float]], values: list[list[float]], link: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        AdditiveScores(edges, values, intercept=0.0, link=link)


def test_rows_of_another_width_are_refused() -> None:
    student = AdditiveScores([[0.0]], [[1.0, 2.0]], intercept=0.0, link="logit")
    with pytest.raises(ValueError, match=r"must have 1 columns, got shape \(3, 2\)"):
        student.predict(np.zeros((3, 2)))

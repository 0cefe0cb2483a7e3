import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.students import ConstantStudentWarning, fit_student
from evenhand.voting import Answers, Reason


def answers(labels: list[int], reasons: list[int] | None = None) -> Answers:
    given = np.array(labels)
    why = np.where(given >= 0, 0, int(Reason.NO_CONSENSUS)) if reasons is None else reasons
    order = np.flatnonzero(given >= 0)
    return Answers(
        labels=given,
        reasons=np.array(why),
        order=order,
        events=np.arange(len(order)),
        groups=None,
        n_checks=len(labels),
        n_draws=len(order),
        n_classes=2,
    )


def test_it_learns_from_answered_rows_only() -> None:
    X = np.array([[0.0], [1.0], [np.nan], [2.0]])  # a row without answer may not be touched
    student = fit_student(DecisionTreeClassifier(random_state=0), X, answers([0, 1, -1, 1])).model
    direct = DecisionTreeClassifier(random_state=0).fit(X[[0, 1, 3]], [0, 1, 1])
    grid = np.linspace(-1, 3, 50)[:, None]
    assert np.array_equal(student.predict(grid), direct.predict(grid))


def test_the_default_student_is_a_logistic_regression() -> None:
    X = np.arange(6.0)[:, None]
    student = fit_student(None, X, answers([0, 0, 0, 1, 1, 1])).model
    assert type(student) is LogisticRegression
    assert student.predict([[0.0], [5.0]]).tolist() == [0, 1]


def test_one_class_makes_a_constant_and_says_so() -> None:
    with pytest.warns(ConstantStudentWarning, match="All 2 answers are of one class"):
        student = fit_student(None, np.zeros((3, 1)), answers([1, -1, 1])).model
    assert type(student) is DummyClassifier
    assert student.predict(np.zeros((4, 1))).tolist() == [1, 1, 1, 1]


def test_no_answer_at_all_is_an_error_that_counts_the_reasons() -> None:
    with pytest.raises(ValueError, match="2 refused: the noisy vote fell below the threshold"):
        fit_student(None, np.zeros((2, 1)), answers([-1, -1]))

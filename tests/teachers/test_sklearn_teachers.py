"""Any scikit-learn classifier, with any number of workers, gives the same private votes."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import show_values
from evenhand.teachers import LogisticTeachers, MLPTeachers, SklearnTeachers, by_position
from evenhand.typing import FloatArray, IntArray


def table() -> tuple[FloatArray, IntArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = (X @ rng.normal(size=8) + rng.logistic(size=600) > 0).astype(np.int64)
    return X, y, rng.normal(size=(300, 8))


def votes(teachers: SklearnTeachers, n_teachers: int = 20) -> IntArray:
    X, y, queries = table()
    deal = by_position(len(X), n_teachers, 0)
    return teachers.fit(X, y, deal, 2, np.random.default_rng(0)).vote(queries)


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was given."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: FloatArray, y: IntArray) -> Recorder:
        self.X_, self.classes_ = X, np.unique(y)
        return self

    def predict(self, X: FloatArray) -> IntArray:
        return np.zeros(len(X), dtype=np.int64)


@pytest.mark.slow
def test_one_worker_and_two_give_identical_votes() -> None:
    forest = RandomForestClassifier(n_estimators=3, max_depth=3)
    assert np.array_equal(votes(SklearnTeachers(forest)), votes(SklearnTeachers(forest, n_jobs=2)))


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_the_joblib_backend_in_force_is_used_and_changes_nothing(backend: str) -> None:
    tree = DecisionTreeClassifier(max_features=2)
    before = votes(SklearnTeachers(tree))
    with joblib.parallel_config(backend=backend):
        assert np.array_equal(before, votes(SklearnTeachers(tree, n_jobs=2)))


def test_a_teacher_is_given_its_own_records_only() -> None:
    X, y, _ = table()
    deal = by_position(len(X), 20, 0)
    ensemble = SklearnTeachers(Recorder()).fit(X, y, deal, 2, np.random.default_rng(0))
    for t, member in enumerate(ensemble.members):
        assert np.array_equal(member.X_, X[deal.rows(t)])


def test_each_teacher_has_a_seed_of_its_own_everywhere_in_its_pipeline() -> None:
    X, y, _ = table()
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
    ensemble = SklearnTeachers(pipeline).fit(
        X, y, by_position(len(X), 20, 0), 2, np.random.default_rng(0)
    )
    seeds = [member[-1].random_state for member in ensemble.members]
    assert len(set(seeds)) == 20
    assert pipeline[-1].random_state == 0  # the user's own object is left alone


def test_batched_logistic_teachers_vote_as_scikit_learn_does() -> None:
    X, y, queries = table()
    deal = by_position(len(X), 20, 0)
    theirs = SklearnTeachers(LogisticRegression(C=5.0, tol=1e-10, max_iter=10_000))
    one = theirs.fit(X, y, deal, 2, np.random.default_rng(0)).vote(queries)
    two = LogisticTeachers(C=5.0).fit(X, y, deal, 2, np.random.default_rng(0)).vote(queries)
    assert np.array_equal(one, two)


def test_nested_settings_can_be_set() -> None:
    teachers = SklearnTeachers(DecisionTreeClassifier()).set_params(estimator__max_depth=3)
    assert clone(teachers).estimator.max_depth == 3
    assert LogisticTeachers().set_params(C=2.0).get_params() == {"C": 2.0, "tolerance": 1e-7}
    assert clone(MLPTeachers(hidden=(8,))).hidden == (8,)


@pytest.mark.parametrize("wrong", [DecisionTreeClassifier, StandardScaler(), "tree"])
def test_what_is_not_a_classifier_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="estimator must be a scikit-learn classifier, got"):
        votes(SklearnTeachers(wrong))


class FromTheWrongCodes(Recorder):
    def predict(self, X: FloatArray) -> IntArray:
        return np.full(len(X), 2)


def test_that_a_teacher_did_not_converge_is_said_to_the_curator_alone() -> None:
    # Its own records say whether it did, and no noise: a warning stands in logs.
    halted = SklearnTeachers(LogisticRegression(C=1e6, max_iter=2))
    votes(halted)  # warnings are errors here
    with show_values(), pytest.warns(ConvergenceWarning):
        votes(halted)


def test_votes_outside_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="class codes it was fitted on, 0 to 1, got 2 to 2"):
        votes(SklearnTeachers(FromTheWrongCodes()))


def test_votes_that_are_not_whole_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must predict class codes, got .* Is it a regressor"):
        votes(SklearnTeachers(LinearRegression()))

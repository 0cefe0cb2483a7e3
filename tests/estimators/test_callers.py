"""Pipelines and searches around a classifier: routed, refused where the claim breaks, warned of."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from evenhand import (
    AutoClassifier,
    Budget,
    DemographicParity,
    FairSharesClassifier,
    NonPrivateClassifier,
)
from evenhand.baselines import DPPostProcessingClassifier, RandomizedResponseClassifier
from evenhand.estimators import EachFitIsARelease
from evenhand.privacy import Ledger, SeededNoise

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(3, 5, size=(400, 3)), columns=["a", "b", "c"])
Y = (X["a"] + RNG.normal(size=400) > 3).to_numpy()
GROUPS = np.where(X["b"] > 3, "f", "m")
PUBLIC = slice(300, 400)
GIVEN: dict[str, Any] = {
    "X_public": X[PUBLIC],
    "sensitive_features_public": GROUPS[PUBLIC],
}


@pytest.fixture(autouse=True)
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def fair(seed: int | None = 1) -> FairSharesClassifier:
    model = FairSharesClassifier(
        Budget(epsilon=20.0, delta=1e-5),
        DemographicParity(margin=0.3),
        n_teachers=8,
        noise=None if seed is None else SeededNoise(seed),
        random_state=0,
    )
    requested: FairSharesClassifier = model.set_fit_request(
        X_public=True, sensitive_features_public=True, ledger=True
    )
    return requested


def test_a_pipeline_hands_on_public_rows_transformed_as_the_private_ones() -> None:
    frozen = FrozenEstimator(StandardScaler().set_output(transform="pandas").fit(X[PUBLIC]))
    pipe = Pipeline([("scale", frozen), ("model", fair())], transform_input=["X_public"])
    pipe.fit(X[:300], Y[:300], **GIVEN)
    by_hand = fair().fit(
        frozen.transform(X[:300]), Y[:300], **(GIVEN | {"X_public": frozen.transform(X[PUBLIC])})
    )
    assert np.array_equal(pipe[-1].answers_.shares, by_hand.answers_.shares)
    assert np.array_equal(pipe.predict(X), by_hand.predict(frozen.transform(X)))
    # Without transform_input the public rows would come as they are, on another scale.
    assert abs(pipe[-1].encoder_.scales_["a"].mean) < 1e-9


@pytest.mark.parametrize(
    "step",
    [StandardScaler(), ColumnTransformer([("all", "passthrough", ["a"])])],
    ids=["scaler", "columns"],
)
def test_a_step_that_was_fitted_on_private_rows_is_refused(step: Any) -> None:
    pipe = Pipeline([("first", step), ("model", fair())], transform_input=["X_public"])
    with pytest.raises(ValueError, match=r"step 'first' .* was fitted on the private rows.*Frozen"):
        pipe.fit(X[:300], Y[:300], **GIVEN)


def test_it_is_found_inside_of_other_pipelines() -> None:
    inner = Pipeline([("ok", Normalizer()), ("model", fair())], transform_input=["X_public"])
    outer = Pipeline([("scale", StandardScaler()), ("inner", inner)], transform_input=["X_public"])
    with pytest.raises(ValueError, match="step 'scale'"):
        outer.fit(X[:300], Y[:300], **GIVEN)


class OwnPipeline(Pipeline):
    """Fits its steps itself, as pipelines of other libraries do."""

    def fit(self, X: Any, y: Any = None, **given: Any) -> Any:
        first, model = (step for _, step in self.steps)
        model.fit(first.fit_transform(X), y, **given)
        return self


def test_a_pipeline_of_another_library_is_seen_too() -> None:
    pipe = OwnPipeline([("scale", StandardScaler()), ("model", fair())])
    with pytest.raises(ValueError, match="step 'scale'"):
        pipe.fit(X[:300].to_numpy(), Y[:300], **(GIVEN | {"X_public": X[PUBLIC].to_numpy()}))


def test_steps_that_learn_nothing_pass() -> None:
    pipe = Pipeline(
        [("none", "passthrough"), ("log", FunctionTransformer(np.cbrt)), ("model", fair())],
        transform_input=["X_public"],
    )
    assert pipe.fit(X[:300], Y[:300], **GIVEN)[-1].guarantee_.epsilon == 20.0


def test_where_no_claim_is_about_features_any_step_passes() -> None:
    free = NonPrivateClassifier(public_fraction=0.2, random_state=0)
    make_pipeline(StandardScaler(), free).fit(X, Y)
    people = RandomizedResponseClassifier(
        Budget(epsilon=5.0, delta=1e-5),
        DemographicParity(margin=0.5),
        noise=SeededNoise(0),
        random_state=0,
    ).set_fit_request(sensitive_features=True)
    make_pipeline(StandardScaler(), people).fit(X, Y, sensitive_features=GROUPS)


def test_a_search_over_nested_parameters_warns_that_each_fit_is_a_release() -> None:
    search = GridSearchCV(fair(), {"budget__epsilon": [5.0, 20.0], "fairness__margin": [0.3]}, cv=2)
    with pytest.warns(EachFitIsARelease, match="sklearn.model_selection fits FairSharesClassifier"):
        search.fit(X[:300], Y[:300], **GIVEN)
    assert set(search.cv_results_["param_budget__epsilon"]) == {5.0, 20.0}
    assert search.best_estimator_.budget.epsilon == search.best_params_["budget__epsilon"]


def test_other_ways_to_fit_often_warn_as_well_and_one_fit_does_not() -> None:
    with pytest.warns(EachFitIsARelease):
        cross_val_predict(fair(), X[:300], Y[:300], cv=2, params=GIVEN)
    rows, bagged = X.to_numpy(), BaggingClassifier(fair(), n_estimators=2)
    with pytest.warns(EachFitIsARelease, match=r"sklearn\.ensemble"):
        bagged.fit(rows[:300], Y[:300], **(GIVEN | {"X_public": rows[PUBLIC]}))
    free = NonPrivateClassifier(public_fraction=0.2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair().fit(X[:300], Y[:300], **GIVEN)
        cross_val_predict(free, X, Y, cv=2)


@pytest.mark.parametrize("kind", ["teachers", "auto"])
def test_a_calibration_takes_a_classifier_before_fit_for_the_probabilities_that_it_will_have(
    kind: str,
) -> None:
    model: Any = fair()
    if kind == "auto":
        auto = AutoClassifier(Budget(epsilon=20.0, delta=1e-5), random_state=0)
        model = auto.set_fit_request(X_public=True, sensitive_features_public=True)
    calibrated = CalibratedClassifierCV(model, cv=2)
    with pytest.warns(EachFitIsARelease, match=r"sklearn\.calibration .* learnt from what"):
        calibrated.fit(X[:300], Y[:300], **GIVEN)
    assert calibrated.predict_proba(X).shape == (400, 2)


def test_before_fit_a_student_without_probabilities_promises_none() -> None:
    model = fair().set_params(student=LinearSVC())
    assert not hasattr(model, "predict_proba")
    assert hasattr(model.set_params(student=LogisticRegression()), "predict_proba")
    with pytest.raises(NotFittedError):
        model.predict_proba(X)


def test_an_account_takes_every_fit_of_a_search_and_nothing_is_warned_of() -> None:
    account = Ledger(
        Budget(epsilon=100.0, delta=1e-5),
        noise=SeededNoise(1),
        unit="record",
        neighbors="replace one",
    )
    one = fair().fit(X[:300], Y[:300], **GIVEN).ledger_.spent
    params = GIVEN | {"ledger": account}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_predict(fair(seed=None), X[:300], Y[:300], cv=3, params=params)
    assert account.spent == pytest.approx(3 * one, rel=1e-6)


def test_a_search_hands_the_groups_to_the_score_of_a_model_that_needs_them() -> None:
    budget = Budget(epsilon=20.0, delta=1e-5)
    model = DPPostProcessingClassifier(
        budget, n_steps=30, noise=SeededNoise(0), random_state=0
    ).set_fit_request(sensitive_features=True, X_public=True)
    given = {"sensitive_features": GROUPS[:300], "X_public": X[PUBLIC]}

    def scores() -> Any:
        with pytest.warns(EachFitIsARelease):
            return cross_val_score(model, X[:300], Y[:300], params=given, cv=2, error_score="raise")

    with pytest.raises(ValueError, match="pass sensitive_features="):  # unasked it gets none
        scores()
    model.set_score_request(sensitive_features=True)
    assert (scores() > 0.5).all()

    fitted = model.fit(X[:300], Y[:300], **given)
    rules = [fitted, NonPrivateClassifier().fit(X, Y, X_public=X)]
    rules[1] = rules[1].with_group_thresholds(X, GROUPS, fairness=DemographicParity(margin=0.1))
    for rule in rules:
        found = rule.score(X, Y, Y + 1, sensitive_features=GROUPS)  # of class 1 each row is two
        right = [rule.predict(X, sensitive_features=GROUPS) == Y for _ in range(20)]
        assert found == pytest.approx(np.average(np.mean(right, axis=0), weights=Y + 1), abs=0.1)

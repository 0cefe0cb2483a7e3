"""What a notebook shows of an estimator: no warning, and no private row, fitted or not."""

import inspect
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity, EqualizedOdds, methods, students, teachers
from evenhand.datasets import PublicEncoder
from evenhand.privacy import SeededNoise

RNG = np.random.default_rng(0)
X = pd.DataFrame({"score": RNG.normal(size=300), "job": RNG.choice(["cook", "nurse"], 300)})
X.loc[7, "score"] = 4.0912873  # a value that the page must not show
Y = np.where(X["score"] + RNG.normal(size=300) > 0, "yes", "no")
GROUPS = np.where(RNG.random(300) < 0.5, "a", "b")
GIVEN: dict[str, Any] = {
    "sensitive_features": GROUPS[:200],
    "X_public": X[200:],
    "sensitive_features_public": GROUPS[200:],
}
CLASSIFIERS = sorted(set(methods.estimators()) - {"GroupThresholdClassifier"})
NOTIONS = {
    "DPPostProcessingClassifier": EqualizedOdds(margin=0.3, reference="pairwise"),
    "DPDecoupledClassifier": DemographicParity(margin=0.3, reference="pairwise"),
    "FairDPClassifier": EqualizedOdds(margin=0.3, reference="pairwise"),
    "DP2DPClassifier": DemographicParity(margin=0.3, reference="pairwise"),
    "DPBarycenterClassifier": DemographicParity(margin=0.3, reference="pairwise"),
    "DPFERMIClassifier": DemographicParity(margin=0.0),
    "SFPATEClassifier": EqualizedOdds(margin=0.3, reference="overall"),
}

pytestmark = pytest.mark.filterwarnings("error")


def fitted(name: str) -> Any:
    kind = methods.estimators()[name]
    known = inspect.signature(kind).parameters
    settings: dict[str, Any] = {
        "budget": Budget(epsilon=30.0, delta=1e-5),
        "fairness": NOTIONS.get(name, DemographicParity(margin=0.4)),
        "n_teachers": 6,
        "n_steps": 3,
        "noise": SeededNoise(0),
        "random_state": 0,
    }
    model = kind(**{k: v for k, v in settings.items() if k in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit on few rows; what is shown of it must not warn
        return model.fit(X[:200], Y[:200], **{k: v for k, v in GIVEN.items() if k in kind.TAKES})


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_is_shown_fitted_and_not(name: str) -> None:
    assert name in methods.estimators()[name]()._repr_html_()
    model = fitted(name)
    page = model._repr_html_()
    assert name in page
    assert "4.0912873" not in page
    assert name in repr(model)


def test_models_around_models_are_shown() -> None:
    model = fitted("PATEClassifier")
    cut = model.with_group_thresholds(X[200:], GROUPS[200:], fairness=DemographicParity(margin=0.2))
    assert "GroupThresholdClassifier" in cut._repr_html_()
    option = model.with_reject_option(0.2, groups=["a", "b"])
    assert "RejectOptionClassifier" in repr(option)


@pytest.mark.parametrize(
    "part",
    [
        PublicEncoder(),
        PublicEncoder().fit(X[200:]),
        *(
            kind()
            for package in (teachers, students)
            for _, kind in inspect.getmembers(package, inspect.isclass)
            if issubclass(kind, BaseEstimator)
            and all(p.default is not p.empty for p in inspect.signature(kind).parameters.values())
        ),
        teachers.SklearnTeachers(DummyClassifier()),
        teachers.ParityTeachers(DemographicParity(margin=0.1)),
        teachers.ResampledTeachers(teachers.Undersample(), teachers.LogisticTeachers()),
        teachers.BlackBoxFairTeachers(LogisticRegression()),
    ],
    ids=lambda part: type(part).__name__,
)
def test_every_part_that_is_an_estimator_is_shown(part: Any) -> None:
    assert type(part).__name__ in part._repr_html_()

"""Values of the same records in another order, by their pandas index, are refused everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand import BlindRuleClassifier, DemographicParity, DPSGDClassifier
from evenhand.displays import CoverageDisplay, GapDisplay
from evenhand.estimators.assessment import assess
from evenhand.estimators.reject_option import RejectOptionClassifier
from evenhand.fairness import fairness_report
from evenhand.fairness.score_parity import score_distance
from evenhand.privacy import Budget, SeededNoise

RNG = np.random.default_rng(0)
ORDER = RNG.permutation(400)
X = pd.DataFrame({"a": RNG.normal(size=400), "b": RNG.normal(size=400)}).iloc[ORDER]
Y = pd.Series(np.tile([0, 1], 200)).iloc[ORDER]
GROUPS = pd.Series(["F", "M", "M", "F"] * 100).iloc[ORDER]
NOTION = DemographicParity(margin=0.3)


@pytest.fixture(scope="module")
def model() -> Any:
    budget = Budget(epsilon=8.0, delta=1e-6)
    made = DPSGDClassifier(budget, noise=SeededNoise(0), random_state=0)
    return made.fit(X, Y, X_public=X.reset_index(drop=True) + 1e-3)


def cut(model: Any) -> Any:
    return model.with_group_thresholds(X, GROUPS, fairness=NOTION)


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "report": lambda model, z: fairness_report(Y, Y, z, classes=[0, 1]),
    "probabilities": lambda model, z: fairness_report(
        None, Y.tolist(), z, classes=[0, 1], probabilities=pd.DataFrame(np.eye(2)[Y], index=Y.index)
    ),
    "scores": lambda model, z: score_distance(Y.astype(float), z),
    "gaps": lambda model, z: GapDisplay.from_predictions(Y, Y, z),
    "coverage": lambda model, z: CoverageDisplay.from_predictions(Y, z),
    "assess": lambda model, z: assess(Y, {"sex": z}, epsilon=1.0),
    "assess a frame": lambda model, z: assess(Y, z.to_frame("sex"), epsilon=1.0),
    "set thresholds": lambda model, z: model.with_group_thresholds(X, z, fairness=NOTION),
    "decide by thresholds": lambda model, z: cut(model).predict(X, sensitive_features=z),
    "set a rule": lambda model, z: model.with_blind_rule(X, z, fairness=NOTION),
    "set a rule around another": lambda model, z: BlindRuleClassifier(
        LogisticRegression().fit(X, Y), NOTION
    ).fit(X, sensitive_features=z),
    "refuse": lambda model, z: RejectOptionClassifier(
        model, fairness=NOTION, groups=("F", "M")
    ).predict(X, sensitive_features=z),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_groups_in_another_order_are_refused_and_numbered_anew_they_go_by_position(
    case: str, model: Any
) -> None:
    with pytest.raises(ValueError, match=r"has the labels of that of \w+ in another order"):
        CASES[case](model, GROUPS.sort_index())
    CASES[case](model, GROUPS)
    CASES[case](model, GROUPS.sort_index().reset_index(drop=True))

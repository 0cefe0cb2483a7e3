"""A blind rule around any model: what it keeps, what it says, and what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import evenhand
from evenhand import (
    BlindRuleClassifier,
    Budget,
    DemographicParity,
    DPSGDClassifier,
    EqualizedOdds,
    PATEClassifier,
)
from evenhand.baselines.non_private import NonPrivateClassifier
from evenhand.fairness import FairnessKind
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import JointTally
from evenhand.privacy import SeededNoise
from evenhand.report import write_report
from evenhand.students.confident import MarginNotSupported
from evenhand.typing import IntArray

PARITY = DemographicParity(margin=0.05, reference="pairwise")


class Town:
    """Rows whose group shows in a number and in a text, and classes that depend on both."""

    def __init__(self, n: int, seed: int, n_groups: int = 2, n_classes: int = 2) -> None:
        rng = np.random.default_rng(seed)
        z = rng.integers(n_groups, size=n)
        number = rng.normal(size=n) + 0.8 * z
        other = rng.normal(size=n)
        text = np.where(rng.random(n) < 0.3 + 0.4 * (z > 0), "north", "south")
        score = number + other + 0.5 * (text == "north") + rng.normal(0, 0.7, n)
        cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
        self.X = pd.DataFrame({"number": number, "other": other, "place": text})
        self.y = np.array([f"class {k}" for k in range(n_classes)])[np.digitize(score, cuts)]
        self.groups = np.array([f"group {k}" for k in range(n_groups)])[z]

    def gap(self, notion: RateNotion, decided: Any) -> float:
        """The gap of decisions about these rows."""
        names, group = np.unique(self.y), np.unique(self.groups, return_inverse=True)[1]
        codes: list[IntArray] = [np.searchsorted(names, v) for v in (self.y, decided)]
        return notion.gap(JointTally.of(group, *codes, group.max() + 1, len(names)).counts)


def _pipeline() -> Any:
    encode = make_column_transformer((OneHotEncoder(), ["place"]), remainder="passthrough")
    return make_pipeline(encode, LogisticRegression())


@pytest.mark.parametrize("model", [_pipeline(), None])
@pytest.mark.parametrize(
    ("notion", "n_groups", "n_classes"),
    [
        (PARITY, 2, 2),
        (DemographicParity(margin=0.08), 3, 3),
        (EqualizedOdds(margin=0.05, reference="pairwise"), 2, 2),
    ],
)
def test_the_margin_holds_on_the_public_rows_and_nearly_on_others(
    model: Any, notion: RateNotion, n_groups: int, n_classes: int
) -> None:
    """On 6,000 rows a rate of a group and class is off by .03 (two standard errors) at most."""
    train, public, new = (
        Town(n, s, n_groups, n_classes) for n, s in ((2000, 0), (4000, 1), (6000, 2))
    )
    if model is None:
        model = NonPrivateClassifier()
        model.fit(train.X, train.y, sensitive_features=train.groups, X_public=public.X)
    else:
        model.fit(train.X, train.y)
    fair = BlindRuleClassifier(model, notion).fit(
        public.X, public.y, sensitive_features=public.groups
    )
    assert fair.student_margin_.met
    assert public.gap(notion, fair.predict(public.X)) <= notion.margin
    assert new.gap(notion, model.predict(new.X)) > notion.margin + 0.03
    assert new.gap(notion, fair.predict(new.X)) < notion.margin + 0.08
    assert (fair.predict(new.X) == new.y).mean() > 1.2 / n_classes
    assert fair.classes_[fair.predict_proba(new.X).argmax(axis=1)].tolist() == (
        fair.predict(new.X).tolist()
    )


def test_where_the_model_is_within_the_margin_nothing_is_moved() -> None:
    town = Town(2000, 0)
    model = _pipeline().fit(town.X, town.y)
    fair = BlindRuleClassifier(model, DemographicParity(margin=1.0))
    fair.fit(town.X, sensitive_features=town.groups)
    assert np.array_equal(fair.predict(town.X), model.predict(town.X))
    assert np.allclose(fair.predict_proba(town.X), model.predict_proba(town.X))
    assert fair.student_margin_.met
    assert fair.guarantee_.holds is False


def test_labels_recalibrate_a_model_that_is_far_too_sure() -> None:
    town, new = Town(3000, 0), Town(6000, 1)
    numbers = [np.repeat(t.X[["number", "other"]].to_numpy(), 6, axis=1) for t in (town, new)]
    sure = GaussianNB().fit(numbers[0], town.y)  # six copies of each column are counted as six
    losses = {}
    for labels in (None, town.y):
        fair = BlindRuleClassifier(sure, DemographicParity(margin=1.0))
        fair.fit(numbers[0], labels, sensitive_features=town.groups)
        p = fair.predict_proba(numbers[1])
        right = np.searchsorted(fair.classes_, new.y)
        losses[labels is not None] = -np.log(np.maximum(p[np.arange(len(p)), right], 1e-9)).mean()
    assert losses[True] < 0.7 * losses[False]


@pytest.mark.parametrize("groups", [None, HistGradientBoostingClassifier(max_iter=20)])
@pytest.mark.parametrize("randomised", [False, True])
def test_a_rule_may_be_randomised_and_the_groups_inferred_by_any_model(
    groups: Any, randomised: bool
) -> None:
    town = Town(3000, 0)
    forest = RandomForestClassifier(30, min_samples_leaf=20, random_state=0)
    forest.fit(town.X[["number", "other"]], town.y)
    fair = BlindRuleClassifier(forest, PARITY, groups=groups, randomised=randomised)
    new = Town(4000, 1)
    with warnings.catch_warnings():  # a model of groups that has seen them is far too sure of them
        warnings.simplefilter("ignore")
        fair.fit(new.X[["number", "other"]], sensitive_features=new.groups)
    last = Town(4000, 2)
    decided = fair.predict(last.X[["number", "other"]])
    assert last.gap(PARITY, decided) < 0.12
    again = fair.predict(last.X[["number", "other"]][::-1])
    assert np.array_equal(decided, again[::-1])  # the same answer to a row, every time


@pytest.fixture(scope="module")
def private() -> Any:
    town, public = Town(1500, 0), Town(1500, 1)
    model = PATEClassifier(Budget(epsilon=8, delta=1e-5), n_teachers=20, noise=SeededNoise(0))
    return model.fit(town.X, town.y, X_public=public.X)


def test_the_rule_is_in_the_claim_the_folder_and_the_report(private: Any, tmp_path: Path) -> None:
    public = Town(1500, 1)
    fair = private.with_blind_rule(public.X, public.groups, fairness=PARITY)
    assert fair.guarantee_.epsilon == private.guarantee_.epsilon
    assert fair.guarantee_.public[-1].startswith("the features and groups of the 1500 public rows")
    assert fair.ledger_ is private.ledger_
    assert fair.fairness_kind_ is FairnessKind.BLIND_RULE
    assert not fair.needs_group_at_prediction_
    assert fair.within_margin_
    said = fair.fitted_.to_dict()
    assert (said["fairness"], said["margin"], said["bound"]) == ("demographic-parity", 0.05, True)
    fair.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(public.X), fair.predict_proba(public.X))
    assert again.fairness_kind_ is FairnessKind.BLIND_RULE
    assert again.student_margin_ == fair.student_margin_
    write_report(again, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "in a rule on inferred groups" in page
    assert "that set the blind rule" in page
    plain = again.without_margin()
    assert np.array_equal(plain.predict(public.X), private.predict(public.X))
    assert plain.fairness_kind_ is FairnessKind.NONE


def test_a_rule_on_labels_is_saved_too(private: Any, tmp_path: Path) -> None:
    public = Town(1500, 1)
    fair = BlindRuleClassifier(private, EqualizedOdds(margin=0.1)).fit(
        public.X, public.y, sensitive_features=public.groups
    )
    assert "labels of the 1500" in fair.guarantee_.public[-1]
    fair.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    assert np.array_equal(again.predict(public.X), fair.predict(public.X))
    assert again.margin_source_ == "calibration rows"


@pytest.mark.slow
def test_with_a_confidence_it_says_what_the_rows_support(private: Any) -> None:
    public = Town(600, 3)
    notion = DemographicParity(margin=0.04, confidence=0.9)
    with pytest.warns(MarginNotSupported):
        fair = private.with_blind_rule(public.X, public.groups, fairness=notion)
    assert fair.margin_supported_ > 0.04
    assert fair.student_margin_.cross_fitted.level == 0.9
    many = Town(3000, 4)
    wide = DemographicParity(margin=0.15, confidence=0.9)
    held = private.with_blind_rule(many.X, many.groups, fairness=wide)
    assert held.margin_supported_ == 0.15
    assert Town(6000, 5).gap(wide, held.predict(Town(6000, 5).X)) <= 0.15


def test_a_margin_in_training_is_taken_off_before_the_rule() -> None:
    town, public = Town(1500, 0), Town(1500, 1)
    model = DPSGDClassifier(
        Budget(epsilon=8, delta=1e-5), n_steps=100, batch_size=256, noise=SeededNoise(0)
    ).fit(town.X, town.y, X_public=public.X)
    once = model.with_blind_rule(public.X, public.groups, fairness=PARITY)
    twice = once.with_blind_rule(public.X, public.groups, fairness=PARITY)
    assert np.array_equal(once.predict(public.X), twice.predict(public.X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitive_features": None}, "sensitive_features is missing"),
        ({"sensitive_features": np.array(["one"] * 300)}, "one group only"),
        ({"sensitive_features": np.array(["a", "b"])}, "need one row each"),
        ({"fairness": EqualizedOdds(margin=0.1)}, "classes of the public rows are missing"),
        ({"fairness": "parity"}, "fairness must be"),
        ({"groups": "logistic"}, "groups must be an unfitted classifier"),
        ({"randomised": "yes"}, "randomised must be true or false"),
        ({"y": np.array(["elsewhere"] * 300)}, "not among the classes"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(change: dict[str, Any], message: str) -> None:
    town = Town(300, 0)
    model = _pipeline().fit(town.X, town.y)
    settings = {"fairness": PARITY, "groups": None, "randomised": False}
    settings |= {name: value for name, value in change.items() if name in settings}
    fair = BlindRuleClassifier(model, **settings)
    given = {"y": None, "sensitive_features": town.groups}
    given |= {name: value for name, value in change.items() if name in given}
    with pytest.raises((ValueError, TypeError), match=message):
        fair.fit(town.X, **given)


def test_what_has_no_probabilities_or_no_claim_is_refused() -> None:
    town = Town(300, 0)
    numbers = town.X[["number", "other"]]
    svc = LinearSVC().fit(numbers, town.y)
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        BlindRuleClassifier(svc, PARITY).fit(numbers, sensitive_features=town.groups)
    fair = BlindRuleClassifier(LogisticRegression().fit(numbers, town.y), PARITY)
    fair.fit(numbers, sensitive_features=town.groups)
    with pytest.raises(ValueError, match="A model folder holds a claim"):
        fair.save("anywhere")

"""A fitted model tuned on labelled public rows: what it reads, what it says, what it refuses."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    PATEClassifier,
    load,
)
from evenhand.baselines import InterventionClassifier
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.tally import Tally
from evenhand.learners.nets.architectures import Convolutional, Dense
from evenhand.privacy import SeededNoise
from evenhand.students import MarginNotMet, ModuleStudent
from evenhand.teachers.stacked import NetworkTeachers

from .conftest import Parts

MARGIN = DemographicParity(margin=0.05)


@pytest.fixture
def model(parts: Parts, settings: dict[str, Any]) -> PATEClassifier:
    own = {k: v for k, v in settings.items() if k != "fairness"}
    fitted = PATEClassifier(answers="labels", **own)
    return fitted.fit(parts.X, parts.y, X_public=parts.X_public)


@pytest.fixture
def labelled(parts: Parts) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    signal = parts.X_public["income"].fillna(0)
    y = pd.Series(np.where(signal > 0.3, "yes", "no"), index=parts.X_public.index)
    return parts.X_public, y, parts.groups_public


def gap(model: Any, X: pd.DataFrame, groups: pd.Series) -> float:
    said = (model.predict(X) == "yes").astype(int)
    return MARGIN.gap(Tally.of(encode_groups(groups).codes, said, 2, 2).counts)


def test_the_tuned_model_is_within_the_margin_on_the_labelled_rows(
    model: Any, labelled: Any
) -> None:
    X, _, groups = labelled
    tuned = model.fair_tuned(*labelled, fairness=MARGIN)
    assert gap(model, X, groups) > 0.1
    assert gap(tuned, X, groups) == pytest.approx(tuned.public_gap_)
    assert tuned.public_gap_ <= 0.05
    assert tuned.within_margin_
    assert tuned.bound_
    assert tuned.tuning_weight_ > 0
    assert tuned.fairness_kind_ is FairnessKind.WEIGHTS


def test_the_claim_lists_the_rows_and_their_labels_as_public_and_costs_nothing(
    model: Any, labelled: Any
) -> None:
    tuned = model.fair_tuned(*labelled, fairness=MARGIN)
    added = set(tuned.guarantee_.public) - set(model.guarantee_.public)
    assert added == {
        "the features, groups and labels of the 300 public rows that tuned the student"
    }
    assert tuned.guarantee_.epsilon == model.guarantee_.epsilon
    assert tuned.ledger_.spent == model.ledger_.spent


def test_the_untuned_model_stays_as_it_was(model: Any, labelled: Any) -> None:
    before, said = model.student_.coef_.copy(), str(model.guarantee_)
    model.fair_tuned(*labelled, fairness=MARGIN)
    assert np.array_equal(model.student_.coef_, before)
    assert str(model.guarantee_) == said
    assert not model.bound_


def test_it_reads_the_labels(model: Any, labelled: Any) -> None:
    X, y, groups = labelled
    other = y.map({"yes": "no", "no": "yes"})
    one = model.fair_tuned(X, y, groups, fairness=MARGIN)
    two = model.fair_tuned(X, other, groups, fairness=MARGIN)
    assert not np.array_equal(one.student_.coef_, two.student_.coef_)


def test_a_tuned_model_is_saved_with_its_claim(model: Any, labelled: Any, tmp_path: Any) -> None:
    tuned = model.fair_tuned(*labelled, fairness=MARGIN)
    again = load(tuned.save(tmp_path / "model"))
    assert np.array_equal(again.predict(labelled[0]), tuned.predict(labelled[0]))
    assert again.guarantee_ == tuned.guarantee_
    assert again.public_gap_ == tuned.public_gap_


def test_a_weight_that_is_not_enough_is_said(model: Any, labelled: Any) -> None:
    with pytest.warns(MarginNotMet, match="This weight brings|it is 0"):
        tuned = model.fair_tuned(*labelled, fairness=MARGIN, weight=0.0)
    assert not tuned.within_margin_
    assert tuned.tuning_weight_ == 0.0


def test_rows_that_cannot_tune_are_refused(model: Any, labelled: Any) -> None:
    X, y, groups = labelled
    with pytest.raises(ValueError, match="sensitive_features_public is missing"):
        model.fair_tuned(X, y, None, fairness=MARGIN)
    with pytest.raises(ValueError, match="missing values, in row 4 "):
        model.fair_tuned(X, y, groups.where(np.arange(300) != 3), fairness=MARGIN)
    with pytest.raises(ValueError, match=r"no label in row 8 .* and others"):
        model.fair_tuned(X, y.where(~np.isin(np.arange(300), [7, 9])), groups, fairness=MARGIN)
    with pytest.raises(ValueError, match=r"y_public holds .not shown., first in row \d+ "):
        model.fair_tuned(X, y.replace("yes", "yess"), groups, fairness=MARGIN)
    with pytest.raises(ValueError, match="X_public has 300, y_public has 299"):
        model.fair_tuned(X, y[1:], groups, fairness=MARGIN)
    with pytest.raises(ValueError, match=r"fairness must be a DemographicParity, got 0\.05"):
        model.fair_tuned(X, y, groups, fairness=0.05)


def test_students_that_are_not_linear_are_refused(
    parts: Parts, settings: dict[str, Any], labelled: Any
) -> None:
    own = {k: v for k, v in settings.items() if k != "fairness"}
    tree = PATEClassifier(answers="labels", student=DecisionTreeClassifier(max_depth=2), **own)
    tree.fit(parts.X, parts.y, X_public=parts.X_public)
    with pytest.raises(ValueError, match=r"linear student of all 2 classes, .* and DecisionTree"):
        tree.fair_tuned(*labelled, fairness=MARGIN)


def test_thresholds_are_set_after_tuning_and_not_before(
    parts: Parts, settings: dict[str, Any], model: Any, labelled: Any
) -> None:
    cut = parts.fit(InterventionClassifier(at="S_post", **settings))
    with pytest.raises(ValueError, match="Tune a model without them, then call with_group"):
        cut.fair_tuned(*labelled, fairness=MARGIN)
    X, _, groups = labelled
    tuned = model.fair_tuned(*labelled, fairness=MARGIN)
    both = tuned.with_group_thresholds(X, groups, fairness=MARGIN)
    assert "that tuned the student" in str(both.guarantee_)


def test_private_classifiers_of_another_kind_are_tuned_too(parts: Parts, labelled: Any) -> None:
    model = DPSGDClassifier(
        Budget(epsilon=8.0, delta=1e-5), n_steps=60, noise=SeededNoise(0), random_state=0
    )
    model.fit(parts.X, parts.y, X_public=parts.X_public)
    tuned = model.fair_tuned(*labelled, fairness=MARGIN)
    assert gap(tuned, labelled[0], labelled[2]) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "network",
    [
        {"hidden": (6, 5)},
        pytest.param({"architecture": Dense(hidden=(6,))}, marks=pytest.mark.torch),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_network_is_tuned_by_its_last_layer(
    parts: Parts, labelled: Any, network: dict[str, Any], n_classes: int, tmp_path: Any
) -> None:
    y = parts.y if n_classes == 2 else np.where(np.arange(600) % 3 == 0, "maybe", parts.y)
    model = DPSGDClassifier(
        Budget(epsilon=8.0, delta=1e-5), n_steps=80, noise=SeededNoise(0), random_state=0, **network
    ).fit(parts.X, y, X_public=parts.X_public)
    X, _, groups = labelled
    before = model.predict_proba(X)
    tuned = model.fair_tuned(*labelled, fairness=MARGIN)
    codes = encode_groups(groups).codes
    decided = np.searchsorted(model.classes_, tuned.predict(X))
    found = MARGIN.gap(Tally.of(codes, decided, 2, n_classes).counts)
    assert found == pytest.approx(tuned.public_gap_)
    assert found <= 0.05
    assert len(np.unique(decided)) > 1
    # What lies below is the network as it was, and the model that was tuned is as it was.
    np.testing.assert_array_equal(model.predict_proba(X), before)
    if "hidden" in network:
        for ours, given in zip(tuned.student_.coefs_[:-1], model.student_.coefs_, strict=False):
            assert ours is given
    else:
        assert tuned.student_.module_ is model.student_.module_
    again = load(tuned.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(X), tuned.predict_proba(X))
    assert again.guarantee_ == tuned.guarantee_


@pytest.mark.torch
def test_a_network_of_pictures_is_tuned_and_saved(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 900)
    light = rng.integers(60, 170, 900) + 50 * side  # brighter on one side, and bright is 1
    y = (light + rng.normal(0.0, 10.0, 900) > 140).astype(np.int64)
    X = rng.integers(0, 60, (900, 1, 8, 8), dtype=np.uint8)
    for i in range(900):
        X[i, 0, 2:6, 4 * side[i] : 4 * side[i] + 4] = light[i]
    network = Convolutional(widths=(4, 8))
    model = PATEClassifier(
        Budget(epsilon=8.0, delta=1e-5),
        answers="labels",
        n_teachers=20,
        teachers=NetworkTeachers(network, epochs=10, batch_size=16, learning_rate=0.01),
        student=ModuleStudent(network, batch_size=32, epochs=10),
        noise=SeededNoise(0),
        random_state=0,
    )
    model.fit(X[:600], y[:600], X_public=X[600:])

    def apart(one: Any) -> float:
        said = one.predict(X[600:])
        return float(abs(said[side[600:] == 0].mean() - said[side[600:] == 1].mean()))

    tuned = model.fair_tuned(X[600:], y[600:], side[600:], fairness=DemographicParity(margin=0.1))
    assert apart(model) > 0.2
    assert apart(tuned) <= 0.1
    again = load(tuned.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(X[600:]), tuned.predict_proba(X[600:]))

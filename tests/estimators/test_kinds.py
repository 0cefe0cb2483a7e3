"""Which kind of fairness: each fitted model says it, and keeps saying it after a restart."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    RejectOptionClassifier,
)
from evenhand._folder import seal
from evenhand.estimators import ModelDamaged
from evenhand.estimators.group_thresholds import GroupThresholdClassifier
from evenhand.fairness import FairnessKind
from evenhand.privacy import SeededNoise

NOTION = DemographicParity(margin=0.05)


@pytest.fixture
def steps(parts: Any) -> DPSGDClassifier:
    model = DPSGDClassifier(
        Budget(epsilon=50.0, delta=1e-5), n_steps=60, batch_size=200, noise=SeededNoise(1)
    )
    return model.fit(parts.X, parts.y, X_public=parts.X_public)


@pytest.fixture
def cut(parts: Any, steps: Any) -> GroupThresholdClassifier:
    return steps.with_group_thresholds(parts.X_public, parts.groups_public, fairness=NOTION)


def test_the_kinds_differ_in_whether_they_need_the_group() -> None:
    needing = {kind for kind in FairnessKind if kind.needs_group}
    assert needing == {
        FairnessKind.THRESHOLDS,
        FairnessKind.DERIVED,
        FairnessKind.REJECT_OPTION,
        FairnessKind.DRAWN_ROWS_BY_GROUP,
    }
    for kind in FairnessKind:
        assert ("no group needed" in kind) is not kind.needs_group
        assert kind.words


def test_every_method_says_its_kind(parts: Any, settings: dict[str, Any], steps: Any) -> None:
    own = LogisticRegression()  # a student that knows of no margin
    pate = {key: value for key, value in settings.items() if key != "fairness"}
    held = DPSGDClassifier(steps.budget, NOTION, n_steps=20, batch_size=200)
    held.fit(parts.X, parts.y, sensitive_features=parts.groups, X_public=parts.X_public)
    kinds = {
        parts.fit(FairPATEClassifier(**settings)): FairnessKind.WEIGHTS,
        parts.fit(FairPATEClassifier(**settings, student=own)): FairnessKind.ANSWERS,
        PATEClassifier(**pate).fit(parts.X, parts.y, X_public=parts.X_public): FairnessKind.NONE,
        steps: FairnessKind.NONE,
        held: FairnessKind.WEIGHTS,
    }
    for model, kind in kinds.items():
        assert model.fairness_kind_ is kind
        assert not model.needs_group_at_prediction_
        option = model.with_reject_option(0.1, groups=["a", "b"])
        assert option.fairness_kind_ is FairnessKind.REJECT_OPTION
        assert option.needs_group_at_prediction_


def test_the_claim_file_says_the_kind_and_loading_restores_it(
    parts: Any, settings: dict[str, Any], cut: Any, tmp_path: Any
) -> None:
    own = parts.fit(FairPATEClassifier(**settings, student=LogisticRegression()))
    for name, model in (("own", own), ("cut", cut)):
        path = model.save(tmp_path / name)
        said = json.loads((path / "claim.json").read_text())["fairness"]
        assert said == {
            "kind": str(model.fairness_kind_),
            "needs_group_at_prediction": model.fairness_kind_.needs_group,
            "held": None,
        }
        assert evenhand.load(path).fairness_kind_ is model.fairness_kind_
    assert own.fairness_kind_ is FairnessKind.ANSWERS
    assert cut.fairness_kind_ is FairnessKind.THRESHOLDS
    assert cut.needs_group_at_prediction_


def test_thresholds_are_saved_with_the_model_that_they_cut(
    parts: Any, steps: Any, cut: Any, tmp_path: Any
) -> None:
    path = cut.save(tmp_path / "model")
    again = evenhand.load(path)
    assert type(again) is GroupThresholdClassifier
    assert again.thresholds_ == cut.thresholds_
    assert again.groups_ == cut.groups_ == ("a", "b")
    assert again.fairness_ == again.fairness == NOTION
    assert again.guarantee_ == cut.guarantee_
    assert again.model_.guarantee_ == steps.guarantee_
    assert again.ledger_.to_dict() == json.loads(json.dumps(steps.ledger_.to_dict()))
    assert again.feature_names_in_.tolist() == ["income", "job"]
    given = {"sensitive_features": parts.groups, "random_state": 0}
    assert np.array_equal(again.predict(parts.X, **given), cut.predict(parts.X, **given))
    twice = evenhand.load(again.save(tmp_path / "again"))
    assert np.array_equal(twice.predict(parts.X, **given), cut.predict(parts.X, **given))
    # One folder holds both, and the model inside keeps a claim of its own.
    assert all(file.is_file() for file in path.iterdir())
    assert np.array_equal(again.model_.predict(parts.X), steps.predict(parts.X))
    assert again.model_.fairness_kind_ == steps.fairness_kind_
    assert "group" not in str(again.model_.guarantee_)


def test_every_file_of_both_is_guarded(cut: Any, tmp_path: Any) -> None:
    path = cut.save(tmp_path / "model")
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    assert len(files) == 4
    for file in files:
        original = file.read_bytes()
        file.write_bytes(original.replace(original[-9:-8], b"#", 1))
        with pytest.raises(ModelDamaged):
            evenhand.load(path)
        file.write_bytes(original)
    evenhand.load(path)


def test_thresholds_of_other_groups_than_they_name_are_refused(cut: Any, tmp_path: Any) -> None:
    path = cut.save(tmp_path / "model")
    head = json.loads((path / "model.json").read_text())
    head["thresholded"]["groups"].append("c")
    (path / "model.json").write_text(json.dumps(head))
    seal(path, "model")
    with pytest.raises(ModelDamaged, match="not one for each group"):
        evenhand.load(path)
    head["thresholded"]["groups"].pop()
    head["thresholded"]["thresholds"]["thresholds"][1] = "0.5"
    (path / "model.json").write_text(json.dumps(head))
    seal(path, "model")
    with pytest.raises(ModelDamaged, match="is damaged"):
        evenhand.load(path)


def test_a_reject_option_goes_around_the_model_and_not_around_its_thresholds(cut: Any) -> None:
    with pytest.raises(ValueError, match=r"needs the group of each row.*model\.model_"):
        RejectOptionClassifier(cut, 0.1)


def test_thresholds_that_are_not_set_are_not_saved(steps: Any, tmp_path: Any) -> None:
    with pytest.raises(ValueError, match=r"nothing to save.*with_group_thresholds"):
        GroupThresholdClassifier(steps, NOTION).save(tmp_path / "model")

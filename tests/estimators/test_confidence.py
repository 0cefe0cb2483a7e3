"""A margin with a confidence, through estimators, files, reports and the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    EqualizedOdds,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.baselines.fermi import DPFERMIClassifier
from evenhand.estimators.calibration import CellsNotRead
from evenhand.estimators.group_thresholds import BY_PROBABILITIES
from evenhand.estimators.sf_pate.classifier import SFPATEClassifier
from evenhand.fairness import FairnessKind
from evenhand.privacy import SeededNoise
from evenhand.report import write_report
from evenhand.students.confident import MarginNotSupported

from .conftest import Parts

PARITY = DemographicParity(margin=0.02, confidence=0.9)


def test_what_new_rows_allow_is_in_the_model_its_folder_and_its_report(
    parts: Parts, settings: dict[str, Any], tmp_path: Path
) -> None:
    shares = settings | {"mechanism": None, "fairness": PARITY}
    with pytest.warns(MarginNotSupported) as said:
        model = parts.fit(FairSharesClassifier(**shares))
    assert "may not be able to say with 90% confidence" in str(said[0].message)
    margin = model.student_margin_
    assert margin.cross_fitted.level == 0.9
    assert model.margin_supported_ == margin.cross_fitted.high > 0.02
    assert model.fitted_.to_dict()["margin_supported"] == model.margin_supported_
    words = f"at most {model.margin_supported_:.4f}, the least that they support"
    assert any(words in caution for caution in model.fitted_.cautions)
    model.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    assert again.margin_supported_ == model.margin_supported_
    assert again.fairness == PARITY
    assert np.array_equal(again.predict_proba(parts.X), model.predict_proba(parts.X))
    plain = again.without_margin()
    assert np.isnan(plain.margin_supported_)
    write_report(model, tmp_path / "report.html")
    limit = f"at most {model.margin_supported_:.4f} with 90% confidence"
    assert limit in " ".join((tmp_path / "report.html").read_text().split())


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_labels_past_the_gate_may_have_a_confidence_too(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**(settings | {"fairness": PARITY})))
    assert model.margin_supported_ >= 0.02
    assert model.gate_.notion.margin == 0.02


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"student": DecisionTreeClassifier()}, "chooses among linear students, and student=Dec"),
        ({"student_margin": False}, "student_margin=False leaves it to the gate"),
        ({"fairness": EqualizedOdds(margin=0.1, confidence=0.9)}, "needs true classes"),
    ],
)
def test_what_cannot_have_a_confidence_is_refused_before_anything_is_spent(
    parts: Parts, settings: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    model = FairPATEClassifier(**(settings | {"fairness": PARITY} | change))
    with pytest.raises(ValueError, match=message):
        parts.fit(model)
    assert not hasattr(model, "ledger_")


def test_a_method_without_one_and_a_confidence_out_of_range_are_refused(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = DPFERMIClassifier(budget=settings["budget"], fairness=PARITY)
    with pytest.raises(ValueError, match=r"DPFERMIClassifier chooses no .*Leave confidence"):
        model.fit(parts.X, parts.y, sensitive_features=parts.groups)
    with pytest.raises(ValueError, match="confidence"):
        DemographicParity(margin=0.1, confidence=1.0)


def test_thresholds_may_have_a_confidence_too(
    parts: Parts, settings: dict[str, Any], tmp_path: Path
) -> None:
    plain = {name: value for name, value in settings.items() if name != "fairness"}
    model = PATEClassifier(**plain).fit(parts.X, parts.y, X_public=parts.X_public)
    public = (parts.X_public, parts.groups_public)
    with pytest.warns(MarginNotSupported) as said:
        cut = model.with_group_thresholds(*public, fairness=PARITY)
    assert "may not be able to say with 90% confidence" in str(said[0].message)
    assert cut.margin_supported_ == cut.cross_fitted_.high > 0.02
    assert cut.cross_fitted_.level == 0.9
    assert cut.fitted_.to_dict()["margin_supported"] == cut.margin_supported_
    assert any("so many rows cannot say" in caution for caution in cut.fitted_.cautions)
    again = evenhand.load(cut.save(tmp_path / "model"))
    assert again.margin_supported_ == cut.margin_supported_
    write_report(again, tmp_path / "report.html")
    assert f"at most {cut.margin_supported_:.4f}" in (tmp_path / "report.html").read_text()
    wide = model.with_group_thresholds(
        *public, fairness=DemographicParity(margin=0.5, confidence=0.9)
    )
    assert wide.margin_supported_ == 0.5
    assert np.isnan(
        model.with_group_thresholds(
            *public, fairness=DemographicParity(margin=0.1)
        ).margin_supported_
    )


STEPS: dict[str, Any] = {"n_steps": 60, "batch_size": 200, "noise": SeededNoise(1)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_of_dp_sgd_it_is_the_rule_that_public_rows_choose_around_a_training_without_groups(
    parts: Parts, tmp_path: Path
) -> None:
    budget = Budget(epsilon=50.0, delta=1e-5)
    free = steps(parts)
    by_hand = free.with_blind_rule(parts.X_public, parts.groups_public, fairness=PARITY)
    model = parts.fit(DPSGDClassifier(budget, fairness=PARITY, **STEPS))
    assert np.array_equal(model.predict(parts.X), by_hand.predict(parts.X))
    assert model.margin_supported_ == by_hand.margin_supported_ > 0.02
    assert model.fairness_kind_ is FairnessKind.BLIND_RULE
    assert model.guarantee_ == by_hand.guarantee_
    assert "groups of the 300 public rows that set the blind rule" in model.guarantee_.public[-1]
    assert np.array_equal(model.without_margin().predict(parts.X), free.predict(parts.X))
    again = evenhand.load(model.save(tmp_path / "model"))
    assert again.margin_supported_ == model.margin_supported_
    assert np.array_equal(again.predict(parts.X), model.predict(parts.X))
    wide = DemographicParity(margin=0.5, confidence=0.9)
    assert parts.fit(model.set_params(fairness=wide)).margin_supported_ == 0.5
    parts.fit(model.set_params(fairness=None))
    assert np.isnan(model.margin_supported_)
    with pytest.raises(ValueError, match="no constraint"):  # no rule of a fit before is left
        model.without_margin()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
@pytest.mark.filterwarnings("ignore::evenhand.students.constrained.MarginNotMet")
def test_of_dp_sgd_rows_that_are_set_aside_have_their_groups_in_the_table(parts: Parts) -> None:
    # The rule is one that the gap on those very rows was measured for: by hand, on them alone.
    model = DPSGDClassifier(
        Budget(epsilon=50.0, delta=1e-5),
        fairness=PARITY,
        public_fraction=0.4,
        random_state=1,
        **STEPS,
    ).fit(parts.X, parts.y, sensitive_features=parts.groups)
    aside = np.random.default_rng(1).random(len(parts.X)) < 0.4
    X, groups = parts.X[aside], np.asarray(parts.groups)[aside]
    by_hand = model.without_margin().with_blind_rule(X, groups, fairness=PARITY)
    assert model.margin_supported_ == by_hand.margin_supported_
    said = f"the groups of the {aside.sum()} rows that were set aside as public"
    assert said in model.guarantee_.not_covered


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_of_dp_sgd_and_sf_pate_it_is_about_any_rates_by_labelled_rows(parts: Parts) -> None:
    half = slice(None, None, 2)
    rest = slice(1, None, 2)
    labelled = {
        "X_calibration": parts.X[half],
        "y_calibration": parts.y[half],
        "sensitive_features_calibration": parts.groups[half],
    }
    budget, notion = Budget(epsilon=50.0, delta=1e-5), EqualizedOdds(margin=0.3, confidence=0.9)
    model = DPSGDClassifier(budget, fairness=notion, **STEPS).fit(
        parts.X[rest], parts.y[rest], X_public=parts.X_public, **labelled
    )
    assert model.margin_source_ == "calibration rows"
    assert model.margin_supported_ >= 0.3
    overall = DemographicParity(margin=0.1, reference="overall", confidence=0.9)
    people = SFPATEClassifier(
        budget, n_teachers=20, fairness=overall, noise=SeededNoise(0), random_state=0
    ).fit(parts.X[rest], parts.y[rest], sensitive_features=parts.groups[rest], **labelled)
    found = people.student_margin_.cross_fitted
    assert found.level == 0.9
    assert people.margin_supported_ == max(0.1, found.high)
    assert "groups and labels of the 300 public rows that set" in people.guarantee_.public[-1]
    # The student that the noisy groups held stands beside it.
    free = SFPATEClassifier(
        budget,
        n_teachers=20,
        fairness=DemographicParity(margin=0.1, reference="overall"),
        noise=SeededNoise(0),
        random_state=0,
    ).fit(parts.X[rest], parts.y[rest], sensitive_features=parts.groups[rest])
    under = people.without_margin()
    assert np.array_equal(under.predict(parts.X), free.predict(parts.X))
    with pytest.raises(ValueError, match="Calibration rows choose among rules for a margin with a"):
        free.fit(parts.X, parts.y, sensitive_features=parts.groups, **labelled)


def test_of_dp_sgd_and_sf_pate_rows_without_groups_are_refused_before_anything_is_spent(
    parts: Parts, settings: dict[str, Any]
) -> None:
    budget, odds = settings["budget"], EqualizedOdds(margin=0.1, confidence=0.9)
    overall = DemographicParity(margin=0.1, reference="overall", confidence=0.9)
    given = {"X_public": parts.X_public}
    strange = {
        "X_calibration": parts.X_public,
        "y_calibration": np.array(["yes", 1] * (len(parts.X_public) // 2), dtype=object),
        "sensitive_features_calibration": parts.groups_public,
    }
    for model, more, message in (
        (DPSGDClassifier(budget, fairness=PARITY), given, "Pass X_public= and sensitive_features_"),
        (DPSGDClassifier(budget, fairness=odds), given, "Pass X_calibration, y_calibration and"),
        (DPSGDClassifier(budget, fairness=odds), given | strange, "y_calibration holds .not"),
        (DPSGDClassifier(budget, fairness=PARITY, penalty=1.0), given, "Leave one out"),
        (DPSGDClassifier(budget, fairness=PARITY, public_fraction=0.3), {}, "X_public= and sensi"),
        (
            SFPATEClassifier(budget, n_teachers=20, fairness=overall),
            {"sensitive_features": parts.groups},
            "every group of X is private. Pass X_calibration",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(parts.X, parts.y, **more)
        assert not hasattr(model, "ledger_")


def steps(parts: Parts) -> DPSGDClassifier:
    model = DPSGDClassifier(Budget(epsilon=50.0, delta=1e-5), **STEPS)
    return model.fit(parts.X, parts.y, X_public=parts.X_public)


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_thresholds_have_a_confidence_about_true_classes_by_labels(parts: Any) -> None:
    model = steps(parts)
    notion = EqualizedOdds(margin=0.3, confidence=0.9)
    public = (parts.X, parts.groups)  # rows with labels
    cut = model.with_group_thresholds(*public, fairness=notion, y_public=parts.y)
    assert cut.margin_source_ == "calibration rows"
    found = cut.cross_fitted_
    assert found.level == 0.9
    assert cut.margin_supported_ == max(0.3, found.high)
    assert f"groups and labels of the {len(parts.X)} public rows" in cut.guarantee_.public[-1]
    # Among these rows, by the definition, the expected rates are within the margin.
    z = (np.asarray(parts.groups) == "b").astype(int)
    p, y = model.predict_proba(parts.X)[:, 1], np.asarray(parts.y) == model.classes_[1]
    one = cut.thresholds_.probabilities(p, z)
    for truth in (False, True):
        rates = [one[(z == g) & (y == truth)].mean() for g in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 0.3 + 1e-8
    with pytest.raises(ValueError, match="needs true classes, and y_public is missing"):
        model.with_group_thresholds(*public, fairness=notion)
    parity = DemographicParity(margin=0.1)
    with pytest.raises(ValueError, match="y_public are true classes, and DemographicParity"):
        model.with_group_thresholds(*public, fairness=parity, y_public=parts.y)
    one_class = y | (z == 1)
    with pytest.raises(ValueError, match="less than one record of 'b' among class"):
        model.with_group_thresholds(
            *public,
            fairness=EqualizedOdds(margin=0.3),
            y_public=model.classes_[one_class.astype(int)],
        )


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_a_group_with_one_public_row_has_thresholds_and_what_is_not_read_of_it_is_said(
    parts: Any,
) -> None:
    model, rare = steps(parts), ["c", *parts.groups_public[1:]]
    sure = DemographicParity(margin=0.3, confidence=0.9)
    cut = model.with_group_thresholds(parts.X_public, rare, fairness=sure)
    assert cut.groups_ == ("a", "b", "c")
    with pytest.warns(CellsNotRead, match="less than one record of 'c' among class"):
        cut = model.with_group_thresholds(
            parts.X_public, rare, fairness=EqualizedOdds(margin=0.3), tightening=1.0
        )
    assert cut.groups_ == ("a", "b", "c")


def test_thresholds_about_true_classes_are_saved_with_where_their_margin_is_read(
    parts: Any, tmp_path: Any
) -> None:
    model = steps(parts)
    cut = model.with_group_thresholds(
        parts.X_public, parts.groups_public, fairness=EqualizedOdds(margin=0.02)
    )
    assert BY_PROBABILITIES in cut.guarantee_.warnings
    again = evenhand.load(cut.save(tmp_path / "model"))
    assert again.margin_source_ == cut.margin_source_ == "own probabilities"
    assert again.thresholds_ == cut.thresholds_
    assert again.fairness_ == EqualizedOdds(margin=0.02)
    assert BY_PROBABILITIES in again.guarantee_.warnings

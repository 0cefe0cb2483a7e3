"""Margins about true classes through the estimator: calibration rows, released answers, claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import FALSE_ALARM
from sklearn.tree import DecisionTreeClassifier
from town import Town, classifier

import evenhand
from evenhand import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FairPATEClassifier,
    FairSharesClassifier,
    FalsePositiveParity,
)
from evenhand.estimators.calibration import CellsNotRead
from evenhand.fairness import gap_of
from evenhand.fairness.tally import JointTally
from evenhand.report import ModelReport, summary_lines, write_report

LABELLED = (EqualizedOdds, ErrorParity, FalsePositiveParity)


@pytest.fixture(scope="module")
def town() -> Town:
    return Town()


def ungated(**settings: Any) -> FairPATEClassifier:
    """Return FairPATE with the margin on its student alone."""
    return FairPATEClassifier(answer_margin=False, **settings)


@pytest.mark.parametrize("method", [ungated, FairSharesClassifier])
@pytest.mark.parametrize("kind", LABELLED)
def test_the_students_decisions_on_the_calibration_rows_are_within_the_margin(
    town: Town, kind: type, method: Any
) -> None:
    notion = kind(margin=0.04)
    model = town.fit(classifier(notion, kind=method), **town.labelled)
    free = town.fit(classifier(kind(margin=1.0), kind=method), **town.labelled)
    on_calibration = town.joint(model, town.calibration)
    assert notion.gap(town.joint(free, town.calibration).counts) > 0.08  # it had something to do
    assert model.bound_
    assert model.within_margin_
    assert model.margin_source_ == "calibration rows"
    assert notion.holds(on_calibration.counts)
    assert model.public_gap_ == notion.gap(on_calibration.counts)
    assert model.calibration_gap_ == gap_of(notion, on_calibration)
    # New rows show another gap, and no more is promised: the intervals of both meet. Where each
    # covers the population's gap but with FALSE_ALARM / 2, they miss each other so seldom.
    sure = 1.0 - FALSE_ALARM / 2
    new = gap_of(notion, town.joint(model, town.new), level=sure)
    assert new.low <= gap_of(notion, on_calibration, level=sure).high


@pytest.mark.parametrize("method", [ungated, FairSharesClassifier])
@pytest.mark.parametrize("kind", LABELLED)
def test_without_calibration_rows_the_released_answers_tell_the_classes(
    town: Town, kind: type, method: Any
) -> None:
    model = town.fit(classifier(kind(margin=0.04), kind=method))
    assert model.bound_
    assert model.within_margin_
    assert model.margin_source_ == "released answers"
    assert model.public_gap_ <= 0.04
    assert model.calibration_gap_ is None
    assert getattr(model, "gate_", None) is None
    assert "calibration" not in str(model.guarantee_)


def test_demographic_parity_reads_the_public_rows_and_keeps_its_gate(town: Town) -> None:
    model = town.fit(classifier(DemographicParity(margin=0.1), kind=FairPATEClassifier))
    assert model.margin_source_ == "public rows"
    assert model.gate_ is not None
    assert model.gate_.gap <= 0.1
    with pytest.raises(ValueError, match=r"about predictions alone.*would not be read"):
        town.fit(classifier(DemographicParity(margin=0.1)), **town.labelled)


def test_the_claim_lists_the_calibration_rows_as_public_and_costs_no_more(town: Town) -> None:
    with_rows = town.fit(classifier(EqualizedOdds(margin=0.1)), **town.labelled)
    without = town.fit(classifier(EqualizedOdds(margin=0.1)))
    assert "the 800 calibration rows with their labels and groups" in with_rows.guarantee_.public
    assert with_rows.ledger_.spent == without.ledger_.spent
    assert np.array_equal(with_rows.answers_.shares, without.answers_.shares)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_saved_model_keeps_the_notion_and_where_it_was_read(
    town: Town, tmp_path: Path, calibrated: bool
) -> None:
    notion = FalsePositiveParity(margin=0.1, positive=1, reference="pairwise")
    rows = town.labelled if calibrated else {}
    model = town.fit(classifier(notion), **rows)
    head = json.loads((model.save(tmp_path / "model") / "model.json").read_text())
    assert head["arguments"]["fairness"]["type"] == "FalsePositiveParity"
    loaded = evenhand.load(tmp_path / "model")
    assert loaded.fairness == notion
    assert loaded.margin_source_ == model.margin_source_
    assert getattr(loaded, "calibration_gap_", None) == model.calibration_gap_
    assert (loaded.public_gap_, loaded.within_margin_) == (model.public_gap_, model.within_margin_)


@pytest.mark.parametrize("calibrated", [True, False])
def test_the_report_says_which_notion_and_whose_classes(
    town: Town, tmp_path: Path, calibrated: bool
) -> None:
    rows = town.labelled if calibrated else {}
    model = town.fit(classifier(EqualizedOdds(margin=0.1), kind=ungated), **rows)
    report = ModelReport.of(model)
    page = write_report(model, tmp_path / "report.html").read_text()
    lines = " ".join(summary_lines(report))
    assert report.disparity is None
    assert "Equalized odds: how often a class is predicted to rows of one true class" in page
    assert "of equalized odds" in lines
    teachers = any(
        "what the teachers say, with noise, and not to the truth" in words
        for words in report.warnings
    )
    assert teachers == (not calibrated)
    assert ("what the teachers say about the public rows" in page) == (not calibrated)
    assert ("likely too small" in page) == calibrated
    assert ("on the calibration rows" in lines) == calibrated


@pytest.mark.usefixtures("values_shown")
def test_a_calibration_set_without_some_cell_is_refused_before_anything_is_spent(
    town: Town,
) -> None:
    rows = town.labelled
    keep = ~((rows["y_calibration"] == "yes") & (rows["sensitive_features_calibration"] == "women"))
    fewer = {name: value[keep] for name, value in rows.items()}
    for kind in LABELLED:
        model = classifier(kind(margin=0.1))
        with pytest.raises(ValueError, match=r"of class 'yes' in 'women', and .*Add such"):
            town.fit(model, **fewer)
        assert not hasattr(model, "ledger_")


@pytest.mark.usefixtures("values_shown")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y_calibration": None}, "y_calibration is missing. Pass all three, or none"),
        ({"X_calibration": None, "sensitive_features_calibration": None},
         "X_calibration and sensitive_features_calibration is missing"),
        ({"y_calibration": ["yes", "noo"] * 400}, "holds 'noo', first in row 2.*Did you mean 'no'"),
        ({"y_calibration": [None, "no"] * 400}, "no label in row 1 .* and 399 more"),
        ({"y_calibration": ["yes", "no"]}, "y_calibration has 2"),
        ({"sensitive_features_calibration": ["men", "woman"] * 400},
         "sensitive_features_calibration holds .*'woman'.*Did you mean 'women'"),
    ],
)  # fmt: skip
def test_calibration_rows_that_cannot_be_read_are_refused(
    town: Town, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        town.fit(classifier(EqualizedOdds(margin=0.1)), **(town.labelled | changes))


def test_calibration_rows_need_the_columns_of_the_others(town: Town) -> None:
    renamed = town.labelled["X_calibration"].rename(columns={"a": "aa"})
    with pytest.raises(ValueError, match="X_calibration"):
        town.fit(
            classifier(EqualizedOdds(margin=0.1)), **(town.labelled | {"X_calibration": renamed})
        )


def test_unknown_notions_and_classes_are_refused_before_anything_is_spent(town: Town) -> None:
    for fairness in (0.1, "equalized-odds", EqualizedOdds, None):
        with pytest.raises(ValueError, match=r"fairness must be a DemographicParity.*PATEClass"):
            town.fit(classifier(fairness))
    with pytest.raises(ValueError, match="positive must be a class from 0 to 1, got positive=5"):
        town.fit(classifier(FalsePositiveParity(margin=0.1, positive=5)))
    with pytest.raises(ValueError, match=r"student=DecisionTreeClassifier nothing would keep"):
        town.fit(classifier(EqualizedOdds(margin=0.1), ungated, student=DecisionTreeClassifier()))


def test_a_class_that_no_teacher_ever_votes_for_is_named_and_does_not_stop_the_fit(
    town: Town,
) -> None:
    declared = {"classes": ["maybe", "no", "yes"]}
    with pytest.warns(CellsNotRead, match=r"'men' among class 'maybe', 'women' among"):
        model = town.fit(classifier(EqualizedOdds(margin=0.1), **declared))
    assert model.within_margin_
    assert set(model.predict(town.X[town.new])) <= {"no", "yes"}


def test_several_groups_and_classes_are_bound_too() -> None:
    rng = np.random.default_rng(0)
    n = 6000
    z = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 0.6 * z
    y = np.digitize(X[:, 0] + X[:, 1] + rng.normal(0, 0.3 + 0.4 * z), [0.0, 1.2])
    notion = EqualizedOdds(margin=0.15, reference="pairwise")
    model = classifier(notion).fit(
        X[:3500],
        y[:3500],
        X_public=X[3500:4800],
        sensitive_features_public=z[3500:4800],
        X_calibration=X[4800:],
        y_calibration=y[4800:],
        sensitive_features_calibration=z[4800:],
    )
    joint = JointTally.of(z[4800:], y[4800:], model.predict(X[4800:]), 3, 3)
    assert model.within_margin_
    assert notion.holds(joint.counts)
    assert (model.predict(X[4800:]) == y[4800:]).mean() > 0.45  # no class is more than .37


def test_public_rows_set_aside_go_with_calibration_rows(town: Town) -> None:
    model = classifier(EqualizedOdds(margin=0.1), public_fraction=0.3).fit(
        town.X[town.private],
        town.y[town.private],
        sensitive_features=town.groups[town.private],
        **town.labelled,
    )
    assert model.within_margin_
    assert "800 calibration rows" in str(model.guarantee_)

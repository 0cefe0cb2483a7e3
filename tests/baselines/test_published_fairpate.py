"""FairPATE with its gate as printed: what it answers, that it says so, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.estimators.conftest import Parts, Reseal, reseal

import evenhand
from evenhand import DemographicParity, EqualizedOdds, FairPATEClassifier
from evenhand.baselines.published_fairpate import PublishedFairPATEClassifier
from evenhand.estimators.saving.model_folder import ModelDamaged
from evenhand.fairness.gate.published import PublishedGate
from evenhand.report.content import ModelReport
from evenhand.voting import Answers
from evenhand.voting.answers import Reason

__all__ = ["reseal"]
MARGIN, COLD_START = Fraction(1, 10), 5
GROUPS = np.array(["a", "b", "c"])


@pytest.fixture
def loose_gate(settings: dict[str, Any]) -> dict[str, Any]:
    """A gate that is tested early, and rows in the order in which they stand."""
    gate = {"cold_start": COLD_START, "keep_order": True}
    return settings | gate | {"fairness": DemographicParity(margin=float(MARGIN))}


@pytest.fixture
def three(parts: Parts) -> Parts:
    """Three groups of public rows, the group of the most income the most often granted."""
    income = parts.X_public["income"].fillna(0.0).to_numpy()
    noise = np.random.default_rng(3).normal(size=len(income)) / 2
    third = GROUPS[np.digitize(income + noise, np.quantile(income, [1 / 3, 2 / 3]))]
    return parts._replace(groups_public=third)


def admitted(given: list[tuple[int, int]], group: int, label: int) -> bool:
    """Algorithm 1, lines 3 to 11, on the list of answers given before, in fractions."""
    own = [k for z, k in given if z == group]
    others = [k for z, k in given if z != group]
    if len(own) < COLD_START:
        return True
    if not others:
        return False
    rate = Fraction(own.count(label) + 1, len(own) + 1)
    return rate - Fraction(others.count(label), len(others)) < MARGIN


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")
def test_every_answer_passed_the_printed_test_when_it_was_given(
    three: Parts, loose_gate: dict[str, Any]
) -> None:
    model = three.fit(PublishedFairPATEClassifier(**loose_gate))
    answers = model.answers_
    assert isinstance(answers, Answers)
    assert answers.groups is not None
    given: list[tuple[int, int]] = []
    late = 0
    for row in answers.order:
        one = int(answers.groups[row]), int(answers.labels[row])
        assert admitted(given, *one)
        late += sum(group == one[0] for group, _ in given) >= COLD_START
        given.append(one)
    assert late > 20  # answers that were tested at all
    assert answers.count(Reason.OUTSIDE_MARGIN) + answers.count(Reason.NO_CLASS_ADMISSIBLE) > 0


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")
def test_answers_that_left_the_margin_are_counted_and_warned_of(
    three: Parts, loose_gate: dict[str, Any]
) -> None:
    model = three.fit(PublishedFairPATEClassifier(**loose_gate))
    assert isinstance(model.gate_, PublishedGate)
    assert model.gate_.violations > 0
    report = ModelReport.of(model)
    assert report.disparity is not None
    assert report.disparity.n_outside == model.gate_.violations
    assert any("the answered set was outside the margin" in words for words in report.warnings)
    sound = three.fit(FairPATEClassifier(**loose_gate))
    kept = ModelReport.of(sound).disparity
    assert kept is not None
    assert kept.n_outside == 0
    # It is charged alike.
    assert str(model.guarantee_) == str(sound.guarantee_)


def test_what_the_printed_algorithm_does_not_know_is_refused_before_anything_is_spent(
    parts: Parts, settings: dict[str, Any]
) -> None:
    for fairness in (EqualizedOdds(margin=0.1), DemographicParity(margin=0.1, reference="overall")):
        with pytest.raises(ValueError, match=r"with reference='rest'.* Use FairPATEClassifier"):
            parts.fit(PublishedFairPATEClassifier(**(settings | {"fairness": fairness})))


def test_it_is_saved_and_read_back(parts: Parts, settings: dict[str, Any], tmp_path: Path) -> None:
    model = parts.fit(PublishedFairPATEClassifier(**settings))
    again = evenhand.load(model.save(tmp_path / "model"))
    assert type(again) is PublishedFairPATEClassifier
    assert np.array_equal(again.predict(parts.X), model.predict(parts.X))
    assert again.fitted_.method == model.fitted_.method == "PublishedFairPATEClassifier"


def test_a_model_that_was_saved_with_the_old_argument_says_how_to_convert(
    parts: Parts, settings: dict[str, Any], tmp_path: Path, reseal: Reseal
) -> None:
    parts.fit(FairPATEClassifier(**settings)).save(tmp_path / "model")
    reseal(tmp_path / "model", lambda head: head["arguments"].update(rule="published"))
    with pytest.raises(ModelDamaged, match=r"no longer has: rule.*PublishedFairPATEClassifier if"):
        evenhand.load(tmp_path / "model")

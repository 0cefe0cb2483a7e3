"""Noisy shares through the estimators, and the margin that binds the student."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.estimators import ModelDamaged
from evenhand.estimators.plan import NoiseDrownsAnswers
from evenhand.estimators.small_groups import SmallGroupsWarning
from evenhand.fairness import FairnessKind
from evenhand.privacy import BudgetExceeded, ConfidentGNMax, GNMax, NoisyHistogram, SeededNoise
from evenhand.report import write_report
from evenhand.students import MarginNotMet
from evenhand.voting import Answers

from .conftest import Parts, Reseal


@pytest.fixture
def by_shares(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"mechanism": None}


def test_shares_spend_the_whole_budget_in_three_rounds(
    parts: Parts, by_shares: dict[str, Any]
) -> None:
    for noise in (None, by_shares["noise"]):
        model = parts.fit(FairSharesClassifier(**(by_shares | {"noise": noise})))
        assert model.answers_.n_answered == 300
        assert model.answers_.n_asked == 300 + 2 * 60
        assert len(np.unique(model.answers_.variance)) > 1
        assert model.ledger_.spent <= model.budget.mu_squared
        assert model.ledger_.spent == pytest.approx(model.budget.mu_squared, rel=5e-3)
        assert not hasattr(model, "gate_")


@pytest.mark.parametrize("method", [FairPATEClassifier, FairSharesClassifier])
@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_the_students_decisions_on_the_public_rows_are_within_the_margin(
    parts: Parts, settings: dict[str, Any], method: Any, reference: str
) -> None:
    fairness = DemographicParity(margin=0.1, reference=reference)
    mechanism = settings["mechanism"] if method is FairPATEClassifier else None
    changes = {"fairness": fairness, "mechanism": mechanism}
    model = parts.fit(method(**(settings | changes)))
    assert model.bound_
    assert model.within_margin_
    decided = model.predict(parts.X_public) == "yes"
    groups = parts.groups_public.to_numpy()
    table = [[int((decided[groups == g] == k).sum()) for k in (False, True)] for g in ("a", "b")]
    assert fairness.gap(table) == pytest.approx(model.public_gap_)
    assert model.public_gap_ <= 0.1
    free = parts.fit(method(**(settings | changes | {"fairness": DemographicParity(margin=1.0)})))
    assert free.public_gap_ > 0.1  # the margin did bind


@pytest.mark.parametrize("seed", [1, 2, 7, 14, 32, 35])
@pytest.mark.filterwarnings("ignore:The student predicts one class")  # nothing hangs on it
def test_few_labels_and_decisions_in_steps_meet_the_margin_too(seed: int) -> None:
    # One number and three jobs: a firm ridge on few labels makes small scores in few steps. With a
    # fixed width of the smoothing, and no shift at the end, these seeds missed the margin.
    rng = np.random.default_rng(0)
    n, private, public = 5500, slice(0, 4000), slice(4000, 5500)
    groups = rng.choice(["women", "men"], n)
    X = pd.DataFrame(
        {
            "income": rng.normal(50 + 5 * (groups == "men"), 15, n).round(1),
            "job": rng.choice(["nurse", "clerk", "cook", None], n),
        }
    )
    y = np.where(X["income"] + rng.normal(0, 10, n) > 50, "yes", "no")
    model = FairSharesClassifier(
        Budget(epsilon=4.0, delta=1e-5),
        DemographicParity(margin=0.05),
        n_teachers=60,
        noise=SeededNoise(seed),
        random_state=0,
    ).fit(X[private], y[private], X_public=X[public], sensitive_features_public=groups[public])
    assert model.within_margin_
    assert model.bound_
    assert model.public_gap_ <= 0.05


def test_a_student_of_your_own_is_not_bound_and_says_so(
    parts: Parts, settings: dict[str, Any]
) -> None:
    from sklearn.tree import DecisionTreeClassifier

    model = parts.fit(FairPATEClassifier(**(settings | {"student": DecisionTreeClassifier()})))
    assert not model.bound_
    assert np.isnan(model.public_gap_)


def test_the_answers_of_fairpate_and_a_free_student_are_the_papers_algorithm(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**settings))
    free = parts.fit(FairPATEClassifier(**settings, student_margin=False))
    assert np.array_equal(free.answers_.labels, model.answers_.labels)
    assert (free.bound_, free.within_margin_) == (False, None)
    assert free.fairness_kind_ is FairnessKind.ANSWERS
    assert model.fairness_kind_ is FairnessKind.WEIGHTS
    # What the margin costs is free to look at: it is the student that learns the same answers.
    other = model.without_margin()
    assert np.array_equal(free.predict(parts.X_public), other.predict(parts.X_public))


def test_shares_are_not_labels_for_a_student_of_your_own(
    parts: Parts, by_shares: dict[str, Any]
) -> None:
    from sklearn.tree import DecisionTreeClassifier

    by_shares.pop("fairness")
    model = PATEClassifier(**by_shares, answers="shares", student=DecisionTreeClassifier())
    with pytest.raises(ValueError, match="Noisy shares are not labels"):
        model.fit(parts.X, parts.y, X_public=parts.X_public)


def test_a_mechanism_must_release_what_is_asked_for(parts: Parts, settings: dict[str, Any]) -> None:
    histogram = NoisyHistogram(sigma=30.0, n_classes=2)
    with pytest.raises(ValueError, match=r"not release labels.*GNMax.*use FairSharesClassifier"):
        parts.fit(FairPATEClassifier(**(settings | {"mechanism": histogram})))
    with pytest.raises(ValueError, match=r"not release shares.*Rounds, use FairPATEClassifier"):
        parts.fit(FairSharesClassifier(**settings))
    small = NoisyHistogram(sigma=0.5, n_classes=2)
    with pytest.raises(BudgetExceeded, match="all 300 public rows"):
        parts.fit(FairSharesClassifier(**(settings | {"mechanism": small})))
    settings.pop("fairness")
    public = {"X_public": parts.X_public}
    with pytest.raises(ValueError, match=r"not release shares.*Rounds, answers='labels', or leave"):
        PATEClassifier(**settings, answers="shares").fit(parts.X, parts.y, **public)
    with pytest.raises(ValueError, match=r"not release labels.*LNMax, answers='shares', or leave"):
        PATEClassifier(**(settings | {"mechanism": histogram}), answers="labels").fit(
            parts.X, parts.y, **public
        )
    with pytest.raises(ValueError, match="'labels', 'shares'"):
        PATEClassifier(**settings, answers="share").fit(parts.X, parts.y, **public)


def test_a_margin_no_student_can_meet_is_said_and_saved(
    parts: Parts, by_shares: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.students.constrained.STIFFNESS", 1e-9)
    monkeypatch.setattr("evenhand.students.constrained._shifted", lambda *_: None)
    monkeypatch.setattr("evenhand.students.constrained.POLISHING", 0)
    with pytest.warns(MarginNotMet, match="Widen the margin"):
        model = parts.fit(FairSharesClassifier(**by_shares))
    assert not model.within_margin_
    loaded = evenhand.load(model.save(tmp_path / "model"))
    assert loaded.within_margin_ is False
    assert loaded.public_gap_ == model.public_gap_
    assert loaded.bound_ is True


def test_shares_are_saved_and_loaded(
    parts: Parts, by_shares: dict[str, Any], tmp_path: Any
) -> None:
    model = parts.fit(FairSharesClassifier(**by_shares))
    loaded = evenhand.load(model.save(tmp_path / "model"))
    assert np.array_equal(loaded.answers_.shares, model.answers_.shares)
    assert np.array_equal(loaded.answers_.variance, model.answers_.variance)
    assert loaded.answers_.n_asked == model.answers_.n_asked
    assert (loaded.n_teachers_, loaded.choices_) == (model.n_teachers_, model.choices_)
    assert np.array_equal(loaded.predict_proba(parts.X), model.predict_proba(parts.X))


def test_more_than_two_classes_learn_from_shares(parts: Parts, by_shares: dict[str, Any]) -> None:
    y = np.where(parts.X["income"].fillna(0) > 1, "high", parts.y)
    budget = Budget(epsilon=100.0, delta=1e-5)
    settings = by_shares | {"budget": budget, "fairness": DemographicParity(margin=0.15)}
    model = parts.fit(FairSharesClassifier(**settings), y=y)
    assert {histogram.n_classes for histogram in model.mechanism_.histograms} == {3}
    assert model.predict_proba(parts.X).shape == (600, 3)
    assert (model.predict(parts.X) == y).mean() > 0.5
    assert model.public_gap_ <= 0.15


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({}, False),
        ({"mechanism": NoisyHistogram(sigma=9.0, n_classes=2)}, False),
        ({"mechanism": GNMax(sigma=3.0)}, True),
        ({"mechanism": ConfidentGNMax(threshold=5.0, sigma_check=3.0, sigma=3.0)}, True),
        ({"student": LogisticRegression()}, True),
    ],
)
def test_pate_releases_shares_unless_another_setting_is_about_labels(
    parts: Parts, by_shares: dict[str, Any], changes: dict[str, Any], labels: bool
) -> None:
    by_shares.pop("fairness")
    model = PATEClassifier(**(by_shares | changes)).fit(parts.X, parts.y, X_public=parts.X_public)
    assert isinstance(model.answers_, Answers) == labels


def test_a_model_of_a_version_that_had_one_class_for_both_says_how_to_convert(
    parts: Parts, by_shares: dict[str, Any], tmp_path: Path, reseal: Reseal
) -> None:
    parts.fit(FairSharesClassifier(**by_shares)).save(tmp_path / "model")

    def older(head: dict[str, Any]) -> None:
        head["method"] = "FairPATEClassifier"
        head["arguments"] |= {"answers": None, "student": None}

    reseal(tmp_path / "model", older)
    with pytest.raises(ModelDamaged, match=r"no longer has: answers.*with FairSharesClassifier if"):
        evenhand.load(tmp_path / "model")


def test_pate_learns_from_shares_too(parts: Parts, by_shares: dict[str, Any]) -> None:
    by_shares.pop("fairness")
    model = PATEClassifier(**by_shares).fit(parts.X, parts.y, X_public=parts.X_public)
    assert not model.bound_
    assert (model.predict(parts.X) == parts.y).mean() > 0.75


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")
def test_noise_that_drowns_the_answers_is_said(parts: Parts, by_shares: dict[str, Any]) -> None:
    changes = {"budget": Budget(epsilon=0.01, delta=1e-5)}
    with pytest.warns(NoiseDrownsAnswers, match=r"20 teachers x mu .* Raise epsilon"):
        parts.fit(FairSharesClassifier(**(by_shares | changes)))


@pytest.mark.filterwarnings("ignore::evenhand.estimators.plan.NoiseDrownsAnswers")
@pytest.mark.filterwarnings("ignore:The student predicts one class")  # nothing hangs on it
def test_how_many_records_units_have_reaches_neither_teachers_nor_their_reasons(
    parts: Parts, by_shares: dict[str, Any]
) -> None:
    settings = by_shares | {"n_teachers": None}
    whole = parts.fit(FairSharesClassifier(**settings), unit_ids=np.arange(600))
    fewer = parts.fit(
        FairSharesClassifier(**settings), X=parts.X[:300], y=parts.y[:300], unit_ids=np.arange(300)
    )
    assert whole.n_teachers_ == fewer.n_teachers_ == 250
    assert whole.choices_ == fewer.choices_
    # Of records, whose number is public, it may.
    assert parts.fit(FairSharesClassifier(**settings)).n_teachers_ < 150


@pytest.mark.parametrize("method", [FairPATEClassifier, FairSharesClassifier])
def test_the_same_model_without_its_margin_is_that_of_a_margin_that_binds_nothing(
    parts: Parts, settings: dict[str, Any], method: Any, tmp_path: Path
) -> None:
    by_shares = method is FairSharesClassifier
    given = settings | ({"mechanism": None} if by_shares else {"cold_start": 300})
    model = parts.fit(method(**given))
    yardstick = model.public_yardstick_
    assert yardstick.error.value < yardstick.majority_error.value
    assert yardstick.without_margin.value < yardstick.majority_error.value
    free = model.without_margin()
    assert (free.predict(parts.X_public) != model.predict(parts.X_public)).any()
    if by_shares:  # with labels the gate refuses others under another margin
        wide = given | {"fairness": DemographicParity(margin=1.0)}
        loose = parts.fit(method(**wide))
        assert (free.predict(parts.X_public) == loose.predict(parts.X_public)).all()
    assert (free.bound_, free.within_margin_) == (False, None)
    assert model.ledger_.spent == free.ledger_.spent  # nothing was drawn for it
    model.save(tmp_path / "model")
    loaded = evenhand.load(tmp_path / "model")
    assert loaded.public_yardstick_ == yardstick
    assert (loaded.without_margin().predict(parts.X) == free.predict(parts.X)).all()


def test_without_a_constraint_on_a_linear_student_there_is_no_model_without_it(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**settings | {"student": LogisticRegression()}))
    with pytest.raises(ValueError, match="no constraint of a linear student"):
        model.without_margin()
    assert model.public_yardstick_.without_margin is None


def test_the_majority_class_of_the_yardstick_is_read_from_what_was_released(
    parts: Parts, settings: dict[str, Any]
) -> None:
    # Were it read from private labels, it would move with them while the answers stay.
    model = parts.fit(FairPATEClassifier(**settings))
    labels = model.answers_.labels[model.answers_.answered]
    assert model.public_yardstick_.majority == np.bincount(labels).argmax()
    assert model.public_yardstick_.majority_error.n == len(labels)


def small_and_large() -> tuple[Any, ...]:
    """Return private and public rows of two large groups and one that is small and far off."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b", "few"], 6000, p=[0.5, 0.494, 0.006])
    x = rng.normal(size=6000) * np.where(groups == "few", 0.1, 1.0) - 3.0 * (groups == "few")
    y = (x + 0.3 * rng.normal(size=6000) > 0).astype(int)
    X = pd.DataFrame({"x": x, "noise": rng.normal(size=6000)})
    return X[:4000], y[:4000], X[4000:], groups[4000:]


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")
def test_a_small_group_is_named_with_its_rows_its_cost_and_the_way_out(tmp_path: Path) -> None:
    X, y, X_public, groups = small_and_large()
    n = int((groups == "few").sum())
    given = {"budget": Budget(epsilon=8.0, delta=1e-5), "n_teachers": 50, "random_state": 0}
    given |= {"fairness": DemographicParity(margin=0.05), "noise": SeededNoise(0)}
    public = {"X_public": X_public, "sensitive_features_public": groups}
    said = rf"'few' \({n} public rows: 0\..* below {n + 1} public rows .--merge-small {n + 1},"
    with pytest.warns(SmallGroupsWarning, match=said):
        model = FairSharesClassifier(**given).fit(X, y, **public)
    assert model.within_margin_ is False
    assert any(f"--merge-small {n + 1}," in words for words in model.fitted_.warnings)
    assert [model.groups_[group.group] for group in model.held_.groups] == ["few"]
    insisting = FairSharesClassifier(**given, small_groups="margin").fit(X, y, **public)
    assert insisting.held_ is None
    assert insisting.within_margin_
    errors = [m.public_yardstick_.error.value for m in (insisting, model)]
    assert errors[0] > 0.3 > errors[1]
    # Released are answers alone, the same for both: what is held to what is post-processing.
    assert np.array_equal(insisting.answers_.shares, model.answers_.shares)
    model.save(tmp_path / "model")
    assert evenhand.load(tmp_path / "model").held_ == model.held_
    # The claim says which groups are held to what, and cannot be made to say less.
    claim = json.loads((tmp_path / "model" / "claim.json").read_text())
    assert [group["name"] for group in claim["fairness"]["held"]["groups"]] == ["few"]
    page = write_report(model, tmp_path / "report.html").read_text()
    assert "Groups that are held to the interval of their size" in page
    assert "all within it but 1 small group, held to their intervals" in page
    assert "are within the margin" not in page

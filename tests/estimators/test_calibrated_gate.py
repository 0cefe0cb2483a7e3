"""FairPATE's gate on margins about true classes: what it keeps, what it costs, what it tells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from town import Town, classifier

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FairPATEClassifier,
    FalsePositiveParity,
)
from evenhand.estimators.calibration import LimitsTooWide, rows_to_ask
from evenhand.estimators.shared_teachers import fit_many
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.gate.calibrated import CalibratedGate
from evenhand.fairness.tally import Tally
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import BudgetExceeded, ConfidentGNMax, GNMax, Ledger, SeededNoise
from evenhand.report import write_report
from evenhand.voting import Reason

LABELLED = (EqualizedOdds, ErrorParity, FalsePositiveParity)
MARGIN = 0.35


@pytest.fixture(scope="module")
def town() -> Town:
    return Town()


def gated(fairness: Any, **changes: Any) -> Any:
    """Return FairPATE with so many teachers that the budget pays for all rows."""
    return classifier(fairness, FairPATEClassifier, **({"n_teachers": 200} | changes))


@pytest.mark.parametrize("kind", LABELLED)
def test_the_upper_limit_of_the_gap_is_within_the_margin_after_every_answer(
    town: Town, kind: type
) -> None:
    notion = kind(margin=MARGIN)
    model = town.fit(gated(notion), **town.labelled)
    answers, gate = model.answers_, model.gate_
    given = answers.answered
    table = Tally.of(answers.groups[given], answers.labels[given], 2, 2)
    assert (table.totals > 100).all()  # of both groups
    assert np.array_equal(gate.counts, table.counts)
    joint = CalibratedJoint(answered=table, labelled=gate.calibration.labelled, sampled=False)
    assert gate.gap == pytest.approx(joint.gap(notion).high, abs=1e-5)
    trace = model.fitted_.disparity
    assert trace.kept
    assert trace.largest <= MARGIN
    assert trace.final == gate.gap
    assert model.fitted_.answered_gap == gate.gap
    assert model.within_margin_  # the student, on the calibration rows


def test_the_calibration_rows_are_bought_before_the_queries_and_charged_like_them(
    town: Town,
) -> None:
    model = town.fit(gated(ErrorParity(margin=MARGIN)), **town.labelled)
    entries = [(e["purpose"], e["n_uses"]) for e in model.ledger_.to_dict()["entries"]]
    n = int(model.gate_.calibration.labelled.totals.sum())
    assert n == 800
    assert entries[0] == ("answers to calibration rows", n)
    assert model.ledger_.spent == pytest.approx(
        (n + model.answers_.n_draws) * model.mechanism_.mu_squared(model.ledger_.noise)
    )
    assert "the 800 calibration rows with their labels and groups" in model.guarantee_.public
    assert any("800 of the 800 calibration rows are asked" in words for words in model.choices_)


def test_a_refused_answer_is_charged_in_full(town: Town) -> None:
    model = town.fit(gated(EqualizedOdds(margin=MARGIN)), **town.labelled)
    answers = model.answers_
    assert answers.n_asked > answers.n_answered
    assert answers.n_draws == answers.n_asked  # whatever became of them


def test_half_of_the_budget_pays_for_as_many_rows_of_each_group() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [900, 40])
    mechanism = GNMax(sigma=10.0)
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
    affordable = ledger.affordable(mechanism)
    rows = rows_to_ask(groups, mechanism, ledger, rng)
    assert len(rows) == affordable // 2 == len(set(rows.tolist()))
    found = Counter(groups[rows].tolist())
    assert found[1] == min(40, affordable // 4)
    everything = rows_to_ask(groups, GNMax(sigma=900.0), ledger, rng)
    assert everything.tolist() == list(range(940))
    with pytest.raises(BudgetExceeded, match="no calibration row and a query beside it"):
        rows_to_ask(groups, GNMax(sigma=1.4), ledger, rng)


def test_without_calibration_rows_the_gate_says_what_to_give_or_do(town: Town) -> None:
    model = gated(EqualizedOdds(margin=0.1))
    with pytest.raises(ValueError, match=r"Pass X_calibration.*answer_margin=False, or FairShares"):
        town.fit(model)
    assert not hasattr(model, "ledger_")


def test_a_margin_that_the_rows_are_too_few_for_is_told(town: Town) -> None:
    with pytest.warns(LimitsTooWide, match="uncertain by .* more than the margin of 0.05"):
        town.fit(gated(EqualizedOdds(margin=0.05)), **town.labelled)


@pytest.mark.slow
def test_by_the_estimate_more_is_answered(town: Town) -> None:
    notion = EqualizedOdds(margin=0.2)
    answered, gaps = {}, {}
    for by, level in (("limit", 0.95), ("limit", 0.5), ("estimate", 0.95)):
        model = gated(notion, admit_by=by, gate_level=level)
        town.fit(model, **town.labelled)
        answered[by, level] = model.answers_.n_answered
        gaps[by, level] = model.gate_.estimate.value
    assert answered["limit", 0.95] <= answered["limit", 0.5] <= answered["estimate", 0.95]
    assert gaps["estimate", 0.95] <= 0.2


def test_a_student_of_ones_own_learns_the_gated_answers(town: Town) -> None:
    odds, tree = EqualizedOdds(margin=0.3), DecisionTreeClassifier(max_depth=3)
    model = town.fit(gated(odds, student=tree, student_margin=False), **town.labelled)
    assert isinstance(model.student_, DecisionTreeClassifier)
    assert not model.bound_
    assert model.gate_.gap <= 0.3
    with pytest.raises(ValueError, match="hold the answers alone to the margin"):
        town.fit(gated(odds, student=tree), **town.labelled)


def test_settings_of_the_gate_that_mean_nothing_are_refused(town: Town) -> None:
    odds, parity = EqualizedOdds(margin=0.1), DemographicParity(margin=0.1)
    for fairness, changes, said in (
        (odds, {"answer_margin": False, "cold_start": 5}, "cold_start is about the gate, and"),
        (odds, {"answer_margin": False, "student_margin": False}, "leave nothing that is held"),
        (parity, {"admit_by": "estimate"}, "admit_by is about true classes, and Demographic"),
        (parity, {"gate_level": 0.9}, "gate_level is about true classes"),
        (odds, {"admit_by": "limits"}, "Did you mean 'limit'"),
        (odds, {"gate_level": 1.0}, "gate_level must lie strictly between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=said):
            town.fit(gated(fairness, **changes), **(town.labelled if fairness is odds else {}))


def test_a_saved_model_keeps_what_the_gate_knew(town: Town, tmp_path: Path) -> None:
    model = town.fit(gated(ErrorParity(margin=MARGIN)), **town.labelled)
    model.save(tmp_path / "model")
    loaded = evenhand.load(tmp_path / "model")
    assert loaded.fitted_.calibration.to_dict() == model.fitted_.calibration.to_dict()
    assert np.array_equal(loaded.fitted_.disparity.gaps, model.fitted_.disparity.gaps)
    pages = [
        write_report(one, tmp_path / f"{name}.html").read_text()
        for name, one in (("made", model), ("loaded", loaded))
    ]
    assert "upper limit" in pages[0]
    coverage = model.fitted_.answered_coverage
    assert coverage.offered.sum() == len(model.answers_) - model.answers_.count(Reason.NOT_ASKED)
    assert coverage.given.sum() == model.answers_.n_answered
    said = coverage.most_refused(model.fitted_.class_names)
    assert said in pages[0]
    assert said in pages[1]
    assert ("upper limit" in pages[0]) == ("upper limit" in pages[1])


def test_many_at_once_are_what_each_would_be_alone(town: Town) -> None:
    notions = (DemographicParity(margin=0.1), ErrorParity(margin=MARGIN), EqualizedOdds(margin=0.3))
    models = [gated(notion) for notion in notions]
    private, public = town.private, town.public
    refused = fit_many(
        models,
        town.X[private],
        town.y[private],
        X_public=town.X[public],
        sensitive_features_public=town.groups[public],
        **town.labelled,
    )
    assert refused == [None] * 3
    for notion, model in zip(notions, models, strict=True):
        rows = town.labelled if notion.needs_labels else {}
        alone = town.fit(gated(notion), **rows)
        assert np.array_equal(model.answers_.labels, alone.answers_.labels)
        assert model.ledger_.spent == alone.ledger_.spent
        assert isinstance(model.gate_, CalibratedGate) == notion.needs_labels


def test_a_threshold_is_asked_over_all_classes_as_of_the_calibration_rows(town: Town) -> None:
    mechanism = ConfidentGNMax(threshold=120.0, sigma_check=60.0, sigma=60.0)
    model = town.fit(gated(ErrorParity(margin=MARGIN), mechanism=mechanism), **town.labelled)
    assert model.answers_.n_checks > model.answers_.n_draws > 0
    assert model.gate_.calibration.labelled.totals.sum() < 800  # those that failed are left out


@pytest.mark.slow
def test_votes_of_owners_say_nothing_of_calibration_rows(town: Town) -> None:
    rows = town.X[town.public]
    cast = (rows["a"] + rows["b"] > 0.8).map({True: "yes", False: "no"})
    said = [VoteFile.cast(f"owner {i}", cast, rows, classes=["no", "yes"]) for i in range(60)]
    with pytest.raises(ValueError, match=r"files hold votes on the public rows alone.*answer_mar"):
        FairPATEClassifier.from_votes(
            OwnerVotes.of(said, signed=False),
            rows,
            town.groups[town.public],
            budget=Budget(epsilon=8.0, delta=1e-3),
            fairness=EqualizedOdds(margin=MARGIN),
            **town.labelled,
        )

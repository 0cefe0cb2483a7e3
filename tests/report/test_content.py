from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from evenhand.datasets import Dataset
from evenhand.estimators import FairPATEClassifier
from evenhand.estimators.fitted import FittedModel
from evenhand.fairness import DemographicParity, fairness_report
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.notions import exact_gap
from evenhand.methods import load
from evenhand.privacy import Budget, GNMax, Ledger, SeededNoise
from evenhand.report import ModelReport, summary_lines
from evenhand.report.opening import opening
from evenhand.report.page import render
from evenhand.report.settings import describe, in_words
from evenhand.report.spending import Charge, Spending
from evenhand.typing import REJECTED
from evenhand.voting import Answers, Reason
from evenhand.voting.outcomes import EVERY_ROW, SHORT, Disparity


def answers_of(groups: list[int], labels: list[int], events: list[int] | None = None) -> Answers:
    """Rows answered in order."""
    n = len(labels)
    return Answers(
        labels=np.array(labels, dtype=np.int64),
        reasons=np.zeros(n, dtype=np.int64),
        order=np.arange(n),
        events=np.arange(n) if events is None else np.array(events, dtype=np.int64),
        groups=np.array(groups, dtype=np.int64),
        n_checks=0,
        n_draws=n,
        n_classes=3,
    )


# -- answers and refusals


def test_outcomes_are_the_rows_counted_one_by_one(hostile: Any) -> None:
    model, answers = hostile.model, hostile.model.answers_
    report = ModelReport.of(model)
    answered = np.zeros((3, 3), dtype=int)
    unlabelled = {reason: np.zeros(3, dtype=int) for reason in Reason}
    for row in range(len(answers)):
        if answers.labels[row] == REJECTED:
            unlabelled[Reason(answers.reasons[row])][answers.groups[row]] += 1
        else:
            answered[answers.groups[row], answers.labels[row]] += 1
    assert np.array_equal(report.outcomes.answered, answered)
    for column, reason in enumerate(report.outcomes.reasons):
        assert np.array_equal(report.outcomes.unlabelled[:, column], unlabelled[reason])
    assert report.outcomes.sizes.sum() == len(answers)
    assert {r for r in Reason if unlabelled[r].any()} - {Reason.ANSWERED} == set(
        report.outcomes.reasons
    )


def test_every_reason_for_silence_has_a_short_name() -> None:
    assert set(SHORT) == set(Reason) - {Reason.ANSWERED}


def test_without_groups_all_rows_stand_in_one_line(plain: Any) -> None:
    report = ModelReport.of(plain.model)
    assert report.outcomes.groups == (EVERY_ROW,)
    assert not report.outcomes.by_group
    assert report.outcomes.answered.sum() == plain.model.answers_.n_answered
    assert report.disparity is None


# -- the margin over time


@given(data=st.data())
def test_the_trace_is_the_exact_gap_after_each_event(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 25))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    steps = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    events = np.cumsum(steps).tolist()
    reference = data.draw(st.sampled_from(["rest", "pairwise", "overall"]))
    # The margin is one of the gaps that can occur, so that the boundary itself is drawn often.
    notion = DemographicParity(
        margin=data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.2, 0.1])), reference=reference
    )
    trace = Disparity.of(answers_of(groups, labels, events), ("a", "b", "c"), notion)
    exact, given_so_far = [], []
    for event in sorted(set(events)):
        counts = [[0] * 3 for _ in range(3)]
        for z, k, e in zip(groups, labels, events, strict=True):
            counts[z][k] += e <= event
        exact.append(exact_gap(counts, reference))
        given_so_far.append(sum(e <= event for e in events))
    assert trace.gaps == pytest.approx([float(gap) for gap in exact], abs=1e-12)
    assert trace.n_given.tolist() == given_so_far
    assert trace.n_outside == sum(gap > notion.exact_margin for gap in exact)
    assert trace.kept == all(gap <= notion.exact_margin for gap in exact)
    for name, at in trace.joined:
        code = "abc".index(name)
        event = min(e for z, e in zip(groups, events, strict=True) if z == code)
        assert at == sum(e <= event for e in events)


def test_a_gap_equal_to_the_margin_is_within_it_although_floats_say_otherwise() -> None:
    # 9/10 - 8/10 is 0.09999999999999998 in floats, 4/10 - 1/10 is 0.30000000000000004.
    groups, labels = [0] * 10 + [1] * 10, [1] * 4 + [0] * 6 + [1] * 1 + [0] * 9
    answers = answers_of(groups, labels, [0] * 20)
    trace = Disparity.of(answers, ("a", "b"), DemographicParity(margin=0.3))
    assert trace.largest > 0.3 - 1e-12
    assert trace.kept
    narrower = Disparity.of(answers, ("a", "b"), DemographicParity(margin=0.2999))
    assert narrower.n_outside == 1


def test_the_sound_rule_keeps_its_margin_in_the_report_too(hostile: Any) -> None:
    report = ModelReport.of(hostile.model)
    assert report.disparity is not None
    assert report.disparity.kept
    assert report.disparity.final == pytest.approx(hostile.model.gate_.gap)
    assert not any("outside the margin" in words for words in report.warnings)


def test_a_margin_that_was_left_is_a_warning(hostile: Any) -> None:
    answers = answers_of([0, 0, 1, 1, 2], [0, 0, 1, 1, 2])
    loose = _with_answers(hostile.model, answers)
    report = ModelReport.of(loose)
    assert report.disparity is not None
    assert not report.disparity.kept
    assert any("outside the margin after 3 of 5 steps" in words for words in report.warnings)


def test_a_group_without_any_answer_is_a_warning(hostile: Any) -> None:
    report = ModelReport.of(_with_answers(hostile.model, answers_of([0, 0, 1, 1], [0, 1, 0, 1])))
    assert not any("was answered" in words for words in report.warnings)
    silent = answers_of([0, 0, 1], [0, 1, 0])
    rows = Answers(
        labels=np.append(silent.labels, REJECTED),
        reasons=np.append(silent.reasons, int(Reason.WITHHELD)),
        order=silent.order,
        events=silent.events,
        groups=np.array([0, 0, 1, 2]),
        n_checks=0,
        n_draws=4,
        n_classes=3,
    )
    warned = ModelReport.of(_with_answers(hostile.model, rows)).warnings
    name = hostile.model.groups_[2]
    silent = f"none of the public rows of {name} was answered"
    assert any(words.startswith(silent) for words in warned)


def _with_answers(model: Any, answers: Answers, **changed: Any) -> Any:
    other = copy.copy(model).set_params(**changed)
    other.answers_ = answers
    other._fitted = other._describe()
    return other


# -- the ledger


def test_spending_is_the_ledger_added_up_in_fractions(hostile: Any) -> None:
    ledger, answers = hostile.model.ledger_, hostile.model.answers_
    books = ModelReport.of(hostile.model).spending
    assert {charge.n_uses for charge in books.charges} == {answers.n_checks, answers.n_draws}
    for charge in books.charges:
        exact = sum(
            Fraction(entry.mu_squared)
            for entry in ledger.entries
            if (entry.purpose, entry.mechanism) == (charge.purpose, charge.mechanism)
        )
        assert charge.mu_squared == pytest.approx(float(exact), rel=1e-12)
        assert charge.words
    assert sum(charge.share for charge in books.charges) == pytest.approx(books.share, rel=1e-9)
    assert books.mu_squared_spent == ledger.spent
    assert books.mu_squared_budget == ledger.budget.mu_squared
    assert 0 < books.share <= 1


def test_a_reservation_that_was_never_settled_is_told() -> None:
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
    with pytest.raises(RuntimeError), ledger.reserve({GNMax(sigma=40.0): 7}, purpose="a crash"):
        raise RuntimeError
    books = Spending.of(ledger.to_dict())
    assert books.n_open == 7
    assert books.charges[0].mu_squared == pytest.approx(7 * 2 / 40.0**2)


def test_numbers_of_a_mechanism_are_rounded_where_people_read_them_alone(shares: Any) -> None:
    report = ModelReport.of(shares.model)
    (charge, *_) = report.spending.charges
    written = "SubsampledGaussian(noise_multiplier=1.23456789012, sampling_rate=0.33333333333333, "
    shown = "SubsampledGaussian(noise_multiplier=1.23457, sampling_rate=0.333333, "
    noisy = replace(charge, mechanism=f"{written}n_steps=10, delta=1.23456789e-07)")
    found = replace(report, spending=replace(report.spending, charges=(noisy,)))
    for text in (render(found), "".join(summary_lines(found))):
        assert f"{shown}n_steps=10, delta=1.23457e-07)" in text
    # What is stored has all digits.
    (entry, *_) = shares.model.ledger_.to_dict()["entries"]
    assert entry["mechanism"] == charge.mechanism


# -- the student, and methods without labels


def test_a_student_under_the_margin_is_reported_with_its_public_gap(protected: Any) -> None:
    report = ModelReport.of(protected.model)
    assert report.student is not None
    assert report.student.gap == protected.model.public_gap_
    assert report.student.met == protected.model.within_margin_
    assert report.student.notion == report.notion == protected.model.fairness


def test_a_student_that_knows_of_no_margin_is_not_said_to_keep_it(hostile: Any) -> None:
    assert ModelReport.of(hostile.model).student is None


def test_a_student_that_missed_the_margin_is_a_warning(protected: Any) -> None:
    report = ModelReport.of(protected.model)
    assert report.student is not None
    told = protected.model.fitted_
    missed = replace(told, student_margin=replace(report.student, met=False, gap=0.4321))
    assert any("no student within the margin of 0.08 was found" in w for w in missed.warnings)
    assert any("0.4321" in w for w in missed.warnings)


def test_a_gap_above_the_margin_is_nowhere_said_to_be_within_it(protected: Any) -> None:
    report = ModelReport.of(protected.model, measured=protected.measured)
    assert report.student is not None
    above = {"gap": report.student.notion.margin + 0.01}
    noisy = replace(report.student, **above, met=None, source="noisy tables")
    wide = replace(noisy, gap=noisy.notion.margin / 2)
    for student in (noisy, wide, replace(report.student, **above, met=False)):
        told = replace(report, student=student, disparity=None)
        page = " ".join(render(told).split())
        on_test_rows = student.on_test_rows(gap.estimate for gap in told.measured.gaps)
        assert on_test_rows
        assert on_test_rows in page
        assert f"margin of {noisy.notion.margin:g} was kept" not in on_test_rows
        assert f"decisions {student.where} are within" not in page
        assert student.kept.startswith(
            "outside it" if student.met is False else "not above it" if student is wide else "above"
        )
        assert ("Nobody can tell whether" in page) == (student.met is None)
        assert f"; {student.kept}" in page
        assert any(f"{student.kept}. On new rows" in line for line in summary_lines(told))


def test_shares_are_told_and_never_printed(shares: Any) -> None:
    model = shares.model
    report = ModelReport.of(model)
    assert report.outcomes is None
    assert report.disparity is None
    assert report.notion == model.fairness
    other = replace(model.answers_, shares=np.zeros_like(model.answers_.shares))
    assert render(replace(report, answers=other)) == render(report)
    assert any("noisy shares given" in line for line in summary_lines(report))


def test_a_method_that_asks_nobody_is_reported_without_answers(steps: Any) -> None:
    report = ModelReport.of(steps.model)
    assert report.answers is None
    assert report.spending.charges[0].words.startswith("noisy gradient steps")
    assert report.spending.share <= 1
    assert not any(line.startswith("Answers") for line in summary_lines(report))


# -- measurements


def test_measured_rates_and_intervals_are_those_of_the_test_rows(hostile: Any) -> None:
    found = ModelReport.of(hostile.model, measured=hostile.measured).measured
    assert found is not None
    for i, group in enumerate(found.groups):
        rows = hostile.groups == group
        wrong = hostile.predicted[rows] != hostile.truth[rows]
        assert found.errors[i].value == pytest.approx(wrong.mean())
        for k in range(3):
            hits = int((hostile.predicted[rows] == k).sum())
            low, high = clopper_pearson([hits], [rows.sum()], error=0.05)
            estimate = found.rates[i][k]
            assert estimate.value == pytest.approx(hits / rows.sum())
            assert (estimate.low, estimate.high) == pytest.approx((low[0], high[0]))
    assert found.error is not None
    assert found.error.value == pytest.approx((hostile.predicted != hostile.truth).mean())
    assert found.n_rows == len(hostile.truth)
    assert found.shown == (0, 1, 2)
    assert len(found.gaps) == len(hostile.measured.estimates) - 1
    for gap in found.gaps:
        assert gap.estimate is hostile.measured[gap.estimate.name]
        assert gap.reference in {"rest", "pairwise", "overall"}


def test_of_two_classes_the_one_that_is_selected_is_drawn(protected: Any) -> None:
    found = ModelReport.of(protected.model, measured=protected.measured).measured
    assert found is not None
    assert found.shown == (1,)
    for i, estimate in enumerate(protected.measured.selection):
        assert found.rates[i][1].value == estimate.value
        assert found.rates[i][1].low == estimate.low


def test_the_first_page_says_of_how_few_rows_a_rate_is(protected: Any) -> None:
    groups = protected.groups.astype(str)
    few = np.flatnonzero(groups == groups[0])[3:]  # three rows of this group are left
    of_few = fairness_report(
        *(np.delete(a, few) for a in (protected.truth, protected.predicted, groups))
    )
    said = dict(opening(ModelReport.of(protected.model, measured=of_few)))
    assert said["How differently groups are treated"].count("alone)") == 1
    assert f"of {groups[0]} (by 3 rows alone)" in said["How differently groups are treated"]


def test_the_name_of_a_unit_is_no_setting_where_the_claim_is_about_a_record(plain: Any) -> None:
    assert plain.model.get_params()["unit"] == "person"
    assert dict(ModelReport.of(plain.model).settings)["unit"] == "default"
    named = dict(in_words(plain.model.get_params(deep=False), "person"))
    assert named["unit"] == "person"


def test_rows_without_a_prediction_are_counted_apart(protected: Any) -> None:
    predicted = protected.predicted.copy()
    predicted[:37] = REJECTED
    measured = fairness_report(protected.truth, predicted, protected.groups)
    found = ModelReport.of(protected.model, measured=measured).measured
    assert found is not None
    assert (found.n_unanswered, found.n_rows) == (37, len(predicted) - 37)


def test_rows_of_one_unit_make_every_interval_of_the_report_wider(protected: Any) -> None:
    truth, said, groups = protected.truth, protected.predicted, np.asarray(protected.groups)
    ids = np.repeat(np.arange(len(said)), 4)
    once = fairness_report(truth, said, groups)
    many = fairness_report(truth[ids], said[ids], groups[ids], units=ids)
    one, other = (ModelReport.of(protected.model, measured=m).measured for m in (once, many))
    assert one is not None
    assert other is not None
    assert (one.n_units, other.n_units) == (None, len(said))
    for group, alike in zip(one.rates, other.rates, strict=True):
        for a, b in zip(group, alike, strict=True):
            assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=5e-3)
    words = render(ModelReport.of(protected.model, measured=many))
    assert f"{len(said):,} units, some with several rows, are taken as independent" in words


def test_without_true_labels_there_is_no_error(protected: Any) -> None:
    measured = fairness_report(None, protected.predicted, protected.groups)
    report = ModelReport.of(protected.model, measured=measured)
    assert report.measured is not None
    assert report.measured.error is None
    assert report.measured.n_rows == len(protected.predicted)
    assert not any("Error:" in line for line in summary_lines(report))


def test_measurements_of_another_kind_are_refused(protected: Any) -> None:
    with pytest.raises(TypeError, match=r"measured must be a FairnessReport, got dict\. Make one"):
        ModelReport.of(protected.model, measured={"error": 0.1})


def test_measurements_of_other_classes_are_refused(protected: Any, hostile: Any) -> None:
    with pytest.raises(ValueError, match=r"measured is about 3 classes .* model has 2 .*own pred"):
        ModelReport.of(protected.model, measured=hostile.measured)


# -- what is public


def test_only_what_is_public_of_a_model_is_read(hostile: Any) -> None:
    read: dict[str, set[str]] = {"model": set(), "fitted": set()}
    whole = hostile.model.fitted_

    class WatchedFitted(FittedModel):
        def __getattribute__(self, name: str) -> Any:
            read["fitted"].add(name)
            return super().__getattribute__(name)

    watched = WatchedFitted(**{field.name: getattr(whole, field.name) for field in fields(whole)})

    class Watched(FairPATEClassifier):
        def __getattribute__(self, name: str) -> Any:
            read["model"].add(name)
            return super().__getattribute__(name)

        @property
        def fitted_(self) -> FittedModel:
            return watched

    model = Watched()
    for names in read.values():
        names.clear()
    assert ModelReport.of(model).student == whole.student_margin
    assert {name for name in read["model"] if not name.startswith("__")} == {"fitted_"}
    assert read["fitted"] & {"answers", "guarantee", "student_margin", "yardstick"}
    assert not read["fitted"] & {"student", "without_margin", "encoder", "numbers"}


def test_a_data_set_is_named_and_its_records_are_not_counted(hostile: Any) -> None:
    frame = pd.DataFrame({"age": range(977), "sex": ["F", "M", "M"] * 325 + ["F", "M"]})
    frame["repaid"] = ["no", "yes"] * 488 + ["yes"]
    data = Dataset.from_frame(frame, label="repaid", sensitive="sex", name="loans")
    report = ModelReport.of(hostile.model, dataset=data)
    assert dict(report.facts)["Label"] == "repaid"
    assert report.title == "FairPATEClassifier trained on loans"
    assert "977" not in str(report.facts)


def test_facts_of_another_kind_are_refused(hostile: Any) -> None:
    with pytest.raises(TypeError, match=r"dataset must be a Dataset or a mapping.*got str\. Write"):
        ModelReport.of(hostile.model, dataset="adult")


def test_a_model_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ModelReport.of(FairPATEClassifier())


@dataclass(frozen=True)
class Brought:
    """Settings that hold data."""

    votes: Any
    threshold: float = 0.5
    key: bytes = field(default=b"secret", repr=False)


def test_settings_never_print_the_contents_of_data() -> None:
    secret = np.array([[31337, 31337]])
    shown = [
        describe(Brought(secret)),
        describe(secret),
        describe(secret.tolist()),
        describe(pd.DataFrame(secret)),
        describe({"votes": 31337}),
        describe(LogisticRegression(class_weight={31337: 1.0}, C=7.0)),
        describe([LogisticRegression]),
        describe(np.random.default_rng(31337)),
    ]
    assert not any("31337" in words or "secret" in words for words in shown)
    assert shown[0] == "Brought(votes=an ndarray of shape (1, 2), threshold=0.5)"
    assert shown[5] == "LogisticRegression(C=7.0, class_weight=dict)"


def test_all_settings_are_there_with_plain_values(hostile: Any) -> None:
    shown = dict(ModelReport.of(hostile.model).settings)
    assert set(shown) == set(hostile.model.get_params(deep=False))
    assert shown["budget"] == "Budget(epsilon=6.0, delta=1e-05)"
    assert shown["n_teachers"] == "60"
    assert shown["student"] == "LogisticRegression(C=0.3)"
    assert "sigma_check=20.0" in shown["mechanism"]


# -- the same after loading, and in a terminal


def test_a_loaded_model_reports_what_the_fitted_one_does(protected: Any, tmp_path: Any) -> None:
    fitted = ModelReport.of(protected.model, measured=protected.measured)
    saved = ModelReport.of(load(protected.model.save(tmp_path / "m")), measured=protected.measured)
    assert summary_lines(saved) == summary_lines(fitted)
    assert saved.settings == fitted.settings
    assert saved.spending == fitted.spending
    assert saved.guarantee == fitted.guarantee
    assert saved.columns == fitted.columns == ("a", "b", "<i>c</i>")
    assert fitted.disparity is not None
    assert saved.disparity is not None
    assert np.array_equal(saved.disparity.gaps, fitted.disparity.gaps)


def test_the_summary_says_what_matters_first(hostile: Any, plain: Any) -> None:
    lines = summary_lines(ModelReport.of(hostile.model, measured=hostile.measured))
    assert lines[1].startswith("NOT PRIVATE. Nothing is promised")
    assert any(line.startswith("Claim: NOT PRIVATE") for line in lines)
    assert any("not covered by the guarantee" in line for line in lines)
    assert lines[-1] == "The student is not bound by the margin."
    quiet = summary_lines(ModelReport.of(plain.model))
    assert quiet[1] == f"Claim: {plain.model.guarantee_}"
    assert not any("Gap of the answered set" in line for line in quiet)


def test_the_summary_tells_how_a_bound_student_stands(protected: Any, shares: Any) -> None:
    for case in (protected, shares):
        report = ModelReport.of(case.model)
        assert report.student is not None
        last = summary_lines(report)[-1]
        assert last.startswith(
            f"Gap of the student on the public rows: {case.model.public_gap_:.4f}"
        )
        assert last.endswith("On new rows it is not bound.")


def test_a_name_cannot_move_the_cursor_of_a_terminal(plain: Any) -> None:
    report = ModelReport.of(plain.model, title="\x1b[2Jgone\r")
    assert summary_lines(report)[0] == "\ufffd[2Jgone\ufffd"


@pytest.mark.data
def test_adult_is_reported_as_it_was_measured(real_data: Callable[..., Dataset]) -> None:
    data = real_data("adult")
    split = data.split()
    model = FairPATEClassifier(
        Budget(epsilon=3.0, delta=1e-5),
        DemographicParity(margin=0.05),
        n_teachers=100,
        random_state=0,
    ).fit(
        split.private.X,
        split.private.y,
        X_public=split.public.X,
        sensitive_features_public=split.public.groups,
    )
    predicted = model.predict(split.test.X)
    measured = fairness_report(
        split.test.y.to_numpy(), predicted, split.test.groups, classes=model.classes_, positive=1
    )
    report = ModelReport.of(model, dataset=data, measured=measured)
    assert report.measured is not None
    assert report.measured.error is not None
    assert report.measured.error.value == pytest.approx((predicted != split.test.y).mean())
    assert report.disparity is not None
    assert report.disparity.kept
    assert report.outcomes.sizes.tolist() == [
        int((split.public.groups == name).sum()) for name in model.groups_
    ]


def test_a_model_no_better_than_the_majority_class_is_announced_first(shares: Any) -> None:
    truth = np.repeat([0, 1], [60, 40])
    useless = fairness_report(truth, np.zeros(100, int), list("ab") * 50)
    good = fairness_report(truth, truth, list("ab") * 50)
    for case, measured, announced in ((shares, useless, True), (shares, good, False)):
        report = ModelReport.of(case.model, measured=measured)
        assert any("no better than always predicting" in w for w in report.warnings) == announced
        page = render(report)
        assert ("no better than always predicting" in page) == announced
        assert "always predicting &#39;False&#39;: 0.400" in page


def test_without_test_rows_the_released_answers_are_the_yardstick(shares: Any) -> None:
    report = ModelReport.of(shares.model)
    assert report.yardstick is shares.model.public_yardstick_
    page, error = render(report), report.yardstick.error
    assert "Error by the released answers" in page
    assert f"95% interval {error.low:.3f} to {error.high:.3f}; always predicting" in page


def test_a_plan_that_was_charged_together_says_which_noise_its_sums_carry() -> None:
    line = Charge(
        purpose="counts", mechanism="SetAside()", n_uses=1, mu_squared=0.1, share=0.5, n_open=0
    )
    assert "Gaussian noise" in line.words

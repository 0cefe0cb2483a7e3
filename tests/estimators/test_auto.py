"""``AutoClassifier`` and its decision rule: public numbers and wishes alone, as the page says."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import evenhand
from evenhand import Budget, DemographicParity, DPSGDClassifier, EqualizedOdds, _words
from evenhand.datasets import Schema
from evenhand.estimators.auto import AutoClassifier
from evenhand.estimators.choosing import Case, choose
from evenhand.estimators.choosing_rules import MARGINS, PROTECTED, RULES, TEACHERS
from evenhand.estimators.group_thresholds import BY_PROBABILITIES
from evenhand.fairness import ErrorParity, FairnessKind
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.true_positive_rate import TruePositiveRateParity
from evenhand.methods import METHODS
from evenhand.privacy import Ledger, SeededNoise
from evenhand.report import write_report
from evenhand.teachers import LogisticTeachers, OutsideVotes

PAGE = Path(__file__).parents[2] / "docs" / "choosing.md"
BUDGET = Budget(epsilon=8.0, delta=1e-5)
TO_TEACHERS = ("several_owners", "units", "account", "streams", "for_teachers")
BOTH = st.booleans()
CASES = st.builds(
    Case,
    protect=st.sampled_from(PROTECTED),
    **{f.name: BOTH for f in fields(Case) if f.name != "protect"},
)


def rows_of(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of the page, without its head."""
    _, _, below = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    table = re.search(r"(^\|.*\n)+", below, re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_page_has_the_rules_of_the_code_in_their_order() -> None:
    word = {name: f"`{name}`" for name in METHODS} | {
        TEACHERS: "`fair-shares`; `pate` without a margin"
    }
    for heading, rules in (
        ("## What method `auto` takes", RULES),
        ("## Where `auto` keeps the margin", MARGINS),
    ):
        expected = [
            [str(i), rule.when, word.get(rule.takes, rule.takes), rule.why]
            for i, rule in enumerate(rules, start=1)
        ]
        assert rows_of(heading) == expected


@given(case=CASES)
def test_the_method_can_do_all_that_the_case_asks_for(case: Case) -> None:
    case = replace(case, margin=case.margin or case.protect == "attribute")
    choice = choose(case)
    margin = case.margin and not choice.thresholds
    spec = choice.spec
    assert spec.private
    assert spec.claim_holds
    assert spec.protects == case.protect
    assert choice.method in choice.said
    if case.protect == "attribute":
        return
    assert not margin or "demographic-parity" in spec.notions
    assert case.of_decisions_alone or not margin or "equalized-odds" in spec.notions
    assert spec.accepts("calibration") or not (margin and (case.public_labels or case.confident))
    assert spec.teachers or case.gradients
    assert not (case.several_owners or case.units or case.streams) or spec.teachers
    assert not case.account or "ledger" in spec.reads
    assert case.scaled or spec.draws_rows
    assert case.private_groups or not margin or spec.public_groups


@given(case=CASES)
def test_thresholds_are_taken_only_where_they_can_be_set_and_used(case: Case) -> None:
    choice = choose(case)
    rule = choice.margin_rule
    assert (rule is not None) == case.margin
    more = choice.counts + (choice.tightening > 0)
    assert len(choice.sentences) == (1 if rule in (None, MARGINS[0]) else 2 + more)
    assert (choice.tightening > 0) == (choice.thresholds and not case.confident)
    if rule is None or not choice.thresholds:
        return
    assert choice.spec.accepts("group_thresholds")
    assert case.group_at_prediction
    assert case.two_classes
    assert case.of_rates
    by_labels = case.of_true_classes and case.public_labels
    assert case.public_groups or by_labels or choice.counts
    if choice.counts:
        assert choice.method == "dpsgd"
        assert case.private_groups
        assert case.pays_for_counts
        assert case.public_groups or not case.confident
    assert case.public_labels or not (case.of_true_classes and case.confident)
    assert ("own probabilities" in rule.why) == (case.of_true_classes and not case.public_labels)


@given(case=CASES, wish=st.sampled_from(TO_TEACHERS))
def test_a_wish_for_teachers_never_leads_away_from_them(case: Case, wish: str) -> None:
    more = choose(replace(case, **{wish: True})).spec
    assert more.teachers
    for freer in ("gradients", "scaled"):  # what makes room for DP-SGD never asks for teachers
        if not choose(replace(case, **{freer: False})).spec.teachers:
            assert not choose(replace(case, **{freer: True})).spec.teachers


@given(case=CASES)
def test_only_a_rule_that_holds_decides_and_every_rule_decides_somewhere(case: Case) -> None:
    choice = choose(case)
    in_training = replace(case, margin=case.margin and not choice.thresholds)
    for rule, rules, read in (
        (choice.rule, RULES, in_training),
        (choice.margin_rule, MARGINS, case),
    ):
        if rule is not None:
            assert rule.holds(read)
            assert not any(other.holds(read) for other in rules[: rules.index(rule)])


@given(case=CASES, fact=st.sampled_from(["two_classes", "pays_for_counts"]))
def test_classes_and_epsilon_choose_a_method_only_by_where_the_margin_sits(
    case: Case, fact: str
) -> None:
    one, other = (choose(replace(case, **{fact: value})) for value in (False, True))
    assert one.thresholds != other.thresholds or one.method == other.method


DECIDES: dict[str, dict[str, Any]] = {
    "the sensitive attribute alone is to be protected": {"protect": "attribute"},
    "the records stay with several owners": {"several_owners": True},
    "no gradients: trees, rules, vendors' models, people": {"gradients": False},
    "a person, or another unit, may have several records": {"units": True},
    "the run is charged to an account that other runs share": {"account": True},
    "the rows stream from files": {"streams": True},
    "the margin in training is about true classes": {"of_decisions_alone": False},
    "training shall keep a margin, and the groups of the private rows are not known": {
        "private_groups": False
    },
    "neither public rows nor declared bounds scale the columns": {"scaled": False},
    "something is asked for that only teachers have": {"for_teachers": True},
    "otherwise": {},
}


def test_each_line_of_the_rule_decides_a_case() -> None:
    assert {choose(Case(**facts)).rule.when: facts for facts in DECIDES.values()} == DECIDES
    assert set(DECIDES) == {rule.when for rule in RULES}


OF_TRUTH: dict[str, Any] = {"of_true_classes": True, "of_decisions_alone": False}
SITS: dict[str, dict[str, Any]] = {
    "the group is not to be seen at prediction": {"group_at_prediction": False},
    "the sensitive attribute alone is to be protected": {"protect": "attribute"},
    "the margin is about scores": {"of_rates": False},
    "more than two classes": {"two_classes": False},
    "the margin is about true classes, and public rows have labels and groups": {
        **OF_TRUTH,
        "public_labels": True,
        "public_groups": False,
    },
    "no public rows have known groups, and no noisy counts of scores stand for them": {
        **OF_TRUTH,
        "public_groups": False,
    },
    "the margin is about true classes, with a confidence": {**OF_TRUTH, "confident": True},
    "the margin is about true classes": OF_TRUTH,
    "otherwise": {"confident": True},
}


def test_each_line_of_where_the_margin_sits_decides_a_case() -> None:
    found = {}
    for facts in SITS.values():
        rule = choose(Case(**{"group_at_prediction": True, **facts})).margin_rule
        assert rule is not None
        found[rule.when] = facts
    assert found == SITS
    assert set(SITS) == {rule.when for rule in MARGINS}


def people(n: int = 500, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += groups == "a"
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) / 2 > 0.5, "yes", "no")
    return X, y, groups


X, Y, GROUPS = people(900)
PRIVATE, PUBLIC = slice(0, 600), slice(600, 900)
MARGIN = DemographicParity(margin=0.1)
OF_PRIVATE = {"sensitive_features": GROUPS[PRIVATE]}
OF_PUBLIC = {"X_public": X[PUBLIC], "sensitive_features_public": GROUPS[PUBLIC]}
BOUNDS = Schema.declared({f"x{i}": {"bounds": (-4, 4)} for i in range(3)})
VOTES = OutsideVotes(np.tile((X[PUBLIC, 0] > 0).astype(int), (30, 1)))


def fitted(arguments: dict[str, Any], rows: dict[str, Any]) -> AutoClassifier:
    return AutoClassifier(BUDGET, random_state=0, **arguments).fit(X[PRIVATE], Y[PRIVATE], **rows)


CHOSEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("DPSGDClassifier", {"fairness": MARGIN}, {**OF_PRIVATE, **OF_PUBLIC}),
    ("DPSGDClassifier", {"schema": BOUNDS}, {}),
    ("DPSGDClassifier", {"public_fraction": 0.3}, {}),
    ("FairSharesClassifier", {"fairness": MARGIN}, OF_PUBLIC),
    ("FairSharesClassifier", {"fairness": MARGIN}, OF_PRIVATE),
    ("PATEClassifier", {}, {}),
    ("PATEClassifier", {}, {"X_public": X[PUBLIC], "unit_ids": np.arange(600) // 2}),
    ("PATEClassifier", {"gradients": False}, {"X_public": X[PUBLIC]}),
    ("PATEClassifier", {"teachers": LogisticTeachers(C=1.0)}, {"X_public": X[PUBLIC]}),
    (
        "FairSharesClassifier",
        {"fairness": EqualizedOdds(margin=0.2)},
        {**OF_PRIVATE, **OF_PUBLIC},
    ),
    (
        "DPSGDClassifier",
        {"fairness": DemographicParity(margin=0.3, confidence=0.9)},
        {**OF_PRIVATE, **OF_PUBLIC},
    ),
    ("SFPATEClassifier", {"fairness": MARGIN, "protect": "attribute"}, OF_PRIVATE),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "arguments", "rows"), CHOSEN)
def test_a_fit_takes_the_method_that_the_rule_says_and_keeps_why(
    name: str, arguments: dict[str, Any], rows: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted(arguments, rows)
    assert type(model.model_).__name__ == model.fitted_.method == name
    assert model.choice_.spec.estimator is type(model.model_)
    assert model.choices_[0] == model.choice_.said
    assert model.guarantee_.public[-1].startswith(
        f"the choice of the method {model.choice_.method}"
    )
    again = evenhand.load(model.save(tmp_path / "model"))
    assert again.choices_ == model.choices_
    assert again.guarantee_ == model.guarantee_
    assert np.array_equal(again.predict(X[PUBLIC]), model.predict(X[PUBLIC]))
    write_report(model, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert model.choice_.rule.why.replace("'", "&#39;") in page


def test_owners_who_have_voted_already_are_teachers() -> None:
    model = fitted({"teachers": VOTES}, {"X_public": X[PUBLIC]})
    assert type(model.model_).__name__ == "PATEClassifier"
    assert model.choice_.rule.when == "the records stay with several owners"


def test_an_account_is_charged_by_teachers() -> None:
    account = Ledger(Budget(epsilon=20.0, delta=1e-5), unit="record", neighbors="replace one")
    model = fitted({}, {"X_public": X[PUBLIC], "ledger": account})
    assert type(model.model_).__name__ == "PATEClassifier"
    assert account.spent > 0


def test_a_group_that_may_be_seen_has_a_threshold_of_its_own(tmp_path: Path) -> None:
    arguments = {"fairness": MARGIN, "group_at_prediction": True}
    model = fitted(arguments, OF_PUBLIC)
    assert model.fairness_kind_ is FairnessKind.THRESHOLDS
    assert model.fitted_.core.method == "DPSGDClassifier"
    said = model.predict(X[PUBLIC], sensitive_features=GROUPS[PUBLIC], random_state=0)
    again = evenhand.load(model.save(tmp_path / "model"))
    told = again.predict(X[PUBLIC], sensitive_features=GROUPS[PUBLIC], random_state=0)
    assert np.array_equal(told, said)
    assert again.fitted_.core.choices[0] == model.choice_.said
    with pytest.raises(ValueError, match="needs the group of each row"):
        model.predict(X[PUBLIC])


def test_counts_of_scores_are_bought_where_they_help_and_stand_for_public_rows() -> None:
    arguments = {"fairness": MARGIN, "group_at_prediction": True}
    both = fitted(arguments, {**OF_PUBLIC, **OF_PRIVATE})
    assert both.margin_source_ == "noisy counts"
    assert both.choices_[2].startswith("The scores of the private rows are counted by group")
    alone = fitted({**arguments, "schema": BOUNDS}, OF_PRIVATE)
    assert alone.margin_source_ == "noisy counts"
    assert alone.model_.model_.score_counts_.shape == (2, 20)
    rates = [
        (alone.predict(X[own], sensitive_features=GROUPS[own], random_state=0) == "yes").mean()
        for own in (np.flatnonzero(z == GROUPS) for z in "ab")
    ]
    # Of 900 rows, two rates of some 450: five standard errors, and the margin.
    assert abs(rates[0] - rates[1]) < 0.1 + 5 * 0.034
    for changes, rows in (
        ({"score_counts": False}, {**OF_PUBLIC, **OF_PRIVATE}),
        ({"budget": Budget(epsilon=0.5, delta=1e-5)}, {**OF_PUBLIC, **OF_PRIVATE}),
        ({}, OF_PUBLIC),  # groups of private rows are not known
    ):
        given = {"budget": BUDGET, "random_state": 0, **arguments, **changes}
        model = AutoClassifier(**given).fit(X[PRIVATE], Y[PRIVATE], **rows)
        assert model.margin_source_ == "public rows"
        assert len(model.score_counts_ if "score_counts_" in vars(model) else []) == 0
    trained = fitted({**arguments, "score_counts": False, "schema": BOUNDS}, OF_PRIVATE)
    assert trained.fairness_kind_ is FairnessKind.WEIGHTS  # by nothing else can thresholds be set


KNOWN = slice(600, 800)
OF_KNOWN = {
    "X_calibration": X[KNOWN],
    "y_calibration": Y[KNOWN],
    "sensitive_features_calibration": GROUPS[KNOWN],
}
SEEN = {"group_at_prediction": True}


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
@pytest.mark.parametrize(
    "fairness",
    [EqualizedOdds(margin=0.02), ErrorParity(margin=0.02), TruePositiveRateParity(margin=0.02)],
    ids=lambda notion: notion.name,
)
@pytest.mark.parametrize("labelled", [True, False])
def test_thresholds_keep_every_notion_of_decisions_by_labels_or_by_probabilities(
    fairness: RateNotion, labelled: bool
) -> None:
    rows = {**OF_PUBLIC, **OF_KNOWN} if labelled else OF_PUBLIC
    model = fitted({"fairness": fairness, **SEEN}, rows)
    assert model.fitted_.core.method == "DPSGDClassifier"
    assert model.choices_[:3] == model.choice_.sentences
    assert model.choices_[1].startswith("The margin is kept at thresholds by group: ")
    assert "inside the margin by one standard error" in model.choices_[2]
    assert model.margin_source_ == ("calibration rows" if labelled else "own probabilities")
    assert (BY_PROBABILITIES in model.guarantee_.warnings) == (not labelled)
    X_rows, y_rows, groups = OF_KNOWN.values()
    by_hand = model.model_.model_.with_group_thresholds(
        *((X_rows, groups) if labelled else OF_PUBLIC.values()),
        fairness=fairness,
        y_public=y_rows if labelled else None,
        tightening=1.0,
    )
    assert model.held_margin_ == by_hand.held_margin_ < fairness.margin
    assert model.thresholds_ == by_hand.thresholds_


def test_a_confidence_about_true_classes_needs_labels_and_takes_thresholds_with_them() -> None:
    arguments = {"fairness": EqualizedOdds(margin=0.5, confidence=0.9), **SEEN}
    model = fitted(arguments, {"X_public": X[PUBLIC], **OF_KNOWN})
    assert model.cross_fitted_ is not None
    with pytest.raises(ValueError, match="Give X_calibration, y_calibration and"):
        fitted(arguments, OF_PUBLIC)


def test_calibration_rows_that_thresholds_would_not_read_are_refused_by_their_notion() -> None:
    model = AutoClassifier(BUDGET, MARGIN, **SEEN)
    rows = {"sensitive_features": GROUPS[PRIVATE], **CALIBRATED, **FRAMED}
    with pytest.raises(ValueError, match="DemographicParity is about predictions alone, so"):
        model.fit(FRAME[PRIVATE], Y[PRIVATE], **rows, progress=_no_step)


def test_rows_on_which_no_threshold_can_be_set_are_refused_before_anything_is_spent() -> None:
    arguments = {"fairness": EqualizedOdds(margin=0.1), "schema": BOUNDS, **SEEN}
    one_class = OF_KNOWN | {"y_calibration": np.full(200, "yes")}
    for change, words in (
        ({"y_calibration": None}, "y_calibration is missing. Pass all three"),
        (one_class, "less than one record of 'a' among class 'no'"),
        ({"y_calibration": np.full(200, "maybe")}, "which is not among the classes"),
    ):
        model = AutoClassifier(BUDGET, **arguments)
        with pytest.raises(ValueError, match=words):
            model.fit(X[PRIVATE], Y[PRIVATE], **{**OF_KNOWN, **change}, progress=_no_step)


FRAME = pd.DataFrame(X, columns=["u", "v", "w"])
SURE = {"fairness": DemographicParity(margin=0.3, confidence=0.9)}
FRAMED = {"X_public": FRAME[PUBLIC], "sensitive_features_public": GROUPS[PUBLIC]}
CALIBRATED = {**OF_KNOWN, "X_calibration": FRAME[KNOWN]}
OF_PRIVATE_ROWS = {
    "X_calibration": FRAME[:300],
    "y_calibration": Y[:300],
    "sensitive_features_calibration": GROUPS[:300],
}
RARE = np.where(np.arange(900) < 200, "c", GROUPS)


@pytest.mark.parametrize(
    ("arguments", "rows", "words"),
    [
        ({}, {**FRAMED, "sensitive_features_public": GROUPS[PUBLIC][:-4]}, "one row each"),
        (
            {"score_counts": False},
            {**FRAMED, "sensitive_features_public": ["a"] * 300},
            "one group only",
        ),
        (
            {"score_counts": False},
            {**FRAMED, "sensitive_features": RARE[PRIVATE]},
            r"The private rows have the group \(not shown\), and .* set on do not",
        ),
        (
            SURE,
            {"X_public": FRAME[600:608], "sensitive_features_public": list("aabbaabb")},
            "two groups with 5 rows or more",
        ),
        ({}, {**FRAMED, "X_calibration": FRAME[600:799]}, "one row each"),
        ({}, {"X_calibration": FRAME[KNOWN].rename(columns={"u": "z"})}, "Feature names"),
        ({}, {"X_calibration": FRAME[KNOWN].assign(u="high")}, "must hold numbers"),
        (
            {},
            {"sensitive_features_calibration": np.char.upper(GROUPS[KNOWN])},
            r"group \(not shown\), and",
        ),
        ({}, OF_PRIVATE_ROWS, "are the same as private rows"),
    ],
)
def test_what_thresholds_cannot_be_set_on_is_refused_before_training_and_the_old_fit_stays(
    arguments: dict[str, Any], rows: dict[str, Any], words: str
) -> None:
    by_labels = any(name.endswith("calibration") for name in rows)
    given = {"sensitive_features": GROUPS[PRIVATE], **rows}
    if by_labels:
        given = {**CALIBRATED, **FRAMED, **given}
        arguments = {"fairness": EqualizedOdds(margin=0.1), **arguments}
    model = fitted({"fairness": MARGIN, **SEEN}, OF_PUBLIC)
    model.set_params(**{"fairness": MARGIN, **arguments})
    before = model.model_
    with pytest.raises(ValueError, match=words):
        model.fit(FRAME[PRIVATE], Y[PRIVATE], **given, progress=_no_step)
    assert model.model_ is before


@pytest.mark.parametrize(
    ("arguments", "y", "words"),
    [
        ({"budget": 1.0}, Y, "budget must be a Budget"),
        ({"fairness": "demographic parity"}, Y, "fairness must be a DemographicParity"),
        ({"group_at_prediction": "no"}, Y, "group_at_prediction must be true or false"),
        ({"gradients": "no"}, Y, "gradients must be true or false"),
        ({"score_counts": "yes"}, Y, "score_counts must be true or false"),
        ({"score_counts": True}, Y, "nothing would read the counts"),
        ({}, [None, *Y[1:]], "y has no label in row"),
        ({}, [pd.NA, *(Y[1:] == "yes")], "y has no label in row"),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    arguments: dict[str, Any], y: Any, words: str
) -> None:
    model = AutoClassifier(BUDGET, MARGIN).set_params(**arguments)
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(X[PRIVATE], y[PRIVATE], **OF_PUBLIC, **OF_PRIVATE)
    with pytest.raises(TypeError, match="score_counts must be true or false"):
        DPSGDClassifier(BUDGET, score_counts="yes").fit(X, Y, X_public=X[PUBLIC])


def test_frames_of_polars_have_thresholds_on_the_rows_that_are_set_aside() -> None:
    arguments = {"public_fraction": 0.4, "fairness": MARGIN, **SEEN, "noise": SeededNoise(0)}
    polars = pytest.importorskip("polars")
    groups = RARE[PRIVATE].copy()
    groups[:-1][groups[:-1] == "c"] = "a"
    groups[0] = "c"  # perhaps not among the rows that are set aside
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # group c has one row, or none
        model = AutoClassifier(BUDGET, **arguments).fit(
            polars.DataFrame({c: FRAME[c][PRIVATE].to_numpy() for c in FRAME}),
            Y[PRIVATE],
            sensitive_features=polars.Series("z", groups.tolist()),
        )
    assert model.groups_ == ("a", "b", "c")


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_thresholds_are_set_on_the_rows_that_are_set_aside_and_on_no_other() -> None:
    # By hand: the same thresholds on these rows alone; on all rows they are others.
    margin = DemographicParity(margin=0.02)
    for more in ({}, {"gradients": False}):
        model = fitted({"public_fraction": 0.4, "fairness": margin, **SEEN, **more}, OF_PRIVATE)
        inside = model.model_.model_
        aside = inside.rows_set_aside_
        assert 0.2 * 600 < len(np.unique(aside)) == len(aside) < 0.6 * 600
        how: Any = {"fairness": margin, "tightening": 1.0}
        by_hand = inside.with_group_thresholds(X[aside], GROUPS[aside], **how)
        assert model.thresholds_.steps == by_hand.thresholds_.steps
        on_all = inside.with_group_thresholds(X[PRIVATE], GROUPS[PRIVATE], **how)
        assert model.thresholds_.steps != on_all.thresholds_.steps
        said = f"features and groups of the {len(aside)} public rows that set the thresholds"
        assert said in model.guarantee_.public[-1]
        uncovered = [line for line in model.guarantee_.not_covered if "groups of" in line]
        assert len(uncovered) == 1
        assert re.search(f"groups of (the )?{len(aside)} rows .*set aside", uncovered[0])
        by_rule = inside.with_blind_rule(
            X[aside], GROUPS[aside], fairness=MARGIN, y_public=Y[aside]
        )
        given_away = f"the groups and labels of the {len(aside)} rows that were set aside as public"
        assert by_rule.guarantee_.not_covered[0] == given_away
        elsewhere = inside.with_blind_rule(X[PUBLIC], GROUPS[PUBLIC], fairness=MARGIN)
        assert elsewhere.guarantee_.not_covered == inside.guarantee_.not_covered
        assert pickle.loads(pickle.dumps(inside)).rows_set_aside_ is None
    sure = replace(margin, confidence=0.9, margin=0.5)
    held = fitted({"public_fraction": 0.4, "fairness": sure}, OF_PRIVATE)
    assert held.margin_supported_ == 0.5
    assert held.choice_.method == "dpsgd"


def _no_step(stage: str, done: int, total: int) -> None:
    raise AssertionError(f"{stage} had begun")


def test_three_classes_have_no_thresholds_and_the_margin_sits_in_the_weights() -> None:
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 1.0])
    model = AutoClassifier(BUDGET, MARGIN, group_at_prediction=True, random_state=0)
    model.fit(X[PRIVATE], y[PRIVATE], **OF_PRIVATE, **OF_PUBLIC)
    assert model.fairness_kind_ is FairnessKind.WEIGHTS
    assert model.choices_[1] == (
        "The margin is kept in training: more than two classes; a threshold parts two classes."
    )


def test_what_is_chosen_does_not_depend_on_a_private_row() -> None:
    arguments, rows = {"fairness": MARGIN}, {**OF_PRIVATE, **OF_PUBLIC}
    first = fitted(arguments, rows)
    other = AutoClassifier(BUDGET, MARGIN, random_state=0)
    other.fit(-5 * X[PRIVATE], np.roll(Y[PRIVATE], 7), **rows)
    assert other.choice_ == first.choice_


def test_an_unfitted_one_has_no_fitted_attributes_and_can_be_cloned() -> None:
    model = AutoClassifier(BUDGET, MARGIN, gradients=False)
    assert not hasattr(model, "guarantee_")
    assert clone(model).get_params()["gradients"] is False
    assert model.set_params(budget__epsilon=1.0).budget == Budget(epsilon=1.0, delta=1e-5)
    assert _words.AUTO == "auto"

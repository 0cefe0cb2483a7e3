"""``AutoClassifier`` and its decision rule: public numbers and wishes alone, as the page says."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import evenhand
from evenhand import Budget, DemographicParity, EqualizedOdds, _words
from evenhand.datasets import Schema
from evenhand.estimators.auto import PROTECTED, RULES, TEACHERS, AutoClassifier, Case, choose
from evenhand.fairness import FairnessKind
from evenhand.privacy import Ledger
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
    word = {TEACHERS: "`fair-shares`; `pate` without a margin"}
    expected = [
        [str(i), rule.when, word.get(rule.method, f"`{rule.method}`"), rule.why]
        for i, rule in enumerate(RULES, start=1)
    ]
    assert rows_of("## What method `auto` takes") == expected


@given(case=CASES)
def test_the_method_can_do_all_that_the_case_asks_for(case: Case) -> None:
    case = replace(case, margin=case.margin or case.protect == "attribute")
    choice = choose(case)
    spec = choice.spec
    assert spec.private
    assert spec.claim_holds
    assert spec.protects == case.protect
    assert choice.method in choice.said
    if case.protect == "attribute":
        return
    assert not case.margin or "demographic-parity" in spec.notions
    assert case.of_decisions_alone or not case.margin or "equalized-odds" in spec.notions
    assert spec.teachers or case.gradients
    assert not (case.several_owners or case.units or case.streams) or spec.teachers
    assert not case.account or "ledger" in spec.reads
    assert case.scaled or spec.draws_rows
    assert case.private_groups or not case.margin or spec.public_groups


@given(case=CASES, wish=st.sampled_from(TO_TEACHERS))
def test_a_wish_for_teachers_never_leads_away_from_them(case: Case, wish: str) -> None:
    more = choose(replace(case, **{wish: True})).spec
    assert more.teachers
    for freer in ("gradients", "scaled"):  # what makes room for DP-SGD never asks for teachers
        if not choose(replace(case, **{freer: False})).spec.teachers:
            assert not choose(replace(case, **{freer: True})).spec.teachers


@given(case=CASES)
def test_only_a_rule_that_holds_decides_and_every_rule_decides_somewhere(case: Case) -> None:
    rule = choose(case).rule
    assert rule.holds(case)
    assert not any(other.holds(case) for other in RULES[: RULES.index(rule)])


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
        "FairSharesClassifier",
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


def test_three_classes_have_no_thresholds_and_the_margin_sits_in_the_weights() -> None:
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 1.0])
    model = AutoClassifier(BUDGET, MARGIN, group_at_prediction=True, random_state=0)
    model.fit(X[PRIVATE], y[PRIVATE], **OF_PRIVATE, **OF_PUBLIC)
    assert model.fairness_kind_ is FairnessKind.WEIGHTS


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

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from claims import a_claim
from hypothesis import given
from hypothesis import strategies as st

from evenhand.privacy import attribute_of
from evenhand.privacy.trade_off import TradeOff
from evenhand.report import claim

CLAIM = a_claim(
    noise="exact noise", public=("all settings",), not_covered=("the choice of settings",)
)


@given(st.floats(1e-3, 200))
def test_the_factor_is_rounded_up_because_it_is_a_bound(epsilon: float) -> None:
    words = claim.factor(epsilon).replace(",", "")
    shown = 10.0 ** int(words[3:]) if words.startswith("10^") else float(words)
    exact = math.exp(epsilon)
    assert shown >= exact * (1 - 1e-12)
    assert shown <= max(exact * 1.1, exact + 0.011) or epsilon > 20


def test_a_record_is_not_said_to_have_records_of_its_own() -> None:
    compared = dict(claim.meaning(replace(CLAIM, neighbors="add or remove one")))
    assert "one record is in the private data or is not" in compared["What is compared"]


@pytest.mark.parametrize(
    ("neighbors", "words"),
    [
        ("replace one", "one patient in the private data is replaced by any other"),
        ("add or remove one", "one patient, with all of its records, is in the private data or"),
    ],
)
def test_each_relation_is_told_for_its_own_unit(neighbors: str, words: str) -> None:
    guarantee = replace(CLAIM, unit="patient", neighbors=neighbors)
    terms = dict(claim.meaning(guarantee))
    assert words in terms["What is compared"]
    assert "several records" not in terms["What is compared"]


@pytest.mark.parametrize(
    ("neighbors", "words"),
    [
        ("change one group label", "the group label of one patient is one or another"),
        ("change one group and class label", "the group label and the class label of one patient"),
    ],
)
def test_a_claim_about_labels_says_that_nothing_else_is_protected(neighbors, words) -> None:
    unit = attribute_of("patient", and_class_label="class" in neighbors)
    terms = dict(claim.meaning(replace(CLAIM, unit=unit, neighbors=neighbors)))
    assert words in terms["What is compared"]
    assert "nothing else about the patient is protected" in terms["What is compared"]
    assert any(f"the change of the {unit} makes" in words for words in terms.values())
    assert "several records" not in terms["What is compared"]


def test_a_claim_about_records_says_that_people_with_several_are_not_covered_whole() -> None:
    assert "not for all together" in dict(claim.meaning(CLAIM))["What is compared"]


def test_the_terms_carry_the_numbers_of_the_claim() -> None:
    terms = dict(claim.meaning(CLAIM))
    assert "at most 20.1 times" in terms["Epsilon = 3"]
    assert "1 in 100,000" in terms["Delta = 1e-05"]
    assert "at most 95.3 %" in terms["What an attacker gains"]
    assert terms["Noise"] == "Exact noise."
    exact = dict(claim.meaning(replace(CLAIM, delta=0.0)))
    assert exact["Delta = 0"] == "The bound holds without exception."


def test_what_the_ledger_says_more_of_an_attacker_is_said() -> None:
    allowed = TradeOff(epsilon=3.0, delta=1e-5, mu=0.5, slack=0.01)  # 0.5987 + 0.005
    assert "at most 60.4 %" in dict(claim.meaning(CLAIM, allowed))["What an attacker gains"]
    assert "at most 60.4 % of the time" in claim.gain(CLAIM, allowed)
    assert "at most 95.3 % of the time" in claim.gain(CLAIM)


def test_where_nothing_is_promised_the_reason_is_given() -> None:
    void = replace(CLAIM, holds=False)
    assert "its noise can be predicted (exact noise)" in claim.not_private(void)
    named = replace(CLAIM, holds=False, reason="the key was published")
    assert "anybody’s data: the key was published." in claim.not_private(named)

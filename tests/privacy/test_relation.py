"""A claim about one attribute can never be read, added or charged as one about the record."""

import pytest

from evenhand.privacy import Budget, FloatNoise, GNMax, Guarantee, Ledger, attribute_of
from evenhand.privacy.ledger_store import MemoryStore, OtherAccount
from evenhand.privacy.relation import (
    GROUP_AND_CLASS_LABEL,
    GROUP_LABEL,
    each,
    holder_of,
    is_attribute,
    words_of,
)
from evenhand.privacy.renyi import NEIGHBORS

ATTRIBUTE = attribute_of("person")
BUDGET = Budget(epsilon=1.0, delta=1e-5)


def claim(unit: str, neighbors: str) -> Guarantee:
    return Guarantee(
        epsilon=1.0,
        delta=1e-5,
        unit=unit,
        neighbors=neighbors,
        noise="exact discrete noise",
        accounting="exact",
        public=("the features and labels of all rows",),
        not_covered=(),
    )


def test_the_sentence_says_that_the_attribute_alone_is_protected() -> None:
    assert str(claim(ATTRIBUTE, GROUP_LABEL)).startswith(
        "The release is (1.0, 1e-05)-differentially private for the sensitive attribute of each "
        "person (neighbors: change the group label of one person), with"
    )


@pytest.mark.parametrize("neighbors", [GROUP_LABEL, GROUP_AND_CLASS_LABEL])
def test_a_whole_record_cannot_be_claimed_where_only_labels_change(neighbors: str) -> None:
    with pytest.raises(ValueError, match=r"unit='person' does not say so. Use unit='sensitive att"):
        claim("person", neighbors)
    with pytest.raises(ValueError, match=r"protects labels and nothing else of a record"):
        Ledger(BUDGET, unit="record", neighbors=neighbors)


@pytest.mark.parametrize("neighbors", ["replace one", "add or remove one"])
def test_an_attribute_cannot_be_claimed_where_whole_records_change(neighbors: str) -> None:
    with pytest.raises(ValueError, match=r"changes a whole person. Use neighbors='change one grou"):
        claim(ATTRIBUTE, neighbors)
    with pytest.raises(ValueError, match=r"is an attribute"):
        Ledger(BUDGET, unit=ATTRIBUTE, neighbors=neighbors)


def test_group_alone_is_not_group_and_class_label() -> None:
    both = attribute_of("person", and_class_label=True)
    assert both == "sensitive attribute and class label of one person"
    for unit, neighbors in ((ATTRIBUTE, GROUP_AND_CLASS_LABEL), (both, GROUP_LABEL)):
        with pytest.raises(ValueError, match="does not say so"):
            claim(unit, neighbors)
    with pytest.raises(ValueError, match="add up only for the same unit"):
        claim(ATTRIBUTE, GROUP_LABEL) + claim(both, GROUP_AND_CLASS_LABEL)


@pytest.mark.parametrize("other", ["record", "person"])
def test_attribute_and_record_do_not_add_up_and_both_are_named(other: str) -> None:
    attribute, record = claim(ATTRIBUTE, GROUP_LABEL), claim(other, "replace one")
    for one, two in ((attribute, record), (record, attribute)):
        with pytest.raises(ValueError, match="Privacy of an attribute alone is not") as refused:
            one + two
        assert repr(ATTRIBUTE) in str(refused.value)
        assert repr(other) in str(refused.value)


def test_a_ledger_of_records_pays_for_no_attribute_and_the_other_way_round() -> None:
    records = Ledger(BUDGET, noise=FloatNoise())
    attributes = Ledger(BUDGET, noise=FloatNoise(), unit=ATTRIBUTE, neighbors=GROUP_LABEL)
    with pytest.raises(ValueError, match=r"The ledger counts for replace one record, this run for"):
        records.require(ATTRIBUTE, GROUP_LABEL, "Open another account.")
    with pytest.raises(ValueError, match=r"is not privacy of the record. Open another account.$"):
        attributes.require("record", "replace one", "Open another account.")
    attributes.require(ATTRIBUTE, GROUP_LABEL, "")
    assert not records.entries


def test_an_account_is_not_opened_again_for_another_unit() -> None:
    store = MemoryStore()
    first = Ledger(BUDGET, noise=FloatNoise(), store=store, account="table")
    first.release(GNMax(sigma=40.0), [[10, 20]], purpose="labels")
    with pytest.raises(OtherAccount, match="unit"):
        Ledger(
            BUDGET,
            noise=FloatNoise(),
            store=store,
            account="table",
            unit=ATTRIBUTE,
            neighbors=GROUP_LABEL,
        )


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_every_relation_has_words_and_a_holder(neighbors: str) -> None:
    and_class = neighbors == GROUP_AND_CLASS_LABEL
    labels = neighbors in (GROUP_LABEL, GROUP_AND_CLASS_LABEL)
    unit = attribute_of("visitor", and_class_label=and_class) if labels else "visitor"
    assert is_attribute(unit) == labels
    assert holder_of(unit) == "visitor"
    assert words_of(unit, neighbors).endswith("one visitor")
    assert each(unit).endswith("each visitor")


def test_a_guarantee_of_an_attribute_survives_json() -> None:
    told = claim(ATTRIBUTE, GROUP_LABEL)
    assert Guarantee.from_dict(told.to_dict()) == told

"""Sensitive columns as groups: cut into ranges, merged where small, the same way everywhere."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.fairness import Grouping
from evenhand.fairness.grouping import MERGED, published_groups, ranges, refuse_many_values
from evenhand.fairness.groups import encode_groups

numbers = st.lists(st.integers(-50, 50), min_size=2, max_size=60)


@given(values=numbers, cuts=st.lists(st.integers(-40, 40), min_size=1, max_size=5, unique=True))
def test_a_value_is_in_the_range_that_its_edges_say(values: list[int], cuts: list[int]) -> None:
    cuts = sorted(cuts)
    found = list(Grouping(edges={"age": tuple(cuts)})(pd.Series(values, name="age")))
    names = ranges(cuts)
    for value, name in zip(values, found, strict=True):
        place = names.index(name)
        assert place == 0 or value >= cuts[place - 1]
        assert place == len(cuts) or value < cuts[place]


@given(values=numbers, n=st.integers(2, 6))
def test_counted_ranges_hold_about_as_many_public_rows_each(values: list[int], n: int) -> None:
    spread = pd.Series(np.random.default_rng(0).permutation(600) + 0.0, name="age")
    sizes = Grouping.of_public(spread, bins={"age": n})(spread).value_counts()
    assert len(sizes) == n
    assert sizes.max() - sizes.min() <= 2
    tied = pd.Series([*values, min(values) - 1, max(values) + 1] * 3, name="age")
    try:
        grouping = Grouping.of_public(tied, bins={"age": n})
    except ValueError:
        most = tied.value_counts().iloc[0]
        assert most * n >= len(tied)  # one value fills a whole range
        return
    assert len(grouping.edges["age"]) < n  # ties leave fewer, and no range is empty
    assert grouping(tied).nunique() == len(grouping.edges["age"]) + 1


def people() -> pd.DataFrame:
    sex = ["F"] * 60 + ["M"] * 40
    return pd.DataFrame({"sex": sex, "race": ["A"] * 55 + ["B"] * 5 + ["A"] * 38 + ["C"] * 2})


def test_small_groups_become_one_and_rows_never_seen_join_them() -> None:
    found = Grouping.of_public(people(), merge_small=10)
    assert found.merged == ("sex=F, race=B", "sex=M, race=C")
    assert found(people()).value_counts().to_dict() == {
        "sex=F, race=A": 55,
        "sex=M, race=A": 38,
        MERGED: 7,
    }
    new = pd.DataFrame({"sex": ["M", "F"], "race": ["B", "A"]})  # M, B is in no public row
    assert list(found(new)) == [MERGED, "sex=F, race=A"]
    assert encode_groups(found(new), names=encode_groups(found(people())).names).n_groups == 3


def test_nothing_small_changes_nothing() -> None:
    found = Grouping.of_public(people(), merge_small=2)
    assert not found
    assert encode_groups(found(people())).names == encode_groups(people()).names


def test_it_survives_json() -> None:
    frame = people().assign(age=np.arange(100))[["sex", "age"]]
    found = Grouping.of_public(frame, bins={"age": 3}, merge_small=30)
    again = Grouping.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again(frame).equals(found(frame))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Grouping(edges={"age": (3.0, 3.0)}), "finite numbers that rise"),
        (lambda: Grouping(edges={"age": ()}), "finite numbers that rise"),
        (lambda: Grouping(merged=("a",)), "merged and known belong together"),
        (lambda: Grouping.of_public(people(), merge_small=99), "the largest has 55 public rows"),
        (
            lambda: Grouping.of_public(people(), merge_small=5),
            r"'sex=M, race=C' \(2 public rows\) .* \(merge_small=6 merges the next",
        ),
        (lambda: Grouping.of_public(people().sex, merge_small=50), "Give more public rows of it"),
        (lambda: Grouping.of_public(people(), bins={"agge": 3}), "no sensitive column 'agge'"),
        (lambda: Grouping.of_public(people(), bins={"sex": 3}), "no numbers or are missing"),
        (lambda: Grouping.of_public(people(), bins={"sex": 1}), "at least 2|no numbers"),
        (lambda: Grouping()(["a"]), "from a pandas Series or DataFrame"),
    ],
)
def test_what_cannot_be_grouped_is_refused(make: Any, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        make()


def test_a_message_about_a_column_that_is_no_number_quotes_no_cell() -> None:
    with pytest.raises(ValueError, match="row 2, counted from 1") as raised:
        Grouping(edges={"age": (3.0,)})(pd.Series([1, "SECRET"], name="age"))
    assert "SECRET" not in str(raised.value)


def test_hundreds_of_values_are_refused_and_not_counted() -> None:
    ages = pd.Series(np.arange(60) / 2, name="age")
    with pytest.raises(ValueError, match=r"'age' has more than 50 values.*bins=age") as raised:
        refuse_many_values(ages, way_out="bins={name}")
    assert "60" not in str(raised.value)
    refuse_many_values(ages[:50], way_out="")
    with pytest.raises(ValueError, match="fewer categories"):
        refuse_many_values([f"c{i}" for i in range(60)], way_out="")


def test_combinations_that_occur_are_refused_where_they_would_be_people() -> None:
    # 40 values in each column, and nearly every row is the only one of its combination.
    rng = np.random.default_rng(0)
    two = pd.DataFrame(rng.integers(0, 40, (300, 2)), columns=["age", "town"])
    with pytest.raises(ValueError, match=r"'age', 'town' have more than 200 comb") as raised:
        published_groups(two)
    assert "300" not in str(raised.value)
    known = published_groups(two.iloc[:200])
    assert published_groups(two.iloc[:9], names=known.names).names == known.names

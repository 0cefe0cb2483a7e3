"""Text that is made up by a pattern: as declared, different, and no longer than it may be."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets.patterns import MADE, Pattern

FORMS = {"#": "[0-9]", "?": "[A-Z]"}


@given(text=st.text("#?a-.é0", min_size=1, max_size=6).filter(lambda t: "#" in t or "?" in t))
def test_as_many_texts_of_the_form_are_different_as_the_pattern_says(text: str) -> None:
    pattern = Pattern(text)
    assert pattern.capacity == 10 ** text.count("#") * 26 ** text.count("?")
    numbers = np.unique(np.linspace(0, pattern.capacity - 1, 500).astype(np.int64))
    made = pattern.made(numbers).tolist()
    assert len(set(made)) == len(numbers)
    form = re.compile("".join(FORMS.get(c, re.escape(c)) for c in text))
    assert all(form.fullmatch(one) for one in made)


@pytest.mark.parametrize("kind", MADE)
def test_the_usual_patterns_have_room_for_a_large_table_and_name_nobody(kind: str) -> None:
    pattern = Pattern(MADE[kind])
    pattern.require_room(10**9, kind)
    (made,) = pattern.made(np.array([10**8]))
    expected = {"id": "100000000", "email": "person100000000@example.org"}
    assert made == expected.get(kind, "00999 010 000 0000")


@pytest.mark.parametrize("text", ["", "C-", "*#", "**", "?-*"])
def test_a_pattern_of_no_place_or_of_two_manners_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="A pattern has places for digits"):
        Pattern(text)


def test_too_short_a_pattern_is_refused_with_one_that_is_long_enough() -> None:
    Pattern("C-##").require_room(100, "id")
    with pytest.raises(ValueError, match=r"of column 'id' makes 100 .* 101 rows") as said:
        Pattern("C-##").require_room(101, "id")
    (longer,) = re.findall(r"such as '(.*)',", str(said.value))
    Pattern(longer).require_room(101, "id")
    with pytest.raises(ValueError, match=r"such as '\?###'"):
        Pattern("?").require_room(5000, "id")

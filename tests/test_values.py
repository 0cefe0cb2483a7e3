"""Whether messages quote private values."""

import contextlib
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import evenhand
from evenhand import _values, show_values
from evenhand._numerals import text_of


def test_values_are_hidden_until_the_curator_asks_and_hidden_again_afterwards() -> None:
    def said() -> list[str]:
        return [
            _values.quoted(np.str_("CANARY")),
            _values.listed(["CANARY", 2]),
            _values.count(1234),
            _values.if_shown("CANARY"),
            _values.said_by(ValueError("CANARY is no float\nsecond line")),
        ]

    hidden = said()
    assert not any("CANARY" in text or "1,234" in text for text in hidden)
    with show_values():
        shown = said()
    assert shown == ["'CANARY'", "'CANARY', 2", "1,234", "CANARY", "CANARY is no float second line"]
    assert said() == hidden
    with contextlib.suppress(KeyError), show_values():
        raise KeyError  # an error ends the block as well
    assert said() == hidden


def test_no_value_stands_in_brackets_of_its_own() -> None:
    """What is not shown brings its own: "one group only ((not shown))"."""
    home = Path(evenhand.__file__).parent
    double = re.compile(r"\(\{(_values\.(quoted|listed|count)\(|self\._first\})")
    found = [file.name for file in home.rglob("*.py") if double.search(file.read_text())]
    assert not found


def test_rows_are_counted_from_1_and_how_many_there_are_is_private() -> None:
    rows = np.array([4, 9, 11])
    assert _values.rows(rows) == "row 5 (counted from 1 below the header) and others"
    assert _values.rows(rows[:1]) == "row 5 (counted from 1 below the header)"
    with show_values():
        assert _values.rows(rows) == "row 5 (counted from 1 below the header) and 2 more"


def test_words_of_this_package_may_be_told_and_those_that_python_made_there_may_not() -> None:
    from evenhand._checks import at_least

    def told(call: Callable[[], object]) -> bool:
        try:
            call()
        except Exception as error:
            return _values.may_be_told(error)
        raise AssertionError

    assert told(lambda: at_least("n", 0, 1))
    assert not told(lambda: float("CANARY"))
    assert not told(lambda: text_of(Unprintable()))  # in our frame, and in words of its own
    other = ValueError("could not convert 'CANARY'")
    assert not _values.may_be_told(pickle.loads(pickle.dumps(_values.vouched(other))))
    with pytest.raises(ValueError, match="at least 1") as ours:
        at_least("n", 0, 1)
    assert _values.may_be_told(pickle.loads(pickle.dumps(_values.vouched(ours.value))))


class Unprintable:
    def __str__(self) -> str:
        return {}["CANARY"]


def test_an_error_of_another_library_is_chained_for_the_curator_only() -> None:
    inner = ValueError("could not convert 'CANARY'")
    assert _values.cause(inner) is None
    with show_values():
        assert _values.cause(inner) is inner


def test_another_thread_does_not_see_what_this_one_asked_for() -> None:
    seen = []
    with show_values():
        thread = threading.Thread(target=lambda: seen.append(_values.quoted("CANARY")))
        thread.start()
        thread.join()
    assert seen == [_values.WITHHELD]

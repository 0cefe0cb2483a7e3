"""Whether messages quote private values."""

import contextlib
import threading

import numpy as np

from evenhand import _values, show_values


def test_values_are_hidden_until_the_curator_asks_and_hidden_again_afterwards() -> None:
    def said() -> list[str]:
        return [
            _values.quoted("CANARY"),
            _values.listed(["CANARY", 2]),
            _values.count(1234),
            _values.if_shown("CANARY"),
            _values.said_by(ValueError("CANARY is no float\nsecond line")),
        ]

    hidden = said()
    assert not any("CANARY" in text or "1,234" in text for text in hidden)
    with show_values():
        shown = said()
    assert shown == ["'CANARY'", "'CANARY', 2", "1,234", "CANARY", "CANARY is no float"]
    assert said() == hidden
    with contextlib.suppress(KeyError), show_values():
        raise KeyError  # an error ends the block as well
    assert said() == hidden


def test_rows_are_counted_from_1_and_how_many_there_are_is_private() -> None:
    rows = np.array([4, 9, 11])
    assert _values.rows(rows) == "row 5 (counted from 1 below the header) and others"
    assert _values.rows(rows[:1]) == "row 5 (counted from 1 below the header)"
    with show_values():
        assert _values.rows(rows) == "row 5 (counted from 1 below the header) and 2 more"


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

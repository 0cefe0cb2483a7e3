import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.voting import Votes


@given(st.data())
def test_counts_are_what_counting_one_by_one_gives(data: st.DataObject) -> None:
    n_teachers, n_queries, n_classes = (data.draw(st.integers(1, 6)) for _ in range(3))
    n_classes += 1
    cell = st.integers(0, n_classes - 1)
    row = st.lists(cell, min_size=n_queries, max_size=n_queries)
    votes = data.draw(st.lists(row, min_size=n_teachers, max_size=n_teachers))
    counted = Votes.of(votes, n_classes)
    for i in range(n_queries):
        for k in range(n_classes):
            assert counted.counts[i, k] == [teacher[i] for teacher in votes].count(k)
    assert counted.n_teachers == n_teachers


def test_votes_print_no_count() -> None:
    votes = Votes.of([[0, 1], [1, 1]], n_classes=2)
    assert "<private>" in repr(votes)
    assert "2, 0" not in repr(votes)
    assert "[" not in repr(votes)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[3, 0], [1, 1]], "query 2 .counted from 1. has not"),
        ([[4, -1], [1, 2]], "query 1 .counted from 1. has not"),
        ([[3], [3]], "at least 2 classes"),
    ],
)
def test_rows_that_are_not_one_vote_per_teacher_are_refused(
    counts: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Votes(counts=np.array(counts), n_teachers=3)


def test_fractional_counts_are_refused() -> None:
    with pytest.raises(TypeError, match="whole numbers"):
        Votes(counts=np.array([[1.5, 1.5]]), n_teachers=3)

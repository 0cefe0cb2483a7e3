"""Tables, parity gaps and traces agree with loops over the records."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand._words import REFERENCES
from evenhand.fairness import DemographicParity
from evenhand.fairness.notions import exact_gap, parity_gaps
from evenhand.fairness.tally import JointTally, Tally
from evenhand.fairness.trace import Coverage, coverage_table, gap_trace

Definition = Callable[[object, str], Fraction]
records = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 2), st.integers(0, 2)), max_size=40)


@given(rows=records)
def test_tables_count_what_a_loop_counts_and_leave_rejections_out(
    rows: list[tuple[int, int, int]],
) -> None:
    z, k, y = (np.array([row[i] for row in rows], dtype=int) for i in range(3))
    tally = Tally.of(z, k, 4, 3)
    joint = JointTally.of(z, y, k, 4, 3)
    for group in range(4):
        own = [row for row in rows if row[0] == group and row[1] >= 0]
        assert tally.totals[group] == joint.totals[group] == len(own)
        assert joint.errors[group] == sum(row[1] != row[2] for row in own)
        for label in range(3):
            hits = sum(row[1] == label for row in own)
            assert tally.counts[group, label] == hits
            rate = tally.rates[group, label]
            assert math.isnan(rate) if not own else rate == hits / len(own)
            for true in range(3):
                cell = sum(row[1:] == (label, true) for row in own)
                assert joint.counts[group, true, label] == cell
    assert (joint.predicted.counts == tally.counts).all()


def test_the_rest_and_everybody_are_pooled_answers_and_not_means_of_rates() -> None:
    tally = Tally(counts=np.array([[1, 0], [5, 5], [0, 90]]))
    assert tally.rest[0].tolist() == [5 / 100, 95 / 100]
    assert tally.overall.tolist() == [6 / 101, 95 / 101]
    assert np.isnan(Tally(counts=np.zeros((1, 2), dtype=int)).rest).all()


tables = st.tuples(st.integers(1, 4), st.integers(2, 4)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 6), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(counts=tables, reference=st.sampled_from(REFERENCES))
@settings(max_examples=200)
def test_exact_and_vectorised_gaps_are_the_slow_definition(
    definition: Definition, counts: list[list[int]], reference: str
) -> None:
    slow = definition(counts, reference)
    assert exact_gap(counts, reference) == slow
    gaps = np.abs(parity_gaps(counts, reference))
    seen = gaps[~np.isnan(gaps)]
    assert seen.max(initial=0.0) == pytest.approx(float(slow), abs=1e-12)
    notion = DemographicParity(margin=0.25, reference=reference)
    assert notion.holds(counts) == (slow <= Fraction(1, 4))
    assert notion.gap(counts) == float(slow)


@given(counts=tables.filter(lambda counts: sum(map(any, counts)) > 1))
def test_one_reference_bounds_the_others_as_the_docstring_says(counts: list[list[int]]) -> None:
    rest, pairwise, overall = (exact_gap(counts, reference) for reference in REFERENCES)
    assert pairwise <= 2 * rest
    assert overall <= rest <= pairwise


def test_an_empty_group_has_no_gap_rather_than_a_gap_of_zero() -> None:
    for reference in REFERENCES:
        gaps = parity_gaps([[3, 1], [0, 0], [1, 1]], reference)
        assert np.isnan(gaps[1]).all()
        assert not np.isnan(gaps[[0, 2]]).any()
    assert np.isnan(parity_gaps([[3, 1], [0, 0]], "pairwise")).all()
    assert np.isnan(parity_gaps([[3, 1], [0, 0]], "rest")).all()


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40),
    data=st.data(),
)
@settings(max_examples=100)
def test_the_trace_is_the_gap_of_each_prefix(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    reference = data.draw(st.sampled_from(REFERENCES))
    steps = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    events = np.cumsum(steps)
    counts = np.zeros((3, 3), dtype=int)
    expected = []
    for i, (z, k) in enumerate(rows):
        counts[z, k] += 1
        if i == len(rows) - 1 or events[i + 1] > events[i]:
            expected.append(float(exact_gap(counts.tolist(), reference)))
    z, k = zip(*rows, strict=True)
    assert gap_trace(z, k, events, reference=reference) == pytest.approx(expected, abs=1e-12)


def test_a_long_trace_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    z, k = rng.integers(0, 3, 500), rng.integers(0, 4, 500)
    whole = gap_trace(z, k)
    monkeypatch.setattr("evenhand.fairness.trace._CELLS", 12 * 7)
    assert (gap_trace(z, k) == whole).all()
    assert gap_trace([], []).shape == (0,)


def test_coverage_counts_offered_and_given_per_cell() -> None:
    table = coverage_table(
        [0, 0, 0, 1, 1, 1],
        [1, 1, 0, 1, -1, 0],
        [True, False, True, False, True, True],
        names=("F", "M"),
        n_classes=3,
    )
    assert table.offered.tolist() == [[1, 2, 0], [1, 1, 0]]
    assert table.given.tolist() == [[1, 1, 0], [1, 0, 0]]
    assert table.overall == 3 / 5
    assert np.isnan(table.rates[:, 2]).all()
    assert table.to_dict()["coverage"] == [[1.0, 0.5, None], [1.0, 0.0, None]]
    empty = coverage_table([], [], np.array([], dtype=bool), n_groups=1, n_classes=1)
    assert empty.to_dict()["overall"] is None


@pytest.mark.usefixtures("values_shown")
def test_tables_refuse_what_is_no_count() -> None:
    with pytest.raises(ValueError, match="at least 0, got -1"):
        Tally(counts=np.array([[1, -1]]))
    with pytest.raises(TypeError, match="whole numbers, got dtype float64"):
        Tally(counts=np.array([[0.5, 1.0]]))
    with pytest.raises(ValueError, match="full 2-D table"):
        Tally(counts=np.zeros((0, 2), dtype=int))
    with pytest.raises(ValueError, match="as many true as predicted"):
        JointTally(counts=np.zeros((1, 2, 3), dtype=int))
    with pytest.raises(ValueError, match=r"labels must lie between 0 and 1, or be REJECTED.*got 2"):
        Tally.of([0], [2], 1, 2)
    with pytest.raises(ValueError, match="got -2 in row 2 "):
        Tally.of([0, 0], [0, -2], 1, 2)
    with pytest.raises(TypeError, match="whole numbers"):
        Tally.of([0], [0.5], 1, 2)
    with pytest.raises(ValueError, match="groups has 1, labels has 2"):
        Tally.of([0], [0, 1], 1, 2)
    with pytest.raises(ValueError, match="events must never fall, but it goes from 3 to 2"):
        gap_trace([0, 0], [0, 0], [3, 2])
    with pytest.raises(TypeError, match="given must hold True and False"):
        coverage_table([0], [0], [1])
    with pytest.raises(ValueError, match="between 0 and offered"):
        Coverage(offered=np.array([[1]]), given=np.array([[2]]), names=("a",))
    with pytest.raises(ValueError, match="must agree"):
        Coverage(offered=np.array([[1]]), given=np.array([[1]]), names=("a", "b"))
    with pytest.raises(ValueError, match=r"reference must be one of .* Did you mean 'rest'"):
        parity_gaps([[1, 2]], "rests")
    with pytest.raises(ValueError, match="read-only"):
        Tally(counts=np.array([[1, 1]])).counts[0, 0] = 2


def test_a_notion_is_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"margin must lie in \[0, 1\]"):
        DemographicParity(margin=-0.1)
    with pytest.raises(ValueError, match="reference must be one of"):
        DemographicParity(margin=0.1, reference="all")
    assert DemographicParity(margin=0.05).exact_margin == Fraction(1, 20)
    assert DemographicParity(margin=np.float64(0.1)).exact_margin == Fraction(1, 10)


def test_a_sentence_says_who_is_refused_most() -> None:
    table = Coverage(
        offered=np.array([[10, 4], [0, 8]]), given=np.array([[9, 1], [0, 6]]), names=("F", "M")
    )
    assert table.most_refused(["no", "yes"]) == (
        "Refused most: F with class yes, 3 of 4 (75.0%); of all answers F 28.6%, M 25.0% were "
        "refused."
    )
    everything = Coverage(offered=table.given, given=table.given, names=("F", "M"))
    assert everything.most_refused(["no", "yes"]) == "Nobody was refused."
    nothing = np.zeros((2, 2), dtype=np.int64)
    none = Coverage(offered=nothing, given=nothing, names=("F", "M"))
    assert none.most_refused(["no", "yes"]) == "Nobody asked."
    assert Coverage.from_dict(table.to_dict()).to_dict() == table.to_dict()

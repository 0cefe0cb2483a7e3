"""Many gates as arrays against the definition in fractions."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.runner import GateStack, fits
from evenhand.fairness.notions import exact_gap

REFERENCES = st.sampled_from(["rest", "pairwise", "overall"])


def stack_at(margins: list[float], counts: list[list[int]], reference: str) -> GateStack:
    """Gates that all stand at ``counts``, every group with answers active."""
    gates = []
    for margin in margins:
        wide = DemographicParityGate(1.0, len(counts), len(counts[0]), reference=reference)
        state = wide.to_dict() | {
            "counts": counts,
            "active": [z for z, row in enumerate(counts) if sum(row)],
        }
        gate = DemographicParityGate.from_dict(state)
        # Set after the table: a gate refuses a state beyond its own margin.
        narrow = DemographicParityGate(margin, len(counts), len(counts[0]), reference=reference)
        narrow._table, narrow._active = gate._table, gate._active
        gates.append(narrow)
    return GateStack(gates)


tables = st.integers(2, 4).flatmap(
    lambda n_classes: st.lists(
        st.lists(st.integers(1, 40), min_size=n_classes, max_size=n_classes),
        min_size=2,
        max_size=4,
    )
)


@given(counts=tables, reference=REFERENCES, data=st.data())
def test_a_stack_opens_a_class_exactly_if_the_gap_with_it_is_within_the_margin(
    counts: list[list[int]], reference: str, data: st.DataObject
) -> None:
    group = data.draw(st.integers(0, len(counts) - 1))
    label = data.draw(st.integers(0, len(counts[0]) - 1))
    after = [list(row) for row in counts]
    after[group][label] += 1
    if reference == "pairwise":  # pairs without the group do not move, and are not looked at
        own = [
            exact_gap([after[group], after[z]], reference) for z in range(len(counts)) if z != group
        ]
        gap = max(own)
    else:
        gap = exact_gap(after, reference)
    # At the boundary from both sides, and on it where the gap is a short decimal.
    margins = [round(float(gap) + shift, 6) for shift in (-2e-6, 0.0, 2e-6)]
    assume(all(0 <= margin <= 1 for margin in margins))
    stack = stack_at(margins, counts, reference)
    for i, gate in enumerate(stack.gates):
        assert stack.open[i, group, label] == (gap <= gate.notion.exact_margin)


@given(first=st.integers(1, 20), second=st.integers(0, 25))
def test_a_margin_that_is_the_gap_itself_is_within(first: int, second: int) -> None:
    # Groups of 20 and 25 answers: every gap is a decimal of two digits, so a margin can be it.
    after = [[first, 20 - first], [second, 25 - second]]
    gap = exact_gap(after, "rest")
    stack = stack_at([float(gap)], [[first - 1, 20 - first], after[1]], "rest")
    assert stack.gates[0].notion.exact_margin == gap
    assert stack.open[0, 0, 0]


def test_the_largest_table_that_fits_is_decided_without_overflow() -> None:
    # q = 10**4: exact up to about 15 million answers. One answer decides, at a gap of the margin.
    half = 7_000_000
    counts = [[half // 2 + 7000, half // 2 - 7000], [half // 2, half // 2]]
    margin = 0.001
    assert fits(DemographicParityGate(0.0011, 2, 2), 2 * half)
    stack = stack_at([margin], counts, "pairwise")
    expected = []
    for label in (0, 1):
        after = [list(row) for row in counts]
        after[0][label] += 1
        expected.append(exact_gap(after, "pairwise") <= stack.gates[0].notion.exact_margin)
    assert stack.open[0, 0].tolist() == expected == [False, True]


def test_a_gate_fits_up_to_its_bound_and_not_beyond() -> None:
    gate = DemographicParityGate(0.05, 2, 2)  # q = 20
    n = int((2**62 / 40) ** 0.5) - 1
    assert fits(gate, n - 1)
    assert not fits(gate, n + 2)


def test_gates_of_different_kinds_are_refused() -> None:
    gates = [DemographicParityGate(0.1, 2, 2), DemographicParityGate(0.1, 3, 2)]
    for given_gates in (gates, []):
        with pytest.raises(ValueError, match="gates of one size and reference"):
            GateStack(given_gates)


def test_finish_brings_every_gate_up_to_date() -> None:
    gates = [DemographicParityGate(margin, 2, 2, cold_start=1) for margin in (0.3, 1.0)]
    stack = GateStack(gates)
    rng = np.random.default_rng(0)
    for request in range(60):
        groups, labels = rng.integers(0, 2, (2, 2))
        stack.offer(np.arange(2), np.full(2, request), groups, labels)
    assert len(stack) == 2
    for i, gate in enumerate(stack.finish()):
        assert np.array_equal(gate.counts, stack._counts[i])
        assert gate.notion.holds(gate.counts)

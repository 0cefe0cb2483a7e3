"""A gate over labels that are there already: it gives what the definition gives, row by row."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.published import PublishedGate
from evenhand.fairness.gate.runner import admitted
from evenhand.fairness.notions import exact_gap
from evenhand.typing import IntArray

REFERENCES = ["rest", "pairwise", "overall"]


def table(groups: IntArray, labels: IntArray, n_groups: int, n_classes: int) -> list[list[int]]:
    counts = np.zeros((n_groups, n_classes), dtype=int)
    np.add.at(counts, (groups, labels), 1)
    return counts.tolist()


@given(
    data=st.data(),
    reference=st.sampled_from(REFERENCES),
    margin=st.sampled_from([0.0, 0.1, 0.25, 0.5]),
    cold_start=st.integers(1, 5),
)
def test_the_kept_rows_are_those_of_the_gate_recomputed_from_nothing(
    naive_gate: Any, data: st.DataObject, reference: str, margin: float, cold_start: int
) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=16))
    groups = np.array([z for z, _ in rows], dtype=np.int64)
    labels = np.array([k for _, k in rows], dtype=np.int64)
    gate = DemographicParityGate(margin, 3, 2, cold_start=cold_start, reference=reference)
    kept = admitted(gate, groups, labels)

    naive = naive_gate(Fraction(str(margin)), 3, 2, cold_start, reference)
    cells = []  # in the order in which they were first withheld
    for group, label in rows:
        if naive.active and group not in naive.active and (group, label) not in cells:
            cells.append((group, label))
        naive.offer(group, label)
    found_one = True
    while found_one:
        found_one = False
        for group, label in cells:
            held = (group, label) in naive.queue
            if held and group in naive.active and label in naive.admissible(group):
                naive.queue.remove((group, label))
                naive.counts[group][label] += 1
                found_one = True
    found = table(groups[kept], labels[kept], 3, 2)
    assert found == naive.counts == gate.counts.tolist()
    assert exact_gap(found, reference) <= Fraction(str(margin))
    assert kept.tolist() == sorted(set(kept.tolist()))


@given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40),
    least=st.integers(1, 4),
)
def test_the_published_rule_is_algorithm_3_line_by_line(
    rows: list[tuple[int, int]], least: int
) -> None:
    m = {(z, y): 0 for z in (0, 1) for y in (0, 1)}
    returned = []
    for row, (z, y) in enumerate(rows):
        own, others = m[z, 0] + m[z, 1], m[1 - z, 0] + m[1 - z, 1]
        fits = others > 0 and Fraction(m[z, y] + 1, own + 1) - Fraction(m[1 - z, y], others) < 0.25
        if own < least or fits:
            m[z, y] += 1
            returned.append(row)
    gate = PublishedGate(0.25, 2, 2, cold_start=least)
    assert admitted(gate, [z for z, _ in rows], [y for _, y in rows]).tolist() == returned


def test_within_a_cell_the_earliest_rows_are_kept() -> None:
    # A late group's block holds its oldest answers, so of each cell a prefix is kept.
    rng = np.random.default_rng(0)
    groups, labels = np.repeat([0, 1], 60), rng.integers(2, size=120)
    groups[:3] = 1
    gate = DemographicParityGate(0.05, 2, 2, cold_start=60)
    kept = admitted(gate, groups, labels)
    late = groups == 0
    for label in (0, 1):
        cell = np.flatnonzero(late & (labels == label))
        assert np.array_equal(np.intersect1d(kept, cell), cell[: np.isin(cell, kept).sum()])


def test_no_rows_give_no_rows() -> None:
    gate = DemographicParityGate(0.1, 2, 2)
    empty = np.zeros(0, dtype=np.int64)
    assert admitted(gate, empty, empty).shape == (0,)


def test_codes_are_checked() -> None:
    gate = DemographicParityGate(0.1, 2, 2)
    with pytest.raises(ValueError, match="groups must be at least 0 and below 2"):
        admitted(gate, [0, 2], [0, 1])
    with pytest.raises(ValueError, match="groups has 2, labels has 1"):
        admitted(gate, [0, 1], [1])

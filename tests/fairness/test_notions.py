"""Every notion's gap is its definition, agrees with the metrics, and is decided in fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand
from evenhand._words import REFERENCES
from evenhand.fairness import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    gap_of,
)
from evenhand.fairness.notions import known_notions, notion_named, require_notion
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import JointTally

LABELLED = (EqualizedOdds, ErrorParity, FalsePositiveParity)
Table = list[list[list[int]]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Joint tables (groups, true, predicted) of any size, with many empty cells."""
    n_groups, n_classes = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    cell = st.sampled_from([0, 0, 1, 2, 5, 9])
    flat = draw(st.lists(cell, min_size=n_groups * n_classes**2, max_size=n_groups * n_classes**2))
    table: Table = np.array(flat).reshape(n_groups, n_classes, n_classes).tolist()
    return table


def slow_gap(kind: type, table: Table, reference: str) -> Fraction:
    """Compare the rates group by group from single records, in fractions."""
    n_classes = len(table[0])
    records = [
        (z, k, j)
        for z, square in enumerate(table)
        for k, row in enumerate(square)
        for j, n in enumerate(row)
        for _ in range(n)
    ]
    classes = range(n_classes)
    events = {
        EqualizedOdds: [
            (lambda k, i=i: k == i, lambda k, j, p=p: j == p)
            for i, p in itertools.product(classes, classes)
        ],
        ErrorParity: [(lambda k: True, lambda k, j: k != j)],
        FalsePositiveParity: [(lambda k, i=i: k != i, lambda k, j, i=i: j == i) for i in classes],
    }[kind]
    worst = Fraction(0)
    for among, hit in events:
        inside = [(z, hit(k, j)) for z, k, j in records if among(k)]
        present = sorted({z for z, _ in inside})

        def rate(members: set[int], inside: list[tuple[int, bool]] = inside) -> Fraction:
            hits = [h for z, h in inside if z in members]
            return Fraction(sum(hits), len(hits))

        for z in present:
            others = {
                "rest": [set(present) - {z}],
                "pairwise": [{o} for o in present if o != z],
                "overall": [set(present)],
            }[reference]
            for other in others:
                if other:
                    worst = max(worst, abs(rate({z}) - rate(other)))
    return worst


@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize("reference", REFERENCES)
@given(table=tables())
@settings(max_examples=30, deadline=None)
def test_every_gap_is_its_definition_and_that_of_the_metric(
    kind: type, reference: str, table: Table
) -> None:
    notion = kind(margin=0.1, reference=reference)
    exact = slow_gap(kind, table, reference)
    assert notion.gap(table) == float(exact)
    if len(table) > 1 and np.sum(table):
        measured = gap_of(notion, JointTally(counts=np.array(table)))
        assert np.nan_to_num(measured.value) == pytest.approx(float(exact), abs=1e-12)
        assert measured.name == f"{notion.name.replace('-', '_')}_{reference}"


@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize("reference", REFERENCES)
@given(table=tables(), side=st.sampled_from([-1, 0, 1]))
@settings(max_examples=20, deadline=None)
def test_the_margin_itself_is_within_and_nothing_beyond_it(
    kind: type, reference: str, table: Table, side: int
) -> None:
    # A decimal of nine digits lies next to the gap, on either side or on it.
    exact = slow_gap(kind, table, reference)
    margin = round(float(exact), 9) + side * 2e-9
    if 0 <= margin <= 1:
        notion = kind(margin=margin, reference=reference)
        assert notion.holds(table) == (exact <= Fraction(repr(float(margin))))
        if side:
            assert notion.holds(table) == (side > 0)


@given(table=tables())
@settings(max_examples=30, deadline=None)
def test_one_class_of_false_positives_is_a_part_of_all(table: Table) -> None:
    every = FalsePositiveParity(margin=0.1).gap(table)
    single = [FalsePositiveParity(margin=0.1, positive=k).gap(table) for k in range(len(table[0]))]
    assert max(single) == every
    if len(table) > 1 and np.sum(table):
        joint = JointTally(counts=np.array(table))
        measured = gap_of(FalsePositiveParity(margin=0.1, positive=1), joint)
        assert np.nan_to_num(measured.value) == pytest.approx(single[1], abs=1e-12)


def test_a_perfect_classifier_keeps_every_margin_about_true_classes() -> None:
    table = np.zeros((2, 3, 3), dtype=int)
    table[0], table[1] = np.diag([5, 1, 9]), np.diag([1, 8, 2])
    for kind in LABELLED:
        assert kind(margin=0.0).holds(table)
    assert not DemographicParity(margin=0.1).holds(table.sum(axis=1))


def test_notions_are_values_and_public() -> None:
    for kind in known_notions().values():
        assert kind(margin=0.1) == kind(margin=0.1) != kind(margin=0.2)
        assert getattr(evenhand, kind.__name__) is kind
        assert eval(repr(kind(margin=0.1)), {kind.__name__: kind}) == kind(margin=0.1)
        with pytest.raises(ValueError, match=r"margin must lie in \[0, 1\], got margin=2"):
            kind(margin=2)
        with pytest.raises(ValueError, match=r"'rest', 'pairwise', 'overall'.*Did you mean 'rest'"):
            kind(margin=0.1, reference="rests")
        assert kind(margin=0.05).exact_margin == Fraction(1, 20)


def test_a_misspelt_notion_gets_the_nearest() -> None:
    assert notion_named("equalized-odds") is EqualizedOdds
    with pytest.raises(ValueError, match=r"'error-parity'.*Did you mean 'equalized-odds'\?"):
        notion_named("equalised-odds")
    with pytest.raises(ValueError, match=r"got 'EqualisedOdds'.*'EqualizedOdds'"):
        require_notion("EqualisedOdds", "Way out.")
    with pytest.raises(ValueError, match=r"got <class .*Did you mean 'ErrorParity'\? Way out\."):
        require_notion(ErrorParity, "Way out.")  # the class and not a value of it
    with pytest.raises(ValueError, match=r"got 0\.05\. Way out\."):
        require_notion(0.05, "Way out.")


def test_tables_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have shape \(n_groups, 2, 2\).*got \(2, 2\)"):
        EqualizedOdds(margin=0.1).gap([[1, 2], [3, 4]])
    with pytest.raises(TypeError, match="counts must hold whole numbers, got dtype float64"):
        ErrorParity(margin=0.1).gap(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="counts must be at least 0"):
        ErrorParity(margin=0.1).holds(-np.ones((2, 2, 2), dtype=int))
    with pytest.raises(TypeError, match=r"Tally or a JointTally, got list.*Tally\(counts="):
        gap_of(ErrorParity(margin=0.1), [[1, 2], [3, 4]])  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="positive must be a class from 0 to 1, got positive=2"):
        FalsePositiveParity(margin=0.1, positive=2).gap(np.ones((2, 2, 2), dtype=int))
    with pytest.raises(ValueError, match="positive must be at least 0"):
        FalsePositiveParity(margin=0.1, positive=-1)
    with pytest.raises(ValueError, match="hits must lie within among"):
        Rates(among=np.array([[True, False]]), hits=np.ones((1, 2, 2), dtype=bool))
    with pytest.raises(ValueError, match="hits must have shape"):
        Rates(among=np.array([[True, False]]), hits=np.ones((1, 2, 3), dtype=bool))
    with pytest.raises(TypeError, match="must be a notion of decisions, got 'parity'"):
        gap_of("parity", JointTally(counts=np.ones((2, 2, 2), dtype=int)))  # type: ignore[arg-type]  # wrong on purpose

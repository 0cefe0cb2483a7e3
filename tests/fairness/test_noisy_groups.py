"""Counts and margins from noisy answers: expectations over every answer of small tables."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.fairness.noisy_groups import AnsweredGroups, share_error, unbiased_sums
from evenhand.fairness.notions import exact_gap

PEOPLE = 5


def answers_of(groups: tuple[int, ...], k: int, truth: Fraction) -> Any:
    """Every way in which people may answer, with its exact probability."""
    other = (1 - truth) / (k - 1)
    for answered in itertools.product(range(k), repeat=len(groups)):
        probability = Fraction(1)
        for group, answer in zip(groups, answered, strict=True):
            probability *= truth if group == answer else other
        yield answered, probability


@pytest.mark.parametrize(("k", "truth"), [(2, Fraction(3, 5)), (3, Fraction(1, 2))])
def test_the_expected_corrected_sums_are_those_of_the_true_groups(k: int, truth: Fraction) -> None:
    # Brute force in fractions: sums of decisions h over answered groups, all answers of 5 people.
    h = (1, 0, 1, 1, 0)
    other = (1 - truth) / (k - 1)
    seen: set[tuple[int, ...]] = set()
    for groups in itertools.product(range(k), repeat=PEOPLE):
        if groups[0] != 0:
            continue  # the others are these with names changed
        expected = [Fraction(0)] * k
        total = Fraction(0)
        for answered, probability in answers_of(groups, k, truth):
            sums = [sum(h[i] for i in range(PEOPLE) if answered[i] == a) for a in range(k)]
            for a in range(k):
                corrected = (sums[a] - other * sum(sums)) / (truth - other)
                expected[a] += probability * corrected
            seen.add(tuple(sums))
            total += probability
        assert total == 1
        true = [sum(h[i] for i in range(PEOPLE) if groups[i] == a) for a in range(k)]
        assert expected == true
    for sums in seen:
        ours = unbiased_sums(np.array(sums, dtype=float), float(truth))
        wanted = [(s - other * sum(sums)) / (truth - other) for s in sums]
        np.testing.assert_allclose(ours, [float(w) for w in wanted], atol=1e-12)


counts = st.lists(
    st.lists(st.integers(1, 60), min_size=2, max_size=2), min_size=2, max_size=4
)  # answers by group and decision


@given(counts=counts, truth=st.floats(0.55, 1.0), reference=st.sampled_from(["overall", "rest"]))
def test_the_margin_of_answers_is_reached_exactly_when_that_of_true_groups_is(
    counts: list[list[int]], truth: float, reference: str
) -> None:
    # The corrected table by the inverse of the whole matrix of responses, and its gap by
    # definition; beside it the difference of the answered rates, in units of the margin there.
    table = np.array(counts, dtype=float)
    k = len(table)
    matrix = np.full((k, k), (1 - truth) / (k - 1))
    np.fill_diagonal(matrix, truth)
    true = np.linalg.solve(matrix, table)
    assume((true.sum(axis=1) > 1e-6 * table.sum()).all())
    everybody = table.sum(axis=0)
    differences = []
    for row in true:
        rest = everybody if reference == "overall" else everybody - row
        differences.append(abs(row[1] / row.sum() - rest[1] / rest.sum()))
    answered = AnsweredGroups(counts=table.sum(axis=1)[None, :], truth=truth)
    margins = answered.margins(DemographicParity(margin=0.1, reference=reference))[0]
    seen = np.abs(table[:, 1] / table.sum(axis=1) - everybody[1] / everybody.sum())
    np.testing.assert_allclose(seen / margins, np.array(differences) / 0.1, rtol=1e-6, atol=1e-9)


def test_pairwise_margins_of_three_groups_are_kept_by_half_of_it() -> None:
    table = np.array([[40, 60], [55, 45], [47, 53]])
    answered = AnsweredGroups(counts=table.sum(axis=1)[None, :])
    margins = answered.margins(DemographicParity(margin=0.2, reference="pairwise"))
    np.testing.assert_allclose(margins, 0.1)
    rates = table[:, 1] / table.sum(axis=1)
    assert np.abs(rates - rates.mean()).max() <= 0.1
    assert exact_gap(table.tolist(), "pairwise") <= Fraction(2, 10)


def test_true_answers_need_no_correction() -> None:
    answered = AnsweredGroups(counts=np.array([[10, 30], [5, 15]]))
    np.testing.assert_array_equal(answered.sizes, [[10, 30], [5, 15]])
    np.testing.assert_array_equal(answered.stretch, 1.0)
    margins = answered.margins(EqualizedOdds(margin=0.1))
    np.testing.assert_allclose(margins, [[0.075, 0.025], [0.075, 0.025]])


@pytest.mark.parametrize(("k", "truth"), [(2, 0.7), (4, 0.4)])
def test_the_standard_error_bounds_that_of_every_table_and_is_reached(k: int, truth: float) -> None:
    other = (1 - truth) / (k - 1)
    n = 100
    worst = 0.0
    for members in range(n + 1):
        variance = members * truth * (1 - truth) + (n - members) * other * (1 - other)
        worst = max(worst, variance**0.5 / (truth - other) / n)
    assert worst == pytest.approx(float(share_error(np.array(float(n)), k, truth)))
    assert share_error(np.array([0.0]), k, truth) == np.inf


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([[45, 55]], "share of group 'a' at 0.000 with a standard error of 0.497"),
        # The first stratum speaks clearly.
        ([[800_000, 900_000], [46, 54]], "'a' among those of label 1 at 0.100 with a standard"),
    ],
)
def test_answers_that_do_not_tell_of_a_group_are_refused(counts: Any, words: str) -> None:
    answered = AnsweredGroups(counts=np.array(counts), truth=0.55)
    with pytest.raises(ValueError, match=words):
        answered.require_told(("a", "b"))
    AnsweredGroups(counts=np.array([[0, 5]])).require_told(("a", "b"))  # true answers tell


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"counts": np.array([1, 2])}, r"got shape \(2,\)"),
        ({"counts": np.array([[1.0]])}, r"two answers at least, got shape \(1, 1\)"),
        ({"counts": np.array([[-1, 2]])}, "numbers of people by stratum"),
        ({"truth": 0.5}, "truth must be above 1 / 2, got truth=0.5: such answers say nothing"),
        ({"truth": 1.5}, r"truth must lie in \[0, 1\]"),
    ],
)
def test_what_cannot_be_answers_is_refused(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AnsweredGroups(**({"counts": np.array([[1, 2]])} | given_))

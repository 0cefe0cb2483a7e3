"""Votes at one threshold per group and teacher: the margin, the ranking, and whom a vote reads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.fairness import DemographicParity
from evenhand.fairness.tally import Tally
from evenhand.teachers.postprocessed import level_votes
from evenhand.typing import FloatArray, IntArray

REFERENCES = ["rest", "pairwise", "overall"]


def opinions(seed: int = 0, n: int = 400, n_groups: int = 3) -> tuple[FloatArray, IntArray]:
    """Scores of five teachers who lean on the group, each to its own degree."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    lean = np.linspace(0.0, 2.0, 5)[:, None] * groups
    return rng.normal(size=(5, n)) + lean - 0.8, groups


@pytest.mark.parametrize("reference", REFERENCES)
@given(seed=st.integers(0, 10**6), margin=st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0]))
def test_each_teacher_is_within_the_margin_up_to_one_row_a_group(
    reference: str, seed: int, margin: float
) -> None:
    scores, groups = opinions(seed, n=120)
    notion = DemographicParity(margin=margin, reference=reference)
    votes = level_votes(scores, groups, n_groups=3, fairness=notion)
    rows = 2.0 / np.bincount(groups).min()
    for own in votes:
        assert notion.gap(Tally.of(groups, own, 3, 2).counts) <= margin + rows


def test_a_teacher_within_the_margin_votes_as_before() -> None:
    scores, groups = opinions()
    notion = DemographicParity(margin=0.15)
    votes = level_votes(scores, groups, n_groups=3, fairness=notion)
    before = (scores > 0).astype(int)
    gaps = [notion.gap(Tally.of(groups, own, 3, 2).counts) for own in before]
    assert min(gaps) < 0.15 < max(gaps)
    for gap, own, was in zip(gaps, votes, before, strict=True):
        assert np.array_equal(own, was) == (gap <= 0.15)


def test_no_teacher_gives_class_1_to_a_row_it_ranks_lower_in_the_same_group() -> None:
    scores, groups = opinions()
    votes = level_votes(scores, groups, n_groups=3, fairness=DemographicParity(margin=0.05))
    for own, score in zip(votes, scores, strict=True):
        for z in range(3):
            yes, no = score[(groups == z) & (own == 1)], score[(groups == z) & (own == 0)]
            assert yes.min() > no.max()


def test_the_overall_rate_of_a_teacher_stays() -> None:
    scores, groups = opinions()
    votes = level_votes(scores, groups, n_groups=3, fairness=DemographicParity(margin=0.05))
    moved = votes.sum(axis=1) - (scores > 0).sum(axis=1)
    assert np.abs(moved).max() <= 3  # a row a group


def test_another_teacher_moves_no_vote() -> None:
    scores, groups = opinions()
    notion = DemographicParity(margin=0.05)
    before = level_votes(scores, groups, n_groups=3, fairness=notion)
    scores[2] = -50.0 * scores[2] + 3.0
    after = level_votes(scores, groups, n_groups=3, fairness=notion)
    assert np.flatnonzero((before != after).any(axis=1)).tolist() == [2]


def test_teachers_within_the_margin_can_have_a_majority_far_outside() -> None:
    # Why T_post promises nothing of the answers: agreement within a group, none between teachers.
    n = 200
    groups = np.repeat([0, 1], n // 2)
    rng = np.random.default_rng(0)
    rows = np.arange(n // 2)
    scores = np.empty((301, n))
    for own in scores:
        own[: n // 2] = np.where(rows < 55, 1.0, -1.0)  # all agree on the same 55 rows of group 0
        own[n // 2 :] = np.where(rng.permutation(n // 2) < 50, 1.0, -1.0)  # each has its own 50
    notion = DemographicParity(margin=0.05)
    votes = level_votes(scores, groups, n_groups=2, fairness=notion)
    assert max(notion.gap(Tally.of(groups, own, 2, 2).counts) for own in votes) <= 0.05
    # A clear majority is asked for, as a threshold does.
    winners = (votes.mean(axis=0) > 0.7).astype(int)
    assert notion.gap(Tally.of(groups, winners, 2, 2).counts) > 0.4


def test_a_group_without_rows_and_a_single_group_change_nothing() -> None:
    scores, _ = opinions()
    one = np.zeros(400, dtype=np.int64)
    votes = level_votes(scores, one, n_groups=2, fairness=DemographicParity(margin=0.0))
    assert np.array_equal(votes, scores > 0)


def test_scores_need_a_column_for_each_row_with_a_group() -> None:
    scores, groups = opinions()
    with pytest.raises(ValueError, match=r"one column for each of 399 rows with a group, got.*400"):
        level_votes(scores, groups[1:], n_groups=3, fairness=DemographicParity(margin=0.1))

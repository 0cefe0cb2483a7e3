"""Small groups: when a margin costs too much because of them, and what they are held to then."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.students.small_groups import limits_of, reach
from evenhand.students.student import fit_student
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Answers, Shares

MARGIN = 0.05


def collapse(n_small: int = 10, low: float = -3.0) -> tuple[FloatArray, IntArray, Shares]:
    """Two large groups that are alike, and a small one whose only feature says "never"."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [1000, 900, n_small])
    x = np.where(groups == 2, low, 0.0) + rng.normal(size=len(groups)) * (1 - 0.9 * (groups == 2))
    share = 1 / (1 + np.exp(-4 * x)) + rng.normal(0, 0.1, len(x))
    shares = np.stack([1 - share, share], axis=1)
    variance = np.full(len(x), 0.01)
    return (
        x[:, None],
        groups,
        Shares(shares=shares, variance=variance, n_asked=len(x), groups=groups),
    )


def labels_of(shares: Shares) -> Answers:
    labels = (shares.shares[:, 1] > 0.5).astype(np.int64)
    every = np.arange(len(labels))
    return Answers(
        labels=labels,
        reasons=np.zeros_like(labels),
        order=every,
        events=every,
        groups=None,
        n_checks=0,
        n_draws=len(labels),
        n_classes=2,
    )


def within(groups: IntArray, *, hold: bool, reference: str = "rest") -> Within:
    notion = DemographicParity(margin=MARGIN, reference=reference)
    n_groups = int(groups.max()) + 1
    return Within(notion=notion, groups=groups, n_groups=n_groups, hold_small=hold)


def gap_of(groups: IntArray, decided: IntArray, z: int, reference: str) -> float:
    """Largest difference that group z is part of, by the definition."""
    own, rest = decided[groups == z].mean(), decided[groups != z].mean()
    if reference == "rest":
        return float(abs(own - rest))
    if reference == "overall":
        return float(abs(own - decided.mean()))
    others = [decided[groups == other].mean() for other in np.unique(groups) if other != z]
    return float(max(abs(own - other) for other in others))


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")  # the strict one
@pytest.mark.parametrize("reference", ["rest", "overall"])
@pytest.mark.parametrize("kind", ["shares", "labels"])
def test_a_small_group_no_longer_makes_the_model_a_constant(kind: str, reference: str) -> None:
    X, groups, shares = collapse()
    answers = shares if kind == "shares" else labels_of(shares)
    truth = shares.shares[:, 1] > 0.5
    strict = fit_student(None, X, answers, within(groups, hold=False, reference=reference))
    held = fit_student(None, X, answers, within(groups, hold=True, reference=reference))
    assert (strict.model.predict(X) != truth).mean() > 0.4
    decided = held.model.predict(X)
    assert (decided != truth).mean() < 0.3
    # What is claimed, group by group, by the definition.
    assert held.held is not None
    (small,) = held.held.groups
    assert (small.group, small.n_rows, small.limit) == (2, 10, reach(10))
    assert small.gap == pytest.approx(gap_of(groups, decided, 2, reference))
    assert MARGIN < small.gap <= small.limit
    for z in (0, 1):
        assert gap_of(groups, decided, z, reference) <= MARGIN
    # It is about all groups, and not all are within the margin.
    assert held.met is False
    assert held.public_gap == pytest.approx(small.gap)
    assert held.held.error < held.held.error_by_margin


def test_a_margin_that_costs_nothing_is_kept_for_small_groups_too() -> None:
    X, groups, shares = collapse(low=0.0)
    student = fit_student(None, X, shares, within(groups, hold=True))
    assert student.held is None
    assert student.met
    assert gap_of(groups, student.model.predict(X), 2, "rest") <= MARGIN


def test_where_fewer_than_two_groups_are_large_the_margin_stays() -> None:
    _, groups, _ = collapse()
    assert limits_of(within(groups[::4], hold=True)) is None  # 250, 225 and 3 rows
    found = limits_of(within(groups, hold=True))
    assert found is not None
    assert found.tolist() == [MARGIN, MARGIN, reach(10)]


def test_notions_about_true_classes_are_not_touched() -> None:
    groups = np.repeat([0, 1, 2], [1000, 900, 10])
    notion = EqualizedOdds(margin=MARGIN)
    assert limits_of(Within(notion=notion, groups=groups, n_groups=3, hold_small=True)) is None


@given(st.integers(1, 3000))
def test_no_rate_on_so_many_rows_is_known_more_widely_than_its_reach(n: int) -> None:
    from scipy.stats import binomtest

    ends = [binomtest(k, n).proportion_ci(0.95, method="exact") for k in {0, n // 4, n // 2}]
    assert max((end.high - end.low) / 2 for end in ends) <= reach(n) * (1 + 1e-9)


@given(data=st.data(), reference=st.sampled_from(["rest", "pairwise", "overall"]))
def test_gaps_and_limits_are_those_of_the_definition(data: Any, reference: str) -> None:
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=6, max_size=30))
    groups = np.array([*drawn, 0, 1, 2])
    decided = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=len(groups), max_size=len(groups)))
    )
    limits = np.array([MARGIN, MARGIN, data.draw(st.floats(MARGIN, 0.9))])
    read = Within(
        notion=DemographicParity(margin=MARGIN, reference=reference),
        groups=groups,
        n_groups=3,
        limits=limits,
    )
    expected = [gap_of(groups, decided, z, reference) for z in range(3)]
    assert read.gaps(decided, 2) == pytest.approx(expected)
    if reference != "pairwise":  # within its limit by the scaled gap, where each group is
        kept = read.gap(decided, 2) <= MARGIN
        assert kept == all(
            e * (1 + 1e-9) <= limit for e, limit in zip(expected, limits, strict=True)
        )

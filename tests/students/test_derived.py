"""The derived decision: against every rule on a grid, and what noise can do to its rates."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand import (
    DemographicParity,
    EqualizedOdds,
    FalsePositiveParity,
    TruePositiveRateParity,
)
from evenhand.students.decisions import draw
from evenhand.students.derived import DerivedRule, noise_bound

NOTIONS = {
    "equalized_odds": EqualizedOdds,
    "equal_opportunity": TruePositiveRateParity,
    "false_positive_parity": lambda **kept: FalsePositiveParity(positive=1, **kept),
    "demographic_parity": DemographicParity,
}


def held(notion: str, margin: float = 0.0) -> Any:
    return NOTIONS[notion](margin=margin, reference="pairwise")


TABLES = [
    [[[40, 10], [5, 45]], [[30, 20], [20, 30]]],
    [[[60, 5], [20, 15]], [[20, 2], [9, 9]]],
    [[[10, 10], [10, 10]], [[50, 0], [0, 3]]],
]


def law(table: Any, notion: str) -> np.ndarray:
    """P(the model's decision | what the notion conditions on), group by group, by counting."""
    t = np.asarray(table, dtype=float)
    kept = {
        "equalized_odds": t,
        "equal_opportunity": t[:, 1:2],
        "false_positive_parity": t[:, 0:1],
        "demographic_parity": t.sum(axis=1, keepdims=True),
    }[notion]
    return np.asarray(kept / kept.sum(axis=2, keepdims=True))


def by_grid(table: Any, margin: float, notion: str, steps: int = 20) -> float:
    """Least error over all rules for two groups whose probabilities are multiples of 1 / steps."""
    t, given_ = np.asarray(table, dtype=float), law(table, notion)
    grid = np.arange(steps + 1) / steps
    pairs = np.array(
        list(itertools.product(grid, grid))
    )  # probability of class 1 if told 0, told 1
    rates = [pairs @ given_[g].T for g in range(2)]
    # Right: label 1 and decided 1, or label 0 and decided 0.
    right = [pairs @ t[g, 1] + (1 - pairs) @ t[g, 0] for g in range(2)]
    gap = np.abs(rates[0][:, None, :] - rates[1][None, :, :]).max(axis=2)
    best = np.where(gap <= margin + 1e-12, right[0][:, None] + right[1][None, :], -1).max()
    return 1.0 - best / t.sum()


@pytest.mark.parametrize("notion", sorted(NOTIONS))
@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("table", TABLES)
def test_no_rule_on_a_grid_is_better_and_the_margin_is_kept(
    table: Any, margin: float, notion: str
) -> None:
    rule = DerivedRule.fit(table, held(notion, margin))
    on_grid = by_grid(table, margin, notion)
    assert rule.error(table) <= on_grid + 1e-7
    # The optimum is no further below than rounding its probabilities to the grid can cost.
    assert rule.error(table) >= by_grid(table, min(1.0, margin + 0.05), notion) - 0.05
    rates = np.einsum("gsh,ghk->gsk", law(table, notion), rule.probabilities)
    assert np.ptp(rates, axis=0).max() <= margin + 1e-9
    assert rule.gap(table, held(notion)) == pytest.approx(np.ptp(rates, axis=0).max(), abs=1e-12)


def test_a_rule_of_three_classes_and_three_groups_keeps_every_pair_within_the_margin() -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(5, 60, (3, 3, 3)) + 80 * np.eye(3, dtype=int)
    errors = []
    for margin in (0.0, 0.05, 0.2, 1.0):
        rule = DerivedRule.fit(table, held("equalized_odds", margin))
        for a, b in itertools.combinations(range(3), 2):
            for y in range(3):
                rate = [table[g, y] / table[g, y].sum() @ rule.probabilities[g] for g in (a, b)]
                assert np.abs(rate[0] - rate[1]).max() <= margin + 1e-9
        errors.append(rule.error(table))
    assert errors == sorted(errors, reverse=True)
    told = 1 - np.einsum("gyy->", table) / table.sum()
    assert errors[-1] == pytest.approx(told)  # with no margin to keep the model's own word stands


@settings(max_examples=60, deadline=None)
@given(
    table=st.lists(st.integers(-30, 60), min_size=8, max_size=8),
    margin=st.sampled_from([0.0, 0.01, 0.3]),
    notion=st.sampled_from(sorted(NOTIONS)),
)
def test_every_noisy_table_has_a_rule_within_its_margin(
    table: list[int], margin: float, notion: str
) -> None:
    cells = np.array(table).reshape(2, 2, 2)  # negative cells, empty rows, empty groups
    assume((cells > 0).any())
    rule = DerivedRule.fit(cells, held(notion, margin))
    assert rule.gap(cells, held(notion)) <= margin + 1e-9
    # It is never worse than the better constant, which has no gap at all.
    constant = np.maximum(cells, 0).sum(axis=(0, 2))
    assert rule.error(cells) <= 1 - constant.max() / constant.sum() + 1e-6


def test_renaming_the_groups_renames_the_rule() -> None:
    rule = DerivedRule.fit(TABLES[0], held("equalized_odds", 0.1))
    turned = DerivedRule.fit(TABLES[0][::-1], held("equalized_odds", 0.1))
    assert rule.error(TABLES[0]) == pytest.approx(turned.error(TABLES[0][::-1]), abs=1e-8)


@settings(max_examples=200, deadline=None)
@given(
    true=st.lists(st.integers(1, 200), min_size=8, max_size=8),
    off=st.lists(st.integers(-7, 7), min_size=8, max_size=8),
    probabilities=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    notion=st.sampled_from(sorted(NOTIONS)),
)
def test_noise_within_its_limit_moves_no_gap_beyond_the_bound(
    true: list[int], off: list[int], probabilities: list[float], notion: str
) -> None:
    # The bound's limit t at scale 1 and level 0.95 is ceil(ln(8 / 0.05)) = 6; draws of 7 break it.
    limit = 6
    table = np.array(true).reshape(2, 2, 2)
    noisy = table + np.clip(off, -limit, limit).reshape(2, 2, 2)
    assume(noisy.sum(axis=2).min() > 0)
    up = np.array(probabilities).reshape(2, 2)
    rule = DerivedRule(probabilities=np.stack([1 - up, up], axis=2))
    moved = rule.gap(table, held(notion)) - rule.gap(noisy, held(notion))
    assert moved <= noise_bound(noisy, held(notion), scale=1.0) + 1e-9


def test_the_bound_on_noise_fails_no_more_often_than_it_says() -> None:
    # What the worst rule makes of noise is two distances in total variation together. Of 2000
    # tables at most 5 % may fail; more than 145 has a probability below 1e-6 then.
    rng = np.random.default_rng(0)
    table = np.array(TABLES[0]) * 5
    p = 1 - np.exp(-1 / 4)  # discrete Laplace noise of scale 4
    found = []
    for _ in range(2000):
        noisy = table + rng.geometric(p, table.shape) - rng.geometric(p, table.shape)
        noisy = np.maximum(noisy, 0)
        off = law(noisy, "equalized_odds") - law(table, "equalized_odds")
        worst = np.abs(off).sum(axis=2).sum(axis=0).max() / 2
        found.append(worst / noise_bound(noisy, held("equalized_odds"), scale=4.0))
    assert (np.array(found) > 1).sum() <= 145
    assert (np.array(found) > 0.15).sum() > 145  # a bound of a seventh would be caught


def test_decisions_are_drawn_with_the_probabilities_of_the_rule() -> None:
    probabilities = np.array(
        [[[0.2, 0.3, 0.5], [1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0.5, 0.5, 0], [1, 0, 0]]]
    )
    rule = DerivedRule(probabilities=probabilities)
    n = 20_000
    drawn = draw(rule.expected(np.zeros(n, int), np.zeros(n, int)), np.random.default_rng(0))
    # Five standard errors: a false alarm has a probability below 1e-6.
    assert (
        np.abs(np.bincount(drawn, minlength=3) / n - probabilities[0, 0]).max() < 5 * 0.5 / n**0.5
    )
    sure = draw(rule.expected([1, 2, 0, 2], [0, 0, 1, 1]), np.random.default_rng(1))
    assert sure.tolist() == [0, 2, 1, 0]
    np.testing.assert_array_equal(rule.expected([1], [1]), [[0.5, 0.5, 0]])


def test_a_rule_survives_json() -> None:
    rule = DerivedRule.fit(TABLES[0], held("equalized_odds", 0.1))
    again = DerivedRule.from_dict(json.loads(json.dumps(rule.to_dict())))
    assert np.array_equal(rule.probabilities, again.probabilities)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: DerivedRule(probabilities=np.ones((2, 2))),
            r"must have shape \(n_groups, n_classes",
        ),
        (lambda: DerivedRule(probabilities=np.ones((1, 2, 2))), "each row must add up to 1"),
        (
            lambda: DerivedRule.fit([[1, 2]], held("equalized_odds", 0.1)),
            "table must count records by group, label and decision",
        ),
        (
            lambda: DerivedRule.fit(np.full((2, 2, 2), np.nan), held("equalized_odds")),
            "finite counts",
        ),
        (
            lambda: DerivedRule.fit(TABLES[0], EqualizedOdds(margin=0.1)),
            "The rule compares each group with each other group",
        ),
        (
            lambda: DerivedRule.fit(TABLES[0], held("equalized_odds", 1.5)),
            r"margin must lie in \[0, 1\]",
        ),
    ],
)
def test_what_cannot_be_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()

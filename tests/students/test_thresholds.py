"""Group thresholds against all decisions about every row, and at their edges."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from evenhand.fairness import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    RateNotion,
)
from evenhand.fairness.true_positive_rate import TruePositiveRateParity
from evenhand.students.thresholds import GroupThresholds


def gain(p: np.ndarray, rate: float) -> float:
    """Most expected correct answers with this rate: the highest scores, the last one in part."""
    falling = np.sort(2.0 * p - 1.0)[::-1]
    wanted = rate * len(p)
    whole = int(wanted + 1e-9)
    part = (wanted - whole) * falling[whole] if whole < len(p) else 0.0
    return float(falling[:whole].sum() + part)


def value(rule: GroupThresholds, p: np.ndarray, z: np.ndarray) -> float:
    return float(((2.0 * p - 1.0) * rule.probabilities(p, z)).sum())


scores = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(a=scores, b=scores, margin=st.sampled_from([0.0, 0.05, 0.1, 0.3, 1.0]))
def test_no_pair_of_rates_within_the_margin_is_better(
    a: list[float], b: list[float], margin: float
) -> None:
    p, z = np.array(a + b), np.array([0] * len(a) + [1] * len(b))
    rule = GroupThresholds.fit(
        p, z, fairness=DemographicParity(margin=margin, reference="pairwise"), n_groups=2
    )
    rates = rule.rates(p, z)
    assert abs(rates[0] - rates[1]) <= margin + 1e-6
    # Brute force: the optimum of a piecewise linear function lies where one rate is a multiple of
    # 1 / size, or 0 or 1, and the other is one too or sits at the margin.
    corners_a = np.arange(len(a) + 1) / len(a)
    corners_b = np.arange(len(b) + 1) / len(b)
    best = -np.inf
    pa, pb = p[z == 0], p[z == 1]
    for r in np.concatenate([corners_a, corners_b + margin, corners_b - margin]):
        for s in np.concatenate([corners_b, [r - margin, r + margin]]):
            if 0 <= r <= 1 and 0 <= s <= 1 and abs(r - s) <= margin + 1e-12:
                best = max(best, gain(pa, float(r)) + gain(pb, float(s)))
    assert value(rule, p, z) == pytest.approx(best, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), min_size=2, max_size=40),
    margin=st.sampled_from([0.0, 0.03, 0.1, 0.25, 1.0]),
    reference=st.sampled_from(["rest", "pairwise", "overall"]),
    seed=st.integers(0, 99),
)
def test_the_search_in_one_variable_finds_what_a_linear_program_finds(
    rows: list[tuple[int, int]], margin: float, reference: str, seed: int
) -> None:
    _, z = np.unique([g for g, _ in rows], return_inverse=True)
    n_groups = int(z.max()) + 1
    if reference != "pairwise" and n_groups > 2:
        return  # solved by the program itself
    jitter = np.random.default_rng(seed).uniform(0, 1e-3, len(rows)) * (seed % 2)
    p = np.clip(np.array([k for _, k in rows]) / 20 + jitter, 0, 1)
    notion = DemographicParity(margin=margin, reference=reference)
    rule = GroupThresholds.fit(p, z, fairness=notion, n_groups=n_groups)
    sizes = np.bincount(z)
    rate = (z == np.arange(n_groups)[:, None]) / sizes[:, None]
    overall = np.full((n_groups, n_groups), 1.0) * (sizes / len(z))
    apart = {
        "overall": np.eye(n_groups) - overall,
        "rest": np.array([[1.0, -1.0]]) if n_groups == 2 else np.zeros((1, n_groups)),
        "pairwise": np.array(
            [np.eye(n_groups)[i] - np.eye(n_groups)[j] for i in range(n_groups) for j in range(i)]
        ).reshape(-1, n_groups),
    }[reference]
    solved = linprog(
        1 - 2 * p,
        A_ub=np.concatenate([apart, -apart]) @ rate,
        b_ub=np.full(2 * len(apart), margin),
        bounds=(0, 1),
    )
    assert value(rule, p, z) == pytest.approx(-solved.fun, abs=1e-6)
    assert np.abs(apart @ rule.rates(p, z)).max(initial=0) <= margin + 1e-9


ABOUT_TRUTH = (EqualizedOdds, ErrorParity, FalsePositiveParity, TruePositiveRateParity)

tables = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 1)), min_size=6, max_size=40
)


def differences(notion: RateNotion, z: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """By the definition: the compared rates of decisions d (n,) are ``out @ [d, 1 - d]``.

    ``truth`` (n,) is how much of a row is of class 1.
    """
    n, of = len(z), {0: 1.0 - truth, 1: truth}
    none = np.zeros(n)
    positive = {"trials": [1], "hits": lambda row: np.append(row * of[1], none)}
    false = {"trials": [0], "hits": lambda row: np.append(row * of[0], none)}
    rates = {
        EqualizedOdds: [positive, false],
        TruePositiveRateParity: [positive],
        # Of class 0 to class 1, and of class 1 to class 0.
        FalsePositiveParity: [positive, false],
        ErrorParity: [
            {"trials": [0, 1], "hits": lambda row: np.append(row * of[0], row * of[1])},
        ],
    }[type(notion)]
    out = []
    for rate in rates:
        trials = np.array(
            [sum(of[k][z == g].sum() for k in rate["trials"]) for g in range(int(z.max()) + 1)]
        )
        filled = np.flatnonzero(trials >= 1.0)
        if len(filled) < 2:
            continue
        hits = {g: rate["hits"]((z == g) / trials[g]) for g in filled}
        pooled = {g: trials[g] * hits[g] for g in filled}
        for g in filled:
            if notion.reference == "pairwise":
                out += [hits[g] - hits[h] for h in filled if h < g]
                continue
            others = [h for h in filled if notion.reference == "overall" or h != g]
            out.append(hits[g] - sum(pooled[h] for h in others) / trials[others].sum())
    return np.array(out).reshape(-1, 2 * n)


def expected_error(d: np.ndarray, p: np.ndarray) -> float:
    return float((p * (1 - d) + (1 - p) * d).mean())


def least_error(notion: RateNotion, z: np.ndarray, p: np.ndarray) -> float:
    """Return that of the whole program: a free probability of class 1 for each row."""
    apart, n = differences(notion, z, p), len(p)
    one, constant = apart[:, :n] - apart[:, n:], apart[:, n:].sum(axis=1)
    solved = linprog(
        1 - 2 * p,
        A_ub=np.concatenate([one, -one]),
        b_ub=np.concatenate([notion.margin - constant, notion.margin + constant]),
        bounds=(0, 1),
    )
    return float((solved.fun + p.sum()) / n)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    rows=tables,
    kind=st.sampled_from(ABOUT_TRUTH),
    margin=st.sampled_from([0.0, 0.03, 0.1, 0.25, 1.0]),
    reference=st.sampled_from(["rest", "pairwise", "overall"]),
)
def test_no_decisions_about_single_rows_are_better_by_the_models_own_probabilities(
    rows: list[tuple[int, int, int]], kind: Any, margin: float, reference: str
) -> None:
    _, z = np.unique([g for g, _, _ in rows], return_inverse=True)
    p = np.array([k for _, k, _ in rows]) / 20
    notion = kind(margin=margin, reference=reference)
    rule = GroupThresholds.fit(p, z, fairness=notion, n_groups=int(z.max()) + 1)
    given_one, apart = rule.probabilities(p, z), differences(notion, z, p)
    assert np.abs(apart @ np.append(given_one, 1 - given_one)).max(initial=0) <= margin + 1e-8
    assert expected_error(given_one, p) == pytest.approx(least_error(notion, z, p), abs=1e-6)


@pytest.mark.parametrize("kind", ABOUT_TRUTH)
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.05])
def test_many_different_scores_are_searched_to_the_end(kind: Any, margin: float) -> None:
    # Far more of them than the program begins with; the whole program has one variable per row.
    rng = np.random.default_rng(3)
    z = rng.choice(3, 900, p=[0.6, 0.3, 0.1])
    p = rng.beta(0.6 + 0.6 * z, 1.3)
    notion = kind(margin=margin)
    rule = GroupThresholds.fit(p, z, fairness=notion, n_groups=3)
    assert expected_error(rule.probabilities(p, z), p) == pytest.approx(
        least_error(notion, z, p), abs=1e-7
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    rows=tables,
    kind=st.sampled_from(ABOUT_TRUTH),
    margin=st.sampled_from([0.0, 0.03, 0.1, 0.25]),
    reference=st.sampled_from(["rest", "pairwise", "overall"]),
)
def test_by_labels_no_mixture_of_thresholds_is_better(
    rows: list[tuple[int, int, int]], kind: Any, margin: float, reference: str
) -> None:
    # Every threshold from above and from below, by the definition, each with a share in its group.
    _, z = np.unique([g for g, _, _ in rows], return_inverse=True)
    p, y = np.array([k for _, k, _ in rows]) / 20, np.array([k for _, _, k in rows])
    n_groups, n = int(z.max()) + 1, len(p)
    notion = kind(margin=margin, reference=reference)
    rule = GroupThresholds.fit(p, z, fairness=notion, n_groups=n_groups, labels=y)
    given_one, apart = rule.probabilities(p, z), differences(notion, z, y.astype(float))
    assert np.abs(apart @ np.append(given_one, 1 - given_one)).max(initial=0) <= margin + 1e-8
    one, constant = apart[:, :n] - apart[:, n:], apart[:, n:].sum(axis=1)
    rules = [
        (g, (z == g) * side)
        for g in range(n_groups)
        for cut in [*np.unique(p), 2.0]
        for side in ((p >= cut), (p < cut))
    ]
    group, columns = np.array([g for g, _ in rules]), np.stack([d for _, d in rules], axis=1)
    solved = linprog(
        (1 - 2 * p) @ columns,
        A_ub=np.concatenate([one, -one]) @ columns,
        b_ub=np.concatenate([margin - constant, margin + constant]),
        A_eq=(group == np.arange(n_groups)[:, None]).astype(float),
        b_eq=np.ones(n_groups),
    )
    assert expected_error(given_one, p) == pytest.approx((solved.fun + p.sum()) / n, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(rows=tables, kind=st.sampled_from(ABOUT_TRUTH), labelled=st.booleans(), data=st.data())
def test_a_wider_margin_never_errs_more_and_the_widest_leaves_the_models_own_decisions(
    rows: list[tuple[int, int, int]], kind: Any, labelled: bool, data: Any
) -> None:
    _, z = np.unique([g for g, _, _ in rows], return_inverse=True)
    p, y = np.array([k for _, k, _ in rows]) / 20, np.array([k for _, _, k in rows])
    more = {"n_groups": int(z.max()) + 1, "labels": y if labelled else None}
    rules = [
        GroupThresholds.fit(p, z, fairness=kind(margin=m), **more) for m in (0.0, 0.05, 0.2, 1.0)
    ]
    errors = [expected_error(rule.probabilities(p, z), p) for rule in rules]
    assert all(wide <= narrow + 1e-7 for narrow, wide in pairwise(errors))
    assert np.array_equal(rules[-1].probabilities(p, z), (p > 0.5).astype(float))
    # Neither the order of the rows nor how often all of them occur, nor the names of the groups
    # matter to what the error is.
    order = np.array(data.draw(st.permutations(range(len(p)))))
    twice = np.append(order, order)
    again = GroupThresholds.fit(
        p[twice],
        z.max() - z[twice],
        fairness=kind(margin=0.05),
        n_groups=more["n_groups"],
        labels=y[twice] if labelled else None,
    )
    whole = again.probabilities(p, z.max() - z)
    # A rate is read from one record on, and twice as many rows may have one.
    if (
        labelled
        or differences(kind(margin=0.0), z, p).shape
        == differences(kind(margin=0.0), np.append(z, z), np.append(p, p))[:, ::2].shape
    ):
        assert expected_error(whole, p) == pytest.approx(errors[1], abs=1e-6)


def test_several_steps_of_a_group_are_drawn_between_them_and_old_files_have_one() -> None:
    rule = GroupThresholds.of_steps(
        [((0.2, 0.6), (0.3, 1.0), (0.4, 1.0)), ((0.0,), (0.7,), (0.7,))]
    )
    z = np.array([0, 0, 0, 0, 0, 1, 1])
    p = np.array([0.1, 0.2, 0.5, 0.6, 0.9, 0.0, 1.0])
    assert rule.probabilities(p, z).tolist() == [0.0, 0.3, 0.4, 1.0, 1.0, 0.7, 0.7]
    drawn = rule.decide(np.full(4000, 0.5), np.zeros(4000, dtype=int), np.random.default_rng(0))
    assert abs(drawn.mean() - 0.4) < 5 / np.sqrt(4 * 4000)  # five standard errors: 1e-6
    old = GroupThresholds.from_dict({"thresholds": [0.3, 0.7], "at_threshold": [1.0, 0.5]})
    assert old.probabilities([0.3, 0.7, 0.8], [0, 1, 1]).tolist() == [1.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="thresholds of one group must rise"):
        GroupThresholds.of_steps([((0.6, 0.2), (1.0, 1.0), (1.0, 1.0))])


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_many_groups_are_within_the_margin_as_their_reference_defines_it(reference: str) -> None:
    rng = np.random.default_rng(0)
    z = rng.choice(4, 600, p=[0.55, 0.3, 0.1, 0.05])
    p = np.clip(rng.beta(2, 3, 600) + 0.12 * z, 0, 1)
    fairness = DemographicParity(margin=0.07, reference=reference)
    rule = GroupThresholds.fit(p, z, fairness=fairness, n_groups=4)
    rates, share = rule.rates(p, z), np.bincount(z) / 600
    overall = share @ rates
    gaps = {
        "overall": rates - overall,
        "rest": rates - (overall - share * rates) / (1 - share),
        "pairwise": (rates[:, None] - rates[None, :]).ravel(),
    }[reference]
    assert np.abs(gaps).max() == pytest.approx(0.07, abs=1e-6)  # it binds, and is kept
    assert [len(cuts) for cuts in rule.thresholds] == [1, 1, 1, 1]
    assert rule.probabilities([1.0] * 4, [0, 1, 2, 3]).tolist() == [1.0] * 4
    free = GroupThresholds.fit(p, z, fairness=DemographicParity(margin=1.0), n_groups=4)
    assert np.array_equal(free.probabilities(p, z), (p > 0.5).astype(float))
    assert value(rule, p, z) < value(free, p, z)


def test_a_constant_model_is_cut_by_probability_and_stays_within_the_margin() -> None:
    # Where argmax labels are all alike there is nothing to cut; scores that are all alike still
    # have a best answer.
    p, z = np.full(10, 0.3), np.array([0, 1] * 5)
    rule = GroupThresholds.fit(p, z, fairness=DemographicParity(margin=0.1), n_groups=2)
    assert rule.rates(p, z).tolist() == [0.0, 0.0]
    half = GroupThresholds.of_steps([((0.3,), (0.5,), (1.0,)), ((0.3,), (0.0,), (1.0,))])
    drawn = half.decide(np.full(4000, 0.3), np.zeros(4000, dtype=int), np.random.default_rng(0))
    assert abs(drawn.mean() - 0.5) < 5 / np.sqrt(4 * 4000)  # five standard errors: 1e-6
    assert not half.decide(p, np.ones(10, dtype=int), np.random.default_rng(0)).any()


def test_the_draw_moves_scores_at_a_threshold_only() -> None:
    rng = np.random.default_rng(1)
    p, z = rng.random(200), rng.integers(0, 2, 200)
    p[z == 1] **= 2
    rule = GroupThresholds.fit(p, z, fairness=DemographicParity(margin=0.0), n_groups=2)
    runs = np.array([rule.decide(p, z, np.random.default_rng(s)) for s in range(50)])
    moved = (runs != runs[0]).any(axis=0)
    assert moved.sum() <= 1
    assert all(p[i] in rule.thresholds[z[i]] for i in np.flatnonzero(moved))


def test_it_survives_json() -> None:
    rule = GroupThresholds.of_steps(
        [((0.1 + 0.2,), (1.0,), (1.0,)), ((0.1, 0.7), (0.2, 1 / 3), (0.2, 1.0))]
    )
    assert GroupThresholds.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


@pytest.mark.parametrize(
    ("p", "z", "message"),
    [
        ([0.2, 1.2], [0, 1], "one probability of class 1 per row"),
        ([[0.2, 0.8]], [0], "more than two classes"),
        ([0.2, 0.3], [0, 0], "Group 1 has no public row"),
        ([0.2, 0.3], [0, 5], "groups must be at least 0 and below 2"),
        ([0.2, 0.3, 0.1], [0, 1], "one row each"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(p: Any, z: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupThresholds.fit(p, z, fairness=DemographicParity(margin=0.1), n_groups=2)

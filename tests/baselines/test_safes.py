"""SAFES: the map of optimized pre-processing by its definition, what is moved, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import Budget
from evenhand.baselines.safes import OptimizedPreprocessing, distances, fair_map
from evenhand.generators import MarginalSynthesizer

SHAPES = [(3, 2), (2, 3)]  # levels of a column, labels: six states each
TOLERANCE = 1e-6  # of the solver


def joint_of(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(12, 0.7)).reshape(2, 6)


def told(
    joint: np.ndarray, moves: np.ndarray, apart: np.ndarray, labels: np.ndarray
) -> tuple[float, float, float]:
    """Total variation, furthest share of a label from its target, largest expected distance.

    One group, state and target at a time, as Calmon et al. write them.
    """
    new = {(d, w): 0.0 for d in range(2) for w in range(6)}
    furthest = 0.0
    for d in range(2):
        for z in range(6):
            expected = 0.0
            for w in range(6):
                new[d, w] += joint[d, z] * moves[d, z, w]
                expected += 0.0 if moves[d, z, w] == 0 else moves[d, z, w] * apart[z, w]
            furthest = max(furthest, expected)
    variation = sum(abs(new[0, w] + new[1, w] - joint[0, w] - joint[1, w]) for w in range(6)) / 2
    off = 0.0
    for y in range(max(labels) + 1):
        target = sum(joint[d, z] for d in range(2) for z in range(6) if labels[z] == y)
        for d in range(2):
            share = sum(new[d, w] for w in range(6) if labels[w] == y) / joint[d].sum()
            off = max(off, abs(share - target))
    return variation, off, furthest


@pytest.mark.slow
@settings(deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 10_000),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
    distortion=st.sampled_from([0.6, 1.0, 2.0]),
)
def test_a_map_keeps_both_constraints_by_their_definitions_and_no_sampled_map_changes_less(
    shape: tuple[int, int], seed: int, margin: float, distortion: float
) -> None:
    joint, apart, labels = joint_of(seed), distances(shape), np.arange(6) % shape[1]
    try:
        moves = fair_map(joint, apart, labels, margin=margin, distortion=distortion)
    except ValueError:
        assert distortion < 1.0  # every label can be changed at a distance of 1
        return
    assert moves.sum(axis=2) == pytest.approx(1.0)
    assert moves.min() >= 0
    assert not moves[:, ~np.isfinite(apart)].any()
    least, off, furthest = told(joint, moves, apart, labels)
    assert off <= margin / 2 + TOLERANCE
    assert furthest <= distortion + TOLERANCE
    # Brute force: maps around this one, and around one that keeps half of both, which is one.
    rng, bases, n_kept = np.random.default_rng(seed), [moves], 0
    if margin and distortion > 1:
        bases.append(fair_map(joint, apart, labels, margin=margin / 2, distortion=distortion / 2))
    for base, step in [(base, step) for base in bases for step in (0.0, *[0.01, 0.1] * 20)]:
        random = rng.dirichlet(np.full(6, 0.3), size=(2, 6)) * np.isfinite(apart) + np.eye(6) * 1e-9
        mixed = base + step * (random / random.sum(axis=2, keepdims=True) - base)
        variation, off, furthest = told(joint, mixed, apart, labels)
        if off <= margin / 2 + TOLERANCE and furthest <= distortion + TOLERANCE:
            n_kept += 1
            # A step of a row may weigh a thousandth.
            assert least <= variation + 1e-3 * distortion + TOLERANCE
    assert n_kept >= len(bases)


def test_the_least_change_of_two_labels_is_half_of_what_the_groups_are_apart() -> None:
    # By hand: shares .2 and .6 in halves of the rows, both moved to .4; no share of a label moves,
    # so nothing changes about all rows, and a quarter of zeros and a third of ones are moved.
    moves = fair_map([[0.4, 0.1], [0.2, 0.3]], distances((2,)), [0, 1], margin=0, distortion=0.5)
    assert moves == pytest.approx(
        np.array([[[0.75, 0.25], [0, 1]], [[1, 0], [1 / 3, 2 / 3]]]), abs=1e-6
    )
    within = fair_map([[0.4, 0.1], [0.2, 0.3]], distances((2,)), [0, 1], margin=0.4, distortion=0)
    assert within == pytest.approx(np.repeat(np.eye(2)[None], 2, axis=0))


def test_steps_are_counted_and_longer_ones_forbidden() -> None:
    apart = distances((3, 2, 2))
    place = {at: i for i, at in enumerate(np.ndindex(3, 2, 2))}
    assert apart[place[0, 0, 0], place[1, 1, 1]] == 3
    assert apart[place[0, 0, 0], place[2, 0, 0]] == np.inf
    assert (apart == apart.T).all()
    # With three labels every other label is one step away.
    assert distances((2, 3))[0].tolist() == [0, 1, 1, 1, 2, 2]


def drawn(n: int = 6000) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sex = rng.choice(["F", "M"], n, p=[0.4, 0.6])
    skill = rng.normal(size=n) + 0.8 * (sex == "M")
    rows = pd.DataFrame({"other": rng.normal(size=n), "skill": skill, "sex": sex})
    rows["town"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    rows["years"] = np.round(5 * skill).astype(np.int32)
    rows["hired"] = np.where(skill + rng.normal(size=n) / 2 > 0.5, "yes", "no")
    return rows


def gap(rows: pd.DataFrame) -> float:
    shares = (rows["hired"] == "yes").groupby(rows["sex"]).mean()
    return float(shares.max() - shares.min())


def test_labels_are_evened_out_and_columns_beside_the_chosen_ones_stay() -> None:
    # Two shares of 2,400 and 3,600 draws: standard deviation below .014; five of these.
    rows = drawn()
    assert gap(rows) > 0.2
    even = OptimizedPreprocessing(margin=0.05, n_columns=2).transform(
        rows, label="hired", sensitive="sex", random_state=0
    )
    assert gap(even) <= 0.05 + 5 * 0.014
    assert gap(even) < gap(rows) / 2
    assert (even.dtypes == rows.dtypes).all()
    for name in ("other", "town", "sex"):
        pd.testing.assert_series_equal(even[name], rows[name])
    assert set(even["years"]) <= set(rows["years"])
    again = OptimizedPreprocessing(margin=0.05, n_columns=2).transform(
        rows, label="hired", sensitive="sex", random_state=0
    )
    pd.testing.assert_frame_equal(even, again)


def test_a_value_is_left_for_one_of_the_next_level_and_no_other_is_touched() -> None:
    rows = drawn()[["skill", "sex", "hired"]]
    even = OptimizedPreprocessing(margin=0.0, distortion=1.0, n_columns=1).transform(
        rows, label="hired", sensitive="sex", random_state=0
    )
    moved = (even["skill"] != rows["skill"]).to_numpy()
    cuts = np.quantile(rows["skill"], [0.25, 0.5, 0.75])
    old, new = (np.searchsorted(cuts, table["skill"], side="right") for table in (rows, even))
    assert moved.sum() > 50
    assert (np.abs(new - old)[moved] == 1).all()
    for level in np.unique(new[moved]):
        came = even["skill"][moved & (new == level)]
        assert came.isin(rows["skill"]).all()
        assert came.nunique() > 1


def test_rows_within_the_margin_are_left_as_they_are() -> None:
    rows = drawn()
    same = OptimizedPreprocessing(margin=1.0).transform(rows, label="hired", sensitive="sex")
    pd.testing.assert_frame_equal(same, rows)


def test_it_follows_a_private_generator_whose_claim_is_left_as_it_is() -> None:
    made = MarginalSynthesizer(random_state=0).fit(
        drawn(), label="hired", sensitive="sex", budget=Budget(epsilon=2.0, delta=1e-6)
    )
    spent = len(made.ledger_.entries)
    rows = made.sample(6000, balance=(), random_state=0)
    even = OptimizedPreprocessing(margin=0.02).transform(
        rows, label="hired", sensitive="sex", random_state=0
    )
    assert gap(even) <= 0.02 + 5 * 0.014 < gap(rows)
    assert len(made.ledger_.entries) == spent


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"margin": 1.5}, r"margin must lie in \[0, 1\]"),
        ({"distortion": -1.0}, "distortion must be finite and >= 0"),
        ({"n_columns": 0}, "n_columns must be at least 1"),
        ({"n_levels": 1}, "n_levels must be at least 2"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OptimizedPreprocessing(**changes)


def test_a_distortion_too_small_for_the_margin_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"distortion=0\.01 .* margin=0 .* Raise distortion"):
        OptimizedPreprocessing(margin=0.0, distortion=0.01).transform(
            drawn(), label="hired", sensitive="sex"
        )


def test_one_group_or_one_label_and_unknown_columns_are_refused() -> None:
    rows = drawn(200)
    with pytest.raises(ValueError, match="got 1 in 'sex'"):
        OptimizedPreprocessing().transform(rows.assign(sex="F"), label="hired", sensitive="sex")
    with pytest.raises(ValueError, match="'job'"):
        OptimizedPreprocessing().transform(rows, label="job", sensitive="sex")

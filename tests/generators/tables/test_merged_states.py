"""Columns of many states: ranges for pairs, states within them; exact, and found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets import Schema
from evenhand.datasets.parquet import ParquetRows
from evenhand.generators import MarginalSynthesizer, load
from evenhand.generators.tables.merged_states import MOST_STATES, MergedStates, summed
from evenhand.privacy import Budget, SeededNoise

SIZES = (3, MOST_STATES, MOST_STATES + 1, 200)


def tables(seed: int, n_conditions: int = 3) -> list[Any]:
    """Return counts of four columns, in which many states are empty."""
    rng = np.random.default_rng(seed)
    return [np.maximum(rng.normal(size=(n_conditions, size)), 0) * 100 for size in SIZES]


@given(seed=st.integers(0, 99), n_ranges=st.integers(1, MOST_STATES))
def test_ranges_are_of_neighbors_and_of_nearly_equal_records(seed: int, n_ranges: int) -> None:
    counts = tables(seed)
    merged = MergedStates.of(counts, n_ranges)
    assert set(merged.ranges) == {2, 3}  # the columns of more states than a tree takes
    for i, ranges in merged.ranges.items():
        assert (np.diff(ranges) >= 0).all()
        assert set(ranges) == set(range(ranges.max() + 1))
        assert ranges.max() < n_ranges
        held = counts[i].sum(axis=0)
        in_range = np.array([held[ranges == k].sum() for k in range(ranges.max() + 1)])
        assert (in_range <= held.sum() / n_ranges + 2 * held.max()).all()
        for k in range(ranges.max() + 1):
            assert merged.within[i][:, ranges == k].sum(axis=1) == pytest.approx(np.ones(3))
    coarse = merged.tables(counts)
    assert coarse[0] is counts[0]
    assert coarse[3].sum() == pytest.approx(counts[3].sum())


@given(seed=st.integers(0, 99))
def test_an_event_has_the_chance_that_its_states_have(seed: int) -> None:
    """Beside the definition: all states of all columns, one by one."""
    rng = np.random.default_rng(seed)
    (full,) = tables(seed, 2)[3:]
    merged = MergedStates.of([full], 20)
    full /= full.sum(axis=1, keepdims=True)
    coarse, likelihood = summed(full, merged.ranges[0]), rng.random(200) * (rng.random(200) < 0.3)
    held, by_range = merged.given({0: likelihood})
    within = merged.within[0]
    joint = coarse[:, merged.ranges[0]] * within * likelihood
    assert (coarse * by_range[0]).sum(axis=1) == pytest.approx(joint.sum(axis=1))
    after = (coarse * by_range[0])[:, merged.ranges[0]] * held.within[0]
    assert after == pytest.approx(joint)


def test_states_are_drawn_as_often_as_they_come_within_their_range() -> None:
    """A state's count is a binomial: none of 400 is 5 deviations off but with chance 3e-4."""
    (full,) = tables(0, 2)[3:]
    merged, n = MergedStates.of([full], 9), 40_000
    rng = np.random.default_rng(0)
    conditions, coarse = rng.integers(2, size=n), rng.integers(9, size=n)
    drawn = merged.drawn(coarse[:, None], conditions, rng)[:, 0]
    assert (merged.ranges[0][drawn] == coarse).all()
    for c in range(2):
        of_range = np.bincount(coarse[conditions == c], minlength=9)[merged.ranges[0]]
        p, found = merged.within[0][c], np.bincount(drawn[conditions == c], minlength=200)
        assert (np.abs(found - of_range * p) <= 5 * np.sqrt(of_range * p * (1 - p)) + 1e-9).all()


N, STATES = 20_000, 300


def people(seed: int = 0) -> pd.DataFrame:
    """Return rows whose three columns of 300 codes are near each other, and decide the label."""
    rng = np.random.default_rng(seed)
    base = rng.integers(STATES, size=N)
    codes = {f"c{j}": np.clip(base + rng.integers(-9, 10, N), 0, STATES - 1) for j in range(3)}
    frame = pd.DataFrame({name: [f"v{c:03}" for c in values] for name, values in codes.items()})
    label = np.where(base + rng.normal(0, 60, N) > STATES / 2, "yes", "no")
    return frame.assign(sex=rng.choice(["F", "M"], N), y=label)


def fit(rows: Any, **settings: Any) -> MarginalSynthesizer:
    names = [f"v{i:03}" for i in range(STATES)]
    schema = Schema.declared(
        {**{f"c{j}": names for j in range(3)}, "sex": ["F", "M"], "y": ["no", "yes"]}
    )
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, **settings)
    budget = Budget(epsilon=8.0, delta=1e-6)
    return made.fit(rows, label="y", sensitive="sex", budget=budget, schema=schema)


def numbers(frame: pd.DataFrame) -> Any:
    return frame[["c0", "c1", "c2"]].apply(lambda c: c.str[1:].astype(int)).to_numpy()


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise", "ignore:Few private records")
def test_columns_of_many_states_keep_what_they_have_to_do_with_each_other(tmp_path: Path) -> None:
    """Apart from each other they differ by 100 in the mean; real ones by 6.3, a range is 10."""
    frame = people()
    made = fit(frame)
    assert {max(r) + 1 for r in made.merged_.ranges.values()} <= set(range(20, MOST_STATES + 1))
    drawn = numbers(made.sample(5000, balance=(), random_state=0))
    assert np.abs(drawn[:, 0] - drawn[:, 1]).mean() < 30
    alone = numbers(fit(frame, pairs=False).sample(5000, balance=(), random_state=0))
    assert np.abs(alone[:, 0] - alone[:, 1]).mean() > 60
    # All states are drawn, not one of each range.
    assert len(np.unique(drawn)) > 250

    # A code that is asked for is drawn, and what is near it in the other columns.
    asked = made.sample(200, conditions={"c0": "v150"}, balance=(), random_state=0)
    assert set(asked["c0"]) == {"v150"}
    assert np.abs(numbers(asked)[:, 1] - 150).mean() < 30

    made.save(tmp_path / "kept")
    again = load(tmp_path / "kept").sample(300, random_state=1)
    assert again.equals(made.sample(300, random_state=1))

    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=3000)
    streamed = fit(ParquetRows(tmp_path / "rows.parquet"))
    assert streamed.sample(300, random_state=1).equals(again)


def test_draws_do_not_hang_on_the_order_in_which_columns_come_back() -> None:
    """A folder has its arrays in an order of its own."""
    merged = MergedStates.of(tables(0), 9)
    turned = MergedStates(
        ranges=dict(reversed(merged.ranges.items())), within=dict(reversed(merged.within.items()))
    )
    codes, conditions = np.full((50, 4), 2), np.arange(50) % 3
    one, other = (m.drawn(codes, conditions, np.random.default_rng(0)) for m in (merged, turned))
    assert (one == other).all()

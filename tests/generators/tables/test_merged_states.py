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
from evenhand.generators.tables import marginal
from evenhand.generators.tables.label_tilt import LabelTilt, Readings
from evenhand.generators.tables.merged_states import (
    MOST_STATES,
    MergedStates,
    MergedTree,
    most_held,
    summed,
)
from evenhand.generators.tables.tree_distribution import JunctionTree, Table, TreeDistribution
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


@pytest.mark.slow
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


@given(seed=st.integers(0, 99))
def test_within_a_range_some_states_can_be_alike_for_all_labels(seed: int) -> None:
    """Beside the definition: those by the records of both labels, others as they were to others."""
    rng, counts = np.random.default_rng(seed), tables(seed, n_conditions=4)
    merged = MergedStates.of(counts, 9)
    own = rng.random(200) < rng.choice([0.1, 0.9, 1.0])
    alike = merged.alike_by_label(counts, {3: own}, n_labels=2)
    assert alike.within[2] is merged.within[2]
    ranges, before, within = merged.ranges[3], merged.within[3], alike.within[3]
    for group in range(2):
        of_group = counts[3][group] + counts[3][2 + group]
        for at in range(ranges.max() + 1):
            here = ranges == at
            for condition in (group, 2 + group):
                assert within[condition][here].sum() == pytest.approx(1.0)
                expected = of_group[here & own] / of_group[here].sum()
                assert within[condition][here & own] == pytest.approx(expected)
                others = before[condition][here & ~own]
                kept = within[condition][here & ~own]
                assert kept * others.sum() == pytest.approx(others * kept.sum())


def test_a_tree_of_ranges_is_a_distribution_over_states() -> None:
    rng, conditions = np.random.default_rng(0), np.arange(3)
    full = tables(0)
    merged = MergedStates.of(full, 9)
    each = tuple(
        Table(columns=(i,), parts=conditions, values=np.log(table + 1.0))
        for i, table in enumerate(merged.tables(full))
    )
    tree = TreeDistribution(tree=JunctionTree.alone(len(SIZES)), tables=each)
    states = MergedTree(tree=tree, merged=merged)
    codes = states.sample(np.arange(600) % 3, rng)
    assert (codes.max(axis=0) < SIZES).all()
    assert codes[:, 3].max() >= 9  # a state, not a range
    density = states.log_density(codes, np.arange(600) % 3)
    by_hand = np.zeros(600)
    for i, table in enumerate(each):
        p = np.exp(table.values) / np.exp(table.values).sum(axis=1, keepdims=True)
        at = merged.ranges[i][codes[:, i]] if i in merged.ranges else codes[:, i]
        by_hand += np.log(p[np.arange(600) % 3, at])
    assert density == pytest.approx(by_hand)
    only = rng.random(200) < 0.3
    held, chances = states.given({3: only.astype(np.float64)})
    assert only[held.sample(np.arange(600) % 3, rng)[:, 3]].all()
    p = np.exp(each[3].values) / np.exp(each[3].values).sum(axis=1, keepdims=True)
    of_states = p[:, merged.ranges[3]] * merged.within[3]
    assert chances == pytest.approx(of_states[:, only].sum(axis=1))


def test_of_merged_columns_ranges_are_read_and_some_states() -> None:
    readings = Readings.of(2, 2, (3, 2), (0, 0))
    ranges, own = {0: np.array([0, 0, 1, 1, 2])}, np.array([False, True, False, True, False])
    told = {0: np.array([1.0, 5.0, 2.0, 2.0, 0.0])}
    apart = readings.apart(ranges, {0: own}, told)
    read, other = apart.columns
    of_ranges = [[0, 0], [0, 0], [1, 0], [1, 0], [0, 1]]
    assert read[:4].tolist() == [[*of, i == 1, i == 3] for i, of in enumerate(of_ranges[:4])]
    assert read[4].tolist() == [0.4, 0.0, 0.5, 0.2]  # the mean over 10 records of the others
    assert apart.is_by_state.tolist() == [False] * 3 + [True] * 4 + [False]
    assert apart.is_by_state.size == apart.n
    assert other is readings.columns[1]
    assert readings.apart(ranges, {}, told).columns[0].tolist() == of_ranges


def test_the_states_with_most_records_are_taken_over_all_columns() -> None:
    counts = {0: np.array([4.0, 9.0, 1.0]), 2: np.array([7.0, 2.0])}
    found = {i: states.tolist() for i, states in most_held(counts, 3).items()}
    assert found == {0: [True, True, False], 2: [True, False]}
    assert list(most_held(counts, 1)) == [0]
    assert most_held(counts, 0) == most_held(counts, -3) == most_held({}, 3) == {}
    assert not most_held({1: np.array([0.0, 2.0])}, 2)[1][0]  # without records none is read


SCHOOLS = 200


def pupils(seed: int) -> tuple[pd.DataFrame, Any]:
    """Return rows of 200 schools, where few or most pupils pass, in no order."""
    rng = np.random.default_rng(seed)
    passes = rng.permutation(np.linspace(0.1, 0.9, SCHOOLS))
    school = rng.integers(SCHOOLS, size=N)
    frame = pd.DataFrame(
        {
            "school": [f"s{i:03}" for i in school],
            "born": rng.choice(["early", "late"], N),
            "sex": rng.choice(["F", "M"], N),
            "y": np.where(rng.random(N) < passes[school], "yes", "no"),
        }
    )
    return frame, passes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_a_column_of_many_states_tells_of_the_label_state_by_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbors differ by .27 in the mean, so ranges of them say next to nothing."""
    frame, passes = pupils(0)
    names = [f"s{i:03}" for i in range(SCHOOLS)]
    schema = Schema.declared(
        {"school": names, "born": ["early", "late"], "sex": ["F", "M"], "y": ["no", "yes"]}
    )

    def fit_pupils() -> MarginalSynthesizer:
        made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
        budget = Budget(epsilon=3.0, delta=1e-6)
        return made.fit(frame, label="y", sensitive="sex", budget=budget, schema=schema)

    def off(made: MarginalSynthesizer) -> tuple[float, float]:
        """Return how far a school's chance, and its share in drawn rows, is off in the mean."""
        asked = pd.DataFrame({"school": names, "born": "late", "sex": "F"})
        drawn = made.sample(40_000, balance=(), random_state=0)
        shares = (drawn["y"] == "yes").groupby(drawn["school"]).mean()[names].to_numpy()
        chances = made.label_chances(asked)[:, 1]
        slopes.append(float(np.polyfit(chances, shares, 1)[0]))
        return float(np.abs(chances - passes).mean()), float(np.abs(shares - passes).mean())

    slopes: list[float] = []

    made = fit_pupils()
    assert list(made.merged_.ranges) == [0]
    assert made.tilt_ is not None
    assert len(made.tilt_.columns[0]) == SCHOOLS
    # Schools differ by .2 from their mean. 100 records of each tell it to .04, noise adds to it.
    assert max(off(made)) < 0.1
    assert 0.9 < slopes[0] < 1.1  # rows are drawn by these chances
    asked = made.sample(300, conditions={"school": "s007"}, balance=(), random_state=0)
    assert set(asked["school"]) == {"s007"}
    assert abs((asked["y"] == "yes").mean() - passes[7]) < 0.2

    made.save(tmp_path / "kept")
    again = load(tmp_path / "kept")
    assert isinstance(again, MarginalSynthesizer)
    assert off(again) == off(made)

    monkeypatch.setattr(marginal, "STATE_SIGNAL", 1e9)  # records could tell of no state
    assert off(fit_pupils())[0] > 1.5 * off(made)[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_a_state_without_a_record_does_not_make_a_label_certain() -> None:
    """Of 240 declared schools 80 have pupils: noise alone gives the others some."""
    rng = np.random.default_rng(0)
    names = [f"s{i:03}" for i in range(240)]
    open_ones = rng.permutation(240)[:80]
    odds, school = rng.normal(0.0, 0.7, 240), rng.choice(open_ones, N)
    frame = pd.DataFrame(
        {
            "school": [names[i] for i in school],
            "born": rng.choice(["early", "late"], N),
            "sex": rng.choice(["F", "M"], N),
            "y": np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-odds[school])), "yes", "no"),
        }
    )
    schema = Schema.declared(
        {"school": names, "born": ["early", "late"], "sex": ["F", "M"], "y": ["no", "yes"]}
    )
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        frame, label="y", sensitive="sex", budget=Budget(epsilon=3.0, delta=1e-6), schema=schema
    )
    asked = pd.DataFrame({"school": names, "born": "late", "sex": "F"})
    found = np.diff(np.log(made.label_chances(asked)), axis=1)[:, 0]
    closed = np.setdiff1d(np.arange(240), open_ones)
    # Noise that nothing holds gives them the usual deviation of 1 at most; it would be 5 and more.
    assert found[closed].std() < 1.5
    assert np.corrcoef(found[open_ones], odds[open_ones])[0, 1] > 0.85


def test_scores_by_range_of_an_earlier_folder_are_those_of_its_states() -> None:
    ranges = {0: np.array([0, 0, 1])}
    arrays = {
        **dict.fromkeys(("shares", "groups", "odds", "most", "mean"), np.ones((2, 2))),
        "column_0": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "column_1": np.array([[5.0, 6.0], [7.0, 8.0]]),
    }
    tilt = LabelTilt.restored(arrays, ranges)
    assert tilt.columns[0].tolist() == [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    assert tilt.columns[1] is arrays["column_1"]

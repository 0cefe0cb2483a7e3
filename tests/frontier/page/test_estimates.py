"""Means and intervals over seeds, and the front of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evenhand.frontier import Run
from evenhand.frontier.page import estimates
from evenhand.testing.frontier import synthetic_runs


def settings(runs: list[Run]) -> estimates.Estimates:
    return estimates.of_settings(estimates.of_runs(runs), estimates.setting_numbers(runs))


def test_a_setting_is_the_mean_of_its_seeds_with_students_interval() -> None:
    runs = synthetic_runs(3, n_seeds=4)
    found = settings(runs)
    assert found.n_seeds.tolist() == [4, 4, 4]
    for i in range(3):
        own = [run for run in runs if run.setting.arguments["number"] == i]
        for name in ("gap", "error"):
            values = [getattr(run, name) for run in own]
            low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
            assert found.value[name][i] == pytest.approx(np.mean(values))
            assert found.low[name][i] == pytest.approx(max(low, 0))
            assert found.high[name][i] == pytest.approx(min(high, 1))


def test_a_single_seed_keeps_the_interval_of_its_test_rows() -> None:
    (run,) = synthetic_runs(1)
    found = settings([run])
    assert (found.low["gap"][0], found.high["gap"][0]) == run.gap_interval
    assert (found.low["error"][0], found.high["error"][0]) == run.error_interval


def test_the_epsilon_of_a_setting_is_its_largest() -> None:
    one, two = synthetic_runs(1, n_seeds=2)
    assert settings([replace(one, epsilon=2.0), replace(two, epsilon=2.5)]).epsilon[0] == 2.5
    assert settings([replace(one, epsilon=math.inf), two]).epsilon[0] == math.inf


def test_what_one_seed_lacks_its_setting_lacks() -> None:
    one, two = synthetic_runs(1, n_seeds=2)
    found = settings([replace(one, gap=math.nan), two])
    assert math.isnan(found.value["gap"][0])
    assert not math.isnan(found.value["error"][0])


def test_the_front_is_what_no_other_point_beats() -> None:
    runs = synthetic_runs(120)
    runs = [
        replace(run, coverage=math.nan) if i % 7 == 0 else replace(run, error=round(run.error, 2))
        for i, run in enumerate(runs)
    ]
    costs = [
        (r.epsilon, r.gap, r.error, 9.0 if math.isnan(r.coverage) else -r.coverage) for r in runs
    ]
    expected = [
        not any(
            all(b <= a for a, b in zip(mine, other, strict=True)) and other != mine
            for other in costs
        )
        for mine in costs
    ]
    single = estimates.of_runs(runs)
    found = estimates.on_front(single, np.zeros(len(runs), dtype=np.int64))
    assert found.tolist() == expected
    assert 0 < sum(expected) < len(runs)


def test_points_of_two_kinds_are_not_compared() -> None:
    better, worse = synthetic_runs(1, n_seeds=2)
    worse = replace(worse, error=better.error + 0.1, gap=better.gap)
    single = estimates.of_runs([better, worse])
    assert estimates.on_front(single, np.array([0, 0])).tolist() == [True, False]
    assert estimates.on_front(single, np.array([0, 1])).tolist() == [True, True]


def test_setting_numbers_count_settings_in_the_order_of_appearance() -> None:
    runs = synthetic_runs(3, n_seeds=2)
    mixed = [runs[i] for i in (4, 0, 5, 2, 1, 3)]
    owner = estimates.setting_numbers(mixed)
    assert owner.tolist() == [0, 1, 0, 2, 1, 2]
    for (i, a), (j, b) in itertools.combinations(enumerate(mixed), 2):
        same = a.setting.without_seed() == b.setting.without_seed()
        assert same == (owner[i] == owner[j])

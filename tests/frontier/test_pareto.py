"""Fronts by their definition, volumes by chance, and the odds of being on a front."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import norm

from evenhand.frontier import Run, front, hypervolume
from evenhand.frontier.pareto import REFERENCE, by_setting, front_probability
from evenhand.frontier.run import OBJECTIVES

Make = Callable[..., Run]

# Few values, so that ties, infinities and NaN meet in most draws.
SHARE = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan])
EPSILON = st.sampled_from([0.5, 1.0, 3.0, math.inf])
POINT = st.tuples(EPSILON, SHARE, SHARE, SHARE)
SOME = st.lists(st.sampled_from(OBJECTIVES), min_size=1, max_size=4, unique=True)


def better_or_equal(a: float, b: float, name: str) -> bool:
    return a >= b if name == "coverage" else a <= b


def on_front_by_definition(points: np.ndarray, names: list[str]) -> list[bool]:
    """Nobody is at least as good everywhere and better somewhere; who lacks a number is out."""

    def dominates(p: np.ndarray, q: np.ndarray) -> bool:
        as_good = all(better_or_equal(x, y, n) for x, y, n in zip(p, q, names, strict=True))
        return as_good and not np.array_equal(p, q)

    known = [not np.isnan(p).any() for p in points]
    return [
        known[i] and not any(known[j] and dominates(q, p) for j, q in enumerate(points))
        for i, p in enumerate(points)
    ]


@given(st.lists(POINT, max_size=40), SOME)
def test_the_front_is_what_its_definition_says(points: list[tuple], names: list[str]) -> None:
    columns = [OBJECTIVES.index(name) for name in names]
    values = np.array(points, dtype=float).reshape(-1, 4)[:, columns]
    assert front(values, names).tolist() == on_front_by_definition(values, names)


def test_the_front_of_many_points_is_what_its_definition_says() -> None:
    # Above a few dozen points moocore takes another algorithm.
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.choice([1.0, 2.0, 4.0, np.inf], 600), rng.random((600, 3))])
    values[:, 1:] = values[:, 1:].round(1)
    assert front(values).tolist() == on_front_by_definition(values, list(OBJECTIVES))
    assert 5 < front(values).sum() < 500


def test_a_front_of_runs_reads_their_objectives(run_of: Make) -> None:
    runs = [
        run_of(epsilon=1.0, error=0.2, gap=0.05, coverage=0.9),
        run_of(epsilon=1.0, error=0.2, gap=0.05, coverage=1.0),
        run_of(epsilon=3.0, error=0.1, gap=0.05, coverage=1.0),
        run_of(epsilon=math.inf, error=0.1, gap=0.05, coverage=1.0),
        run_of(epsilon=math.inf, error=0.05, gap=0.05, coverage=1.0),
        run_of(epsilon=0.1, error=math.nan, gap=math.nan, coverage=0.0),
    ]
    assert front(runs).tolist() == [False, True, True, False, True, False]
    assert front(runs, ("coverage",)).tolist() == [False, True, True, True, True, False]
    assert front([]).tolist() == []


@given(st.lists(POINT, min_size=1, max_size=30))
def test_the_volume_of_a_cloud_is_that_of_its_front_and_grows_with_it(points: list[tuple]) -> None:
    values = np.array(points, dtype=float)
    whole = hypervolume(values)
    assert hypervolume(values[front(values)]) == pytest.approx(whole, abs=1e-12)
    assert hypervolume(values[:-1]) <= whole + 1e-12
    assert 0 <= whole <= 1


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_volume_is_the_share_of_random_points_that_are_dominated(m: int) -> None:
    # A binomial share: off by more than z standard deviations with probability FALSE_ALARM.
    rng, n = np.random.default_rng(m), 40_000
    best = np.array([0.0, 0.0, 0.0, 1.0])[:m]
    worst = np.array([REFERENCE[name] for name in OBJECTIVES])[:m]
    points = best + (worst - best) * rng.uniform(0.2, 0.9, (12, m))
    points[0] = worst  # on the corner: it adds nothing
    darts = best + (worst - best) * rng.random((n, m))
    hit = np.zeros(n, dtype=bool)
    for p in points:
        as_good = [
            darts[:, j] <= p[j] if OBJECTIVES[j] == "coverage" else darts[:, j] >= p[j]
            for j in range(m)
        ]
        hit |= np.all(as_good, axis=0)
    volume = hypervolume(points, OBJECTIVES[:m])
    spread = math.sqrt(volume * (1 - volume) / n)
    z = -norm.ppf(FALSE_ALARM / 2)
    assert abs(hit.mean() - volume) < z * spread
    assert abs(hit.mean() - 0.8 * volume) > z * spread  # it would see a fifth less


def test_the_reference_decides_what_counts() -> None:
    points = np.array([[5.0, 0.5]])
    names = ("epsilon", "error")
    assert hypervolume(points, names) == 0.25
    assert hypervolume(points, names, {"epsilon": 20.0, "error": 1.0}) == 0.375
    assert hypervolume(points, names, {"epsilon": 5.0, "error": 1.0}) == 0.0
    assert hypervolume(np.array([[math.inf, 0.0], [1.0, math.nan]]), names) == 0.0
    assert hypervolume(np.empty((0, 2)), names) == 0.0


def test_what_is_no_objective_or_reference_is_refused(run_of: Make) -> None:
    with pytest.raises(
        ValueError, match=r"objectives must be one of 'epsilon'.*Did you mean 'gap'"
    ):
        front([run_of()], ("gpa",))
    with pytest.raises(
        ValueError, match=r"one to four of epsilon, .* each once, got \('gap', 'gap"
    ):
        front([run_of()], ("gap", "gap"))
    with pytest.raises(ValueError, match="one to four of"):
        hypervolume([run_of()], ())
    with pytest.raises(ValueError, match=r"one column for each of gap, error, got shape \(3, 4\)"):
        front(np.zeros((3, 4)), ("gap", "error"))
    with pytest.raises(ValueError, match="reference lacks error"):
        hypervolume([run_of()], ("gap", "error"), {"gap": 1.0})
    with pytest.raises(
        ValueError, match=r"finite and worse than the ideal coverage of 1, got .*1.0"
    ):
        hypervolume([run_of()], ("coverage",), {"coverage": 1.0})
    with pytest.raises(ValueError, match="worse than the ideal epsilon of 0, got epsilon=inf"):
        hypervolume([run_of()], ("epsilon",), {"epsilon": math.inf})
    with pytest.raises(ValueError, match=r"reference must be one of .*Did you mean 'epsilon'"):
        hypervolume([run_of()], ("epsilon",), {"epsilon": 1.0, "epsilom": 1.0})


# ---------------------------------------------------------------- the odds of being on the front


def test_repetitions_of_a_setting_are_found_together(run_of: Make) -> None:
    runs = [run_of(seed=s, method=m) for s, m in itertools.product((3, 1), ("pate", "dpsgd"))]
    assert list(by_setting(runs).values()) == [[0, 2], [1, 3]]


def rivals(run_of: Make, errors: list[list[float]], width: float = 0.0) -> list[Run]:
    return [
        run_of(
            seed=seed,
            arguments={"i": i},
            error=error,
            error_interval=(error - width / 2, error + width / 2),
            gap_interval=(0.05, 0.05),
        )
        for i, own in enumerate(errors)
        for seed, error in enumerate(own)
    ]


def test_settings_that_surely_win_or_lose_have_the_odds_one_and_nought(run_of: Make) -> None:
    runs = rivals(run_of, [[0.10, 0.11, 0.12], [0.20, 0.21, 0.22], [math.nan, 0.1, 0.1]])
    odds = front_probability(runs, rng=np.random.default_rng(0))
    assert odds[:2].tolist() == [1.0, 0.0]
    assert math.isnan(odds[2])


def test_an_infinite_epsilon_does_not_scatter(run_of: Make) -> None:
    errors = {math.inf: (0.10, 0.11), 3.0: (0.10, 0.11), 1.0: (0.20, 0.21)}
    runs = [
        run_of(seed=seed, epsilon=epsilon, error=error, arguments={"i": i})
        for i, (epsilon, own) in enumerate(errors.items())
        for seed, error in enumerate(own)
    ]
    odds = front_probability(runs, rng=np.random.default_rng(0))
    # The one without a bound leads only when its error is drawn below its twin's: 5 of 16 by hand.
    assert odds[0] == pytest.approx(5 / 16, abs=0.08)
    assert odds[1:].tolist() == [1.0, 1.0]


def test_one_seed_takes_its_scatter_from_its_intervals(run_of: Make) -> None:
    # Two settings, errors .17 and .18, intervals of half width .0196: the difference of the draws
    # has mean .01 and standard deviation .01 * sqrt(2), so the odds are Phi(1 / sqrt(2)) = .760.
    runs = rivals(run_of, [[0.17], [0.18]], width=0.0392)
    n = 5_000
    odds = front_probability(runs, ("error",), n_draws=n, rng=np.random.default_rng(1))
    expected = norm.cdf(1 / math.sqrt(2))
    z = -norm.ppf(FALSE_ALARM / 2) * math.sqrt(expected * (1 - expected) / n)
    assert abs(odds[0] - expected) < z
    assert abs(norm.cdf(1 / (0.5 * math.sqrt(2))) - expected) > z  # half the width would show
    assert odds.sum() == pytest.approx(1.0)


def test_several_seeds_take_their_scatter_from_the_seeds(run_of: Make) -> None:
    # Every resample of two seeds, by hand: deviations sqrt(2) * (-.01, 0, 0, .01) around the mean.
    # The rival stands at .19, so the setting at .18 loses only on its worst resample: 3 of 4; the
    # rival, sure of its value, leads on that one.
    runs = rivals(run_of, [[0.17, 0.19], [0.19, 0.19]])
    n = 4000
    odds = front_probability(runs, ("error",), n_draws=n, rng=np.random.default_rng(2))
    z = -norm.ppf(FALSE_ALARM / 2) * math.sqrt(0.75 * 0.25 / n)
    assert abs(odds[0] - 0.75) < z
    assert abs(odds[1] - 0.25) < z


def test_draws_do_not_depend_on_how_many_are_kept_in_memory(run_of: Make, monkeypatch) -> None:
    from evenhand.frontier import pareto

    runs = rivals(run_of, [[0.17, 0.19], [0.18, 0.19], [0.175, 0.18]])
    one = front_probability(runs, n_draws=500, rng=np.random.default_rng(3))
    monkeypatch.setattr(pareto, "_AT_ONCE", 7)
    other = front_probability(runs, n_draws=500, rng=np.random.default_rng(3))
    assert np.abs(one - other).max() < 0.15
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        front_probability(runs, n_draws=0, rng=np.random.default_rng(3))

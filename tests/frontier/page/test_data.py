"""What the page is told: rounded towards caution, whole settings, every text once."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evenhand.frontier.page.data import NO_CLAIM, gap_words, page_data
from evenhand.privacy import Guarantee
from evenhand.testing.frontier import synthetic_runs

unit = st.floats(0, 1)


@pytest.mark.slow
@given(unit, unit, unit, st.floats(1e-3, 1e5))
def test_numbers_are_rounded_in_the_direction_that_promises_less(
    error: float, gap: float, coverage: float, epsilon: float
) -> None:
    (run,) = synthetic_runs(1)
    run = replace(run, error=error, gap=gap, coverage=coverage, epsilon=epsilon)
    told = {name: column[0] for name, column in page_data([run])["settings"].items()}
    tiny = 1e-9
    assert gap - tiny <= told["gap"] <= gap + 1.001e-6
    assert (1 - error) - 1.001e-6 <= told["accuracy"] <= (1 - error) + tiny
    assert coverage - 1.001e-6 <= told["coverage"] <= coverage + tiny
    assert epsilon * (1 - tiny) <= told["epsilon"] <= epsilon * (1 + 1.001e-5)


@pytest.mark.parametrize("limit", [0.01, 0.03, 0.05, 0.07, 0.1, 0.29, 0.57])
def test_a_value_at_a_limit_stays_at_it(limit: float) -> None:
    (run,) = synthetic_runs(1)
    run = replace(run, error=1 - limit, gap=limit, coverage=limit, epsilon=10 * limit)
    told = {name: column[0] for name, column in page_data([run])["settings"].items()}
    assert [told[name] for name in ("accuracy", "gap", "coverage")] == [limit] * 3
    assert told["epsilon"] == pytest.approx(10 * limit, rel=1e-15)


def test_what_is_not_finite_is_none_and_the_whole_is_plain_json() -> None:
    (run,) = synthetic_runs(1)
    nothing = (math.nan, math.nan)
    run = replace(run, epsilon=math.inf, delta=math.nan, gap=math.nan, coverage=math.nan)
    told = page_data([replace(run, gap_interval=nothing, seconds=math.nan)])
    json.dumps(told, allow_nan=False)
    for name in ("epsilon", "gap", "gap_low", "gap_high", "coverage"):
        assert told["settings"][name] == [None]
    assert told["runs"]["delta"] == [None]


def test_runs_stand_with_their_settings_whatever_order_they_came_in() -> None:
    runs = synthetic_runs(5, n_seeds=3)
    order = np.random.default_rng(1).permutation(len(runs))
    told = page_data([runs[i] for i in order])
    assert told["runs"]["setting"] == sorted(told["runs"]["setting"])
    assert told["runs"]["seed"] == [0, 1, 2] * 5
    by_command = {run.command: run for run in runs}
    for i, setting in enumerate(told["runs"]["setting"]):
        run = by_command[told["texts"][told["runs"]["command"][i]]]
        assert told["runs"]["seed"][i] == run.setting.seed
        assert told["runs"]["gap"][i] == pytest.approx(run.gap, abs=2e-6)
        words = told["texts"][told["settings"]["words"][setting]]
        assert words == ", ".join(
            f"{k}={v}".removesuffix(".0") for k, v in run.setting.arguments.items()
        )
        claim = told["texts"][told["runs"]["claim"][i]]
        assert claim == str(Guarantee.from_dict(run.guarantee))


def test_with_one_seed_each_no_column_is_told_twice() -> None:
    assert "epsilon" not in page_data(synthetic_runs(4))["runs"]
    assert "epsilon" in page_data(synthetic_runs(4, n_seeds=2))["runs"]


def test_every_text_stands_once() -> None:
    texts = page_data(synthetic_runs(40, n_seeds=2))["texts"]
    assert len(texts) == len(set(texts))


def test_groups_have_exact_intervals_of_the_rows_that_were_counted() -> None:
    (run,) = synthetic_runs(1)
    group = {"name": "women", "rows": 1000, "error": 0.1, "selection_rate": 0.25, "coverage": 0.8}
    told = page_data([replace(run, groups=(group, {"name": "men", "rows": None, "error": 0.2}))])
    names, sizes, rates = json.loads(told["texts"][told["runs"]["table"][0]])
    assert (names, sizes) == (["women", "men"], [1000, None])
    assert rates == ["error", "selection_rate", "coverage"]
    cells = np.array(told["runs"]["cells"][0], dtype=float).reshape(2, 3, 3)
    # Errors and selections are counted among the 800 that were answered (SciPy's exact interval).
    for row, (k, n) in enumerate([(80, 800), (200, 800), (800, 1000)]):
        exact = binomtest(k, n).proportion_ci(0.95, method="exact")
        assert cells[0, row] == pytest.approx([k / n, *exact], abs=6e-5)
    assert cells[1, 0, 0] == 0.2
    assert np.isnan(cells[1, 0, 1:]).all()  # no rows are known, so no interval is
    assert np.isnan(cells[1, 1:]).all()


def test_a_claim_that_is_not_whole_is_not_made_up() -> None:
    (run,) = synthetic_runs(1)
    for guarantee in ({}, {"epsilon": 3.0}, {**run.guarantee, "epsilon": -1.0}):
        told = page_data([replace(run, guarantee=guarantee)])
        assert told["texts"][told["runs"]["claim"][0]] == NO_CLAIM


def test_too_many_runs_are_thinned_and_the_front_of_every_method_stays() -> None:
    runs = synthetic_runs(600, n_seeds=2)
    whole, thin = page_data(runs), page_data(runs, most=1000)
    assert whole["left_out"] == 0
    n = len(thin["settings"]["method"])
    assert thin["left_out"] == 600 - n > 0
    assert 490 < n <= 500

    def rows(told: dict) -> set[tuple]:
        return set(
            zip(
                [told["texts"][i] for i in told["settings"]["method"]],
                *(told["settings"][name] for name in ("epsilon", "gap", "accuracy", "coverage")),
                strict=True,
            )
        )

    kept, everything = rows(thin), rows(whole)
    assert kept < everything
    no_bound = math.inf

    def within(a: tuple, b: tuple) -> bool:
        """Whether a meets every limit that b meets, and is of its method."""
        first, second = (no_bound if x[1] is None else x[1] for x in (a, b))
        return a[0] == b[0] and first <= second and a[2] <= b[2] and a[3] >= b[3] and a[4] >= b[4]

    for lost in everything - kept:
        assert any(within(other, lost) for other in kept)


def test_other_data_and_other_gaps_are_kinds_of_their_own() -> None:
    one, two, three = synthetic_runs(3)
    two = replace(two, gap_name="equalized_odds_pairwise")
    three = replace(three, setting=replace(three.setting, data="credit"))
    told = page_data([one, two, three])
    assert told["kinds"] == [
        "made-up: demographic parity, each group against all other groups together",
        "made-up: equalized odds, each group against each other group",
        "credit: demographic parity, each group against all other groups together",
    ]
    assert told["settings"]["kind"] == [0, 1, 2]
    assert told["settings"]["front"] == [1, 1, 1]
    assert gap_words("error_parity_overall") == "error parity, each group against everybody"


def test_no_runs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"runs is empty: .* Run a sweep first\."):
        page_data([])

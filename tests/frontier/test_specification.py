"""An answer to a specification is what looking at every setting by hand would say."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenhand.frontier import Run, Specification, check

Make = Callable[..., Run]
SHARE = st.sampled_from([0.0, 0.1, 0.2, 0.3, math.nan])


def settings_of(run_of: Make, rows: list[tuple[Any, ...]]) -> list[Run]:
    return [
        run_of(arguments={"i": i}, epsilon=e, gap=g, error=x, coverage=c)
        for i, (e, g, x, c) in enumerate(rows)
    ]


ROWS = st.lists(
    st.tuples(st.sampled_from([0.5, 1.0, 3.0, math.inf]), SHARE, SHARE, SHARE),
    min_size=1,
    max_size=8,
)
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "epsilon": st.sampled_from([0.5, 1.0, 2.0]),
        "gap": st.sampled_from([0.0, 0.1, 0.15]),
        "accuracy": st.sampled_from([0.7, 0.8, 0.95]),
        "coverage": st.sampled_from([0.1, 0.2, 0.3]),
    },
)


def kept(run: Run, bounds: dict[str, float]) -> bool:
    """By hand, with NaN keeping nothing."""
    said = {
        "epsilon": lambda b: run.epsilon <= b,
        "gap": lambda b: run.gap <= b,
        "accuracy": lambda b: 1 - run.error >= b,
        "coverage": lambda b: run.coverage >= b,
    }
    return all(said[name](bound) for name, bound in bounds.items())


@given(ROWS, BOUNDS)
def test_the_answer_and_each_price_are_what_trying_says(run_of: Make, rows, bounds) -> None:
    runs = settings_of(run_of, rows)
    answer = check(Specification(**bounds), runs)
    assert answer.feasible == any(kept(run, bounds) for run in runs)
    assert {c.runs[0].key for c in answer.acceptable} == {r.key for r in runs if kept(r, bounds)}
    assert (answer.nearest is None) == answer.feasible
    for price in answer.prices:
        others = {n: b for n, b in bounds.items() if n != price.bound}
        moved = [r for r in runs if kept(r, others)]
        if price.best is None:  # no value helps: whoever keeps the others has no such number
            assert all(not math.isfinite(getattr(r, price.bound, 1 - r.error)) for r in moved)
            continue
        # At the price some run is acceptable, and just inside of it none is.
        assert any(kept(run, others | {price.bound: price.best}) for run in runs)
        inside = 1e-9 if price.bound in ("accuracy", "coverage") else -1e-9
        assert not any(kept(run, others | {price.bound: price.best + inside}) for run in runs)
    if not answer.feasible:
        alone = [price.bound for price in answer.prices if price.best is not None]
        assert list(answer.binding) == (alone or list(answer.nearest.broken))


def test_the_nearest_setting_is_the_one_that_misses_by_least(run_of: Make) -> None:
    asked = Specification(epsilon=1.0, gap=0.05, accuracy=0.85)
    runs = settings_of(
        run_of,
        [
            (3.0, 0.05, 0.1, 1.0),
            (1.0, 0.08, 0.18, 1.0),
            (1.02, 0.06, 0.16, 1.0),
            (1.0, math.nan, 0.1, 1),
        ],
    )
    answer = check(asked, runs)
    assert answer.nearest.runs[0].setting.arguments == {"i": 2}
    assert answer.nearest.broken == ("epsilon", "gap", "accuracy")
    assert [p.best for p in answer.prices] == [3.0, None, None]
    assert answer.binding == ("epsilon",)


def test_methods_and_the_group_at_prediction_bind_like_numbers(run_of: Make) -> None:
    thresholds = "group-aware thresholds, group needed"
    runs = [
        run_of(method="fairpate", gap=0.2),
        run_of(method="dpsgd", gap=0.01, arguments={"i": 1}),
        run_of(method="dpsgd", gap=0.04, fairness_kind=thresholds),
        run_of(method="fairpate", gap=0.03, fairness_kind=thresholds, arguments={"i": 2}),
    ]
    asked = Specification(gap=0.05, methods=("fairpate",), group_at_prediction=False)
    answer = check(asked, runs)
    assert not answer.feasible
    assert {p.bound: p.best for p in answer.prices} == {
        "gap": 0.2,
        "methods": ["dpsgd"],
        "group_at_prediction": True,
    }
    # The nearest is one that is allowed at all.
    assert answer.nearest.runs[0].setting.method == "fairpate"
    assert answer.nearest.broken == ("gap",)
    assert check(Specification(gap=0.05, group_at_prediction=False), runs).feasible


def test_a_setting_is_judged_by_its_mean_over_seeds(run_of: Make) -> None:
    gaps = [0.03, 0.05, 0.064]
    runs = [run_of(seed=s, gap=g, epsilon=1 + s) for s, g in enumerate(gaps)]
    answer = check(Specification(gap=0.05), runs)
    assert answer.feasible  # the mean is .048
    (found,) = answer.acceptable
    assert found.values["gap"] == pytest.approx(0.048)
    assert found.values["epsilon"] == 3.0  # a promise is not averaged
    low, high = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert found.intervals["gap"] == pytest.approx((max(0, low), high))
    few = check(Specification(), [run_of(seed=s, gap=g) for s, g in enumerate([0.0, 0.2])])
    assert few.acceptable[0].intervals["gap"] == (0.0, 1.0)  # two seeds tell next to nothing
    assert found.unsure == ("gap",)
    (note,) = answer.notes
    assert "judged by its mean over 3 seeds; its 95 % interval straddles the bound on gap" in note
    assert not check(Specification(gap=0.047), runs).feasible
    assert check(Specification(gap=0.12), runs).notes == ()  # far from the bound: sure


def test_one_seed_straddles_by_the_interval_of_its_test_rows(run_of: Make) -> None:
    one = run_of(error=0.17, error_interval=(0.16, 0.18))
    assert check(Specification(accuracy=0.825), [one]).acceptable[0].unsure == ("accuracy",)
    assert check(Specification(accuracy=0.815), [one]).acceptable[0].unsure == ()


def test_stand_in_data_and_uncovered_measurements_are_said(run_of: Make) -> None:
    stand_in = run_of(data_kind="synthetic stand-in")
    assert check(Specification(), [stand_in]).notes == (
        "These runs were made on a synthetic stand-in, not on the private data: they say what may "
        "be expected there, not what is so.",
    )
    uncovered = run_of(measured_on="private holdout, not covered", seed=1)
    both = check(Specification(), [stand_in, uncovered]).notes
    assert both[0].startswith("Some of these runs were made on a synthetic stand-in")
    assert "are not covered by any guarantee" in both[1]


def test_names_that_the_runs_do_not_have_are_refused(run_of: Make) -> None:
    runs = [run_of(), run_of(method="dpsgd"), run_of(data="credit")]
    with pytest.raises(
        ValueError, match=r"of several data sets: adult, credit\. .* data = \"adult\""
    ):
        check(Specification(), runs)
    with pytest.raises(
        ValueError, match=r"data must be one of 'adult', 'credit'.*Did you mean 'ad"
    ):
        check(Specification(data="adlut"), runs)
    with pytest.raises(
        ValueError, match=r"methods must be one of 'dpsgd', 'fairpate'.*'fairpate'\?"
    ):
        check(Specification(data="adult", methods=("fair-pate",)), runs)
    with pytest.raises(
        ValueError, match="No run measured the gap 'equalized_odds_rest'; they meas"
    ):
        check(Specification(data="adult", gap=0.1, fairness="equalized_odds"), runs)
    with pytest.raises(ValueError, match="There are no runs to check"):
        check(Specification(), [run_of(data_kind="published")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("notion = 'error_parity'", "there is no key 'notion'. It is now called 'fairness'."),
        ("epsilom = 1.0", "there is no key 'epsilom'. Did you mean 'epsilon'?"),
        ("epsilon = -1.0", "epsilon must be finite and > 0, got epsilon=-1.0"),
        ("epsilon = '3'", "epsilon must be a number, got '3' (str)"),
        ("delta = 1", "delta must lie strictly between 0 and 1"),
        ("gap = 1.5", "gap must lie in [0, 1], got gap=1.5"),
        ("accuracy = 85", "accuracy must lie in [0, 1], got accuracy=85"),
        ("coverage = nan", "coverage must lie in [0, 1], got coverage=nan"),
        ("fairness = 'demographic parity'", "Did you mean 'demographic_parity'?"),
        ("reference = 'pairs'", "reference must be one of 'rest', 'pairwise', 'overall'"),
        ("methods = 'pate'", "methods must be a list of names, got 'pate'"),
        ("methods = []", "methods is empty, so nothing is allowed"),
        ("group_at_prediction = 'no'", "must be true or false, got 'no'"),
        ("gap = ", "Invalid value"),
    ],
)
def test_a_bad_specification_names_the_file_and_the_fault(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"spec\.toml: ") as error:
        Specification.read(file)
    assert said in str(error.value)


def test_a_specification_is_read_from_toml(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text('epsilon = 3\ngap = 0.05\nmethods = ["pate"]\ngroup_at_prediction = false\n')
    assert Specification.read(file) == Specification(
        epsilon=3, gap=0.05, methods=("pate",), group_at_prediction=False
    )


def test_a_notion_may_be_spelt_as_in_a_grid() -> None:
    assert Specification(fairness="equalized-odds") == Specification(fairness="equalized_odds")

"""What a display holds is what the library measures, and what it draws is what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import REJECTED, Budget, EqualizedOdds
from evenhand.baselines.non_private import NonPrivateClassifier
from evenhand.fairness import fairness_report
from evenhand.frontier import front
from evenhand.privacy import GNMax, Ledger
from evenhand.testing.frontier import synthetic_runs
from evenhand.voting import Votes

pyplot = pytest.importorskip("matplotlib.pyplot", reason="the extra plot is not installed")

from evenhand.displays import (  # noqa: E402 - Matplotlib is checked first
    BudgetDisplay,
    CoverageDisplay,
    FrontierDisplay,
    GapDisplay,
    SyntheticDisplay,
    VotesDisplay,
)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture
def said() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], 400)
    y = rng.choice(["no", "yes"], 400)
    return {"y": y, "said": np.where(rng.random(400) < 0.2, "no", y), "group": group}


def test_a_gap_is_that_of_the_report_and_its_points_are_the_rates(said: dict[str, Any]) -> None:
    shown = GapDisplay.from_predictions(said["y"], said["said"], said["group"], margin=0.1)
    codes = [(said[name] == "yes").astype(int) for name in ("y", "said")]
    report = fairness_report(*codes, said["group"], positive=1)
    assert shown.gap == report["demographic_parity_rest"]
    (drawn,) = shown.ax_.get_lines()
    rates = [float(np.mean(said["said"][said["group"] == z] == "yes")) for z in "abc"]
    assert drawn.get_ydata().tolist() == pytest.approx(rates)
    assert [word.get_text() for word in shown.ax_.get_xticklabels()] == ["a", "b", "c"]


def test_names_of_many_groups_are_told_apart_and_do_not_cover_each_other(
    said: dict[str, Any],
) -> None:
    names = [f"sex={sex}, race={race}" for sex in ("Female", "Male") for race in "ABCD"]
    groups = [names[i % 8] for i in range(len(said["said"]))]
    shown = (
        GapDisplay.from_predictions(None, said["said"], groups),
        CoverageDisplay.from_predictions(said["said"], groups),
    )
    for display in shown:
        display.figure_.canvas.draw()
        words = display.ax_.get_xticklabels()
        assert [word.get_text() for word in words] == sorted(set(groups))
        assert {word.get_rotation() for word in words} == {40.0}
    short = GapDisplay.from_predictions(None, said["said"], said["group"])
    assert {word.get_rotation() for word in short.ax_.get_xticklabels()} == {0.0}


def test_the_error_is_drawn_for_error_parity(said: dict[str, Any]) -> None:
    shown = GapDisplay.from_predictions(
        said["y"], said["said"], said["group"], metric="error_parity_rest"
    )
    wrong = [float(np.mean((said["y"] != said["said"])[said["group"] == z])) for z in "abc"]
    assert [rate.value for rate in shown.rates["error rate"]] == pytest.approx(wrong)
    assert "error" in shown.ax_.get_ylabel()


def test_odds_are_drawn_among_those_of_one_true_class(said: dict[str, Any]) -> None:
    shown = GapDisplay.from_predictions(
        said["y"], said["said"], pd.Series(said["group"]), metric="equalized_odds_rest"
    )
    assert len(shown.rates) == 2
    for rates, truth in zip(shown.rates.values(), ("yes", "no"), strict=True):
        of = [
            float(np.mean(said["said"][(said["group"] == z) & (said["y"] == truth)] == "yes"))
            for z in "abc"
        ]
        assert [rate.value for rate in rates] == pytest.approx(of)
    gaps = [
        max(r.value for r in rates) - min(r.value for r in rates) for rates in shown.rates.values()
    ]
    pairwise = GapDisplay.from_predictions(
        said["y"], said["said"], said["group"], metric="equalized_odds_pairwise"
    )
    assert pairwise.gap.value == pytest.approx(max(gaps))


def test_many_rows_of_one_person_have_the_intervals_of_the_report() -> None:
    rng = np.random.default_rng(0)
    said, group = (np.repeat(rng.integers(0, 2, 60), 5) for _ in range(2))
    y, whose = rng.integers(0, 2, 300), np.repeat(np.arange(60), 5)
    report = fairness_report(y, said, group, positive=1, units=whose)
    for metric in ("demographic_parity_rest", "error_parity_rest", "equalized_odds_rest"):
        rows = GapDisplay.from_predictions(y, said, group, metric=metric)
        shown = GapDisplay.from_predictions(y, said, group, metric=metric, units=whose)
        assert shown.gap == report[metric]
        for rates, plain in zip(shown.rates.values(), rows.rates.values(), strict=True):
            assert [rate.value for rate in rates] == [rate.value for rate in plain]
            assert all(rate.n_units and rate.n_units < rate.n for rate in rates)
    (rates,) = GapDisplay.from_predictions(None, said, group, units=whose).rates.values()
    assert rates == report.selection


def band_of(shown: GapDisplay) -> tuple[float, float]:
    (band,) = shown.ax_.patches
    return float(band.get_y()), float(band.get_y() + band.get_height())


def test_groups_within_the_band_keep_the_margin_to_everybody() -> None:
    # A small group is far from everybody, whom a large one makes up, and not from the middle.
    groups = np.repeat(["large", "small"], [900, 100])
    decided = np.repeat([0, 1, 0], [900, 20, 80])
    shown = GapDisplay.from_predictions(
        None, decided, groups, metric="demographic_parity_overall", margin=0.1
    )
    assert shown.gap.value == pytest.approx(0.18)
    assert band_of(shown) == pytest.approx((0.02 - 0.1, 0.02 + 0.1))
    both = GapDisplay.from_predictions(
        None, decided, groups, metric="demographic_parity_pairwise", margin=0.1
    )
    assert band_of(both) == pytest.approx((0.05, 0.15))


@pytest.mark.parametrize("no", [None, np.nan, pd.NA, REJECTED])
def test_missing_predictions_are_no_class_and_missing_truth_is_refused(no: Any) -> None:
    said = pd.Series([1, no, 0, 1, 0, 1], dtype=object)
    for metric in ("demographic_parity_pairwise", "equalized_odds_pairwise"):
        shown = GapDisplay.from_predictions([1, 1, 0, 1, 0, 0], said, list("aaabbb"), metric=metric)
        others = GapDisplay.from_predictions(
            [1, 0, 1, 0, 0], said.drop(1).astype(int), list("aabbb"), metric=metric
        )
        assert shown.gap == others.gap
        assert str(shown.rates) == str(others.rates)
    if no is not REJECTED:
        with pytest.raises(ValueError, match="y_true has missing values, in row 2"):
            GapDisplay.from_predictions(said, [1, 1, 0, 1, 0, 0], list("aaabbb"))
    with pytest.raises(ValueError, match="y_pred holds no answer"):
        GapDisplay.from_predictions(None, [no, no], ["a", "b"])


def test_a_model_is_drawn_by_what_its_margin_is_on_and_asked_with_groups_if_it_needs_them() -> None:
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 2)), rng.choice(["a", "b"], 300)
    y = np.where(X[:, 0] + (groups == "a") > 0, "yes", "no")
    plain = NonPrivateClassifier().fit(X, y, X_public=X)
    odds = EqualizedOdds(margin=0.2, reference="overall")
    model = plain.with_group_thresholds(X, groups, fairness=odds, y_public=y)
    drawn = GapDisplay.from_estimator(model, X, y, groups)
    assert (drawn.gap.name, drawn.margin) == ("equalized_odds_overall", 0.2)
    # A margin on other rates is not drawn on these.
    other = GapDisplay.from_estimator(model, X, y, groups, metric="demographic_parity_rest")
    assert (other.gap.name, other.margin) == ("demographic_parity_rest", None)
    assert GapDisplay.from_estimator(model, X, None, groups).margin is None
    assert GapDisplay.from_estimator(plain, X, y, groups).margin is None


def test_a_class_that_could_be_a_refusal_is_refused_and_so_are_labels_of_two_kinds() -> None:
    X = np.linspace(-1, 1, 40)[:, None]
    y, groups = np.where(X[:, 0] > 0, 1, -1), ["a", "b"] * 20
    model = NonPrivateClassifier().fit(X, y, X_public=X)
    # Every row with the answer -1 was left out as refused, and the gap was 0.
    for truth in (y, None):
        with pytest.raises(ValueError, match="classes_ of the model holds -1 as a class"):
            GapDisplay.from_estimator(model, X, truth, groups)
    for labels in (y, y.astype(float), pd.Series(y, dtype="Int64")):
        with pytest.raises(ValueError, match="y_true holds -1 as a class, which stands for REJECT"):
            GapDisplay.from_predictions(labels, model.predict(X), groups)
    with pytest.raises(TypeError, match=r"texts beside other values.*y_true.astype\(str\)"):
        CoverageDisplay.from_predictions(y > 0, groups, y_true=np.where(y > 0, "yes", "no"))


def test_names_that_are_not_there_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"pos_label must be one of .*got 'maybe'"):
        GapDisplay.from_predictions(None, said["said"], said["group"], pos_label="maybe")
    with pytest.raises(ValueError, match=r"Did you mean"):
        GapDisplay.from_predictions(said["y"], said["said"], said["group"], metric="error_paritx")
    with pytest.raises(ValueError, match="need y_true"):
        GapDisplay.from_predictions(None, said["said"], said["group"], metric="equalized_odds_rest")
    with pytest.raises(ValueError, match="two objectives"):
        FrontierDisplay(runs=[], x="gap", y="gap")
    with pytest.raises(ValueError, match="real has no 'b'"):
        SyntheticDisplay.from_tables(pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"a": [1]}))
    rows = pd.DataFrame({"a": [1, 2]})
    for name, tables in (("synthetic", (rows[:0], rows)), ("real", (rows, rows[:0]))):
        with pytest.raises(ValueError, match=f"^{name} has no rows"):
            SyntheticDisplay.from_tables(*tables)


def test_coverage_counts_what_was_refused(said: dict[str, Any]) -> None:
    labels = said["said"].astype(object)
    labels[:100] = REJECTED
    shown = CoverageDisplay.from_predictions(labels, said["group"], y_true=said["y"])
    for z, group in enumerate("abc"):
        for k, name in enumerate(("no", "yes")):
            rows = (said["group"] == group) & (said["y"] == name)
            given = float(np.mean(rows[100:][rows[100:]].sum() / rows.sum()))
            assert shown.coverage.rates[z, k] == pytest.approx(given)
    bars = [bar.get_height() for bar in shown.ax_.patches]
    assert bars == pytest.approx(shown.coverage.rates.T.ravel().tolist())


def test_the_bars_of_a_budget_add_up_to_it() -> None:
    ledger = Ledger(Budget(epsilon=2.0, delta=1e-5))
    for sigma, purpose in ((40.0, "first"), (60.0, "second"), (80.0, "second")):
        ledger.release(GNMax(sigma=sigma), [[90, 10]], purpose=purpose)
    shown = BudgetDisplay.from_ledger(ledger)
    widths = [bar.get_width() for bar in shown.ax_.patches]
    assert sum(widths) == pytest.approx(1.0)
    assert widths[0] == pytest.approx(ledger.entries[0].mu_squared / ledger.budget.mu_squared)
    named = [word.get_text() for word in shown.ax_.get_yticklabels()]
    assert len(named) == len(set(named))  # one purpose with two mechanisms is two bars, told apart


def test_votes_are_drawn_as_leads_and_called_private() -> None:
    votes = Votes.of(np.repeat([[0, 1, 1], [0, 0, 1]], [3, 2], axis=0), n_classes=2)
    shown = VotesDisplay.from_votes(votes, sigma=1.0)
    assert shown.leads.tolist() == [5.0, 1.0, 5.0]
    assert "private" in shown.ax_.get_title()
    heights = [bar.get_height() for bar in shown.ax_.patches]
    assert sum(heights[:-1]) == 3  # the last patch is the reach of the noise


def test_a_frontier_steps_along_what_nothing_beats() -> None:
    runs = [run for run in synthetic_runs(30, n_seeds=1) if run.setting.method == "fairpate"]
    shown = FrontierDisplay.from_runs(runs, x="gap", y="error")
    points = np.array([[run.gap, run.error] for run in runs])
    best = points[front(points, ("gap", "error"))]
    steps = shown.ax_.get_lines()[-1]
    drawn = np.column_stack([steps.get_xdata(), steps.get_ydata()])
    assert np.allclose(drawn, best[np.argsort(best[:, 0])])


def test_columns_are_drawn_side_by_side_and_again_elsewhere() -> None:
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=200), "k": rng.choice(["a", "b"], 200)})
    shown = SyntheticDisplay.from_tables(real.sample(100, random_state=0), real)
    assert [panel.get_title() for panel in shown.ax_.child_axes] == ["x", "k"]
    first = shown.figure_
    assert shown.plot().figure_ is not first

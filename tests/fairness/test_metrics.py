"""Metrics agree with loops and with fairlearn; their intervals cover at least as often as said."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equalized_odds_difference,
    selection_rate,
    true_positive_rate_difference,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import binom, binomtest
from sklearn.metrics import zero_one_loss

from evenhand._words import REFERENCES
from evenhand.fairness import DemographicParity, FalsePositiveParity, fairness_report, gap_of
from evenhand.fairness import intervals as intervals_module
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.intervals import Estimate, clopper_pearson, estimate_gap
from evenhand.fairness.metrics import error_rate, selection_rates
from evenhand.fairness.notions import known_notions, notion_named
from evenhand.fairness.tally import JointTally, Tally


def parity(tally: Tally, reference: str = "rest", level: float = 0.95) -> Estimate:
    return gap_of(DemographicParity(margin=0.0, reference=reference), tally, level=level)


Rows = list[tuple[int, int, int]]

rows_of = st.integers(2, 4).flatmap(
    lambda n_classes: st.tuples(
        st.just(n_classes),
        st.lists(
            st.tuples(
                st.integers(0, 3), st.integers(0, n_classes - 1), st.integers(-1, n_classes - 1)
            ),
            max_size=60,
        ),
    )
)


def brute_force(rows: Rows, n_classes: int, reference: str, metric: str) -> float:
    """Largest difference of P(event | condition) between groups; loops over records only."""
    answered = [row for row in rows if row[2] >= 0]
    classes = range(n_classes)
    kinds = {
        "demographic_parity": [(lambda y, k: True, lambda y, k, j=j: k == j) for j in classes],
        "equalized_odds": [
            (lambda y, k, i=i: y == i, lambda y, k, j=j: k == j)
            for i, j in itertools.product(classes, classes)
        ],
        "error_parity": [(lambda y, k: True, lambda y, k: y != k)],
        "false_positive_parity": [
            (lambda y, k, j=j: y != j, lambda y, k, j=j: k == j) for j in classes
        ],
        "true_positive_rate_parity": [
            (lambda y, k, j=j: y == j, lambda y, k, j=j: k == j)
            for j in ([1] if n_classes == 2 else classes)
        ],
    }[metric]
    worst = math.nan
    for condition, event in kinds:

        def rate(members: set[int], condition=condition, event=event) -> float:
            inside = [(y, k) for z, y, k in answered if z in members and condition(y, k)]
            return sum(event(y, k) for y, k in inside) / len(inside) if inside else math.nan

        groups = set(range(4))
        for z in groups:
            others = {
                "rest": [groups - {z}],
                "pairwise": [{other} for other in groups - {z}],
                "overall": [groups],
            }[reference]
            for other in others:
                worst = np.fmax(worst, abs(rate({z}) - rate(other)))
    return float(worst)


METRICS = tuple(kind.name.replace("-", "_") for kind in known_notions().values())


def joint_of(rows: Rows, n_classes: int) -> JointTally:
    z, y, k = (np.array([row[i] for row in rows], dtype=int) for i in range(3))
    return JointTally.of(z, y, k, 4, n_classes)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("reference", REFERENCES)
@given(drawn=rows_of)
@settings(max_examples=25, deadline=None)
def test_every_gap_is_its_definition(metric: str, reference: str, drawn: tuple[int, Rows]) -> None:
    n_classes, rows = drawn
    notion = notion_named(metric.replace("_", "-"))(margin=0.0, reference=reference)
    joint = joint_of(rows, n_classes)
    estimate = gap_of(notion, joint)
    if not notion.needs_labels:
        assert gap_of(notion, joint.predicted) == estimate or math.isnan(estimate.value)
    slow = brute_force(rows, n_classes, reference, metric)
    assert estimate.value == pytest.approx(slow, abs=1e-12, nan_ok=True)
    assert estimate.name == f"{metric}_{reference}"
    assert "in [0, 1], best 0" in estimate.definition
    if not math.isnan(slow):
        assert estimate.low <= slow <= estimate.high


@pytest.mark.parametrize("seed", range(5))
def test_two_class_gaps_equal_those_of_fairlearn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 400
    z = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    y, k = rng.integers(0, 2, n), (rng.random(n) < 0.3 + 0.2 * (z == "a")).astype(int)
    report = fairness_report(y, k, z, positive=1)
    same = {"y_true": y, "y_pred": k, "sensitive_features": z}
    dp, eo = demographic_parity_difference, equalized_odds_difference
    close = pytest.approx
    assert report["demographic_parity_pairwise"].value == close(dp(**same))
    assert report["demographic_parity_overall"].value == close(dp(**same, method="to_overall"))
    assert report["equalized_odds_pairwise"].value == close(eo(**same))
    assert report["equalized_odds_overall"].value == close(eo(**same, method="to_overall"))
    tpr = true_positive_rate_difference
    assert report["true_positive_rate_parity_pairwise"].value == close(tpr(**same))
    assert report["true_positive_rate_parity_overall"].value == close(
        tpr(**same, method="to_overall")
    )
    frame = MetricFrame(metrics={"rate": selection_rate, "error": zero_one_loss}, **same)
    assert [e.value for e in report.selection] == close(frame.by_group["rate"].tolist())
    assert [e.value for e in report.errors] == close(frame.by_group["error"].tolist())
    assert report["error_rate"].value == close(frame.overall["error"])
    assert report["error_parity_pairwise"].value == close(frame.difference()["error"])


def test_a_perfect_classifier_has_no_gap_in_odds_and_errors_whatever_its_parity() -> None:
    y = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    z = ["a", "b", "a", "a", "b", "a", "b", "b"]
    report = fairness_report(y, y, z)
    for reference in REFERENCES:
        for metric in ("equalized_odds", "error_parity", "false_positive_parity"):
            assert report[f"{metric}_{reference}"].value == 0.0
    assert report["demographic_parity_rest"].value > 0


def test_a_report_gives_the_names_of_its_metrics() -> None:
    report = fairness_report([0, 1, 1, 0], [0, 1, 0, 1], list("aabb"))
    assert [report[name].name for name in report] == list(report)
    assert "equalized_odds_rest" in report
    assert "equalised_odds_rest" not in report


def test_an_empty_cell_is_no_number_and_widens_the_interval() -> None:
    alone = parity(Tally(counts=np.array([[5, 5]])))
    assert math.isnan(alone.value)
    assert (alone.low, alone.high) == (0.0, 1.0)
    beside_empty = parity(Tally(counts=np.array([[50, 50], [0, 0]])))
    assert math.isnan(beside_empty.value)
    assert beside_empty.n_empty == 1
    full = Tally(counts=np.array([[50, 50], [50, 50]]))
    three = Tally(counts=np.array([[50, 50], [50, 50], [0, 0]]))
    narrow = parity(full, "pairwise")
    wide = parity(three, "pairwise")
    assert narrow.value == wide.value == 0.0
    assert wide.high > narrow.high
    rates = selection_rates(three, 1)
    assert math.isnan(rates[2].value)
    assert (rates[2].low, rates[2].high) == (0.0, 1.0)


def test_false_positives_of_the_positive_class_are_one_column_of_all() -> None:
    # Group 0: 2 of 4 negatives are called positive; group 1: 1 of 4.
    joint = JointTally(counts=np.array([[[2, 2], [0, 6]], [[3, 1], [1, 9]]]))
    assert gap_of(FalsePositiveParity(margin=0, positive=1), joint).value == pytest.approx(0.25)
    assert gap_of(FalsePositiveParity(margin=0, positive=0), joint).value == pytest.approx(0.1)
    assert gap_of(FalsePositiveParity(margin=0), joint).value == pytest.approx(0.25)
    assert gap_of(FalsePositiveParity(margin=0, positive=1), joint).n == 8


# ---- intervals -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("error", [0.2, 0.01])
def test_a_rate_interval_is_the_exact_one_of_scipy(n: int, error: float) -> None:
    low, high = clopper_pearson(np.arange(n + 1), np.full(n + 1, n), error=error)
    for x in range(n + 1):
        exact = binomtest(x, n).proportion_ci(1 - error, method="exact")
        assert (low[x], high[x]) == pytest.approx((exact.low, exact.high), abs=1e-9)


def approximate_gap(x: int, y: int, n: int, m: int, level: float) -> tuple[float, float]:
    """Newcombe's interval from exact limits, as it is usually computed; kept to show it fails."""
    low, high = clopper_pearson([x, y], [n, m], error=1 - level)
    d, p, r = abs(x / n - y / m), x / n, y / m
    below = (
        d - math.hypot(p - low[0], high[1] - r)
        if p >= r
        else d - math.hypot(r - low[1], high[0] - p)
    )
    above = (
        d + math.hypot(high[0] - p, r - low[1])
        if p >= r
        else d + math.hypot(high[1] - r, p - low[0])
    )
    return max(0.0, below), above


def our_gap(x: int, y: int, n: int, m: int, level: float) -> tuple[float, float]:
    estimate = estimate_gap(
        np.array([[x], [y]]),
        np.array([[n], [m]]),
        reference="rest",
        name="gap",
        definition="",
        level=level,
        n=n + m,
    )
    return estimate.low, estimate.high


def least_coverage(interval, n: int, m: int, level: float) -> float:
    """Exact coverage at the worst of a grid of true rates: every outcome, no simulation."""
    limits = np.array([[interval(x, y, n, m, level) for y in range(m + 1)] for x in range(n + 1)])
    worst = 1.0
    for p, r in itertools.product([0.003, 0.01, 0.02, 0.1, 0.3, 0.5, 0.9, 0.98, 0.99], repeat=2):
        probability = np.outer(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, r))
        # A rounding error of the interval at a gap of exactly 0 or 1 is no miss.
        covers = (limits[..., 0] <= abs(p - r) + 1e-12) & (abs(p - r) - 1e-12 <= limits[..., 1])
        worst = min(worst, float(probability[covers].sum()))
    return worst


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 20), (20, 20)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_gap_interval_of_two_groups_covers_at_every_rate(n: int, m: int, level: float) -> None:
    assert least_coverage(our_gap, n, m, level) >= level


def test_the_usual_interval_would_fail_that_test() -> None:
    assert least_coverage(approximate_gap, 20, 20, 0.95) < 0.94


def coverage_p_value(level: float, reference: str, *, repeats: int, seed: int) -> float:
    """Probability of at most this many covered gaps, if each interval covered with ``level``."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.5, 0.3, 0.2])
    rates = np.array([[0.2, 0.5, 0.3], [0.3, 0.4, 0.3], [0.2, 0.45, 0.35]])
    pooled = shares @ rates
    rest = (pooled - shares[:, None] * rates) / (1 - shares[:, None])
    truth = {
        "rest": np.abs(rates - rest).max(),
        "overall": np.abs(rates - pooled).max(),
        "pairwise": (rates.max(axis=0) - rates.min(axis=0)).max(),
    }[reference]
    covered = 0
    for _ in range(repeats):
        counts = rng.multinomial(120, (shares[:, None] * rates).ravel()).reshape(3, 3)
        estimate = parity(Tally(counts=counts), reference, level=level)
        covered += estimate.low <= truth <= estimate.high
    return float(binom.cdf(covered, repeats, level))


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_interval_of_a_largest_gap_covers_at_least_at_its_level(reference: str) -> None:
    assert coverage_p_value(0.9, reference, repeats=200, seed=1) > FALSE_ALARM


def equal_groups_p_value(*, repeats: int, seed: int) -> float:
    """As above, for 28 pairs of 8 groups that do not differ: many probabilities to see a gap."""
    rng, level = np.random.default_rng(seed), 0.8
    covered = 0
    for _ in range(repeats):
        chosen = rng.binomial(200, 0.4, size=8)
        tally = Tally(counts=np.stack([200 - chosen, chosen], axis=1))
        covered += parity(tally, "pairwise", level=level).low == 0.0
    return float(binom.cdf(covered, repeats, level))


def test_eight_equal_groups_seldom_seem_to_differ() -> None:
    assert equal_groups_p_value(repeats=100, seed=1) > FALSE_ALARM


def test_that_statistic_would_see_an_interval_without_bonferroni(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = intervals_module.joint_errors
    monkeypatch.setattr(
        intervals_module,
        "joint_errors",
        lambda error, independent: ours(28 * error, independent=independent),
    )
    assert equal_groups_p_value(repeats=100, seed=1) < FALSE_ALARM


def test_for_large_groups_the_region_is_the_ellipse_of_two_degrees_of_freedom() -> None:
    # Second derivation: normal rates, joint 95 % ellipse, its widest extent along p - p'.
    n, p, r = 10**6, 0.4, 0.2
    low, high = our_gap(round(n * p), round(n * r), n, n, 0.95)
    extent = math.sqrt(-2 * math.log(0.05) * (p * (1 - p) + r * (1 - r)) / n)
    assert extent <= (high - low) / 2 < 1.05 * extent


@given(
    counts=st.lists(
        st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=3, max_size=3
    ).filter(lambda counts: sum(map(sum, counts)) > 0),
    reference=st.sampled_from(REFERENCES),
)
@settings(max_examples=40, deadline=None)
def test_intervals_widen_with_the_level_and_follow_renaming(
    counts: list[list[int]], reference: str
) -> None:
    table = np.array(counts)
    one = parity(Tally(counts=table), reference, level=0.9)
    more = parity(Tally(counts=table), reference, level=0.99)
    assert more.low <= one.low
    assert one.high <= more.high
    renamed = parity(Tally(counts=table[::-1, ::-1]), reference, level=0.9)
    assert (renamed.low, renamed.high) == pytest.approx((one.low, one.high), abs=1e-9)


def test_ten_times_the_records_narrow_an_interval_by_about_the_root_of_ten() -> None:
    widths = []
    for times in (10, 100):
        estimate = parity(Tally(counts=times * np.array([[6, 4], [8, 2]])))
        widths.append(estimate.high - estimate.low)
    assert widths[0] / widths[1] == pytest.approx(math.sqrt(10), rel=0.1)


# ---- the report ------------------------------------------------------------------------------


def test_a_report_goes_through_json_and_writes_nan_as_null() -> None:
    groups = encode_groups(["a", "b", "b"], names=("a", "b", "c"))
    report = fairness_report([0, 1, 1], [0, 1, -1], groups, classes=("no", "yes"), positive=1)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["groups"][2]["rates"] == [None, None]
    assert data["groups"][2]["selection_rate"]["value"] is None
    assert data["groups"][1]["n"] == 2
    assert data["groups"][1]["n_answered"] == 1
    assert data["coverage"]["coverage"] == [[1.0, None], [None, 0.5], [None, None]]
    assert data["metrics"]["demographic_parity_pairwise"]["value"] == 1.0
    assert len(data["metrics"]) == 16
    assert "c: 0 of 0 answered; no no records, yes no records; error no records" in str(report)


def test_without_true_labels_only_parity_is_reported() -> None:
    report = fairness_report(None, [0, 1, 1, -1], list("aabb"))
    assert [estimate.name for estimate in report.estimates] == [
        f"demographic_parity_{reference}" for reference in REFERENCES
    ]
    assert report.errors == report.selection == ()
    assert report.coverage.rates.tolist() == [[1.0], [0.5]]
    with pytest.raises(KeyError, match=r"No metric 'demographic_parity_res' here.*Did you mean"):
        report["demographic_parity_res"]


def test_metrics_refuse_what_they_cannot_read() -> None:
    with pytest.raises(TypeError, match=r"y_true must hold whole numbers.*names, y_true\)"):
        fairness_report(["no", "yes"], [0, 1], list("ab"))
    with pytest.raises(ValueError, match="positive must be a class from 0 to 1, got positive=2"):
        fairness_report([0, 1], [0, 1], list("ab"), positive=2)
    with pytest.raises(ValueError, match="at least two classes"):
        fairness_report([0], [0], ["a"], classes=("only",))
    with pytest.raises(ValueError, match=r"codes up to .*searchsorted.*classes="):
        fairness_report([2020, 2021], [2020, 2020], list("ab"))
    for chances, found in ([[0.5, 0.5]] * 3, "got 2"), ([0.5] * 3, "got one dimension"):
        with pytest.raises(ValueError, match=f"column for each of the 3 classes, {found}"):
            fairness_report([0, 1, 2], [0, 1, 2], list("aab"), probabilities=chances)
    ages = np.arange(60.0) + 0.5
    with pytest.raises(ValueError, match=r"more than 50 values: .*Grouping.of_public"):
        fairness_report(None, [0, 1] * 30, ages)
    known = encode_groups(ages)  # whoever encodes them says that they are groups
    assert len(fairness_report(None, [0, 1] * 30, known).groups) == 60
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        error_rate(JointTally(counts=np.ones((1, 2, 2), dtype=int)), level=1.0)
    with pytest.raises(ValueError, match="reference must be one of"):
        parity(Tally(counts=np.ones((2, 2), dtype=int)), reference="mean")
    with pytest.raises(ValueError, match=r"error must lie in \(0, 1\]"):
        clopper_pearson([1], [2], error=0.0)
    with pytest.raises(ValueError, match="successes must lie between 0 and trials"):
        clopper_pearson([3], [2], error=0.1)
    good = {"name": "x", "definition": "", "level": 0.9, "n": 3}
    with pytest.raises(ValueError, match="value must lie in"):
        Estimate(value=0.5, low=0.6, high=0.7, **good)
    with pytest.raises(ValueError, match="low and high must be ordered"):
        Estimate(value=0.5, low=0.7, high=0.6, **good)

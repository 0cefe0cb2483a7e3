"""Intervals of units with several records: by brute force, by laws, and how often they cover."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.fairness import DemographicParity, EqualizedOdds, fairness_report
from evenhand.fairness.clusters import Clusters
from evenhand.fairness.impact import impact_ratios
from evenhand.fairness.intervals import Estimate, estimate_rate
from evenhand.fairness.metrics import gap_of
from evenhand.fairness.report import FairnessReport
from evenhand.fairness.tally import JointTally, Tally
from evenhand.typing import BoolArray, IntArray


def rate_of(success: BoolArray, units: IntArray | None) -> Estimate:
    clusters = None if units is None else Clusters.of_rows(units, success, np.ones_like(success))
    return estimate_rate(
        int(success.sum()), len(success), name="x", definition="x", level=0.95, clusters=clusters
    )


def visits(
    rng: np.random.Generator, n_units: int, sizes: tuple[int, ...], p: float, agreeing: float
) -> tuple[BoolArray, IntArray]:
    """Draw records of units whose own rates have mean p, and that agree never (0) or always (1)."""
    units = np.repeat(np.arange(n_units), rng.choice(sizes, n_units))
    own = np.full(n_units, p)
    if agreeing == 1.0:
        own = (rng.random(n_units) < p).astype(float)
    elif agreeing:
        more = (1 - agreeing) / agreeing
        own = rng.beta(p * more, (1 - p) * more, n_units)
    return rng.random(len(units)) < own[units], units


def report(rng: np.random.Generator, repeats: int = 1, **more: object) -> FairnessReport:
    """Report on 300 units, each row of which stands ``repeats`` times."""
    y, k, z = (np.repeat(rng.integers(0, n, 300), repeats) for n in (2, 2, 3))
    p = np.repeat(rng.random(300), repeats)
    scores = np.stack([1 - p, p], axis=1)
    return fairness_report(
        y,
        k,
        z,
        classes=["no", "yes"],
        positive=1,
        probabilities=scores,
        **more,  # type: ignore[arg-type]
    )


def test_units_of_one_record_change_nothing() -> None:
    plain = report(np.random.default_rng(0))
    told = report(np.random.default_rng(0), units=[f"u{i}" for i in range(300)])
    assert told.to_dict() == plain.to_dict()
    assert told["error_rate"].n_units is None


@pytest.mark.parametrize("repeats", [2, 7])
def test_records_that_always_agree_tell_no_more_than_one_of_each_unit(repeats: int) -> None:
    once, many = (
        report(np.random.default_rng(1)),
        report(np.random.default_rng(1), repeats, units=np.repeat(np.arange(300), repeats)),
    )
    for name in once:
        a, b = once[name], many[name]
        assert (b.value, b.n_units) == (pytest.approx(a.value), a.n)
        assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=4e-3)
    pairs = zip((*once.selection, *once.errors), (*many.selection, *many.errors), strict=True)
    for a, b in pairs:
        assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=4e-3)
    one, other = once.yardstick, many.yardstick
    assert one is not None
    assert other is not None
    assert other.gain_interval == pytest.approx(one.gain_interval, abs=8e-3)
    assert other.error.high == pytest.approx(one.error.high, abs=4e-3)


def test_effects_by_brute_force_where_units_stand_in_several_groups() -> None:
    rng = np.random.default_rng(2)
    units, z, y, k = (rng.integers(0, n, 400) for n in (60, 3, 2, 2))
    joint = JointTally.of(z, y, k, 3, 2, units=units)
    rates = EqualizedOdds(margin=0.1).rates(2)
    assert joint.by_unit is not None
    clusters = joint.by_unit.clusters(rates.counted)
    assert clusters.overlap
    assert clusters.n_units == 60
    for found, chosen in (
        (clusters.of_groups(), [z == group for group in range(3)]),
        (clusters.of_rest(), [z != group for group in range(3)]),
        (clusters.of_all(), [z >= 0]),
    ):
        assert found.shape == (len(chosen), rates.n_rates)
        for row, among in enumerate(chosen):
            for rate in range(rates.n_rates):
                s, n = [], []
                for unit in range(60):
                    own = among & (units == unit)
                    alone = np.zeros((1, 2, 2), dtype=np.int64)
                    np.add.at(alone, (0, y[own], k[own]), 1)
                    hits, trials = rates.counted(alone)
                    s.append(hits[0, rate])
                    n.append(trials[0, rate])
                assert found[row, rate] == pytest.approx(effect_of(np.array(s), np.array(n)))


def effect_of(s: IntArray, n: IntArray) -> float:
    """Return the effect as the module says it, of one rate."""
    s, n = s[n > 0], n[n > 0]
    p, total, u = s.sum() / n.sum(), n.sum(), len(n)
    clustered = u / (u - 1) * sum((s - p * n) ** 2) / total**2
    estimated = clustered / (p * (1 - p) / total)
    kish = sum(n**2) / total
    telling = sum(n**2) ** 2 / sum(n**4)
    return float(
        max(1.0, estimated, min(kish, estimated + 2 * (kish - 1) * (2 / (telling - 1)) ** 0.5))
    )


def test_a_unit_in_both_groups_makes_their_rates_hang_together() -> None:
    rng = np.random.default_rng(4)
    z, k = np.repeat([0, 1], 200), rng.integers(0, 2, 400)
    notion = DemographicParity(margin=0.1, reference="pairwise")
    shared = np.tile(np.arange(200), 2)  # each has one record in each group
    plain, wider = (gap_of(notion, Tally.of(z, k, 2, 2, units=units)) for units in (None, shared))
    assert wider.value == plain.value
    assert wider.low <= plain.low
    assert wider.high > plain.high + 0.005


def test_ratios_of_repeated_records_are_as_wide_as_those_of_units() -> None:
    rng = np.random.default_rng(5)
    z, k = (np.repeat(rng.integers(0, 2, 500), 4) for _ in range(2))
    names, units = ("a", "b"), np.repeat(np.arange(500), 4)
    once = impact_ratios(Tally.of(z[::4], k[::4], 2, 2), 1, names)
    many = impact_ratios(Tally.of(z, k, 2, 2, units=units), 1, names)
    plain = impact_ratios(Tally.of(z, k, 2, 2), 1, names)
    for a, b, narrow in zip(once, many, plain, strict=True):
        assert (b.ratio_low, b.rate_high) == pytest.approx((a.ratio_low, a.rate_high), abs=5e-3)
        assert narrow.ratio_low > b.ratio_low + 0.03


@pytest.mark.parametrize("said", [[0, 1, 1, 0, 1], [-1, -1, 1, 0, 1], [-1] * 5])
def test_a_group_without_rows_or_answers_can_be_anything(said: list[int]) -> None:
    names: tuple[str, ...] = ("a", "b", "c")
    found = fairness_report(
        [0, 1, 1, 0, 0],
        said,
        list("aabba"),
        classes=[0, 1],
        positive=1,
        group_names=names,
        units=[1, 1, 2, 2, 3],
    )
    ratios = impact_ratios(found.tally, 1, names)
    for estimate in (found.errors[2], found.selection[2]):
        assert (estimate.low, estimate.high) == (0.0, 1.0)
    assert (ratios[2].rate_low, ratios[2].rate_high) == (0.0, 1.0)
    assert found["error_rate"].n_units == len(
        {u for u, k in zip([1, 1, 2, 2, 3], said, strict=True) if k >= 0}
    )


def test_one_unit_tells_as_much_as_one_record() -> None:
    found = rate_of(np.ones(50, dtype=np.bool_), np.zeros(50, dtype=np.int64))
    once = rate_of(np.ones(1, dtype=np.bool_), None)
    assert (found.low, found.high) == pytest.approx((once.low, 1.0))
    assert found.n_units == 1
    assert str(found).endswith("n = 50 of 1 units")


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (["a", "b"], "units"),
        (["a", None, "a"], "there is none in row 2"),
        ("person", "Pass the column itself"),
    ],
)
def test_units_that_name_nobody_are_refused(units: object, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        fairness_report([0, 1, 1], [0, 1, 0], ["x", "y", "x"], units=units)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_units", "sizes", "p", "agreeing"),
    [
        (60, (1, 2, 3, 4, 5, 6), 0.2, 1.0),
        (60, (1, 2, 3, 4, 5, 6), 0.5, 0.3),
        (100, (1,) * 9 + (20,), 0.05, 1.0),
        (30, (1,) * 9 + (20,), 0.2, 0.7),
        (10, (1, 2), 0.5, 1.0),
    ],
)
def test_intervals_of_units_cover_where_those_of_records_do_not(
    n_units: int, sizes: tuple[int, ...], p: float, agreeing: float
) -> None:
    """1,500 samples: .05 or less passes but with 1e-4 (.072); .10 does with less than 1e-4."""
    rng = np.random.default_rng(3)
    missed = np.zeros(2)
    for _ in range(1500):
        success, units = visits(rng, n_units, sizes, p, agreeing)
        for i, of in enumerate((units, None)):
            found = rate_of(success, of)
            missed[i] += not found.low <= p <= found.high
    assert missed[0] / 1500 < 0.072
    assert missed[1] / 1500 > 0.072

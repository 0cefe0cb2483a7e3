"""Impact ratios: the arithmetic of the rules, and intervals that cover."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from evenhand.fairness.impact import impact_ratios
from evenhand.fairness.tally import Tally


def test_rates_and_ratios_are_those_of_aedt_audit() -> None:
    audit = pytest.importorskip("aedt_audit", reason="aedt-audit is not installed")
    counts = np.array([[400, 600], [700, 300], [450, 350], [9, 3]])  # the last below 2 %
    names = ("a", "b", "c", "d")
    frame = pd.DataFrame(
        [(names[z], k) for z in range(4) for k in (0, 1) for _ in range(counts[z, k])],
        columns=["sex", "selected"],
    )
    rates = audit.rates.selection_rates(frame, outcome="selected", by=["sex"])
    theirs = audit.impact.four_fifths(audit.impact.impact_ratios(rates)).set_index("sex")
    for row in impact_ratios(Tally(counts=counts), 1, names):
        other = theirs.loc[row.group]
        assert (row.n, row.n_selected) == (other["n"], other["selected"])
        assert row.rate == pytest.approx(other["rate"])
        assert row.ratio == pytest.approx(other["impact_ratio"])
        assert row.small == bool(other["excluded"])
        assert row.below_four_fifths == bool(other["adverse_impact_eeoc"])


def test_a_small_group_sets_no_standard_and_is_shown() -> None:
    big, small = impact_ratios(Tally(counts=[[500, 500], [0, 10]]), 1, ("big", "small"))
    assert (big.ratio, big.small) == (1.0, False)
    assert (small.ratio, small.small) == (2.0, True)


def test_without_anybody_selected_no_ratio_is_known() -> None:
    rows = impact_ratios(Tally(counts=[[50, 0], [50, 0], [0, 0]]), 1, ("a", "b", "c"))
    assert all(math.isnan(row.ratio) for row in rows)
    assert [row.by_interval for row in rows] == ["cannot be said"] * 3
    assert rows[2].to_dict()["rate"] is None


def test_intervals_of_ratios_cover_together() -> None:
    """All at once in 95 % of tables at least: of 400, fewer than the law allows is no accident."""
    rng = np.random.default_rng(0)
    rates, sizes = np.array([0.3, 0.42, 0.5]), np.array([60, 150, 300])
    truth = rates / rates.max()
    covered = 0
    for _ in range(400):
        selected = rng.binomial(sizes, rates)
        rows = impact_ratios(
            Tally(counts=np.stack([sizes - selected, selected], axis=1)), 1, ("a", "b", "c")
        )
        covered += all(
            row.ratio_low <= true <= row.ratio_high for row, true in zip(rows, truth, strict=True)
        )
    assert covered >= binom.ppf(1e-6, 400, 0.95)
    narrow = impact_ratios(Tally(counts=[[700, 300], [500, 500]]), 1, ("a", "b"))[0]
    assert 0.48 < narrow.ratio_low < 0.6 < narrow.ratio_high < 0.72  # and they say something

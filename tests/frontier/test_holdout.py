"""A noisy measurement is charged before it is drawn, and its intervals cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from runs import FALSE_ALARM
from scipy.stats import binom

from evenhand.fairness.notions import parity_gaps
from evenhand.frontier.holdout import measure_with_noise
from evenhand.privacy import Budget, BudgetExceeded, FloatNoise, Ledger, SeededNoise
from evenhand.typing import REJECTED


def ledger(epsilon: float = 3.0, **options) -> Ledger:
    return Ledger(Budget(epsilon=epsilon, delta=1e-5), **({"noise": SeededNoise(0)} | options))


def people(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows from a law whose error, gap and coverage are known: see ``TRUTH``."""
    groups = (rng.random(n) < 0.3).astype(int)
    said = (rng.random(n) < np.array([0.5, 0.35])[groups]).astype(int)
    truth = np.where(rng.random(n) < 0.2, 1 - said, said)
    said = np.where(rng.random(n) < 0.1, REJECTED, said)
    return truth, said, groups


TRUTH = {"error": 0.2, "gap": 0.15, "coverage": 0.9}


def test_a_tiny_noise_gives_the_plain_metrics() -> None:
    truth, said, groups = people(np.random.default_rng(0), 2000)
    got = measure_with_noise(
        ledger(1e9), truth, said, groups, n_classes=2, n_groups=2, sigma=1e-4, reference="pairwise"
    )
    kept = said != REJECTED
    assert got.error.value == pytest.approx((said != truth)[kept].mean(), abs=1e-5)
    assert got.coverage.value == pytest.approx(kept.mean(), abs=1e-5)
    counts = np.array([[((groups == z) & (said == k)).sum() for k in (0, 1)] for z in (0, 1)])
    expected = np.abs(parity_gaps(counts, "pairwise")).max()
    assert got.gap.value == pytest.approx(expected, abs=1e-5)
    assert got.selection[1][0].value == pytest.approx(counts[1, 0] / counts[1].sum(), abs=1e-5)
    assert got.table.sum() == pytest.approx(2000, abs=0.01)
    assert got.table[0, 1, 2] == pytest.approx(
        ((groups == 0) & (truth == 1) & ~kept).sum(), abs=0.01
    )


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_three_groups_are_compared_as_the_reference_says(reference: str) -> None:
    rng = np.random.default_rng(1)
    groups, said = rng.integers(0, 3, 900), rng.integers(0, 3, 900)
    said[groups == 2] = np.minimum(said[groups == 2], rng.integers(0, 3, (groups == 2).sum()))
    got = measure_with_noise(
        ledger(1e9), said, said, groups, n_classes=3, n_groups=3, sigma=1e-4, reference=reference
    )
    counts = np.array([[((groups == z) & (said == k)).sum() for k in range(3)] for z in range(3)])
    assert got.gap.value == pytest.approx(np.abs(parity_gaps(counts, reference)).max(), abs=1e-5)
    assert got.gap.name == f"demographic_parity_{reference}"


def covered(level: float, sigma: float, *, n: int, repeats: int, hide_noise: bool = False) -> dict:
    """How often each interval holds the truth, over samples and noise."""
    rng = np.random.default_rng(2)
    hits = dict.fromkeys(TRUTH, 0)
    noise = SeededNoise(3)
    for _ in range(repeats):
        account = Ledger(Budget(epsilon=1e9, delta=1e-5), noise=noise)
        truth, said, groups = people(rng, n)
        got = measure_with_noise(
            account, truth, said, groups, n_classes=2, n_groups=2, sigma=sigma, level=level
        )
        if hide_noise:  # the same table, read as if it had no noise
            from evenhand.frontier import holdout

            got = holdout._measured(got.table, 1e-6, n, "rest", level)
        for name, value in TRUTH.items():
            estimate = getattr(got, name)
            hits[name] += estimate.low <= value <= estimate.high
    return hits


@pytest.mark.slow
def test_intervals_cover_the_truth_and_would_not_without_the_noise() -> None:
    repeats, level = 300, 0.8
    fewest = binom.ppf(FALSE_ALARM / 3, repeats, level)
    for name, hits in covered(level, 20.0, n=400, repeats=repeats).items():
        assert hits >= fewest, name
    blind = covered(level, 20.0, n=400, repeats=repeats, hide_noise=True)
    assert min(blind.values()) < fewest  # the test sees intervals that forget the noise


def test_the_table_is_charged_before_it_is_drawn() -> None:
    rows = people(np.random.default_rng(0), 100)
    account = ledger(noise=FloatNoise())
    measure_with_noise(account, *rows, n_classes=2, n_groups=2, sigma=10.0, purpose="test of m")
    (entry,) = account.entries
    assert entry.purpose == "test of m"
    assert account.spent == pytest.approx(2 / 10.0**2)
    with pytest.raises(BudgetExceeded):
        measure_with_noise(account, *rows, n_classes=2, n_groups=2, sigma=0.5)
    assert len(account.entries) == 1


def test_replacing_a_row_moves_two_cells_by_one() -> None:
    # The sensitivity that is charged: seen on the counts themselves, with the same noise.
    truth, said, groups = people(np.random.default_rng(0), 200)
    moved = truth.copy()
    moved[7] = 1 - moved[7]
    tables = [
        measure_with_noise(ledger(), y, said, groups, n_classes=2, n_groups=2, sigma=5.0).table
        for y in (truth, moved)
    ]
    change = tables[1] - tables[0]
    change = change[np.abs(change) > 1e-9]  # the noise is added and taken away in doubles
    assert sorted(change.tolist()) == pytest.approx([-1.0, 1.0])


def test_an_empty_group_has_the_widest_interval() -> None:
    got = measure_with_noise(
        ledger(1e9), [0, 1, 1], [0, 1, 0], [0, 0, 0], n_classes=2, n_groups=2, sigma=1e-4
    )
    assert got.gap.low == 0.0
    assert got.gap.high > 0.99
    assert [(rate.low, rate.high) for rate in got.selection[1]] == [(0.0, 1.0)] * 2
    alone = measure_with_noise(
        ledger(1e9), [0, 1], [0, 1], [0, 0], n_classes=2, n_groups=1, sigma=1e-4
    )
    assert math.isnan(alone.gap.value)


def test_what_cannot_be_priced_or_counted_is_refused() -> None:
    rows = people(np.random.default_rng(0), 10)
    with pytest.raises(ValueError, match=r"neighbors are 'add or remove one'. Open a ledger with"):
        measure_with_noise(
            ledger(neighbors="add or remove one"), *rows, n_classes=2, n_groups=2, sigma=1.0
        )
    with pytest.raises(ValueError, match="sigma must be finite and > 0"):
        measure_with_noise(ledger(), *rows, n_classes=2, n_groups=2, sigma=0.0)
    with pytest.raises(ValueError, match="groups must be at least 0 and below 1"):
        measure_with_noise(ledger(), [0], [1], [1], n_classes=2, n_groups=1, sigma=1.0)
    with pytest.raises(ValueError, match="one row each for the same records"):
        measure_with_noise(ledger(), [0], [0, 1], [0], n_classes=2, n_groups=1, sigma=1.0)

"""The temperature of labels: its root against a second derivation, its cost, its noise."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from evenhand.generators.aggregators import ClippedSums
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.label_temperature import TEMPERATURE, factor_of_odds, normed
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.typing import FloatArray, IntArray


def labels_of(n: int, n_labels: int, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """Return log-odds of rows, and labels of them."""
    rng = np.random.default_rng(seed)
    logs = normed(rng.normal(0, 1.5, (n, n_labels)))
    labels = (rng.random(n)[:, None] > np.cumsum(np.exp(logs), axis=1)[:, :-1]).sum(axis=1)
    return logs, labels


def released(
    logs: FloatArray,
    labels: IntArray,
    drawn: FloatArray | None = None,
    epsilon: float = 1000.0,
    seed: int = 0,
) -> tuple[float, Ledger]:
    ledger = Ledger(Budget(epsilon=epsilon, delta=1e-6), noise=SeededNoise(seed))
    plan = BudgetPlan(ledger=ledger, shares={TEMPERATURE: 0.5})
    drawn = logs if drawn is None else drawn
    found = factor_of_odds(logs, labels, drawn, plan, n=float(len(labels)), per_unit=1)
    return found, ledger


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("times", [0.9, 1.0, 1.6, 2.5])
def test_odds_that_are_too_sure_are_made_as_sure_as_labels_are(n_labels: int, times: float) -> None:
    logs, labels = labels_of(40_000, n_labels)
    found, _ = released(normed(times * logs), labels)

    def loss(factor: float) -> float:
        return -float(normed(factor * times * logs)[np.arange(len(labels)), labels].mean())

    best = minimize_scalar(loss, bounds=(0.1, 2.0), method="bounded").x
    # Both are 1 / times, but for labels of 40,000 rows; the root is read between six factors.
    assert best == pytest.approx(1 / times, rel=0.04)
    assert found == pytest.approx(best, rel=0.04)


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
def test_what_a_record_adds_at_most_does_not_bear_on_where_the_root_is(scale: float) -> None:
    # Cut by the label, and not by the row, it would: to .8 at the half of what is usual.
    logs, labels = labels_of(40_000, 2)
    found, _ = released(normed(2.0 * logs), labels, normed(scale * logs))
    assert found == pytest.approx(0.5, rel=0.06)


def test_where_noise_is_all_there_is_odds_stay_as_they_are() -> None:
    # Of 400 records at epsilon .05 the root is anywhere between the least factor and the largest.
    logs, labels = labels_of(400, 2)
    found = [released(normed(2.0 * logs), labels, epsilon=0.05, seed=seed)[0] for seed in range(20)]
    assert np.abs(np.array(found) - 1.0).max() < 0.05


def test_rows_that_tell_nothing_leave_odds_as_they_are() -> None:
    labels = np.arange(1000) % 2
    found, _ = released(normed(np.zeros((1000, 2))), labels)
    assert found == pytest.approx(1.0, abs=0.01)


def test_it_is_one_charge_of_its_share() -> None:
    logs, labels = labels_of(500, 2)
    _, ledger = released(logs, labels, epsilon=2.0)
    (entry,) = ledger.entries
    assert (entry.purpose, entry.n_uses) == (TEMPERATURE, 1)
    assert entry.mu_squared == pytest.approx(ledger.budget.mu_squared / 2, rel=1e-6)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_no_record_adds_more_than_is_charged(
    n_labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 60 records each is left out; some are as sure of another label as they can be."""
    totals: list[IntArray] = []
    total = ClippedSums.total

    def spied(self: ClippedSums, vectors: FloatArray) -> IntArray:
        assert np.linalg.norm(vectors, axis=1).max() < 1 + 1e-9  # none is cut by its label
        totals.append(total(self, vectors))
        return totals[-1]

    monkeypatch.setattr(ClippedSums, "total", spied)
    logs, labels = labels_of(60, n_labels)
    logs[:20], labels[:20] = normed(30.0 * logs[:20]), logs[:20].argmin(axis=1)
    usual, _ = labels_of(5000, n_labels)
    released(logs, labels, usual)
    for at in range(60):
        released(np.delete(logs, at, axis=0), np.delete(labels, at), usual)
    whole, *others = totals
    moved = [float(np.linalg.norm((whole - other).astype(float))) for other in others]
    declared = ClippedSums(clip_norm=1.0, per_unit=1).l2_sensitivity("add or remove one")
    assert 0.95 * declared < max(moved) <= declared

"""The noisy table: its pure epsilon from the densities themselves, and its place in a ledger."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    DiscreteNoise,
    FloatNoise,
    Ledger,
    SeededNoise,
)
from evenhand.privacy.table import LaplaceTable


@given(epsilon=st.floats(0.01, 20.0))
def test_no_output_tells_neighbors_apart_by_more_than_epsilon(epsilon: float) -> None:
    # The definition: densities of one cell with n and n + 1 records, and probabilities of whole
    # numbers.
    table = LaplaceTable.within(Budget(epsilon=epsilon, delta=1e-6))
    x = np.linspace(-30, 30, 4001)
    continuous = (np.abs(x) - np.abs(x - 1)) / table.scale
    k = np.arange(-30, 31)
    discrete = (np.abs(k) - np.abs(k - 1)) / table.scale
    for loss in (continuous, discrete):
        assert np.abs(loss).max() <= epsilon
        assert np.abs(loss).max() > epsilon * (1 - 1e-5)  # and no noise is wasted


@pytest.mark.parametrize("noise", [DiscreteNoise(), FloatNoise(), SeededNoise(0)], ids=repr)
def test_one_table_fills_its_budget_and_a_second_is_refused(noise: object) -> None:
    budget = Budget(epsilon=0.3, delta=1e-6)
    ledger = Ledger(budget, noise=noise, neighbors="add or remove one", single=True)  # type: ignore[arg-type]
    table = LaplaceTable.within(budget)
    noisy = ledger.release(table, [[10, 0, 5]], purpose="counts")
    assert noisy.shape == (1, 3)
    assert 0.999 * budget.mu_squared < ledger.spent <= budget.mu_squared
    with pytest.raises(BudgetExceeded):
        ledger.release(table, [[10, 0, 5]], purpose="counts")


def test_the_noise_has_the_spread_that_is_charged() -> None:
    # Mean |noise| is the scale; of 200,000 draws its standard error is scale / 447.
    table = LaplaceTable(scale=3.0, delta=1e-6)
    drawn = table.draw_noise(SeededNoise(1), 1, 200_000)
    assert abs(np.abs(drawn).mean() / 3.0 - 1.0) < 5 / 447
    assert abs(np.abs(drawn).mean() / 2.9 - 1.0) > 5 / 447  # 3 % less noise would be seen


def test_what_cannot_be_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="scale must be finite and > 0"):
        LaplaceTable(scale=0.0, delta=1e-6)
    with pytest.raises(TypeError, match="whole numbers of records, got dtype float64"):
        LaplaceTable(scale=1.0, delta=1e-6).decide([[0.5]], np.zeros((1, 1)))

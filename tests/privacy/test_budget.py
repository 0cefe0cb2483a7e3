import math
import pickle

import pytest
from dp_accounting import gaussian_mechanism

from evenhand.privacy import Budget


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_mu_is_the_largest_one_within_the_budget(epsilon: float, delta: float) -> None:
    # Second derivation: dp_accounting's analytic Gaussian.
    mu = Budget(epsilon=epsilon, delta=delta).mu
    at = gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta)
    assert at == pytest.approx(epsilon, rel=1e-6)


def test_mu_squared_is_the_square_and_use_leaves_no_trace() -> None:
    budget = Budget(epsilon=2, delta=1e-6)
    assert budget.mu_squared == budget.mu**2
    assert set(vars(budget)) == {"epsilon", "delta"}  # scikit-learn compares parameters whole


def test_budgets_of_equal_numbers_are_equal_also_after_use() -> None:
    used, fresh = Budget(epsilon=2, delta=1e-6), Budget(epsilon=2.0, delta=1e-6)
    assert used.mu_squared > 0
    assert used == fresh
    assert hash(used) == hash(fresh)
    assert pickle.loads(pickle.dumps(used)) == fresh
    assert repr(used) == "Budget(epsilon=2.0, delta=1e-06)"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_budget_without_privacy_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon must be finite and > 0, got epsilon=.*ledger"):
        Budget(epsilon=epsilon, delta=1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1])
def test_delta_lies_strictly_between_0_and_1(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        Budget(epsilon=1.0, delta=delta)

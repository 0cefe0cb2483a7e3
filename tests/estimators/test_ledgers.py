"""The ledger of one fit within an account: what an account must have left."""

import pytest

from evenhand.estimators.ledgers import LEAST_LEFT, open_run
from evenhand.privacy import Budget, BudgetExceeded, FloatNoise, Ledger
from evenhand.privacy.noisy_sum import NoisySum

BUDGET = Budget(epsilon=2.0, delta=1e-5)


@pytest.mark.parametrize(("left", "opens"), [(2.0, True), (0.5, False), (1e-4, False)])
def test_a_fit_is_refused_where_an_account_has_less_left_than_a_hundredth_of_its_cost(
    left: float, opens: bool
) -> None:
    account = Ledger(BUDGET, noise=FloatNoise())
    spent = BUDGET.mu_squared * (1.0 - left * LEAST_LEFT)
    earlier = NoisySum(sigma=spent**-0.5, l2_sensitivity=1.0)
    with account.reserve({earlier: 1}, purpose="an earlier fit") as grant:
        grant.draw(earlier, 1)
    before = account.spent
    known = {"unit": account.unit, "neighbors": account.neighbors, "way_out": "", "purpose": "fit"}
    if opens:
        run = open_run(BUDGET, account, None, **known)
        assert run.remaining == pytest.approx(left * LEAST_LEFT * BUDGET.mu_squared, rel=1e-3)
    else:
        with pytest.raises(BudgetExceeded, match=r"would learn noise\. Nothing was charged"):
            open_run(BUDGET, account, None, **known)
    assert account.spent == before

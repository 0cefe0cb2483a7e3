"""Groups by randomised response, as weights that are unbiased: what method M learns from."""

from __future__ import annotations

import numpy as np

from evenhand import Budget
from evenhand.fairness.noisy_groups import unbiased_sums
from evenhand.privacy import FloatNoise, Ledger, RandomizedResponse
from evenhand.privacy.relation import GROUP_LABEL, attribute_of
from evenhand.typing import FloatArray, IntArray


def unbiased_weights(groups: IntArray, n_groups: int, budget: Budget) -> FloatArray:
    """Release every group once and return weights of shape (n, n_groups).

    Privacy
    -------
    Neighbors : change the group label of one person. The whole budget is spent.
    """
    response = RandomizedResponse.within(budget, n_groups=n_groups)
    ledger = Ledger(
        budget,
        noise=FloatNoise(),
        unit=attribute_of("person"),
        neighbors=GROUP_LABEL,
        single=True,
    )
    (answers,) = ledger.release(response, groups[None, :], purpose="groups")
    return unbiased_sums(np.eye(n_groups)[answers], float(response.truth))

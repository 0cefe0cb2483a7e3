"""Groups by randomised response, as weights of rows: what method M learns from."""

from __future__ import annotations

import numpy as np

from evenhand import Budget
from evenhand.fairness.noisy_groups import unbiased_sums
from evenhand.privacy import FloatNoise, Ledger, RandomizedResponse
from evenhand.privacy.relation import GROUP_LABEL, attribute_of
from evenhand.typing import FloatArray, IntArray


def random_weights(
    groups: IntArray, n_groups: int, budget: Budget, *, undo: bool = True
) -> FloatArray:
    """Release every group once and return weights of shape (n, n_groups).

    They undo the randomisation in the mean, or with ``undo=False`` are 1 at the answered group, as
    the paper feeds it to its fair learner.

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
    said = np.eye(n_groups)[answers]
    return unbiased_sums(said, float(response.truth)) if undo else said

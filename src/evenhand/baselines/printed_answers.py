"""Algorithm 1 of FairPATE with its own accounting: to compare with, for it is not private."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from evenhand.fairness.gate.gate import Gate
from evenhand.privacy import Budget, ConfidentGNMax, DiscreteNoise, Ledger
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.local.cost import theorem6
from evenhand.privacy.noise import Noise
from evenhand.privacy.renyi import ORDERS, epsilon_of
from evenhand.typing import IntArray
from evenhand.voting import Answers, Votes
from evenhand.voting.answers import Reason
from evenhand.voting.blocks import QueryBlocks

SHARES: Final = {"threshold": 0.6, "sigma_check": 0.55, "sigma": 0.15}
"""T, sigma_1 and sigma_2 for each teacher: the medians of FairPATE's Table 1 (five data sets)."""


def printed_mechanism(n_teachers: int) -> ConfidentGNMax:
    """Return the mechanism of FairPATE's Table 1, by the medians of its five rows.

    Examples
    --------
    >>> printed_mechanism(200)
    ConfidentGNMax(threshold=120.0, sigma_check=110.0, sigma=30.0)
    """
    return ConfidentGNMax(**{name: round(part * n_teachers, 6) for name, part in SHARES.items()})


def cost_of_all(mechanism: ConfidentGNMax, noise: Noise, n_queries: int, delta: float) -> Budget:
    """Return what asking every query would cost by data-independent costs, and a hair more."""
    each = mechanism.check.mu_squared(noise) + mechanism.answer.mu_squared(noise)
    mu = math.sqrt(each * max(1, n_queries) * (1.0 + 1e-6))  # the ledger rounds its limit down
    return Budget(epsilon=epsilon_from_mu(mu, delta) * (1.0 + 1e-6), delta=delta)


def answer_as_printed(
    votes: Votes,
    mechanism: ConfidentGNMax,
    claimed: Budget,
    ledger: Ledger,
    gate: Gate,
    groups: IntArray,
) -> Answers:
    """Answer queries in their order as Algorithm 1 does, until the paper's own cost is the budget.

    Each query that is asked pays ``alpha / (2 sigma_1^2)`` for its check, each answer Theorem 6 of
    Papernot et al. 2018 *at the actual votes*, and a refusal by the gate nothing for the noisy
    winner that it has read (Section 4.1). The first query that would bring the sum above the budget
    ends the asking (Appendix B).

    Parameters
    ----------
    votes : Votes
    mechanism : ConfidentGNMax
    claimed : Budget
        What the paper's accounting is stopped by.
    ledger : Ledger
        Charged what the draws cost by data-independent costs; its budget must cover all queries
        (``cost_of_all``).
    gate : Gate
        That of Algorithm 1.
    groups : ndarray of int64, shape (n_queries,)

    Returns
    -------
    Answers

    Privacy
    -------
    **None.** When it stops depends on the votes: between neighbors the number of answers differs
    with certainty (``tests/baselines/test_as_printed_fairpate.py``). The ledger knows what the
    draws cost, and that is no bound for the moment of stopping.
    """
    discrete = isinstance(ledger.noise, DiscreteNoise)
    cost = theorem6(votes.counts, mechanism.sigma, discrete=discrete).reveal_to_curator()
    check_cost = ORDERS / (2.0 * mechanism.sigma_check**2)
    n, spent = len(votes), np.zeros_like(check_cost)
    reasons = np.full(n, Reason.NOT_ASKED, dtype=np.int64)
    given: list[tuple[int, int]] = []
    blocks = QueryBlocks(mechanism, ledger, votes.n_classes)
    blocks.charge(n)
    check, answer = mechanism.check, mechanism.answer
    counts, asked, drawn = votes.counts.tolist(), 0, 0

    def affords(more: np.ndarray) -> bool:
        """Whether the paper's accounting would go on."""
        return epsilon_of(spent + more, ORDERS, claimed.delta, "classic") <= claimed.epsilon

    for row in range(n):
        if not affords(check_cost):
            break
        passed = check.decide_row(counts[row], blocks.check_noise[asked])
        asked += 1
        if not passed:
            spent, reasons[row] = spent + check_cost, Reason.NO_CONSENSUS
            continue
        winner = answer.decide_row(counts[row], blocks.answer_noise[drawn].tolist())
        drawn += 1
        if winner not in gate.admissible(int(groups[row])):
            spent, reasons[row] = spent + check_cost, Reason.OUTSIDE_MARGIN
            continue
        if not affords(check_cost + cost[row]):
            break  # drawn, and never handed out: this query is not answered
        gate.offer(int(groups[row]), winner)
        spent = spent + check_cost + cost[row]
        given.append((row, winner))
    blocks.close(asked=asked, drawn=drawn)
    pairs = np.array(given, dtype=np.int64).reshape(-1, 2)
    return blocks.answers(
        pairs[:, 0], pairs[:, 1], np.arange(len(pairs)), reasons=reasons, groups=groups
    )

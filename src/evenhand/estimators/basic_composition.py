"""Ledgers of one fit kept side by side, where their costs add up by epsilon only."""

from __future__ import annotations

import math
from typing import Any

from evenhand import _checks
from evenhand.privacy import Budget, Ledger
from evenhand.privacy.ledger_store import Entry


class Books:
    """The ledgers of a fit whose parts have no common currency.

    A pure epsilon and the privacy loss distribution of many sampled steps both know their cost at
    one delta only, so neither may be charged to an account of the other. Each part keeps a ledger;
    the claim adds their epsilons and deltas (basic composition; Dwork and Lei 2009).

    Parameters
    ----------
    ledgers : Ledger
        One per part.
    """

    def __init__(self, *ledgers: Ledger) -> None:
        self.ledgers = ledgers

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was charged, part by part."""
        return tuple(entry for ledger in self.ledgers for entry in ledger.entries)

    def spent_epsilon(self, delta: float) -> float:
        """Sum of the parts' epsilons, each at its own delta; valid at ``delta`` or above."""
        _checks.open_unit("delta", delta)
        return math.fsum(ledger.spent_epsilon(ledger.budget.delta) for ledger in self.ledgers)

    def to_dict(self) -> dict[str, Any]:
        """Return the accounts as plain values for a report, like ``Ledger.to_dict``.

        ``mu_squared`` of an entry is true in its own part; sums are for shares of the spending.
        """
        parts = [ledger.to_dict() for ledger in self.ledgers]
        summed = ("epsilon", "mu_squared_budget", "mu_squared_spent", "epsilon_spent")
        return {
            **parts[0],
            **{name: math.fsum(part[name] for part in parts) for name in summed},
            "account": "parts with a ledger each",
            "noise": " and ".join(dict.fromkeys(part["noise"] for part in parts)),
            "protects": all(part["protects"] for part in parts),
            "entries": [entry for part in parts for entry in part["entries"]],
            "parts": parts,
        }


def parted(budget: Budget, share: float) -> tuple[Budget, Budget]:
    """Split epsilon: ``share`` for a pure release, the rest, with all of delta, for the steps.

    Returns
    -------
    tuple of Budget
        Pure part and steps. The delta of the pure part only names where its ledger computes.
    """
    pure = budget.epsilon * _checks.open_unit("share", share)
    rest = budget.epsilon - pure
    if pure + rest > budget.epsilon:  # by the last bit
        rest = math.nextafter(rest, 0.0)
    return (
        Budget(epsilon=pure, delta=budget.delta),
        Budget(epsilon=rest, delta=budget.delta),
    )

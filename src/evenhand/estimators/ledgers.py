"""The ledger of one fit: its own, one within a shared account, or several side by side."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Final

from evenhand import _checks
from evenhand.privacy import Budget, BudgetExceeded, DiscreteNoise, Ledger
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.ledger_store import Entry
from evenhand.privacy.noise import Noise, UnitNoise, checked_noise

_ROUNDING = 1e-9  # two parts must not add up to more than the whole in the last digit

LEAST_LEFT: Final = 0.01
"""Of a fit's ``mu**2``, what an account must have left: with a tenth of its mu nothing is learnt
that a smaller budget would not say better, and the claim would speak of the larger one."""


def open_run(
    budget: Budget,
    account: Ledger | None,
    noise: Noise | None,
    *,
    unit: str,
    neighbors: str,
    way_out: str,
    purpose: str,
    default: type[Noise] = DiscreteNoise,
    moves: int = 1,
) -> Ledger:
    """Open the ledger that pays for a fit.

    Parameters
    ----------
    budget : Budget
        What the fit may spend.
    account : Ledger, optional
        Charged as well; it draws its own noise.
    noise : Noise, optional
        Copied, so that a parameter is not changed by ``fit``, and a seeded test starts anew.
    unit, neighbors : str
        The relation that the fit protects.
    way_out : str
        What to do where the account is one of another relation.
    purpose : str
        Written into the account.
    default : type
        Of noise, where none is given.
    moves : int
        By how much one unit moves one count of votes.

    Raises
    ------
    ValueError
        If the account is of another relation, or both it and ``noise`` are given.
    BudgetExceeded
        If the account has less than ``LEAST_LEFT`` of the budget left.
    """
    if account is None:
        own = own_noise(noise, default)
        priced = own if moves == 1 else UnitNoise(own, moves)
        return Ledger(budget, noise=priced, unit=unit, neighbors=neighbors)
    account.require(unit, neighbors, way_out)
    if noise is not None:
        raise ValueError(
            "noise= and ledger= were both given, and a ledger draws its own noise. Leave "
            "noise=None, or open the ledger with that noise."
        )
    priced_so = None if moves == 1 else UnitNoise(account.noise, moves)
    run = account.run(budget, purpose=purpose, noise=priced_so)
    if run.remaining < LEAST_LEFT * budget.mu_squared:
        raise BudgetExceeded(
            f"{account!r} has mu={math.sqrt(run.remaining):.3g} left, less than a tenth of the "
            f"mu={budget.mu:.3g} of this fit: a model would learn noise. Nothing was charged or "
            f"drawn. Ask for an epsilon that is left, or take another account."
        )
    return run


def single_ledger(
    budget: Budget,
    noise: Noise | None,
    *,
    unit: str = "record",
    neighbors: str = "add or remove one",
) -> Ledger:
    """Open a ledger of this run alone, for a cost that is known at one delta only."""
    return Ledger(budget, noise=noise, unit=unit, neighbors=neighbors, single=True)


def own_noise(noise: Noise | None, default: type[Noise] = DiscreteNoise) -> Noise:
    """Return a copy of the noise that was given, or the default."""
    return default() if noise is None else copy.deepcopy(checked_noise(noise))


def parted(run: Ledger, shares: Mapping[str, float], rest: str) -> tuple[Ledger, ...]:
    """Part what a fit may spend: ``shares`` by their purposes, and last the ``rest``.

    Nothing is charged.
    """
    whole, delta = run.remaining * (1.0 - _ROUNDING), run.budget.delta
    parts = {**shares, rest: 1.0 - math.fsum(shares.values())}
    budgets = {
        purpose: Budget(epsilon=epsilon_from_mu(math.sqrt(part * whole), delta), delta=delta)
        for purpose, part in parts.items()
    }
    return tuple(run.run(budget, purpose=purpose) for purpose, budget in budgets.items())


def answers_budget(budget: Budget, share: float) -> Budget:
    """Return the part of a budget that pays for answers, where ``share`` pays for counts."""
    if not share:
        return budget
    mu = math.sqrt((1.0 - share) * budget.mu_squared)
    return Budget(epsilon=epsilon_from_mu(mu, budget.delta), delta=budget.delta)


class SeparateLedgers:
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


def split_epsilon(budget: Budget, share: float) -> tuple[Budget, Budget]:
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


def split_budget(budget: Budget, share: float) -> tuple[Budget, Budget]:
    """Split epsilon and delta: ``share`` of both, and the rest of both (basic composition).

    Examples
    --------
    >>> split_budget(Budget(epsilon=2.0, delta=1e-6), 0.25)
    (Budget(epsilon=0.5, delta=2.5e-07), Budget(epsilon=1.5, delta=7.5e-07))
    """
    pure, rest = split_epsilon(budget, share)
    part = budget.delta * share
    left = budget.delta - part
    if part + left > budget.delta:  # by the last bit
        left = math.nextafter(left, 0.0)
    return Budget(epsilon=pure.epsilon, delta=part), Budget(epsilon=rest.epsilon, delta=left)

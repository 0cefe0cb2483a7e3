"""The ledger of one run: its own, or one inside an account that several runs share."""

from __future__ import annotations

import copy

from evenhand.privacy import Budget, DiscreteNoise, Ledger, Noise


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

    Raises
    ------
    ValueError
        If the account is of another relation, or both it and ``noise`` are given.
    """
    if account is None:
        return Ledger(budget, noise=own_noise(noise, default), unit=unit, neighbors=neighbors)
    account.require(unit, neighbors, way_out)
    if noise is not None:
        raise ValueError(
            "noise= and ledger= were both given, and a ledger draws its own noise. Leave "
            "noise=None, or open the ledger with that noise."
        )
    return account.run(budget, purpose=purpose)


def own_noise(noise: Noise | None, default: type[Noise] = DiscreteNoise) -> Noise:
    """Return a copy of the noise that was given, or the default."""
    return default() if noise is None else copy.deepcopy(noise)

"""Which change of the private data a claim of teachers is about, and who teaches whom by it."""

from __future__ import annotations

import secrets

import numpy as np

from evenhand import _checks
from evenhand.estimators.inputs import FitInputs
from evenhand.privacy.noise import WORD, Noise
from evenhand.privacy.subsampled import record_keys
from evenhand.teachers import by_position, by_unit
from evenhand.teachers.partition import NEIGHBORS, Neighbors, Partition, by_coin, in_stream


def change_claimed(neighbors: str | None, *, counted: bool, units_named: str) -> Neighbors:
    """Return the change that the claim of a fit is about.

    Parameters
    ----------
    neighbors : str or None
        As the user has it. None: adding or removing one with units, and where counts are taken,
        which have less noise so; else replacing one, under which votes cost the same.
    counted : bool
        Whether noisy counts of the private records are taken.
    units_named : str
        What a unit is, where ``unit_ids`` say whose the records are; empty where they do not.

    Raises
    ------
    ValueError
        For a change that such a fit makes no claim about.
    """
    replaces, adds = NEIGHBORS
    if neighbors is not None:
        _checks.one_of("neighbors", neighbors, NEIGHBORS)
    if units_named and neighbors == replaces:
        raise ValueError(
            f"neighbors={replaces!r} and unit_ids= were both given: all records of one "
            f"{units_named} go to one teacher, so that one {units_named} in the place of another "
            f"changes two teachers, which is two steps of {adds!r}. Leave neighbors= out for "
            f"a claim about adding or removing one {units_named}, or unit_ids= for one about "
            f"records."
        )
    asked = neighbors or (adds if units_named or counted else replaces)
    return "replace one" if asked == replaces else "add or remove one"


def refuse_other_rows_aside(data: FitInputs, neighbors: Neighbors) -> None:
    """Refuse runs on one account that would each give other rows away."""
    if neighbors == "add or remove one" and not data.by_unit:
        raise ValueError(
            f"With neighbors={neighbors!r} coins that nobody can repeat set rows aside, and "
            f"each fit on the account of ledger= would give other rows away by "
            f"public_fraction=. Pass X_public=, or leave neighbors= or ledger= out."
        )


def deal(
    data: FitInputs,
    n_teachers: int,
    *,
    neighbors: Neighbors,
    unit: str,
    noise: Noise,
    seed: np.random.Generator,
) -> Partition:
    """Assign records to teachers without looking at any other record."""
    if (cast := data.cast) is not None:
        return Partition(
            teacher=data.private_rows,
            n_teachers=cast.n_teachers,
            unit=cast.unit,
            neighbors=cast.neighbors,
        )
    by_coin_of_each = neighbors == "add or remove one" and not data.by_unit
    if data.stream is not None:
        secret = by_coin_of_each and noise.protects
        return in_stream(
            data.n_private,
            n_teachers,
            secrets.token_bytes(32) if secret else seed.bytes(32),
            unit=unit if data.by_unit else "record",
            neighbors=neighbors,
        )
    if data.units is not None:
        return by_unit(data.units, n_teachers, seed.bytes(32), unit=unit)
    if not by_coin_of_each:
        return by_position(data.n_private, n_teachers, seed)
    # Coins of a seed belong to positions: they are for tests, whose noise can be repeated too.
    n = data.n_private
    coins = record_keys(noise, n) if noise.protects else seed.integers(WORD, size=n)
    return by_coin(coins, n_teachers)

"""Noisy sums of public features over the members of each private group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand._units import ids_of
from evenhand.privacy import Ledger
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.typing import ArrayLike, FloatArray

UNIT: Final = 1.0 / 64.0
"""Features are counted in it, so that sums are whole numbers and exact noise can be drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupMoments:
    """Released sums, and the features as they were counted. Everything here is public."""

    features: FloatArray
    """Rounded towards zero to multiples of 1/64. Shape (n, m)."""
    sums: FloatArray
    """Of the features of each group's rows, with noise; over groups they add up to the public
    total. Shape (n_groups, m).
    """
    variance: float
    """Of the noise on each sum."""


def release_group_moments(
    groups: ArrayLike,
    features: ArrayLike,
    *,
    n_groups: int,
    mu_squared: float,
    ledger: Ledger,
    units: ArrayLike | None = None,
) -> GroupMoments:
    """Sum the features of each group's rows, and release the sums with noise.

    Parameters
    ----------
    groups : array-like of int, shape (n,)
        Private.
    features : array-like of float, shape (n, m)
        Public: functions of public columns, or of what was released before. Where class labels
        are protected too, of no label.
    n_groups : int
        At least 2.
    mu_squared : float
        What may be spent; the noise is as small as that allows.
    ledger : Ledger
        Pays. Its neighbors are a change of one group label, or of one group and class label:
        features are not protected.
    units : array-like, shape (n,), optional
        Whose row each is; ``17`` and ``"17.0"`` are one, as for teachers. Default: each is a
        person of its own.

    Raises
    ------
    BudgetExceeded
        If the ledger does not cover it; nothing is charged or drawn then.

    Privacy
    -------
    Neighbors : change one group label (of all rows of one unit), and the class label if the
        features read none.
    Sensitivity : the features do not move, so one row's leave one sum and enter another. With two
        groups one sum says both, and moves by the norm of the row's features; with more, by
        sqrt(2) times that. Norms are public, and the largest that occurs is taken; over all rows of
        a unit they add up.
    Cost : ``mu_squared`` at most, of a ``NoisySum``.
    """
    z = _checks.codes("groups", groups, n_groups)
    n_groups = _checks.at_least("n_groups", n_groups, 2)
    phi = _checks.matrix("features", features)
    _checks.same_length(groups=z, features=phi)
    _checks.positive("mu_squared", mu_squared)
    if ledger.neighbors not in (GROUP_LABEL, GROUP_AND_CLASS_LABEL):
        raise ValueError(
            f"The features of these rows are taken as public, and this ledger's neighbors are "
            f"{ledger.neighbors!r}. Open a ledger with neighbors={GROUP_LABEL!r}."
        )
    counted = phi * (1.0 / UNIT)
    np.trunc(counted, out=counted)  # whole numbers in float64: sums of them are exact
    norms = np.sqrt(np.einsum("ij,ij->i", counted, counted))
    if units is not None:
        whose = np.unique(ids_of(units), return_inverse=True)[1]
        _checks.same_length(groups=z, units=whose)
        norms = np.bincount(whose, weights=norms)
    moved = max(float(norms.max(initial=0.0)), 1.0) * (1.0 if n_groups == 2 else math.sqrt(2.0))
    mechanism = _within(mu_squared, moved, ledger)
    member = (z == np.arange(n_groups)[:, None]).astype(np.float64)
    sums = (member @ counted).astype(np.int64)
    total = sums.sum(axis=0)  # public: every row is of one group
    purpose = "sums of features by group"
    if n_groups == 2:
        second = ledger.release(mechanism, sums[None, 1], purpose=purpose)[0]
        noisy: FloatArray = np.stack([total - second, second])
    else:
        released = ledger.release(mechanism, sums.reshape(1, -1), purpose=purpose)[0]
        noisy = released.reshape(sums.shape)
        noisy += (total - noisy.sum(axis=0)) / n_groups
    counted *= UNIT
    return GroupMoments(
        features=counted,
        sums=noisy * UNIT,
        variance=(mechanism.sigma * UNIT) ** 2,
    )


def _within(mu_squared: float, moved: float, ledger: Ledger) -> NoisySum:
    """Return the sum with the least noise that costs no more."""
    sigma = moved / math.sqrt(mu_squared)
    # Discrete noise costs a little more than 1 / sigma.
    while (made := NoisySum(sigma=sigma, l2_sensitivity=moved)).mu_squared(
        ledger.noise
    ) > mu_squared:
        sigma *= 1.0 + 1e-6
    return made

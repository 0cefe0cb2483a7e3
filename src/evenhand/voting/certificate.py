"""A released bound on what noisy group attributes cost in fairness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.fairness import noisy_certificate
from evenhand.privacy import Ledger, NoisyHistogram
from evenhand.privacy.relation import is_attribute
from evenhand.typing import ArrayLike, FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeCertificate:
    """Upper bounds on ``|E[h | A = a] - E[h | A~ = a]|``, one per group. Public."""

    noisy_table: FloatArray
    """The released counts of (true group, noisy group). Shape (n_groups, n_groups)."""
    bounds: FloatArray
    """For h in [0, 1]; multiply for a larger range. Shape (n_groups,)."""
    level: float
    """Probability, at least, that all bounds hold together."""
    sigma: float
    """Noise on each count."""

    def alpha(self, alpha: float) -> float:
        """Fairness for the true attribute of a model that is ``alpha``-fair for the noisy one."""
        return _checks.non_negative("alpha", alpha) + float(self.bounds.max())

    def __str__(self) -> str:
        return (
            f"differences by true and by noisy group are at most "
            f"{', '.join(f'{b:.3f}' for b in self.bounds)} apart, with {self.level:.0%} confidence"
        )


def release_certificate(
    true_groups: ArrayLike,
    noisy_groups: ArrayLike,
    *,
    n_groups: int,
    sigma: float,
    ledger: Ledger,
    level: float = 0.95,
    population: bool = True,
) -> AttributeCertificate:
    """Count true against noisy groups, release the table with noise, and bound from it.

    Parameters
    ----------
    true_groups : array-like of int, shape (n,)
        Private.
    noisy_groups : array-like of int, shape (n,)
        What the records are said to be: already released, or a public function of the record.
    n_groups : int
        At least 2.
    sigma : float
        Noise on each count. A few dozen records of noise hardly matter in groups of thousands.
    ledger : Ledger
        Pays. It must guard records, or an attribute of whoever has one row each: one unit with many
        rows would move many counts.
    level, population
        As for ``noisy_certificate``.

    Raises
    ------
    BudgetExceeded
        If the budget does not cover the table; nothing is charged or drawn then.

    Privacy
    -------
    Sensitivity : a record sits in one cell, so replacing it, or changing its group, lowers one
        count by 1 and raises one by 1: sqrt(2); adding or removing it moves one count by 1.
    Cost : ``mu**2 = 2 / sigma**2``, once for the whole table. The bounds are post-processing.

    Examples
    --------
    >>> from evenhand.privacy import Budget, SeededNoise
    >>> rng = np.random.default_rng(0)
    >>> true = rng.integers(0, 2, 20_000)
    >>> noisy = np.where(rng.random(20_000) < 0.05, 1 - true, true)
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6), noise=SeededNoise(0))
    >>> print(release_certificate(true, noisy, n_groups=2, sigma=10.0, ledger=ledger))
    differences by true and by noisy group are at most 0.060, 0.059 apart, with 95% confidence
    """
    if ledger.unit != "record" and not is_attribute(ledger.unit):
        raise ValueError(
            f"The ledger guards one {ledger.unit}, which may own several rows of the table; the "
            f"noise is for one row each. Count each {ledger.unit} once, under a ledger of records."
        )
    _checks.at_least("n_groups", n_groups, 2)
    true = _checks.codes("true_groups", true_groups, n_groups)
    noisy = _checks.codes("noisy_groups", noisy_groups, n_groups)
    _checks.same_length(true_groups=true, noisy_groups=noisy)
    cells = np.bincount(true * n_groups + noisy, minlength=n_groups**2)
    mechanism = NoisyHistogram(sigma=sigma, n_classes=n_groups**2)
    released = ledger.release(
        mechanism, cells.reshape(1, -1), purpose="table of true and noisy groups"
    )
    table = released.reshape(n_groups, n_groups)
    bounds = noisy_certificate(table, sigma=sigma, level=level, population=population)
    return AttributeCertificate(noisy_table=table, bounds=bounds, level=level, sigma=sigma)

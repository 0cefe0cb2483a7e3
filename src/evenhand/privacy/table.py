"""A table that counts records by cell, released once with Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand._checks import open_unit, positive
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import mu_from_epsilon
from evenhand.privacy.noise import Noise
from evenhand.typing import Array, ArrayLike, FloatArray

LAPLACE_ACCOUNTING: Final = "the Laplace mechanism (delta 0)"

# A ledger leaves a share of 1e-9 of its budget unused; this much more noise is surely within.
_MORE: Final = 1e-6


@dataclass(frozen=True, kw_only=True)
class LaplaceTable:
    """Release counts of records, each record in one cell, after adding Laplace noise.

    Parameters
    ----------
    scale : float
        Of the noise on each cell, in records; its standard deviation is ``sqrt(2) * scale``.
    delta : float, optional
        None: ``mu_squared`` holds at every delta and adds up. In (0, 1): it is a smaller one that
        holds at this delta alone, for a ``single`` ledger. It is no part of the promise.

    Privacy
    -------
    Neighbors : add or remove one record. (Replacing one moves two cells and costs twice.)
    Sensitivity : one cell moves by 1, hence L1 sensitivity 1.
    Cost : ``epsilon = 1 / scale`` with delta 0 (Dwork, McSherry, Nissim and Smith 2006), for
        continuous noise on real numbers and for discrete noise on whole numbers.

    Notes
    -----
    A pure epsilon is no Gaussian cost. With ``delta``, ``mu_squared`` is the Gaussian whose curve
    passes through (epsilon, delta); two such tables together would cost more than their sum says.
    Without, it is the least Gaussian whose trade-off curve lies below that of the noise everywhere
    (``laplace_mu``), which any number of other costs may join.

    Examples
    --------
    >>> from evenhand.privacy import Ledger, SeededNoise
    >>> budget = Budget(epsilon=0.5, delta=1e-6)
    >>> ledger = Ledger(
    ...     budget, noise=SeededNoise(0), neighbors="add or remove one", single=True
    ... )
    >>> table = LaplaceTable.within(budget)
    >>> ledger.release(table, [[900, 100]], purpose="group sizes").round(1).tolist()
    [[900.6, 98.8]]
    """

    neighbors: ClassVar[tuple[str, ...]] = ("add or remove one",)

    scale: float
    delta: float | None = None

    def __post_init__(self) -> None:
        hint = "Without noise the counts would leave as they are."
        object.__setattr__(self, "scale", positive("scale", self.scale, hint))
        if self.delta is not None:
            object.__setattr__(self, "delta", open_unit("delta", self.delta))

    @classmethod
    def within(cls, budget: Budget) -> LaplaceTable:
        """Return the table with the least noise within ``budget``, for a ledger of its own."""
        return cls(scale=(1.0 + _MORE) / budget.epsilon, delta=budget.delta)

    @property
    def epsilon(self) -> float:
        """The pure epsilon of one table."""
        return 1.0 / self.scale

    def mu_squared(self, noise: Noise) -> float:
        """``mu**2`` at every delta, or of the Gaussian with this epsilon at ``self.delta``."""
        if self.delta is None:
            return noise.laplace_mu(self.scale) ** 2
        return mu_from_epsilon(self.epsilon, self.delta) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` tables of ``n_classes`` cells. For the ledger only."""
        return noise.laplace(self.scale, (n, n_classes))

    def decide(self, counts: ArrayLike, drawn: Array) -> FloatArray:
        """Return the noisy counts; they may be negative."""
        cells = np.asarray(counts)
        if not np.issubdtype(cells.dtype, np.integer):
            raise TypeError(f"counts must be whole numbers of records, got dtype {cells.dtype}.")
        noisy: FloatArray = (cells + drawn).astype(np.float64)
        return noisy

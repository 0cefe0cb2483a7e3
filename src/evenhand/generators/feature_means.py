"""Noisy sums of features by label and group, with the counts: one Gaussian release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand.generators.aggregators import FeatureSums
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.payload import Encoded
from evenhand.typing import FloatArray

MEANS: Final = "sums of features by label and group, with the counts"
"""What mean embeddings release, in the ledger's words."""


def chunks(n: int, size: int) -> list[slice]:
    """Cut n records into parts whose features are held at once."""
    return [slice(first, first + size) for first in range(0, n, size)]


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMeans:
    """What was released.

    Privacy
    -------
    Features have norm at most 1; see ``FeatureSums``.
    """

    sums: FloatArray
    """Shape (n_conditions, n_features)."""
    counts: FloatArray
    """Noisy number of records of each combination of label and group. Shape (n_conditions,)."""
    sigma: float
    """Standard deviation of the noise on each number."""

    @classmethod
    def release(
        cls,
        data: Encoded,
        features: Callable[[slice], FloatArray],
        *,
        n_features: int,
        n_conditions: int,
        chunk: int,
        plan: BudgetPlan,
        purpose: str,
    ) -> FeatureMeans:
        """Add up the features of all records by condition, and release the sums once.

        ``features`` gives those of some records, (n, n_features); ``chunk`` are held at once.
        """
        sums = FeatureSums(n_features=n_features, n_conditions=n_conditions, per_unit=data.per_unit)
        total = np.zeros(n_conditions * (n_features + 1), dtype=np.int64)
        for rows in chunks(len(data.condition), chunk):
            total += sums.total(features(rows), data.condition[rows])
        released = plan.release(sums, total, purpose)
        found, counts = sums.apart(released.values)
        return cls(sums=found, counts=counts, sigma=released.sigma)

    @property
    def means(self) -> FloatArray:
        """Noisy mean features of each combination of label and group."""
        means: FloatArray = self.sums / np.maximum(self.counts, 1.0)[:, None]
        return means

    @property
    def squared_noise(self) -> FloatArray:
        """Expected squared length of the noise on the means of each combination."""
        n_features = self.sums.shape[1]
        length: FloatArray = n_features * (self.sigma / np.maximum(self.counts, 1.0)) ** 2
        return length

    @property
    def snr(self) -> SignalToNoise:
        """How far the sums stand above their noise."""
        n_conditions, n_features = self.sums.shape
        noise = self.sigma * n_features**0.5
        return SignalToNoise(
            value=float((max(self.counts.sum(), 0.0) / n_conditions / noise) ** 2),
            formula="length of the sums of one label and group over that of their noise, squared",
        )

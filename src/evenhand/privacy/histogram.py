"""The noisy histogram of votes: how many teachers chose each class, plus noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand._checks import positive
from evenhand._stored import stored
from evenhand.privacy.noise import Noise
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.typing import Array, ArrayLike, FloatArray


@stored
@dataclass(frozen=True, kw_only=True)
class NoisyHistogram:
    """Release the counts of votes after adding Gaussian noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each released count, in votes. Greater than 0.
    n_classes : int
        At least 2.

    Privacy
    -------
    Neighbors : as for ``GNMax``; the number of teachers is public.
    Sensitivity : with two classes the counts sum to the number of teachers, so one count says all;
        it moves by at most 1. With more, one count falls by 1 and one rises by 1: sqrt(2).
    Cost : ``mu**2 = 1 / sigma**2`` for two classes, ``2 / sigma**2`` for more (Dong, Roth and Su
        2022, Theorem 1). A winner read from these counts costs nothing more.

    Examples
    --------
    >>> from evenhand.privacy import FloatNoise
    >>> round(NoisyHistogram(sigma=40.0, n_classes=2).mu_squared(FloatNoise()) * 1600, 9)
    1.0
    """

    neighbors: ClassVar[tuple[str, ...]] = NEIGHBORS
    delta: ClassVar[None] = None

    sigma: float
    n_classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got n_classes={self.n_classes!r}.")

    @property
    def n_noised(self) -> int:
        """Counts that carry noise: the last of two, or all."""
        return 1 if self.n_classes == 2 else self.n_classes

    def mu_squared(self, noise: Noise) -> float:
        """Cost of one histogram, whatever the votes are."""
        moved = 1.0 if self.n_classes == 2 else 2.0
        return moved * noise.gaussian_mu(self.sigma) ** 2

    def draw_noise(self, noise: Noise, n: int, n_classes: int) -> Array:
        """Draw noise for ``n`` histograms, shape (n, n_noised). For the ledger only."""
        if n_classes != self.n_classes:
            raise ValueError(f"This histogram has {self.n_classes} classes, got {n_classes}.")
        return noise.gaussian(self.sigma, (n, self.n_noised))

    def decide(self, counts: ArrayLike, drawn: Array) -> FloatArray:
        """Return noisy counts (n, n_classes); each row of two still sums to the teachers."""
        votes = np.asarray(counts)
        if votes.ndim != 2 or votes.shape[1] != self.n_classes:
            raise ValueError(
                f"counts must have shape (n, {self.n_classes}), got shape {votes.shape}."
            )
        if not np.issubdtype(votes.dtype, np.integer):
            raise TypeError(f"counts must be whole numbers of votes, got dtype {votes.dtype}.")
        if self.n_classes > 2:
            noisy: FloatArray = (votes + drawn).astype(np.float64)
            return noisy
        last = (votes[:, 1] + drawn[:, 0]).astype(np.float64)
        # The first count is what is left of the public total: it reads the noisy one only.
        return np.stack([votes.sum(axis=1) - last, last], axis=1)

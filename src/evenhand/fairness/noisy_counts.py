"""Metrics from a table of counts that was released with noise, with intervals that cover.

Two things stand between a rate of the population and a rate of the noisy table: the rows are a
sample, and the counts carry noise. The interval of an estimate shares its error between the two. A
sum of m noisy counts is, with probability 1 less its part of the error, within a limit of the exact
one, which is the quantile of the sum of m discrete Laplace variables; all sums that a metric reads
keep their limits together (Bonferroni). Whatever the exact counts within these limits are, the
exact intervals of ``evenhand.fairness.intervals`` are widened to hold for them. No step is an
approximation, so an interval covers with at least its level at every size of table and noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenhand import _checks
from evenhand.fairness.intervals import CountNoise, Estimate, estimate_gap, estimate_rate
from evenhand.fairness.metrics import LEVEL
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import ErrorParity, known_notions
from evenhand.fairness.rates import Rates
from evenhand.typing import ArrayLike, IntArray

_LOST = 1e-12  # of probability, to rounding in the transform


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts:
    """Counts of decisions per group, each with discrete Laplace noise of its own.

    Examples
    --------
    >>> noisy = NoisyCounts(counts=[[602, 397], [705, 298]], scale=1.0, n_summed=(1, 1))
    >>> from evenhand.fairness import DemographicParity
    >>> print(noisy.gap(DemographicParity(margin=0, reference="pairwise")))
    demographic_parity_pairwise: 0.1003, 95% interval [0.0302, 0.1698], n = 2002
    """

    counts: IntArray
    """Shape (n_groups, n_classes, n_classes): group, true class, predicted class; or (n_groups,
    n_classes) where truth is not known. May be negative.
    """
    scale: float
    """Of the noise on each released cell, in records: ``P(k)`` is proportional to ``exp(-|k| /
    scale)``.
    """
    n_summed: Sequence[int]
    """Released cells that each count adds up: 1, or more where groups were joined. Shape
    (n_groups,).
    """
    whole: bool = True
    """Whether the noise was whole numbers; continuous noise of this scale, rounded, widens the
    intervals by two records per cell.
    """

    def __post_init__(self) -> None:
        table = np.array(self.counts)
        if not np.issubdtype(table.dtype, np.integer) or table.ndim not in (2, 3):
            raise TypeError(
                f"counts must be whole numbers by group, true and predicted class, got dtype "
                f"{table.dtype} and shape {table.shape}."
            )
        table.setflags(write=False)
        object.__setattr__(self, "counts", table)
        _checks.positive("scale", self.scale)
        _checks.same_length(counts=table, n_summed=self.n_summed)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[1])

    @property
    def knows_truth(self) -> bool:
        """Whether true classes were counted."""
        return self.counts.ndim == 3

    def joined(self, codes: ArrayLike, n_groups: int) -> NoisyCounts:
        """Return the counts of coarser groups: ``codes`` (n_groups of this table,) names them."""
        place = _checks.codes("codes", codes, n_groups)
        counts = np.zeros((n_groups, *self.counts.shape[1:]), dtype=np.int64)
        summed = np.zeros(n_groups, dtype=np.int64)
        np.add.at(counts, place, self.counts)
        np.add.at(summed, place, np.asarray(self.n_summed))
        return NoisyCounts(
            counts=counts, scale=self.scale, n_summed=tuple(summed.tolist()), whole=self.whole
        )

    def limit(self, n_cells: int, error: float) -> float:
        """Return how far a sum of noisy cells may be off, but with probability ``error``."""
        limit = sum_limit(self.scale, n_cells, error)
        return limit if self.whole else limit + 2 * n_cells

    def gap(self, notion: RateNotion, *, level: float = LEVEL) -> Estimate:
        """Return the gap that ``notion`` bounds, as ``evenhand.fairness.metrics.gap_of``."""
        rates = rates_of(notion, self.n_classes)
        if rates.reads_labels and not self.knows_truth:
            raise ValueError(f"{notion.key} is about true classes, and none were counted.")
        successes, trials, noise = self._counted(rates)
        return estimate_gap(
            successes,
            trials,
            reference=notion.reference,
            name=f"{notion.key}_{notion.reference}",
            definition=notion.definition,
            level=level,
            n=self._n(),
            noise=noise,
        )

    def gaps(self, reference: str, *, level: float = LEVEL) -> tuple[Estimate, ...]:
        """Return the gap of every notion of decisions that the counts allow."""
        found = []
        for kind in known_notions().values():
            notion = kind.of(margin=0.0, reference=reference)
            if self.knows_truth or not rates_of(notion, self.n_classes).reads_labels:
                found.append(self.gap(notion, level=level))
        return tuple(found)

    def selection_rates(self, positive: int, *, level: float = LEVEL) -> tuple[Estimate, ...]:
        """How often each group is predicted ``positive``: one estimate per group."""
        given = self.counts.sum(axis=1) if self.knows_truth else self.counts
        true_classes = self.n_classes if self.knows_truth else 1
        return tuple(
            estimate_rate(
                int(row[positive]),
                int(row.sum()),
                name="selection_rate",
                definition=f"P(Yhat={positive} | Z=z); in [0, 1]",
                level=level,
                noise=CountNoise(
                    successes=np.array([[n * true_classes]]),
                    failures=np.array([[n * true_classes * (self.n_classes - 1)]]),
                    limit=self.limit,
                ),
            )
            for row, n in zip(given, self.n_summed, strict=True)
        )

    def error_rates(self, *, level: float = LEVEL) -> tuple[Estimate, ...]:
        """``P(Yhat != Y | Z = z)`` of each group; of one group that all were joined to, overall."""
        successes, trials, noise = self._counted(rates_of(ErrorParity(margin=0.0), self.n_classes))
        return tuple(
            estimate_rate(
                int(successes[z, 0]),
                int(trials[z, 0]),
                name="error_rate",
                definition="P(Yhat!=Y | Z=z) among the answered; in [0, 1], best 0",
                level=level,
                noise=CountNoise(
                    successes=noise.successes[z : z + 1],
                    failures=noise.failures[z : z + 1],
                    limit=self.limit,
                ),
            )
            for z in range(len(self.counts))
        )

    def _counted(self, rates: Rates) -> tuple[IntArray, IntArray, CountNoise]:
        """Return successes and trials, and how many released cells each of them adds up."""
        successes, trials = rates.counted(self.counts)
        ones = np.ones((1, *self.counts.shape[1:]), dtype=np.int64)
        hits, among = rates.counted(ones)
        n = np.asarray(self.n_summed)[:, None]
        noise = CountNoise(successes=n * hits, failures=n * (among - hits), limit=self.limit)
        return successes, trials, noise

    def _n(self) -> int:
        return max(0, int(self.counts.sum()))


@lru_cache(maxsize=4096)
def sum_limit(scale: float, n_cells: int, error: float) -> float:
    """Return the least t with ``P(|sum of n_cells discrete Laplace variables| > t) <= error``.

    The distribution of the sum is the inverse transform of a power of the characteristic function
    of one variable, exact but for rounding, which is added to the error.

    Examples
    --------
    >>> sum_limit(1.0, 1, 0.05), sum_limit(1.0, 4, 0.05), sum_limit(10.0, 1, 0.05)
    (3.0, 5.0, 30.0)
    """
    _checks.open_unit("error", error)
    if n_cells == 0:
        return 0.0
    if error <= 2 * _LOST:
        raise ValueError(f"error must be above {2 * _LOST}, got error={error!r}.")
    q = math.exp(-1.0 / scale)
    width = 2 ** math.ceil(math.log2(8 * (scale * (40 + 3 * n_cells) + 8)))
    angles = 2 * math.pi * np.arange(width // 2 + 1) / width
    one = (1 - q) ** 2 / (1 - 2 * q * np.cos(angles) + q * q)
    chances = np.fft.irfft(one**n_cells, width)[: width // 2]
    beyond = 2 * np.cumsum(np.maximum(chances, 0.0)[::-1])[::-1]  # P(|sum| >= k) for k >= 1
    within = np.flatnonzero(beyond[1:] <= error - _LOST)
    return float(within[0])  # P(|sum| >= t + 1)

"""Measure a model on private rows and release the measurement with noise, through a ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand._words import REFERENCES
from evenhand.fairness.intervals import Estimate, clopper_pearson
from evenhand.privacy import Ledger, NoisyHistogram
from evenhand.typing import REJECTED, Array, ArrayLike, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMeasurement:
    """A noisy confusion table per group, and what it says. Everything here is public."""

    table: FloatArray
    """Noisy counts of rows by group, true class and prediction; the last column counts rejected
    rows. Cells may be negative. Shape (n_groups, n_classes, n_classes + 1).
    """
    sigma: float
    """Standard deviation of the noise on each cell, in rows."""
    error: Estimate
    gap: Estimate
    coverage: Estimate
    """``error``, ``gap`` and ``coverage``: as in ``evenhand.fairness``: the gap is of demographic
    parity among the answered. Each interval allows for the sample and for the noise.
    """
    selection: tuple[tuple[Estimate, ...], ...]
    """Per group and class, how often the class is predicted among the answered."""


def measure_with_noise(
    ledger: Ledger,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    groups: ArrayLike,
    *,
    n_classes: int,
    n_groups: int,
    sigma: float,
    reference: str = "rest",
    level: float = 0.95,
    purpose: str = "test metrics",
) -> NoisyMeasurement:
    """Release one noisy confusion table per group and compute the metrics from it alone.

    Parameters
    ----------
    ledger : Ledger
        The account of the *holdout's* people, charged before the noise is drawn. Each model that is
        measured is a release of its own.
    y_true, y_pred, groups : array-like of int, shape (n,)
        Codes of the private rows; ``REJECTED`` stands for no prediction.
    n_classes, n_groups : int
        Public: never counted from these rows.
    sigma : float
        Standard deviation of the noise on each cell, in rows.
    reference : {"rest", "pairwise", "overall"}
        What a group's rate is compared with.
    level : float
        Probability, at least, that an interval covers; each by itself.
    purpose : str
        What stands in the ledger.

    Privacy
    -------
    Neighbors : replace one row. The number of rows is public, and a row is one unit: of one person,
        say, if the ledger protects persons.
    Sensitivity : one cell falls by 1 and one rises by 1: sqrt(2).
    Cost : ``mu**2 = 2 / sigma**2``, as ``NoisyHistogram``. All metrics are post-processing.

    Notes
    -----
    Half of an interval's error is spent on the noise: the sum of m cells is within
    ``sigma * sqrt(2 m log(2 / e))`` of the truth but with probability e, for Gaussian noise on the
    reals and on the integers alike. The other half is the exact interval of each rate, widest over
    the counts that are possible; several rates share both by Bonferroni.
    """
    if ledger.neighbors != "replace one":
        raise ValueError(
            f"The table is priced for replacing one row, and this ledger's neighbors are "
            f"{ledger.neighbors!r}. Open a ledger with neighbors='replace one'."
        )
    _checks.one_of("reference", reference, REFERENCES)
    _checks.open_unit("level", level)
    n_classes = _checks.at_least("n_classes", n_classes, 2)
    n_groups = _checks.at_least("n_groups", n_groups, 1)
    truth = _checks.codes("y_true", y_true, n_classes)
    group = _checks.codes("groups", groups, n_groups)
    predicted: Array = np.asarray(y_pred)
    _checks.same_length(y_true=truth, y_pred=predicted, groups=group)
    said = np.full(len(truth), n_classes, dtype=np.int64)
    answered = predicted != REJECTED
    said[answered] = _checks.codes("y_pred", predicted[answered], n_classes)
    shape = (n_groups, n_classes, n_classes + 1)
    cells = np.ravel_multi_index((group, truth, said), shape)
    counts: IntArray = np.bincount(cells, minlength=math.prod(shape)).astype(np.int64)
    mechanism = NoisyHistogram(sigma=sigma, n_classes=math.prod(shape))
    noisy = ledger.release(mechanism, counts[None, :], purpose=purpose)[0].reshape(shape)
    return _measured(noisy, mechanism.sigma, len(truth), reference, level)


def _measured(
    table: FloatArray, sigma: float, n: int, reference: str, level: float
) -> NoisyMeasurement:
    n_groups, n_classes, _ = table.shape
    cells: BoolArray = np.zeros(table.shape, dtype=np.bool_)
    answered, correct = cells.copy(), cells.copy()
    answered[:, :, :-1] = True
    correct[:, range(n_classes), range(n_classes)] = True
    rates = _Rates(table, sigma, n)

    def of(group: int | None, predicted: int, error: float) -> tuple[float, float, float]:
        among, hit = answered.copy(), cells.copy()
        hit[:, :, predicted] = True
        if group is not None:
            among[np.arange(n_groups) != group] = hit[np.arange(n_groups) != group] = False
        return rates.of(hit, among & ~hit, error)

    selection = tuple(
        tuple(
            _estimate("selection_rate", f"P(Yhat={k} | Z=z)", of(z, k, 1 - level), level, n)
            for k in range(n_classes)
        )
        for z in range(n_groups)
    )
    return NoisyMeasurement(
        table=table,
        sigma=sigma,
        error=_estimate(
            "error_rate",
            "P(Yhat!=Y) among the answered",
            rates.of(answered & ~correct, correct, 1 - level),
            level,
            n,
        ),
        gap=_estimate(
            f"demographic_parity_{reference}",
            "largest difference of P(Yhat=k | Z=z), among the answered",
            _gap(rates, answered, n_groups, n_classes, reference, 1 - level),
            level,
            n,
        ),
        coverage=_estimate(
            "coverage", "P(answered)", rates.of(answered, ~answered, 1 - level), level, n
        ),
        selection=selection,
    )


class _Rates:
    """Rates of a noisy table with intervals that allow for the sample and for the noise."""

    def __init__(self, table: FloatArray, sigma: float, n: int) -> None:
        self._table, self._sigma, self._n = table, sigma, n

    def of(self, hit: BoolArray, miss: BoolArray, error: float) -> tuple[float, float, float]:
        """Return the share of ``hit`` in both, and its interval."""
        x, low_x, high_x = self._count(hit, error / 4)
        y, low_y, high_y = self._count(miss, error / 4)
        # The interval rises with the hits and falls with the misses.
        low, _ = clopper_pearson([low_x], [low_x + high_y], error=error / 2)
        _, high = clopper_pearson([high_x], [high_x + low_y], error=error / 2)
        value = x / (x + y) if x + y > 0 else math.nan
        return value, float(low[0]), float(high[0])

    def _count(self, cells: BoolArray, error: float) -> tuple[float, int, int]:
        noisy = float(self._table[cells].sum())
        width = self._sigma * math.sqrt(2 * int(cells.sum()) * math.log(2 / error))
        low = min(max(0, math.ceil(noisy - width)), self._n)
        high = max(min(self._n, math.floor(noisy + width)), low)
        return min(max(noisy, 0.0), float(self._n)), low, high


def _gap(
    rates: _Rates, answered: BoolArray, n_groups: int, n_classes: int, reference: str, error: float
) -> tuple[float, float, float]:
    """Return the largest difference and its range over the intervals of all rates compared."""
    if n_groups < 2:
        return math.nan, 0.0, 1.0
    pairs = [
        (_only([z], n_groups), _only(others, n_groups))
        for z in range(n_groups)
        for others in _compared(z, n_groups, reference)
    ]
    share = error / (2 * len(pairs) * n_classes)
    value, low, high = math.nan, 0.0, 0.0
    for own, other in pairs:
        for k in range(n_classes):
            hit = np.zeros_like(answered)
            hit[:, :, k] = True
            (a, low_a, high_a), (b, low_b, high_b) = (
                rates.of(hit & rows, answered & ~hit & rows, share) for rows in (own, other)
            )
            value = float(np.fmax(value, abs(a - b)))
            low = max(low, low_a - high_b, low_b - high_a)
            high = max(high, high_a - low_b, high_b - low_a)
    return value, low, high


def _compared(z: int, n_groups: int, reference: str) -> list[Sequence[int]]:
    others = [other for other in range(n_groups) if other != z]
    if reference == "pairwise":
        return [[other] for other in others if other > z]
    return [others] if reference == "rest" else [range(n_groups)]


def _only(rows: Sequence[int], n_groups: int) -> BoolArray:
    """Return which groups are meant, to be combined with cells of a table."""
    mask: BoolArray = np.isin(np.arange(n_groups), list(rows))[:, None, None]
    return mask


def _estimate(
    name: str, definition: str, found: tuple[float, float, float], level: float, n: int
) -> Estimate:
    value, low, high = found
    # A ratio of noisy counts may leave the interval where groups are tiny: report its nearest end.
    inside = value if math.isnan(value) else min(max(value, low), high)
    return Estimate(
        name=name,
        definition=f"{definition}; in [0, 1]; from noisy counts",
        value=inside,
        low=low,
        high=high,
        level=level,
        n=n,
    )

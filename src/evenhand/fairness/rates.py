"""The rates that a notion of fairness compares between groups, read from a table of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Rates:
    """One or more kinds of rate, each among the records of some true classes.

    With the joint table ``J_z(k, k')`` (records of group z, true class k, predicted class k'), rate
    r of group z is ``sum of J_z over hits[r] / sum of J_z over the rows among[r]``. What a rate is
    taken among never depends on the predictions, so every rate is *linear* in them: a student can
    be held to it, and it is the mean over the rows of a true class in ``among[r]`` of

        h_r(p, k) = sum of p(k') over the k' with (k, k') in hits[r],

    p being the probabilities (of a decision: 0 and 1) that a row is given.
    """

    among: BoolArray
    """True classes that a rate is taken among. Shape (n_rates, n_classes)."""
    hits: BoolArray
    """Pairs (true, predicted) that count; only within ``among``. Shape (n_rates, n_classes,
    n_classes).
    """

    def __post_init__(self) -> None:
        if self.hits.shape != (*self.among.shape, self.among.shape[1]):
            raise ValueError(
                f"hits must have shape (n_rates, n_classes, n_classes) for among "
                f"{self.among.shape}, got {self.hits.shape}."
            )
        if (self.hits & ~self.among[:, :, None]).any():
            raise ValueError("hits must lie within among: a rate is at most 1.")

    @classmethod
    def of(
        cls, n_classes: int, pairs: Sequence[tuple[Sequence[int], Sequence[tuple[int, int]]]]
    ) -> Rates:
        """Return one rate for each (true classes, pairs (true, predicted) that count).

        Examples
        --------
        How often a class above the true one is predicted, among all but the highest:

        >>> Rates.of(3, [((0, 1), [(0, 1), (0, 2), (1, 2)])]).counted([[[5, 2, 1], [0, 6, 2],
        ...     [1, 1, 9]]])
        (array([[5]]), array([[16]]))
        """
        among = np.zeros((len(pairs), n_classes), dtype=np.bool_)
        hits = np.zeros((len(pairs), n_classes, n_classes), dtype=np.bool_)
        for r, (classes, counted) in enumerate(pairs):
            among[r, list(classes)] = True
            for true, predicted in counted:
                hits[r, true, predicted] = True
        return cls(among=among, hits=hits)

    @property
    def n_rates(self) -> int:
        """Number of kinds of rate."""
        return len(self.among)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.among.shape[1])

    @cached_property
    def predicted(self) -> FloatArray | None:
        """Predicted classes that count for each rate, (n_rates, n_classes), in 0 and 1.

        None where it depends on the true class which predictions count.
        """
        classes: BoolArray = np.asarray(self.hits.any(axis=1))
        if (self.hits != (self.among[:, :, None] & classes[:, None, :])).any():
            return None
        return classes.astype(np.float64)

    @property
    def reads_labels(self) -> bool:
        """Whether a rate depends on true classes."""
        return not self.among.all() or self.predicted is None

    def counted(self, counts: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return successes and trials (n_groups, n_rates) of a table of whole numbers.

        The table has shape (n_groups, n_classes, n_classes): group, true class, predicted class.
        Rates that read no labels can be taken from (n_groups, n_classes) as well.
        """
        table = np.asarray(counts)
        k = self.n_classes
        if not np.issubdtype(table.dtype, np.integer):
            raise TypeError(f"counts must hold whole numbers, got dtype {table.dtype}.")
        if table.ndim == 2 and table.shape[1] == k and not self.reads_labels:
            assert self.predicted is not None
            successes: IntArray = table @ self.predicted.T.astype(np.int64)
            totals = table.sum(axis=1, keepdims=True)
            return successes, np.repeat(totals, self.n_rates, axis=1)
        if table.ndim != 3 or table.shape[1:] != (k, k):
            raise ValueError(
                f"counts must have shape (n_groups, {k}, {k}): groups, true classes, predicted "
                f"classes; got {table.shape}."
            )
        successes = np.einsum("zkj,rkj->zr", table, self.hits.astype(np.int64))
        trials = np.einsum("zkj,rk->zr", table, self.among.astype(np.int64))
        return successes, trials

    @cached_property
    def strata(self) -> IntArray:
        """Among whom each rate is taken, (n_rates,): rates of the same true classes share a number.

        Raises
        ------
        ValueError
            If two rates are taken among different true classes of which they share some: then no
            row is of one stratum.
        """
        found: dict[bytes, int] = {}
        strata = [found.setdefault(row.tobytes(), len(found)) for row in self.among]
        if (self.among[np.unique(strata, return_index=True)[1]].sum(axis=0) > 1).any():
            raise ValueError(
                "The rates are taken among true classes that overlap, so rows cannot be told apart "
                "by the rate they count for. Use FairPATEClassifier, which takes any notion, or a "
                "notion of one class (positive=)."
            )
        return np.array(strata, dtype=np.int64)

    def stratum_of(self, labels: IntArray) -> IntArray:
        """Return the stratum of rows by their true class, (n,); -1 for rows that no rate counts."""
        of_class = np.full(self.n_classes, -1)
        for stratum, among in zip(self.strata, self.among, strict=True):
            of_class[among] = stratum
        out: IntArray = of_class[labels]
        return out

    # ---- as functions h of probabilities ------------------------------------------------------

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return h (..., n, n_rates) for probabilities and one-hot truth (..., n, n_classes).

        Outside of the true classes that a rate is taken among, h means nothing.
        """
        if self.predicted is not None:
            out: FloatArray = probabilities @ self.predicted.T
            return out
        constant, weights = self._affine
        out = truth @ constant.T
        for r, weight in enumerate(weights):
            out[..., r] += ((truth @ weight) * probabilities).sum(axis=-1)
        return out

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient of ``sum(pull * values)`` in the probabilities: h is linear."""
        if self.predicted is not None:
            out: FloatArray = pull @ self.predicted
            return out
        out = np.zeros_like(probabilities)
        for r, weight in enumerate(self._affine[1]):
            out += pull[..., r, None] * (truth @ weight)
        return out

    def counts(self, truth: FloatArray) -> FloatArray:
        """Return how much each row counts for each rate, (..., n, n_rates)."""
        out: FloatArray = truth @ self.among.T.astype(np.float64)
        out[..., self.among.all(axis=1)] = 1.0  # whatever is known of the truth
        return out

    @cached_property
    def _affine(self) -> tuple[FloatArray, FloatArray]:
        """By rate and true class: a constant, and weights of the probabilities.

        Of the pairs that count and those that do not, the fewer are summed.
        """
        few = 2 * self.hits.sum(axis=2) < self.n_classes
        rest = np.where(self.among[:, :, None], ~self.hits, False) * -1.0
        weights = np.where(few[:, :, None], self.hits * 1.0, rest)
        return np.where(few, 0.0, self.among * 1.0), weights


def exact_rate_gap(successes: IntArray, trials: IntArray, reference: str) -> Fraction:
    """Largest difference of a rate (a column) between groups that have trials, as a fraction.

    The definition itself, in the open; 0 where no rate has two groups to compare.
    """
    worst = Fraction(0)
    for hits, among in zip(successes.T.tolist(), trials.T.tolist(), strict=True):
        rows = [(hit, n) for hit, n in zip(hits, among, strict=True) if n]
        if len(rows) < 2:
            continue
        all_hits, all_n = sum(hit for hit, _ in rows), sum(n for _, n in rows)
        for i, (hit, n) in enumerate(rows):
            if reference == "pairwise":
                others = rows[:i]
            elif reference == "rest":
                others = [(all_hits - hit, all_n - n)]
            else:
                others = [(all_hits, all_n)]
            for other_hit, other_n in others:
                worst = max(worst, abs(Fraction(hit, n) - Fraction(other_hit, other_n)))
    return worst

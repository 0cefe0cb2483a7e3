"""What many records of one unit do to an interval: they hang together, so they tell less.

The variance of a rate is that of independent *units*, by linearisation: each gives the successes
that it has beyond the rate of all, ``e_u = s_u - p t_u``, and ``u / (u - 1) * sum e_u**2 / t**2``
is the variance of ``p = sum s_u / sum t_u`` over u units (Cochran 1977, Section 6.3). Divided by
the variance of as many independent records it is the design effect, and the exact interval is taken
of counts that are divided by it (Korn and Graubard 1998).

With few units, or some that have most records, an estimated effect is often far too small: of 100
units of which ten have 20 records, such an interval missed in 40 % of samples. So two standard
errors of the largest effect are added, up to that effect itself: of units whose records always
agree, ``k = sum t_u**2 / t`` (Kish 1965), of which ``sum(t_u**2)**2 / sum(t_u**4)`` units tell.
That is a rule and no proof: it is the one step of an interval that is not exact. Measured, a 95 %
interval missed in at most 4.3 % of samples, for 5 to 300 units of 1 to 20 records, rates of .05 to
.5, and records that agree never to always (``tests/fairness/test_clusters.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Clusters:
    """Counts of successes and trials of each unit in each group in which it has records."""

    unit: IntArray
    group: IntArray
    """``unit`` and ``group``: codes, shape (n,); no pair stands twice."""
    successes: IntArray
    trials: IntArray
    """``successes`` and ``trials``: shape (n, n_rates)."""
    n_groups: int

    @classmethod
    def of_rows(cls, units: IntArray, successes: BoolArray, trials: BoolArray) -> Clusters:
        """Count rows (n,) by their units, everybody in one group."""
        unit, place = np.unique(units, return_inverse=True)
        counts = (np.bincount(place, rows, len(unit)) for rows in (successes & trials, trials))
        s, n = (count.astype(np.int64)[:, None] for count in counts)
        group = np.zeros(len(unit), dtype=np.int64)
        return cls(unit=unit, group=group, successes=s, trials=n, n_groups=1)

    @property
    def n_units(self) -> int:
        """Units with a record that some rate is taken among."""
        return len(np.unique(self.unit[self._counts]))

    @property
    def overlap(self) -> bool:
        """Whether a unit has records in two groups, whose rates so hang together."""
        return self.n_units < int(self._counts.sum())

    @property
    def _counts(self) -> BoolArray:
        return np.asarray((self.trials > 0).any(axis=1))

    def of_groups(self) -> FloatArray:
        """Return the design effects on the rates of the groups, (n_groups, n_rates), at least 1."""
        return np.array([self._effect(self.group == z) for z in range(self.n_groups)])

    def of_rest(self) -> FloatArray:
        """Return the design effects on the rates of all other groups, (n_groups, n_rates)."""
        return np.array([self._effect(self.group != z) for z in range(self.n_groups)])

    def of_all(self) -> FloatArray:
        """Return the design effects on the rates of everybody, (1, n_rates)."""
        return self._effect(np.ones(len(self.group), dtype=np.bool_))[None]

    def _effect(self, chosen: BoolArray) -> FloatArray:
        """Return the effect on each rate among some pairs, those of one unit added up."""
        _, place = np.unique(self.unit[chosen], return_inverse=True)
        s, n = np.zeros((2, place.max(initial=-1) + 1, self.trials.shape[1]))
        np.add.at(s, place, self.successes[chosen])
        np.add.at(n, place, self.trials[chosen])
        n_units, total = (n > 0).sum(axis=0), np.maximum(n.sum(axis=0), 1.0)
        p, squares = s.sum(axis=0) / total, (n**2).sum(axis=0)
        of_units = ((s - p * n) ** 2).sum(axis=0) * n_units / np.maximum(n_units - 1, 1)
        of_records, most = p * (1 - p) * total, np.maximum(squares / total, 1.0)
        # Where all agree, or one unit is all there is, nothing can be estimated.
        told = (of_records > 0) & (n_units > 1)
        found = np.where(told, of_units / np.where(told, of_records, 1.0), most)
        telling = squares**2 / np.maximum((n**4).sum(axis=0), 1.0)
        unsure = 2 * (most - 1) * np.sqrt(2 / np.maximum(telling - 1, 1e-9))
        effect: FloatArray = np.maximum(found, np.minimum(most, found + unsure))
        return np.where(n.max(axis=0, initial=0) > 1, np.maximum(effect, 1.0), 1.0)

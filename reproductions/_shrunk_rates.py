"""Rates of small groups, shrunk towards those of all groups by the noise of their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.generators.tables.even_rates import Trial, evened

HIDDEN = 0.25
"""Deviation of a rate by noise alone, above which it is not looked at."""


def shrunk(generator: Any, fairness: str, *, random_state: int) -> Any:
    """Return what ``even_rates`` does, by rates that were shrunk."""
    trial = Trial.of(generator, np.random.default_rng(random_state))
    return evened(generator, ShrunkTrial.of_trial(trial, generator), fairness, 1.0, 0.08)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShrunkTrial(Trial):
    """Rates of a group that are nearer to those of all, the less they stand above their noise.

    Parameters
    ----------
    shares : ndarray of float64, shape (n_groups,)
        Of the groups, as learnt.
    own : ndarray of float64, shape (3, n_groups)
        ``t / (t + v)``: how much of a rate is the group's own. The variance ``v`` of a rate of n
        noisy records is ``(sigma / n)^2`` for their noise and at most ``1 / (4 n)`` for their draw,
        and ``t``, between groups, is by the method of moments (DerSimonian and Laird 1986). 0 where
        noise alone has a deviation above ``HIDDEN``. All of it is of released numbers.
    """

    shares: Any
    own: Any

    @classmethod
    def of_trial(cls, trial: Trial, generator: Any) -> ShrunkTrial:
        """Weigh the rates of a trial by what was released."""
        known = generator.conditions_
        counts = np.zeros((2, known.n_groups))
        np.add.at(counts, (known.labels(), known.groups()), generator.counts_)
        sizes = np.maximum([counts.sum(axis=0), counts[1], counts[0]], 1.0)
        noise = np.array([2.0**0.5, 1.0, 1.0])[:, None] * generator.counts_sigma_ / sizes
        variance = noise**2 + 0.25 / sizes
        rates = np.array([trial.rates(group, 0.0) for group in range(known.n_groups)]).T
        weights = 1.0 / variance
        total = weights.sum(axis=1)
        apart = rates - ((weights * rates).sum(axis=1) / total)[:, None]
        spread = (weights * apart**2).sum(axis=1) - (known.n_groups - 1)
        between = np.maximum(spread / (total - (weights**2).sum(axis=1) / total), 0.0)[:, None]
        learnt = np.bincount(known.groups(), generator.shares_.to_numpy(dtype=np.float64))
        hidden = (noise > HIDDEN).any(axis=0)
        return cls(
            scores=trial.scores,
            truth=trial.truth,
            groups=trial.groups,
            n_groups=trial.n_groups,
            shares=np.maximum(learnt, 1e-12),
            own=np.where(hidden, 0.0, between / (between + variance)),
        )

    def rates(self, group: int, by: float) -> tuple[float, float, float]:
        """Mix the rates of the group with those of all."""
        own, weights = self.own[:, group], self.shares[self.groups]
        said, label = self.scores + by > 0, self.truth == 1
        every = np.ones_like(label)
        of_all = [np.average(said[at], weights=weights[at]) for at in (every, label, ~label)]
        mixed = own * np.array(super().rates(group, by)) + (1.0 - own) * np.array(of_all)
        return float(mixed[0]), float(mixed[1]), float(mixed[2])

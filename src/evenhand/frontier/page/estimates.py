"""What is drawn: the measurements of a run, or a setting's means over its seeds, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t

from evenhand.frontier.pareto import by_setting, front
from evenhand.frontier.run import Run
from evenhand.typing import BoolArray, FloatArray, IntArray

LEVEL = 0.95
MEASURED = ("gap", "error", "coverage", "disparity")
LARGEST = {"disparity": 2**0.5}
"""Ends of ranges that are not 1."""


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """One row per point; each measurement with the ends of its 95 % interval."""

    epsilon: FloatArray
    """Of the claim, infinite where there is none; of a setting the largest over its seeds. Shape
    (n,).
    """
    value: dict[str, FloatArray]
    low: dict[str, FloatArray]
    high: dict[str, FloatArray]
    """``value``, ``low`` and ``high``: keyed by "gap", "error", "coverage" and "disparity". NaN
    where a seed of the point has none. Shape (n,).
    """
    n_seeds: IntArray
    """Shape (n,)."""

    @property
    def n(self) -> int:
        """How many points there are."""
        return len(self.epsilon)

    def of(self, objective: str) -> FloatArray:
        """Return epsilon or one of ``MEASURED``, shape (n,)."""
        return self.epsilon if objective == "epsilon" else self.value[objective]


def of_runs(runs: Sequence[Run]) -> Estimates:
    """Return a point per run: its interval is that of its test rows, and coverage has none."""
    column = {name: np.array([getattr(run, name) for run in runs], float) for name in MEASURED}
    ends = {
        "gap": np.array([run.gap_interval for run in runs], float).reshape(-1, 2),
        "error": np.array([run.error_interval for run in runs], float).reshape(-1, 2),
        "coverage": np.column_stack([column["coverage"]] * 2),
        "disparity": np.full((len(runs), 2), np.nan),
    }
    return Estimates(
        epsilon=np.array([run.epsilon for run in runs], float),
        value=column,
        low={name: ends[name][:, 0] for name in MEASURED},
        high={name: ends[name][:, 1] for name in MEASURED},
        n_seeds=np.ones(len(runs), dtype=np.int64),
    )


def of_settings(single: Estimates, owner: IntArray) -> Estimates:
    """Return a point per setting: mean over its seeds, and the interval of that mean.

    Parameters
    ----------
    single : Estimates
        One per run.
    owner : ndarray of int, shape (n_runs,)
        Number of the setting that each run repeats.

    Notes
    -----
    With two seeds or more the interval is Student's, for the mean over seeds, cut to its range. It
    tells how far the luck of a split and of training carries. With one seed there is nothing to
    compare, and the interval is that of the run's test rows.
    """
    n = np.bincount(owner)
    epsilon = np.zeros(len(n))
    np.maximum.at(epsilon, owner, single.epsilon)
    alone = n == 1
    half = np.full(len(n), np.nan)
    half[~alone] = student_t.ppf(0.5 + LEVEL / 2, n[~alone] - 1) / np.sqrt(n[~alone])
    value, low, high = {}, {}, {}
    for name in MEASURED:
        mean = np.bincount(owner, single.value[name]) / n
        squares = np.bincount(owner, (single.value[name] - mean[owner]) ** 2)
        reach = half * np.sqrt(squares / np.maximum(n - 1, 1))
        value[name] = mean
        low[name] = np.where(alone, _only(single.low[name], owner, n), np.maximum(mean - reach, 0))
        most = np.minimum(mean + reach, LARGEST.get(name, 1.0))
        high[name] = np.where(alone, _only(single.high[name], owner, n), most)
    return Estimates(epsilon=epsilon, value=value, low=low, high=high, n_seeds=n)


def setting_numbers(runs: Sequence[Run]) -> IntArray:
    """Return for each run the number of its setting, in the order of first appearance."""
    out = np.empty(len(runs), dtype=np.int64)
    for number, rows in enumerate(by_setting(runs).values()):
        out[rows] = number
    return out


def on_front(found: Estimates, kinds: IntArray) -> BoolArray:
    """Return which points no other of their kind beats, in all four objectives at once.

    Runs of two kinds (another data set, a gap of another notion) are not compared. What is not
    defined counts as the worst, so it can be beaten and beats nothing: whoever meets limits that
    do not ask about it is matched by somebody on the front.
    """
    table = np.column_stack(
        [
            found.epsilon,
            np.nan_to_num(found.value["gap"], nan=2.0),
            np.nan_to_num(found.value["error"], nan=2.0),
            np.nan_to_num(found.value["coverage"], nan=-1.0),
        ]
    )
    out = np.zeros(found.n, dtype=np.bool_)
    for kind in np.unique(kinds):
        out[kinds == kind] = front(table[kinds == kind])
    return out


def _only(values: FloatArray, owner: IntArray, n: IntArray) -> FloatArray:
    """Return the value of each setting's last run: of its only one, where it has one."""
    out = np.full(len(n), np.nan)
    out[owner] = values
    return out

"""Whether a method is better than another: paired over seeds, one-sided, at a stated error rate.

Methods are measured on the same splits, so the difference is taken split by split, and Student's t
says whether its mean is surely above 0: if two methods are equal, that is said with a chance of
2.5 % (``RATE``). The rate is about splits of these rows: splits share rows, so it says less about
other rows. "Not surely worse" is no finding; it only leaves the other measure to decide.

A row has its runs, accuracy and violation first, in the order of the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from scipy import stats

RATE: Final = 0.025
"""Chance that a method which is only equal is called better."""


def differences(
    first: Iterable[Mapping[str, Any]],
    second: Iterable[Mapping[str, Any]],
    *over: str,
    of: str | Callable[[Any], float] = "error",
) -> dict[tuple[Any, ...], float]:
    """Return a column (or function) of rows less that of the others, by what a pair shares.

    A row without a value, or without the other of its pair, is left out.
    """
    one, other = (
        {
            tuple(row[name] for name in over): row[of] if isinstance(of, str) else of(row)
            for row in rows
        }
        for rows in (first, second)
    )
    return {
        key: value - other[key]
        for key, value in one.items()
        if value is not None and other.get(key) is not None
    }


def least(first: Sequence[float], second: Sequence[float], rate: float = RATE) -> float:
    """Return the lower end of a one-sided interval of the mean of ``first - second``."""
    apart = np.subtract(first, second)
    n = len(apart)
    return float(apart.mean() - stats.t.ppf(1 - rate, n - 1) * apart.std(ddof=1) / np.sqrt(n))


def higher(first: Sequence[float], second: Sequence[float], rate: float = RATE) -> bool:
    """Whether ``first`` is surely higher than ``second``, pair by pair."""
    return least(first, second, rate) > 0


def measured(row: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return accuracy and violation of every seed."""
    return [run[0] for run in row["repeats"]], [run[1] for run in row["repeats"]]


def more_accurate(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether accuracy is surely higher, and the violation not surely higher."""
    (right, violation), (its_right, its_violation) = measured(row), measured(other)
    return higher(right, its_right) and not higher(violation, its_violation)


def better_trade_off(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether accuracy or violation is surely better, and the other of them not surely worse.

    There are two ways to be better, so each has half of the error rate.
    """
    (right, violation), (its_right, its_violation) = measured(row), measured(other)
    if higher(right, its_right, RATE / 2):
        return not higher(violation, its_violation)
    return higher(its_violation, violation, RATE / 2) and not higher(its_right, right)

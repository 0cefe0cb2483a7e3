"""How evenly the rows of a table are spread over groups, and over labels and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from evenhand.fairness.groups import encode_groups
from evenhand.typing import FloatArray, IntArray

_REPEATS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A number with the bootstrap interval over the rows it was computed from."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Shares of a table."""

    kl: Interval
    """``KL(p(s) || uniform)`` over the groups, in nats; at least 0, best 0."""
    disparity: Interval
    """Distribution disparity, the L2 norm of ``p(s) - uniform``; in [0, 1], best 0."""
    groups: tuple[tuple[str, float], ...]
    """Share of each group."""
    cells: tuple[tuple[str, float], ...]
    """Share of each combination of label and group."""


def kl_to_uniform(shares: FloatArray) -> float:
    """Return ``sum p log(p n)`` in nats.

    Examples
    --------
    >>> round(kl_to_uniform(np.array([0.8, 0.2])), 3)
    0.193
    """
    p = shares[shares > 0]
    return float(max(0.0, (p * np.log(p * len(shares))).sum()))


def distribution_disparity(shares: FloatArray) -> float:
    """Return the L2 distance of the shares from even ones.

    Examples
    --------
    >>> round(distribution_disparity(np.array([0.8, 0.2])), 3)
    0.424
    """
    return float(np.linalg.norm(shares - 1.0 / len(shares)))


def balance_of(
    frame: pd.DataFrame,
    *,
    label: str,
    sensitive: Sequence[str],
    groups: Sequence[str] | None = None,
    random_state: int = 0,
) -> Balance:
    """Measure the shares of a table.

    Parameters
    ----------
    frame : DataFrame
    label, sensitive : str, sequence of str
        Columns.
    groups : sequence of str, optional
        All groups there are, so that one without a row counts; else those that occur.
    random_state : int
        Of the bootstrap.
    """
    columns = frame[list(sensitive)] if len(sensitive) > 1 else frame[sensitive[0]]
    coded = encode_groups(columns, names=None if groups is None else tuple(groups))
    counts = coded.sizes
    rng = np.random.default_rng(random_state)
    drawn = rng.multinomial(counts.sum(), counts / counts.sum(), size=_REPEATS) / counts.sum()
    shares = counts / counts.sum()
    joint = encode_groups(frame[[label, *sensitive]])
    return Balance(
        kl=_interval(kl_to_uniform(shares), [kl_to_uniform(p) for p in drawn]),
        disparity=_interval(
            distribution_disparity(shares), [distribution_disparity(p) for p in drawn]
        ),
        groups=_named(coded.names, counts),
        cells=_named(joint.names, joint.sizes),
    )


def _interval(value: float, drawn: list[float]) -> Interval:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(value=value, low=min(float(low), value), high=max(float(high), value))


def _named(names: Sequence[str], counts: IntArray) -> tuple[tuple[str, float], ...]:
    return tuple(zip(names, (counts / counts.sum()).tolist(), strict=True))

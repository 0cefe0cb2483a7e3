"""Which runs nothing else beats, how much they beat together, and how sure that is.

Every function takes runs or an array of their objectives, one row per run, columns in the order of
``objectives``. Smaller is better, but for coverage. One run dominates another if it is at least as
good in every objective and better in one.

* Ties: runs that are equal in every objective stay on the front together.
* NaN: a run that lacks an objective can be compared with nobody; it is never on a front, and
  dominates no run.
* Infinite epsilon is worse than every number: a run without protection is on the front only if no
  protected run is as good in all the rest. In a hypervolume it counts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import moocore
import numpy as np

from evenhand import _checks
from evenhand.frontier.run import OBJECTIVES, Run
from evenhand.typing import BoolArray, FloatArray, IntArray

Points: TypeAlias = "Sequence[Run] | FloatArray"

REFERENCE: Final[Mapping[str, float]] = MappingProxyType(
    {"epsilon": 10.0, "gap": 1.0, "error": 1.0, "coverage": 0.0}
)
"""The worst point that still counts in a hypervolume. It is public and fixed, and must not be read
off the runs: an epsilon above 10 promises next to nothing, the others are the ends of their range.
"""

IDEAL: Final[Mapping[str, float]] = MappingProxyType(
    {"epsilon": 0.0, "gap": 0.0, "error": 0.0, "coverage": 1.0}
)

_AT_ONCE: Final = 64  # draws that are kept in memory together

Z_95: Final = 1.959963984540054
"""Half width of a 95 % interval, in standard deviations of a Gaussian."""


def front(runs: Points, objectives: Sequence[str] = OBJECTIVES) -> BoolArray:
    """Return which runs are dominated by no other.

    Parameters
    ----------
    runs : sequence of Run, or array of shape (n, n_objectives)
    objectives : sequence of str
        One to four of ``OBJECTIVES``.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> front(np.array([[1.0, 0.2], [3.0, 0.1], [3.0, 0.2], [1.0, 0.2]]), ("epsilon", "error"))
    array([ True,  True, False,  True])
    """
    return front_of(costs_of(runs, objectives))


def hypervolume(
    runs: Points,
    objectives: Sequence[str] = OBJECTIVES,
    reference: Mapping[str, float] = REFERENCE,
) -> float:
    """Return the share of the box from the ideal to the reference that the runs dominate.

    Parameters
    ----------
    runs : sequence of Run, or array of shape (n, n_objectives)
    objectives : sequence of str
        One to four of ``OBJECTIVES``.
    reference : mapping of str to float
        The worst value of each objective that still counts; ``REFERENCE`` if not given. Two
        hypervolumes can be compared only for one reference.

    Returns
    -------
    float
        In [0, 1], best 1: the ideal is epsilon 0, gap 0, error 0, coverage 1.

    Examples
    --------
    >>> hypervolume(np.array([[5.0, 0.2], [1.0, 0.4]]), ("epsilon", "error"))
    0.64
    """
    return volume_of(scaled_to(costs_of(runs, objectives), objectives, reference))


def by_setting(runs: Sequence[Run]) -> dict[tuple[str, str, str, str], list[int]]:
    """Return the rows of each setting, its seeds together, in the order in which they appear."""
    rows: dict[tuple[str, str, str, str], list[int]] = {}
    for i, run in enumerate(runs):
        rows.setdefault(run.setting.without_seed(), []).append(i)
    return rows


def front_probability(
    runs: Sequence[Run],
    objectives: Sequence[str] = OBJECTIVES,
    *,
    n_draws: int = 1000,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the probability that a setting is on the front, given how its runs scatter.

    Parameters
    ----------
    runs : sequence of Run
    objectives : sequence of str
    n_draws : int
        Fronts that are drawn; the probability is known to about ``0.5 / sqrt(n_draws)``.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (n_settings,)
        In the order of ``by_setting``. NaN where a run lacks an objective.

    Notes
    -----
    A setting with several seeds is its mean over them, redrawn by the bootstrap: seeds with
    replacement, deviations widened by ``sqrt(n / (n - 1))``, for the plain bootstrap of n values
    is too narrow by that factor. A setting with one seed has only the intervals of its own test
    rows: error and gap are drawn around their value with the interval's width, other objectives
    stay. Settings are drawn independently, though they share test rows; and two or three seeds
    are few to learn a scatter from. Read the numbers as an order, not to the second digit.
    """
    _checks.at_least("n_draws", n_draws, 1)
    columns = _named(objectives)
    values = _values(runs, columns)
    rows = list(by_setting(runs).values())
    means = np.array([values[own].mean(axis=0) for own in rows]).reshape(-1, len(columns))
    spread = _interval_scales(runs, columns)
    counts = np.zeros(len(rows))
    for start in range(0, n_draws, _AT_ONCE):
        drawn = np.empty((min(_AT_ONCE, n_draws - start), *means.shape))
        for i, own in enumerate(rows):
            n = len(own)
            if n == 1:
                drawn[:, i] = spread[own[0]] * rng.standard_normal(drawn[:, i].shape)
            else:
                again = _deviations(values[own], means[i])[rng.integers(0, n, (len(drawn), n))]
                drawn[:, i] = again.mean(axis=1) * np.sqrt(n / (n - 1))
        for points in _in_range(means + drawn, columns):
            counts += front_of(_signed(points, columns))
    out: FloatArray = np.where(np.isnan(means).any(axis=1), np.nan, counts / n_draws)
    return out


def _named(objectives: Sequence[str]) -> tuple[str, ...]:
    """Return the objectives, known and each once."""
    columns = tuple(objectives)
    for name in columns:
        _checks.one_of("objectives", name, OBJECTIVES)
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(
            f"objectives must name one to four of {', '.join(OBJECTIVES)}, each once, got "
            f"{columns!r}."
        )
    return columns


def _values(runs: Points, columns: Sequence[str]) -> FloatArray:
    """Return the objectives as they are written, shape (n, n_objectives)."""
    if isinstance(runs, np.ndarray):
        values: FloatArray = np.asarray(runs, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(columns):
            raise ValueError(
                f"An array of points needs one column for each of {', '.join(columns)}, got shape "
                f"{values.shape}."
            )
        return values
    rows = [[getattr(run, name) for name in columns] for run in runs]
    return np.array(rows, dtype=np.float64).reshape(-1, len(columns))


def _signed(values: FloatArray, columns: Sequence[str]) -> FloatArray:
    """Turn coverage round, so that smaller is better everywhere."""
    signs = np.array([-1.0 if name == "coverage" else 1.0 for name in columns])
    signed: FloatArray = values * signs
    return signed


def costs_of(runs: Points, objectives: Sequence[str]) -> FloatArray:
    """Return the objectives turned so that smaller is better, shape (n, n_objectives)."""
    columns = _named(objectives)
    return _signed(_values(runs, columns), columns)


def front_of(costs: FloatArray) -> BoolArray:
    """Return which rows no other dominates, where smaller is better."""
    on: BoolArray = np.zeros(len(costs), dtype=np.bool_)
    known = ~np.isnan(costs).any(axis=1)
    if not known.any():
        return on
    # Ranks keep the order and the ties, and make infinity a number like another.
    ranks = np.stack([np.unique(c, return_inverse=True)[1] for c in costs[known].T], axis=1)
    on[known] = moocore.is_nondominated(ranks, keep_weakly=True)
    return on


def scaled_to(
    costs: FloatArray, objectives: Sequence[str], reference: Mapping[str, float]
) -> FloatArray:
    """Return the points of known objectives with the ideal at 0 and the reference at 1."""
    columns = _named(objectives)
    for name in reference:
        _checks.one_of("reference", name, OBJECTIVES)
    missing = [name for name in columns if name not in reference]
    if missing:
        raise ValueError(f"reference lacks {', '.join(missing)}. Say the worst value that counts.")
    for name in columns:
        better = reference[name] < 1 if name == "coverage" else reference[name] > 0
        if not (np.isfinite(reference[name]) and better):
            raise ValueError(
                f"reference must be finite and worse than the ideal {name} of {IDEAL[name]:g}, got "
                f"{name}={reference[name]!r}."
            )
    ideal = _signed(np.array([[IDEAL[name] for name in columns]]), columns)
    worst = _signed(np.array([[float(reference[name]) for name in columns]]), columns)
    known = costs[~np.isnan(costs).any(axis=1)]
    scaled: FloatArray = (known - ideal) / (worst - ideal)
    return scaled[(scaled < 1).all(axis=1)]  # at the reference or beyond, a run adds nothing


def volume_of(scaled: FloatArray) -> float:
    """Return the volume that points in the unit box dominate, up to its corner of ones."""
    if not len(scaled):
        return 0.0
    kept = scaled[front_of(scaled)]  # the front alone has the volume, and is much smaller
    return float(moocore.hypervolume(kept, ref=np.ones(kept.shape[1])))


def _interval_scales(runs: Sequence[Run], columns: Sequence[str]) -> FloatArray:
    """Return the standard deviations of the measured 95 % intervals; 0 where there is none."""
    scales = np.zeros((len(runs), len(columns)))
    for j, name in enumerate(columns):
        if name in ("error", "gap"):
            ends = np.array([getattr(run, f"{name}_interval") for run in runs]).reshape(-1, 2)
            scales[:, j] = np.nan_to_num((ends[:, 1] - ends[:, 0]) / (2 * Z_95))
    return scales


def _deviations(values: FloatArray, mean: FloatArray) -> FloatArray:
    """Return how far each row is from the mean; what is infinite does not scatter."""
    out = np.zeros_like(values)
    known = np.isfinite(mean)
    out[:, known] = values[:, known] - mean[known]
    return out


def _in_range(values: FloatArray, columns: Sequence[str]) -> FloatArray:
    """Move draws back into [0, 1] where a share left it."""
    shares: IntArray = np.flatnonzero([name != "epsilon" for name in columns]).astype(np.int64)
    values[..., shares] = values[..., shares].clip(0.0, 1.0)
    return values

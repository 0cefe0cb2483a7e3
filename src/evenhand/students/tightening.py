"""How far inside the margin thresholds are set, as the rows that set them are a sample."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np
from scipy.stats import norm

from evenhand.students.confident import MarginNotSupported
from evenhand.students.within import Within
from evenhand.typing import BoolArray, FloatArray

_DRAWS: Final = 2000  # of samples: a share of one in six is then known to .008
_HALVINGS: Final = 12


def bounds_inside(
    within: Within,
    decided: FloatArray,
    names: tuple[str, ...],
    *,
    tightening: float,
    certain: FloatArray | None = None,
) -> FloatArray:
    """Return how large each difference of rates may be where thresholds are set; two classes.

    Of two groups all are held to the margin less ``tightening`` standard errors of the widest. Of
    more the widest of several differences is beyond the margin more often than each of them,
    and a small group is known less well than a large one. So each is held to the margin less its
    own error, as many times that in simulated samples the widest is beyond the margin as often as
    a normal variable is above ``tightening``: with 1, one sample in six. Never less than 0.

    Parameters
    ----------
    within : Within
        The margin, on the rows that set the thresholds.
    decided : ndarray of float64, shape (n,)
        Probability of class 1 for each row, by thresholds that are set to the margin itself.
    names : tuple of str
        Of the groups.
    tightening : float
        Standard errors, above 0.
    certain : ndarray of float64, shape (n_groups,), optional
        As in :meth:`Within.standard_error`.

    Returns
    -------
    ndarray of float64, shape (n_differences,)

    Warns
    -----
    MarginNotSupported
        If nothing is left of the margin for two groups; for more, if rates that are equal on these
        rows would be beyond it more often than that. The differences with the largest errors are
        then held to 0, and left out of the simulation.
    """
    margin = float(within.notion.margin)
    samples = _Samples(*within.sampled(decided, certain), margin, 1.0 - norm.cdf(tightening))
    two = within.n_groups <= 2
    known = tightening * samples.errors <= margin if two else samples.known()
    if not known.all():
        _warn(within, names, samples, known)
    if two:
        held = margin - tightening * within.standard_error(decided, certain)
        return np.full(len(known), max(0.0, held))
    inside = samples.times(known, tightening) * samples.errors
    bounds: FloatArray = np.where(known, np.maximum(0.0, margin - inside), 0.0)
    return bounds


class _Samples:
    """Differences of rates in samples of people, of whom the rows at hand are one sample."""

    def __init__(
        self,
        apart: FloatArray,
        weights: FloatArray,
        variance: FloatArray,
        margin: float,
        allowed: float,
    ) -> None:
        self.margin, self.allowed = margin, allowed
        self.variances: FloatArray = weights**2 * variance  # of each difference, by cell
        self.errors: FloatArray = np.sqrt(self.variances.sum(axis=1))
        draws = np.random.default_rng(0).standard_normal((_DRAWS, len(variance)))
        self._moved = draws @ (weights * np.sqrt(variance)).T * np.where(apart < 0, -1.0, 1.0)

    def known(self) -> BoolArray:
        """Return which differences, held to 0, are all within the margin often enough."""
        known = np.ones(len(self.errors), dtype=np.bool_)
        while self._beyond(np.inf, known) > self.allowed:
            known[np.where(known, self.errors, 0.0).argmax()] = False
        return known

    def times(self, known: BoolArray, least: float) -> float:
        """Return by how many of its errors each difference is to be held inside the margin."""
        if self._beyond(least, known) <= self.allowed:
            return least
        low, high = least, float(self.margin / self.errors[known].min())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            enough = self._beyond(middle, known) <= self.allowed
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _beyond(self, times: float, known: BoolArray) -> float:
        """Share of samples in which one is beyond the margin, if each is as wide as it may be."""
        widest = np.maximum(0.0, self.margin - times * self.errors)
        return float((np.abs(widest + self._moved) > self.margin)[:, known].any(axis=1).mean())


def _warn(within: Within, names: tuple[str, ...], samples: _Samples, known: BoolArray) -> None:
    """Name the group that the largest of these errors comes from, the error, and the way out."""
    widest = int(np.where(known, 0.0, samples.errors).argmax())
    of_groups = samples.variances[widest].reshape(within.n_groups, -1).sum(axis=1)
    warnings.warn(
        f"Rates of group {names[int(of_groups.argmax())]!r} are known by so few rows that their "
        f"difference from others has a standard error of {samples.errors[widest]:.3f}, too much to "
        f"tell whether people in general keep the margin of {within.notion.margin:g}: even rates "
        f"that are equal on these rows would be beyond it too often. Give more rows of the group, "
        f"merge it with another one, or widen the margin.",
        MarginNotSupported,
        stacklevel=6,
    )

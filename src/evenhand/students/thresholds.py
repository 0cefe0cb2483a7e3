"""One threshold per group, set exactly on public rows from a model's own scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from evenhand import _checks
from evenhand.fairness import DemographicParity
from evenhand.typing import ArrayLike, FloatArray, IntArray

NEEDS_GROUP: Final = "needs the group of each person at prediction, and treats groups differently"
_FEASIBILITY: Final = 1e-9  # of the solver, in rates
FUZZ: Final = 1e-12
"""Rates that are nearer to each other are equal: less than a row of any table."""


@dataclass(frozen=True, kw_only=True)
class GroupThresholds:
    """The scores from which each group is given class 1, for two classes.

    Parameters
    ----------
    thresholds : tuple of float
        One per group. Above it class 1, below it class 0.
    at_threshold : tuple of float
        Probability of class 1 for a score that equals the threshold, in [0, 1].

    Privacy
    -------
    Free: a released model's scores on public rows, whose groups are public (post-processing).

    Notes
    -----
    ``fit`` finds the decisions with the greatest expected accuracy, *as the model's own
    probabilities see it*, among all decisions whose expected rates on the public rows are within
    the margin. For fixed rates the best decision takes the highest scores of each group, so
    thresholds lose nothing; probabilities at a threshold make every rate attainable. Between two
    groups, and pairwise between any number, what is left is a search in one variable; otherwise a
    linear program.

    The margin is kept on the public rows, in expectation over the draws at the thresholds. On other
    rows it is kept up to sampling error.

    Examples
    --------
    >>> rule = GroupThresholds.fit(
    ...     [0.9, 0.8, 0.7, 0.2, 0.6, 0.4, 0.3, 0.1], [0, 0, 0, 0, 1, 1, 1, 1],
    ...     fairness=DemographicParity(margin=0.25), n_groups=2,
    ... )
    >>> rule.decide([0.65, 0.45], [0, 1], np.random.default_rng(0))
    array([0, 1])
    >>> rule.rates([0.9, 0.8, 0.7, 0.2, 0.6, 0.4, 0.3, 0.1], [0, 0, 0, 0, 1, 1, 1, 1]).tolist()
    [0.75, 0.5]
    """

    thresholds: tuple[float, ...]
    at_threshold: tuple[float, ...]

    def __post_init__(self) -> None:
        _checks.same_length(thresholds=self.thresholds, at_threshold=self.at_threshold)
        for probability in self.at_threshold:
            _checks.closed_unit("at_threshold", probability)

    @classmethod
    def fit(
        cls, scores: ArrayLike, groups: ArrayLike, *, fairness: DemographicParity, n_groups: int
    ) -> GroupThresholds:
        """Set the thresholds.

        Parameters
        ----------
        scores : array-like, shape (n,)
            The model's probability of class 1 for each public row, in [0, 1].
        groups : array-like of int, shape (n,)
            Codes below ``n_groups``.
        fairness : DemographicParity
            The margin, and what a rate is compared with.
        n_groups : int
            Every group needs at least one row.
        """
        p, z = _checked(scores, groups, n_groups)
        sizes = np.bincount(z, minlength=n_groups)
        if not sizes.all():
            raise ValueError(
                f"Group {int(sizes.argmin())} has no public row, so no threshold can be set for "
                f"it. Add public rows of it, or merge it with another group."
            )
        falling = [np.sort(p[z == g])[::-1] for g in range(n_groups)]
        if fairness.reference == "pairwise" or n_groups <= 2:
            # Of two groups every reference compares the one with the other, in its own unit.
            unit = 1.0
            if fairness.reference == "overall" and n_groups == 2:
                unit = sizes.max() / sizes.sum()
            rates = _rates_within(falling, min(1.0, fairness.margin / unit))
        else:
            rates = _rates_by_program(p, z, sizes, fairness)
        cuts = [_cut(own, float(rate)) for own, rate in zip(falling, rates, strict=True)]
        return cls(thresholds=tuple(cut for cut, _ in cuts), at_threshold=tuple(c for _, c in cuts))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.thresholds)

    def probabilities(self, scores: ArrayLike, groups: ArrayLike) -> FloatArray:
        """Probability of class 1 for each row: 0 or 1, except at a threshold."""
        p, z = _checked(scores, groups, self.n_groups)
        cut = np.asarray(self.thresholds)[z]
        at = np.asarray(self.at_threshold)[z]
        return np.where(p > cut, 1.0, np.where(p == cut, at, 0.0))

    def rates(self, scores: ArrayLike, groups: ArrayLike) -> FloatArray:
        """Return the expected rate of class 1 in each group; NaN for a group without rows."""
        z = np.asarray(groups)
        sizes = np.bincount(z, minlength=self.n_groups)
        total = np.bincount(z, self.probabilities(scores, groups), minlength=self.n_groups)
        out: FloatArray = np.where(sizes > 0, total / np.maximum(sizes, 1), np.nan)
        return out

    def decide(self, scores: ArrayLike, groups: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Return class 0 or 1 for each row; ``rng`` is used for scores at a threshold only."""
        probability = self.probabilities(scores, groups)
        tied = (probability > 0) & (probability < 1)
        out = (probability >= 1).astype(np.int64)
        out[tied] = rng.random(int(tied.sum())) < probability[tied]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"thresholds": list(self.thresholds), "at_threshold": list(self.at_threshold)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GroupThresholds:
        """Read what ``to_dict`` wrote."""
        return cls(
            thresholds=tuple(values["thresholds"]), at_threshold=tuple(values["at_threshold"])
        )


def _checked(scores: ArrayLike, groups: ArrayLike, n_groups: int) -> tuple[FloatArray, IntArray]:
    p = np.asarray(scores, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(
            f"scores must be one probability of class 1 per row, got shape {p.shape}. For "
            f"more than two classes group thresholds are not defined here."
        )
    z = _checks.codes("groups", groups, n_groups)
    _checks.same_length(scores=p, groups=z)
    return p, z


def _rates_within(falling: list[FloatArray], margin: float) -> FloatArray:
    """Return the best rates of groups of which no two are further apart than the margin.

    The rates then lie in some [t, t + margin], and each group's best rate there is its free one,
    moved into it. The expected number of right answers is concave and piecewise linear in t, with
    corners where an end of the interval is a whole number of rows of a group: its right derivative
    is searched for its change of sign, by halving.
    """
    free = np.array([(own > 0.5).mean() for own in falling])
    low, high = float(free.min()), float(free.max()) - margin
    if high <= low:
        return free
    sizes = [len(own) for own in falling]
    ends = np.unique(np.concatenate([np.arange(n + 1) / n for n in sizes]))
    corners = np.unique(np.concatenate([ends, ends - margin, [low, high]]))
    corners = corners[(corners >= low) & (corners <= high)]

    def gain(t: float) -> float:
        """Return the right derivative: what the next rows bring, above the interval and below."""
        total = 0.0
        for own, best in zip(falling, free, strict=True):
            end = t if best < t + FUZZ else t + margin if best > t + margin + FUZZ else None
            if end is not None:
                next_row = int(np.floor(end * len(own) + FUZZ * len(own)))
                if next_row < len(own):
                    total += len(own) * (2.0 * own[next_row] - 1.0)
        return total

    first, last = 0, len(corners) - 1
    while first < last:
        middle = (first + last) // 2
        if gain(float(corners[middle])) > 0:
            first = middle + 1
        else:
            last = middle
    t = float(corners[first])
    rates: FloatArray = np.clip(free, t, t + margin)
    return rates


def _rates_by_program(
    p: FloatArray, z: IntArray, sizes: IntArray, fairness: DemographicParity
) -> FloatArray:
    """Return the best rates of three groups or more, against the rest or everybody."""
    n_groups = len(sizes)
    compared = _comparisons(sizes, fairness.reference)
    # Variables: the probability of class 1 of every row. Rates are linear in them.
    rate = csr_array((1.0 / sizes[z], (z, np.arange(len(p)))), shape=(n_groups, len(p)))
    bound = max(0.0, fairness.margin - _FEASIBILITY)
    solved = linprog(
        1.0 - 2.0 * p,
        A_ub=csr_array(compared) @ rate,
        b_ub=np.full(len(compared), bound),
        bounds=(0.0, 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.x is None:
        raise RuntimeError(f"The thresholds could not be set: {solved.message}")
    out: FloatArray = np.clip(rate @ solved.x, 0.0, 1.0)
    return out


def _comparisons(sizes: IntArray, reference: str) -> FloatArray:
    """Return rows of coefficients over group rates, each of which is at most the margin."""
    n = len(sizes)
    eye = np.eye(n)
    if reference == "overall":
        one_way = eye - sizes / sizes.sum()
    else:
        others = np.where(eye > 0, 0.0, sizes)
        one_way = eye - others / np.maximum(others.sum(axis=1, keepdims=True), 1)
    return np.concatenate([one_way, -one_way])


def _cut(falling: FloatArray, rate: float) -> tuple[float, float]:
    """Return the threshold, and the probability at it, that give exactly this rate."""
    wanted = rate * len(falling)
    if abs(wanted - round(wanted)) < 1e-6:  # last digits are no part of a row
        wanted = float(round(wanted))
    if wanted <= 0:
        return 1.0, 0.0
    # The last score that is taken, wholly or in part.
    cut = float(falling[min(len(falling), int(np.ceil(wanted))) - 1])
    above = int((falling > cut).sum())
    tied = int((falling == cut).sum())
    return cut, float(min(1.0, (wanted - above) / tied))

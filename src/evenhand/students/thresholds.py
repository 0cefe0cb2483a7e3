"""Decisions by a score and the group, set exactly on public rows from a model's own scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from scipy.optimize import linprog

from evenhand import _checks
from evenhand.fairness import DemographicParity
from evenhand.fairness.notion import RateNotion
from evenhand.students.within import Within
from evenhand.typing import ArrayLike, FloatArray, IntArray

NEEDS_GROUP: Final = "needs the group of each person at prediction, and treats groups differently"
_FEASIBILITY: Final = 1e-9  # of the solver, in rates
FUZZ: Final = 1e-12
"""Rates that are nearer to each other are equal: less than a row of any table."""

EXACT: Final = 1e-9
"""Expected error by which decisions may be above the least: less than a row of any table."""

FIRST: Final = 17
"""Thresholds per group, and as many from below, that the program begins with."""

PLAIN: Final = 0.5
"""Above it class 1 is the more probable one."""


@dataclass(frozen=True, kw_only=True)
class GroupThresholds:
    """How probable class 1 is to be given in each group, as steps of the score; for two classes.

    Mostly a group has one step, its threshold: above it class 1, below it class 0. A group whose
    rates lie between those of two thresholds has several, and between them class 1 is drawn.

    Privacy
    -------
    Free: a released model's scores on public rows, whose groups, and labels if they are given, are
    public (post-processing).

    Notes
    -----
    ``fit`` finds the decisions with the greatest expected accuracy, *as the model's own
    probabilities see it*, among all decisions by score and group whose expected rates on the public
    rows are within the margin. Rates among true classes are those of the labels, if they are given;
    else they are expectations too, under the model's own probabilities.

    Errors and rates of a group are linear in its decisions. By the model's own probabilities all
    pairs of rates that a group can have are mixtures of those of thresholds, from above or from
    below; so the best decisions are the solution of a linear program over these (Hardt et al. 2016;
    with a margin Cruz and Hardt 2024), and few of them share a group. By labels too, mixtures of
    thresholds alone are looked at: other decisions would learn the labels of single rows by heart.
    For the rates of decisions between two groups, and pairwise between any number, what is left is
    a search in one variable.

    The margin is kept on the public rows, in expectation over the draws. On other rows it is kept
    up to sampling error and, without labels, up to how far the probabilities are off in each group.

    References
    ----------
    Hardt, Price and Srebro 2016, "Equality of Opportunity in Supervised Learning"; Cruz and Hardt
    2024, "Unprocessing Seven Years of Algorithmic Fairness", arXiv 2306.07261.

    Examples
    --------
    >>> scores, groups = [0.9, 0.8, 0.7, 0.2, 0.6, 0.4, 0.3, 0.1], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> rule = GroupThresholds.fit(
    ...     scores, groups, fairness=DemographicParity(margin=0.25), n_groups=2
    ... )
    >>> rule.decide([0.65, 0.45], [0, 1], np.random.default_rng(0))
    array([0, 1])
    >>> rule.rates(scores, groups).tolist()
    [0.75, 0.5]
    """

    thresholds: tuple[tuple[float, ...], ...]
    """For each group the scores at which the probability changes, rising. Below the first: class 0.
    """
    at_threshold: tuple[tuple[float, ...], ...]
    """Probability of class 1 for a score that equals each of them, in [0, 1]."""
    above: tuple[tuple[float, ...], ...]
    """The same for scores between each of them and the next, in [0, 1]."""

    def __post_init__(self) -> None:
        named = {
            "thresholds": self.thresholds,
            "at_threshold": self.at_threshold,
            "above": self.above,
        }
        _checks.same_length(**named)
        for own in zip(*named.values(), strict=True):
            _checks.same_length(**dict(zip(named, own, strict=True)))
            for name, values in zip(named, own, strict=True):
                for value in values:
                    _checks.closed_unit(name, value)
            if any(low >= high for low, high in pairwise(own[0])):
                raise ValueError(f"thresholds of one group must rise, got {own[0]}.")

    @classmethod
    def fit(
        cls,
        scores: ArrayLike,
        groups: ArrayLike,
        *,
        fairness: RateNotion,
        n_groups: int,
        labels: ArrayLike | None = None,
        bounds: FloatArray | None = None,
    ) -> GroupThresholds:
        """Set the thresholds.

        Parameters
        ----------
        scores : array-like, shape (n,)
            The model's probability of class 1 for each public row, in [0, 1].
        groups : array-like of int, shape (n,)
            Codes below ``n_groups``.
        fairness : RateNotion
            The margin, on which rates, and what a rate is compared with.
        n_groups : int
            Every group needs at least one row.
        labels : array-like of int, shape (n,), optional
            True classes of these rows, 0 or 1, for a notion about true classes. Default: the
            model's own probabilities of them.
        bounds : ndarray of float64, shape (n_differences,), optional
            How large each difference of rates may be, in the order of ``Within.combined``. Default:
            the margin.

        Raises
        ------
        ValueError
            If no decisions by group are within the margin. Of the notions of this package each has
            some.
        """
        p, z = _checked(scores, groups, n_groups)
        sizes = np.bincount(z, minlength=n_groups)
        if not sizes.all():
            raise ValueError(
                f"Group {int(sizes.argmin())} has no public row, so no threshold can be set for "
                f"it. Add public rows of it, or merge it with another group."
            )
        within = within_of(fairness, p, z, n_groups, labels)
        cells = within.cells(2)
        program = _Program.of(p, z, cells, within.combined(2))
        if bounds is None:
            bounds = np.full(len(program.constant), float(fairness.margin))
        margin = float(bounds.min(initial=fairness.margin))
        alike = bool((bounds == margin).all())
        if program.holds(bounds):  # the model's own decisions
            return cls.of_steps([((PLAIN,), (0.0,), (1.0,))] * n_groups)
        in_one_variable = alike and (fairness.reference == "pairwise" or n_groups == 2)
        if not (isinstance(fairness, DemographicParity) and in_one_variable):
            return cls.of_steps(program.solve(bounds))
        # Of two groups every reference compares the one with the other, in its own unit.
        unit = 1.0
        if fairness.reference == "overall" and n_groups == 2:
            unit = sizes.max() / sizes.sum()
        falling = [np.sort(p[z == g])[::-1] for g in range(n_groups)]
        rates = _rates_within(falling, min(1.0, margin / unit))
        cuts = [_cut(own, float(rate)) for own, rate in zip(falling, rates, strict=True)]
        return cls.of_steps([((cut,), (at,), (1.0,)) for cut, at in cuts])

    @classmethod
    def of_steps(cls, steps: list[Steps]) -> GroupThresholds:
        """Make it of the thresholds of each group, and the probabilities at and above them."""
        thresholds, at_threshold, above = zip(*steps, strict=True)
        return cls(thresholds=thresholds, at_threshold=at_threshold, above=above)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.thresholds)

    @property
    def steps(self) -> list[Steps]:
        """The thresholds of each group, and the probabilities at and above them."""
        return list(zip(self.thresholds, self.at_threshold, self.above, strict=True))

    def probabilities(self, scores: ArrayLike, groups: ArrayLike) -> FloatArray:
        """Probability of class 1 for each row: mostly 0 or 1, but at and between thresholds."""
        p, z = _checked(scores, groups, self.n_groups)
        out = np.empty(len(p))
        for g, (cuts, at, above) in enumerate(self.steps):
            own = z == g
            passed = np.searchsorted(cuts, p[own], side="right")
            equal = np.searchsorted(cuts, p[own], side="left") < passed
            out[own] = np.where(
                equal, np.array([0.0, *at])[passed], np.array([0.0, *above])[passed]
            )
        return out

    def rates(self, scores: ArrayLike, groups: ArrayLike) -> FloatArray:
        """Return the expected rate of class 1 in each group; NaN for a group without rows."""
        z = np.asarray(groups)
        sizes = np.bincount(z, minlength=self.n_groups)
        total = np.bincount(z, self.probabilities(scores, groups), minlength=self.n_groups)
        out: FloatArray = np.where(sizes > 0, total / np.maximum(sizes, 1), np.nan)
        return out

    def decide(self, scores: ArrayLike, groups: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Return class 0 or 1 for each row; ``rng`` decides where neither is certain."""
        probability = self.probabilities(scores, groups)
        drawn = (probability > 0) & (probability < 1)
        out = (probability >= 1).astype(np.int64)
        out[drawn] = rng.random(int(drawn.sum())) < probability[drawn]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "thresholds": [list(own) for own in self.thresholds],
            "at_threshold": [list(own) for own in self.at_threshold],
            "above": [list(own) for own in self.above],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GroupThresholds:
        """Read what ``to_dict`` wrote."""
        if "above" not in values:  # once each group had one threshold
            cuts = zip(values["thresholds"], values["at_threshold"], strict=True)
            return cls.of_steps([((cut,), (at,), (1.0,)) for cut, at in cuts])
        return cls(
            thresholds=tuple(map(tuple, values["thresholds"])),
            at_threshold=tuple(map(tuple, values["at_threshold"])),
            above=tuple(map(tuple, values["above"])),
        )


Steps = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]
"""Of one group: thresholds, and the probabilities of class 1 at and above each of them."""


def within_of(
    fairness: RateNotion,
    p: FloatArray,
    groups: IntArray,
    n_groups: int,
    labels: ArrayLike | None,
) -> Within:
    """Return the margin on public rows: by their labels or, without any, by the probabilities."""
    if not fairness.needs_labels:
        return Within(notion=fairness, groups=groups, n_groups=n_groups)
    if labels is None:
        truth: IntArray | FloatArray = np.stack([1.0 - p, p], axis=1)
    else:
        truth = _checks.codes("labels", labels, 2)
    return Within(
        notion=fairness,
        groups=groups,
        n_groups=n_groups,
        labels=truth,
        source="own probabilities" if labels is None else "calibration rows",
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Program:
    """Shares of thresholds in each group, of least expected error, as a linear program.

    Its columns are what class 1 may be given to in a group: nobody, all from a score upwards, and
    nobody or all below it. ``error`` and ``apart`` (n_columns, n_differences) are what a column
    adds to the expected error and to each difference, ``constant`` what they are for nobody.
    """

    scores: list[FloatArray]
    group: IntArray
    error: FloatArray
    apart: FloatArray
    constant: FloatArray
    plain: IntArray

    @classmethod
    def of(cls, p: FloatArray, z: IntArray, cells: FloatArray, differences: FloatArray) -> _Program:
        # What a row adds to the error, and to each difference, where it is given class 1.
        of_classes = differences[:, :, 1] - differences[:, :, 0]
        moved = np.column_stack([(1.0 - 2.0 * p) / len(p), cells @ of_classes.T])
        scores, added, plain, n = [], [], [], 0
        for g in range(int(z.max()) + 1):
            own = z == g
            falling, place = np.unique(-p[own], return_inverse=True)
            sums = np.zeros((len(falling) + 1, moved.shape[1]))
            np.add.at(sums, place + 1, moved[own])
            upwards = sums.cumsum(axis=0)
            plain.append(n + int((falling < -PLAIN).sum()))
            added.append(np.concatenate([upwards, upwards[-1] - upwards]))
            scores.append(-falling)
            n += len(added[-1])
        columns = np.concatenate(added)
        return cls(
            scores=scores,
            group=np.repeat(np.arange(len(added)), [len(own) for own in added]),
            error=columns[:, 0],
            apart=columns[:, 1:],
            constant=cells.sum(axis=0) @ differences[:, :, 0].T,
            plain=np.array(plain),
        )

    def holds(self, bounds: FloatArray) -> bool:
        """Whether the model's own decisions are within the bounds of the differences."""
        apart = self.constant + self.apart[self.plain].sum(axis=0)
        return bool((np.abs(apart) <= bounds + FUZZ).all())

    def solve(self, bounds: FloatArray) -> list[Steps]:
        """Return the steps of each group that have the least expected error within the bounds.

        The program begins with few thresholds. Those that are worth more than the best so far, at
        the prices of the margin, join them until there are none. One from below joins only if it is
        better: error parity alone has many solutions, and a threshold from above is plainer.
        """
        bound = np.maximum(0.0, bounds - _FEASIBILITY)
        apart = np.concatenate([self.apart, -self.apart], axis=1)
        limits = np.concatenate([bound - self.constant, bound + self.constant])
        of_group = self.group == np.arange(len(self.scores))[:, None]
        use = np.zeros(len(self.group), dtype=np.bool_)
        use[self.plain] = True
        for own, scores in zip(of_group, self.scores, strict=True):
            use[own.argmax() + np.linspace(0, len(scores), FIRST).astype(np.int64)] = True
        while True:
            at = np.flatnonzero(use)
            solved = linprog(
                self.error[at],
                A_ub=apart[at].T,
                b_ub=limits,
                A_eq=of_group[:, at].astype(np.float64),
                b_eq=np.ones(len(of_group)),
                method="highs-ds",
                options={
                    "primal_feasibility_tolerance": 1e-10,
                    "dual_feasibility_tolerance": 1e-10,
                },
            )
            if solved.x is None and use.all():
                raise ValueError(
                    f"No decisions by score and group are within {bounds.min():g} on the public "
                    f"rows: {solved.message} Widen the margin."
                )
            if solved.x is None:
                use[:] = True
                continue
            worth = self.error - apart @ solved.ineqlin.marginals
            worth -= solved.eqlin.marginals[self.group]
            best = np.where(of_group, worth, np.inf).argmin(axis=1)
            if use[best].all() or worth[best].sum() >= -EXACT:
                break
            use[best] = True
        shares = np.zeros(len(use))
        shares[at] = np.where(solved.x > _FEASIBILITY, solved.x, 0.0)
        return [
            _steps(scores, shares[own] / shares[own].sum())
            for own, scores in zip(of_group, self.scores, strict=True)
        ]


def _steps(falling: FloatArray, shares: FloatArray) -> Steps:
    """Return the steps that thresholds with these shares make together; see ``_Program``."""
    upwards, below = shares.reshape(2, -1)
    given = upwards[::-1].cumsum()[::-1][1:] + below.cumsum()[:-1]
    # In rising order; what is nearer to 0 or 1 than this is rounding.
    scores, given = falling[::-1], given[::-1].round(12)
    before = np.append(0.0, given[:-1])
    # Beyond all public scores it goes on as it went at the highest.
    after = np.append(given[1:], given[-1])
    if given[-1] != before[-1]:
        after[-1] = float(given[-1] > before[-1])
    steps, now = [(1.0, 0.0, 0.0)], 0.0
    for i in np.flatnonzero(given != before):
        if given[i] != now:
            now = float(after[i])
            steps.append((float(scores[i]), float(given[i]), now))
    thresholds, at, above = zip(*(steps[1:] or steps), strict=True)
    return thresholds, at, above


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

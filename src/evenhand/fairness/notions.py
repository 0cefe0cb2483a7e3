"""What "within the margin" means: which rates may differ between groups, and by how much."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand.fairness import rates
from evenhand.fairness.rates import Rates, exact_rate_gap
from evenhand.fairness.tally import ratio
from evenhand.typing import ArrayLike, FloatArray

REFERENCES = ("rest", "pairwise", "overall")
"""What a group's rate is compared with: all other groups pooled, each other group, everybody."""


class Notion(Protocol):
    """A margin on the differences of some rates between groups."""

    name: ClassVar[str]
    """What the command line and a report call it."""
    needs_labels: ClassVar[bool]
    """Whether its rates are taken among records of a true class."""

    @property
    def margin(self) -> float:
        """Largest difference that is within the margin."""

    @property
    def reference(self) -> str:
        """What a group is compared with."""

    @property
    def exact_margin(self) -> Fraction:
        """The margin as the fraction that its shortest decimal writes."""

    def gap(self, counts: ArrayLike) -> float:
        """Largest difference in a table of counts; 0.0 with nothing to compare."""

    def holds(self, counts: ArrayLike) -> bool:
        """Whether a table of counts is within the margin, decided in fractions."""


class LabelledNotion(Notion, Protocol):
    """A notion whose table holds true classes: counts (n_groups, n_classes, n_classes)."""

    def rates(self, n_classes: int) -> Rates:
        """Return the rates that are compared."""


@dataclass(frozen=True, kw_only=True)
class _Margin(ABC):
    """What every notion has: a margin, what a group is compared with, and how a table is judged."""

    margin: float
    reference: str = "rest"

    def __post_init__(self) -> None:
        _checks.closed_unit("margin", self.margin)
        _checks.one_of("reference", self.reference, REFERENCES)

    @property
    def exact_margin(self) -> Fraction:
        """The margin as the fraction that its shortest decimal writes."""
        return Fraction(repr(float(self.margin)))

    def gap(self, counts: ArrayLike) -> float:
        """Largest difference in a table of counts; 0.0 with nothing to compare."""
        return float(self._worst(counts))

    def holds(self, counts: ArrayLike) -> bool:
        """Whether a table of counts is within the margin, decided in fractions."""
        return self._worst(counts) <= self.exact_margin

    @abstractmethod
    def _worst(self, counts: ArrayLike) -> Fraction:
        """Return the largest difference, as a fraction."""


@dataclass(frozen=True, kw_only=True)
class _AmongTrueClasses(_Margin):
    """A notion whose rates are taken among records of some true class."""

    needs_labels: ClassVar[bool] = True

    @abstractmethod
    def rates(self, n_classes: int) -> Rates:
        """Return the rates that are compared."""

    def _worst(self, counts: ArrayLike) -> Fraction:
        table = np.asarray(counts)
        n_classes = table.shape[-1] if table.ndim else 0
        return exact_rate_gap(*self.rates(n_classes).counted(table), self.reference)


@dataclass(frozen=True, kw_only=True)
class DemographicParity(_Margin):
    """Each group receives each class at nearly the same rate.

    Parameters
    ----------
    margin : float
        Largest difference of two rates that is within the margin. In [0, 1]; the margin itself is
        within. It is read as the decimal it is written as: 0.05 is exactly 1/20.
    reference : {"rest", "pairwise", "overall"}
        What the rate ``P(k | z)`` of group z is compared with: ``"rest"`` is ``P(k | not z)``
        (FairPATE, Definition 1), ``"pairwise"`` is ``P(k | z')`` of every other group (fairlearn's
        demographic parity difference), ``"overall"`` is ``P(k)`` (SF-PATE).

    Notes
    -----
    A rest gap of at most g bounds the pairwise gap by 2 g, and the overall gap by g.

    Examples
    --------
    >>> DemographicParity(margin=0.25).gap([[6, 4], [8, 2]])
    0.2
    >>> DemographicParity(margin=0.25).holds([[6, 4], [9, 1]])
    False
    """

    name: ClassVar[str] = "demographic-parity"
    needs_labels: ClassVar[bool] = False

    def _worst(self, counts: ArrayLike) -> Fraction:
        rows: list[list[int]] = np.asarray(counts).tolist()
        return exact_gap(rows, self.reference)


@dataclass(frozen=True, kw_only=True)
class EqualizedOdds(_AmongTrueClasses):
    """Among records of one true class, each group receives each class at nearly the same rate.

    Bounds ``|P(Yhat = k' | Y = k, Z = z) - P(Yhat = k' | Y = k, reference)|`` over all z, k and k':
    true positives and false positives at once. The difference is that of
    :func:`evenhand.fairness.equalized_odds`.

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``.

    Notes
    -----
    A perfect classifier keeps every margin. Counts are (n_groups, true, predicted), as in
    ``JointTally``; cells without records are left out.

    Examples
    --------
    >>> EqualizedOdds(margin=0.25).gap([[[9, 1], [2, 8]], [[8, 2], [5, 5]]])
    0.3
    """

    name: ClassVar[str] = "equalized-odds"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat = k' | Y = k)`` for all k, k'; with two classes for k' = 1 alone."""
        return rates.predicted_among_each_class(n_classes)


@dataclass(frozen=True, kw_only=True)
class ErrorParity(_AmongTrueClasses):
    """Predictions are wrong at nearly the same rate in each group.

    Bounds ``|P(Yhat != Y | Z = z) - P(Yhat != Y | reference)|`` over all z. The difference is that
    of :func:`evenhand.fairness.error_parity`.

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``.

    Notes
    -----
    A margin here can be kept by being wrong more often about the group that is easier to predict,
    and no constant classifier keeps every margin: look at the error of each group.

    Examples
    --------
    >>> ErrorParity(margin=0.25).gap([[[9, 1], [2, 8]], [[8, 2], [5, 5]]])
    0.2
    """

    name: ClassVar[str] = "error-parity"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat != Y)``."""
        return rates.wrong(n_classes)


@dataclass(frozen=True, kw_only=True)
class FalsePositiveParity(_AmongTrueClasses):
    """Records that are not of a class are predicted to be of it at nearly the same rate.

    Bounds ``|P(Yhat = k | Y != k, Z = z) - P(Yhat = k | Y != k, reference)|`` over all z and k. The
    difference is that of :func:`evenhand.fairness.false_positive_parity`.

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``.
    positive : int, optional
        Code of the one class k that is meant (its place among the sorted classes). Default: all.

    Examples
    --------
    >>> FalsePositiveParity(margin=0.25, positive=1).gap([[[9, 1], [2, 8]], [[8, 2], [5, 5]]])
    0.1
    """

    positive: int | None = None

    name: ClassVar[str] = "false-positive-parity"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive is not None:
            _checks.at_least("positive", self.positive, 0)

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat = k | Y != k)`` for each k that is meant."""
        if self.positive is None:
            return rates.predicted_among_others(n_classes, range(n_classes))
        if self.positive >= n_classes:
            raise ValueError(
                f"positive must be a class from 0 to {n_classes - 1}, got "
                f"positive={self.positive!r}. It is the place of the class among the sorted "
                f"classes."
            )
        return rates.predicted_among_others(n_classes, [self.positive])


NOTIONS: Final[Mapping[str, type[Any]]] = {
    kind.name: kind for kind in (DemographicParity, EqualizedOdds, ErrorParity, FalsePositiveParity)
}
"""The notions by the names that the command line and files use."""


def notion_named(name: str) -> type[Any]:
    """Return the class of the notion that ``name`` means, such as ``"equalized-odds"``.

    Raises
    ------
    ValueError
        If there is none; the message lists them all and names the nearest.
    """
    return NOTIONS[_checks.one_of("notion", name, NOTIONS)]


def require_notion(fairness: object, way_out: str) -> Notion:
    """Return ``fairness`` if it is a notion, else say which there are."""
    for kind in NOTIONS.values():
        if type(fairness) is kind:
            return fairness  # type: ignore[return-value]  # one of four types, each a Notion
    known = [kind.__name__ for kind in NOTIONS.values()]
    given = getattr(fairness, "__name__", fairness if isinstance(fairness, str) else "")
    raise ValueError(
        f"fairness must be a {', '.join(known[:-1])} or {known[-1]}, got {fairness!r}."
        f"{_checks.did_you_mean(given, known) if given else ''} {way_out}"
    )


def exact_gap(counts: Sequence[Sequence[int]], reference: str) -> Fraction:
    """Largest difference of rates between groups that have answers, as a fraction.

    The definition itself, in the open: slow, and what the faster forms are checked against.
    """
    rows = [row for row in counts if sum(row)]
    if len(rows) < 2:
        return Fraction(0)
    everybody = [sum(column) for column in zip(*rows, strict=True)]
    worst = Fraction(0)
    for row in rows:
        if reference == "pairwise":
            others = [other for other in rows if other is not row]
        elif reference == "rest":
            others = [[total - own for total, own in zip(everybody, row, strict=True)]]
        else:
            others = [everybody]
        for other in others:
            for k in range(len(row)):
                difference = Fraction(row[k], sum(row)) - Fraction(other[k], sum(other))
                worst = max(worst, abs(difference))
    return worst


def parity_gaps(counts: ArrayLike, reference: str) -> FloatArray:
    """Signed differences ``P(k | z) - P(k | reference)`` in floats, for a table or a stack of them.

    Parameters
    ----------
    counts : array-like of int, shape (..., n_groups, n_classes)
    reference : {"rest", "pairwise", "overall"}
        For ``"pairwise"`` each group is compared with the other group that is farthest from it.

    Returns
    -------
    ndarray of float64, shape (..., n_groups, n_classes)
        In [-1, 1]; 0 is best. NaN where a group, or what it is compared with, has no answer.
    """
    _checks.one_of("reference", reference, REFERENCES)
    table = np.asarray(counts, dtype=np.float64)
    totals = table.sum(axis=-1, keepdims=True)
    rates = ratio(table, totals)
    everybody = table.sum(axis=-2, keepdims=True)
    if reference == "overall":
        overall: FloatArray = rates - ratio(everybody, everybody.sum(axis=-1, keepdims=True))
        return overall
    if reference == "rest":
        others = everybody - table
        rest: FloatArray = rates - ratio(others, others.sum(axis=-1, keepdims=True))
        return rest
    above = rates - np.where(np.isnan(rates), np.inf, rates).min(axis=-2, keepdims=True)
    below = rates - np.where(np.isnan(rates), -np.inf, rates).max(axis=-2, keepdims=True)
    farthest: FloatArray = np.where(above >= -below, above, below)
    alone = (totals > 0).sum(axis=-2, keepdims=True) < 2
    return np.where(alone, np.nan, farthest)

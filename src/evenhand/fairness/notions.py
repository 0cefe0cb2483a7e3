"""The notions of fairness that are about decisions, each defined by its rates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from inspect import isabstract
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from evenhand import _checks, _notions
from evenhand._stored import STORED, home_of, stored
from evenhand._words import REFERENCES
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import ratio
from evenhand.typing import ArrayLike, FloatArray


@dataclass(frozen=True, kw_only=True)
class DemographicParity(RateNotion):
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
    confidence : float, optional
        As for every ``RateNotion``.

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
    words: ClassVar[str] = "how often a class is predicted"
    symbols: ClassVar[str] = "P(Yhat=k')"
    needs_labels: ClassVar[bool] = False

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat = k')`` for all k'; with two classes for k' = 1 alone."""
        everybody = range(n_classes)
        return Rates.of(
            n_classes, [(everybody, [(k, j) for k in everybody]) for j in _needed(n_classes)]
        )


@dataclass(frozen=True, kw_only=True)
class EqualizedOdds(RateNotion):
    """Among records of one true class, each group receives each class at nearly the same rate.

    Bounds ``|P(Yhat = k' | Y = k, Z = z) - P(Yhat = k' | Y = k, reference)|`` over all z, k and k':
    true positives and false positives at once.

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
    words: ClassVar[str] = "how often a class is predicted to rows of one true class"
    symbols: ClassVar[str] = "P(Yhat=k' | Y=k)"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat = k' | Y = k)`` for all k, k'; with two classes for k' = 1 alone."""
        return Rates.of(
            n_classes, [([k], [(k, j)]) for k in range(n_classes) for j in _needed(n_classes)]
        )


@dataclass(frozen=True, kw_only=True)
class ErrorParity(RateNotion):
    """Predictions are wrong at nearly the same rate in each group.

    Bounds ``|P(Yhat != Y | Z = z) - P(Yhat != Y | reference)|`` over all z.

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
    words: ClassVar[str] = "how often a prediction is wrong"
    symbols: ClassVar[str] = "P(Yhat!=Y)"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat != Y)``."""
        everybody = range(n_classes)
        wrong = [(k, j) for k in everybody for j in everybody if k != j]
        return Rates.of(n_classes, [(everybody, wrong)])


@dataclass(frozen=True, kw_only=True)
class OfOneClass(RateNotion):
    """A notion that can be about one class, the positive one, or about several.

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``.
    positive : int, optional
        Code of the one class that is meant.
    """

    positive: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive is not None:
            _checks.at_least("positive", self.positive, 0)

    def meant(self, n_classes: int, *, default: Sequence[int]) -> Sequence[int]:
        """Return the classes that are meant, of this number."""
        if self.positive is None:
            return default
        if self.positive >= n_classes:
            raise ValueError(
                f"positive must be a class from 0 to {n_classes - 1}, got "
                f"positive={self.positive!r}. It is the place of the class among the sorted "
                f"classes."
            )
        return [self.positive]

    def _symbols(self) -> str:
        return (
            self.symbols
            if self.positive is None
            else re.sub(r"\bk\b", str(self.positive), self.symbols)
        )


@dataclass(frozen=True, kw_only=True)
class FalsePositiveParity(OfOneClass):
    """Records that are not of a class are predicted to be of it at nearly the same rate.

    Bounds ``|P(Yhat = k | Y != k, Z = z) - P(Yhat = k | Y != k, reference)|`` over all z and k.

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

    name: ClassVar[str] = "false-positive-parity"
    words: ClassVar[str] = "how often a class is predicted to rows that are not of it"
    symbols: ClassVar[str] = "P(Yhat=k | Y!=k)"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat = k | Y != k)`` for each k that is meant."""
        others = {k: [j for j in range(n_classes) if j != k] for k in range(n_classes)}
        meant = self.meant(n_classes, default=range(n_classes))
        return Rates.of(n_classes, [(others[k], [(j, k) for j in others[k]]) for k in meant])


_Kind = TypeVar("_Kind", bound=type[Notion])

_OWN: Final[dict[str, type[Notion]]] = {}
"""The registered classes by home, ``"package.module:Class"``."""


def registered(kind: _Kind) -> _Kind:
    """Make a notion of one's own known by its name, wherever a notion is named.

    A class decorator: reports then list its gap, its name may stand at the command line, in grids
    and specifications, and a saved model that was trained under it is read once its module is
    imported. ``fairness = "package.module:Class"`` does the same for a class without it.

    Raises
    ------
    ValueError
        If the class does not say its ``name``, or another notion or class has that name.
    """
    home = home_of(kind)
    name = getattr(kind, "name", "")
    if not name or isabstract(kind):
        raise ValueError(f"{home} is no whole notion: it must say name, words, symbols and rates.")
    taken = (_notions.NOTIONS.get(name, home), home_of(STORED.get(kind.__name__, kind)))
    for other in taken:
        if other != home:
            raise ValueError(f"{home} is called as {other} is. Give it another name.")
    if name not in _notions.SHIPPED:
        of = _notions.OF_DECISIONS if issubclass(kind, RateNotion) else _notions.OF_SCORES
        of[name], _OWN[home] = home, kind
        stored(kind)
    return kind


def known_notions() -> Mapping[str, type[RateNotion]]:
    """Return the notions of decisions by the names that the command line and files use."""
    return {name: _class_at(home) for name, home in _notions.OF_DECISIONS.items()}


def notion_named(name: str) -> type[Notion]:
    """Return the class of the notion that ``name`` means, such as ``"equalized-odds"``.

    ``"package.module:Class"`` means a class of one's own: the module is imported, which runs its
    code, and the class is registered.

    Raises
    ------
    ValueError
        If there is none; for a name the message lists them all and names the nearest.
    """
    if ":" in name:
        return registered(_class_named(name))
    known = _notions.NOTIONS
    made: type[Notion] = _class_at(known[_checks.one_of("fairness", name, known)])
    return made


def notion_to_dict(notion: RateNotion) -> dict[str, Any]:
    """Return a notion in JSON's types: its name and its arguments."""
    return {
        "name": notion.name,
        **{each.name: getattr(notion, each.name) for each in fields(notion)},
    }


def notion_from_dict(values: Mapping[str, Any]) -> RateNotion:
    """Read what ``notion_to_dict`` wrote. A name imports nothing: one of your own is known already.

    Raises
    ------
    ValueError
        If the name is not known, or the arguments are not those of the notion.
    """
    arguments = dict(values) if isinstance(values, Mapping) else {}
    name = arguments.pop("name", None)
    if name not in _notions.OF_DECISIONS:
        raise ValueError(
            f"A saved notion must be one of {', '.join(_notions.OF_DECISIONS)}, got {name!r}. One "
            f"of your own is known once its module is imported and its class is registered "
            f"(evenhand.fairness.notions.registered)."
        )
    kind = known_notions()[name]
    needed = [each.name for each in fields(kind)]
    if set(arguments) != set(needed):
        raise ValueError(
            f"A saved {name} must have exactly {', '.join(needed)}; got "
            f"{', '.join(map(str, arguments)) or 'nothing'}."
        )
    return kind(**arguments)


def spelled(name: str) -> str:
    """Return how another process should name a notion: one of one's own by its home."""
    kind = notion_named(name)
    return kind.name if kind.name in _notions.SHIPPED else home_of(kind)


def _class_named(home: str) -> type[Notion]:
    """Return the class that a user named by its home."""
    kind = _class_at(home)
    if not (isinstance(kind, type) and issubclass(kind, Notion)):
        raise ValueError(f"fairness names {home!r}, which is no notion. Derive it from RateNotion.")
    return kind


def _class_at(home: str) -> Any:
    return _OWN[home] if home in _OWN else _checks.class_at("fairness", home)


def require_notion(fairness: object, way_out: str) -> RateNotion:
    """Return ``fairness`` if it is a notion of decisions, else say which there are."""
    if isinstance(fairness, RateNotion):
        return fairness
    known = [kind.__name__ for kind in known_notions().values()]
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


def _needed(n_classes: int) -> Sequence[int]:
    """With two classes one rate is one minus the other: a second would only cost level."""
    return [1] if n_classes == 2 else range(n_classes)

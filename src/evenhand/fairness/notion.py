"""A notion of fairness: what is compared between groups, with what, and how far it may differ.

Everything that is done with a notion derives from its class. A notion of *decisions* says one
thing, its rates (:class:`RateNotion`); the gap with its interval, the calibrated gap, the
constraint of a student, the function of SF-PATE, the moment of fairlearn and the coefficients of a
derived rule follow. A notion of *scores* says a function h of a row and its gradient
(:class:`Notion`); it can be trained for.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from evenhand import _checks, _values
from evenhand._words import REFERENCES
from evenhand.fairness.rates import Rates, exact_rate_gap
from evenhand.typing import ArrayLike, FloatArray

_SAID = {"rest": "all others together", "pairwise": "each other group", "overall": "everybody"}
_OTHERS = {"rest": "Z!=z", "pairwise": "Z=z'", "overall": ""}


@dataclass(frozen=True, kw_only=True)
class Notion(ABC):
    """A margin on the differences between groups of the mean of one or several functions h.

    h is a function of the probabilities that one row is given and of its true class; each mean is
    taken over the rows that count for it. All arrays may have leading dimensions, one model each.

    Parameters
    ----------
    margin : float
        Largest difference that is within the margin, at least 0; the margin itself is within.
    reference : {"rest", "pairwise", "overall"}
        What a group is compared with: all other groups pooled, each other group, everybody.
    """

    margin: float
    reference: str = "rest"

    name: ClassVar[str]
    """What the command line and files call it, with hyphens."""
    words: ClassVar[str]
    """What is compared, in words that a report can print."""
    needs_labels: ClassVar[bool] = True
    """Whether it reads true classes."""

    def __post_init__(self) -> None:
        _checks.non_negative("margin", self.margin)
        _checks.one_of("reference", self.reference, REFERENCES)

    @classmethod
    def of(cls, *, margin: float, reference: str = "rest", **more: Any) -> Self:
        """Return the notion with this margin, and of ``more`` what it has and is not None.

        ``more`` may be ``positive``, the code of a class, and ``confidence``.
        """
        own = {field.name for field in fields(cls)}
        about = {name: value for name, value in more.items() if name in own and value is not None}
        return cls(margin=margin, reference=reference, **about)

    @property
    def key(self) -> str:
        """The name with underscores, as in names of metrics."""
        return self.name.replace("-", "_")

    @property
    def title(self) -> str:
        """The name as a heading or within a sentence."""
        return self.name.replace("-", " ")

    @property
    def against(self) -> str:
        """What a group is compared with, in words."""
        return _SAID[self.reference]

    @property
    def on_decisions(self) -> bool:
        """Whether the difference is that of decisions; False: that of the probabilities."""
        return True

    @abstractmethod
    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return h, shape (..., n, m); ``truth`` is one-hot, (..., n, n_classes)."""

    @abstractmethod
    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient of ``sum(pull * values)`` in ``probabilities``, of their shape."""

    @abstractmethod
    def among(self, truth: FloatArray) -> FloatArray:
        """Return 1 where a row counts for a function and 0 where not, (..., n, m)."""


@dataclass(frozen=True, kw_only=True)
class RateNotion(Notion):
    """A notion of decisions: a margin in [0, 1] on the differences of some rates between groups.

    A notion of your own says ``name``, ``words``, ``symbols`` and :meth:`rates`; nothing else.

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``.
    confidence : float, optional
        In (0, 1). The student is then chosen by rows that it was not fitted on: so that the upper
        limit of the gap there, at this confidence, is within the margin
        (``evenhand.students.confident``). Default: the margin holds on the rows of the fit.
    """

    confidence: float | None = None

    symbols: ClassVar[str]
    """One rate of everybody, such as ``"P(Yhat=k' | Y=k)"``; k and k' stand for any class."""

    @abstractmethod
    def rates(self, n_classes: int) -> Rates:
        """Return the rates that are compared, for this number of classes.

        Of rates that add up to 1 one may be left out: each costs width of an interval.
        """

    def __post_init__(self) -> None:
        _checks.closed_unit("margin", self.margin)
        if self.confidence is not None:
            _checks.open_unit("confidence", self.confidence)
        super().__post_init__()

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

    @property
    def definition(self) -> str:
        """What is bounded, in symbols."""
        symbols = self._symbols()
        own, other = (_of(symbols, condition) for condition in ("Z=z", _OTHERS[self.reference]))
        over = [k for k in ("k", "k'") if re.search(rf"\b{k}(?![\w'])", symbols)]
        return f"max over {', '.join(['z', *over])} of |{own} - {other}|; in [0, 1], best 0"

    def _symbols(self) -> str:
        return self.symbols

    def _worst(self, counts: ArrayLike) -> Fraction:
        table = np.asarray(counts)
        rates = rates_of(self, table.shape[-1] if table.ndim else 0)
        counted = rates.counted(table)
        if (table < 0).any():
            raise ValueError(f"counts must be at least 0, got {_values.quoted(int(table.min()))}.")
        return exact_rate_gap(*counted, self.reference)

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return h, shape (..., n, n_rates)."""
        return rates_of(self, probabilities.shape[-1]).values(probabilities, truth)

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient of ``sum(pull * values)`` in the probabilities."""
        return rates_of(self, probabilities.shape[-1]).gradient(probabilities, truth, pull)

    def among(self, truth: FloatArray) -> FloatArray:
        """Return 1 where the true class of a row is one that the rate is taken among."""
        return rates_of(self, truth.shape[-1]).counts(truth)


def require_reference(fairness: object, reference: str, who: str) -> Notion:
    """Return ``fairness`` if it is a notion that compares a group with ``reference``.

    Raises
    ------
    ValueError
        If it is none, or compares with others: what a margin to the one says of the other depends
        on the sizes of the groups.
    """
    if not isinstance(fairness, Notion):
        raise ValueError(
            f"fairness must be a notion such as DemographicParity(margin=0.02, "
            f"reference={reference!r}), got {fairness!r}. For a function of your own write "
            f"FunctionParity(margin=..., reference={reference!r}, h=...)."
        )
    if fairness.reference != reference:
        raise ValueError(
            f"{who} compares each group with {_SAID[reference]}, got {fairness!r}. Write "
            f"reference={reference!r}."
        )
    return fairness


@lru_cache(maxsize=256)
def rates_of(notion: RateNotion, n_classes: int) -> Rates:
    """Return ``notion.rates(n_classes)``, made once."""
    return notion.rates(n_classes)


def _of(symbols: str, condition: str) -> str:
    """Return a rate of those whose group is as the condition says."""
    if not condition:
        return symbols
    return f"{symbols[:-1]}{', ' if '|' in symbols else ' | '}{condition})"

"""A mixture of classifiers that answers each row by one of them, the same one every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from evenhand import _checks
from evenhand._display import Shown
from evenhand.typing import ArrayLike, FloatArray, IntArray

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # splitmix64


def _all_have(name: str) -> Callable[[Any], bool]:
    return lambda self: all(hasattr(member, name) for member in self.members_)


class Mixture(ClassifierMixin, Shown):  # type: ignore[misc]  # untyped base
    """Classifiers on the codes 0 and 1, each of which decides on its share of all rows.

    A randomised classifier draws, for each row, the member that decides. Here the draw is a
    function of the row and of a seed: a row gets the same answer however often it is given, and
    whatever other rows are given with it. Over rows that differ the shares are those of the
    weights, so that rates, and differences of rates between groups, are those of the mixture.

    Parameters
    ----------
    seed : int
        In [0, 2**63). Which of the many such functions it is.

    Attributes
    ----------
    members_ : list of fitted classifiers
    weights_ : ndarray, shape (n_members,)
        The share of rows on which each decides; they add up to 1.
    classes_ : ndarray, the codes 0 and 1

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> never, always = (DummyClassifier(strategy="constant", constant=k).fit([[0], [0]], [0, 1])
    ...                  for k in (0, 1))
    >>> mixture = Mixture.of([never, always], [0.25, 0.75], seed=0)
    >>> rows = np.arange(4000.0)[:, None]
    >>> round(float(mixture.predict(rows).mean()), 2)
    0.75
    >>> bool((mixture.predict(rows)[::-1] == mixture.predict(rows[::-1])).all())
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @classmethod
    def of(cls, members: Sequence[Any], weights: ArrayLike, *, seed: int) -> Self:
        """Mix fitted classifiers; a member without weight is left out."""
        shares = np.asarray(weights, dtype=np.float64)
        _checks.same_length(members=members, weights=shares)
        if not (shares >= 0).all() or not shares.sum() > 0:
            raise ValueError(f"weights must be >= 0 with a positive sum, got {shares.tolist()}.")
        kept = np.flatnonzero(shares)
        self = cls(seed=seed)
        self.members_ = [members[int(i)] for i in kept]
        self.weights_ = shares[kept] / shares.sum()
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> IntArray:
        """Return for each row the class that its member gives it, shape (n,)."""
        draws = uniform_of_rows(np.asarray(X, dtype=np.float64), self.seed)
        edges = np.cumsum(self.weights_)[:-1]
        chosen = np.searchsorted(edges, draws, side="right")
        predicted = np.stack([member.predict(X) for member in self.members_])
        labels: IntArray = predicted[chosen, np.arange(len(chosen))].astype(np.int64)
        return labels

    @available_if(_all_have("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the weighted mean of the members' probabilities, shape (n, 2).

        It says how likely the class is, not how likely it is to be drawn: ``predict`` is not its
        larger column.
        """
        out = np.zeros((len(X), 2))
        for weight, member in zip(self.weights_, self.members_, strict=True):
            out[:, member.classes_.astype(np.int64)] += weight * member.predict_proba(X)
        return out


def uniform_of_rows(X: FloatArray, seed: int) -> FloatArray:
    """Return a number in [0, 1) per row: a hash of its values, equal for equal rows.

    The mixing function is splitmix64 (Steele, Lea and Flood 2014), applied column by column.
    """
    words = np.ascontiguousarray(X + 0.0).view(np.uint64)  # + 0.0: the two zeros are one number
    state = np.full(len(words), seed, dtype=np.uint64)
    for column in words.T:
        state = _mixed((state ^ column) + np.uint64(_STEP))
    out: FloatArray = (_mixed(state) >> np.uint64(11)) * 2.0**-53
    return out


def _mixed(state: Any) -> Any:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
    return state ^ (state >> np.uint64(31))

"""Fairness functions h: what SF-PATE compares between each group and the whole population.

A model is alpha-fair for h if ``|E[h | A = a] - E[h]| <= alpha`` for every group a (SF-PATE,
Definition 1). h reads the probabilities that a model gives to the classes of one row, and the row's
true class; a notion may have several, and take the mean of each among some rows only. The functions
here are plain NumPy with gradients by hand, so that models of any library can be trained under
them; one of your own needs no privacy work and no gradient (:class:`OwnFunction`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from scipy.stats import wasserstein_distance

from evenhand import _checks
from evenhand._probabilities import decided
from evenhand.typing import ArrayLike, FloatArray

_NUDGE: Final = 1e-5  # for central differences: the error is of order 1e-10


class FairnessFunction(Protocol):
    """One or several functions h of the probabilities (..., n, n_classes) and true classes of rows.

    Write m for the number of functions. All arrays may have leading dimensions, one model each.
    """

    @property
    def name(self) -> str:
        """What a report calls it."""

    @property
    def on_decisions(self) -> bool:
        """Whether the violation is that of decisions; False: that of the probabilities."""

    @property
    def needs_labels(self) -> bool:
        """Whether it reads true classes."""

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return h, shape (..., n, m); ``truth`` is one-hot, (..., n, n_classes)."""

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient of ``sum(pull * values)`` in ``probabilities``, of their shape."""

    def among(self, truth: FloatArray) -> FloatArray:
        """Return 1 where a row counts for a function and 0 where not, (..., n, m)."""


@dataclass(frozen=True, kw_only=True)
class DemographicParityFunction:
    """How often each class is predicted: ``h = P(Yhat = k)``; with two classes for k = 1 alone.

    Examples
    --------
    >>> h = DemographicParityFunction()
    >>> worst_violation(h, [[0.0, 1.0], [1.0, 0.0]], [0, 0], ["a", "b"])
    0.5
    """

    name: ClassVar[str] = "demographic_parity"
    on_decisions: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the probabilities of the classes that are compared."""
        return probabilities[..., _compared(probabilities)]

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient in the probabilities; constant, for h is linear."""
        out = np.zeros_like(probabilities)
        out[..., _compared(probabilities)] = pull
        return out

    def among(self, truth: FloatArray) -> FloatArray:
        """Every row counts."""
        return np.ones_like(truth[..., _compared(truth)])


@dataclass(frozen=True, kw_only=True)
class EqualizedOddsFunction:
    """How often each class is predicted among the rows of each true class.

    ``h = P(Yhat = k')`` among the rows with Y = k, for all k and k'; with two classes for k' = 1.
    """

    name: ClassVar[str] = "equalized_odds"
    on_decisions: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the probabilities of the compared classes, once for each true class."""
        n_classes = probabilities.shape[-1]
        return np.tile(probabilities[..., _compared(probabilities)], n_classes)

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient in the probabilities; constant, for h is linear."""
        compared = _compared(probabilities)
        n_classes = probabilities.shape[-1]
        out = np.zeros_like(probabilities)
        out[..., compared] = pull.reshape(*pull.shape[:-1], n_classes, -1).sum(axis=-2)
        return out

    def among(self, truth: FloatArray) -> FloatArray:
        """Return, for each function, which rows are of its true class."""
        n_compared = 1 if truth.shape[-1] == 2 else truth.shape[-1]
        return np.repeat(truth, n_compared, axis=-1)


@dataclass(frozen=True, kw_only=True)
class ErrorParityFunction:
    """How often a prediction is wrong: ``h = 1 - P(Yhat = Y)``. Also called accuracy parity."""

    name: ClassVar[str] = "error_parity"
    on_decisions: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the probability of a wrong prediction."""
        wrong: FloatArray = 1.0 - (probabilities * truth).sum(axis=-1, keepdims=True)
        return wrong

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient in the probabilities; constant, for h is linear."""
        return -pull * truth

    def among(self, truth: FloatArray) -> FloatArray:
        """Every row counts."""
        return np.ones_like(truth[..., :1])


@dataclass(frozen=True, kw_only=True)
class MomentsFunction:
    """Moments of the scores, for parity at every threshold: ``h_j = P(Yhat = k) ** j``, j <= H.

    Generalized demographic parity (SF-PATE, Definition 3) asks that the whole law of the score be
    the same in each group; H moments are what is trained for, and :func:`score_distance` measures
    how far apart the laws are.

    Parameters
    ----------
    order : int, default 2
        H, at least 1.
    """

    order: int = 2

    name: ClassVar[str] = "generalized_demographic_parity"
    on_decisions: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _checks.at_least("order", self.order, 1)

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the powers of the compared probabilities, one power after the other."""
        p = probabilities[..., _compared(probabilities)]
        return np.concatenate([p**j for j in range(1, self.order + 1)], axis=-1)

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient in the probabilities."""
        compared = _compared(probabilities)
        p = probabilities[..., compared]
        each = pull.reshape(*pull.shape[:-1], self.order, -1)
        out = np.zeros_like(probabilities)
        out[..., compared] = sum(
            j * p ** (j - 1) * each[..., j - 1, :] for j in range(1, self.order + 1)
        )
        return out

    def among(self, truth: FloatArray) -> FloatArray:
        """Every row counts."""
        return np.ones_like(np.tile(truth[..., _compared(truth)], self.order))


@dataclass(frozen=True, kw_only=True)
class OwnFunction:
    """A fairness function of your own.

    Parameters
    ----------
    h : callable
        ``h(probabilities, truth)`` with both (n, n_classes), truth one-hot; returns (n,) or (n, m)
        in floats. The value of a row may read that row alone.
    derivative : callable, optional
        ``derivative(probabilities, truth)``: gradient of h, (n, n_classes) or (n, m, n_classes).
        Default: central differences, which need ``2 n_classes`` calls of h and are good to ten
        digits.
    on_decisions : bool, default False
        Measure the violation on decisions (probabilities 0 and 1) instead of on probabilities.
    name : str
        What a report calls it.

    Examples
    --------
    The expected squared error shall be the same in each group:

    >>> brier = OwnFunction(h=lambda p, truth: ((p - truth) ** 2).sum(axis=1), name="Brier parity")
    >>> worst_violation(brier, [[0.0, 1.0], [0.5, 0.5]], [1, 1], ["a", "b"])
    0.25
    """

    h: Callable[[FloatArray, FloatArray], Any]
    derivative: Callable[[FloatArray, FloatArray], Any] | None = None
    on_decisions: bool = False
    name: str = "a function of one's own"

    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.h):
            raise TypeError(
                f"h must be a function of probabilities and true classes, got {self.h!r}. Write "
                f"for example h=lambda probabilities, truth: probabilities[:, 1]."
            )

    def values(self, probabilities: FloatArray, truth: FloatArray) -> FloatArray:
        """Return h, checked: one row of finite numbers for each row."""
        p, t = (
            probabilities.reshape(-1, probabilities.shape[-1]),
            truth.reshape(-1, probabilities.shape[-1]),
        )
        found = np.asarray(self.h(p, t), dtype=np.float64)
        if found.ndim not in (1, 2) or len(found) != len(p) or not np.isfinite(found).all():
            raise ValueError(
                f"h must return one finite number, or m of them, for each of {len(p)} rows, got "
                f"shape {found.shape}. Return an array of shape (n,) or (n, m)."
            )
        shaped: FloatArray = found.reshape(*probabilities.shape[:-1], -1)
        return shaped

    def gradient(
        self, probabilities: FloatArray, truth: FloatArray, pull: FloatArray
    ) -> FloatArray:
        """Return the gradient in the probabilities, by ``derivative`` or by differences."""
        n_classes = probabilities.shape[-1]
        p = np.asarray(probabilities, dtype=np.float64).reshape(-1, n_classes)
        t, weight = truth.reshape(-1, n_classes), pull.reshape(len(p), -1)
        if self.derivative is not None:
            told = np.asarray(self.derivative(p, t), dtype=np.float64)
            each = told.reshape(len(p), -1, n_classes)
            out: FloatArray = (weight[:, :, None] * each).sum(axis=1)
        else:
            out = np.empty((len(p), n_classes))
            for k in range(n_classes):
                # Rows are independent, so one nudge of a column is a nudge of every row.
                nudge = np.zeros(n_classes)
                nudge[k] = _NUDGE
                rise = self.values(p + nudge, t) - self.values(p - nudge, t)
                out[:, k] = (weight * rise).sum(axis=1) / (2.0 * _NUDGE)
        return out.reshape(probabilities.shape)

    def among(self, truth: FloatArray) -> FloatArray:
        """Every row counts."""
        n_classes = truth.shape[-1]
        once = np.full((1, n_classes), 1.0 / n_classes)
        return np.ones((*truth.shape[:-1], self.values(once, once).shape[-1]))


FUNCTIONS: Final[Mapping[str, type[Any]]] = {
    kind.name: kind
    for kind in (
        DemographicParityFunction,
        EqualizedOddsFunction,
        ErrorParityFunction,
        MomentsFunction,
    )
}
"""By the names that settings and files use."""


def function_named(notion: str | FairnessFunction) -> FairnessFunction:
    """Return the fairness function that a word stands for; a function is returned as it is.

    Raises
    ------
    ValueError
        For a word that is none, with the nearest, or for a notion that has no h.
    """
    if isinstance(notion, str):
        made: FairnessFunction = FUNCTIONS[_checks.one_of("notion", notion, FUNCTIONS)]()
        return made
    if isinstance(notion, type) or not all(
        hasattr(notion, name) for name in ("values", "gradient", "among", "on_decisions")
    ):
        raise ValueError(
            f"notion must be one of {', '.join(map(repr, FUNCTIONS))}, or a fairness function; "
            f"got {notion!r}, which has no h to train under. Write your own as OwnFunction(h=...)."
        )
    return notion


def reads_labels(function: FairnessFunction) -> bool:
    """Whether a fairness function reads true classes; one that does not say so might."""
    return bool(getattr(function, "needs_labels", True))


def violations(
    function: FairnessFunction, probabilities: ArrayLike, labels: ArrayLike, groups: ArrayLike
) -> FloatArray:
    """Return ``|E[h | A = a] - E[h]|`` for each group a (sorted) and each h, (n_groups, m).

    Parameters
    ----------
    function : FairnessFunction
    probabilities : array-like of float, shape (n, n_classes)
        Read as decisions where the function is about decisions.
    labels : array-like of int, shape (n,)
        True classes, codes.
    groups : array-like, shape (n,)

    Returns
    -------
    ndarray of float64
        NaN where a group has no row of the kind that a function counts.
    """
    p = _checks.matrix("probabilities", probabilities)
    y = _checks.codes("labels", labels, p.shape[1])
    z = np.asarray(groups)
    _checks.same_length(probabilities=p, labels=y, groups=z)
    truth = np.eye(p.shape[1])[y]
    h = function.values(decided(p) if function.on_decisions else p, truth)
    counts = function.among(truth)
    known = np.unique(z)
    out = np.full((len(known), h.shape[1]), np.nan)
    for j in range(h.shape[1]):
        everybody = counts[:, j] > 0
        for a, name in enumerate(known):
            own = everybody & (z == name)
            if own.any():
                out[a, j] = abs(h[own, j].mean() - h[everybody, j].mean())
    return out


def worst_violation(
    function: FairnessFunction, probabilities: ArrayLike, labels: ArrayLike, groups: ArrayLike
) -> float:
    """Return the fairness violation of SF-PATE, the largest of :func:`violations`; 0 is best.

    For decisions it is the gap to ``"overall"`` of ``evenhand.fairness.demographic_parity``,
    ``equalized_odds`` and ``error_parity``.
    """
    found = violations(function, probabilities, labels, groups)
    return float(np.nanmax(found)) if np.isfinite(found).any() else 0.0


def score_distance(scores: ArrayLike, groups: ArrayLike, *, reference: str = "overall") -> float:
    """Return the largest Wasserstein distance between laws of scores; 0 is best.

    Parameters
    ----------
    scores : array-like of float, shape (n,)
        Of one class, finite.
    groups : array-like, shape (n,)
    reference : {"overall", "rest", "pairwise"}
        What the law of a group is compared with: everybody, all others, each other group.

    Examples
    --------
    >>> score_distance([0.25, 0.5, 0.75, 1.0], ["a", "a", "b", "b"], reference="pairwise")
    0.5
    """
    _checks.one_of("reference", reference, ("overall", "rest", "pairwise"))
    s, z = np.asarray(scores, dtype=np.float64), np.asarray(groups)
    _checks.same_length(scores=s, groups=z)
    parts = {name: s[z == name] for name in np.unique(z)}
    if len(parts) < 2:
        return 0.0
    worst = 0.0
    for name, own in parts.items():
        if reference == "pairwise":
            others = [part for other, part in parts.items() if other != name]
        else:
            others = [s if reference == "overall" else s[z != name]]
        worst = max(worst, *(float(wasserstein_distance(own, other)) for other in others))
    return worst


def _compared(probabilities: FloatArray) -> slice:
    """With two classes one probability says all."""
    return slice(1, 2) if probabilities.shape[-1] == 2 else slice(0, None)

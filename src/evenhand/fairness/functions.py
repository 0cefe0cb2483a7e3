"""Means of functions h between groups: what SF-PATE compares with the whole population.

A model is alpha-fair for h if ``|E[h | A = a] - E[h]| <= alpha`` for every group a (SF-PATE,
Definition 1). h reads the probabilities that a model gives to the classes of one row, and the row's
true class; a notion may have several, and take the mean of each among some rows only. Every notion
has its h; one of your own needs no privacy work and no gradient (:class:`FunctionParity`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._frames import refuse_other_order
from evenhand._probabilities import decided
from evenhand.fairness.notion import Notion
from evenhand.typing import ArrayLike, FloatArray

_NUDGE: Final = 1e-5  # for central differences: the error is of order 1e-10


@dataclass(frozen=True, kw_only=True)
class FunctionParity(Notion):
    """Parity of the mean of a function h of your own; SF-PATE can train for it.

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``; the margin is in the units of h.
    h : callable
        ``h(probabilities, truth)`` with both (n, n_classes), truth one-hot; returns (n,) or (n, m)
        in floats. The value of a row may read that row alone.
    derivative : callable, optional
        ``derivative(probabilities, truth)``: gradient of h, (n, n_classes) or (n, m, n_classes).
        Default: central differences, which need ``2 n_classes`` calls of h and are good to ten
        digits.
    on_decisions : bool, default False
        Measure the violation on decisions (probabilities 0 and 1) instead of on probabilities.
    title : str
        What a report calls it.

    Examples
    --------
    The expected squared error shall be the same in each group:

    >>> brier = FunctionParity(
    ...     margin=0.1, h=lambda p, truth: ((p - truth) ** 2).sum(axis=1), title="Brier parity"
    ... )
    >>> worst_violation(brier, [[0.0, 1.0], [0.5, 0.5]], [1, 1], ["a", "b"])
    0.25
    """

    h: Callable[[FloatArray, FloatArray], Any]
    derivative: Callable[[FloatArray, FloatArray], Any] | None = None
    on_decisions: bool = False
    title: str = "a function of one's own"

    name: ClassVar[str] = "function-parity"
    words: ClassVar[str] = "the mean of a function of a prediction and its true class"

    def __post_init__(self) -> None:
        super().__post_init__()
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
            given = np.asarray(self.derivative(p, t), dtype=np.float64)
            each = given.reshape(len(p), -1, n_classes)
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


def violations(
    notion: Notion, probabilities: ArrayLike, labels: ArrayLike, groups: ArrayLike
) -> FloatArray:
    """Return ``|E[h | A = a] - E[h]|`` for each group a (sorted) and each h, (n_groups, m).

    Parameters
    ----------
    notion : Notion
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
    refuse_other_order(probabilities=probabilities, labels=labels, groups=groups)
    p = _checks.matrix("probabilities", probabilities)
    y = _checks.codes("labels", labels, p.shape[1])
    z = np.asarray(groups)
    _checks.same_length(probabilities=p, labels=y, groups=z)
    truth = np.eye(p.shape[1])[y]
    h = notion.values(decided(p) if notion.on_decisions else p, truth)
    counts = notion.among(truth)
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
    notion: Notion, probabilities: ArrayLike, labels: ArrayLike, groups: ArrayLike
) -> float:
    """Return the fairness violation of SF-PATE, the largest of :func:`violations`; 0 is best.

    For a notion of decisions it is the gap of ``evenhand.fairness.gap_of`` to ``"overall"``.
    """
    found = violations(notion, probabilities, labels, groups)
    return float(np.nanmax(found)) if np.isfinite(found).any() else 0.0

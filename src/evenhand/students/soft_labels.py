"""Soft labels: the chances of classes that released counts give rows, for a student to learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evenhand.students.constrained import DEFAULT_C
from evenhand.students.objective import LabelLoss, ShareLoss
from evenhand.typing import Array, FloatArray
from evenhand.voting import Answers, Shares

DRAWN_AS: Final = 1000.0
"""Real rows that all drawn ones weigh as: what little noisy counts know of how rows are spread."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SoftLabels:
    """Rows with chances of labels that a student learns beside answers, by released counts."""

    X: Array
    """Encoded rows. Shape (n, n_features)."""
    chances: FloatArray
    """Of their classes; each row sums to 1. Shape (n, n_classes)."""
    parts: FloatArray
    """Of what they weigh together, by row; they sum to 1. Shape (n,)."""
    weight: float
    """What all of them weigh in the loss beside all answers, greater than 0."""

    @classmethod
    def of(cls, X: Array, chances: FloatArray, weight: float) -> SoftLabels:
        """Return rows that weigh the same."""
        return cls(X=X, chances=chances, parts=np.full(len(X), 1.0 / len(X)), weight=weight)

    def with_rows(self, X: Array, chances: FloatArray) -> SoftLabels:
        """Return the same beside real rows; its own weigh as ``DRAWN_AS`` of those."""
        parts = np.concatenate([np.ones(len(X)), DRAWN_AS * self.parts])
        return replace(
            self,
            X=np.concatenate([X, self.X]),
            chances=np.concatenate([chances, self.chances]),
            parts=parts / parts.sum(),
        )

    def joined(self, X: Array, answers: Answers | Shares) -> tuple[Array, LabelLoss | ShareLoss]:
        """Return all rows, and the loss on the answers and on these chances.

        Beside shares chances are shares whose variance brings their precision to ``weight`` times
        that of the answers. Beside released labels, which are sure of their class, they weigh
        ``weight`` times as much as those.
        """
        X, n = np.concatenate([X, self.X]), len(X)
        if isinstance(answers, Answers):
            rows = np.flatnonzero(answers.answered)
            return X, LabelLoss(
                labels=np.concatenate([np.eye(answers.n_classes)[answers.labels], self.chances]),
                rows=np.concatenate([rows, np.arange(n, len(X))]),
                n_classes=answers.n_classes,
                C=DEFAULT_C,
                weights=np.concatenate([np.ones(len(rows)), self.weight * len(rows) * self.parts]),
            )
        precision = self.weight * float((1.0 / answers.variance).sum()) * self.parts
        return X, ShareLoss(
            shares=np.concatenate([answers.shares, self.chances]),
            variance=np.concatenate([answers.variance, 1.0 / precision]),
        )

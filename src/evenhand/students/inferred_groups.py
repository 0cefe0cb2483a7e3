"""A rule that never reads the group: a student's scores, moved by how probable each group is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.students.constrained import fit_linear
from evenhand.students.objective import LabelLoss
from evenhand.typing import Array, FloatArray, IntArray

C_OF_GROUPS: Final = 0.1
"""Inverse ridge of the model of the groups (chosen on Bank, Credit, ACS-Income, Parkinsons)."""

SCALE: Final = 3.0
"""Of the probabilities of groups as features, so that the ridge of the student hardly weighs."""

SUREST: Final = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class InferredGroups:
    """What a rule that never reads the group may go by: scores, and probabilities of groups.

    A student under a margin has as many weights as there are features, and can keep the margin on
    the rows of its fit by what is chance there. On these features it has about as many as there
    are groups. It loses little: among all classifiers that do not read the group, the best one
    within a margin is a function of ``P(y | x)`` and ``P(z | x)`` alone, and is linear in
    ``P(z | x)`` (Xian and Zhao 2024, Theorem 1; for demographic parity, two classes).

    Parameters
    ----------
    scores : fitted classifier
        The student without a margin, on class codes.
    groups : fitted classifier
        A softmax regression of the group, on group codes.
    by_class : bool
        Whether a group's probability counts for each class by itself, as for notions that are
        about records of one true class.

    Privacy
    -------
    Free: made from released answers, and from public rows and their groups (post-processing).
    """

    scores: Any
    groups: Any
    by_class: bool

    @classmethod
    def of(
        cls, scores: Any, rows: FloatArray, groups: IntArray, *, by_class: bool
    ) -> InferredGroups:
        """Fit the model of the groups on rows whose groups ``groups`` are public."""
        codes, own = np.unique(groups, return_inverse=True)
        loss = LabelLoss(
            labels=own.astype(np.int64),
            rows=np.arange(len(rows)),
            n_classes=len(codes),
            C=C_OF_GROUPS,
        )
        found = fit_linear(rows, loss, None, len(codes)).classifier(len(codes))
        found.classes_ = codes.astype(np.int64)
        return cls(scores=scores, groups=found, by_class=by_class)

    def transform(self, X: Array) -> FloatArray:
        """Return the features of rows, (n, n_features): scores, then probabilities of groups."""
        p = np.clip(self.scores.predict_proba(X), SUREST, 1.0)
        z = SCALE * self.groups.predict_proba(X)[:, 1:]
        scores = np.log(p[:, 1:]) - np.log(p[:, :1])
        parts = [scores, z]
        if self.by_class:
            parts += [z * p[:, [k]] for k in range(1, p.shape[1])]
        out: FloatArray = np.concatenate(parts, axis=1)
        return out


class BlindRule:
    """A classifier that moves a student's scores by how probable each group is.

    Parameters
    ----------
    features : InferredGroups
    head : LogisticRegression
        Fitted on ``features.transform(X)``.

    Attributes
    ----------
    classes_ : ndarray of int64
    """

    def __init__(self, features: InferredGroups, head: LogisticRegression) -> None:
        self.features, self.head = features, head
        self.classes_ = head.classes_

    def predict(self, X: Array) -> IntArray:
        """Return class codes, (n,); no group is read."""
        out: IntArray = self.head.predict(self.features.transform(X))
        return out

    def predict_proba(self, X: Array) -> FloatArray:
        """Return probabilities of the classes, (n, n_classes)."""
        out: FloatArray = self.head.predict_proba(self.features.transform(X))
        return out

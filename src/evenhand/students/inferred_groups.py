"""What a rule that never reads the group may go by: scores, and how probable each group is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.students.constrained import fit_linear, linear_model
from evenhand.students.objective import LabelLoss
from evenhand.students.within import Within
from evenhand.typing import Array, FloatArray, IntArray

RIDGES: Final = (0.001, 0.01, 0.1, 1.0)
"""Inverse ridges of the model of the groups that are tried."""

FOLDS: Final = 5
"""Parts of the rows; each is read by models that were fitted on the others."""

SEED: Final = 0
"""Of the parts, and of the draws of a randomised rule: public, so that a sweep and a fit agree."""

SUREST: Final = 1e-9

UNBOUND: Final = 10.0
"""Inverse ridge where there are as few weights as classes."""

FARTHEST: Final = 8.0
"""Log-odds beyond it are as good as sure."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InferredGroups:
    """Probabilities of the classes and of the groups, for rows whose group nobody reads.

    Among all classifiers that do not read the group, the best one within a margin is a function of
    ``P(y | x)`` and ``P(z | x)`` (of ``P(z | x, y)``, where the margin is about records of one true
    class) and is linear in the latter (Xian and Zhao 2024, Theorem 1).

    Privacy
    -------
    Free: made from a released model, and from public rows and what is public of them
    (post-processing).
    """

    scores: Any
    """Its ``predict_proba`` is ``P(y | x)``; its ``classes_`` are class codes."""
    groups: Any
    """Of the group, on group codes; ``by_class`` of the cell ``group * n_classes + class``."""
    n_groups: int
    n_classes: int
    by_class: bool
    """Whether a group's probability is one among the records of each class."""

    @classmethod
    def of(
        cls,
        scores: Any,
        rows: FloatArray,
        within: Within,
        n_classes: int,
        *,
        groups: GroupModel,
    ) -> InferredGroups:
        """Fit the model of the groups on public rows.

        Parameters
        ----------
        scores : fitted classifier
        rows : ndarray of float64, shape (n, n_features)
        within : Within
            The groups of these rows and, for a notion that needs them, their true classes.
        n_classes : int
        groups : function
            ``groups(rows, codes)`` fits a classifier: ``SoftmaxRegression(C)``, or your own.
        """
        return cls(
            scores=scores,
            groups=groups(rows, codes_of(within, n_classes)),
            n_groups=within.n_groups,
            n_classes=n_classes,
            by_class=within.notion.needs_labels,
        )

    @property
    def n_cells(self) -> int:
        """How many cells a row may be in: the groups, each for every class ``by_class``."""
        return self.n_groups * (self.n_classes if self.by_class else 1)

    def classes_of(self, X: Array) -> FloatArray:
        """Return ``P(y | x)``, (n, n_classes)."""
        p = np.zeros((len(X), self.n_classes))
        p[:, np.asarray(self.scores.classes_, dtype=np.int64)] = self.scores.predict_proba(X)
        return p

    def cells_of(self, X: Array, p: FloatArray) -> FloatArray:
        """Return the probability that a row is in each cell, (n, n_cells).

        ``by_class`` that is ``P(y | x) P(z | x, y)``, the one by the scores ``p``, the other by the
        model of the groups.
        """
        q = np.zeros((len(X), self.n_cells))
        q[:, np.asarray(self.groups.classes_, dtype=np.int64)] = self.groups.predict_proba(X)
        if not self.by_class:
            return q
        joint = np.maximum(q, SUREST).reshape(len(X), self.n_groups, self.n_classes)
        joint *= (p / joint.sum(axis=1))[:, None, :]
        return joint.reshape(q.shape)


class Recalibrated:
    """A classifier whose probabilities follow the labels of public rows.

    Parameters
    ----------
    scores : fitted classifier
        On class codes, of all classes.
    head : LogisticRegression
        Reads the log-odds of its probabilities and their squares (chosen on Bank and German: with
        the squares the error of a logistic regression fell by .0015 on Bank, without them it did
        not).

    Attributes
    ----------
    classes_ : ndarray of int64
    """

    def __init__(self, scores: Any, head: LogisticRegression) -> None:
        self.scores, self.head = scores, head
        self.classes_ = head.classes_

    @classmethod
    def if_better(
        cls,
        scores: Any,
        rows: FloatArray,
        labels: IntArray,
        n_classes: int,
        *,
        decides: bool = False,
    ) -> Any:
        """Return ``scores``, or the same recalibrated where held-out rows say that this is better.

        Better is a log-loss that is smaller by more than its standard error, on rows that the head
        was not fitted on. Where a class has no label, the scores stay as they are.

        ``decides`` says that the probabilities are read for the error of a decision alone. Of two
        classes the odds at which both are as probable are then moved to where the rows have the
        least error, if the error on held-out rows falls by more than its standard error.
        """
        if len(np.unique(labels)) < n_classes or len(scores.classes_) < n_classes:
            return scores
        p, gained = np.maximum(scores.predict_proba(rows), SUREST), np.empty(len(rows))
        read = _shape(p)
        for others, out in folds(labels):
            own = np.full((len(out), n_classes), SUREST)
            head = SoftmaxRegression(UNBOUND)(read[others], labels[others])
            own[:, head.classes_] = np.maximum(head.predict_proba(read[out]), SUREST)
            right = np.arange(len(out)), labels[out]
            gained[out] = np.log(own[right]) - np.log(p[out][right])
        head = SoftmaxRegression(UNBOUND)(read, labels) if _surely(gained) else None
        if decides and n_classes == 2:
            odds = read[:, 0] if head is None else head.decision_function(read)
            if cut := _moved(odds, labels):
                head = head or _unmoved()
                head.intercept_ = head.intercept_ - cut
        return scores if head is None else cls(scores, head)

    def predict(self, X: Array) -> IntArray:
        """Return class codes, (n,)."""
        out: IntArray = self.head.predict(_shape(self.scores.predict_proba(X)))
        return out

    def predict_proba(self, X: Array) -> FloatArray:
        """Return probabilities of the classes, (n, n_classes)."""
        out: FloatArray = self.head.predict_proba(_shape(self.scores.predict_proba(X)))
        return out


def _shape(p: FloatArray) -> FloatArray:
    """Return log-odds against the first class, and their squares."""
    logs = np.log(np.clip(p, SUREST, 1.0))
    odds = np.clip(logs[:, 1:] - logs[:, :1], -FARTHEST, FARTHEST)
    out: FloatArray = np.concatenate([odds, odds**2 / 4], axis=1)
    return out


def _surely(gained: FloatArray) -> bool:
    """Whether a mean is above 0 by more than its standard error."""
    return bool(gained.mean() > gained.std() / np.sqrt(len(gained)))


def _moved(odds: FloatArray, labels: IntArray) -> float:
    """Return the log-odds above which class 1 is decided; 0 where moving them may not pay."""
    gained = np.empty(len(odds))
    for others, out in folds(labels):
        moved = odds[out] > _best_cut(odds[others], labels[others])
        gained[out] = ((odds[out] > 0) != labels[out]) * 1.0 - (moved != labels[out])
    return _best_cut(odds, labels) if _surely(gained) else 0.0


def _best_cut(odds: FloatArray, labels: IntArray) -> float:
    """Return a cut with the least errors where class 1 is decided above it."""
    order = np.argsort(odds, kind="stable")
    rising = odds[order]
    wrong = np.cumsum(2 * labels[order] - 1)[:-1]  # at a cut after each, beside a constant
    wrong = np.where(np.diff(rising) > 0, wrong, len(odds))
    if not len(wrong) or wrong.min() == len(odds):
        return 0.0
    at = int(wrong.argmin())
    return float(rising[at] + rising[at + 1]) / 2


def _unmoved() -> LogisticRegression:
    """Return the head that leaves probabilities of two classes as they are."""
    return linear_model(np.array([[1.0, 0.0]]), np.zeros(1), np.arange(2))


GroupModel = Callable[[FloatArray, IntArray], Any]
"""Fits a classifier of codes; its ``classes_`` are those that occur."""


@dataclass(frozen=True)
class SoftmaxRegression:
    """A softmax regression of codes, with the inverse ridge ``C``."""

    C: float

    def __call__(self, rows: FloatArray, codes: IntArray) -> LogisticRegression:
        """Fit it; its ``classes_`` are the codes that occur."""
        classes, own = np.unique(codes, return_inverse=True)
        loss = LabelLoss(
            labels=own.astype(np.int64),
            rows=np.arange(len(rows)),
            n_classes=len(classes),
            C=self.C,
        )
        found = fit_linear(rows, loss, None).classifier(len(classes))
        found.classes_ = classes.astype(np.int64)
        return found

    @classmethod
    def chosen(cls, rows: FloatArray, within: Within, n_classes: int) -> SoftmaxRegression:
        """Choose the ridge by the log-loss on rows that were held out."""
        codes, losses = codes_of(within, n_classes), np.zeros(len(RIDGES))
        for others, out in folds(within.groups):
            for i, C in enumerate(RIDGES):
                model = cls(C)(rows[others], codes[others])
                q = np.full((len(out), codes.max() + 1), SUREST)
                q[:, model.classes_] = np.maximum(model.predict_proba(rows[out]), SUREST)
                losses[i] -= np.log(q[np.arange(len(out)), codes[out]]).sum()
        return cls(RIDGES[int(losses.argmin())])


def codes_of(within: Within, n_classes: int) -> IntArray:
    """Return the cell of each row: its group or, where true classes matter, that and its class."""
    if not within.notion.needs_labels:
        return within.groups
    assert within.labels is not None
    out: IntArray = within.groups * n_classes + within.labels.astype(np.int64)
    return out


def folds(groups: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Deal the rows of each group to ``FOLDS`` parts; yield the others and the rows of each."""
    part = np.empty(len(groups), dtype=np.int64)
    draws = np.random.default_rng(SEED)
    first = 0  # so that small groups do not all begin with the same part
    for z in np.unique(groups):
        own = draws.permutation(np.flatnonzero(groups == z))
        part[own] = (first + np.arange(len(own))) % FOLDS
        first += len(own)
    for k in range(FOLDS):
        yield np.flatnonzero(part != k), np.flatnonzero(part == k)

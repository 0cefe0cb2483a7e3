"""The students of SF-PATE: a linear one or a network, under a constraint or after noisy votes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np
from scipy.special import softmax

from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.estimators.sf_pate.groups import QueriedRows, one_hot_classes
from evenhand.students.constrained import LinearFit
from evenhand.students.lagrangian import Constraint, fit_lagrangian
from evenhand.students.network import Layers, TrainedStudent
from evenhand.students.objective import LabelLoss, ShareLoss
from evenhand.students.proximal import ProximalLoss
from evenhand.typing import FloatArray, IntArray

C: Final = 1.0
"""Inverse ridge of theta* and of a linear student: labels are true, and many."""

TINY: Final = 1e-30
"""The least probability whose logarithm is taken."""


class LabelStudent(Protocol):
    """A student that knows theta*, the model of public features and labels."""

    @property
    def probabilities(self) -> FloatArray:
        """Probabilities of the classes that theta* gives to the rows, (n, n_classes)."""

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, pull: float, step: float
    ) -> tuple[Any, float]:
        """Return the classifier under the constraint, near theta*, and its violation."""


def label_student(
    student: TrainedStudent | None, people: PeopleInputs, rng: np.random.Generator
) -> LabelStudent:
    """Train theta*."""
    if student is None:
        return _Linear(people)
    return _Network(student, people, rng.spawn(1)[0])


class VoteStudent(Protocol):
    """A student of the noisy vote, near theta* if it may know it (problem 5)."""

    @property
    def probabilities(self) -> FloatArray:
        """Probabilities of the classes that it gives to the rows without a constraint."""

    def free(self, rng: np.random.Generator) -> Any:
        """Return the classifier without a constraint."""

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, step: float
    ) -> tuple[Any, float]:
        """Return the classifier under the constraint, and its violation."""


def vote_student(
    student: TrainedStudent | None,
    people: PeopleInputs,
    queried: QueriedRows,
    rng: np.random.Generator,
    *,
    pull: float,
) -> VoteStudent:
    """Train a student of the noisy vote; without a pull, no class label is read."""
    linear = _LinearOnVotes(people, queried, pull)
    if student is None:
        return linear
    return _NetworkOnVotes(student, people, linear, rng.spawn(1)[0])


def student_of_winners(
    student: TrainedStudent | None,
    people: PeopleInputs,
    queried: QueriedRows,
    rng: np.random.Generator,
    *,
    pull: float,
) -> Any:
    """Return the student of problem (5) as printed: of the class with the largest noisy share.

    theta* is the same model of the queried rows with their true labels, and lambda weighs the
    squared norm of ``theta - theta*``. Without a pull no class label is read.
    """
    X, n_classes = people.X_encoded, people.data.n_classes
    winner = queried.shares.shares.argmax(axis=1)
    if student is None:
        return _linear_of_winners(X, people.data.y_private, queried.rows, winner, n_classes, pull)
    rows, one_hot = X[queried.rows], np.eye(n_classes)
    truth = one_hot[people.data.y_private[queried.rows]] if pull else None
    start = None if truth is None else student.free(rows, truth, rng.spawn(1)[0])
    layers = student.near(rows, one_hot[winner], rng.spawn(1)[0], start=start, pull=pull)
    return student.classifier(layers, n_classes)


def _linear_of_winners(
    X: FloatArray, y: IntArray, rows: IntArray, winner: IntArray, n_classes: int, pull: float
) -> Any:
    """Do so by logistic regression."""

    def loss(labels: IntArray) -> LabelLoss:
        return LabelLoss(labels=labels, rows=rows, n_classes=n_classes, C=C)

    anchor = None
    if pull:
        first = fit_lagrangian(X, loss(y), None)
        anchor = np.column_stack([first.coef, first.intercept])
    noisy = np.zeros(len(X), dtype=np.int64)
    noisy[rows] = winner
    return fit_lagrangian(X, loss(noisy), None, anchor=anchor, pull=pull).classifier(n_classes)


class _Linear:
    """Logistic regression by the Lagrangian dual."""

    def __init__(self, people: PeopleInputs) -> None:
        y, self._n_classes = people.data.y_private, people.data.n_classes
        self._X = people.X_encoded
        self._loss = LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=self._n_classes, C=C)
        self._fit = fit_lagrangian(self._X, self._loss, None)
        self._free = self._fit.classifier(self._n_classes)
        self.weights: FloatArray = np.column_stack([self._fit.coef, self._fit.intercept])

    @property
    def probabilities(self) -> FloatArray:
        probabilities: FloatArray = self._free.predict_proba(self._X)
        return probabilities

    @property
    def scores(self) -> FloatArray:
        """Scores of the rows, (n, n_columns)."""
        return scores_of(self._fit, self._X)

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, pull: float, step: float
    ) -> tuple[Any, float]:
        fit = fit_lagrangian(
            self._X, self._loss, constraint, anchor=self.weights, pull=pull, step=step
        )
        return fit.classifier(self._n_classes), fit.gap


class _LinearOnVotes:
    """Logistic regression on noisy shares, pulled to what theta* says of the rows."""

    def __init__(self, people: PeopleInputs, queried: QueriedRows, pull: float) -> None:
        self._X, self._n_classes = people.X_encoded, people.data.n_classes
        answers = ShareLoss(shares=queried.shares.shares, variance=queried.shares.variance)
        self.first = _Linear(people) if pull else None
        scores = None if self.first is None else self.first.scores
        self._loss = ProximalLoss(answers=answers, queried=queried.rows, first=scores, pull=pull)
        start = None if self.first is None else self.first.weights
        self._free = fit_lagrangian(self._X, self._loss, None, anchor=start)

    @property
    def probabilities(self) -> FloatArray:
        probabilities: FloatArray = self.free(None).predict_proba(self._X)
        return probabilities

    @property
    def corrected(self) -> FloatArray:
        """How far the votes move the scores from those of theta*, by class."""
        assert self.first is not None
        return _by_class(scores_of(self._free, self._X) - self.first.scores)

    def free(self, rng: np.random.Generator | None) -> Any:
        return self._free.classifier(self._n_classes)

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, step: float
    ) -> tuple[Any, float]:
        start = np.column_stack([self._free.coef, self._free.intercept])
        fit = fit_lagrangian(self._X, self._loss, constraint, anchor=start, step=step)
        return fit.classifier(self._n_classes), fit.gap


class _NetworkOnVotes:
    """A network that starts at its own theta* and is moved as the votes move the linear one.

    It would overfit to the noise of single rows, and a regression that knows the noise does
    not.
    """

    def __init__(
        self,
        student: TrainedStudent,
        people: PeopleInputs,
        linear: _LinearOnVotes,
        rng: np.random.Generator,
    ) -> None:
        self._student, self._X, self._n_classes = student, people.X_encoded, people.data.n_classes
        self._start: Layers | None = None
        if linear.first is None:
            self.probabilities: FloatArray = linear.probabilities
        else:
            first = _Network(student, people, rng)
            self._start = first.layers
            sure = np.log(np.maximum(first.probabilities, TINY))
            self.probabilities = softmax(sure + linear.corrected, axis=1)

    def free(self, rng: np.random.Generator) -> Any:
        return self._student.classifier(self._on_votes(rng), self._n_classes)

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, step: float
    ) -> tuple[Any, float]:
        start = self._on_votes(rng.spawn(1)[0]) if self._start is None else self._start
        layers, violation = self._student.under(
            self._X, self.probabilities, constraint, rng, start=start, pull=0.0
        )
        return self._student.classifier(layers, self._n_classes), violation

    def _on_votes(self, rng: np.random.Generator) -> Any:
        return self._student.near(self._X, self.probabilities, rng, start=self._start, pull=0.0)


class _Network:
    """A network in PyTorch."""

    def __init__(
        self, student: TrainedStudent, people: PeopleInputs, rng: np.random.Generator
    ) -> None:
        self._student, self._X, self._truth = student, people.X_encoded, one_hot_classes(people)
        self.layers: Layers = student.free(self._X, self._truth, rng)

    @property
    def probabilities(self) -> FloatArray:
        return self._student.probabilities(self.layers, self._X)

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, pull: float, step: float
    ) -> tuple[Any, float]:
        X, truth = self._X, self._truth
        if constraint.rows is not None:  # D-bar of problem (2): the rows whose groups are known
            X, truth = X[constraint.rows], truth[constraint.rows]
            constraint = replace(constraint, rows=None)
        layers, violation = self._student.under(
            X, truth, constraint, rng, start=self.layers, pull=pull
        )
        return self._student.classifier(layers, truth.shape[1]), violation


def scores_of(fit: LinearFit, X: FloatArray) -> FloatArray:
    """Return the scores (n, n_columns) that a linear student gives to rows."""
    scores: FloatArray = X @ fit.coef.T + fit.intercept
    return scores


def _by_class(scores: FloatArray) -> FloatArray:
    """Return one score per class; a single one is that of class 1 against class 0."""
    if scores.shape[1] > 1:
        return scores
    return np.concatenate([np.zeros_like(scores), scores], axis=1)

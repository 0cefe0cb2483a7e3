"""The students of SF-PATE: a linear one or a network, under a constraint or after noisy votes."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np

from evenhand.estimators.attribute import PeopleInputs
from evenhand.estimators.sf_groups import Asked, one_hot_classes
from evenhand.students import (
    Constraint,
    LabelLoss,
    NetworkStudent,
    ShareLoss,
    fit_lagrangian,
    fit_student,
)
from evenhand.students.network import Layers
from evenhand.typing import FloatArray

C: Final = 1.0
"""Inverse ridge of theta* and of a linear student: labels are true, and many."""


class Started(Protocol):
    """A student that knows theta*, the model of public features and labels."""

    @property
    def chances(self) -> FloatArray:
        """Chances of the classes that theta* gives to the rows, (n, n_classes)."""

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, pull: float, step: float
    ) -> tuple[Any, float]:
        """Return the classifier under the constraint, near theta*, and its violation."""


def start_of(
    student: NetworkStudent | None, people: PeopleInputs, rng: np.random.Generator
) -> Started:
    """Train theta*."""
    if student is None:
        return _Linear(people)
    return _Network(student, people, rng.spawn(1)[0])


def learn_votes(
    student: NetworkStudent | None,
    people: PeopleInputs,
    asked: Asked,
    rng: np.random.Generator,
    *,
    pull: float,
) -> Any:
    """Return the classifier that follows the noisy vote, near theta* (problem 5)."""
    n_classes, own = people.data.n_classes, people.X_encoded[asked.rows]
    if student is None:
        told = ShareLoss(shares=asked.shares.shares, variance=asked.shares.variance)
        anchor = _Linear(people).weights if pull else None
        return fit_lagrangian(own, told, None, anchor=anchor, pull=pull).classifier(n_classes)
    start = _Network(student, people, rng.spawn(1)[0]).layers if pull else None
    # A network would learn the noise of single rows by heart: it follows what a regression that
    # knows the noise makes of them.
    smooth = fit_student(None, own, asked.shares).model.predict_proba(own)
    layers = student.near(own, smooth, rng.spawn(1)[0], start=start, pull=pull)
    return student.classifier(layers, n_classes)


class _Linear:
    """Logistic regression by the Lagrangian dual."""

    def __init__(self, people: PeopleInputs) -> None:
        y, self._n_classes = people.data.y_private, people.data.n_classes
        self._X = people.X_encoded
        self._loss = LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=self._n_classes, C=C)
        free = fit_lagrangian(self._X, self._loss, None)
        self._free = free.classifier(self._n_classes)
        self.weights: FloatArray = np.column_stack([free.coef, free.intercept])

    @property
    def chances(self) -> FloatArray:
        chances: FloatArray = self._free.predict_proba(self._X)
        return chances

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, pull: float, step: float
    ) -> tuple[Any, float]:
        fit = fit_lagrangian(
            self._X, self._loss, constraint, anchor=self.weights, pull=pull, step=step
        )
        return fit.classifier(self._n_classes), fit.gap


class _Network:
    """A network in PyTorch."""

    def __init__(
        self, student: NetworkStudent, people: PeopleInputs, rng: np.random.Generator
    ) -> None:
        self._student, self._X, self._truth = student, people.X_encoded, one_hot_classes(people)
        self.layers: Layers = student.free(self._X, self._truth, rng)

    @property
    def chances(self) -> FloatArray:
        return self._student.chances(self.layers, self._X)

    def under(
        self, constraint: Constraint, rng: np.random.Generator, *, pull: float, step: float
    ) -> tuple[Any, float]:
        layers, violation = self._student.under(
            self._X, self._truth, constraint, rng, start=self.layers, pull=pull
        )
        return self._student.classifier(layers, self._truth.shape[1]), violation

"""The last layer of a fitted student as linear weights, and the student with others in their place.

A student that is linear in its columns is its own last layer. Of a network it is the linear layer
that ends it; what this layer reads is a function of the row that stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.neural_network import MLPClassifier

from evenhand.students.constrained import linear_model
from evenhand.students.module import ModuleClassifier
from evenhand.typing import Array, FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LastLayer:
    """Linear weights, what they read, and how a student is made of others."""

    coef: FloatArray
    """One row for two classes (class 1 against class 0), else one per class. Shape (n_columns,
    n_features).
    """
    intercept: FloatArray
    """One number for each of these rows. Shape (n_columns,)."""
    reads: Callable[[Array], FloatArray]
    """From encoded rows (n, ...) to what the layer reads, (n, n_features)."""
    with_weights: Callable[[FloatArray, FloatArray], Any]
    """From such weights to the fitted student that has them; the given student stays as it is."""
    of_columns: bool = False
    """Whether it reads the encoded rows as they are."""

    def scaled(self, X: Array) -> LastLayer:
        """Return the same layer of features with mean 0 and variance 1 over some rows."""
        seen = self.reads(X)
        mean, scale = seen.mean(axis=0), seen.std(axis=0)
        scale = np.where(scale > 1e-6, scale, 1.0)

        def with_weights(coef: FloatArray, intercept: FloatArray) -> Any:
            plain = coef / scale
            return self.with_weights(plain, intercept - plain @ mean)

        return replace(
            self,
            coef=self.coef * scale,
            intercept=self.intercept + self.coef @ mean,
            reads=lambda rows: (self.reads(rows) - mean) / scale,
            with_weights=with_weights,
        )


def last_layer(student: Any) -> LastLayer | None:
    """Return the last layer of a fitted student; None of one that has no linear one.

    Raises
    ------
    ValueError
        If it is a module that does not end with a ``torch.nn.Linear``.
    """
    if isinstance(student, ModuleClassifier):
        return _of_module(student)
    if isinstance(student, MLPClassifier):
        return _of_layers(student)
    return _of_columns(student) if isinstance(student, LinearClassifierMixin) else None


def _of_columns(student: Any) -> LastLayer:
    return LastLayer(
        coef=student.coef_,
        intercept=student.intercept_,
        reads=lambda rows: rows,
        with_weights=lambda coef, intercept: linear_model(coef, intercept, student.classes_),
        of_columns=True,
    )


def _of_layers(student: MLPClassifier) -> LastLayer:
    def reads(rows: Array) -> FloatArray:
        from sklearn.neural_network._base import ACTIVATIONS

        out: FloatArray = np.asarray(rows, dtype=np.float64)
        for weight, bias in zip(student.coefs_[:-1], student.intercepts_[:-1], strict=True):
            out = out @ weight + bias
            ACTIVATIONS[student.activation](out)
        return out

    def with_weights(coef: FloatArray, intercept: FloatArray) -> Any:
        out = copy.copy(student)
        out.coefs_ = [*student.coefs_[:-1], np.ascontiguousarray(coef.T)]
        out.intercepts_ = [*student.intercepts_[:-1], intercept]
        return out

    return LastLayer(
        coef=student.coefs_[-1].T,
        intercept=student.intercepts_[-1],
        reads=reads,
        with_weights=with_weights,
    )


def _of_module(student: ModuleClassifier) -> LastLayer:
    from evenhand.learners.nets.module import read_by_last_layer, weights_of_last_layer

    coef, intercept = student.coef_, student.intercept_
    if not coef.size:  # the module's own
        coef, intercept = weights_of_last_layer(student.module_)
    if len(intercept) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]

    def with_weights(coef: FloatArray, intercept: FloatArray) -> Any:
        if len(intercept) == 1:
            coef, intercept = np.concatenate([0 * coef, coef]), np.append(0.0, intercept)
        out = ModuleClassifier.of(student.module, student.module_, coef, intercept)
        out.classes_ = student.classes_
        return out

    return LastLayer(
        coef=coef,
        intercept=intercept,
        reads=lambda rows: read_by_last_layer(student.module_, rows),
        with_weights=with_weights,
    )

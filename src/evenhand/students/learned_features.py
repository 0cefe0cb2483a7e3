"""A network as a student: its last layer is fitted as the linear student is, margin and all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand._torch import is_module
from evenhand.students.blind_rule import BlindRule
from evenhand.students.module import ModuleClassifier, ModuleStudent
from evenhand.students.network import NetworkStudent
from evenhand.typing import Array, FloatArray
from evenhand.voting import Answers, Shares

FEWEST_STEPS: Final = 200
"""Of training, at least: public rows are few, and so are the steps of an epoch."""


def as_network(student: Any) -> ModuleStudent | None:
    """Return a student that is a network: settings, a torch module or an architecture; or None."""
    if isinstance(student, ModuleStudent):
        return student
    if isinstance(student, NetworkStudent):
        from evenhand.learners.nets.architectures import Dense

        settings = student.get_params(deep=False)
        return ModuleStudent(Dense(hidden=tuple(settings.pop("hidden"))), **settings)
    if is_module(student) or hasattr(student, "build"):
        return ModuleStudent(student)
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class LearnedFeatures:
    """What the last layer of a trained network reads, scaled to mean 0 and variance 1.

    The student is the network with another last layer: the linear student on these features, which
    knows the noise of shares and is held within a margin by ``fit_linear``.

    Privacy
    -------
    Free: learned from released answers and public rows (post-processing).
    """

    student: ModuleStudent
    """What the network was made by."""
    module: Any
    """Trained; it ends with a ``torch.nn.Linear``."""
    mean: FloatArray
    """Of the features over the public rows. Shape (n_features,)."""
    scale: FloatArray
    """How wide they are over these rows. Shape (n_features,)."""

    @classmethod
    def of(
        cls,
        student: ModuleStudent,
        X_public: Array,
        answers: Answers | Shares,
        rng: np.random.Generator | None,
    ) -> LearnedFeatures:
        """Train the network on released answers, for at least ``FEWEST_STEPS``.

        Shares are moved into [0, 1] for this: beyond, what noise does to one row would be learned
        without end. The last layer, which is fitted anew, reads them as they are.
        """
        if isinstance(answers, Shares):
            rows, targets = X_public, np.clip(answers.shares, 1e-3, 1.0)
            targets = targets / targets.sum(axis=1, keepdims=True)
        else:
            rows = X_public[answers.answered]
            targets = np.eye(answers.n_classes)[answers.labels[answers.answered]]
        return cls.by_targets(student, rows, targets, rng, of=X_public)

    @classmethod
    def by_targets(
        cls,
        student: ModuleStudent,
        rows: Array,
        targets: FloatArray,
        rng: np.random.Generator | None,
        *,
        of: Array,
    ) -> LearnedFeatures:
        """Train the network on weights of the classes (n, n_classes), for ``FEWEST_STEPS``.

        The features are scaled over the public rows ``of``.
        """
        steps = math.ceil(len(rows) / student.batch_size)
        epochs = max(student.epochs, math.ceil(FEWEST_STEPS / steps))
        draws = np.random.default_rng(0) if rng is None else rng
        module = student._train(rows, targets, draws, epochs, None)
        from evenhand.learners.nets.module import read_by_last_layer

        read = read_by_last_layer(module, of)
        scale = read.std(axis=0)
        return cls(
            student=student,
            module=module,
            mean=read.mean(axis=0),
            scale=np.where(scale > 1e-6, scale, 1.0),
        )

    def transform(self, X: Array) -> FloatArray:
        """Return the features of rows, (n, n_features)."""
        from evenhand.learners.nets.module import read_by_last_layer

        out: FloatArray = (read_by_last_layer(self.module, X) - self.mean) / self.scale
        return out

    def classifier(self, head: Any) -> Any:
        """Return the network that ends with ``head``, a student of these features."""
        if isinstance(head, BlindRule):
            features = replace(
                head.features,
                scores=self.classifier(head.features.scores),
                groups=self.classifier(head.features.groups),
            )
            return BlindRule(features, head.weights, head.shares)
        if not isinstance(head, LogisticRegression):
            return head  # a constant
        coef = head.coef_ / self.scale
        intercept = head.intercept_ - coef @ self.mean
        if len(coef) == 1:  # one score, of class 1 against class 0
            coef, intercept = np.concatenate([0 * coef, coef]), np.append(0.0, intercept)
        return ModuleClassifier.of(self.student.module, self.module, coef, intercept)

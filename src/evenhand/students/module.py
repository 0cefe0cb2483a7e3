"""Any PyTorch module as a student, or as a teacher: a network of one's own, under a constraint."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin

from evenhand import _checks
from evenhand._random import as_generator
from evenhand._stored import stored
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.notion import Notion, require_reference
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.students.network import Descent, TrainedStudent
from evenhand.typing import ArrayLike, FloatArray, RandomState


@stored
@dataclass(eq=False, repr=False)
class ModuleStudent(TrainedStudent):
    """Settings of a student that is any torch module. Needs the extra ``torch``.

    Parameters
    ----------
    module : Architecture or torch.nn.Module
        Maps encoded rows (n, d) to scores (n, n_classes), without softmax. A torch module starts
        from the weights it has, an architecture (``Dense``, ``Convolutional``) from fresh ones.
    epochs, fair_epochs, batch_size, learning_rate, weight_decay, step, device
        As for ``NetworkStudent``.

    Notes
    -----
    ``save`` writes an architecture and its weights, and refuses a module of your own: what that is
    cannot be read back without running its code. Keep its weights by ``torch.save`` for yourself.
    """

    module: Any

    def probabilities(self, fitted: Any, X: FloatArray) -> FloatArray:
        """Return what the module makes of rows, as probabilities."""
        from evenhand.learners.nets.module import probabilities_of

        return probabilities_of(fitted, X)

    def classifier(self, fitted: Any, n_classes: int) -> Any:
        """Return the module with scikit-learn's manners."""
        return ModuleClassifier.of(self.module, fitted, *no_head(n_classes))

    def _train(
        self,
        X: FloatArray,
        targets: FloatArray,
        rng: np.random.Generator,
        epochs: int,
        regularizer: Regularizer | None,
    ) -> Any:
        # Here, not above: PyTorch is slow to import and only these students need it.
        from evenhand.learners.nets.module import ModuleLearner

        learner = ModuleLearner(module=self.module, **self.learner(regularizer, epochs))
        return learner.fit(X, targets, rng=rng)


@stored
@dataclass(eq=False, repr=False)
class ModuleClassifier(ClassifierMixin, Descent):  # type: ignore[misc]  # untyped bases
    """A torch module with scikit-learn's manners: each teacher may be one.

    ``SklearnTeachers(ModuleClassifier(module))`` are for groups;
    ``BlackBoxFairTeachers(ModuleClassifier(module, fairness=...))`` are fair classifiers.

    Parameters
    ----------
    module : Architecture or torch.nn.Module
        As for ``ModuleStudent``; a module is cloned with its weights, which are public.
    fairness : Notion, optional
        What shall be equal among the groups that ``fit`` is given, with ``reference="overall"``.
        Default: nothing.
    epochs, batch_size, learning_rate, weight_decay, step, device
        As for ``NetworkStudent``.
    random_state : int, Generator or None
        Of the order of rows, and of what the module draws.
    """

    module: Any
    _: KW_ONLY
    fairness: Notion | None = None
    random_state: RandomState = None

    @classmethod
    def of(
        cls, module: Any, trained: Any, coef: FloatArray, intercept: FloatArray
    ) -> ModuleClassifier:
        """Return a trained module as a classifier of class codes.

        Parameters
        ----------
        module : Architecture or torch.nn.Module
            What it was made by.
        trained : torch.nn.Module
        coef, intercept : ndarrays, shapes (n_classes, n_features), (n_classes,)
            Of another last layer, in place of the module's own; without features: its own.
        """
        model = cls(module)
        model.module_, model.coef_, model.intercept_ = trained, coef, intercept
        model.classes_ = np.arange(len(intercept))
        return model

    def fit(self, X: ArrayLike, y: ArrayLike, *, sensitive_features: Any = None) -> Self:
        """Train a copy of the module; under the constraint if there is a notion and groups."""
        from evenhand.learners.nets.module import ModuleLearner

        rows = _checks.rows("X", X)
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        regularizer = None
        if self.fairness is not None and sensitive_features is not None:
            groups = encode_groups(sensitive_features)
            regularizer = Regularizer(
                function=require_reference(self.fairness, "overall", "A module"),
                alpha=self.fairness.margin,
                weights=np.eye(groups.n_groups)[groups.codes],
                step=self.step,
            )
        learner = ModuleLearner(module=self.module, **self.learner(regularizer))
        targets = np.eye(len(self.classes_))[codes.reshape(-1)]
        self.module_ = learner.fit(rows, targets, rng=as_generator(self.random_state))
        self.coef_, self.intercept_ = no_head(len(self.classes_))
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes, (n, n_classes)."""
        from evenhand.learners.nets.module import probabilities_of

        rows = _checks.rows("X", X)
        if not self.coef_.size:
            return probabilities_of(self.module_, rows)
        out: FloatArray = softmax(self._scores(rows), axis=1)
        return out

    def predict(self, X: ArrayLike) -> Any:
        """Return the most likely classes."""
        if not self.coef_.size:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self.classes_[self._scores(_checks.rows("X", X)).argmax(axis=1)]

    def _scores(self, rows: Any) -> FloatArray:
        from evenhand.learners.nets.module import read_by_last_layer

        out: FloatArray = read_by_last_layer(self.module_, rows) @ self.coef_.T + self.intercept_
        return out


def no_head(n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights that stand for the last layer of the module itself."""
    return np.zeros((n_classes, 0)), np.zeros(n_classes)

"""A student that is a ReLU network: the same problems as the linear one's, in PyTorch."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.special import softmax
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import LabelBinarizer

from evenhand._display import Shown
from evenhand._stored import stored
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.students.constrained import MarginNotMet
from evenhand.students.lagrangian import Constraint
from evenhand.typing import Array, FloatArray

Layers: TypeAlias = Sequence[tuple[FloatArray, FloatArray]]
"""Weight (in, out) and bias (out,) of each layer; the last has one score per class."""

SMALLER: Final = 0.5
"""Part of the margin that is trained for where the whole did not do."""

TRIALS: Final = 3

CHUNK_ROWS: Final = 1024  # of rows that pass the layers together, so that they stay in the cache


@dataclass(eq=False, repr=False, kw_only=True)
class Descent(Shown):
    """How a network is trained: the arguments that students and classifiers share."""

    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 0.003
    weight_decay: float = 1e-4
    step: float = 3.0
    device: str = "cpu"

    def learner(self, regularizer: Regularizer | None, epochs: int | None = None) -> dict[str, Any]:
        """Return these arguments as those of a learner, for so many epochs."""
        return {
            "epochs": self.epochs if epochs is None else epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "regularizer": regularizer,
            "device": self.device,
        }


@dataclass(eq=False, repr=False)
class TrainedStudent(Descent, ABC):
    """Settings of a student that is a network: free, near a start, or under a constraint."""

    _: KW_ONLY
    fair_epochs: int = 10

    @abstractmethod
    def probabilities(self, fitted: Any, X: FloatArray) -> FloatArray:
        """Return the probabilities of the classes that a trained network gives to rows."""

    @abstractmethod
    def classifier(self, fitted: Any, n_classes: int) -> Any:
        """Return a trained network as a classifier of class codes."""

    @abstractmethod
    def _train(
        self,
        X: FloatArray,
        targets: FloatArray,
        rng: np.random.Generator,
        epochs: int,
        regularizer: Regularizer | None,
    ) -> Any:
        """Train on weights of the classes (n, n_classes)."""

    def free(self, X: FloatArray, targets: FloatArray, rng: np.random.Generator) -> Any:
        """Train without a constraint on weights of the classes (n, n_classes)."""
        return self._train(X, targets, rng, self.epochs, None)

    def near(
        self,
        X: FloatArray,
        targets: FloatArray,
        rng: np.random.Generator,
        *,
        start: Any,
        pull: float,
    ) -> Any:
        """Train from ``start``, and near it, without a constraint; from anew if there is none."""
        if start is None:
            return self.free(X, targets, rng)
        regularizer = Regularizer(start=start, pull=pull)
        return self._train(X, targets, rng, self.fair_epochs, regularizer)

    def under(
        self,
        X: FloatArray,
        targets: FloatArray,
        constraint: Constraint,
        rng: np.random.Generator,
        *,
        start: Any,
        pull: float,
    ) -> tuple[Any, float]:
        """Train from ``start`` under a constraint on all rows; return its violation as well.

        Warns
        -----
        MarginNotMet
            If even training for a part of the margin leaves a larger violation; the best is kept.
        """
        best: tuple[float, Any] = (np.inf, start)
        target = constraint.notion.margin
        for _ in range(TRIALS):
            regularizer = Regularizer(
                function=constraint.notion,
                alpha=target,
                weights=constraint.weights,
                truth=constraint.truth,
                step=self.step,
                start=start,
                pull=pull,
            )
            layers = self._train(X, targets, rng, self.fair_epochs, regularizer)
            violation = constraint.violation(self.probabilities(layers, X))
            best = min(best, (violation, layers), key=lambda pair: pair[0])
            if violation <= constraint.notion.margin:
                return layers, violation
            start, target = layers, SMALLER * target  # go on from there, for less
        warnings.warn(
            f"No network with a violation of {constraint.notion.title} of at most "
            f"{constraint.notion.margin:g} was found in {TRIALS} x {self.fair_epochs} epochs; "
            f"the best has {best[0]:.4f} and is kept. Widen the margin, or take more fair_epochs.",
            MarginNotMet,
            stacklevel=3,
        )
        return best[1], best[0]


@stored
@dataclass(eq=False, repr=False)
class NetworkStudent(TrainedStudent):
    """Settings of a student with hidden layers. Needs the extra ``torch``.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    epochs : int
        Of theta*, the network without a constraint.
    fair_epochs : int
        From theta* on, under the constraint; the multipliers move once in each.
    batch_size : int
    learning_rate, weight_decay : float
        Of Adam.
    step : float
        Of the multipliers.
    device : str
        Where it is trained, as PyTorch names it.

    Examples
    --------
    >>> NetworkStudent(hidden=(32,), epochs=5)
    NetworkStudent(epochs=5, hidden=(32,))
    """

    hidden: tuple[int, ...] = (64, 64)

    def probabilities(self, fitted: Any, X: FloatArray) -> FloatArray:
        """Return what the layers make of rows, as probabilities."""
        return probabilities(fitted, X)

    def classifier(self, fitted: Any, n_classes: int) -> Any:
        """Return scikit-learn's network of the same layers."""
        return as_scikit_learn(fitted)

    def _train(
        self,
        X: FloatArray,
        targets: FloatArray,
        rng: np.random.Generator,
        epochs: int,
        regularizer: Regularizer | None,
    ) -> Layers:
        # Here, not above: PyTorch is slow to import and only these students need it.
        from evenhand.learners.nets.mlp import StackedMLP

        learner = StackedMLP(hidden=tuple(self.hidden), **self.learner(regularizer, epochs))
        rows = [np.arange(len(X))]
        stack = learner.fit(X, targets, rows, n_classes=targets.shape[1], rng=rng)
        return stack.network(0)


def probabilities(layers: Layers, X: FloatArray) -> FloatArray:
    """Return the probabilities of the classes (n, n_classes) that a network gives to rows."""
    *inner, (weight, bias) = [(w.astype(np.float32), b.astype(np.float32)) for w, b in layers]
    scores = np.empty((len(X), len(bias)))
    for first in range(0, len(X), CHUNK_ROWS):
        hidden = X[first : first + CHUNK_ROWS].astype(np.float32)  # as it was trained
        for inner_weight, inner_bias in inner:
            hidden = hidden @ inner_weight
            hidden += inner_bias
            np.maximum(hidden, 0.0, out=hidden)
        scores[first : first + CHUNK_ROWS] = hidden @ weight + bias
    out: FloatArray = softmax(scores, axis=1)
    return out


def as_scikit_learn(layers: Layers) -> Any:
    """Return a network as the scikit-learn classifier that computes the same."""
    *inner, (weight, bias) = layers
    n_classes = len(bias)
    if n_classes == 2:  # one score, of class 1 against class 0
        weight, bias = weight[:, 1:] - weight[:, :1], bias[1:] - bias[:1]
    return with_layers([*inner, (weight, bias)], np.arange(n_classes))


def with_layers(
    layers: Layers, classes: Array, *, activation: str = "relu", output: str | None = None
) -> Any:
    """Return scikit-learn's network of these layers; of two classes the last has one score."""
    network = MLPClassifier(tuple(len(b) for _, b in layers[:-1]), activation=activation)
    network.coefs_ = [weight.copy() for weight, _ in layers]
    network.intercepts_ = [bias.copy() for _, bias in layers]
    network.n_layers_, network.n_outputs_ = len(layers) + 1, len(layers[-1][1])
    network.out_activation_ = output or ("logistic" if len(classes) == 2 else "softmax")
    network.classes_, network.n_features_in_ = classes, len(layers[0][0])
    network._label_binarizer = LabelBinarizer().fit(classes)
    return network

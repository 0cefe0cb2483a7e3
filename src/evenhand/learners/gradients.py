"""Gradients of single records in a network's weights, clipped and summed: the heart of DP-SGD.

What a record's term is
-----------------------
Let ``p`` be the network's probabilities for a record, ``y`` its class and ``v`` numbers of its own,
one per class, that do not depend on the weights. Its term of the objective is ``-log p[y] + v . p``
and its gradient in the scores is ``p - y + p * (v - v . p)``, with ``y`` as a unit vector. DP-SGD
has ``v = 0``; multipliers of a gap between groups (``learners.dpsgd``), and of the Renyi
information (``baselines.fermi_descent``), stand in ``v``. So one function serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from scipy.linalg import block_diag

from evenhand.typing import Array, FloatArray, IntArray

TINY: Final = 1e-12


class PerRecordGradients(Protocol):
    """A network of a fixed shape whose gradients are taken record by record."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def start(self) -> FloatArray:
        """The weights before the first step, all in one vector; nothing private decides them."""

    def clipped_sum(
        self, weights: FloatArray, X: Array, y: IntArray, v: FloatArray | None, room: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum (n_weights,) of gradients, and the probabilities (n, n_classes).

        Parameters
        ----------
        weights : ndarray of float64, shape (n_weights,)
        X : ndarray, shape (n, ...)
        y : ndarray of int64, shape (n,)
        v : ndarray of float64, shape (n, n_classes), optional
            Of each record; 0 by default.
        room : float
            Largest norm of one record's gradient, to which it is scaled. What a record adds is a
            function of this record and of the weights.
        """

    def trained(self, weights: FloatArray) -> Any:
        """Return the network with these weights, as a model is made of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseGradients:
    """Layers with ReLU between them, in NumPy: no gradient of a single record is written down.

    Every layer's gradient is an outer product, of the layer's input and of what is propagated back
    to it, so its squared norm over a record is ``|back|^2 |input|^2`` (ghost clipping; Goodfellow
    2015).
    """

    shapes: tuple[tuple[int, int], ...]
    """Of each layer, the bias as a further row. The last has one score for two classes (class 1
    against class 0), else one per class.
    """
    n_classes: int
    start: FloatArray
    """Shape (n_weights,)."""
    skip: bool = False
    """Whether the last layer reads the row itself beside the last hidden layer: a logistic
    regression, and what the hidden layers add to it.
    """

    @classmethod
    def of(
        cls,
        n_features: int,
        hidden: tuple[int, ...],
        n_classes: int,
        rng: np.random.Generator,
        *,
        skip: bool = False,
    ) -> DenseGradients:
        """Start from zeros, and from random weights in hidden layers (He et al. 2015)."""
        widths = (n_features, *hidden, 1 if n_classes == 2 else n_classes)
        shapes = [(n_in + 1, n_out) for n_in, n_out in pairwise(widths)]
        skip = skip and bool(hidden)
        if skip:
            shapes[-1] = (shapes[-1][0] + n_features, shapes[-1][1])
        first = [np.zeros(shape) for shape in shapes]
        for layer in first[:-1]:
            layer[:-1] = rng.normal(0.0, np.sqrt(2.0 / (len(layer) - 1)), layer[:-1].shape)
        start = np.concatenate([layer.ravel() for layer in first])
        return cls(shapes=tuple(shapes), n_classes=n_classes, start=start, skip=skip)

    def layers(self, weights: FloatArray) -> list[FloatArray]:
        """View a flat vector as the layers, each (n_in + 1, n_out)."""
        out, start = [], 0
        for a, b in self.shapes:
            out.append(weights[start : start + a * b].reshape(a, b))
            start += a * b
        return out

    def trained(self, weights: FloatArray) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Return weights (n_in, n_out) and bias (n_out,) of each layer.

        What skipped the hidden layers goes through them as the difference of two units for each
        score, ``z = max(z, 0) - max(-z, 0)``, so that they compute the same in plain layers.
        """
        layers = tuple((layer[:-1], layer[-1]) for layer in self.layers(weights))
        if not self.skip:
            return layers
        (first, first_bias), *inner, (last, bias) = layers
        past, both = last[-len(first) :], np.vstack([np.eye(len(bias)), -np.eye(len(bias))])
        return (
            (np.hstack([first, past @ both.T]), np.concatenate([first_bias, both @ bias])),
            *(
                (block_diag(weight, np.eye(len(both))), np.pad(own, (0, len(both))))
                for weight, own in inner
            ),
            (np.vstack([last[: -len(first)], both]), np.zeros_like(bias)),
        )

    def clipped_sum(
        self, weights: FloatArray, X: Array, y: IntArray, v: FloatArray | None, room: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of gradients and the probabilities; see ``PerRecordGradients``."""
        layers = self.layers(weights)
        inputs = [X]
        for layer in layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ layer[:-1] + layer[-1], 0.0))
        if self.skip:
            inputs[-1] = np.hstack([inputs[-1], X])
        p = probabilities(inputs[-1] @ layers[-1][:-1] + layers[-1][-1])
        back = p.copy()
        back[np.arange(len(y)), y] -= 1.0
        if v is not None:
            back += p * (v - np.einsum("ij,ij->i", v, p)[:, None])
        # Two classes share one score, of class 1.
        backs = [back[:, 1:] if self.n_classes == 2 else back]
        for below, layer, seen in zip(layers[-2::-1], layers[:0:-1], inputs[:0:-1], strict=True):
            width = below.shape[1]  # what is beside it skipped the layers
            backs.append((backs[-1] @ layer[:width].T) * (seen[:, :width] > 0))
        backs.reverse()
        # Of every layer's input with its 1, times what came back to the layer.
        square = sum(rowwise(b) * (rowwise(a) + 1.0) for a, b in zip(inputs, backs, strict=True))
        scale = np.minimum(1.0, room / np.maximum(np.sqrt(square), TINY))[:, None]
        parts = []
        for a, b in zip(inputs, backs, strict=True):
            b = b * scale
            parts += [(a.T @ b).ravel(), b.sum(axis=0)]
        return np.concatenate(parts), p


def rowwise(a: Array) -> FloatArray:
    """Squared norm of each row (n, d)."""
    out: FloatArray = np.einsum("ij,ij->i", a, a)
    return out


def probabilities(scores: FloatArray) -> FloatArray:
    """Probabilities (n, n_classes) from scores (n, n_scores); one score is class 1 against 0."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    out: FloatArray = np.exp(scores - scores.max(axis=1, keepdims=True))
    out /= out.sum(axis=1, keepdims=True)
    return out

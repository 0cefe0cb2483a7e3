"""Many small neural networks trained as one stacked network, each on its own rows, in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.learners.learner import Progress, needed
from evenhand.learners.nets.batches import Deal, Together, TrainedTogether
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.learners.nets.stack import StackedNetwork, flat, layers_of, network_of
from evenhand.learners.nets.tensors import array, computing, floats
from evenhand.typing import FloatArray, IntArray

CHUNK_MODELS: Final = 32  # of one stack: parameters, gradients and moments stay in the cache
CHUNK_BYTES: Final = 2_000_000  # of activations when predicting
FEW_MODELS: Final = 4  # at least so many predict together
ADAM_BETAS: Final = (0.9, 0.999)
ADAM_EPSILON: Final = 1e-8


@dataclass(frozen=True, kw_only=True)
class MLPStack:
    """Fitted networks, one per partition; those without two classes answer one class."""

    layers: Sequence[tuple[Any, Any]] = field(repr=False)  # weight (n, in, out), bias (n, 1, out)
    allowed: FloatArray = field(repr=False)  # (n_models, n_classes): 0, or -inf for an absent class

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.allowed)

    def network(self, t: int) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Return the layers of model ``t``: weight (in, out) and bias (out,) of each."""
        return network_of(self.layers, t)

    def predict(self, X: FloatArray) -> IntArray:
        """Return the class of each row by each model, shape (n_models, n_rows)."""
        out = np.empty((self.n_models, len(X)), dtype=np.int64)
        features = floats(X)
        allowed = floats(self.allowed)[:, None, :]
        widest = max(weight.shape[2] for weight, _ in self.layers)
        cells = max(1, CHUNK_BYTES // (4 * widest))  # rows times models
        n_rows = max(1, min(len(X), cells // FEW_MODELS))
        n_models = max(1, cells // n_rows)
        with computing(), torch.no_grad():
            for first in range(0, self.n_models, n_models):
                some = slice(first, first + n_models)
                layers = [(weight[some], bias[some]) for weight, bias in self.layers]
                for row in range(0, len(X), n_rows):
                    x = features[row : row + n_rows]
                    score = x.expand(len(allowed[some]), *x.shape)
                    for i, (weight, bias) in enumerate(layers):
                        score = torch.bmm(score, weight).add_(bias)
                        if i + 1 < len(layers):
                            score.relu_()
                    score.add_(allowed[some])
                    out[some, row : row + n_rows] = array(score.argmax(dim=2))
        return out


@dataclass(frozen=True, kw_only=True)
class StackedMLP(TrainedTogether):
    """A ReLU network on each of many partitions, trained by Adam, all at once.

    Notes
    -----
    The initial weights and batch orders of model ``t`` come from ``rng.spawn``, hence from
    ``(rng, t)``; the shape of its arithmetic follows from its own rows. So another partition
    cannot move one bit of it. A partition without records answers class 0; one with a single
    class answers that class, and a class that a partition does not hold is never answered from
    it.
    """

    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers."""
    regularizer: Regularizer | None = None
    """What the models learn beside their labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.each_at_least("hidden", self.hidden, 1)

    def fit(
        self,
        X: FloatArray,
        y: IntArray | FloatArray,
        rows: Sequence[IntArray],
        *,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> MLPStack:
        """Fit one model on each set of rows; see ``Learner.fit``.

        ``y`` may also hold weights of the classes, (n, n_classes) of float64; they need not lie in
        [0, 1], as noisy shares do not.
        """
        regularizer = self.regularizer
        if regularizer is not None and regularizer.needs_groups:
            weights = np.eye(n_groups)[needed(self, groups)]
            regularizer = replace(regularizer, weights=weights)
        sizes = (X.shape[1], *self.hidden, n_classes)
        layers = layers_of(flat(len(rows), sizes), len(rows), sizes)
        together = Together.of(self, y, rows, n_classes, rng)
        with computing(self.device), torch.no_grad():
            for shape, some in together.stacks(lambda _: CHUNK_MODELS, progress):
                trained = self._train(X, together, some, sizes, shape, regularizer)
                for layer, its in zip(layers, trained, strict=True):
                    layer[0][some], layer[1][some] = (part.to("cpu") for part in its)
        return MLPStack(layers=layers, allowed=together.allowed)

    def _train(
        self,
        X: FloatArray,
        together: Together,
        some: Sequence[int],
        sizes: tuple[int, ...],
        shape: tuple[int, int],
        regularizer: Regularizer | None,
    ) -> Sequence[tuple[Any, Any]]:
        """Train models of one shape together; return their layers."""
        steps, width = shape
        targets = together.targets
        parts = [together.rows[t] for t in some]
        streams = [together.streams[t] for t in some]
        model = StackedNetwork(streams, sizes)
        penalty = None if regularizer is None else regularizer.of(parts, targets, steps * width)
        anchor = None
        if regularizer is not None and regularizer.start is not None:
            model.take(regularizer.start)
            anchor = model.flat.clone() if regularizer.pull else None
        adam = torch.optim.Adam(
            [model.flat],
            lr=self.learning_rate,
            betas=ADAM_BETAS,
            eps=ADAM_EPSILON,
            weight_decay=self.weight_decay,
            fused=True,
        )
        deal = Deal(X, targets, parts, streams, shape, self.epochs)
        for epoch in range(self.epochs):
            for step in range(steps):
                batch, target, share, at = deal.batch(epoch, step)
                model.backward(batch, target, share, at, penalty)
                if anchor is not None and regularizer is not None:
                    model.flat.grad.add_(model.flat - anchor, alpha=2.0 * regularizer.pull)
                adam.step()
            if penalty is not None:
                penalty.ascend()
        return model.layers

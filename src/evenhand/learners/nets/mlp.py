"""Many small neural networks trained as one stacked network, each on its own rows, in PyTorch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.learners.learner import Progress, needed
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.learners.nets.stack import StackedNetwork, flat, layers_of, round_up
from evenhand.learners.nets.tensors import array, computing, floats
from evenhand.typing import FloatArray, IntArray

CHUNK_MODELS: Final = 32  # of one stack: parameters, gradients and moments stay in the cache
CHUNK_BYTES: Final = 2_000_000  # of activations when predicting
FEW_MODELS: Final = 4  # at least so many predict together
WIDTH_STEP: Final = 8  # batches are padded to a multiple of this, so that few shapes occur
ADAM_BETAS: Final = (0.9, 0.999)
ADAM_EPSILON: Final = 1e-8

__all__ = ["MLPStack", "StackedMLP"]


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
        return tuple(
            (array(weight[t]).astype(np.float64), array(bias[t, 0]).astype(np.float64))
            for weight, bias in self.layers
        )

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
class StackedMLP:
    """A ReLU network on each of many partitions, trained by Adam, all at once.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    epochs : int
        Times that each model reads its own rows.
    batch_size : int
        Largest number of rows in one step of one model. A model's rows are dealt to
        ``ceil(n / batch_size)`` batches of nearly equal size.
    learning_rate : float
        Of Adam, constant.
    weight_decay : float
        Weight of ``|w|^2 / 2`` in the loss, at least 0.
    regularizer : Regularizer, optional
        What the models learn beside their labels.
    device : str
        Where they are trained; fitted models are on the processor.

    Notes
    -----
    The initial weights and batch orders of model ``t`` come from ``rng.spawn``, hence from
    ``(rng, t)``; the shape of its arithmetic follows from its own rows. So another partition
    cannot move one bit of it. A partition without records answers class 0; one with a single
    class answers that class, and a class that a partition does not hold is never answered from
    it.
    """

    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    regularizer: Regularizer | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_torch("MLPTeachers")
        for width in self.hidden:
            _checks.at_least("hidden", width, 1)
        _checks.at_least("epochs", self.epochs, 1)
        _checks.at_least("batch_size", self.batch_size, 1)
        _checks.positive("learning_rate", self.learning_rate)
        _checks.non_negative("weight_decay", self.weight_decay)

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
        allowed = np.full((len(rows), n_classes), -np.inf)
        streams = rng.spawn(len(rows))
        shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
        targets: FloatArray = (
            np.eye(n_classes)[y.astype(np.int64)] if y.ndim == 1 else y.astype(np.float64)
        )
        for t, own in enumerate(rows):
            present = np.flatnonzero(targets[own].any(axis=0))
            if not len(present):
                present = np.zeros(1, dtype=np.int64)
            allowed[t, present] = 0.0
            if len(present) > 1:
                shapes[self._batches(len(own))].append(t)
        done = len(rows) - sum(map(len, shapes.values()))
        if progress is not None:
            progress(done, len(rows))
        with computing(self.device), torch.no_grad():
            for shape in sorted(shapes):
                for start in range(0, len(shapes[shape]), CHUNK_MODELS):
                    some = shapes[shape][start : start + CHUNK_MODELS]
                    parts = [rows[t] for t in some]
                    own_streams = [streams[t] for t in some]
                    trained = self._train(X, targets, parts, own_streams, sizes, shape, regularizer)
                    for layer, its in zip(layers, trained, strict=True):
                        layer[0][some], layer[1][some] = (part.to("cpu") for part in its)
                    done += len(some)
                    if progress is not None:
                        progress(done, len(rows))
        return MLPStack(layers=layers, allowed=allowed)

    def _batches(self, n: int) -> tuple[int, int]:
        """Return steps in an epoch and padded rows in a batch, for a partition of ``n`` rows."""
        steps = math.ceil(n / self.batch_size)
        return steps, round_up(math.ceil(n / steps), WIDTH_STEP)

    def _train(
        self,
        X: FloatArray,
        targets: FloatArray,
        parts: Sequence[IntArray],
        streams: Sequence[np.random.Generator],
        sizes: tuple[int, ...],
        shape: tuple[int, int],
        regularizer: Regularizer | None,
    ) -> Sequence[tuple[Any, Any]]:
        """Train models of one shape together; return their layers."""
        steps, width = shape
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
        deal = _Deal(X, targets, parts, streams, shape, self.epochs)
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


class _Deal:
    """Rows of all models in one table, and which of them each step reads.

    A model that reads all its rows in every step has nothing to shuffle.
    """

    def __init__(
        self,
        X: FloatArray,
        targets: FloatArray,
        parts: Sequence[IntArray],
        streams: Sequence[np.random.Generator],
        shape: tuple[int, int],
        epochs: int,
    ) -> None:
        steps, width = shape
        self._shape = (len(parts), width)
        rows = np.concatenate(parts)
        self._features = floats(X.take(rows, axis=0))
        self._labels = floats(targets.take(rows, axis=0))
        orders = 1 if steps == 1 else epochs
        # Row numbers in the table; a batch is padded with rows that are read and weighted 0.
        order = np.zeros((orders, steps, len(parts), width), dtype=np.int64)
        share = np.zeros((steps, len(parts), width, 1), dtype=np.float32)
        first = 0
        for i, (own, stream) in enumerate(zip(parts, streams, strict=True)):
            n = len(own)
            its = first + np.tile(np.arange(n), (orders, 1))
            if steps > 1:
                stream.permuted(its, axis=1, out=its)
            edges = np.arange(steps + 1) * n // steps
            for step in range(steps):
                size = edges[step + 1] - edges[step]
                order[:, step, i, :size] = its[:, edges[step] : edges[step + 1]]
                order[:, step, i, size:] = first
                share[step, i, :size] = 1.0 / size
            first += n
        self._order, self._share = torch.as_tensor(order), torch.as_tensor(share)
        self._only = (*self._read(0, 0)[:3], None) if steps == 1 else None

    def batch(self, epoch: int, step: int) -> tuple[Any, Any, Any, Any]:
        """Return what a step reads.

        Returns
        -------
        rows : tensor, shape (n_models, width, d)
        targets : tensor, shape (n_models, width, n_classes)
        share : tensor, shape (n_models, width, 1)
            One over the size of the batch, and 0 where it is padded.
        at : tensor of int64, or None
            Which rows of the table these are, flat; None for all of them, in their order.
        """
        return self._read(epoch, step) if self._only is None else self._only

    def _read(self, epoch: int, step: int) -> tuple[Any, Any, Any, Any]:
        at = self._order[epoch, step].flatten()
        rows = self._features.index_select(0, at).unflatten(0, self._shape)
        targets = self._labels.index_select(0, at).unflatten(0, self._shape)
        return rows, targets, self._share[step], at

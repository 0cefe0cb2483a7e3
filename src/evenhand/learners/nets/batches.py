"""Which rows each of many networks reads in each step, where they are trained together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.learners.learner import Progress
from evenhand.learners.linear import round_up
from evenhand.learners.nets.tensors import features_of, floats
from evenhand.typing import Array, FloatArray, IntArray

WIDTH_STEP: Final = 8  # batches are padded to a multiple of this, so that few shapes occur


@dataclass(frozen=True, kw_only=True)
class TrainedTogether:
    """How networks are trained, each on its own rows: settings that their learners share."""

    epochs: int = 20
    """Times that each model reads its own rows."""
    batch_size: int = 128
    """Largest number of rows in one step of one model. A model's rows are dealt to
    ``ceil(n / batch_size)`` batches of nearly equal size.
    """
    learning_rate: float = 0.01
    """Of Adam, constant."""
    weight_decay: float = 0.0
    """Weight of ``|w|^2 / 2`` in the loss, at least 0."""
    device: str = "cpu"
    """Where they are trained; fitted models are on the processor."""

    def __post_init__(self) -> None:
        require_torch(type(self).__name__)
        _checks.at_least("epochs", self.epochs, 1)
        _checks.at_least("batch_size", self.batch_size, 1)
        _checks.positive("learning_rate", self.learning_rate)
        _checks.non_negative("weight_decay", self.weight_decay)

    def batches_of(self, n: int) -> tuple[int, int]:
        """Return steps in an epoch and padded rows in a batch, for a partition of ``n`` rows."""
        steps = math.ceil(n / self.batch_size)
        return steps, round_up(math.ceil(n / steps), WIDTH_STEP)


@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """What many networks learn, and which of them have batches of one shape."""

    rows: Sequence[IntArray] = field(repr=False)
    targets: FloatArray = field(repr=False)
    """Weights of the classes, of all rows. Shape (n, n_classes)."""
    allowed: FloatArray = field(repr=False)
    """0, or ``-inf`` for a class that the rows of a model do not hold; class 0 without rows. Shape
    (n_models, n_classes).
    """
    streams: Sequence[np.random.Generator] = field(repr=False)
    shapes: dict[tuple[int, int], list[int]] = field(repr=False)
    """The models with two classes, by (steps, width); the others have nothing to learn."""

    @classmethod
    def of(
        cls,
        how: TrainedTogether,
        y: IntArray | FloatArray,
        rows: Sequence[IntArray],
        n_classes: int,
        rng: np.random.Generator,
    ) -> Together:
        """Read labels, or weights of the classes, of all rows."""
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
                shapes[how.batches_of(len(own))].append(t)
        return cls(rows=rows, targets=targets, allowed=allowed, streams=streams, shapes=shapes)

    def stacks(
        self, n_together: Callable[[int], int], progress: Progress | None
    ) -> Iterator[tuple[tuple[int, int], list[int]]]:
        """Yield models of one shape, ``n_together(width)`` at a time, and report on them."""
        done = len(self.rows) - sum(map(len, self.shapes.values()))
        if progress is not None:
            progress(done, len(self.rows))
        for shape in sorted(self.shapes):
            of_shape, n = self.shapes[shape], n_together(shape[1])
            for start in range(0, len(of_shape), n):
                some = of_shape[start : start + n]
                yield shape, some
                done += len(some)
                if progress is not None:
                    progress(done, len(self.rows))


class Deal:
    """Rows of all models in one table, and which of them each step reads.

    A model that reads all its rows in every step has nothing to shuffle.
    """

    def __init__(
        self,
        X: Array,
        targets: FloatArray,
        parts: Sequence[IntArray],
        streams: Sequence[np.random.Generator],
        shape: tuple[int, int],
        epochs: int,
    ) -> None:
        steps, width = shape
        self._shape = (len(parts), width)
        rows = np.concatenate(parts)
        own = X.take(rows, axis=0)
        # Pixels stay bytes until a step reads them.
        self._features = torch.as_tensor(own) if own.dtype == np.uint8 else floats(own)
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
        rows : tensor of float32, shape (n_models, width, ...)
        targets : tensor, shape (n_models, width, n_classes)
        share : tensor, shape (n_models, width, 1)
            One over the size of the batch, and 0 where it is padded.
        at : tensor of int64, or None
            Which rows of the table these are, flat; None for all of them, in their order.
        """
        return self._read(epoch, step) if self._only is None else self._only

    def _read(self, epoch: int, step: int) -> tuple[Any, Any, Any, Any]:
        at = self._order[epoch, step].flatten()
        rows = features_of(self._features.index_select(0, at)).unflatten(0, self._shape)
        targets = self._labels.index_select(0, at).unflatten(0, self._shape)
        return rows, targets, self._share[step], at

"""Any PyTorch module as a model of class scores, trained by Adam."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.typing import FloatArray

AT_ONCE: Final = 512
"""Rows that are scored together."""

__all__ = ["ModuleLearner", "probabilities_of", "small_conv"]


@dataclass(frozen=True, kw_only=True)
class ModuleLearner:
    """Trains copies of a module that maps rows (n, d) in float32 to scores (n, n_classes).

    Parameters
    ----------
    module : torch.nn.Module
        Never changed. Training starts from its weights, which are public: fresh ones, or those of a
        pretrained network. It may begin with ``torch.nn.Unflatten`` where rows are pictures.
    epochs : int
    batch_size : int
    learning_rate, weight_decay : float
        Of Adam.
    regularizer : Regularizer, optional
        What the module learns beside its targets, the weights of the groups included.
    """

    module: Any
    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 0.003
    weight_decay: float = 1e-4
    regularizer: Regularizer | None = None

    def __post_init__(self) -> None:
        require_torch("A module")
        if not isinstance(self.module, torch.nn.Module):
            raise TypeError(
                f"module must be a torch.nn.Module that maps rows (n, d) to scores (n, n_classes), "
                f"got {self.module!r}. Pass an object, for example torch.nn.Linear(d, n_classes)."
            )
        _checks.at_least("epochs", self.epochs, 1)
        _checks.at_least("batch_size", self.batch_size, 1)
        _checks.positive("learning_rate", self.learning_rate)
        _checks.non_negative("weight_decay", self.weight_decay)

    def fit(
        self,
        X: FloatArray,
        targets: FloatArray,
        *,
        rng: np.random.Generator,
    ) -> Any:
        """Return a trained copy, on weights of the classes (n, n_classes).

        ``regularizer.start`` is such a copy, from which training starts and near which it stays.
        What the module draws itself (dropout) comes from ``rng`` as well, and torch's own generator
        is as it was afterwards.
        """
        model, regularizer = copy.deepcopy(self.module), self.regularizer
        start = None
        if regularizer is not None and regularizer.start is not None:
            model.load_state_dict(regularizer.start.state_dict())
            start = [weight.detach().clone() for weight in model.parameters()]
        every = np.arange(len(X))
        penalty = None if regularizer is None else regularizer.of([every], targets, len(X))
        adam = torch.optim.Adam(
            model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        rows = torch.as_tensor(X, dtype=torch.float32)
        goal = torch.as_tensor(targets, dtype=torch.float32)
        model.train()
        with torch.random.fork_rng(devices=[]):
            torch.random.manual_seed(int(rng.integers(2**31)))
            for _ in range(self.epochs):
                order = rng.permutation(len(X))
                for at in np.array_split(order, max(1, -(-len(X) // self.batch_size))):
                    scores = model(rows[at])
                    _refuse_other_shape(scores, (len(at), targets.shape[1]))
                    logs = scores.log_softmax(dim=1)
                    loss = -(goal[at] * logs).sum()
                    if penalty is not None:
                        probabilities = logs.detach().exp().double().numpy()[None]
                        pushed = penalty.push(probabilities, at)
                        if pushed is not None:  # the gradient of the constraint in the scores
                            push = torch.as_tensor(pushed[0], dtype=scores.dtype)
                            loss = loss + (scores * push).sum()
                    loss = loss / len(at)
                    if start is not None and regularizer is not None and regularizer.pull:
                        away = zip(model.parameters(), start, strict=True)
                        loss = loss + regularizer.pull * sum(
                            ((w - w0) ** 2).sum() for w, w0 in away
                        )
                    adam.zero_grad()
                    loss.backward()
                    adam.step()
                if penalty is not None:
                    penalty.ascend()
        return model.eval()


def probabilities_of(model: Any, X: FloatArray) -> FloatArray:
    """Return the probabilities (n, n_classes) that a trained module gives to rows."""
    rows = torch.as_tensor(X, dtype=torch.float32)
    with torch.no_grad():
        parts = [model(part).softmax(dim=1).double().numpy() for part in rows.split(AT_ONCE)]
    out: FloatArray = np.concatenate(parts)
    return out


def small_conv(shape: tuple[int, int, int], n_classes: int = 2, *, width: int = 16) -> Any:
    """Return a small convolutional network for rows that are pictures, channels first, flat.

    Two convolutions of 3 x 3 with ReLU and pooling by 2, and one linear layer: 3 x 32 x 32 pixels
    in two classes have 9,186 weights at the default width.

    Parameters
    ----------
    shape : (channels, height, width)
        Height and width at least 4.
    n_classes : int
    width : int
        Channels after the first convolution; twice as many after the second.
    """
    require_torch("A module")
    channels, high, wide = (_checks.at_least("shape", size, 1) for size in shape)
    if min(high, wide) < 4:
        raise ValueError(
            f"shape must be (channels, height, width) with 4 x 4 pixels at least, got {shape!r}. "
            f"Smaller pictures are rows of numbers: use NetworkStudent."
        )
    nn = torch.nn
    return nn.Sequential(
        nn.Unflatten(1, (channels, high, wide)),
        nn.Conv2d(channels, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * (high // 4) * (wide // 4), n_classes),
    )


def _refuse_other_shape(scores: Any, wanted: tuple[int, int]) -> None:
    if tuple(scores.shape) != wanted:
        raise ValueError(
            f"module must map {wanted[0]} rows to scores of shape {wanted}, one per class, got "
            f"{tuple(scores.shape)}. End it with a layer of {wanted[1]} outputs, without softmax."
        )

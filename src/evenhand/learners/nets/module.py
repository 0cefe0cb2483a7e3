"""Any PyTorch module as a model of class scores, trained by Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.learners.nets.architectures import built, require_architecture
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.learners.nets.tensors import array, computing, features_of, floats
from evenhand.typing import Array, FloatArray

AT_ONCE: Final = 512
"""Rows that are scored together."""


@dataclass(frozen=True, kw_only=True)
class ModuleLearner:
    """Trains a network that maps rows in float32 to scores (n, n_classes)."""

    module: Any
    """An architecture starts from weights that ``rng`` draws. A module of PyTorch is never changed:
    training starts from its weights, which are public (fresh ones, or those of a pretrained
    network).
    """
    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 0.003
    weight_decay: float = 1e-4
    """``learning_rate`` and ``weight_decay``: of Adam."""
    regularizer: Regularizer | None = None
    """What the module learns beside its targets, the weights of the groups included."""
    device: str = "cpu"
    """Where it is trained; the trained network is on the processor."""

    def __post_init__(self) -> None:
        require_torch("A module")
        require_architecture(self.module)
        _checks.at_least("epochs", self.epochs, 1)
        _checks.at_least("batch_size", self.batch_size, 1)
        _checks.positive("learning_rate", self.learning_rate)
        _checks.non_negative("weight_decay", self.weight_decay)

    def fit(
        self,
        X: Array,
        targets: FloatArray,
        *,
        rng: np.random.Generator,
    ) -> Any:
        """Return a trained copy, on weights of the classes (n, n_classes).

        ``regularizer.start`` is such a copy, from which training starts and near which it stays.
        What the module draws itself (dropout) comes from ``rng`` as well, and torch's own generator
        is as it was afterwards.
        """
        with computing(self.device) as place:
            own = [] if place.type == "cpu" else [place]
            with torch.random.fork_rng(own):
                torch.random.manual_seed(int(rng.integers(2**31)))
                model = self._start(X.shape[1:], targets.shape[1])
                self._train(model, X, targets, rng)
        model.row_shape = X.shape[1:]
        return model.to("cpu").eval()

    def _start(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network as it is before training."""
        model = built(self.module, shape, n_outputs)
        if self.regularizer is not None and self.regularizer.start is not None:
            model.load_state_dict(self.regularizer.start.state_dict())
        return model.train()

    def _train(self, model: Any, X: Array, targets: FloatArray, rng: np.random.Generator) -> None:
        regularizer = Regularizer() if self.regularizer is None else self.regularizer
        start = [weight.detach().clone() for weight in model.parameters()]
        penalty = regularizer.of([np.arange(len(X))], targets, len(X))
        adam = torch.optim.Adam(
            model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        rows, goal = torch.as_tensor(X), floats(targets)
        for _ in range(self.epochs):
            order = rng.permutation(len(X))
            for at in np.array_split(order, max(1, -(-len(X) // self.batch_size))):
                scores = model(features_of(rows[at]))
                _refuse_other_shape(scores, (len(at), targets.shape[1]))
                logs = scores.log_softmax(dim=1)
                loss = -(goal[at] * logs).sum()
                if penalty is not None:
                    probabilities = array(logs.detach().exp().double())[None]
                    pushed = penalty.push(probabilities, at)
                    if pushed is not None:  # the gradient of the constraint in the scores
                        loss = loss + (scores * floats(pushed[0])).sum()
                loss = loss / len(at)
                if regularizer.start is not None and regularizer.pull:
                    away = zip(model.parameters(), start, strict=True)
                    loss = loss + regularizer.pull * sum(((w - w0) ** 2).sum() for w, w0 in away)
                adam.zero_grad()
                loss.backward()
                adam.step()
            if penalty is not None:
                penalty.ascend()


def probabilities_of(model: Any, X: Array) -> FloatArray:
    """Return the probabilities (n, n_classes) that a trained module gives to rows."""
    with computing(), torch.no_grad():
        parts = [
            array(model(features_of(part)).softmax(dim=1).double())
            for part in torch.as_tensor(X).split(AT_ONCE)
        ]
    out: FloatArray = np.concatenate(parts)
    return out


def read_by_last_layer(model: Any, X: Array) -> FloatArray:
    """Return what the last layer of a trained module reads, (n, n_features) of float64.

    Raises
    ------
    ValueError
        If it does not end with a ``torch.nn.Linear``.
    """
    rows = torch.as_tensor(X)
    seen: list[Any] = []
    with computing(), torch.no_grad():
        hook = _last_linear(model, rows[:1]).register_forward_hook(
            lambda _, given, __: seen.append(array(given[0].double()))
        )
        try:
            for part in rows.split(AT_ONCE):
                model(features_of(part))
        finally:
            hook.remove()
    read: FloatArray = np.concatenate(seen)
    return read


def weights_of_last_layer(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return the weights (n_outputs, n_features) and the bias of a trained module's last layer.

    Raises
    ------
    ValueError
        As for ``read_by_last_layer``.
    """
    with computing(), torch.no_grad():
        layer = _last_linear(model, torch.zeros((1, *model.row_shape)))
    weights = array(layer.weight).astype(np.float64)
    bias = np.zeros(len(weights)) if layer.bias is None else array(layer.bias).astype(np.float64)
    return weights, bias


def _last_linear(model: Any, row: Any) -> Any:
    """Return the linear layer that gives the scores, as a row (1, ...) passes."""
    found: list[tuple[Any, Any]] = []
    hooks = [
        part.register_forward_hook(lambda layer, _, out: found.append((layer, out)))
        for part in model.modules()
        if isinstance(part, torch.nn.Linear)
    ]
    try:
        scores = model(features_of(row))
    finally:
        for hook in hooks:
            hook.remove()
    if not found or found[-1][1] is not scores:
        raise ValueError(
            "The network must end with a torch.nn.Linear, whose weights the margin binds. End it "
            "with torch.nn.Linear(n, n_classes), without softmax."
        )
    return found[-1][0]


def _refuse_other_shape(scores: Any, wanted: tuple[int, int]) -> None:
    if tuple(scores.shape) != wanted:
        raise ValueError(
            f"module must map {wanted[0]} rows to scores of shape {wanted}, one per class, got "
            f"{tuple(scores.shape)}. End it with a layer of {wanted[1]} outputs, without softmax."
        )

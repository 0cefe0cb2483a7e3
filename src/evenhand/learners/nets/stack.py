"""The parameters of many small networks in one block, and their gradients, in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evenhand._torch import torch
from evenhand.learners.linear import round_up
from evenhand.learners.nets.regularizer import ConstraintPenalty
from evenhand.learners.nets.tensors import array, floats
from evenhand.typing import FloatArray

LANES: Final = 64  # floats; a stack ends on whole vectors, so no model meets a ragged end


class StackedNetwork:
    """Stacked parameters and their gradient, each in one flat block for a fused optimizer.

    Notes
    -----
    The backward pass is written by hand. A step of 32 networks (102, 64, 64, 2) on 120 rows each
    takes 1.5 times as long with ``torch.func`` (``vmap`` of ``grad`` of ``functional_call``) and
    1.4 times with autograd on the same stacked products; 4.4 and 2.0 times for (20, 32, 2) on 32
    rows, 1.9 and 1.3 times for (102, 32, 2) on 104, and 4.7 and 1.6 times for one network
    (102, 64, 64, 2) on 256 (``benchmarks/backward.py``, which first compares the weights).
    """

    def __init__(self, streams: Sequence[np.random.Generator], sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.flat = flat(len(streams), sizes)
        self.flat.grad = torch.zeros_like(self.flat)
        self.layers = layers_of(self.flat, len(streams), sizes)
        self.gradients = layers_of(self.flat.grad, len(streams), sizes)
        for weight, _ in self.layers:  # He-uniform, and biases stay 0
            drawn = [stream.random(weight.shape[1:], dtype=np.float32) for stream in streams]
            weight.copy_(floats(np.stack(drawn)))
            weight.mul_(2.0).sub_(1.0).mul_(math.sqrt(6.0 / weight.shape[1]))

    def like(self, block: Any) -> list[tuple[Any, Any]]:
        """Cut a block that goes with the parameters, such as a moment of Adam, into layers."""
        return layers_of(block, len(self.layers[0][0]), self.sizes)

    def take(self, start: Sequence[tuple[FloatArray, FloatArray]]) -> None:
        """Start every model from one network: weight (in, out) and bias (out,) of each layer."""
        for (weight, bias), (first_weight, first_bias) in zip(self.layers, start, strict=True):
            weight.copy_(floats(first_weight))
            bias.copy_(floats(first_bias))

    def backward(
        self,
        x: Any,
        target: Any,
        share: Any,
        at: Any = None,
        penalty: ConstraintPenalty | None = None,
    ) -> None:
        """Write the gradient of the mean cross-entropy of each model's batch into ``flat.grad``.

        Parameters
        ----------
        x : tensor, shape (n_models, width, d)
        target : tensor, shape (n_models, width, n_classes)
            Weights of the classes; one-hot for labels.
        share : tensor, shape (n_models, width, 1)
            Weight of each row in its model's mean; 0 for padding.
        at, penalty
            Which rows these are, as for ``ConstraintPenalty.push``, and what pulls at their scores
            beside their labels.
        """
        inputs = [x]
        for weight, bias in self.layers[:-1]:
            inputs.append(torch.baddbmm(bias, inputs[-1], weight).relu_())
        weight, bias = self.layers[-1]
        probabilities = torch.baddbmm(bias, inputs[-1], weight).softmax(dim=2)
        pushed = None
        if penalty is not None:
            pushed = penalty.push(array(probabilities), None if at is None else array(at))
        delta = probabilities.sub_(target)
        if pushed is not None:
            delta.add_(floats(pushed))
        delta.mul_(share)
        for i in reversed(range(len(self.layers))):
            weight_gradient, bias_gradient = self.gradients[i]
            torch.bmm(inputs[i].transpose(1, 2), delta, out=weight_gradient)
            torch.sum(delta, dim=1, keepdim=True, out=bias_gradient)
            if i:
                delta = torch.bmm(delta, self.layers[i][0].transpose(1, 2))
                delta = delta.mul_(inputs[i].sign_())  # the gradient of ReLU; its output is spent


def flat(n_models: int, sizes: tuple[int, ...]) -> Any:
    """Zeros for all parameters of all models, padded to whole vectors."""
    each = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return torch.zeros(round_up(n_models * each, LANES))


def network_of(
    layers: Sequence[tuple[Any, Any]], t: int
) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Return the layers of model ``t``: weight (in, out) and bias (out,) of each."""
    return tuple(
        (array(weight[t]).astype(np.float64), array(bias[t, 0]).astype(np.float64))
        for weight, bias in layers
    )


def layers_of(flat: Any, n_models: int, sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Cut a flat block into layers: weight (n, in, out) and bias (n, 1, out)."""
    views = []
    first = 0
    for n_in, n_out in pairwise(sizes):
        middle = first + n_models * n_in * n_out
        last = middle + n_models * n_out
        weight = flat[first:middle].view(n_models, n_in, n_out)
        views.append((weight, flat[middle:last].view(n_models, 1, n_out)))
        first = last
    return views

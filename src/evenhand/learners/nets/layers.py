"""Dense layers as pairs of a matrix and a bias: rows through them, in training, and in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from evenhand._torch import torch
from evenhand.learners.nets.tensors import array
from evenhand.typing import Array, FloatArray

Layers: TypeAlias = tuple[tuple[FloatArray, FloatArray], ...]
"""Weights (n_in, n_out) and bias (n_out,) of each layer."""


def through(layers: Sequence[tuple[Any, Any]], x: Any) -> Any:
    """Return the scores of the last layer, with ReLU between the layers; of arrays or tensors."""
    for weights, bias in layers[:-1]:
        h = x @ weights + bias
        x = np.maximum(h, 0.0) if isinstance(h, np.ndarray) else torch.relu(h)
    weights, bias = layers[-1]
    return x @ weights + bias


def tensors_of(layers: Layers) -> list[tuple[Any, Any]]:
    """Return copies that can be trained."""
    return [
        (torch.as_tensor(w).clone().requires_grad_(), torch.as_tensor(b).clone().requires_grad_())
        for w, b in layers
    ]


def arrays_of(layers: Sequence[tuple[Any, Any]]) -> Layers:
    """Return copies of trained tensors, in doubles."""
    return tuple((array(w).astype(np.float64), array(b).astype(np.float64)) for w, b in layers)


def named_layers(layers: Layers, name: str) -> dict[str, Array]:
    """Return the layers by name, for a file; ``layers_of`` reads them."""
    named: dict[str, Array] = {}
    for i, (weights, bias) in enumerate(layers):
        named |= {f"{name}_{i}": weights, f"bias_{i}": bias}
    return named


def layers_of(arrays: Mapping[str, Array], name: str) -> Layers:
    """Read what ``named_layers`` gave, among other arrays."""
    n = sum(key.startswith(f"{name}_") for key in arrays)
    return tuple((arrays[f"{name}_{i}"], arrays[f"bias_{i}"]) for i in range(n))

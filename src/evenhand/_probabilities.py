"""Arithmetic of probabilities (..., n_classes) that trainers and fairness functions share."""

from __future__ import annotations

import numpy as np

from evenhand.typing import Array, FloatArray


def decided(probabilities: Array) -> FloatArray:
    """Return decisions as probabilities: 1 for the first of the likeliest, else 0."""
    n_classes = probabilities.shape[-1]
    if n_classes == 2:  # several times as fast
        hard = np.empty(probabilities.shape)
        np.greater(probabilities[..., 1], probabilities[..., 0], out=hard[..., 1])
        np.subtract(1.0, hard[..., 1], out=hard[..., 0])
        return hard
    winner = probabilities.argmax(axis=-1, keepdims=True)
    many: FloatArray = (np.arange(n_classes) == winner).astype(np.float64)
    return many


def gradient_in_scores(probabilities: Array, gradient: Array) -> Array:
    """Return the gradient in the scores whose softmax is ``probabilities``, from that in these."""
    if probabilities.shape[-1] == 2:  # several times as fast
        out = np.empty(probabilities.shape, np.result_type(probabilities, gradient))
        up = out[..., 1]
        np.subtract(gradient[..., 1], gradient[..., 0], out=up)
        up *= probabilities[..., 0]
        up *= probabilities[..., 1]
        np.negative(up, out=out[..., 0])
        return out
    many: Array = probabilities * (
        gradient - (gradient * probabilities).sum(axis=-1, keepdims=True)
    )
    return many


def nearest_on_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest probabilities to rows of numbers, (n, n_classes); the order is kept."""
    falling = -np.sort(-values, axis=1)
    over = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, values.shape[1] + 1)
    kept: Array = falling > over
    last = kept.sum(axis=1) - 1
    cut = over[np.arange(len(values)), last]
    near = np.maximum(values - cut[:, None], 0.0)
    out: FloatArray = near / near.sum(axis=1, keepdims=True)
    return out

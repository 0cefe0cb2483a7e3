"""Arithmetic of chances (..., n_classes) that trainers and fairness functions share."""

from __future__ import annotations

import numpy as np

from evenhand.typing import Array, FloatArray


def decided(chances: Array) -> FloatArray:
    """Return decisions as chances: 1 for the most likely class (the first of equals), else 0."""
    n_classes = chances.shape[-1]
    if n_classes == 2:  # several times as fast
        hard = np.empty(chances.shape)
        np.greater(chances[..., 1], chances[..., 0], out=hard[..., 1])
        np.subtract(1.0, hard[..., 1], out=hard[..., 0])
        return hard
    winner = chances.argmax(axis=-1, keepdims=True)
    many: FloatArray = (np.arange(n_classes) == winner).astype(np.float64)
    return many


def gradient_in_scores(chances: Array, gradient: Array) -> Array:
    """Return the gradient in the scores whose softmax is ``chances``, for that in the chances."""
    if chances.shape[-1] == 2:  # several times as fast
        out = np.empty(chances.shape, np.result_type(chances, gradient))
        up = out[..., 1]
        np.subtract(gradient[..., 1], gradient[..., 0], out=up)
        up *= chances[..., 0]
        up *= chances[..., 1]
        np.negative(up, out=out[..., 0])
        return out
    many: Array = chances * (gradient - (gradient * chances).sum(axis=-1, keepdims=True))
    return many

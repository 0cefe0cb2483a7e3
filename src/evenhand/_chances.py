"""Arithmetic of chances (..., n_classes) that trainers and fairness functions share."""

from __future__ import annotations

import numpy as np

from evenhand.typing import Array, FloatArray


def decided(chances: Array) -> FloatArray:
    """Return decisions as chances: 1 for the most likely class (the first of equals), else 0."""
    n_classes = chances.shape[-1]
    if n_classes == 2:  # several times as fast
        second = chances[..., 1] > chances[..., 0]
        return np.stack([~second, second], axis=-1).astype(np.float64)
    winner = chances.argmax(axis=-1, keepdims=True)
    hard: FloatArray = (np.arange(n_classes) == winner).astype(np.float64)
    return hard


def slope_in_scores(chances: Array, slope: Array) -> Array:
    """Return the slope in the scores whose softmax is ``chances``, for a slope in the chances."""
    out: Array
    if chances.shape[-1] == 2:  # several times as fast
        up = (slope[..., 1] - slope[..., 0]) * chances[..., 0] * chances[..., 1]
        out = np.stack([-up, up], axis=-1)
    else:
        out = chances * (slope - (slope * chances).sum(axis=-1, keepdims=True))
    return out

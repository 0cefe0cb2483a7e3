"""Two small classifiers of pictures, trained on one set and asked about another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.generators.images.codec import FloatPixels
from evenhand.typing import FloatArray, IntArray

BATCH: Final = 128
RATE: Final = 1e-3
_ROWS: Final = 1024  # pictures that are classified at once


def _mlp(size: tuple[int, int, int], n_classes: int) -> Any:
    nn = torch.nn
    pixels = int(np.prod(size))
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, 100), nn.ReLU(), nn.Linear(100, n_classes))


def _cnn(size: tuple[int, int, int], n_classes: int) -> Any:
    nn = torch.nn
    channels, height, width = size
    flat = 64 * (height // 4) * (width // 4)
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(flat, 512), nn.ReLU(), nn.Linear(512, n_classes)),
    )


IMAGE_MODELS: Final[Mapping[str, Callable[[tuple[int, int, int], int], Any]]] = {
    "MLP": _mlp,
    "CNN": _cnn,
}
"""By name: 100 hidden units; or 32 and 64 filters of 3 x 3 with pooling, and 512 units."""


def classify(
    name: str,
    images: FloatPixels,
    labels: IntArray,
    asked: FloatPixels,
    *,
    n_classes: int,
    epochs: int = 10,
    seed: int = 0,
) -> FloatArray:
    """Train a classifier and return the probability of each class for every picture of ``asked``.

    Adam with rate 1e-3, batches of 128, cross-entropy.

    Parameters
    ----------
    name : str
        A name of ``IMAGE_MODELS``.
    images, asked : ndarray of float32, shape (n, channels, h, w)
    labels : ndarray of int64
        Class of each picture of ``images``.
    n_classes, epochs : int
    seed : int
        Of the weights and the order of the pictures; no global seed is touched.
    """
    require_torch(f"The classifier {name}")
    _checks.one_of("models", name, IMAGE_MODELS)
    _checks.at_least("epochs", epochs, 1)
    channels, height, width = images.shape[1:]
    if name == "CNN" and min(height, width) < 4:
        raise ValueError(f"The CNN needs pictures of at least 4 x 4, got {height} x {width}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = IMAGE_MODELS[name]((channels, height, width), n_classes)
        x, y = torch.as_tensor(images), torch.as_tensor(labels)
        adam = torch.optim.Adam(model.parameters(), lr=RATE)
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(BATCH):
                loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
                adam.zero_grad()
                loss.backward()
                adam.step()
    with torch.no_grad():
        parts = [torch.softmax(model(part), dim=1) for part in torch.as_tensor(asked).split(_ROWS)]
    probabilities: FloatArray = torch.cat(parts).numpy().astype(np.float64)
    return probabilities

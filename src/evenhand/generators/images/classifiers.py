"""Two small classifiers of pictures, trained on one set and asked about another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._numerals import text_of
from evenhand._torch import require_torch, torch
from evenhand.generators.images.codec import FloatPixels, ImageSample, as_pixels
from evenhand.learners.nets.architectures import Architecture, Convolutional, Dense
from evenhand.typing import Array, FloatArray, IntArray

BATCH: Final = 128
RATE: Final = 1e-3
EPOCHS: Final = 10
_ROWS: Final = 1024  # pictures that are classified at once


IMAGE_MODELS: Final[Mapping[str, Architecture]] = {
    "MLP": Dense(hidden=(100,)),
    "CNN": Convolutional(widths=(32, 64), hidden=(512,)),
}
"""By name: 100 hidden units; or 32 and 64 filters of 3 x 3 with pooling, and 512 units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageJudge:
    """A classifier that was trained on drawn pictures, to be tested on others."""

    model: Any
    """A torch module."""
    learnt: tuple[str, ...]
    """The labels that it knows, as texts."""

    @classmethod
    def of(cls, drawn: ImageSample, *, model: str, random_state: int) -> ImageJudge:
        """Train one of ``IMAGE_MODELS`` on pictures and their labels; as ``classify`` does."""
        learnt, labels = np.unique([text_of(value) for value in drawn.y], return_inverse=True)
        pixels = as_pixels(drawn.images)
        require_classifier(model, pixels.shape[2:])
        found = trained(
            *(IMAGE_MODELS[model], pixels, labels.astype(np.int64)),
            n_classes=len(learnt),
            epochs=EPOCHS,
            seed=random_state,
        )
        return cls(model=found, learnt=tuple(learnt.tolist()))

    def probabilities(self, images: Array, classes: Sequence[str]) -> FloatArray:
        """Return the probability of each class for each picture; 0 for one that was not learnt."""
        found = probabilities_of(self.model, as_pixels(images))
        probabilities = np.zeros((len(images), len(classes)))
        for column, value in enumerate(self.learnt):
            if value in classes:
                probabilities[:, classes.index(value)] = found[:, column]
        return probabilities


def classify(
    name: str,
    images: FloatPixels,
    labels: IntArray,
    asked: FloatPixels,
    *,
    n_classes: int,
    epochs: int = EPOCHS,
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
    _checks.at_least("epochs", epochs, 1)
    require_classifier(name, images.shape[2:])
    model = trained(
        IMAGE_MODELS[name], images, labels, n_classes=n_classes, epochs=epochs, seed=seed
    )
    return probabilities_of(model, asked)


def require_classifier(name: str, size: tuple[int, ...]) -> None:
    """Refuse a classifier that cannot be trained here, or not on pictures of this size."""
    require_torch(f"The classifier {name}")
    _checks.one_of("models", name, IMAGE_MODELS)
    height, width = size
    if name == "CNN" and min(height, width) < 4:
        raise ValueError(f"The CNN needs pictures of at least 4 x 4, got {height} x {width}.")


def probabilities_of(model: Any, asked: FloatPixels) -> FloatArray:
    """Return what a network of ``trained`` says: the probability of each class for each picture."""
    with torch.no_grad():
        parts = [torch.softmax(model(part), dim=1) for part in torch.as_tensor(asked).split(_ROWS)]
    probabilities: FloatArray = torch.cat(parts).numpy().astype(np.float64)
    return probabilities


def trained(
    architecture: Architecture,
    images: FloatPixels,
    labels: IntArray,
    *,
    n_classes: int,
    epochs: int,
    seed: int,
) -> Any:
    """Return a network, a torch module, that was trained to tell the labels; see ``classify``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = architecture.build(images.shape[1:], n_classes)
        x, y = torch.as_tensor(images), torch.as_tensor(labels)
        adam = torch.optim.Adam(model.parameters(), lr=RATE)
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(BATCH):
                loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
                adam.zero_grad()
                loss.backward()
                adam.step()
    return model

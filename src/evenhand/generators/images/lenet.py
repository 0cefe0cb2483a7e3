"""A small network of real pictures, whose last hidden layer is what distances are measured in."""

from __future__ import annotations

import numpy as np

from evenhand.datasets.features.networks import TorchFeatures
from evenhand.generators.images.classifiers import trained
from evenhand.generators.images.codec import checked_pictures
from evenhand.generators.images.frechet import channels_first
from evenhand.learners.nets.architectures import Convolutional
from evenhand.typing import ArrayLike

LENET = Convolutional(widths=(6, 16), hidden=(120, 84))
"""The widths of LeNet-5 (LeCun et al. 1998), with 3 x 3 filters and ReLU."""


def lenet(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    trained_on: str,
    licence: str = "none needed",
    epochs: int = 10,
    seed: int = 0,
) -> TorchFeatures:
    """Train a LeNet to tell real pictures apart, and return its 84 features as an extractor.

    For distances of pictures that the networks of photographs know little of, such as digits:
    what tells classes apart counts, and what does not is forgotten. Distances in features of
    networks that were trained on different pictures, or by different seeds, cannot be compared.

    Parameters
    ----------
    images : array of shape (n, h, w) or (n, h, w, 3)
        Real pictures, of at least 4 x 4. Where they are private, so are the features.
    labels : array-like, shape (n,)
    trained_on, licence : str
        For the extractor.
    epochs, seed : int
        No global seed is touched.
    """
    pixels = channels_first(checked_pictures(images))
    scale = np.float32(255.0 if pixels.dtype == np.uint8 else 1.0)
    values, codes = np.unique(np.asarray(labels), return_inverse=True)
    network = trained(
        LENET,
        pixels.astype(np.float32) / scale,
        codes.astype(np.int64),
        n_classes=len(values),
        epochs=epochs,
        seed=seed,
    )
    return TorchFeatures.of(
        network[:-1],
        name="LeNet",
        trained_on=trained_on,
        licence=licence,
        shape=(pixels.shape[1], pixels.shape[2], pixels.shape[3]),
    )

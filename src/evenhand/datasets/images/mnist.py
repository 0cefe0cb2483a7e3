"""MNIST and FashionMNIST: 28 x 28 grey pictures of ten classes."""

from __future__ import annotations

import numpy as np

from evenhand._checks import one_of
from evenhand.datasets.idx import read_idx
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.sources import read_source

FASHION = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)


def load_mnist(part: str = "train") -> ImageData:
    """Load handwritten digits; labels are 0 to 9, and there are no groups (see ``rotated``).

    Parameters
    ----------
    part : {"train", "test"}
        60,000 pictures or 10,000.

    Raises
    ------
    DataNotAvailable
        If the files cannot be had.
    """
    images, labels = _read("mnist", part)
    return ImageData(images=images, y=labels, sensitive_features=None, name="mnist")


def load_fashion_mnist(part: str = "train") -> ImageData:
    """Load pictures of clothes; labels are the names of the ten classes, and there are no groups.

    Parameters
    ----------
    part : {"train", "test"}
        60,000 pictures or 10,000.

    Raises
    ------
    DataNotAvailable
        If the files cannot be had. Debian has them in the package dataset-fashion-mnist.
    """
    images, labels = _read("fashion-mnist", part)
    return ImageData(
        images=images, y=np.array(FASHION)[labels], sensitive_features=None, name="fashion-mnist"
    )


def _read(name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    prefix = {"train": "train", "test": "t10k"}[one_of("part", part, ("train", "test"))]
    images, labels = (
        read_idx(read_source(name, f"{prefix}-{what}-ubyte"), f"{prefix}-{what}-ubyte")
        for what in ("images-idx3", "labels-idx1")
    )
    return images, labels.astype(np.int64)

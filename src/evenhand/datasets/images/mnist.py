"""MNIST, also in colour, and FashionMNIST: 28 x 28 pictures of ten classes."""

from __future__ import annotations

import numpy as np

from evenhand._checks import one_of
from evenhand._random import as_generator
from evenhand.datasets.idx import read_idx
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.sources import read_source
from evenhand.typing import RandomState

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


COLOURS = ("red", "green")
"""Of the digits 0 to 4, and of 5 to 9, where a colour is that of its digit."""


def load_color_mnist(
    part: str = "train", *, bias: float = 0.85, random_state: RandomState = 0
) -> ImageData:
    """Load MNIST in two colours that go with the digit: labels 0 to 9, groups "red" and "green".

    Parameters
    ----------
    part : {"train", "test"}
        60,000 pictures or 10,000.
    bias : float
        Probability that a digit has the colour of its half, from 0.5 (colour says nothing) to 1 (it
        says which half). A test set without the bias has 0.5.
    random_state : int, Generator or None
        Chooses which.

    Returns
    -------
    ImageData
        Colour pictures, 28 x 28: the grey ones in the channel of their colour.

    Notes
    -----
    FairPATE does not say how strongly its colours go with the digits; it cites Arjovsky et al.
    2019, who colour two classes, small and large digits, with probabilities of .9 and .8 in two
    parts of the training set and .1 in the test set (after a quarter of their labels were
    exchanged). .85 is the mean of the former; here all ten labels are kept as they are.
    """
    if not 0.5 <= bias <= 1.0:
        raise ValueError(f"bias must lie in [0.5, 1], got bias={bias!r}.")
    grey = load_mnist(part)
    own = (grey.y >= 5).astype(np.int64)
    other = as_generator(random_state).random(len(grey)) >= bias
    colour = np.where(other, 1 - own, own)
    images = np.zeros((*grey.images.shape, 3), dtype=np.uint8)
    images[np.arange(len(grey)), :, :, colour] = grey.images
    return ImageData(
        images=images, y=grey.y, sensitive_features=np.array(COLOURS)[colour], name="color-mnist"
    )


def _read(name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    prefix = {"train": "train", "test": "t10k"}[one_of("part", part, ("train", "test"))]
    images, labels = (
        read_idx(read_source(name, f"{prefix}-{what}-ubyte"), f"{prefix}-{what}-ubyte")
        for what in ("images-idx3", "labels-idx1")
    )
    return images, labels.astype(np.int64)

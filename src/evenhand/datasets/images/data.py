"""ImageData: pictures with a label and a group each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.typing import Array, RandomState


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageData:
    """Pictures, labels and groups.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, h, w) or (n, h, w, 3)
    y : ndarray, shape (n,)
        Labels.
    sensitive_features : ndarray (n,), DataFrame or None
        Groups, where they are known.
    name : str
    """

    images: Array
    y: Array
    sensitive_features: Array | pd.DataFrame | None
    name: str

    def __post_init__(self) -> None:
        shape = self.images.shape
        if self.images.dtype != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (3,)):
            raise ValueError(
                f"images must be uint8 of shape (n, h, w) or (n, h, w, 3), got {self.images.dtype} "
                f"of shape {shape}."
            )
        _checks.same_length(images=self.images, y=self.y)
        if self.sensitive_features is not None:
            _checks.same_length(images=self.images, sensitive_features=self.sensitive_features)

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: Any) -> ImageData:
        """Return some of the pictures: positions, or a mask."""
        groups = self.sensitive_features
        if isinstance(groups, pd.DataFrame):
            groups = groups.iloc[np.arange(len(self))[rows]].reset_index(drop=True)
        elif groups is not None:
            groups = groups[rows]
        return replace(self, images=self.images[rows], y=self.y[rows], sensitive_features=groups)

    def split(
        self, test: float = 0.25, random_state: RandomState = None
    ) -> tuple[ImageData, ImageData]:
        """Return (private, test): ``test`` of the pictures at random, nothing stratified."""
        _checks.open_unit("test", test)
        order = as_generator(random_state).permutation(len(self))
        n_test = round(test * len(self))
        return self.take(order[n_test:]), self.take(order[:n_test])

    def pooled(self, factor: int = 2) -> ImageData:
        """Return smaller pictures: the mean of every ``factor`` by ``factor`` pixels, rounded.

        MNIST becomes 14 x 14 with ``factor=2``.
        """
        _checks.at_least("factor", factor, 1)
        n, height, width = self.images.shape[:3]
        if height % factor or width % factor:
            raise ValueError(
                f"Pictures of {height} x {width} cannot be cut into squares of {factor} pixels. "
                f"Choose a factor that divides both."
            )
        tiles = self.images.reshape(n, height // factor, factor, width // factor, factor, -1)
        small = np.rint(tiles.mean(axis=(2, 4))).astype(np.uint8)
        return replace(self, images=small[..., 0] if self.images.ndim == 3 else small)

"""Pictures as networks read them: an encoder that only checks their shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand._display import Shown
from evenhand.typing import Array

FORMAT = 1
SIDES = 3  # channels, height, width


class PixelEncoder(Shown):
    """Stands for ``PublicEncoder`` where rows are pictures: they have no columns, and no schema.

    Parameters
    ----------
    shape : (int, int, int)
        Channels, height and width, of every picture.
    dtype : {"uint8", "float32"}

    Privacy
    -------
    ``transform`` hands each picture on as it is; shape and type are public.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def n_features_out_(self) -> int:
        """Number of pixels, each channel counted."""
        return int(np.prod(self.shape))

    def transform(self, X: Any) -> Array:
        """Return pictures (n, channels, height, width), checked; bytes stay bytes."""
        rows = _checks.rows("X", X)
        if rows.shape[1:] != self.shape or str(rows.dtype) != self.dtype:
            raise ValueError(
                f"The pictures must be {self.dtype} of shape (n, {', '.join(map(str, self.shape))})"
                f", as those of fit, got {rows.dtype} of shape {rows.shape}. Resize them, or "
                f"convert them in the same way."
            )
        return rows

    def blank(self, n: int) -> Array:
        """Return black pictures."""
        return np.zeros((n, *self.shape), dtype=self.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"format": FORMAT, "pixels": list(self.shape), "dtype": self.dtype}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PixelEncoder:
        """Read what ``to_dict`` wrote."""
        shape = tuple(int(side) for side in values["pixels"])
        if values["format"] != FORMAT or len(shape) != SIDES or min(shape) < 1:
            raise ValueError("the encoder of pictures is not one that this version wrote.")
        return cls(shape, _checks.one_of("dtype", values["dtype"], ("uint8", "float32")))

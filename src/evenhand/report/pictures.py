"""A few public pictures, small and inside the page, with what is predicted of each."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Self

import numpy as np

from evenhand.datasets.images.files import require_pillow
from evenhand.typing import Array

SIDE: Final = 64
"""Height and width at most, in pixels."""

_QUALITY: Final = 80


@dataclass(frozen=True, kw_only=True)
class ShownPicture:
    """One public picture."""

    address: str
    """The image itself, as a data URL."""
    words: str
    """What stands below it, and is read aloud in its place."""

    @classmethod
    def of(cls, picture: Array, *, row: int, group: str, predicted: str) -> Self:
        """Make it of uint8 pixels, (h, w) or (h, w, 3), of a row that is counted from 0."""
        require_pillow("A picture in a report")
        image = import_module("PIL.Image").fromarray(np.ascontiguousarray(picture))
        image.thumbnail((SIDE, SIDE))
        file = io.BytesIO()
        image.save(file, "JPEG", quality=_QUALITY)
        data = base64.b64encode(file.getvalue()).decode("ascii")
        of_group = f" of the group {group}" if group else ""
        return cls(
            address=f"data:image/jpeg;base64,{data}",
            words=f"Public row {row + 1}{of_group}, predicted {predicted}",
        )

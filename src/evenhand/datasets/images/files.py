"""Picture files as arrays, through Pillow; those that cannot be read are counted and named."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand._extras import MissingExtra, installed
from evenhand.typing import Array

# Not needed to import this module, so that documentation and tests read it without the extra.
pillow: Any = import_module("PIL.Image") if installed("PIL") else None


class UnreadableImages(ValueError):
    """Picture files that cannot be decoded; the message counts and names them."""


def read_pictures(files: Sequence[Path | tuple[str, bytes]], size: int | None, where: str) -> Array:
    """Return the pictures as (n, size, size, 3) uint8.

    Parameters
    ----------
    files : sequence of Path or (name, content)
    size : int or None
        Height and width: the middle square is cut out and resized. None: all have one size already.
    where : str
        What they are, for messages.

    Raises
    ------
    UnreadableImages
        If any cannot be decoded.
    MissingExtra
        If Pillow is missing.
    """
    require_pillow(where)
    if size is not None:
        _checks.at_least("size", size, 1)
    made: list[Array] = []
    bad: list[str] = []
    for file in files:
        name, source = (
            (str(file), file) if isinstance(file, Path) else (file[0], io.BytesIO(file[1]))
        )
        try:
            with pillow.open(source) as picture:
                made.append(np.asarray(_square(picture.convert("RGB"), size)))
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            bad.append(f"{name} ({type(error).__name__})")
    if bad:
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise UnreadableImages(
            f"{len(bad)} of {len(files)} pictures of {where} cannot be read: "
            f"{', '.join(bad[:5])}{more}. Replace them, or take them out of the folder."
        )
    shapes = {picture.shape for picture in made}
    if len(shapes) > 1:
        raise ValueError(
            f"The pictures of {where} have {len(shapes)} different sizes. Say which one they shall "
            f"have: size=64."
        )
    return np.stack(made) if made else np.zeros((0, 1, 1, 3), dtype=np.uint8)


def require_pillow(what: str) -> None:
    """Say how to install Pillow where it is missing."""
    if pillow is None:
        raise MissingExtra.of(what, "Pillow", "images")


def _square(picture: Any, size: int | None) -> Any:
    if size is None:
        return picture
    width, height = picture.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    cut = picture.crop((left, top, left + side, top + side))
    return cut if side == size else cut.resize((size, size), pillow.Resampling.LANCZOS)

"""Pictures on a page: PNG made without any imaging library, one strip per row."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from evenhand.report.htmltext import text
from evenhand.typing import Array

_GREY, _COLOUR = 0, 2  # the colour types of PNG


def png(picture: Array) -> bytes:
    """Return a PNG of uint8 (h, w) or (h, w, 3)."""
    height, width = picture.shape[:2]
    kind = _GREY if picture.ndim == 2 else _COLOUR
    lines = np.ascontiguousarray(picture, dtype=np.uint8).reshape(height, -1)
    # Every line begins with the number of its filter: 0, none.
    raw = np.hstack([np.zeros((height, 1), dtype=np.uint8), lines]).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, content)
        for name, content in ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    )


def strip(pictures: Array, words: str, *, gap: int = 1) -> str:
    """Return an image element of pictures side by side, with words for who cannot see it.

    Parameters
    ----------
    pictures : ndarray of uint8, shape (n, h, w) or (n, h, w, 3)
    words : str
        What they are; escaped here.
    gap : int
        White pixels between two.
    """
    n, height, width = pictures.shape[:3]
    rest = pictures.shape[3:]
    sheet = np.full((height, n * (width + gap) - gap, *rest), 255, dtype=np.uint8)
    for i, picture in enumerate(pictures):
        left = i * (width + gap)
        sheet[:, left : left + width] = picture
    data = base64.b64encode(png(sheet)).decode("ascii")
    return f'<img class="strip" alt="{text(words)}" src="data:image/png;base64,{data}">'


def _chunk(name: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + check

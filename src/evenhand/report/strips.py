"""Synthetic pictures beside real ones, some of each combination, as images inside the page."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand._numerals import text_of
from evenhand.datasets.images import ImageData
from evenhand.fairness.groups import encode_groups
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.typing import Array

SHOWN: Final = 16  # pictures of each combination of label and group
MOST: Final = 40  # combinations; of more the first ones
_GREY, _COLOUR = 0, 2  # the colour types of PNG


@dataclass(frozen=True, kw_only=True, eq=False)
class Strip:
    """Pictures of one combination of label and group."""

    words: str
    """The combination."""
    synthetic: str | None
    real: str | None
    """``synthetic`` and ``real``: some of each side by side, as the address of an image; None where
    there are none.
    """


def strips(generator: ImageSynthesizer, test: ImageData | None) -> tuple[Strip, ...]:
    """Return the pictures of every combination; sampling costs no privacy."""
    known = generator.conditions_
    unseen = set(generator.unseen_)
    real = {} if test is None else _real(generator, test)
    out = []
    for c in range(min(known.n, MOST)):
        made = None
        if c not in unseen:
            shares = np.zeros(known.n)
            shares[c] = 1.0
            made = strip(generator.sample(SHOWN, shares=shares, random_state=0).uint8)
        out.append(Strip(words=known.words(c), synthetic=made, real=real.get(c)))
    return tuple(out)


def _real(generator: ImageSynthesizer, test: ImageData) -> dict[int, str]:
    """Return the first test pictures of every combination."""
    known = generator.conditions_
    labels = [text_of(value) for value in test.y]
    columns = [np.array([_place(known.categories[0], label) for label in labels])]
    if len(known.names) > 1 and test.sensitive_features is not None:
        for name, categories in zip(known.names[1:], known.categories[1:], strict=True):
            given = test.sensitive_features
            column = given if isinstance(given, np.ndarray) else given[name]
            coded = encode_groups(column)
            places = np.array([_place(categories, group) for group in coded.names])
            columns.append(places[coded.codes])
    if len(columns) != len(known.names):
        return {}
    there = np.all([column >= 0 for column in columns], axis=0)
    codes = known.code([column[there] for column in columns])
    pictures = test.images[there]
    if pictures.dtype != np.uint8:
        pictures = np.rint(255.0 * pictures).astype(np.uint8)
    return {
        c: strip(pictures[rows[:SHOWN]])
        for c in range(known.n)
        if len(rows := np.flatnonzero(codes == c))
    }


def _place(categories: tuple[str, ...], value: str) -> int:
    return categories.index(value) if value in categories else -1


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


def strip(pictures: Array) -> str:
    """Return the address of an image of pictures side by side, which holds the image itself.

    Parameters
    ----------
    pictures : ndarray of uint8, shape (n, h, w) or (n, h, w, 3)
    """
    n, height, width = pictures.shape[:3]
    rest = pictures.shape[3:]
    sheet = np.full((height, n * (width + 1) - 1, *rest), 255, dtype=np.uint8)
    for i, picture in enumerate(pictures):
        left = i * (width + 1)  # a white line between two
        sheet[:, left : left + width] = picture
    data = base64.b64encode(png(sheet)).decode("ascii")
    return f"data:image/png;base64,{data}"


def _chunk(name: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + check

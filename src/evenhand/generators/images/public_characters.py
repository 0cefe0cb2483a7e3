"""PublicCharacters: a public generator of letters and digits, by fonts that anybody has."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from scipy.ndimage import distance_transform_edt

from evenhand import _values
from evenhand._extras import MissingExtra, OnUse, installed
from evenhand.generators.images.public_generator import MovedPictures, Size
from evenhand.typing import FloatArray

_fonts = OnUse("PIL.ImageFont", "PublicCharacters", "Pillow", "images")

_EM: Final = 64  # rows of a model for the size of a font
_SIDE: Final = 112  # of a model
_WEIGHT: Final = (
    0.025  # deviation of what is added to a stroke on either side, in sizes of the font
)
_SOFT: Final = (0.05, 0.15)  # width of an edge in these sizes, and the deviation of its logarithm
_TEXT: Final = ("DejaVu", "STIXGeneral", "cmb", "cmr", "cmss", "cmti", "cmtt")
"""Those of matplotlib's fonts that hold letters and digits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicCharacters(MovedPictures):
    """Draw single characters by fonts, light on black.

    A model is the distance from the edge of a character in a font, so that strokes may be thicker
    or thinner, and their edges softer.

    Parameters
    ----------
    fonts : path, optional
        Folder of TrueType or OpenType fonts (.ttf, .otf); those that matplotlib brings (extra
        ``plot``) if not given.

    Examples
    --------
    >>> drawn = PublicCharacters().random(np.array([3, 8]), (1, 28, 28), np.random.default_rng(0))
    >>> drawn.pixels.shape
    (2, 1, 28, 28)
    """

    fonts: str | Path | None = None
    name: ClassVar[str] = "characters of fonts"
    reach: ClassVar[float] = 1.0
    n_tones: ClassVar[int] = 2

    def files(self) -> tuple[Path, ...]:
        """Return the files of the fonts, by name."""
        if self.fonts is not None:
            found = [p for p in Path(self.fonts).glob("*") if p.suffix.lower() in (".ttf", ".otf")]
            if not found:
                raise ValueError(
                    f"There is no font (.ttf, .otf) in the folder {self.fonts}. Name another."
                )
            return tuple(sorted(found))
        if not installed("matplotlib"):
            raise MissingExtra.of("PublicCharacters without fonts=", "matplotlib", "plot")
        folder = Path(import_module("matplotlib").get_data_path()) / "fonts" / "ttf"
        return tuple(p for p in sorted(folder.glob("*.ttf")) if p.name.startswith(_TEXT))

    @property
    def made_of(self) -> str:
        """How many fonts, and a digest of their files."""
        files, digest = self.files(), hashlib.sha256()
        for file in files:
            digest.update(file.read_bytes())
        return f"{len(files)} fonts, digest {digest.hexdigest()[:12]}"

    def models(self, label: str, size: Size) -> tuple[FloatArray, float]:
        """Return the distances from the edge of a character, of each font that has it."""
        if size[0] != 1:
            raise ValueError(
                "PublicCharacters draws grey pictures, and the private ones are in colour. Give "
                "public=PublicPictures(...)."
            )
        found = [_distances(str(file), label) for file in self.files()] if len(label) == 1 else []
        known = [model for model in found if model is not None]
        if not known:
            raise ValueError(
                f"PublicCharacters draws single characters that a font has, and the label "
                f"{_values.quoted(label)} is none. Give public=PublicPictures(...), or a generator "
                f"of your own."
            )
        return np.stack(known)[:, None], float(_EM)

    def toned(self, values: FloatArray, tones: FloatArray) -> FloatArray:
        """Return how much of a soft edge is passed."""
        weight, soft = tones[:, 0, None, None, None], tones[:, 1, None, None, None]
        edge = _SOFT[0] * np.exp(_SOFT[1] * soft)
        return np.clip(0.5 + (values + _WEIGHT * weight) / edge, 0.0, 1.0)


@cache
def _distances(file: str, character: str) -> FloatArray | None:
    """Return distances from a character's edge, above 0 inside, in sizes of the font.

    None if the font does not have it.
    """
    font = _fonts.truetype(file, _EM)
    mask, none = (font.getmask(text, mode="L") for text in (character, "\U0010ffff"))
    width, height = mask.size
    if not width * height or max(mask.size) > _SIDE or bytes(mask) == bytes(none):
        return None
    inside = np.zeros((_SIDE, _SIDE), dtype=bool)
    top, left = (_SIDE - height) // 2, (_SIDE - width) // 2
    grey = np.frombuffer(bytes(mask), dtype=np.uint8).reshape(height, width)
    inside[top : top + height, left : left + width] = grey > 127
    if not inside.any():
        return None
    apart = distance_transform_edt(inside) - distance_transform_edt(~inside)
    distances: FloatArray = (apart - np.sign(apart) / 2) / _EM
    return distances

"""Public generators: programs that draw pictures of a label, and pictures near those."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.special import ndtr

from evenhand import _checks, _values
from evenhand._numerals import text_of
from evenhand.generators.feature_means import chunks
from evenhand.generators.images.codec import FloatPixels, checked_pictures
from evenhand.typing import Array, FloatArray, IntArray

Size: TypeAlias = tuple[int, int, int]
"""Channels, height and width."""

_CHUNK: Final = 2**21  # pixels that are drawn at once
_BENDS: Final = tuple((i, j) for i in range(3) for j in range(3) if i + j)
"""Waves of a bend, down and across."""

_TURN, _SHEAR, _SCALE, _SHIFT, _BEND = 0.15, 0.35, 0.2, 0.08, 0.2
"""Deviations: radians, a slope, logarithm of a length, and two in halves of a picture's height."""

N_MOVES: Final = 6 + 2 * len(_BENDS)
"""Turn, shear, width, height, two shifts, and the bends across and down."""

_GAIN: Final = 0.15  # deviation of the logarithm of a picture's contrast


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Pictures that a public generator drew, and what it needs to draw others near them."""

    pixels: FloatPixels
    """In [0, 1]. Shape (n, channels, height, width)."""
    parameters: FloatArray
    """By which each was drawn. A generator that varies the pictures themselves has none, (n, 0).
    Shape (n, n_parameters).
    """

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: IntArray) -> Drawn:
        """Return some of them, in this order."""
        return Drawn(pixels=self.pixels[rows], parameters=self.parameters[rows])


@runtime_checkable
class PublicGenerator(Protocol):
    """Draws pictures, and knows no private one.

    Privacy
    -------
    Costs nothing, whatever it draws: it is taken as public, and a claim names it, with what it was
    made of. One that was fitted to private pictures makes the claim wrong for these.
    """

    @property
    def name(self) -> str:
        """What it is called, in words for a claim."""

    @property
    def made_of(self) -> str:
        """What data it was made of or trained on, in words for a claim."""

    def random(self, labels: Array, size: Size, rng: np.random.Generator) -> Drawn:
        """Draw a picture of each label, as various as it can.

        Parameters
        ----------
        labels : ndarray, shape (n,)
            In the user's own values.
        size : tuple of int
            Channels, height and width.
        rng : Generator

        Raises
        ------
        ValueError
            For a label or a size of which it draws no picture.
        """

    def vary(self, drawn: Drawn, labels: Array, strength: float, rng: np.random.Generator) -> Drawn:
        """Draw a picture near each: at strength 0 the same one, at 1 as far as another random one.

        Parameters
        ----------
        drawn : Drawn
            Its own.
        labels : ndarray, shape (n,)
        strength : float
            In [0, 1].
        rng : Generator
        """


class MovedPictures(ABC):
    """Draws from models: one is chosen, moved, turned, sheared, stretched and bent.

    All parameters are standard normal numbers, the one that chooses the model too. A variation of
    strength s has ``sqrt(1 - s**2)`` times the old ones and ``s`` times fresh ones, and another
    model with probability ``s**2``, so that it is as likely as any other picture.
    """

    reach: ClassVar[float]
    """How far a model is moved, as a share of how far a character may be that somebody writes."""

    n_tones: ClassVar[int]
    """Parameters that say how pixels follow from values of the model."""

    @abstractmethod
    def models(self, label: str, size: Size) -> tuple[FloatArray, float]:
        """Return models of a label, (n, channels, rows, columns), and how many rows a picture has.

        Raises ValueError where there is none.
        """

    @abstractmethod
    def toned(self, values: FloatArray, tones: FloatArray) -> FloatArray:
        """Return pixels of values (n, channels, height, width) of the models."""

    def random(self, labels: Array, size: Size, rng: np.random.Generator) -> Drawn:
        """Draw a picture of each label; see ``PublicGenerator``."""
        parameters = rng.normal(size=(len(labels), 1 + N_MOVES + self.n_tones))
        return self._drawn(parameters, labels, size)

    def vary(self, drawn: Drawn, labels: Array, strength: float, rng: np.random.Generator) -> Drawn:
        """Draw a picture near each; see ``PublicGenerator``."""
        old, fresh = drawn.parameters, rng.normal(size=drawn.parameters.shape)
        parameters = (1.0 - strength**2) ** 0.5 * old + strength * fresh
        # Models have no order in which some are near.
        other = rng.random(len(old)) < strength**2
        parameters[:, 0] = np.where(other, fresh[:, 0], old[:, 0])
        return self._drawn(parameters, labels, drawn.pixels.shape[1:])

    def _drawn(self, parameters: FloatArray, labels: Array, size: Size) -> Drawn:
        out = np.empty((len(labels), *size), dtype=np.float32)
        texts = np.array([text_of(label) for label in labels])
        for text in np.unique(texts):
            models, n_rows = self.models(str(text), size)
            own = np.flatnonzero(texts == text)
            for part in chunks(len(own), max(1, _CHUNK // (size[1] * size[2]))):
                rows = own[part]
                choice, moves, tones = np.split(parameters[rows], (1, 1 + N_MOVES), axis=1)
                chosen = np.minimum((ndtr(choice[:, 0]) * len(models)).astype(int), len(models) - 1)
                values = moved(models, chosen, n_rows, self.reach * moves, size)
                out[rows] = self.toned(values, tones)
        return Drawn(pixels=out, parameters=parameters)


@dataclass(frozen=True, eq=False, repr=False)
class PublicPictures(MovedPictures):
    """A pool of public pictures: one of the label is chosen, moved a little, and bent.

    Parameters
    ----------
    pictures : array of uint8, or of floats in [0, 1]; shape (n, h, w) or (n, h, w, 3)
        Public, of the size of the private ones.
    labels : array-like, shape (n,)
        Label of each.
    made_of : str
        Where they are from, in words for a claim.

    Examples
    --------
    >>> pool = PublicPictures(np.zeros((2, 8, 8)), ["cat", "dog"], made_of="two black pictures")
    >>> pool.random(np.array(["dog"] * 5), (1, 8, 8), np.random.default_rng(0)).pixels.shape
    (5, 1, 8, 8)
    """

    pictures: Array
    labels: Array
    made_of: str
    name: ClassVar[str] = "public pictures, moved and bent"
    reach: ClassVar[float] = 0.4
    n_tones: ClassVar[int] = 1

    def __post_init__(self) -> None:
        pictures, labels = checked_pictures(self.pictures), np.asarray(self.labels)
        _checks.same_length(pictures=pictures, labels=labels)
        object.__setattr__(self, "pictures", pictures)
        object.__setattr__(self, "labels", np.array([text_of(label) for label in labels]))

    def models(self, label: str, size: Size) -> tuple[FloatArray, float]:
        """Return the pictures of a label."""
        own = self.pictures[self.labels == label]
        own = own[:, None] if own.ndim == 3 else own.transpose(0, 3, 1, 2)
        if own.shape[1:] != size:
            raise ValueError(
                f"The private pictures have {_words(size)} and the public ones "
                f"{_words(own.shape[1:])} (channels, height, width). Give both one size."
            )
        if not len(own):
            raise ValueError(
                f"There is no public picture of the label {_values.quoted(label)}; there are some "
                f"of {', '.join(map(repr, sorted(set(self.labels.tolist()))[:12]))}. Add some."
            )
        scale = 255.0 if own.dtype == np.uint8 else 1.0
        return own / scale, float(size[1])

    def toned(self, values: FloatArray, tones: FloatArray) -> FloatArray:
        """Return the values at a contrast."""
        return np.clip(values * np.exp(_GAIN * tones[:, :1, None, None]), 0.0, 1.0)


def _words(size: tuple[int, ...]) -> str:
    return " x ".join(map(str, size))


def moved(
    models: FloatArray, chosen: IntArray, n_rows: float, moves: FloatArray, size: Size
) -> FloatArray:
    """Return values of the chosen models at the places that pixels are moved to.

    Places are measured from the middle, in halves of a picture's height, of which a model has
    ``n_rows / 2`` rows. Values are between those of the nearest four (bilinear), and beyond the
    edge that of the edge.
    """
    n, (channels, height, width) = len(moves), size
    turn, shear, wide, high, right, down = moves[:, :6].T[:, :, None]
    across, along = np.split(moves[:, 6:], 2, axis=1)
    i, j = (at.ravel() for at in np.indices((height, width)))
    y, x = ((2.0 * at + 1.0 - extent) / height for at, extent in ((i, height), (j, width)))
    bends = np.stack([_wave(i, height, a) * _wave(j, width, b) / (a + b) for a, b in _BENDS])
    x = x + _SHIFT * right + _BEND * across @ bends
    y = y + _SHIFT * down + _BEND * along @ bends
    x, y = (x + _SHEAR * shear * y) * np.exp(_SCALE * wide), y * np.exp(_SCALE * high)
    cos, sin = np.cos(_TURN * turn), np.sin(_TURN * turn)
    rows, columns = models.shape[2:]
    above, of_below = _between((cos * y + sin * x) * n_rows / 2 + (rows - 1) / 2, rows)
    left, of_right = _between((cos * x - sin * y) * n_rows / 2 + (columns - 1) / 2, columns)
    flat = models.reshape(len(models), channels, -1)
    out = np.zeros((n, channels, height * width))
    for lower, later in np.ndindex(2, 2):
        at = np.minimum(above + lower, rows - 1) * columns + np.minimum(left + later, columns - 1)
        part = (of_below if lower else 1.0 - of_below) * (of_right if later else 1.0 - of_right)
        for channel in range(channels):
            out[:, channel] += part * flat[chosen[:, None], channel, at]
    return out.reshape(n, channels, height, width)


def _wave(at: IntArray, n: int, k: int) -> FloatArray:
    wave: FloatArray = np.cos(np.pi * (at + 0.5) * k / n)
    return wave


def _between(places: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """Return the row before each place, and how far it is towards the next."""
    inside = np.clip(places, 0.0, n - 1.0)
    before = inside.astype(np.int64)
    return before, inside - before

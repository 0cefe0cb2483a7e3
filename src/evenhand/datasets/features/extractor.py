"""What a feature extractor is: a public function of one picture, and what a claim says of it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.typing import Array

Float32Array: TypeAlias = NDArray[np.float32]

LUMA: Final = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""Weights of red, green and blue in a grey picture (ITU-R BT.601)."""


class FeatureExtractor(Protocol):
    """Numbers for each picture by itself, by a function that everybody may know.

    Privacy
    -------
    Costs nothing: row i of ``transform`` reads picture i and nothing else of the data, so records
    stay records. The function is taken as public, and a claim names it, with what it was trained
    on. One that was fitted on the private pictures is not public, and makes the claim wrong.

    ``evenhand.testing.extractors.FeatureExtractorContract`` checks what can be checked.
    """

    @property
    def name(self) -> str:
        """What it is called, such as "EfficientNet-Lite0"."""

    @property
    def version(self) -> str:
        """Of its weights."""

    @property
    def dimension(self) -> int:
        """How many numbers a picture becomes."""

    @property
    def trained_on(self) -> str:
        """What data made it, in words for a claim."""

    @property
    def licence(self) -> str:
        """On what terms it may be used."""

    @property
    def digest(self) -> str:
        """Changes wherever the features would: of the weights and of how pictures are prepared."""

    def transform(self, pictures: Array) -> Float32Array:
        """Return (n, dimension) features of pictures (n, c, h, w), as ``as_floats`` takes them."""


@dataclass(frozen=True, kw_only=True)
class ExtractorRecord:
    """Which extractor it was: what a claim names, and what a saved model remembers.

    Examples
    --------
    >>> record = ExtractorRecord(
    ...     name="colours",
    ...     version="1",
    ...     dimension=6,
    ...     trained_on="nothing",
    ...     licence="none needed",
    ...     digest="mean and sd",
    ... )
    >>> print(record)
    the feature extractor colours 1 (6 numbers for each picture by itself; digest mean and sd;
    trained on nothing; licence: none needed)
    """

    name: str
    version: str
    dimension: int
    trained_on: str
    licence: str
    digest: str
    """``name``, ``version``, ``dimension``, ``trained_on``, ``licence`` and ``digest``: see
    ``FeatureExtractor``.
    """
    shape: tuple[int, ...] | None = None
    mean: tuple[float, ...] | None = None
    sd: tuple[float, ...] | None = None
    """``shape``, ``mean`` and ``sd``: how pictures are prepared; known of a ``NetworkExtractor``.
    """

    def __post_init__(self) -> None:
        for name in ("name", "version", "trained_on", "licence", "digest"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} of an extractor must be text, got {getattr(self, name)!r}")
        _checks.at_least("dimension of the extractor", self.dimension, 1)

    @classmethod
    def of(cls, extractor: FeatureExtractor) -> ExtractorRecord:
        """Ask an extractor for all of it."""
        prepared = ("shape", "mean", "sd") if isinstance(extractor, NetworkExtractor) else ()
        return cls(**{name: getattr(extractor, name) for name in (*_SAID, *prepared)})

    def __str__(self) -> str:
        return (
            f"the feature extractor {self.name} {self.version} ({self.dimension} numbers for each "
            f"picture by itself; digest {self.digest[:12]}; trained on {self.trained_on}; licence: "
            f"{self.licence})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ExtractorRecord:
        """Read what ``to_dict`` wrote."""
        lists = {name: values[name] for name in ("shape", "mean", "sd")}
        read = {name: None if v is None else tuple(map(float, v)) for name, v in lists.items()}
        if read["shape"] is not None:
            read["shape"] = tuple(map(int, read["shape"]))
        return cls(**{**values, **read})


_SAID: Final = ("name", "version", "dimension", "trained_on", "licence", "digest")


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkExtractor(ABC):
    """Base of extractors that run a network on pictures of one shape.

    Notes
    -----
    The network always sees ``batch`` pictures; the last ones are filled up with black. So the last
    bit of a feature depends neither on how many other pictures there are nor on what they show.
    """

    batch: ClassVar[int] = 16

    name: str
    version: str
    dimension: int
    trained_on: str
    licence: str
    """``name``, ``version``, ``trained_on`` and ``licence``: see ``FeatureExtractor``."""
    weights: str
    """SHA-256 digest of the weights."""
    shape: tuple[int, int, int]
    """Channels, height and width of what the network takes. Pictures are resized (bilinear), grey
    ones repeated, colours made grey.
    """
    mean: tuple[float, ...] = (0.0,)
    sd: tuple[float, ...] = (1.0,)
    """``mean`` and ``sd``: of each channel, or of all: the network takes ``(pixel - mean) / sd`` of
    pixels in [0, 1].
    """

    @property
    def digest(self) -> str:
        """SHA-256 digest of the weights and of how pictures are prepared."""
        parts = (self.weights, self.shape, self.mean, self.sd)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @abstractmethod
    def run(self, inputs: Float32Array) -> Array:
        """Return (batch, dimension) features of inputs (batch, c, h, w)."""

    def transform(self, pictures: Array) -> Float32Array:
        """Return (n, dimension) features of pictures (n, c, h, w)."""
        out = np.empty((len(pictures), self.dimension), dtype=np.float32)
        for start in range(0, len(pictures), self.batch):
            part = self.prepared(pictures[start : start + self.batch])
            inputs = np.zeros((self.batch, *part.shape[1:]), dtype=np.float32)
            inputs[: len(part)] = part
            out[start : start + self.batch] = self.run(inputs)[: len(part)]
        return out

    def prepared(self, pictures: Array) -> Float32Array:
        """Return pictures as the network takes them."""
        channels, height, width = self.shape
        out = resized(with_channels(as_floats(pictures), channels), height, width)
        mean, sd = (
            np.array(v, dtype=np.float32).reshape(1, -1, 1, 1) for v in (self.mean, self.sd)
        )
        scaled: Float32Array = (out - mean) / sd
        return scaled


def as_floats(pictures: Array) -> Float32Array:
    """Return pictures (n, c, h, w) as numbers in [0, 1].

    Parameters
    ----------
    pictures : ndarray of uint8, or of floats in [0, 1]
        One channel (grey) or three.

    Raises
    ------
    ValueError
        For another shape, another type, or floats outside [0, 1].
    """
    pictures = np.asarray(pictures)
    if pictures.ndim != 4 or pictures.shape[1] not in (1, 3):
        raise ValueError(
            f"pictures must have shape (n, c, h, w) with 1 or 3 channels, got {pictures.shape}. "
            f"Pass ImageData.X; or, where channels come last, np.moveaxis(pictures, -1, 1)."
        )
    if pictures.dtype == np.uint8:
        return pictures.astype(np.float32) / np.float32(255.0)
    if pictures.dtype.kind != "f":
        raise ValueError(f"pictures must be uint8, or floats in [0, 1], got {pictures.dtype}.")
    out: Float32Array = pictures.astype(np.float32)
    if out.size and not (out.min() >= 0.0 and out.max() <= 1.0):
        raise ValueError(
            "pictures of floats must lie in [0, 1], and some do not (or are NaN). Divide them by "
            "255, or pass them as uint8."
        )
    return out


def with_channels(pictures: Float32Array, channels: int) -> Float32Array:
    """Return pictures with one channel or three: grey ones repeated, colours made grey."""
    if pictures.shape[1] == channels:
        return pictures
    if channels == 3:
        return np.repeat(pictures, 3, axis=1)
    grey: Float32Array = np.einsum("nchw,c->nhw", pictures, LUMA)[:, None]
    return grey


def resized(pictures: Float32Array, height: int, width: int) -> Float32Array:
    """Return pictures of another size, each pixel between its nearest four (bilinear).

    Examples
    --------
    >>> resized(np.array([[[[0.0, 1.0]]]], dtype=np.float32), 1, 4)[0, 0, 0].tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    if pictures.shape[2:] == (height, width):
        return pictures
    rows, columns = _between(pictures.shape[2], height), _between(pictures.shape[3], width)
    out: Float32Array = rows @ (pictures @ columns.T)
    return out


def _between(n: int, n_out: int) -> Float32Array:
    """Return the weights (n_out, n) with which n pixels in a line become n_out."""
    at = np.clip((np.arange(n_out) + 0.5) * n / n_out - 0.5, 0.0, n - 1.0)
    below = np.minimum(at.astype(np.int64), n - 1)
    above = np.minimum(below + 1, n - 1)
    weights = np.zeros((n_out, n), dtype=np.float32)
    np.add.at(weights, (np.arange(n_out), below), 1.0 - (at - below))
    np.add.at(weights, (np.arange(n_out), above), at - below)
    return weights


def digest_of_file(path: str | Path) -> str:
    """Return the SHA-256 digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

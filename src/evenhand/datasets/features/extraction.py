"""Features of pictures: computed once, in batches, and kept by what each picture shows."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from safetensors.numpy import load as read_arrays
from safetensors.numpy import save as arrays_as_bytes

from evenhand import _checks, _values
from evenhand.datasets import places
from evenhand.datasets.features.derived import DerivedExtractor
from evenhand.datasets.features.extractor import (
    ExtractorRecord,
    FeatureExtractor,
    Float32Array,
)
from evenhand.typing import Array

BATCH: Final = 256
"""Pictures that are decoded at a time, and whose features are kept together."""

MADE_BY: Final = "evenhand extractor"
"""Where ``attrs`` of a DataFrame say which extractor its features are of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """Numbers for each picture, and which public function made them.

    It goes into ``fit`` and ``predict`` as ``X``, whose claim then names the extractor; so does
    ``features.frame()``, to which columns of a table can be joined. Rows are taken by
    ``features[rows]``, and ``np.asarray(features)`` is the array alone.
    """

    values: Float32Array = field(repr=False)
    """Shape (n, d)."""
    extractor: ExtractorRecord

    @property
    def made_by(self) -> str:
        """What a claim takes as public."""
        return str(self.extractor)

    def frame(self, prefix: str = "feature ") -> pd.DataFrame:
        """Return a table of them, whose ``attrs`` keep which extractor it was.

        pandas hands ``attrs`` on where rows or columns are taken, or others are joined; ``concat``
        keeps them where all parts have the same.
        """
        frame = pd.DataFrame(
            self.values, columns=[f"{prefix}{i}" for i in range(self.values.shape[1])]
        )
        frame.attrs[MADE_BY] = self.extractor
        return frame

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """Two."""
        return self.values.ndim

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """Of the values."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Features:
        found = self.values[rows]
        if found.ndim != 2:
            raise IndexError(
                f"features[rows] takes rows: positions, a mask or a slice; got {rows!r}. Single "
                f"numbers are in .values."
            )
        return Features(values=found, extractor=self.extractor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)


def extractor_of(rows: Any) -> ExtractorRecord | None:
    """Return which extractor made rows: features, or a frame of them; None of any others."""
    if isinstance(rows, Features):
        return rows.extractor
    known = rows.attrs.get(MADE_BY) if isinstance(rows, pd.DataFrame) else None
    return known if isinstance(known, ExtractorRecord) else None


def extract(
    pictures: Any,
    extractor: FeatureExtractor,
    *,
    cache: bool | str | Path = True,
    progress: Callable[[int, int], None] | None = None,
) -> Features:
    """Return the features of pictures; those that the cache knows are not computed again.

    Parameters
    ----------
    pictures : ndarray (n, c, h, w) of uint8, or of floats in [0, 1]; or ``ImageData.X``
        Read 256 at a time: files are decoded then, and never all at once.
    extractor : FeatureExtractor
        Such as ``EfficientNetLite0.load()``.
    cache : bool or path
        Folder where features are kept, each under the digest of its picture and of the extractor.
        True: "features" in the user's cache; False: none. What was computed is written after every
        256 pictures, whole or not at all, so a run that was stopped goes on where it was; other
        parts of the same pictures, in any order, find theirs.
    progress : callable, optional
        Called as ``progress(done, total)``.

    Raises
    ------
    ValueError
        If the extractor gives another shape than it says, or numbers that are not finite.

    Privacy
    -------
    Free: row i is a public function of picture i alone. The cache holds features of private
    pictures without noise, as private as these; its folder can be read by its user alone.
    """
    if isinstance(extractor, DerivedExtractor):
        return _derived(pictures, extractor, cache, progress)
    n = len(pictures)
    folder = _folder(cache, extractor)
    known = {} if folder is None else dict(_kept(folder, extractor.dimension))
    out = np.empty((n, extractor.dimension), dtype=np.float32)
    for start in range(0, n, BATCH):
        part = np.asarray(pictures[start : start + BATCH])
        digests = [_digest(picture) for picture in part]
        at = {digest: i for i, digest in enumerate(digests) if digest not in known}
        if at:
            made = _transformed(extractor, part[[*at.values()]], start + np.array([*at.values()]))
            if folder is not None:
                _keep(folder, [*at], made)
            known.update(zip(at, made, strict=True))
        out[start : start + BATCH] = [known[digest] for digest in digests]
        if progress:
            progress(min(start + BATCH, n), n)
    return Features(values=out, extractor=ExtractorRecord.of(extractor))


def _derived(
    pictures: Any,
    extractor: DerivedExtractor,
    cache: bool | str | Path,
    progress: Callable[[int, int], None] | None,
) -> Features:
    """Return what an extractor computes with the features of its parts, which are kept."""
    n, parts = len(pictures), []
    for i, part in enumerate(extractor.parts):

        def step(done: int, _: int, before: int = i * n) -> None:
            if progress:  # of as many pictures as all parts read together
                progress((before + done) // len(extractor.parts), n)

        parts.append(extract(pictures, part, cache=cache, progress=step).values)
    return Features(values=extractor.combined(parts), extractor=ExtractorRecord.of(extractor))


def _transformed(extractor: FeatureExtractor, pictures: Array, rows: Array) -> Float32Array:
    """Return what the extractor makes of the pictures in these rows, checked."""
    # Contiguous: safetensors writes the memory as it lies, whatever the strides are.
    made = np.ascontiguousarray(extractor.transform(pictures), dtype=np.float32)
    wanted = (len(pictures), extractor.dimension)
    if made.shape != wanted:
        raise ValueError(
            f"The extractor {extractor.name} says that it gives {extractor.dimension} numbers for "
            f"each picture; of {len(pictures)} it made an array of shape {made.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(made).all(axis=1))
    if bad.size:
        raise ValueError(
            f"The features by {extractor.name} are not finite in {_values.rows(rows[bad])}. Look "
            f"at these pictures, or at the extractor."
        )
    return made


def _digest(picture: Array) -> bytes:
    """Return the digest of what a picture shows: its type, its shape and its pixels."""
    head = f"{picture.dtype.str} {picture.shape} ".encode()
    return hashlib.sha256(head + np.ascontiguousarray(picture).tobytes()).digest()


def _folder(cache: bool | str | Path, extractor: FeatureExtractor) -> Path | None:
    """Return the folder of this extractor's features, made for its user alone."""
    if cache is False:
        return None
    _checks.at_least("dimension of the extractor", extractor.dimension, 1)
    root = places.cache_folder() / "features" if cache is True else Path(cache)
    exact = f"{extractor.name}|{extractor.version}|{extractor.digest}|{extractor.dimension}"
    words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{extractor.name} {extractor.version}").strip("-.")
    folder = root / f"{words}-{hashlib.sha256(exact.encode()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    return folder


def _kept(folder: Path, dimension: int) -> Iterator[tuple[bytes, Float32Array]]:
    """Yield digests and features out of all files of a folder; what cannot be read is left out."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            arrays = read_arrays(path.read_bytes())
            digests, rows = arrays["pictures"], arrays["features"]
        except Exception:  # of safetensors' own, and of the disk: computed again
            continue
        if digests.shape == (len(rows), 32) and rows.shape[1:] == (dimension,):
            yield from zip(map(bytes, digests), rows.astype(np.float32), strict=True)


def _keep(folder: Path, digests: list[bytes], features: Float32Array) -> None:
    """Write the features of some pictures as one file, whole or not at all."""
    pictures = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)
    content = arrays_as_bytes({"pictures": pictures, "features": features})
    name = hashlib.sha256(b"".join(digests)).hexdigest()[:32]
    places.write_whole(folder / f"{name}.safetensors", content)

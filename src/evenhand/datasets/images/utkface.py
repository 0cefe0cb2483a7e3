"""UTKFace: faces with age, gender and race, for non-commercial research only."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from evenhand._checks import one_of
from evenhand.datasets.columns import some
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.files import UnreadableImages, read_pictures
from evenhand.datasets.sources import read_source
from evenhand.typing import Array

GENDERS: Final = ("male", "female")
RACES: Final = ("White", "Black", "Asian", "Indian", "other")
AGES: Final = ("under 30", "30 to 49", "50 and over")
_NAME: Final = re.compile(r"^(\d{1,3})_([01])_([0-4])_\d+")
_ENDINGS: Final = (".jpg", ".jpeg", ".png")


def load_utkface(
    folder: str | Path | None = None,
    *,
    label: str = "gender",
    sensitive: str = "race",
    size: int = 64,
) -> ImageData:
    """Load UTKFace, one copy of each picture.

    Parameters
    ----------
    folder : path, optional
        The official files, ``[age]_[gender]_[race]_[date].jpg`` (as the aligned and cropped faces
        have them, ``.chip.jpg`` too), in this folder or below it. Without it the file
        ``utkface64.npz`` of the data set "utkface" is read.
    label, sensitive : {"gender", "race", "age"}
        What is the label and what the group. Ages come in three classes.
    size : int
        Height and width of the pictures.

    Returns
    -------
    ImageData
        23,314 pictures out of the npz: 390 of its 23,704 are byte by byte a copy of another one,
        some of them with another label. The first is kept.

    Raises
    ------
    DataNotAvailable, FileNotFoundError
        If the pictures cannot be had.
    UnreadableImages
        If pictures cannot be decoded, or file names do not say age, gender and race.
    """
    one_of("label", label, ("gender", "race", "age"))
    one_of("sensitive", sensitive, ("gender", "race", "age"))
    if label == sensitive:
        raise ValueError(f"label and sensitive are both {label!r}. Choose two of the three.")
    files, known = _from_npz() if folder is None else _from_folder(Path(folder))
    kept = _first_copies(files)
    images = read_pictures([files[i] for i in kept], size, "UTKFace")
    return ImageData(
        images=images,
        y=known[label][kept],
        sensitive_features=known[sensitive][kept],
        name="utkface",
    )


def _from_npz() -> tuple[list[tuple[str, bytes]], Mapping[str, Array]]:
    with np.load(io.BytesIO(read_source("utkface", "utkface64.npz")), allow_pickle=False) as z:
        jpeg, ends = z["jpeg"].tobytes(), z["offset"]
        files = [(f"picture {i}", jpeg[a:b]) for i, (a, b) in enumerate(pairwise(ends))]
        return files, _named(z["age"], z["gender"], z["race"])


def _from_folder(folder: Path) -> tuple[list[tuple[str, bytes]], Mapping[str, Array]]:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder. Name the one that holds the pictures.")
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _ENDINGS)
    if not paths:
        raise FileNotFoundError(f"{folder} holds no picture ({', '.join(_ENDINGS)}).")
    said = [_NAME.match(path.name) for path in paths]
    bad = [path.name for path, found in zip(paths, said, strict=True) if found is None]
    if bad:
        raise UnreadableImages(
            f"The names of {len(bad)} of {len(paths)} files do not say [age]_[gender]_[race]_"
            f"[date]: {some(bad)}. Take them out of the folder, or correct their names."
        )
    told = np.array([[int(part) for part in found.groups()] for found in said if found])
    files = [(path.name, path.read_bytes()) for path in paths]
    return files, _named(told[:, 0], told[:, 1], told[:, 2])


def _named(age: Array, gender: Array, race: Array) -> Mapping[str, Array]:
    return {
        "age": np.array(AGES)[np.digitize(age, (30, 50))],
        "gender": np.array(GENDERS)[gender],
        "race": np.array(RACES)[race],
    }


def _first_copies(files: list[tuple[str, bytes]]) -> Array:
    """Return the positions of the pictures that are no copy of one before."""
    first: dict[bytes, int] = {}
    for at, (_, content) in enumerate(files):
        first.setdefault(hashlib.sha256(content).digest(), at)
    return np.array(sorted(first.values()), dtype=np.int64)

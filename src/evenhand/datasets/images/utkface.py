"""UTKFace: faces with age, gender and race, for non-commercial research only."""

from __future__ import annotations

import hashlib
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from evenhand.datasets.columns import some
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.files import UnreadableImages, read_pictures
from evenhand.datasets.images.official import OfficialSet
from evenhand.datasets.sources import read_source
from evenhand.typing import Array

GENDERS: Final = ("male", "female")
RACES: Final = ("White", "Black", "Asian", "Indian", "other")
AGES: Final = {
    3: (("under 30", "30 to 49", "50 and over"), (30, 50)),
    9: (
        *(("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"),),
        (3, 10, 20, 30, 40, 50, 60, 70),
    ),
}
"""Names of the classes of age, and where the next begins; nine are those of FairFace."""

UTKFACE: Final = OfficialSet(
    name="utkface", title="UTKFace", page="https://susanqq.github.io/UTKFace/"
)
_NAME: Final = re.compile(r"^(\d{1,3})_([01])_([0-4])_\d+")
_ENDINGS: Final = (".jpg", ".jpeg", ".png")


def load_utkface(
    folder: str | Path | None = None,
    *,
    label: str = "gender",
    sensitive: str = "race",
    ages: int | tuple[int, ...] = 3,
    keep_copies: bool = False,
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
        What is the label and what the group: two genders, five races, classes of age.
    ages : 3, 9 or tuple of int
        How many classes of age, where nine are those of FairFace; or the ages at which the next
        class begins, rising: ``(18, 65)`` makes ``0-17``, ``18-64`` and ``65 and over``.
    keep_copies : bool
        Keep copies of one picture, which stay on one side of a split. Otherwise the first is kept.
    size : int
        Height and width of the pictures.

    Returns
    -------
    ImageData
        23,314 pictures out of the npz, or with copies 23,704: 390 are byte by byte a copy of
        another one, some of them with another label.

    Raises
    ------
    DataNotAvailable, FileNotFoundError
        If the pictures cannot be had.
    UnreadableImages
        If pictures cannot be decoded, or file names do not say age, gender and race.
    """
    UTKFACE.choose(label, sensitive, ("gender", "race", "age"))
    names, starts = _classes_of_age(ages)
    files, (age, gender, race) = _from_npz() if folder is None else _from_folder(Path(folder))
    known = {
        "age": np.array(names)[np.digitize(age, starts)],
        "gender": np.array(GENDERS)[gender],
        "race": np.array(RACES)[race],
    }
    digests = np.array([hashlib.sha256(content).hexdigest() for _, content in files])
    kept = np.arange(len(files)) if keep_copies else _first_copies(digests)
    images = read_pictures([files[i] for i in kept], size, "UTKFace")
    return ImageData(
        images=images,
        y=known[label][kept],
        sensitive_features=known[sensitive][kept],
        name="utkface",
        units=digests if keep_copies else None,
    )


def _classes_of_age(
    ages: int | tuple[int, ...],
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the names of the classes of age, and where each but the first begins."""
    if isinstance(ages, tuple) and ages and all(isinstance(age, int) for age in ages):
        if all(a < b for a, b in pairwise((0, *ages))):
            between = (f"{a}-{b - 1}" for a, b in pairwise((0, *ages)))
            return (*between, f"{ages[-1]} and over"), ages
    elif isinstance(ages, int) and ages in AGES:
        return AGES[ages]
    raise ValueError(
        f"ages must be {' or '.join(map(str, AGES))}, or a tuple of rising whole numbers above 0 "
        f"such as (18, 65), the ages at which the next class begins; got {ages!r}."
    )


def _from_npz() -> tuple[list[tuple[str, bytes]], tuple[Array, ...]]:
    """Return pictures, and age, gender and race of each as numbers."""
    with np.load(io.BytesIO(read_source("utkface", "utkface64.npz")), allow_pickle=False) as z:
        jpeg, ends = z["jpeg"].tobytes(), z["offset"]
        files = [(f"picture {i}", jpeg[a:b]) for i, (a, b) in enumerate(pairwise(ends))]
        return files, (z["age"], z["gender"], z["race"])


def _from_folder(folder: Path) -> tuple[list[tuple[str, bytes]], tuple[Array, ...]]:
    """Return the same of the official files."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is not a folder. Name the one that holds the pictures: {UTKFACE.page}"
        )
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _ENDINGS)
    if not paths:
        raise FileNotFoundError(
            f"{folder} holds no picture ({', '.join(_ENDINGS)}). Get them here: {UTKFACE.page}"
        )
    said = [_NAME.match(path.name) for path in paths]
    bad = [path.name for path, found in zip(paths, said, strict=True) if found is None]
    if bad:
        raise UnreadableImages(
            f"The names of {len(bad)} of {len(paths)} files do not say [age]_[gender]_[race]_"
            f"[date]: {some(bad)}. Take them out of the folder, or correct their names."
        )
    parts = np.array([[int(part) for part in found.groups()] for found in said if found])
    files = [(path.name, path.read_bytes()) for path in paths]
    return files, tuple(parts.T)


def _first_copies(digests: Array) -> Array:
    """Return the positions of the pictures that are no copy of one before."""
    _, first = np.unique(digests, return_index=True)
    return np.sort(first)

"""CelebA in its official layout: aligned pictures and a list of forty attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.datasets.columns import some
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.files import UnreadableImages
from evenhand.datasets.images.official import OfficialSet, Progress

PICTURES: Final = "img_align_celeba"
ATTRIBUTES: Final = "list_attr_celeba.txt"
CELEBA: Final = OfficialSet(
    name="celeba", title="CelebA", page="https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
)


def load_celeba(
    folder: str | Path,
    *,
    label: str = "Smiling",
    sensitive: str = "Male",
    size: int = 64,
    n: int | None = None,
    progress: Progress = None,
) -> ImageData:
    """Load CelebA from a folder; the pictures are for non-commercial research only.

    Parameters
    ----------
    folder : path
        Holds ``img_align_celeba/`` and ``list_attr_celeba.txt``, as its authors distribute them.
    label, sensitive : str
        Two of the attributes, each true or false.
    size : int
        Height and width; the middle square is cut out.
    n : int, optional
        Read the first n pictures of the list only.
    progress : callable, optional
        Called as ``progress(done, total)`` while every picture is looked at.

    Returns
    -------
    ImageData
        Decoded as it is read; copies of one file stay together in a split.

    Raises
    ------
    FileNotFoundError
        If the folder has another layout, or pictures of the list are missing.
    UnreadableImages
        If the list or pictures cannot be read; they are counted and named.
    """
    pictures, attributes = CELEBA.file(folder, PICTURES, ATTRIBUTES)
    known = _attributes(attributes)
    CELEBA.choose(label, sensitive, known.columns)
    if n is not None:
        known = known.iloc[: _checks.at_least("n", n, 1)]
    return CELEBA.data(
        pictures,
        list(known.index),
        known[label].to_numpy(),
        known[sensitive].to_numpy(),
        size=size,
        progress=progress,
    )


def _attributes(path: Path) -> pd.DataFrame:
    """Read the list: a count, the names, then a file and 1 or -1 for each attribute."""
    lines = path.read_text(encoding="utf-8").splitlines()
    names = lines[1].split() if len(lines) > 1 else []
    rows = [line.split() for line in lines[2:] if line.strip()]
    bad = [row[0] for row in rows if len(row) != len(names) + 1 or not set(row[1:]) <= {"1", "-1"}]
    if not names or not rows or bad:
        what = f"{len(bad)} of its lines are not a file and {len(names)} times 1 or -1: {some(bad)}"
        raise UnreadableImages(
            f"{path} is not the official list of attributes: "
            f"{what if bad else 'it has no names or no lines'}. Replace it."
        )
    values = np.array([row[1:] for row in rows]) == "1"
    return pd.DataFrame(values, columns=names, index=[row[0] for row in rows])

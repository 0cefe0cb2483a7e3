"""CelebA in its official layout: aligned pictures and a list of forty attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._checks import one_of
from evenhand.datasets.columns import some
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.files import UnreadableImages, read_pictures

PICTURES: Final = "img_align_celeba"
ATTRIBUTES: Final = "list_attr_celeba.txt"


def load_celeba(
    folder: str | Path,
    *,
    label: str = "Smiling",
    sensitive: str = "Male",
    size: int = 64,
    n: int | None = None,
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

    Raises
    ------
    FileNotFoundError
        If the folder has another layout, or pictures of the list are missing.
    UnreadableImages
        If the list or pictures cannot be read; they are counted and named.
    """
    root = Path(folder)
    for name in (PICTURES, ATTRIBUTES):
        if not (root / name).exists():
            raise FileNotFoundError(
                f"{root} has no {name}. Put {PICTURES}/ and {ATTRIBUTES} into one folder."
            )
    known = _attributes(root / ATTRIBUTES)
    for role, name in (("label", label), ("sensitive", sensitive)):
        one_of(role, name, known.columns)
    if label == sensitive:
        raise ValueError(f"label and sensitive are both {label!r}. Choose two attributes.")
    if n is not None:
        known = known.iloc[: _checks.at_least("n", n, 1)]
    paths = [root / PICTURES / name for name in known.index]
    gone = [path.name for path in paths if not path.is_file()]
    if gone:
        raise FileNotFoundError(
            f"{len(gone)} of {len(paths)} pictures of the list are not in {root / PICTURES}: "
            f"{some(gone)}."
        )
    return ImageData(
        images=read_pictures(paths, size, "CelebA"),
        y=known[label].to_numpy(),
        sensitive_features=known[sensitive].to_numpy(),
        name="celeba",
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

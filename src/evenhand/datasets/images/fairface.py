"""FairFace in its official layout: faces with age, gender and one of seven races."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from evenhand._checks import one_of
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.official import OfficialSet, Progress

ATTRIBUTES: Final = ("age", "gender", "race")
FAIRFACE: Final = OfficialSet(
    name="fairface", title="FairFace", page="https://github.com/joojs/fairface"
)


def load_fairface(
    folder: str | Path,
    *,
    label: str = "gender",
    sensitive: str = "race",
    part: str = "both",
    size: int = 64,
    progress: Progress = None,
) -> ImageData:
    """Load FairFace from a folder (CC BY 4.0).

    Parameters
    ----------
    folder : path
        Holds ``train/``, ``val/``, ``fairface_label_train.csv`` and ``fairface_label_val.csv``.
    label, sensitive : {"gender", "race", "age"}
        Two genders, seven races, nine classes of age.
    part : {"both", "train", "val"}
        86,744 pictures, 10,954, or all: FairPATE's 97,698.
    size : int
        Height and width; the middle square is cut out.
    progress : callable, optional
        Called as ``progress(done, total)`` while every picture is looked at.

    Returns
    -------
    ImageData
        Decoded as it is read; copies of one file stay together in a split.

    Raises
    ------
    FileNotFoundError
        If the folder has another layout, or pictures of a list are missing.
    UnreadableImages
        If pictures cannot be used; they are counted and named.
    """
    one_of("part", part, ("both", "train", "val"))
    FAIRFACE.choose(label, sensitive, ATTRIBUTES)
    parts = ("train", "val") if part == "both" else (part,)
    lists = FAIRFACE.file(folder, *(f"fairface_label_{name}.csv" for name in parts))
    known = pd.concat([FAIRFACE.table(path, ("file", *ATTRIBUTES)) for path in lists])
    return FAIRFACE.data(
        Path(folder),
        known["file"].tolist(),
        known[label].to_numpy(dtype=str),
        known[sensitive].to_numpy(dtype=str),
        size=size,
        progress=progress,
    )

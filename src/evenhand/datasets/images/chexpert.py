"""CheXpert in its official layout: X-rays of the chest, with findings, sex and, beside it, race."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
import pandas as pd

from evenhand._checks import one_of
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.official import OfficialSet, Progress

LIST: Final = "train.csv"
PEOPLE: Final = "CHEXPERT DEMO.csv"
RACES: Final = ("White", "Black", "Asian")
"""Beginnings of PRIMARY_RACE, which has finer ones; FairPATE compares these three."""

CHEXPERT: Final = OfficialSet(
    name="chexpert",
    title="CheXpert",
    page="https://stanfordmlgroup.github.io/competitions/chexpert/ (races: CHEXPERT DEMO.xlsx, "
    "saved as CSV, of https://stanfordaimi.azurewebsites.net/datasets/"
    "192ada7c-4d43-466e-b8bb-b81992bb80cf)",
)
_ABOUT: Final = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA")


def load_chexpert(
    folder: str | Path,
    *,
    label: str = "No Finding",
    sensitive: str = "race",
    uncertain: str = "drop",
    frontal: bool = True,
    size: int = 64,
    progress: Progress = None,
) -> ImageData:
    """Load CheXpert from a folder; for research only, by the agreement of its page.

    Parameters
    ----------
    folder : path
        Holds ``train.csv`` and ``train/``, such as ``CheXpert-v1.0-small``; for races
        ``CHEXPERT DEMO.csv`` too, which its owners publish beside it as a workbook.
    label : str
        One of the fourteen findings; what is not mentioned is not there.
    sensitive : {"race", "sex"}
        Races are White, Black and Asian; pictures of others are left out.
    uncertain : {"drop", "positive", "negative"}
        What becomes of a finding that the report left open (-1).
    frontal : bool
        Leave out pictures from the side.
    size : int
        Height and width; the middle square is cut out.
    progress : callable, optional
        Called as ``progress(done, total)`` while every picture is looked at.

    Returns
    -------
    ImageData
        Grey, decoded as it is read; labels are "yes" and "no". All pictures of a patient stay
        together in a split.

    Raises
    ------
    FileNotFoundError
        If the folder has another layout, or pictures of the list are missing.
    UnreadableImages
        If pictures cannot be used; they are counted and named.
    """
    one_of("sensitive", sensitive, ("race", "sex"))
    one_of("uncertain", uncertain, ("drop", "positive", "negative"))
    needed = (LIST, PEOPLE) if sensitive == "race" else (LIST,)
    found = CHEXPERT.file(folder, *needed)
    known = CHEXPERT.table(found[0], _ABOUT)
    one_of("label", label, [str(name) for name in known if name not in _ABOUT])
    paths = [PurePosixPath(path) for path in known["Path"]]  # CheXpert-v1.0-small/train/patient...
    known["patient"] = [path.parts[2] if len(path.parts) > 2 else "" for path in paths]
    known["file"] = [str(PurePosixPath(*path.parts[1:])) for path in paths]
    if sensitive == "race":
        known["race"] = _races(found[1], known["patient"])
    finding = pd.to_numeric(known[label], errors="coerce").fillna(0.0)
    positive = (finding == 1.0) | ((finding == -1.0) & (uncertain == "positive"))
    group = known["Sex" if sensitive == "sex" else "race"]
    kept = group.isin(("Female", "Male") if sensitive == "sex" else RACES)
    if frontal:
        kept &= known["Frontal/Lateral"] == "Frontal"
    if uncertain == "drop":
        kept &= finding != -1.0
    return CHEXPERT.data(
        Path(folder),
        known["file"][kept].tolist(),
        np.where(positive, "yes", "no")[kept],
        group[kept].to_numpy(dtype=str),
        size=size,
        mode="L",
        units=known["patient"][kept].to_numpy(dtype=str),
        progress=progress,
    )


def _races(path: Path, patients: pd.Series[str]) -> pd.Series[str]:
    """Return the race of each picture's patient, or "" for another or an unknown one."""
    people = CHEXPERT.table(path, ("PATIENT", "PRIMARY_RACE"))
    of = {
        person: next((race for race in RACES if said.startswith(race)), "")
        for person, said in zip(people["PATIENT"], people["PRIMARY_RACE"], strict=True)
    }
    return patients.map(of).fillna("")

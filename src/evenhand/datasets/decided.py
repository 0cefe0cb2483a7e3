"""Decisions that people took: mortgages that were denied, resumes that were answered.

Of both ``y`` is the decision itself, and nobody knows what would have been right: tables to assess
(``evenhand assess``) rather than to learn from.
"""

from __future__ import annotations

from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame


def load_hmda() -> Dataset:
    """Load applications for mortgages in Boston, 1990 (Munnell et al. 1996); by race.

    Returns
    -------
    Dataset
        2,380 applications. ``y`` is 1 where it was denied; the group is "Black" or "other", and
        ``single`` stays a column.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("hmda", "hmda.csv")
    frame["denied"] = (frame["deny"] == "yes").astype("int64")
    frame["race"] = frame["afam"].map({"yes": "Black", "no": "other"})
    return Dataset.from_frame(
        frame, label="denied", sensitive="race", drop=("deny", "afam"), positive=1, name="hmda"
    )


def load_resume() -> Dataset:
    """Load invented resumes sent to employers (Bertrand and Mullainathan 2004); by race.

    Returns
    -------
    Dataset
        4,870 resumes under names that are mostly given to people of one race. ``y`` is 1 where the
        employer called back; ``gender`` stays a column.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("resume", "resume.csv")
    frame["race"] = frame["race"].map({"black": "Black", "white": "White"})
    frame["gender"] = frame["gender"].map({"f": "Female", "m": "Male"})
    return Dataset.from_frame(
        frame,
        label="received_callback",
        sensitive="race",
        positive=1,
        name="resume",
    )

"""Tables whose records have owners in nature: pupils their schools or authorities, answers people.

Of all four the column ``owner`` says whose record it is; it is no feature of a model that is to
serve all owners, so leave it out: ``owner = data.X.pop("owner")``.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame


def load_star() -> Dataset:
    """Load Project STAR, kindergarten (Tennessee, 1985): 79 schools; sensitive attribute race.

    Returns
    -------
    Dataset
        5,782 pupils with both tests and a known race. ``y`` is 1 for a score of 485 or more in
        mathematics, about the mean; the score in reading is a feature.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("star", "star.csv")
    frame = frame.dropna(subset=["readk", "mathk", "schoolidk", "ethnicity", "birth"])
    frame = frame.reset_index(drop=True)
    frame["owner"] = "school " + frame["schoolidk"].astype("int64").astype(str)
    frame["race"] = frame["ethnicity"].map(lambda race: "White" if race == "cauc" else "other")
    year = frame["birth"].str[:4].astype("int64")
    frame["born"] = year + (frame["birth"].str[-1].astype("int64") - 1) / 4
    frame["score in mathematics"] = (frame["mathk"] >= 485).astype("int64")
    return Dataset.from_frame(
        frame,
        label="score in mathematics",
        sensitive="race",
        drop=("ethnicity", "birth", "mathk", "schoolidk"),
        positive=1,
        name="star",
    )


def load_math_achieve() -> Dataset:
    """Load MathAchieve (High School and Beyond, 1982): 160 schools; sensitive attribute minority.

    Returns
    -------
    Dataset
        7,185 pupils. ``y`` is 1 for a score of 13 or more in mathematics, about the median.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("math-achieve", "math-achieve.csv")
    frame["owner"] = "school " + frame["School"].astype(str)
    frame["minority"] = frame["Minority"].map({"No": "no", "Yes": "yes"})
    frame["score in mathematics"] = (frame["MathAch"] >= 13).astype("int64")
    return Dataset.from_frame(
        frame,
        label="score in mathematics",
        sensitive="minority",
        drop=("School", "Minority", "MathAch"),
        positive=1,
        name="math-achieve",
    )


def load_chem97() -> Dataset:
    """Load Chem97 (A-level chemistry, England, 1997): 131 authorities; sensitive attribute gender.

    Returns
    -------
    Dataset
        31,022 pupils. ``y`` is 1 for a grade of at least C (6 points).

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("chem97", "chem97.csv")
    frame["owner"] = "authority " + frame["lea"].astype(str)
    frame["C or better"] = (frame["score"] >= 6).astype("int64")
    frame["gender"] = frame["gender"].map({"F": "Female", "M": "Male"})
    return Dataset.from_frame(
        frame.astype({"age": "float64"}),
        label="C or better",
        sensitive="gender",
        drop=("lea", "score"),
        positive=1,
        name="chem97",
    )


def load_rwm5yr() -> Dataset:
    """Load rwm5yr (German Socio-Economic Panel, 1984-1988): 6,127 people; sensitive: gender.

    Returns
    -------
    Dataset
        19,609 answers, of one person up to five. ``y`` is 1 for a year with a visit to a doctor.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("rwm5yr", "rwm5yr.csv")
    frame["owner"] = "person " + frame["id"].astype(str)
    frame["gender"] = frame["female"].map({0: "Male", 1: "Female"})
    frame["saw a doctor"] = (frame["docvis"] >= 1).astype("int64")
    return Dataset.from_frame(
        frame,
        label="saw a doctor",
        sensitive="gender",
        drop=("id", "female", "docvis"),
        positive=1,
        name="rwm5yr",
    )


def by_owner(data: Dataset) -> tuple[Dataset, pd.Series[str]]:
    """Return the records without the column ``owner``, and that column."""
    return replace(data, X=data.X.drop(columns="owner")), data.X["owner"]

"""ACSIncome: does a person earn more than 50,000 dollars a year (US census survey, 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._checks import one_of
from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame

STATES = ("CT", "MD")
RACES = {1: "White", 2: "Black", 3: "Asian", 4: "Native", 5: "other"}

# Major groups of the Census occupation codes of 2018: first code of each, in order.
OCCUPATIONS = {
    10: "management",
    500: "business",
    800: "finance",
    1005: "computers",
    1305: "engineering",
    1600: "science",
    2001: "social service",
    2100: "law",
    2205: "education",
    2600: "arts",
    3000: "medicine",
    3601: "health support",
    3700: "protection",
    4000: "food",
    4200: "cleaning",
    4330: "personal care",
    4700: "sales",
    5000: "office",
    6005: "farming",
    6200: "construction",
    6800: "extraction",
    7000: "repair",
    7700: "production",
    9005: "transport",
    9800: "military",
}
# Parts of the world in the Census codes of the place of birth: first code of each, in order.
BIRTHPLACES = {
    1: "United States",
    60: "US territories",
    100: "Europe",
    200: "Asia",
    300: "Americas",
    400: "Africa",
    500: "Oceania",
}


def load_acs_income(
    states: Sequence[str] = STATES, *, sensitive: str = "sex", coarse: bool = True
) -> Dataset:
    """Load ACSIncome 2018 of one or more states.

    Parameters
    ----------
    states : sequence of str
        Any of "CT" and "MD".
    sensitive : str
        "sex" or "race". The other one stays a feature.
    coarse : bool
        Group the 500 occupations into the 25 major groups of the Census and the 200 places of birth
        into 7 parts of the world. Otherwise each code is a category of its own, about 800 features.

    Returns
    -------
    Dataset
        CT 19,785 rows, MD 33,042. ``y`` is 1 for an income above 50,000. Schooling (SCHL) is
        ordered and kept as a number.

    Raises
    ------
    DataNotAvailable
        If a file cannot be had.
    """
    chosen = (states,) if isinstance(states, str) else tuple(states)
    if not chosen:
        raise ValueError(f"states names no state. Name any of {', '.join(STATES)}.")
    for state in chosen:
        one_of("states", state, STATES)
    one_of("sensitive", sensitive, ("sex", "race"))
    frame = read_frame("acs-income", *(f"acsincome2018_{state}.csv" for state in chosen))
    frame["income > 50K"] = frame["PINCP"].astype("int64")
    frame["sex"] = frame["SEX"].map({1: "Male", 2: "Female"})
    frame["race"] = frame["RAC1P"].map(RACES)
    if coarse:
        frame["OCCP"] = _grouped(frame["OCCP"], OCCUPATIONS)
        frame["POBP"] = _grouped(frame["POBP"], BIRTHPLACES)
    for column in ("COW", "MAR", "RELP", *(() if coarse else ("OCCP", "POBP"))):
        frame[column] = frame[column].astype("int64").astype(str)  # codes, not amounts
    return Dataset.from_frame(
        frame,
        label="income > 50K",
        sensitive=sensitive,
        drop=("PINCP", "SEX", "RAC1P"),
        positive=1,
        name=f"acs-income {'+'.join(chosen)}",
    )


def _grouped(codes: pd.Series[Any], first: dict[int, str]) -> pd.Series[Any]:
    """Name the group that each code falls into."""
    place = np.searchsorted(list(first), codes.to_numpy(), side="right") - 1
    return pd.Series(np.array(list(first.values()), dtype=object)[place], index=codes.index)

"""Bank: does a client subscribe a deposit after a call (Portugal, 2008-2010)."""

from __future__ import annotations

import numpy as np

from evenhand._checks import one_of
from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame

AGE_GROUP = ("25 to 60", "under 25 or over 60")


def load_bank(*, sensitive: str = "age group", keep_duration: bool = True) -> Dataset:
    """Load Bank Marketing, the full set.

    Parameters
    ----------
    sensitive : str
        "age group" (25 to 60 against the rest, the usual cut; age is then no feature) or "marital"
        (married, single, divorced).
    keep_duration : bool
        Keep the length of the call among the features. It is known only once the call has ended,
        so a model that is to choose whom to call must do without; comparisons in the literature
        keep it.

    Returns
    -------
    Dataset
        45,211 rows. ``y`` is 1 for a subscription. "unknown" is a category like any other.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    one_of("sensitive", sensitive, ("age group", "marital"))
    frame = read_frame("bank", "bank-full.csv", sep=";")
    frame["subscribes"] = (frame["y"] == "yes").astype("int64")
    drop = ["y"]
    if sensitive == "age group":
        frame["age group"] = np.where(frame["age"].between(25, 60), *AGE_GROUP)
        drop.append("age")
    if not keep_duration:
        drop.append("duration")
    return Dataset.from_frame(
        frame, label="subscribes", sensitive=sensitive, drop=drop, positive=1, name="bank"
    )

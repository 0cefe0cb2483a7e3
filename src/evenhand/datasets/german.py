"""German credit: is an applicant a good risk (Statlog)."""

from __future__ import annotations

from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame

COLUMNS = (
    *("checking account", "months", "credit history", "purpose", "amount", "savings"),
    *("employed since", "installment rate", "personal status", "other debtors", "residence since"),
    *("property", "age", "other installments", "housing", "credits here", "job", "dependants"),
    *("telephone", "foreign worker", "risk"),
)
SEX_OF_STATUS = {"A91": "Male", "A92": "Female", "A93": "Male", "A94": "Male", "A95": "Female"}


def load_german() -> Dataset:
    """Load German Credit; sensitive attribute sex.

    Returns
    -------
    Dataset
        1,000 rows. ``y`` is 1 for a good risk. Sex is read off attribute 9, which joins it with the
        marital status; that attribute is therefore no feature. 19 feature columns.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("german", "german.data", sep=r"\s+", names=COLUMNS, keep_default_na=False)
    frame["sex"] = frame["personal status"].map(SEX_OF_STATUS)
    frame["good risk"] = (frame["risk"] == 1).astype("int64")
    return Dataset.from_frame(
        frame,
        label="good risk",
        sensitive="sex",
        drop=("personal status", "risk"),
        positive=1,
        name="german",
    )

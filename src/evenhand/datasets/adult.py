"""Adult: does a person earn more than 50,000 dollars a year (US census, 1994)."""

from __future__ import annotations

from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame

COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)


def load_adult(*, keep_missing: bool = False) -> Dataset:
    """Load Adult, both official parts pooled; sensitive attribute sex.

    Parameters
    ----------
    keep_missing : bool
        Keep the rows with a missing value (48,842 rows) instead of dropping them (45,222).

    Returns
    -------
    Dataset
        ``y`` is 1 for an income above 50,000 and 0 otherwise; 13 feature columns, 102 features
        once encoded (by all rows: categories that no public row has are not features).

    Raises
    ------
    DataNotAvailable
        If the files cannot be had.

    Notes
    -----
    ``relationship`` ("Husband", "Wife") and ``marital-status`` tell the sex of many people, though
    the column itself is no feature. ``fnlwgt`` is a survey weight, kept as the literature does.
    """
    frame = read_frame(
        *("adult", "adult.data", "adult.test"),
        names=COLUMNS,
        comment="|",  # the first line of the test file
        skipinitialspace=True,
        keep_default_na=False,
        na_values=["?"],
    )
    if not keep_missing:
        frame = frame.dropna().reset_index(drop=True)
    # The official test file ends its labels with a dot.
    frame["income > 50K"] = (frame["income"].str.rstrip(".") == ">50K").astype("int64")
    return Dataset.from_frame(
        frame,
        label="income > 50K",
        sensitive="sex",
        drop=("income",),
        positive=1,
        name="adult",
    )

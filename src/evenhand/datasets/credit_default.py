"""Credit default: does a holder of a credit card fail to pay next month (Taiwan, 2005)."""

from __future__ import annotations

from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame

REPAYMENT = ("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")


def load_credit_default() -> Dataset:
    """Load Default of Credit Card Clients; sensitive attribute sex.

    Returns
    -------
    Dataset
        30,000 rows. ``y`` is 1 for a default. 22 feature columns; 85 features once encoded by all
        rows. The undocumented codes are merged into "other": EDUCATION 0, 5, 6 into 4 and MARRIAGE
        0 into 3. EDUCATION, MARRIAGE and the repayment states PAY_* are categorical.

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    frame = read_frame("credit-default", "UCI_Credit_Card.csv")
    frame["SEX"] = frame["SEX"].map({1: "Male", 2: "Female"})
    frame["EDUCATION"] = frame["EDUCATION"].replace({0: 4, 5: 4, 6: 4})
    frame["MARRIAGE"] = frame["MARRIAGE"].replace({0: 3})
    for column in ("EDUCATION", "MARRIAGE", *REPAYMENT):
        frame[column] = frame[column].astype(str)  # codes, not amounts
    return Dataset.from_frame(
        frame.rename(columns={"SEX": "sex", "default_payment_next_month": "default"}),
        label="default",
        sensitive="sex",
        drop=("ID",),
        positive=1,
        name="credit-default",
    )

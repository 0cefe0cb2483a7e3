"""Retired Adult: the reconstruction of Adult with incomes as amounts (Ding et al. 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evenhand import _checks
from evenhand.datasets.dataset import Dataset
from evenhand.datasets.files import read_table

FILE: Final = "adult_reconstruction.csv"
PAGE: Final = "https://github.com/socialfoundations/folktables"


def load_retired_adult(
    folder: str | Path, *, threshold: float = 50_000, sensitive: str = "gender"
) -> Dataset:
    """Load the reconstruction of Adult; sensitive attribute gender.

    Parameters
    ----------
    folder : path
        Holds ``adult_reconstruction.csv``, as its authors publish it.
    threshold : float
        ``y`` is 1 for an income above it, in dollars, and 0 otherwise.
    sensitive : str
        Another column, such as "race".

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message has the page of its authors.
    """
    _checks.positive("threshold", threshold)
    path = Path(folder) / FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {FILE}. Get it from its authors, whose terms are those of IPUMS CPS "
            f"(no passing on): {PAGE}"
        )
    frame = read_table(path)
    _checks.one_of("income (a column of the file)", "income", frame.columns)
    frame["income > threshold"] = (frame["income"].astype(float) > threshold).astype("int64")
    return Dataset.from_frame(
        frame,
        label="income > threshold",
        sensitive=sensitive,
        drop=("income",),
        positive=1,
        name="retired-adult",
    )

"""COMPAS: who is charged with a crime again within two years (Broward County, ProPublica)."""

from __future__ import annotations

from evenhand._checks import one_of
from evenhand.datasets.dataset import Dataset
from evenhand.datasets.sources import read_frame

FEATURES = (
    *("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("c_charge_degree", "sex", "race"),
)
LARGE = ("African-American", "Caucasian", "Hispanic")


def load_compas(*, sensitive: str = "race") -> Dataset:
    """Load the two-year file of ProPublica's COMPAS analysis; sensitive attribute race or sex.

    A hard case to predict, and one whose labels are arrests: what a model learns here is who is
    charged, not who commits crimes (Bao et al. 2021, "It's COMPASlicated"). For comparing methods.

    Parameters
    ----------
    sensitive : str
        "race" or "sex". The other one stays a feature.

    Returns
    -------
    Dataset
        6,172 rows: those that ProPublica kept. ``y`` is 1 for a new charge within two years.
        7 feature columns; the scores of COMPAS are none. Races of fewer than 400 rows are "Other".

    Raises
    ------
    DataNotAvailable
        If the file cannot be had.
    """
    one_of("sensitive", sensitive, ("race", "sex"))
    frame = read_frame(
        "compas", "compas-scores-two-years.csv", keep_default_na=False, na_values=[""]
    )
    kept = (
        frame["days_b_screening_arrest"].between(-30, 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & (frame["score_text"] != "N/A")
    )
    frame = frame.loc[kept, [*FEATURES, "two_year_recid"]].reset_index(drop=True)
    frame["race"] = frame["race"].where(frame["race"].isin(LARGE), "Other")
    return Dataset.from_frame(
        frame, label="two_year_recid", sensitive=sensitive, positive=1, name="compas"
    )

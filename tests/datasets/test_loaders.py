"""What the loaders return, against the figures of the literature and of the publishers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Dataset, PublicEncoder, load_acs_income, load_bank
from evenhand.datasets.acs_income import BIRTHPLACES, OCCUPATIONS, _grouped

pytestmark = pytest.mark.data
RealData = Callable[..., Dataset]

# name, options, rows, features encoded, P(y=1), P(group), P(y=1 | group).
# Adult, Credit, Parkinsons: as the literature prints them, to its digits. Others: counts of the
# publishers (Bank 5,289 of 45,211; German 700 of 1,000; ACS .478 and .485).
FIGURES: list[tuple[str, dict[str, Any], int, int, float, dict[str, float], dict[str, float]]] = [
    (
        "adult",
        {},
        45_222,
        102,
        0.248,
        {"Female": 0.325},
        {"Male": 0.3125, "Female": 0.1136},
    ),
    (
        "credit-default",
        {},
        30_000,
        85,
        0.221,
        {"Female": 0.604},
        {"Male": 0.242, "Female": 0.208},
    ),
    (
        "parkinsons",
        {"keep_motor_updrs": True},
        5_875,
        19,
        0.499,
        {"Female": 0.318},
        {"Male": 0.515, "Female": 0.467},
    ),
    ("parkinsons", {}, 5_875, 18, 0.499, {"Female": 0.318}, {"Male": 0.515, "Female": 0.467}),
    ("bank", {}, 45_211, 50, 0.117, {}, {}),
    ("bank", {"sensitive": "marital"}, 45_211, 48, 0.117, {}, {}),
    ("compas", {}, 6_172, 9, 0.4551, {"African-American": 0.5144}, {}),
    ("german", {}, 1_000, 57, 0.7, {"Female": 0.31}, {}),
    ("acs-income", {"states": ("CT",)}, 19_785, 67, 0.478, {}, {}),
    ("acs-income", {"states": ("MD",)}, 33_042, 68, 0.485, {}, {}),
]


@pytest.mark.parametrize("figures", FIGURES, ids=lambda f: f"{f[0]} {f[1]}")
def test_counts_and_base_rates_are_those_of_the_literature(
    real_data: RealData, figures: tuple[Any, ...]
) -> None:
    name, options, rows, features, rate, shares, rates = figures
    data = real_data(name, **options)
    assert len(data) == rows
    assert PublicEncoder().fit(data.X).n_features_out_ == features
    assert data.y.mean() == pytest.approx(rate, abs=0.0005)
    for group, share in shares.items():
        assert (data.groups == group).mean() == pytest.approx(share, abs=0.0005)
    for group, base in rates.items():
        assert data.y[data.groups == group].mean() == pytest.approx(base, abs=0.0005)


@pytest.mark.parametrize("figures", FIGURES, ids=lambda f: f"{f[0]} {f[1]}")
def test_every_loader_keeps_the_contract(real_data: RealData, figures: tuple[Any, ...]) -> None:
    name, options, *_ = figures
    data = real_data(name, **options)
    assert data.classes == (0, 1)
    assert data.positive == 1
    assert data.y.dtype == np.int64
    assert isinstance(data.groups, pd.Series)
    assert not set(data.sensitive) & set(data.X)
    assert data.label not in data.X
    assert data.X.index.equals(pd.RangeIndex(len(data)))
    # No feature is the label under another name, but for the one that the literature keeps.
    encoded = PublicEncoder().fit(data.X).transform(data.X)
    with_label = [abs(np.corrcoef(x, data.y)[0, 1]) for x in encoded.T if x.std() > 0]
    assert (max(with_label) > 0.8) == ("keep_motor_updrs" in options)


def test_adult_with_its_gaps_has_every_row(real_data: RealData) -> None:
    data = real_data("adult", keep_missing=True)
    assert len(data) == 48_842
    gaps = data.X.isna().any(axis=1)
    assert gaps.sum() == 48_842 - 45_222
    encoder = PublicEncoder().fit(data.X)
    marks = [name for name in encoder.feature_names_ if name.endswith("is missing")]
    assert marks == [f"{c} is missing" for c in ("workclass", "occupation", "native-country")]


def test_the_public_fifth_of_adult_encodes_the_rest(real_data: RealData) -> None:
    split = real_data("adult").split(public=0.2, test=0.25, random_state=0)
    assert (len(split.private), len(split.public), len(split.test)) == (27_133, 6_783, 11_306)
    encoder = PublicEncoder().fit(split.public.X)
    assert 95 <= encoder.n_features_out_ <= 102  # a rare country need not be among public rows
    for table in (split.private, split.test):
        out = encoder.transform(table.X)
        assert np.isfinite(out).all()
        assert np.abs(out).max() <= 10


def test_motor_updrs_gives_the_parkinsons_label_away(real_data: RealData) -> None:
    data = real_data("parkinsons", keep_motor_updrs=True)
    motor = data.X["motor_UPDRS"]
    assert ((motor > motor.median()) == (data.y == 1)).mean() > 0.9
    assert "motor_UPDRS" not in real_data("parkinsons").X


def test_patients_stay_together_if_they_are_the_unit(real_data: RealData) -> None:
    data = real_data("parkinsons", by_person=True)
    assert data.unit == "person"
    assert data.units is not None
    assert data.units.nunique() == 42
    assert "person" not in data.X
    parts = [set(part.units) for part in vars(data.split()).values()]
    assert sum(map(len, parts)) == 42
    assert real_data("parkinsons").unit == "record"


def test_credit_codes_are_merged_and_categorical(real_data: RealData) -> None:
    X = real_data("credit-default").X
    assert sorted(X["EDUCATION"].unique()) == ["1", "2", "3", "4"]
    assert sorted(X["MARRIAGE"].unique()) == ["1", "2", "3"]
    assert X["EDUCATION"].eq("4").sum() == 123 + 14 + 280 + 51  # codes 4, 0, 5, 6


def test_bank_age_groups_are_cut_at_25_and_60(real_data: RealData) -> None:
    by_age, by_status = real_data("bank"), real_data("bank", sensitive="marital")
    age = by_status.X["age"]
    assert age[by_age.groups == "25 to 60"].agg(["min", "max"]).tolist() == [25, 60]
    assert ((age < 25) | (age > 60)).sum() == (by_age.groups == "under 25 or over 60").sum()
    assert "age" not in by_age.X
    assert "duration" not in real_data("bank", keep_duration=False).X


def test_the_groups_of_acs_codes_follow_the_census() -> None:
    codes = pd.Series([10, 440, 500, 2300, 3500, 9122, 9830])
    named = ["management", "management", "business", "education", "medicine", "transport"]
    assert _grouped(codes, OCCUPATIONS).tolist() == [*named, "military"]
    places = pd.Series([9, 72, 136, 217, 303, 427, 501])
    assert _grouped(places, BIRTHPLACES).tolist() == list(BIRTHPLACES.values())


def test_acs_by_race_and_in_full_detail(real_data: RealData) -> None:
    data = real_data("acs-income", states=("CT",), sensitive="race", coarse=False)
    assert set(data.groups) == {"White", "Black", "Asian", "Native", "other"}
    assert "sex" in data.X
    assert data.X["OCCP"].nunique() == 507


def test_wrong_options_are_refused_before_any_file_is_read() -> None:
    with pytest.raises(ValueError, match=r"states must be one of 'CT', 'MD', got 'ct'\..*'CT'"):
        load_acs_income(["ct"])
    with pytest.raises(ValueError, match="states names no state"):
        load_acs_income([])
    with pytest.raises(ValueError, match="sensitive must be one of 'sex', 'race', got 'age'"):
        load_acs_income(sensitive="age")
    with pytest.raises(ValueError, match="sensitive must be one of 'age group', 'marital'"):
        load_bank(sensitive="age")

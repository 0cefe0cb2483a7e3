"""Nine classes in two and in five groups of natural sizes: gate, student, report, frontier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
)
from evenhand.fairness import fairness_report
from evenhand.frontier import Grid, RunStore, sweep
from evenhand.frontier.material import DataSource
from evenhand.frontier.train import train_one
from evenhand.privacy import GNMax
from evenhand.report import write_report

AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
SHARE_OF_AGES = (0.07, 0.07, 0.06, 0.31, 0.19, 0.1, 0.1, 0.05, 0.05)
RACES = ("Asian", "Black", "Indian", "White", "other")
SHARE_OF_RACES = (0.15, 0.19, 0.17, 0.42, 0.07)
GROUPS = {"race": RACES, "gender": ("female", "male")}
N_PRIVATE, N_PUBLIC, N_NEW = 1800, 700, 600


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Ages that numbers tell with some error; of race and of gender, one group is the older."""
    rng = np.random.default_rng(5)
    n = N_PRIVATE + N_PUBLIC + N_NEW
    race = rng.choice(RACES, n, p=SHARE_OF_RACES)
    age = rng.choice(len(AGES), n, p=SHARE_OF_AGES)
    age = np.where((race == "White") & (rng.random(n) < 0.85), np.minimum(age + 3, 8), age)
    gender = np.where(rng.random(n) < np.where(age > 4, 0.7, 0.4), "male", "female")
    numbers = np.eye(len(AGES))[age] + 0.35 * rng.normal(size=(n, len(AGES)))
    frame = pd.DataFrame(numbers, columns=[f"f{i}" for i in range(len(AGES))])
    return frame.assign(age=np.array(AGES)[age], race=race, gender=gender)


def parts(people: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    return (
        people[:N_PRIVATE],
        people[N_PRIVATE : N_PRIVATE + N_PUBLIC],
        people[N_PRIVATE + N_PUBLIC :],
    )


def numbers(part: pd.DataFrame) -> Any:
    return part.drop(columns=["age", "race", "gender"])


def gap(decided: Any, groups: Any) -> float:
    """Largest difference of a rate, of a group against the rest, counted anew."""
    return max(
        abs((decided[groups == group] == age).mean() - (decided[groups != group] == age).mean())
        for group in np.unique(groups)
        for age in AGES
    )


# A gate on nine classes may stand still at a margin far below the gap of the truth: .2 by race,
# .14 by gender.
@pytest.mark.parametrize(
    ("sensitive", "method", "margin"),
    [
        ("race", FairPATEClassifier, 0.3),
        ("race", FairSharesClassifier, 0.12),
        ("gender", FairPATEClassifier, 0.2),
        ("gender", FairSharesClassifier, 0.05),
    ],
)
def test_gate_student_and_report_keep_nine_classes_and_all_groups_apart(
    people: pd.DataFrame, sensitive: str, method: Any, margin: float, tmp_path: Path
) -> None:
    names = GROUPS[sensitive]
    private, public, new = parts(people)
    of_labels: dict[str, Any] = {}
    if method is FairPATEClassifier:
        of_labels = {"mechanism": GNMax(sigma=3.0), "cold_start": 20}
    model = method(
        Budget(epsilon=150.0, delta=1e-5),
        DemographicParity(margin=margin),
        n_teachers=40,
        random_state=0,
        small_groups="margin",
        **of_labels,
    ).fit(
        numbers(private),
        private["age"],
        X_public=numbers(public),
        sensitive_features_public=public[sensitive],
    )
    assert model.classes_.tolist() == sorted(AGES)
    assert model.groups_ == names
    groups = public[sensitive].to_numpy()
    if method is FairPATEClassifier:
        given = model.answers_.answered
        released = model.classes_[model.answers_.labels[given]]
        assert given.sum() > N_PUBLIC / 7
        largest = {"race": {"White", "Black"}, "gender": {"female", "male"}}[sensitive]
        assert set(groups[given]) >= largest  # a small one may wait
        assert len(set(released)) > 5
        assert model.gate_.gap == pytest.approx(gap(released, groups[given]))
        assert model.gate_.gap <= margin
    else:
        assert gap(public["age"].to_numpy(), groups) > margin  # the margin asks for something
    assert model.within_margin_
    decided = model.predict(numbers(public))
    assert model.public_gap_ == pytest.approx(gap(decided, groups))
    assert model.public_gap_ <= margin
    guess = max((new["age"] == age).mean() for age in AGES)
    said = model.predict(numbers(new))
    assert (said == new["age"]).mean() > guess + 0.1

    order = model.classes_.tolist()
    measured = fairness_report(
        np.searchsorted(order, new["age"]),
        np.searchsorted(order, said),
        new[sensitive],
        classes=order,
    )
    assert measured.rates.shape == (len(names), 9)
    assert measured["demographic_parity_rest"].value == pytest.approx(
        gap(said, new[sensitive].to_numpy())
    )
    page = write_report(model, tmp_path / "report.html", measured=measured).read_text()
    for name in (*AGES, *names):
        assert name in page


@pytest.mark.slow
@pytest.mark.parametrize("sensitive", GROUPS)
def test_a_frontier_of_nine_classes_and_all_groups_counts_every_rate(
    people: pd.DataFrame, tmp_path: Path, sensitive: str
) -> None:
    files = {}
    for name, part in zip(("private", "public", "test"), parts(people), strict=True):
        files[name] = str(tmp_path / f"{name}.csv")
        numbers(part).assign(age=part["age"], group=part[sensitive]).to_csv(
            files[name], index=False
        )
    grid = Grid(
        data=DataSource(name="ages", label="age", sensitive=("group",), **files),
        runs=(
            {
                "method": ["fairpate", "fair-shares"],
                "epsilon": [40.0],
                "margin": [0.1, 0.3],
                "n_teachers": [40],
                "noise": ["float"],
            },
            {"method": ["non-private"]},
        ),
    )
    with RunStore(tmp_path / "runs.db") as store:
        done = sweep(grid, store)
        runs = store.runs()
    assert (done.n_new, done.skipped) == (5, ())
    new = parts(people)[2]
    for run in runs:
        assert [group["name"] for group in run.groups] == list(GROUPS[sensitive])
        assert sum(group["rows"] for group in run.groups) == N_NEW  # type: ignore[misc]
    (plain,) = (run for run in runs if run.setting.method == "non-private")  # draws no noise
    decided = train_one(grid.data, plain.setting).predict(numbers(new))
    assert plain.gap == pytest.approx(gap(decided, new[sensitive].to_numpy()))
    assert plain.error == pytest.approx((decided != new["age"]).mean())

"""The reject option under any notion, several margins, intersections, and unknown groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand import (
    REJECTED,
    Budget,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FairSharesClassifier,
    FalsePositiveParity,
    RejectOptionClassifier,
)
from evenhand.estimators.calibration import LimitsTooWide
from evenhand.fairness.gate.reject_option import StateOfAnotherModel, Verdict
from evenhand.privacy import SeededNoise

N = 9000


class Bank:
    """A model, rows it was fitted on, calibration rows and new ones; groups differ in a feature."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.sex = rng.choice(["F", "M"], N)
        self.old = rng.choice(["old", "young"], N)
        self.X = rng.normal(size=(N, 2)) + 0.9 * (self.sex == "M")[:, None] * [1, 0]
        noise = np.where(self.sex == "M", 0.3, 0.7) * rng.normal(size=N)
        self.y = np.where(self.X.sum(axis=1) + noise > 0.7, "yes", "no")
        self.model = LogisticRegression().fit(self.X[:2000], self.y[:2000])
        self.calibration, self.new = slice(2000, 6000), slice(6000, 7000)

    def labelled(self, groups: Any = None) -> dict[str, Any]:
        groups = self.sex if groups is None else groups
        return {
            "X_calibration": self.X[self.calibration],
            "y_calibration": self.y[self.calibration],
            "sensitive_features_calibration": groups[self.calibration],
        }

    def option(self, fairness: Any, **changes: Any) -> RejectOptionClassifier:
        given = {"groups": ["F", "M"], "cold_start": 30, **self.labelled()} | changes
        return RejectOptionClassifier(self.model, fairness=fairness, **given)


@pytest.fixture(scope="module")
def bank() -> Bank:
    return Bank()


@pytest.mark.parametrize("kind", [EqualizedOdds, ErrorParity, FalsePositiveParity])
def test_the_given_labels_keep_a_margin_about_true_classes(bank: Bank, kind: type) -> None:
    margin = 0.15 if kind is ErrorParity else 0.3
    notion = kind(margin=margin)
    option = bank.option(notion)
    labels = option.predict(bank.X[bank.new], sensitive_features=bank.sex[bank.new])
    given = labels != REJECTED
    assert given.mean() > 0.3
    assert set(bank.sex[bank.new][given]) == {"F", "M"}
    assert option.gap_ <= margin
    assert option.gaps_ == {f"{notion.key}_rest": option.gap_}
    assert option.fitted_.notion == notion.name
    said = bank.model.predict(bank.X[bank.new])
    assert (labels[given] == said[given]).all()  # a label that is given is the model's own


def test_one_label_of_the_calibration_rows_moves_the_gap_and_the_claim_takes_them_as_public(
    bank: Bank,
) -> None:
    rows, groups = bank.X[bank.new], bank.sex[bank.new]
    known = bank.labelled()
    other = known["y_calibration"].copy()
    other[0] = "no" if other[0] == "yes" else "yes"
    gaps = []
    for truth in (known["y_calibration"], other):
        option = bank.option(ErrorParity(margin=0.3), y_calibration=truth)
        option.predict(rows, sensitive_features=groups)
        gaps.append(option.gap_)
    assert gaps[0] != gaps[1]  # whoever knows all other labels tells this one
    said = "the 4000 calibration rows with their labels and groups"
    assert option.fitted_.guarantee.public[-1] == said
    without = RejectOptionClassifier(bank.model, margin=0.3, groups=["F", "M"])
    assert said not in str(without.fitted_.guarantee)


def test_several_margins_are_all_kept(bank: Bank) -> None:
    both = [DemographicParity(margin=0.05), ErrorParity(margin=0.15)]
    alone = [bank.option(both[1]), bank.option(both[0], **dict.fromkeys(bank.labelled()))]
    option = bank.option(both)
    rows, groups = bank.X[bank.new], bank.sex[bank.new]
    given = (option.predict(rows, sensitive_features=groups) != REJECTED).sum()
    assert set(option.gaps_) == {"demographic_parity_rest", "error_parity_rest"}
    assert option.gaps_["demographic_parity_rest"] <= 0.05
    assert option.gaps_["error_parity_rest"] <= 0.15
    assert (
        0
        < given
        <= min((one.predict(rows, sensitive_features=groups) != REJECTED).sum() for one in alone)
    )
    assert (option.gap_, option.margin) in {
        (option.gaps_["demographic_parity_rest"], 0.05),
        (option.gaps_["error_parity_rest"], 0.15),
    }


def test_groups_may_be_combinations_of_columns(bank: Bank) -> None:
    both = pd.DataFrame({"sex": bank.sex, "age": bank.old})
    names = [f"sex={sex}, age={age}" for sex in ("F", "M") for age in ("old", "young")]
    option = bank.option(ErrorParity(margin=0.3), groups=names, **bank.labelled(both))
    option.predict(bank.X[bank.new], sensitive_features=both[bank.new])
    assert option.coverage_.names == tuple(names)
    assert (option.coverage_.given.sum(axis=1) > 0).all()
    assert option.gap_ <= 0.3


def test_the_state_goes_on_and_belongs_to_its_notions_and_calibration_rows(
    bank: Bank, tmp_path: Path
) -> None:
    notions = [DemographicParity(margin=0.05), ErrorParity(margin=0.15)]
    rows, groups = bank.X[bank.new], bank.sex[bank.new]
    whole, first = bank.option(notions), bank.option(notions)
    expected = whole.predict(rows, sensitive_features=groups)
    found = [first.predict(rows[:400], sensitive_features=groups[:400])]
    first.save_state(tmp_path / "counts.json")
    second = bank.option(notions)
    second.load_state(tmp_path / "counts.json")
    found.append(second.predict(rows[400:], sensitive_features=groups[400:]))
    late = second.deliver()
    same = np.concatenate(found)
    for number, label in late.items():
        same[number] = label
    whole_late = whole.deliver()
    for number, label in whole_late.items():
        expected[number] = label
    assert (same == expected).all()
    assert second.coverage_.to_dict() == whole.coverage_.to_dict()
    fewer = {name: value[:2500] for name, value in bank.labelled().items()}
    for other, said in (
        (bank.option(notions[::-1]), "the notion"),
        (bank.option([notions[0], ErrorParity(margin=0.16)]), "the margin"),
        (bank.option(notions, **fewer), "the calibration rows"),
        (bank.option(notions[1]), "the notion"),
    ):
        with pytest.raises(StateOfAnotherModel, match=f"belongs to {said}"):
            other.load_state(tmp_path / "counts.json")


def test_an_unknown_group_is_refused_for_a_reason_of_its_own_and_counted(
    bank: Bank, tmp_path: Path
) -> None:
    rows, groups = bank.X[bank.new], bank.sex[bank.new].astype(object)
    strange = groups.copy()
    strange[[3, 10]], strange[20] = "X", None
    settings = {"groups": ["F", "M"], "cold_start": 30}
    option = RejectOptionClassifier(bank.model, 0.1, unknown_group="refuse", **settings)
    decided = option.decide(rows, sensitive_features=strange)
    unknown = decided.reasons == Verdict.UNKNOWN_GROUP
    assert np.flatnonzero(unknown).tolist() == [3, 10, 20]
    assert (decided.labels[unknown] == REJECTED).all()
    assert sum(option.unknown_.values()) == 3
    assert option.coverage_.offered.sum() == len(rows) - 3
    assert decided.ids.tolist() == list(range(len(rows)))
    kept = np.flatnonzero(~unknown)
    without = RejectOptionClassifier(bank.model, 0.1, **settings)
    same = without.predict(rows[kept], sensitive_features=groups[kept])
    assert (decided.labels[kept] == same).all()  # nobody else is decided otherwise for it
    option.save_state(tmp_path / "counts.json")
    again = RejectOptionClassifier(bank.model, 0.1, unknown_group="refuse", **settings)
    again.load_state(tmp_path / "counts.json")
    assert again.unknown_ == option.unknown_
    assert again.decide(rows[:1], sensitive_features=["X"]).ids.tolist() == [len(rows)]
    with pytest.raises(ValueError, match="not among the known groups"):
        without.decide(rows[:1], sensitive_features=["X"])


def test_only_labels_that_are_sure_are_calibrated(bank: Bank) -> None:
    every = bank.option(ErrorParity(margin=0.2))
    sure = bank.option(ErrorParity(margin=0.2), threshold=0.8)
    known, fewer = (one.fitted_.calibration.labelled.counts for one in (every, sure))
    assert known.sum() == 4000 > fewer.sum() > 0
    assert np.trace(fewer.sum(axis=0)) / fewer.sum() > np.trace(known.sum(axis=0)) / known.sum()


def test_a_private_model_takes_any_notion(bank: Bank) -> None:
    model = FairSharesClassifier(
        Budget(epsilon=8.0, delta=1e-5),
        DemographicParity(margin=0.3),
        n_teachers=40,
        noise=SeededNoise(0),
        random_state=0,
    ).fit(
        bank.X[:2000],
        bank.y[:2000],
        X_public=bank.X[8000:],
        sensitive_features_public=bank.sex[8000:],
    )
    odds = EqualizedOdds(margin=0.25)
    option = model.with_reject_option(fairness=odds, cold_start=30, **bank.labelled())
    option.predict(bank.X[bank.new], sensitive_features=bank.sex[bank.new])
    assert option.gap_ <= 0.25
    assert option.coverage_.given.sum() > 100


def test_what_is_missing_or_of_no_use_is_told(bank: Bank) -> None:
    odds = EqualizedOdds(margin=0.1)
    nothing = dict.fromkeys(bank.labelled())
    for fairness, changes, said in (
        (odds, nothing, "is about true classes, and X_calibration and y_calibration and"),
        (odds, {"y_calibration": None}, "and y_calibration is missing"),
        (DemographicParity(margin=0.1), {}, "about predictions alone. Leave them out"),
        (None, {}, "Give either margin=.*got neither"),
        (odds, {"margin": 0.1}, "Give either margin=.*got both"),
        ([odds, odds], {}, "several that differ"),
        ([], {}, "a notion, or several"),
        (odds, {"reference": "pairwise"}, "a notion says its own"),
        (odds, {"admit_by": "limits"}, "Did you mean 'limit'"),
        (odds, {"unknown_group": "count"}, "unknown_group must be one of 'error', 'refuse'"),
        (odds, {"groups": ["F"]}, "sensitive_features_calibration holds .*known groups: 'F'"),
        (odds, {"y_calibration": ["maybe"] * 4000}, "which is not among the classes"),
    ):
        with pytest.raises(ValueError, match=said):
            bank.option(fairness, **changes)
    few = {name: value[:60] for name, value in bank.labelled().items()}
    with pytest.warns(LimitsTooWide, match="more than the margin of 0.1"):
        bank.option(odds, **few)

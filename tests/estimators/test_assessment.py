"""Assessments: what is charged, what is public, and what one record can move."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand.estimators.assessment import Assessment, assess
from evenhand.privacy import Budget, BudgetExceeded, Ledger
from evenhand.privacy.gaussian import delta_from_mu
from evenhand.privacy.noise import NoPrivacy
from evenhand.testing.audit import audit_sensitivity
from evenhand.testing.cases import cases


def people(n: int = 3000) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n)
    truth = rng.choice(["no", "yes"], n)
    decided = np.where(rng.random(n) < 0.8, truth, "no")
    return {"decided": decided, "groups": {"sex": sex, "race": race}, "truth": truth}


def test_the_cost_is_one_table_whatever_is_read_from_it() -> None:
    found = assess(**people(), epsilon=0.5)
    assert found.guarantee_.epsilon == 0.5
    assert found.guarantee_.delta == 0.0
    assert found.guarantee_.neighbors == "add or remove one"
    assert found.guarantee_.holds
    (entry,) = found.ledger_.entries
    assert entry.n_uses == 1
    assert [view.by for view in found.views] == ["sex", "race", "sex, race"]
    sex, race, both = (view.counts.counts for view in found.views)
    assert sex.sum() == race.sum() == both.sum()  # sums of the same released cells
    assert both.reshape(2, 3, 2, 2).sum(axis=1).tolist() == sex.tolist()


def test_without_noise_the_counts_are_those_of_the_rows() -> None:
    rows = people()
    found = assess(**rows, epsilon=1.0, noise=NoPrivacy())
    sex = found.views[0]
    for z, group in enumerate(sex.groups):
        there = rows["groups"]["sex"] == group
        for y, true in enumerate(found.classes):
            for k, given in enumerate(found.classes):
                cell = there & (rows["truth"] == true) & (rows["decided"] == given)
                assert sex.counts.counts[z, y, k] == cell.sum()
    assert not found.guarantee_.holds


def test_a_combination_that_nobody_has_is_in_the_table_as_any_other() -> None:
    rows = people(40)
    rows["groups"]["race"] = np.where(rows["groups"]["sex"] == "f", "a", "b")
    found = assess(**rows, epsilon=1.0)
    assert len(found.views[2].groups) == 4  # not only the two that occur


def test_without_truth_only_what_reads_none_is_assessed() -> None:
    rows = people()
    found = assess(rows["decided"], rows["groups"], epsilon=1.0)
    assert {gap.name for gap in found.views[0].gaps} == {"demographic_parity_pairwise"}
    assert found.views[0].errors == ()


def test_what_is_saved_is_what_was_released(tmp_path: Path) -> None:
    found = assess(**people(), epsilon=1.0)
    found.save(tmp_path / "made")
    said = json.loads((tmp_path / "made" / "assessment.json").read_text(encoding="utf-8"))
    assert said["views"][0]["noisy_counts"] == found.views[0].counts.counts.tolist()
    assert said["claim"]["sentence"] == str(found.guarantee_)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"groups": {}}, "one sensitive column"),
        ({"groups": {"sex": ["f"] * 3000}}, "one group only"),
        (
            {"groups": {"income": np.arange(3000) / 7}},
            r"'income' has more than 50 values.* Cut it into ranges: write these into a column",
        ),
        ({"truth": ["1", "0"] * 1500}, r"have no class in common"),
        ({"truth": [1.0, 0.0] * 1500, "decided": [1, 0] * 1500}, r"have no class in common"),
        ({"classes": ["no", "maybe"]}, "the rows have .*not shown.* too"),
        ({"decided": ["no"] * 3000, "truth": None}, r"All rows have one class, \(not shown\)"),
        ({"decided": ["no", None, "yes"] * 1000}, "decided is missing in row 2 .*'undecided'"),
        ({"truth": [1, 0, float("nan")] * 1000}, "truth is missing in row 3"),
        ({"decided": ["no", None] * 1500, "classes": ["no", "None"]}, "decided is missing"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        assess(**{**people(), "epsilon": 1.0, **changes})


@pytest.mark.parametrize(("n", "step", "said"), [(21, 1, True), (20, 1, False), (30, 0.5, True)])
def test_classes_that_are_many_numbers_are_warned_of(n: int, step: float, said: bool) -> None:
    age = 20 + step * (np.arange(3000) % n)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assess(age, people()["groups"], epsilon=1.0)
        assert [f"are {n} different numbers" in str(one.message) for one in found] == [True] * said
        assess([f"from {a}" for a in age], people()["groups"], epsilon=1.0)
        assess(age, people()["groups"], epsilon=1.0, classes=sorted(set(age)))
    assert len(found) == said


def test_amounts_are_no_classes_as_these_are_published() -> None:
    income = [f"{20_000 + person % 201} Euro" for person in range(3000)]
    for changes in (
        {"decided": income, "truth": None},
        {"truth": [*people()["decided"][:2799], *income[:201]]},
    ):
        with pytest.raises(
            ValueError, match=r"more than 200 classes.*nothing was released"
        ) as said:
            assess(**people() | changes, epsilon=1.0)
        assert "20001" not in str(said.value)


def test_many_groups_may_be_named() -> None:
    age = np.arange(3000) % 60
    found = assess(
        **people() | {"groups": {"age": age}},
        epsilon=1.0,
        values={"age": [str(a) for a in range(60)]},
    )
    assert len(found.views[0].groups) == 60


@pytest.mark.parametrize("library", [pd, pl])
def test_the_columns_may_stand_in_a_frame_and_a_column_without_a_name_is_refused(
    library: Any,
) -> None:
    given = people()
    frame = library.DataFrame(given.pop("groups"))
    found = assess(**given, groups=frame, epsilon=1.0, noise=NoPrivacy())
    same = assess(**people(), epsilon=1.0, noise=NoPrivacy())
    assert found.to_dict()["views"] == same.to_dict()["views"]
    with pytest.raises(TypeError, match=r"groups must name its columns.* got Series"):
        assess(**given, groups=frame["sex"], epsilon=1.0)


def test_a_neighbor_moves_one_cell_by_one() -> None:
    found = [one for one in audit_sensitivity(cases()["assess"]) if not one.skipped]
    assert found
    for one in found:
        assert not one.refuted, one


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_an_account_is_charged_what_two_tables_cost_together_and_refuses_the_next(
    epsilon: float,
) -> None:
    def ask(account: Ledger) -> Assessment:
        return assess(list("yynn"), {"g": list("abab")}, epsilon=epsilon, account=account)

    account = Ledger(Budget(epsilon=40.0, delta=1e-5), neighbors="add or remove one")
    found = [ask(account), ask(account)]
    assert [one.guarantee_.epsilon for one in found] == [epsilon, epsilon]
    assert found[0].guarantee_.delta == 0
    # By hand: a discrete Laplace draw has the loss +epsilon or -epsilon, and two add up.
    up = math.exp(epsilon) / (1 + math.exp(epsilon))
    for at in np.linspace(0, 2.5 * epsilon, 21):
        outcomes = ((2 * epsilon, up**2), (0.0, 2 * up * (1 - up)), (-2 * epsilon, (1 - up) ** 2))
        exact = sum(p * max(0.0, 1 - math.exp(at - loss)) for loss, p in outcomes)
        assert delta_from_mu(account.spent**0.5, at) >= exact - 1e-12
    small = Ledger(
        Budget(epsilon=account.spent_epsilon(1e-5) * 0.9, delta=1e-5), neighbors="add or remove one"
    )
    ask(small)
    before = small.spent
    with pytest.raises(BudgetExceeded):
        ask(small)
    assert small.spent == before


def test_an_account_of_another_change_of_the_data_is_refused() -> None:
    account = Ledger(Budget(epsilon=4.0, delta=1e-5))
    with pytest.raises(ValueError, match="replace one record"):
        assess(list("yn"), {"g": list("ab")}, epsilon=1.0, account=account)
    assert account.spent == 0

"""Single numbers of a table: named from noisy counts alone, paid for, and told apart by label."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import binomtest

from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables import private_table
from evenhand.generators.tables.bins import Bins, Cells
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.named_values import (
    _MOST,
    _RARE,
    LABELS,
    NAMES,
    _Counted,
    name_values,
    wide_columns,
)
from evenhand.generators.tables.private_table import BINS, BINS_SHARE
from evenhand.generators.tables.records import as_roles, read_records
from evenhand.generators.tables.released_schema import UndeclaredColumns
from evenhand.privacy import Budget, FloatNoise, Ledger, SeededNoise

GROUPS = {"sex": ["F", "M"], "rich": ["no", "yes"]}
SCHEMA = Schema.declared({"amount": {"bounds": (0, 10_000)}, **GROUPS})
SPECIAL = 7301


def people(n: int = 6000, seed: int = 0, **more: Any) -> pd.DataFrame:
    """People with amounts; who has 7301 is nearly always rich, and whose amount is near it poor."""
    rng = np.random.default_rng(seed)
    amount = np.where(rng.random(n) < 0.4, 0, rng.integers(1, 10_000, n))
    special = rng.random(n) < 0.06
    near = (amount > 7000) & (amount < 8000)
    rich = np.where(special, rng.random(n) < 0.97, rng.random(n) < np.where(near, 0.05, 0.3))
    frame = pd.DataFrame(
        {
            "amount": np.where(special, SPECIAL, amount),
            "sex": rng.choice(["F", "M"], n),
            "rich": np.where(rich, "yes", "no"),
        }
    )
    return frame.assign(**more)


def fit(frame: pd.DataFrame, epsilon: float = 8.0, **more: Any) -> MarginalSynthesizer:
    made = MarginalSynthesizer(random_state=0, noise=SeededNoise(0))
    budget = Budget(epsilon=epsilon, delta=1e-6)
    return made.fit(frame, label="rich", sensitive="sex", budget=budget, **more)


def chances(frame: pd.DataFrame) -> tuple[float, float]:
    """Return how many have 7301, and how many of them are rich."""
    has = frame["amount"] == SPECIAL
    return float(has.mean()), float((frame["rich"][has] == "yes").mean())


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64"])
def test_a_number_of_many_is_drawn_as_often_and_with_its_own_labels(dtype: str) -> None:
    frame = people()
    frame["amount"] = frame["amount"].astype(dtype)
    if dtype != "int64":
        frame.loc[::9, "amount"] = None
    made = fit(frame)
    (told,) = (note for note in made.notes_ if note.startswith("single numbers"))
    assert "of 'amount'" in told
    drawn = made.sample(20_000, balance=(), random_state=0)
    (often, rich), (as_often, as_rich) = chances(frame), chances(drawn)
    assert abs(as_often - often) < 0.01
    assert as_rich > 0.9
    assert rich > 0.9
    assert str(drawn["amount"].dtype) == dtype
    # Where all is declared no number is named, and it has the labels of those around it.
    declared = fit(frame.dropna(), schema=SCHEMA)
    assert chances(declared.sample(20_000, balance=(), random_state=0))[0] < 0.01
    assert {entry.purpose for entry in declared.ledger_.entries}.isdisjoint({NAMES, LABELS})


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_it_is_paid_for_and_charged_whatever_the_numbers_are() -> None:
    plain = people()
    fractions = plain.assign(amount=plain["amount"] + np.random.default_rng(0).random(6000))
    for frame, releases in ((plain, [NAMES, LABELS]), (fractions, [NAMES])):
        made = fit(frame)
        of = {entry.purpose: entry.mu_squared for entry in made.ledger_.entries}
        assert [name for name in (NAMES, LABELS) if name in of] == releases
        budget = made.ledger_.budget.mu_squared
        assert all(of[name] <= 0.02 * budget for name in releases)
        assert math.fsum(of.values()) <= budget
        assert "of delta for naming values" in str(made.guarantee_)
    assert BINS_SHARE > 0.02


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
@pytest.mark.parametrize(("epsilon", "parts"), [(3.0, [1.0]), (8.0, [0.8, 0.2])])
def test_what_is_set_aside_of_delta_is_divided_and_used_up(
    epsilon: float, parts: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []

    def noted(of_names: Callable[..., Any]) -> Callable[..., Any]:
        def names(*arguments: Any) -> Any:
            used.append(arguments[-1])
            return of_names(*arguments)

        return names

    schema = UndeclaredColumns.release_schema
    monkeypatch.setattr(UndeclaredColumns, "release_schema", noted(schema))
    monkeypatch.setattr(private_table, "name_values", noted(name_values))
    made = fit(people(), epsilon=epsilon)
    aside = 1e-6 - made.ledger_.budget.delta
    assert aside == pytest.approx(1e-7)
    assert used == pytest.approx([part * aside for part in parts])
    # What is not named leaves its share of the budget to the bins: nothing of it is left unspent.
    share = 0.09 if len(parts) == 2 else 0.05
    for frame in (people(), people(amount=np.arange(6000) % 100), people(amount=0.5)):
        ledger = fit(frame, epsilon=epsilon).ledger_
        spent = [e.mu_squared for e in ledger.entries if e.purpose in (NAMES, LABELS, BINS)]
        assert math.fsum(spent) == pytest.approx(share * ledger.budget.mu_squared, rel=1e-6)


@pytest.mark.parametrize("per_unit", [1, 2])
def test_a_number_of_one_person_is_named_no_oftener_than_delta_allows(per_unit: int) -> None:
    # A delta of .3, so that it can be seen. 40 people hold numbers in two columns, a different one
    # in each of their records, and four others hold each: without that one person, of any of the
    # 40, none of theirs can be named.
    delta, runs, named = 0.3, 400, 0
    rng = np.random.default_rng(0)
    number = np.tile(np.arange(1, 40 * per_unit + 1), _RARE + 1)
    frame = pd.DataFrame({"one": 1000 * number, "other": 997 * number})
    frame["sex"], frame["rich"] = (rng.choice(of, len(frame)) for of in (["F", "M"], ["no", "yes"]))
    frame["person"] = np.arange(len(frame)) // per_unit
    records = read_records(frame, as_roles("rich", "sex", "person"), per_unit=per_unit)
    both = {name: {"bounds": (0, 100_000)} for name in ("one", "other")}
    schema = Schema.declared({**both, **GROUPS})
    codec = TableCodec.of(schema, records.table, ("rich", "sex"))
    budget = Budget(epsilon=1.0, delta=1e-6)
    for _ in range(runs):
        ledger = Ledger(budget, unit="person", neighbors="add or remove one", noise=FloatNoise())
        plan = BudgetPlan(ledger=ledger, shares={NAMES: 1.0})
        found = name_values(records, wide_columns(codec), plan, delta)
        named += sum(len(values) for values in found.values())
    # Of the numbers of *one* person, in all records and both columns, some is named with at most
    # this chance.
    assert named > 0  # the threshold is not far above what the promise needs
    assert binomtest(named, 40 * runs, delta, alternative="greater").pvalue > FALSE_ALARM


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
@pytest.mark.parametrize("per_unit", [None, 2])
def test_one_unit_moves_what_is_released_by_the_declared_sensitivity_and_no_more(
    per_unit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[tuple[str, float, np.ndarray]] = []
    release = BudgetPlan.release

    def noted(plan: Any, aggregator: Any, total: Any, purpose: str) -> Any:
        if purpose in (NAMES, LABELS):
            released.append((purpose, aggregator.l2_sensitivity("add or remove one"), total))
        return release(plan, aggregator, total, purpose)

    monkeypatch.setattr(BudgetPlan, "release", noted)
    # Every amount is somebody else's too: then both tables name from the same ones.
    frame = people(amount=1000 * (np.arange(6000) % 7), other=997 * (np.arange(6000) % 5))
    frame["person"] = np.arange(6000) // (per_unit or 1)
    how = {} if per_unit is None else {"unit": "person", "per_unit": per_unit}
    for rows in (frame, frame[frame["person"] != 35]):
        fit(rows if per_unit else rows.drop(columns="person"), **how)
    assert [purpose for purpose, *_ in released] == [NAMES, LABELS] * 2
    for (_, declared, before), (_, _, after) in zip(released[:2], released[2:], strict=True):
        moved = float(np.linalg.norm(before - after))
        assert moved <= declared
        # Two records of a person lie in the same cells at worst; here they do not.
        assert declared == pytest.approx((per_unit or 1) * math.sqrt(2))
        assert per_unit is not None or moved == pytest.approx(declared)


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_the_commonest_are_named_where_all_are_common() -> None:
    frame = people(8000, amount=7 * np.concatenate([np.arange(6000) % 300, np.arange(2000) % 50]))
    made = fit(frame, epsilon=50.0)
    assert f"{_MOST} of 'amount'" in next(n for n in made.notes_ if n.startswith("single numbers"))
    bins = made.codec_["amount"].bins
    assert bins is not None
    commonest = bins.cells.codes(7.0 * np.arange(50))
    assert bins.cells.atoms[commonest].all()


@given(
    values=st.lists(st.sampled_from([0.0, 3.0, 7.5, 900.0, 901.0, 2000.0, math.nan]), min_size=2),
    gone=st.integers(0, 10**6),
)
def test_one_row_moves_one_count_by_one(values: list[float], gone: int) -> None:
    column = ColumnSchema(name="x", kind="numeric", bounds=(0.0, 1000.0))
    frame = pd.DataFrame({"x": values})

    def counted(rows: pd.DataFrame) -> dict[float, int]:
        found, counts = _Counted.of([column], TypedTable(rows, "here")).found["x"]
        return dict(zip(found.tolist(), counts.tolist(), strict=True))

    whole, less = counted(frame), counted(frame.drop(index=gone % len(values)))
    assert set(whole) <= {0.0, 3.0, 900.0, 901.0}
    moved = {value: whole[value] - less.get(value, 0) for value in whole}
    assert sum(moved.values()) <= 1
    assert set(moved.values()) <= {0, 1}
    # In two batches as in one.
    parts = [TypedTable(frame.iloc[at], "here") for at in (slice(1), slice(1, None))]
    together = _Counted.of([column], parts[0]) + _Counted.of([column], parts[1])
    assert [part.tolist() for part in together.found["x"]] == [list(whole), list(whole.values())]


@given(
    values=st.lists(st.integers(-50, 2000), min_size=1, max_size=12),
    decimals=st.sampled_from([None, 0, 1]),
    other=st.floats(-50, 2000),
)
def test_a_named_number_has_a_cell_of_its_own_and_all_others_theirs(
    values: list[int], decimals: int | None, other: float
) -> None:
    cells = Cells.between(-50, 2000, decimals=decimals).with_values(values)
    assert (cells.ends[:-1] == cells.starts[1:]).all()
    per_unit = 10 ** (decimals or 0)
    assert cells.bounds == (-50, 2000)
    at = cells.codes(np.array(values, dtype=float))
    assert (cells.starts[at] == np.multiply(values, per_unit)).all()
    assert cells.atoms[at].all()
    every = np.repeat(np.arange(len(cells)), 5)
    assert (cells.codes(cells.draw(every, np.random.default_rng(0))) == every).all()
    number = other if decimals is None else round(other * per_unit) / per_unit
    (code,) = cells.codes(np.array([other]))
    assert cells.starts[code] <= number * per_unit <= cells.ends[code]
    assert (number in values) <= bool(cells.atoms[code])
    again = cells.with_values(values)
    assert (again.starts.tolist(), again.ends.tolist()) == (
        cells.starts.tolist(),
        cells.ends.tolist(),
    )


@given(
    seed=st.integers(0, 10**6),
    most=st.integers(0, 6),
    worth=st.sampled_from([0.5, 20.0, 200.0, math.inf]),
)
def test_numbers_are_set_apart_where_their_labels_differ_and_nowhere_else(
    seed: int, most: int, worth: float
) -> None:
    rng = np.random.default_rng(seed)
    cells = Cells.between(0, 5000, decimals=0)
    noisy = rng.poisson(50.0, len(cells)).astype(float)
    values = rng.choice(np.arange(1, 5000), 8, replace=False)
    before = Bins.from_noisy(cells, noisy, sigma=1.0, n_bins=8).with_values(values)
    by_label = rng.poisson(30.0, (2, len(before.cells))) * rng.choice([0.1, 1.0, 6.0], (2, 1))
    after = before.set_apart(by_label, sigma=0.5, worth=worth, most=most)
    # The old bins are cut, and never joined; what is new stands alone or beside one that does.
    cut = np.flatnonzero(np.diff(after.bin_of_cell)) + 1
    old = np.flatnonzero(np.diff(before.bin_of_cell)) + 1
    assert set(old) <= set(cut)
    assert (np.diff(after.bin_of_cell) >= 0).all()
    alone = [
        i
        for i in np.flatnonzero(after.cells.atoms)
        if (after.bin_of_cell == after.bin_of_cell[i]).sum() == 1
        and (before.bin_of_cell == before.bin_of_cell[i]).sum() > 1
    ]
    assert set(cut) - set(old) <= {j for i in alone for j in (i, i + 1)}
    assert after.n_bins - before.n_bins <= 2 * most
    sums = np.bincount(after.bin_of_cell, after.weights)
    assert np.allclose(sums, 1.0)
    if worth == math.inf or not most:
        assert (after.bin_of_cell == before.bin_of_cell).all()


def test_the_number_that_misplaces_most_labels_is_set_apart_by_hand() -> None:
    cells = Cells.between(0, 999, decimals=0)
    bins = Bins.from_noisy(cells, np.zeros(len(cells)), sigma=1.0, n_bins=1)
    # One bin; 5 has the labels (30, 10) and 500 (0, 8), all others together (20, 20).
    bins = bins.with_values([5, 500])
    by_label = np.zeros((2, len(bins.cells)))
    five, five_hundred, rest = bins.cells.codes(np.array([5.0, 500.0, 700.0]))
    by_label[:, five], by_label[:, five_hundred], by_label[:, rest] = (30, 10), (0, 8), (20, 20)
    # By the shares (20, 28) of the rest 40 records would be (16.7, 23.3): 13.3 have another label.
    assert bins.set_apart(by_label, sigma=0.1, worth=13.4, most=9).n_bins == bins.n_bins
    found = bins.set_apart(by_label, sigma=0.1, worth=13.3, most=9)
    assert (found.bin_of_cell == found.bin_of_cell[five]).sum() == 1
    # 500 against (20, 20): 4 of its 8.
    assert (found.bin_of_cell == found.bin_of_cell[five_hundred]).sum() > 1
    assert found.set_apart(by_label, sigma=0.1, worth=4.0, most=1).n_bins == found.n_bins + 2

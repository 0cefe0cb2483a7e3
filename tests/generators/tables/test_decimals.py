"""Numbers of few decimals are drawn with these, by every generator of tables."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import FAINT

from evenhand._frames import as_pandas
from evenhand.datasets import Schema
from evenhand.datasets.columns import MOST_DECIMALS_READ, Column, TypedTable
from evenhand.datasets.schema import ColumnSchema
from evenhand.estimators.drawn_rows import _by_public_rows
from evenhand.generators import (
    MarginalSynthesizer,
    MeanEmbeddingSynthesizer,
    RONGaussSynthesizer,
    load,
)
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.constraints import Constraint
from evenhand.generators.tables.named_values import wide_columns
from evenhand.generators.tables.records import as_roles, read_records
from evenhand.generators.tables.released_schema import (
    DECIMALS,
    PURPOSE,
    UndeclaredColumns,
    _as_stored,
    _decimals_shown,
    _with_decimals,
    undeclared,
)
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.testing.generators import ROLES, SCHEMA, table

pytestmark = FAINT
N = len(table())
BUDGET = Budget(epsilon=6.0, delta=1e-6)
COLUMNS = {
    "warm": {"bounds": (34.0, 42.0), "decimals": 1},
    "paid": {"bounds": (-5.005, 900.0), "decimals": 2, "missing": True},
}


def rows_of() -> pd.DataFrame:
    """Return the rows with temperatures and amounts, a third of them of one price."""
    rng = np.random.default_rng(1)
    paid = np.where(rng.random(N) < 0.35, 12.5, rng.gamma(2.0, 60.0, N).clip(0, 900).round(2))
    return table().assign(
        warm=rng.normal(37, 0.6, N).clip(34, 42).round(1),
        paid=np.where(rng.random(N) < 0.1, np.nan, paid),
    )


def schema(**columns: Any) -> Schema:
    return Schema(columns=(*SCHEMA.columns, *Schema.declared(COLUMNS | columns).columns))


def fit(
    made: TableSynthesizer | None = None,
    frame: pd.DataFrame | None = None,
    known: Schema | None = None,
) -> Any:
    if made is None:
        made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, pairs=False)
    rows = rows_of() if frame is None else frame
    return made.fit(rows, **ROLES, budget=BUDGET, schema=schema() if known is None else known)


def written(values: pd.Series[Any], decimals: int) -> bool:
    """Whether a file shows no more decimals than these."""
    texts = values.dropna().astype(str).str.partition(".")[2]
    return bool((texts.str.len() <= decimals).all())


@pytest.mark.parametrize(
    "method",
    [
        MarginalSynthesizer(noise=SeededNoise(0), random_state=0),
        MeanEmbeddingSynthesizer(
            noise=SeededNoise(0), random_state=0, n_frequencies=20, n_parts=10, n_steps=5
        ),
        RONGaussSynthesizer(noise=SeededNoise(0), random_state=0),
    ],
    ids=lambda made: made.method,
)
def test_every_method_draws_the_decimals_that_are_declared(method: TableSynthesizer) -> None:
    drawn = fit(method).sample(600, random_state=0, balance=())
    assert written(drawn["warm"], 1)
    assert written(drawn["paid"], 2)
    assert drawn["warm"].between(34, 42).all()
    assert drawn["paid"].dropna().between(-5.005, 900).all()
    assert drawn["warm"].dtype == drawn["paid"].dtype == np.float64
    assert not written(drawn["score"], 9)  # none are declared of it


def test_a_price_that_many_have_is_drawn_as_often_as_it_is_beside_others() -> None:
    # Single numbers are named where the schema leaves something to the budget: the score.
    made = fit(known=Schema(columns=tuple(c for c in schema().columns if c.name != "score")))
    drawn = made.sample(4000, random_state=0, balance=())
    # Named from the noisy counts at epsilon 6; five deviations of both samples, and the noise.
    assert abs((drawn["paid"] == 12.5).mean() - 0.9 * 0.35) < 0.05
    assert any(note.startswith("single numbers") for note in made.notes_)


def test_conditions_and_constraints_hold_and_what_no_number_is_is_refused(tmp_path: Path) -> None:
    made = fit()
    made.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert isinstance(again, MarginalSynthesizer)
    asked: dict[str, Any] = {
        "conditions": {"warm": 36.7, "paid": (36.71, 500.004)},
        "constraints": [Constraint.order("hours", "paid")],
        "balance": (),
        "random_state": 0,
    }
    rows = again.sample(60, **asked)
    assert rows.equals(made.sample(60, **asked))
    assert (rows["warm"] == 36.7).all()
    assert rows["paid"].between(36.71, 500).all()
    assert (rows["hours"] <= rows["paid"]).all()
    assert written(rows["paid"], 2)
    words = r"holds numbers of 1 decimal from 34\.0 to 42\.0, and none there"
    with pytest.raises(ValueError, match=words):
        made.sample(5, conditions={"warm": 36.74})


@pytest.mark.parametrize("dtype", ["float32", "Float64", "int64", "Int8"])
def test_every_dtype_of_numbers_comes_back(dtype: str) -> None:
    frame = rows_of()
    whole = dtype.lower().startswith("int")
    warm = frame["warm"].round() if whole else frame["warm"]
    rows = fit(frame=frame.assign(warm=warm.astype(dtype))).sample(800, random_state=0)
    assert str(rows["warm"].dtype) == dtype
    assert written(rows["warm"], 0 if whole else 1)


def test_single_numbers_are_counted_as_fine_as_they_are_not_too_many() -> None:
    known = schema(
        fine={"bounds": (0, 200), "decimals": 3},  # 200,001 numbers
        wide={"bounds": (0, 50_000), "decimals": 2},  # 500,001 of one decimal; whole ones
        huge={"bounds": (0, 3e5), "decimals": 2},
        few={"bounds": (0, 1), "decimals": 1},
    )
    frame = rows_of().assign(fine=0.5, wide=0.5, huge=0.5, few=0.5)
    codec = TableCodec.of(known, known.check(frame), ["rich"])
    assert [c.name for c in wide_columns(codec)] == ["gain", "paid", "fine", "wide"]


def undeclared_rows() -> pd.DataFrame:
    """Return the rows with columns of floats of 0, 1, 2 decimals and of all that they have."""
    rng = np.random.default_rng(2)
    visits = np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 40, N))
    return rows_of().assign(visits=visits)


def released(frame: pd.DataFrame, known: Schema | None = None, seed: int = 0) -> Any:
    made = MarginalSynthesizer(noise=SeededNoise(seed), random_state=0, pairs=False)
    return made.fit(frame, **ROLES, budget=Budget(epsilon=20.0, delta=1e-6), schema=known)


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_decimals_that_no_schema_says_are_released_and_drawn(seed: int) -> None:
    frame = undeclared_rows().astype({"warm": "float32"})
    made = released(frame, seed=seed)
    found = {c.name: c.schema.decimals for c in made.codec_.columns}
    assert [found[n] for n in ("warm", "paid", "visits", "score", "hours")] == [1, 2, 0, None, None]
    drawn = made.sample(2000, random_state=0)
    for name, places in (("warm", 1), ("paid", 2)):
        assert drawn[name].dtype == frame[name].dtype
        assert written(drawn[name], places)
    assert (drawn["visits"].dropna() % 1 == 0).all()
    note = next(words for words in made.notes_ if words.startswith("released were"))
    assert "'warm' from 32 to 64, decimals 1" in note
    assert note.count("decimals") == 3


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_decimals_are_paid_for_once_whatever_the_numbers_are_and_only_where_unsaid() -> None:
    frame = undeclared_rows()
    digits = frame.assign(warm=frame["warm"] + 1e-7, visits=0.5)
    whole = frame.assign(**dict.fromkeys(("warm", "paid", "visits", "score", "gain"), 1.0))
    for rows in (frame, digits, whole):
        made = released(rows)
        (entry,) = [e for e in made.ledger_.entries if e.purpose == DECIMALS]
        assert entry.mu_squared == pytest.approx(0.01 * made.ledger_.budget.mu_squared, rel=1e-6)
    # What is declared is free, also where bounds are still to be released; so are whole dtypes.
    rest = Schema.declared({"visits": {"decimals": 0}, "warm": {"decimals": 1}})
    names = [c for c in schema().columns if c.name not in rest.names]
    made = released(frame, Schema(columns=(*names, *rest.columns)))
    assert DECIMALS not in {e.purpose for e in made.ledger_.entries}
    assert [made.codec_[n].schema.decimals for n in ("warm", "visits")] == [1, 0]
    assert written(made.sample(500)["warm"], 1)
    made = released(frame[["job", "hours", "rich", "sex", "old"]])
    assert DECIMALS not in {e.purpose for e in made.ledger_.entries}


@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_decimals_that_the_type_of_a_column_says_cost_nothing_and_are_drawn() -> None:
    frame = undeclared_rows()[["warm", "paid", "job", "hours", "rich", "sex", "old"]]
    wide = {"warm": pa.decimal128(9, 3), "paid": pa.decimal128(12, 2)}  # wider than the values are
    stored = pa.Table.from_pandas(frame, preserve_index=False)
    for name, kind in wide.items():
        exact = [None if v != v else Decimal(str(v)) for v in frame[name]]
        at = stored.column_names.index(name)
        stored = stored.set_column(at, name, pa.array(exact, kind))
    made = released(stored)
    assert DECIMALS not in {entry.purpose for entry in made.ledger_.entries}
    assert [made.codec_[n].schema.decimals for n in wide] == [3, 2]
    rows = made.sample(500, random_state=0)
    assert written(rows["warm"], 3)
    assert written(rows["paid"], 2)
    # With bounds that are declared it is the same, and what is declared of decimals stands.
    paid = {"bounds": (0, 1000), "decimals": 1, "missing": True}
    said = {"warm": {"bounds": (30, 45)}, "paid": paid}
    names = [c for c in SCHEMA.columns if c.name in frame and c.name not in said]
    made = released(stored, Schema(columns=(*names, *Schema.declared(said).columns)))
    assert [made.codec_[n].schema.decimals for n in wide] == [3, 1]
    narrow = Schema.declared({"warm": {"bounds": (36.0001, 36.0004)}}).columns[0]
    assert _as_stored(narrow, Column(as_pandas(stored)["warm"])).decimals is None


@pytest.mark.parametrize("unit", [None, "who"])
def test_no_record_and_no_unit_moves_the_counts_of_decimals_by_more_than_is_charged(
    unit: str | None,
) -> None:
    # The definition, for every record, or every unit of up to three records.
    frame = undeclared_rows().head(60).drop(columns="gain").assign(who=np.arange(60) // 3)
    frame.loc[[3, 4, 5], ["warm", "paid", "visits", "score"]] = 1.0  # a unit with all in one cell
    frame = frame if unit else frame.drop(columns="who")
    counted: list[tuple[float, np.ndarray]] = []

    class Noted(BudgetPlan):
        def release(self, counter: Any, total: Any, purpose: str) -> Any:
            if purpose == DECIMALS:
                counted.append((counter.l2_sensitivity("add or remove one"), total))
            return super().release(counter, total, purpose)

    def count(rows: pd.DataFrame) -> None:
        roles = as_roles(ROLES["label"], ROLES["sensitive"], unit)
        records = read_records(rows, roles, per_unit=3)
        conditions = tuple(c for c in SCHEMA.columns if c.categories and c.name != "job")
        known = Schema(columns=conditions)
        columns = UndeclaredColumns.of(records, known, undeclared(records, known))
        ledger = Ledger(
            Budget(epsilon=9.0, delta=1e-6), noise=SeededNoise(0), neighbors="add or remove one"
        )
        columns.release_schema(Noted(ledger=ledger, shares={PURPOSE: 0.5, DECIMALS: 0.5}), 1e-6)

    count(frame)
    (declared, whole), moved = counted.pop(), []
    for gone in range(60 if unit is None else 20):
        count(frame[frame[unit] != gone] if unit else frame.drop(index=gone))
        moved.append(float(np.linalg.norm(whole - counted.pop()[1])))
    assert max(moved) == pytest.approx(declared)  # attained, and by no other is it passed
    assert declared == pytest.approx((3 if unit else 1) * 2.0)  # four columns


def test_decimals_of_public_rows_beside_noisy_counts_are_theirs() -> None:
    public = undeclared_rows()[["warm", "paid", "visits", "score"]].head(200)
    private = pd.DataFrame({name: np.linspace(30, 50, 50) for name in public})
    schema, *_ = _by_public_rows(private, TypedTable.of(public, "public rows"), None)
    assert [column.decimals for column in schema.columns] == [1, 2, 0, None]
    # Public numbers that have more digits than floats tell apart say nothing of decimals.
    assert Column(pd.Series([2.0**41 + 0.5, 0.1234])).decimals is None
    assert Column(pd.Series([2.0**41 + 0.5, 0.12])).decimals == 2


@given(
    steps=st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=30),
    places=st.integers(0, 6),
    dtype=st.sampled_from(["float64", "Float64"]),
)
def test_decimals_are_counted_as_a_file_shows_them(
    steps: list[int], places: int, dtype: str
) -> None:
    numbers = [step / 10**places for step in steps]
    found = Column(pd.Series([*numbers, np.nan], dtype=dtype)).decimal_counts
    shown = [f"{x:.{places}f}".rstrip("0").partition(".")[2] if places else "" for x in numbers]
    by_hand = np.bincount([min(len(text), MOST_DECIMALS_READ + 1) for text in shown], minlength=6)
    assert found.tolist() == by_hand.tolist()


def test_numbers_beyond_what_floats_tell_apart_are_counted_without_a_word() -> None:
    ends = [np.finfo(float).max, -np.finfo(float).max, 2.0**60 + 2**20, np.inf, np.nan]
    assert Column(pd.Series(ends)).decimal_counts.tolist() == [3, 0, 0, 0, 0, 0]
    # Numbers up to 2^50 of four decimals have more digits than a float: nothing is said of them.
    column = ColumnSchema(name="x", kind="numeric", bounds=(0.0, 2.0**50))
    assert _with_decimals(column, 4) is column
    assert _with_decimals(replace(column, bounds=(2.0**-9, 0.25)), 1).bounds == (0.0, 0.3)


@pytest.mark.parametrize(
    ("counts", "sigma", "decimals"),
    [
        ([0, 900, 0, 0, 0, 0], 10.0, 1),
        ([90, 9, 801, 0, 0, 0], 10.0, 2),  # the most that is seen, and not the commonest
        ([900, 0, 0, 0, 0, 0], 10.0, 0),
        ([0, 900, 0, 0, 0, 60], 10.0, None),  # what stands out is not rounded away
        ([0, 900, 0, 0, 0, 25], 10.0, None),  # nor what may be a twentieth
        ([0, 900, 0, 0, 0, 0], 20.0, None),  # and noise may hide as many
        ([0, 0, 0, 0, 0, 900], 10.0, None),
        ([9, -20, 5, 0, 12, 0], 10.0, None),
    ],
)
def test_decimals_are_said_where_noise_hides_few_numbers_with_more(
    counts: list[float], sigma: float, decimals: int | None
) -> None:
    assert _decimals_shown(np.array(counts, dtype=np.float64), sigma) == decimals

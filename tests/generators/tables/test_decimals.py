"""Numbers of few decimals are drawn with these, by every generator of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand.datasets import Schema
from evenhand.generators import (
    MarginalSynthesizer,
    MeanEmbeddingSynthesizer,
    RONGaussSynthesizer,
    load,
)
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.constraints import Constraint
from evenhand.generators.tables.named_values import wide_columns
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, SeededNoise
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
        MeanEmbeddingSynthesizer(noise=SeededNoise(0), random_state=0),
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
    words = r"holds numbers of 1 decimals from 34\.0 to 42\.0, and none there"
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

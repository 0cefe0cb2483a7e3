"""Dates are learnt as numbers under the ledger, and every dtype comes back from a generator."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand.datasets import PublicEncoder, Schema
from evenhand.datasets.columns import Column
from evenhand.datasets.dates import dates_of
from evenhand.generators import MarginalSynthesizer, evaluate, load
from evenhand.generators.tables.nonprivate import ReweightedSynthesizer
from evenhand.generators.tables.released_schema import DAYS, PURPOSE, _grid_counts
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.report.columns import column_views
from evenhand.testing.generators import ROLES, SCHEMA, table

pytestmark = FAINT
N = len(table())
SPAN = ("2021-03-01", "2022-02-28")
FIRST, LAST = map(pd.Timestamp, SPAN)


def fit(frame: pd.DataFrame, schema: Schema | None = None, **more: Any) -> MarginalSynthesizer:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, pairs=False)
    budget = Budget(epsilon=6.0, delta=1e-6)
    return made.fit(frame, **ROLES, budget=budget, schema=schema, **more)


def moments(dtype: str = "datetime64[ns]", gaps: float = 0.1) -> pd.Series[Any]:
    """Return times of one year, some missing."""
    rng = np.random.default_rng(1)
    made = pd.Series(FIRST + pd.to_timedelta(rng.integers(0, 365 * 86_400, N), unit="s"))
    made = made.where(rng.random(N) >= gaps).astype("datetime64[ns]")
    return (made.dt.tz_localize("UTC") if "," in dtype else made).astype(dtype)


def declared(**columns: Any) -> Schema:
    known = {name: SCHEMA.columns[SCHEMA.names.index(name)] for name in SCHEMA.names}
    return Schema(columns=(*known.values(), *Schema.declared(columns).columns))


DTYPES = ("datetime64[s]", "datetime64[ns]", "datetime64[us, UTC]", "datetime64[ns, Asia/Tokyo]")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("said", [None, "date", "datetime"])
def test_dates_come_back_with_their_dtype_range_and_gaps(dtype: str, said: str | None) -> None:
    frame = table().assign(seen=moments(dtype))
    bounds = {"kind": said, "bounds": SPAN, "missing": True}
    made = fit(frame, None if said is None else declared(seen=bounds))
    rows = made.sample(3000, random_state=0, balance=())
    assert repr(rows["seen"].dtype) == repr(frame["seen"].dtype)
    # Counts of 3,000 rows and of the fit: .1 within five deviations of both.
    assert abs(rows["seen"].isna().mean() - frame["seen"].isna().mean()) < 0.05
    there = rows["seen"].dropna()
    clock = there.dt.tz_localize(None) if said == "date" or "," not in dtype else there
    naive = clock if clock.dt.tz is None else clock.dt.tz_convert("UTC").dt.tz_localize(None)
    if said is None:
        edges = pd.to_datetime(DAYS, unit="D")
        assert edges[edges <= FIRST].max() <= naive.min()
        assert naive.max() < edges[edges > LAST].min()
    else:
        assert naive.min() >= FIRST
        assert naive.max() <= LAST
    assert (naive == naive.dt.normalize()).all() == (said == "date")


def test_half_of_a_skewed_year_is_kept() -> None:
    rng = np.random.default_rng(2)
    days = FIRST + pd.to_timedelta((365 * rng.beta(1, 4, N)).astype(int), unit="D")
    rows = fit(table().assign(seen=days), declared(seen={"bounds": SPAN})).sample(4000, balance=())
    middle = pd.Series(days).quantile(0.5)
    assert abs((rows["seen"] <= middle).mean() - (days <= middle).mean()) < 0.08


def test_undeclared_bounds_are_released_by_the_ledger_and_declared_ones_are_not() -> None:
    frame = table().assign(seen=moments(gaps=0.0))
    for schema, released in (
        (SCHEMA, True),
        (declared(seen={"kind": "date", "bounds": SPAN}), False),
    ):
        store = MemoryStore()
        made = fit(frame, schema, store=store)
        assert any(e.purpose == PURPOSE for e in made.ledger_.entries) is released
        assert any("'seen' from 20" in note for note in made.notes_) is released
    # What is released is on the grid whatever the smallest and the largest value are.
    (column,) = [c for c in fit(frame, SCHEMA).codec_.schema.columns if c.name == "seen"]
    assert column.bounds is not None
    assert column.bounds[0] / 86_400 in DAYS
    assert (column.bounds[1] + 1) / 86_400 in DAYS


def test_one_record_moves_one_count_of_the_grid_by_one() -> None:
    days = ["0001-01-01", "1899-12-31", "1970-01-01", "2104-05-05", "9999-12-31", "NaT"]
    rows = pd.Series(np.array(days, dtype="datetime64[s]"), name="seen")
    whole = _grid_counts(Column(rows))
    assert len(whole) == len(DAYS) - 1
    for row in rows.index:
        less = _grid_counts(Column(rows.drop(row)))
        assert np.abs(whole - less).sum() == int(rows.notna()[row])


def test_a_declared_date_without_bounds_keeps_whole_days() -> None:
    made = fit(table().assign(seen=moments(gaps=0.0)), declared(seen="date"))
    days = made.sample(500, random_state=0)["seen"].dropna()
    assert (days == days.dt.normalize()).all()


@pytest.mark.parametrize("dtype", ["str", "object"])
def test_text_and_durations_are_refused_together_at_no_cost(dtype: str) -> None:
    store = MemoryStore()
    text = moments(gaps=0.0).dt.strftime("%d.%m.%Y").astype(dtype)
    frame = table().assign(seen=text, told=text, long=pd.Timedelta(days=1), day=moments())
    with pytest.raises(ValueError, match="'seen' is declared as a date") as caught:
        fit(
            frame,
            declared(seen={"bounds": SPAN}, day={"bounds": SPAN, "missing": True}),
            store=store,
        )
    for words in (
        *("'told' holds dates", "pd.to_datetime"),
        *("'long' holds durations", "durations with .dt.total_seconds()"),
    ):
        assert words in str(caught.value)
    assert "'day'" not in str(caught.value)
    assert store.entries("default") == ()


def test_a_duration_is_refused_with_the_number_that_it_is() -> None:
    frame = table().assign(long=pd.to_timedelta(moments(gaps=0.0).dt.day, unit="D"))
    for schema in (None, declared(long="date")):
        with pytest.raises(ValueError, match=r"'long' \(timedelta64.*total_seconds\(\)") as caught:
            fit(frame, schema)
        assert "pd.to_datetime" not in str(caught.value)
    rows = fit(frame.assign(long=frame["long"].dt.total_seconds())).sample(50, random_state=0)
    assert rows["long"].dtype == np.float64


def test_bounds_are_text_or_dates_and_a_schema_file_keeps_them(tmp_path: Path) -> None:
    same = (
        SPAN,
        [datetime.date(2021, 3, 1), datetime.date(2022, 2, 28)],
        (np.datetime64("2021-03-01"), np.datetime64("2022-02-28")),
    )
    schemas = [Schema.declared({"seen": {"bounds": bounds}}) for bounds in same]
    assert schemas[0] == schemas[1] == schemas[2]
    assert schemas[0].columns[0].date_unit == "day"
    assert schemas[0].to_dict()["columns"][0]["bounds"] == list(SPAN)
    timed = Schema.declared(
        {"seen": {"bounds": (FIRST, "2022-02-28T01:00+01:00")}, "at": "datetime"}
    )
    assert timed.columns[0].date_unit == "second"
    assert timed.columns[0].bounds == (FIRST.timestamp(), LAST.timestamp())
    for schema in (schemas[0], timed):
        schema.save(tmp_path / "schema.json")
        assert Schema.load(tmp_path / "schema.json") == schema


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"bounds": ("2020-01-01", 5)}, "dates have bounds such as"),
        ({"kind": "numeric", "bounds": SPAN}, "do not go with the kind 'numeric'"),
        ({"kind": "date", "bounds": (0, 5)}, "do not go with the kind 'date'"),
        ({"bounds": ("2020-01-01", "soon")}, "must be a number, or a date .* got 'soon'"),
        ({"bounds": SPAN[::-1]}, r"low < high, got \('2022-02-28', '2021-03-01'\)"),
        ("day", "kind of column 'seen'"),
    ],
)
def test_bounds_that_are_no_dates_are_named(said: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schema.declared({"seen": said})


def test_models_do_not_read_dates() -> None:
    with pytest.raises(ValueError, match="'seen' hold dates, which generators of tables read"):
        PublicEncoder(Schema.declared({"seen": {"bounds": SPAN}})).fit(None)


def test_numbers_of_dates_lead_back_to_them() -> None:
    # Clocks of Sao Paulo passed over midnight when summer began; those of Azores show it twice.
    days = pd.to_datetime(["1959-07-05", "2017-10-15", "2017-10-29", "2262-04-10", None])
    for zone in (None, "America/Sao_Paulo", "Atlantic/Azores", "Asia/Tokyo"):
        dates = pd.Series(days, dtype="datetime64[s]").dt.tz_localize(
            zone, nonexistent="shift_forward", ambiguous=np.ones(5, dtype=bool)
        )
        for unit in ("day", "second"):
            again = dates_of(Column(dates).since_1970(unit), unit, str(dates.dtype))
            pd.testing.assert_series_equal(again, dates)
    far = dates_of(np.array([1e7, -1e7, np.nan]), "day", "datetime64[ns, UTC]")
    assert far.dt.year.tolist()[:2] == [2262, 1677]


def test_they_are_measured_and_drawn_in_the_report() -> None:
    frame = table().assign(seen=moments("datetime64[us, UTC]"))
    made = fit(frame, declared(seen={"bounds": SPAN, "missing": True}))
    rows = made.sample(500, random_state=0, balance=())
    found = evaluate(made, rows, frame[:500], train=frame, models=("logistic regression",))
    (own,) = [c for c in found.fidelity.columns if c.name == "seen"]
    assert own.kind == "numeric"
    assert own.score > 0.8
    (view,) = [v for v in column_views(rows, frame, made.codec_.schema) if v.name == "seen"]
    assert all("2021-01" < str(at) < "2022-04" for at in view.at)


@pytest.mark.slow
def test_groups_are_predicted_and_rows_weighted_without_them() -> None:
    frame = table().assign(seen=moments(gaps=0.0))
    half = frame.assign(sex=frame["sex"].where(frame.index % 2 == 0))
    assert "seen" in fit(half, SCHEMA, reference=frame[:500]).codec_.names
    made = ReweightedSynthesizer(random_state=0).fit(frame, **ROLES, reference=frame[:500])
    assert made.sample(10, random_state=0)["seen"].dtype == frame["seen"].dtype


def kinds() -> pd.DataFrame:
    """Return one column of each dtype, with gaps where it can have them."""
    rng = np.random.default_rng(3)
    gone = rng.random(N) < 0.2

    def gaps(values: Any, dtype: str) -> pd.Series[Any]:
        return pd.Series(values).astype(dtype).mask(gone)

    sizes = rng.choice(["small", "middle", "large"], N)
    order = pd.CategoricalDtype(["small", "middle", "large"], ordered=True)
    text = rng.choice(["01", "2", "10"], N)
    return table().assign(
        flag=gaps(rng.random(N) < 0.5, "boolean"),
        count=gaps(rng.integers(0, 9, N), "Int64"),
        small=rng.integers(0, 9, N).astype("int8"),
        half=gaps(rng.normal(size=N), "Float32"),
        single=rng.normal(size=N).astype("float32"),
        kind=pd.Categorical(np.where(gone, None, text)),
        size=pd.Series(sizes).astype(order).mask(gone),
        code=pd.Categorical(rng.choice([30, 4, 100], N)),
        rate=pd.Categorical(rng.choice([0.5, 2.0], N), categories=[2.0, 0.5], ordered=True),
        yes=pd.Categorical(rng.random(N) < 0.5),
        text=gaps(text, "string"),
        python=gaps(text, "string[python]"),
        digits=pd.Series(text).mask(gone),
        thing=pd.Series(text, dtype=object).mask(gone),
        seen=moments(),
    )


def test_every_dtype_comes_back_also_from_a_folder(tmp_path: Path) -> None:
    frame = kinds()
    made = fit(frame)
    rows = made.sample(400, random_state=0)
    for name in frame:
        own, drawn = frame[name], rows[name]
        if not isinstance(own.dtype, pd.CategoricalDtype):
            assert repr(drawn.dtype) == repr(own.dtype), name
            continue
        assert drawn.cat.ordered == own.cat.ordered, name
        assert drawn.cat.categories.dtype == own.cat.categories.dtype, name
        if own.cat.ordered:
            assert drawn.cat.categories.tolist() == own.cat.categories.tolist()
        assert set(drawn.cat.categories) == set(own.cat.categories)
        assert bool(drawn.isna().any()) == bool(own.isna().any()) or name in ("code", "rate", "yes")
    assert (rows["size"].dropna() >= "middle").mean() > 0.4
    assert set(rows["digits"].dropna()) <= {"01", "2", "10", "other"}
    made.save(tmp_path / "generator")
    pd.testing.assert_frame_equal(load(tmp_path / "generator").sample(400, random_state=0), rows)


def test_declared_categories_take_the_order_of_the_dtype_and_what_it_lacks_comes_last() -> None:
    frame = kinds()[[*table().columns, "size", "code"]]
    more = declared(
        size={"categories": ["huge", "large", "small", "middle"], "missing": True},
        code=["4", "30", "100", "none of these"],
    )
    rows = fit(frame, more).sample(50, random_state=0)
    assert rows["size"].cat.categories.tolist() == ["small", "middle", "large", "huge"]
    assert "none of these" in rows["code"].cat.categories  # no number: all of them are text

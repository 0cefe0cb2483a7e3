"""Generators on Parquet: counts of batches are those of memory, bit for bit; clear refusals."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from joblib import parallel_config

from evenhand.datasets import Schema, read_table
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.parquet import ParquetRows
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.registry import generators
from evenhand.generators.tables import marginal
from evenhand.generators.tables.nonprivate import ReweightedSynthesizer
from evenhand.generators.tables.released_schema import DELTA_SHARE
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore

N = 4000
BUDGET = Budget(epsilon=8.0, delta=1e-6)
ROLES: dict[str, Any] = {"label": "loan", "sensitive": ["sex", "race"], "budget": BUDGET}


def people(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Return made rows of every kind of column, with gaps."""
    rng = np.random.default_rng(seed)
    days = pd.to_datetime("1960-01-01") + pd.to_timedelta(rng.integers(0, 15_000, n), unit="D")
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "wage": np.where(rng.random(n) < 0.2, 0.0, rng.lognormal(8, 1, n)),
            "town": rng.choice(["north", "south", None, "rare"], n, p=[0.5, 0.4, 0.0995, 0.0005]),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "grade": pd.array(rng.integers(1, 6, n), dtype="Int64"),
            "born": days.to_series(index=range(n)).where(rng.random(n) > 0.1),
            "member": rng.random(n) < 0.4,
            "sex": rng.choice(["F", "M"], n),
            "race": rng.choice(["A", "B", "C"], n, p=[0.6, 0.399, 0.001]),
        }
    )
    frame.loc[rng.random(n) < 0.1, "wage"] = 3000.0
    frame.loc[rng.random(n) < 0.1, "wage"] = np.nan
    frame.loc[rng.random(n) < 0.1, "grade"] = pd.NA
    return frame.assign(loan=frame["age"] + rng.normal(0, 9, n) > 50)


def write(frame: pd.DataFrame, folder: Path, n_files: int = 3) -> Path:
    """Write the rows to files of several row groups."""
    for i, at in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[at].to_parquet(folder / f"{i}.parquet", row_group_size=450)
    return folder


def fit(rows: Any, noise: int = 1, **given: Any) -> MarginalSynthesizer:
    made = MarginalSynthesizer(noise=SeededNoise(noise), random_state=0)
    return made.fit(rows, **(ROLES | given))


def same(one: MarginalSynthesizer, other: MarginalSynthesizer) -> bool:
    """Whether all that was released, and what is drawn by it, is the same to the last bit."""
    a, b = one._arrays(), other._arrays()
    drawn = [made.sample(200, balance=(), random_state=0) for made in (one, other)]
    return (
        drawn[0].equals(drawn[1])
        and a.keys() == b.keys()
        and all(np.array_equal(a[name], b[name]) for name in a)
        and np.array_equal(one.counts_, other.counts_)
        and one.codec_.to_dict() == other.codec_.to_dict()
        and one.notes_ == other.notes_
    )


PART = Schema.declared(
    {
        "age": {"bounds": (0, 100)},
        "town": {"categories": ["north", "rare", "south"], "missing": True},
    }
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*are left out")
@pytest.mark.parametrize("schema", [None, PART], ids=["all released", "some declared"])
@pytest.mark.parametrize("neighbors", ["add or remove one", "replace one"])
def test_a_stream_releases_what_memory_releases(
    tmp_path: Path, schema: Schema | None, neighbors: str
) -> None:
    """Numbers, text, dates, categories and gaps; of the rare race no row has a condition."""
    frame = people()
    write(frame, tmp_path)

    def made(rows: Any) -> MarginalSynthesizer:
        drawn = MarginalSynthesizer(noise=SeededNoise(1), random_state=0, neighbors=neighbors)
        return drawn.fit(rows, **ROLES, schema=schema)

    memory = made(frame)
    assert memory.codec_["race"].schema.categories == ("A", "B")  # rows of the third are left out
    assert any(note.startswith("single numbers") for note in memory.notes_)  # 0 and 3000
    for how in ({}, {"batch_rows": 173}, {"tasks": 1}):
        assert same(made(ParquetRows(tmp_path, **how)), memory)
    assert not same(fit(frame, noise=2), memory)
    with parallel_config(backend="threading", n_jobs=2):
        assert same(made(ParquetRows(tmp_path, tasks=5)), memory)


@pytest.mark.slow
def test_of_many_rows_a_stream_draws_the_coins_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which records tell of the odds of labels is a hash of their position in all files."""
    monkeypatch.setattr(marginal, "MOST_RECORDS", 900)
    frame = people().drop(columns="race")
    write(frame, tmp_path)
    memory, stream = (fit(rows, sensitive="sex") for rows in (frame, ParquetRows(tmp_path)))
    assert memory.tilt_ is not None
    assert same(stream, memory)


@pytest.mark.slow
def test_a_csv_written_as_parquet_streams_to_the_same(tmp_path: Path) -> None:
    """Gaps of a CSV are empty fields; whole numbers with gaps are floats then, in both."""
    csv = tmp_path / "people.csv"
    people().drop(columns=["born", "race"]).to_csv(csv, index=False)
    frame = read_table(csv)
    (tmp_path / "rows").mkdir()
    write(frame, tmp_path / "rows")
    assert frame["grade"].isna().any()
    roles = {"sensitive": "sex"}
    assert same(fit(ParquetRows(tmp_path / "rows"), **roles), fit(frame, **roles))


@pytest.mark.slow
def test_files_that_no_pandas_wrote_are_read_as_their_table(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(people().drop(columns="race"), preserve_index=False)
    table = table.replace_schema_metadata(None)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    roles = {"sensitive": "sex"}
    made = fit(ParquetRows(tmp_path), **roles)
    assert made.codec_["age"].has_missing  # nothing says that none is missing
    assert same(made, fit(table, **roles))


@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False])
def test_days_as_parquet_stores_them_are_dates(tmp_path: Path, declared: bool) -> None:
    frame = people()
    schema = Schema.declared({"born": "date"}) if declared else None
    stored = pa.Table.from_pandas(
        frame.assign(born=frame["born"].dt.date)
    ).replace_schema_metadata()
    assert pa.types.is_date32(stored.schema.field("born").type)
    for i in range(2):
        pq.write_table(stored.slice(i * N // 2, N // 2), tmp_path / f"{i}.parquet")
    streamed = fit(ParquetRows(tmp_path), schema=schema)
    assert same(streamed, fit(stored, schema=schema))
    read = read_table(tmp_path / "0.parquet")
    assert read["born"].tolist()[:9] == frame["born"].tolist()[:9]
    assert TypedTable(read)["born"].date_unit == "day"
    assert fit(read.sample(frac=0.9), schema=schema).codec_["born"].schema.date_unit == "day"
    born = streamed.sample(400, balance=(), random_state=0)["born"]
    assert born.dtype == "datetime64[s]"
    assert born.isna().any()
    assert (born.dropna() == born.dropna().dt.normalize()).all()
    assert born.dropna().between("1960-01-01", "2004-12-31").all()


def test_what_was_put_in_the_place_of_days_has_a_time_of_day(tmp_path: Path) -> None:
    days = pa.table({"born": pa.array([datetime.date(2000, 1, 2), None], pa.date32())})
    pq.write_table(days, tmp_path / "days.parquet")
    frame = read_table(tmp_path / "days.parquet")
    assert TypedTable.of(days)["born"].date_unit == TypedTable(frame)["born"].date_unit == "day"
    later = frame.assign(born=pd.to_datetime(["2000-01-02T10:00", None]).as_unit("ms"))
    assert TypedTable(later)["born"].date_unit == "second"
    later.to_parquet(tmp_path / "later.parquet")
    assert TypedTable(read_table(tmp_path / "later.parquet"))["born"].date_unit == "second"


@pytest.mark.slow
def test_an_index_and_what_is_dropped_are_not_learnt(tmp_path: Path) -> None:
    frame = people()
    write(frame.assign(person=np.arange(N)).set_index(frame.index * 2), tmp_path)
    made = fit(ParquetRows(tmp_path, drop=["person", "born"]))
    assert made.codec_.names == tuple(frame.columns.drop("born"))
    with pytest.raises(ValueError, match=r"no column 'persn' .drop.* Did you mean 'person'"):
        fit(ParquetRows(tmp_path, drop=["persn"]))


@pytest.mark.slow
def test_ids_are_made_anew_and_postcodes_shortened_batch_by_batch(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    towns = rng.choice(["80331", "80333", "10115"], N)
    frame = people().assign(account=[f"C-{i:05}" for i in range(N)], zip=towns)
    schema = Schema.declared(
        {"account": {"kind": "id", "pattern": "C-#####"}, "zip": {"kind": "postcode", "prefix": 3}}
    )
    write(frame, tmp_path)
    made = fit(ParquetRows(tmp_path), schema=schema)
    assert same(made, fit(frame, schema=schema))
    drawn = made.sample(100, random_state=0)
    assert drawn["account"].iloc[:2].tolist() == ["C-00001", "C-00002"]
    # Noise may let in "other" and a gap beside the two prefixes, and nothing of what follows them.
    assert {"803", "101"} <= set(drawn["zip"].dropna()) <= {"803", "101", "other"}
    refused(
        ParquetRows(tmp_path),
        "'account' is the label or sensitive, so its values cannot be made up",
        schema=schema,
        sensitive="account",
    )


@pytest.mark.slow
def test_a_file_and_a_row_group_without_rows_change_nothing(tmp_path: Path) -> None:
    frame = people()
    write(frame, tmp_path)
    frame.head(0).to_parquet(tmp_path / "00-empty.parquet")
    assert same(fit(ParquetRows(tmp_path)), fit(frame))


@pytest.mark.slow
def test_a_column_that_is_empty_in_the_rows_looked_at_is_learnt(tmp_path: Path) -> None:
    """Inspection looks at some rows; whether there is no value at all, all rows say."""
    n = 450 * 17  # in 17 row groups, of which the sample reads 8, and neither of the last two
    frame = people(n).drop(columns=["born", "race"])
    frame.loc[: n - 450 * 2, "wage"] = np.nan
    frame.to_parquet(tmp_path / "0.parquet", row_group_size=450)
    rows = ParquetRows(tmp_path)
    assert rows.sample(["wage"])["wage"].isna().all()
    assert same(fit(rows, sensitive="sex"), fit(frame, sensitive="sex"))
    frame["wage"] = np.nan
    write(frame, tmp_path)
    with pytest.raises(ValueError, match="'wage' has no value at all"):
        fit(ParquetRows(tmp_path), sensitive="sex")


def spent(store: MemoryStore) -> float:
    """What a fit that released categories has charged."""
    budget = Budget(epsilon=BUDGET.epsilon, delta=BUDGET.delta - BUDGET.delta * DELTA_SHARE)
    return Ledger(budget, neighbors="add or remove one", store=store).spent


def refused(rows: Any, words: str, error: type[Exception] = ValueError, **given: Any) -> None:
    """Expect a refusal that leaves the account as it was."""
    store = MemoryStore()
    made = given.pop("made", MarginalSynthesizer())
    with pytest.raises(error, match=words):
        made.fit(rows, store=store, **(ROLES | given))
    assert spent(store) == 0


def misspelt(frame: pd.DataFrame) -> dict[str, Any]:
    return {"label": "laon"}


def gap(frame: pd.DataFrame) -> dict[str, Any]:
    frame["sex"] = frame["sex"].astype(object)
    frame.loc[3210, "sex"] = None
    return {}


def strange(frame: pd.DataFrame) -> dict[str, Any]:
    frame.loc[3999, "town"] = "west"
    return {"schema": PART}


def numbered(frame: pd.DataFrame) -> dict[str, Any]:
    frame["person"] = [f"p{i}" for i in range(N)]
    return {}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (misspelt, r"no column 'laon', which label= names. Did you mean 'loan'"),
        (gap, r"sensitive column 'sex' is missing in row 3211"),
        (strange, r"'town' .* in row 4000 .*, which is not a category"),
        (numbered, r"'person' looks like an identifier"),
        (lambda frame: {"unit": "age"}, r"unit='age' cannot be read: .*Write one row for each"),
        (lambda frame: {"reference": frame}, "Leave reference out"),
        (lambda frame: {"per_unit": 2}, "per_unit=2 bounds the rows of one unit"),
        (lambda frame: {"keep": ["twon"]}, "Did you mean 'town'"),
    ],
)
def test_what_a_stream_has_not_is_refused_before_anything_is_spent(
    tmp_path: Path, spoil: Callable[[pd.DataFrame], dict[str, Any]], words: str
) -> None:
    frame = people()
    given = spoil(frame)
    refused(ParquetRows(write(frame, tmp_path)), words, **given)


def test_files_whose_columns_differ_are_refused(tmp_path: Path) -> None:
    write(people(), tmp_path)
    people().assign(age=1.5).to_parquet(tmp_path / "1.parquet")
    refused(ParquetRows(tmp_path), r"1.parquet has another column 'age' than the first file")
    # Whole numbers of one Arrow type, of which pandas says in the first file that none is missing.
    gaps = people()
    gaps["age"] = gaps["age"].astype("Int64").mask(gaps.index == 9)
    gaps.to_parquet(tmp_path / "1.parquet")
    refused(ParquetRows(tmp_path), r"'age' has no value in some rows.* first file, int64")


def test_generators_that_need_rows_name_those_that_do_not(tmp_path: Path) -> None:
    rows = ParquetRows(write(people(), tmp_path))
    others = {**generators("tables", offered=True)}
    del others["marginal"]
    for kind in others.values():
        words = f"{kind.__name__} learns from rows in memory.*read a stream: MarginalSynthesizer"
        refused(rows, words, TypeError, made=kind())
    with pytest.raises(TypeError, match="ReweightedSynthesizer learns from rows in memory"):
        ReweightedSynthesizer().fit(rows, label="loan", sensitive="sex", reference=people())


@pytest.mark.parametrize("when", ["before", "between"])
def test_files_that_change_between_passes_are_refused(tmp_path: Path, when: str) -> None:
    """The same rows written again count: what was read may have been something else."""
    file = write(people(), tmp_path) / "1.parquet"
    rows = ParquetRows(tmp_path)
    assert len(rows) == N

    def touch(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("counts", 1):
            os.utime(file, ns=(1, 1))

    if when == "before":
        os.utime(file, ns=(1, 1))
        refused(rows, "1.parquet changed since it was first read")
        return
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"1.parquet changed .*stays charged"):
        MarginalSynthesizer().fit(rows, **ROLES, store=store, progress=touch)
    assert spent(store) > 0  # two stages were released, and stay so

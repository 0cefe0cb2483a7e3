"""Columns made anew: nothing of them is learnt, nothing is paid, and drawn rows have new values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from marks import FAINT

from evenhand.datasets import PublicEncoder, Schema
from evenhand.estimators import FairSharesClassifier
from evenhand.generators import MarginalSynthesizer, evaluate, load
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.report.columns import column_views
from evenhand.testing.generators import ROLES, SCHEMA, table

pytestmark = FAINT
N = len(table())
MADE = {"id": {"kind": "id", "pattern": "C-#####"}, "mail": "email", "phone": "phone"}


def declared(**columns: Any) -> Schema:
    return Schema(columns=(*SCHEMA.columns, *Schema.declared(columns).columns))


def fit(frame: pd.DataFrame, schema: Schema | None = None, **more: Any) -> MarginalSynthesizer:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, pairs=False)
    asked = {**ROLES, "budget": Budget(epsilon=6.0, delta=1e-6), **more}
    return made.fit(frame, schema=schema, **asked)


def people(seed: int = 1) -> pd.DataFrame:
    """Return rows with ids first, phone numbers last and e-mails among the others."""
    numbers = np.random.default_rng(seed).permutation(N)
    frame = table()
    frame.insert(0, "id", [f"CANARY-{i}" for i in numbers])
    frame.insert(3, "mail", [None if i % 10 == 0 else f"canary{i}@firm.com" for i in numbers])
    return frame.assign(phone=4_900_000_000_000 + numbers)


def test_no_private_id_is_drawn_and_new_ones_are_different_and_where_the_old_were() -> None:
    frame = people()
    made = fit(frame, declared(**MADE))
    rows = made.sample(3000, random_state=0)
    assert list(rows.columns) == list(frame.columns)
    assert rows.dtypes.equals(frame.dtypes)
    for name in MADE:
        assert rows[name].is_unique
        assert not set(rows[name]) & set(frame[name])
    assert rows["id"].iloc[[0, -1]].tolist() == ["C-00001", "C-03000"]
    assert rows["mail"].str.fullmatch(r"person\d+@example\.org").all()
    assert rows["phone"].between(999 * 10**10, 10**13 - 1).all()
    assert "canary" not in rows.to_csv().lower()


def test_nothing_of_the_columns_is_learnt_and_nothing_is_paid() -> None:
    schema, one = declared(**MADE), fit(people(), declared(**MADE))
    other = people(seed=2).assign(mail="me@home.net", phone=7)
    rows = one.sample(500, random_state=3)
    assert rows.equals(fit(other, schema).sample(500, random_state=3))
    without = fit(people().drop(columns=list(MADE)), SCHEMA)
    assert rows.drop(columns=list(MADE)).equals(without.sample(500, random_state=3))
    assert [e.mu_squared for e in one.ledger_.entries] == [
        e.mu_squared for e in without.ledger_.entries
    ]
    assert "columns made up and not learnt ('id', 'mail', 'phone')" in one.guarantee_.public
    assert not any("made up" in words for words in without.guarantee_.public)


def test_tables_of_other_libraries_have_columns_made_anew_too() -> None:
    frame = people()
    made = fit(pl.from_pandas(frame.assign(sex=frame["sex"].astype(str))), declared(**MADE))
    assert made.sample(4, random_state=0)["id"].tolist() == [f"C-0000{i}" for i in range(1, 5)]


def test_values_that_no_generator_could_read_do_not_matter() -> None:
    frame = table().assign(id=[[i] for i in range(N)], empty=None)
    rows = fit(frame, declared(id="id", empty={"kind": "id", "pattern": "??"})).sample(3)
    assert rows["id"].tolist() == ["1", "2", "3"]
    assert rows["empty"].tolist() == ["AB", "AC", "AD"]


@pytest.mark.parametrize(
    "dtype", ["int64", "int32", "Int64", "UInt16", "float64", "str", "object", "string[python]"]
)
def test_ids_come_back_with_their_dtype_and_without_gaps(dtype: str) -> None:
    ids = pd.Series(np.arange(N) + 50_000).astype("Int64")
    if dtype not in ("int64", "int32", "UInt16"):
        ids[::7] = pd.NA
    if dtype in ("str", "object"):
        ids = ids.astype(object).where(ids.notna(), None).map(str, na_action="ignore")
    frame = table().assign(id=ids.to_numpy() if dtype == "object" else ids.astype(dtype))
    rows = fit(frame, declared(id="id")).sample(200, random_state=0)
    assert repr(rows["id"].dtype) == repr(frame["id"].dtype)
    assert [int(float(value)) for value in rows["id"]] == list(range(1, 201))


def test_too_short_a_pattern_is_refused_and_its_last_row_is_not() -> None:
    made = fit(people(), declared(**{**MADE, "id": {"kind": "id", "pattern": "K##"}}))
    assert made.sample(100)["id"].nunique() == 100
    with pytest.raises(ValueError, match=r"'K##' of column 'id' makes 100 .* 101 rows"):
        made.sample(101)
    # What measures draws more rows than that, and has no use for ids.
    test = people(seed=5)
    found = evaluate(made, made.sample(100), test, models=("logistic regression",))
    assert [c.name for c in found.fidelity.columns] == list(table().columns)
    views = column_views(made.sample_learnt(4000, random_state=0), test, made.codec_.schema)
    assert [view.name for view in views] == list(table().columns)


def test_all_that_is_wrong_with_the_declarations_is_said_before_anything_is_spent() -> None:
    store, day = MemoryStore(), pd.Timestamp("2020-01-01")
    frame = people().assign(small=np.int8(3), day=day, half=np.float32(1))
    said = {
        **MADE,
        "small": {"kind": "id", "pattern": "###"},
        "phone": "email",
        "day": "id",
        "half": {"kind": "id", "pattern": "#" * 8},
    }
    with pytest.raises(ValueError, match="'small' is made anew") as error:
        fit(frame, declared(**said), store=store)
    assert "up to 999, and int8 ends at 127" in str(error.value)
    assert "up to 99999999, and float32 ends at 16777216" in str(error.value)
    assert "the pattern 'person*@example.org' makes no numbers" in str(error.value)
    assert "its dtype is datetime64" in str(error.value)
    schema = Schema.declared({"rich": "id", "sex": {"prefix": 1, "pattern": "#"}})
    with pytest.raises(ValueError, match=r"'rich' is the label or sensitive.*'sex' is the label"):
        fit(frame, schema, store=store)
    with pytest.raises(ValueError, match=r"no column 'maill'.*Did you mean 'mail'\?"):
        fit(frame, declared(maill="email"), store=store)
    assert store.entries("default") == ()


def test_a_saved_generator_makes_the_same_and_nothing_can_be_asked_of_made_columns(
    tmp_path: Path,
) -> None:
    made = fit(people(), declared(**MADE))
    made.save(tmp_path / "made")
    again = load(tmp_path / "made")
    assert again.sample(9, random_state=1).equals(made.sample(9, random_state=1))
    assert again.codec_.schema == made.codec_.schema
    asked = pd.DataFrame(
        # Nobody old is a clerk: of a clerk whose age is not asked for, noise alone may decide.
        {"job": ["chef", "clerk", "chef"], "sex": ["F", "M", "F"], "old": [True, False, False]},
        index=[7, 5, 9],
    )
    rows = again.sample(conditions=asked, random_state=0)
    assert rows["id"].tolist() == ["C-00001", "C-00002", "C-00003"]
    assert rows[list(asked)].astype(str).equals(asked.astype(str))
    with pytest.raises(ValueError, match="'id' of this generator is made anew"):
        made.sample(3, conditions={"id": "C-00001"})


def test_whose_record_a_row_is_can_be_made_anew_too() -> None:
    frame = people().assign(person=[f"p{i // 2}" for i in range(N)])
    made = fit(frame, declared(**MADE, person={"kind": "id", "pattern": "P*"}), unit="person")
    rows = made.sample(5)
    assert list(rows.columns) == list(frame.columns)
    assert rows["person"].tolist() == ["P1", "P2", "P3", "P4", "P5"]
    assert made.guarantee_.unit == "person"
    # Of each person one row was read.
    assert abs(made.counts_.sum() - N / 2) < 20 * made.counts_sigma_


def test_groups_are_not_predicted_from_what_is_made_anew() -> None:
    frame, public = people(), people(seed=4)
    frame["sex"] = frame["sex"].where(frame.index % 2 == 0)
    rows = fit(frame, declared(**MADE), reference=public).sample(400, random_state=0)
    less, known = (of.drop(columns=list(MADE)) for of in (frame, public))
    without = fit(less, SCHEMA, reference=known).sample(400, random_state=0)
    assert rows.drop(columns=list(MADE)).equals(without)


# --- postcodes ----------------------------------------------------------------------------------


def codes(endings: str = "CANARY") -> pd.Series[Any]:
    """Return postcodes of three regions, 60, 30 and 10 % of the rows, some missing."""
    at = np.random.default_rng(3).choice(["101", "202", "0303"], N, p=[0.6, 0.3, 0.1])
    return pd.Series(at + endings).where(np.arange(N) % 10 > 0)


@pytest.mark.parametrize("categories", [[], ["030", "101", "202"]])
def test_of_a_postcode_the_prefix_alone_is_learnt(categories: list[str]) -> None:
    said = {"kind": "postcode", "prefix": 3, "categories": categories, "missing": True}
    frame, schema = table().assign(code=codes()), declared(code=said)
    made = fit(frame, schema)
    rows = made.sample(4000, random_state=0, balance=())
    assert rows["code"].dtype == frame["code"].dtype
    assert set(rows["code"].dropna()) <= {"101", "202", "030", "other"}
    true = frame["code"].str[:3].value_counts(normalize=True)
    # 4,000 draws and noise of a few records: five deviations of a share of .6 are .04.
    drawn = rows["code"].value_counts(normalize=True).reindex(true.index)
    assert (drawn - true).abs().max() < 0.05
    assert abs(rows["code"].isna().mean() - 0.1) < 0.03
    same = fit(frame.assign(code=codes("x")), schema).sample(4000, random_state=0, balance=())
    assert rows.equals(same)
    chosen = made.sample(20, conditions={"code": "030"}, random_state=0)
    assert set(chosen["code"]) == {"030"}
    found = evaluate(made, rows, frame, models=("logistic regression",))
    (score,) = [c.score for c in found.fidelity.columns if c.name == "code"]
    assert score > 0.95  # real codes are compared by their prefix


def test_the_rest_of_a_postcode_is_made_up_where_a_pattern_says_how(tmp_path: Path) -> None:
    said = {"kind": "postcode", "prefix": 2, "pattern": "# ?", "missing": True}
    made = fit(table().assign(code=codes()), declared(code=said))
    made.save(tmp_path / "made")
    rows = load(tmp_path / "made").sample(2000, random_state=0)
    there = rows["code"].dropna()
    assert there[there != "other"].str.fullmatch(r"(10|20|03)\d [A-Z]").all()
    assert there.nunique() > 500


def test_numbers_have_lost_the_zeros_of_a_postcode_and_a_file_gives_them_as_text() -> None:
    schema = declared(code={"kind": "postcode", "prefix": 3}, id="id")
    frame = table().assign(code=10115.0, id=7.0)
    frame.loc[3, ["code", "id"]] = np.nan
    with pytest.raises(ValueError, match=r"'code' .* by its prefix, and its dtype is float64"):
        fit(frame, schema)
    read = schema.parse(frame)
    assert read["code"].isna().tolist() == (read.index == 3).tolist()
    assert read["code"][2] == "10115"
    assert set(fit(read, schema).sample(50)["code"].dropna()) <= {"101", "other"}
    assert fit(read, schema).sample(2)["id"].tolist() == ["1", "2"]


# --- what is not declared -----------------------------------------------------------------------


def test_ids_mails_and_phones_that_nobody_declared_are_named_at_once_with_the_lines() -> None:
    frame = people().assign(phone=[f"030 {1_000_000 + 7 * i}" for i in range(N)])
    store = MemoryStore()
    with pytest.raises(ValueError, match="'id' looks like an identifier") as error:
        fit(frame, SCHEMA, store=store)
    said = str(error.value)
    assert "column 'mail' holds e-mail addresses" in said
    assert "column 'phone' holds phone numbers" in said
    for name, kind in (("id", "id"), ("mail", "email"), ("phone", "phone")):
        line = f'{{"name": "{name}", "kind": "{kind}"}}'
        assert line in said
    assert "--drop id --drop mail --drop phone" in said
    assert "canary" not in said.lower()
    assert store.spent("default") == 0
    assert len(fit(frame, declared(id="id", mail="email", phone="phone")).sample(4)) == 4


def test_models_refuse_what_they_cannot_learn_before_anything_is_spent() -> None:
    schema = Schema.declared({"hours": {"bounds": (0, 80)}, "id": "id", "zip": {"prefix": 2}})
    with pytest.raises(ValueError, match="'id', 'zip' are made anew or learnt by a prefix"):
        PublicEncoder(schema).fit(None)
    X = table()[["hours"]].assign(id="x", zip="10115")
    model = FairSharesClassifier(
        budget=Budget(epsilon=2.0, delta=1e-6), schema=schema, public="synthetic"
    )
    with pytest.raises(ValueError, match="which only generators of tables do"):
        model.fit(X, table()["rich"], sensitive_features=table()["sex"])

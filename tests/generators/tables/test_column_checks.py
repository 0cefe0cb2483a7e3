"""A fit that fails before noise is drawn spends nothing; what is wrong is named together."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from children import in_child
from marks import FAINT

from evenhand.datasets import Schema
from evenhand.generators import (
    DPWGANSynthesizer,
    FFPDGSynthesizer,
    MarginalSynthesizer,
    MeanEmbeddingSynthesizer,
    PATEGANSynthesizer,
    RONGaussSynthesizer,
)
from evenhand.generators.tables.label_tilt import TILT
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, BudgetExceeded, DatabaseStore, SeededNoise
from evenhand.privacy.ledger_store import UNITS_PER_ONE, MemoryStore
from evenhand.testing.generators import ROLES, SCHEMA, table

pytestmark = FAINT
BUDGET = Budget(epsilon=4.0, delta=1e-6)


def spent(store: MemoryStore) -> float:
    """Return what stands in the account."""
    return float(store.spent("default"))


def fit(
    made: TableSynthesizer | None = None, frame: pd.DataFrame | None = None, **more: Any
) -> TableSynthesizer:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0) if made is None else made
    return made.fit(table() if frame is None else frame, **{**ROLES, "budget": BUDGET, **more})


WRONG_SETTINGS: list[tuple[type[TableSynthesizer], str, Any]] = [
    (MarginalSynthesizer, "n_bins", 1),
    (MarginalSynthesizer, "neighbors", "some"),
    *((MeanEmbeddingSynthesizer, name, 0) for name in ("n_frequencies", "n_parts", "n_steps")),
    (RONGaussSynthesizer, "n_dimensions", 0),
    (FFPDGSynthesizer, "repair", 1.5),
    *(
        (PATEGANSynthesizer, name, 0)
        for name in ("n_teachers", "n_rounds", "batch_size", "teacher_steps", "student_steps")
    ),
    (PATEGANSynthesizer, "condition", "group"),
    (PATEGANSynthesizer, "start", 1.0),
    (PATEGANSynthesizer, "hidden", (0,)),
    (PATEGANSynthesizer, "student_hidden", (-1,)),
    *((PATEGANSynthesizer, name, 0.0) for name in ("learning_rate", "generator_rate")),
    (DPWGANSynthesizer, "clip", "none"),
    *((DPWGANSynthesizer, name, 0) for name in ("n_steps", "batch_size", "width")),
    *((DPWGANSynthesizer, name, 0.0) for name in ("clip_norm", "learning_rate", "largest_weight")),
    (DPWGANSynthesizer, "generator_hidden", (0,)),
]


@pytest.mark.parametrize(
    ("method", "name", "value"),
    WRONG_SETTINGS,
    ids=[f"{m.method}-{n}" for m, n, _ in WRONG_SETTINGS],
)
def test_a_wrong_setting_is_found_before_anything_is_charged(
    method: type[TableSynthesizer], name: str, value: Any
) -> None:
    if method in (PATEGANSynthesizer, DPWGANSynthesizer):
        pytest.importorskip("torch")
    store = MemoryStore()
    with pytest.raises((ValueError, TypeError), match=name):
        fit(method(**{name: value, "noise": SeededNoise(0)}), store=store)
    assert spent(store) == 0


def columns() -> pd.DataFrame:
    """Return the table with a column of each kind that stops a fit."""
    frame, n = table(), len(table())
    rng = np.random.default_rng(0)
    return frame.assign(
        home=[f"0{code}" for code in rng.integers(1000, 1400, n)],
        person=[f"p{i}" for i in range(n)],
        row=range(n),
        born=rng.choice(["1.2.1970", "3.4.1980"], n),
        seen=pd.Timedelta(days=1),
        wage=rng.choice(["1,5", "2,5"], n),
        age=rng.integers(18, 90, n).astype(str),
        gone=None,
    )


def test_ids_postcodes_dates_empty_columns_and_numbers_as_text_are_named_all_at_once() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="learnt wrong") as caught:
        fit(frame=columns(), store=store)
    odd = ["home", "person", "row", "born", "seen", "wage", "age", "gone"]
    for name in odd:
        assert f"column {name!r}" in str(caught.value).replace("Column", "column")
    assert f"drop(columns={odd})" in str(caught.value)
    assert not any(value in str(caught.value) for value in ("p0", "1970", "1,5", "4000"))
    assert spent(store) == 0
    fit(frame=columns().drop(columns=odd))


def test_postcodes_are_named_with_the_line_that_drops_them_and_cost_nothing() -> None:
    rng = np.random.default_rng(0)
    codes = [f"0{code}" for code in rng.integers(1000, 1400, 4000)]
    frame = table().assign(home=codes, work=codes[::-1])
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"'home' has no category.*'work' has no") as caught:
        fit(frame=frame, store=store)
    assert "--drop home --drop work" in str(caught.value)
    assert spent(store) == 0
    with pytest.warns(UserWarning, match="'home' stands out of the noise: all are 'other'"):
        made = fit(frame=frame.drop(columns="work"), keep=["home"], store=store)
    assert set(made.sample(200, random_state=0)["home"].dropna()) == {"other"}


def test_a_prefix_too_long_for_few_records_is_refused_with_a_shorter_one() -> None:
    frame = table().assign(home=[f"{i % 10}{i // 10 % 100:02d}" for i in range(4000)])
    long, short = ({"home": {"kind": "postcode", "prefix": n}} for n in (3, 1))
    with pytest.raises(ValueError, match=r"'home' has no category .* records: try \"prefix\": 2"):
        fit(frame=frame, schema=Schema.declared(long))
    assert "'home' with 10 categories" in str(
        fit(frame=frame, schema=Schema.declared(short)).notes_
    )


@pytest.mark.slow
def test_how_an_undeclared_postcode_is_learnt_is_said_by_its_name_and_dtype_alone() -> None:
    rng = np.random.default_rng(0)
    frame = table().assign(plz=rng.integers(10_000, 99_999, 4000), zip=rng.choice(["A1", "B2"]))

    def said(rows: pd.DataFrame, **more: Any) -> list[str]:
        return [note for note in fit(frame=rows, **more).notes_ if "named as postcodes" in note]

    numbers, texts = said(frame)
    line = '{"name": "plz", "kind": "postcode", "prefix": 2, "pattern": "###"}'
    assert numbers.startswith("'plz' is named as postcodes are, and was learnt as amounts")
    assert texts.startswith("'zip' is named as postcodes are, and was learnt as categories")
    assert numbers.endswith(line)
    # Whatever the rows hold: it is published, and a private value must not decide it.
    assert said(frame.assign(plz=10_115)) == [numbers, texts]
    assert not said(frame, keep=["plz", "zip"])
    assert not said(frame.rename(columns={"plz": "height", "zip": "zipper"}))
    shown = json.loads(line)
    schema = Schema.from_dict({"columns": [shown, {**shown, "name": "zip", "prefix": 1}]})
    frame["plz"] = rng.choice(["10", "20"], 4000) + frame["plz"].astype(str).str[2:]
    assert not said(frame, schema=schema)


def test_a_label_that_cannot_be_named_is_not_to_be_dropped() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"^Column 'rich' has no category") as caught:
        fit(
            frame=table(60).drop(columns=["job", "sex"]),
            budget=Budget(epsilon=0.5, delta=1e-6),
            store=store,
            sensitive="old",
        )
    assert "drop" not in str(caught.value)
    assert spent(store) == 0


def test_numbers_stored_as_text_are_refused_declared_or_kept_but_never_other_in_silence() -> None:
    frame = table()
    frame["hours"] = frame["hours"].astype(str)
    with pytest.raises(ValueError, match=r"'hours' holds numbers stored as text.*keep=\['hours'\]"):
        fit(frame=frame)
    objects = table()
    objects["hours"] = objects["hours"].astype(object)
    with pytest.raises(ValueError, match=r"'hours' holds numbers as Python objects"):
        fit(frame=objects)
    declared = fit(frame=frame, schema=SCHEMA).sample(300, random_state=0)
    assert pd.to_numeric(declared["hours"]).between(0, 80).all()
    kept = fit(frame=frame, keep=["hours"]).sample(300, random_state=0)
    assert set(kept["hours"].dropna()) <= {*map(str, range(81)), "other"}


def test_what_the_schema_does_not_allow_is_found_before_the_rest_is_released() -> None:
    half = Schema(columns=tuple(c for c in SCHEMA.columns if c.name != "gain"))
    frame = table()
    frame.loc[3, "job"] = "king"
    store = MemoryStore()
    with pytest.raises(ValueError, match="'job'"):
        fit(frame=frame, schema=half, store=store)
    assert spent(store) == 0


def test_a_dtype_that_cannot_be_drawn_is_found_first() -> None:
    store = MemoryStore()
    frame = table()
    frame["gain"] = frame["gain"].astype("double[pyarrow]")
    frame["hours"] = frame["hours"].astype("int64[pyarrow]")
    with pytest.raises(ValueError, match=r"dtype of 'hours', 'gain' \(int64\[pyarrow\], double"):
        fit(frame=frame, store=store)
    assert spent(store) == 0


def test_kinds_dtypes_and_values_that_no_column_may_have_are_named_in_one_error() -> None:
    store = MemoryStore()
    frame = table().assign(person=[f"p{i}" for i in range(len(table()))], gone=None)
    frame["gain"] = frame["gain"].astype("double[pyarrow]")
    frame.loc[3, "job"] = "king"
    frame.loc[[5, 6], "rich"] = "maybe"
    half = Schema(columns=tuple(c for c in SCHEMA.columns if c.name in ("job", "rich")))
    with pytest.raises(ValueError, match="learnt wrong") as caught:
        fit(frame=frame, schema=half, keep=["gone"], store=store)
    said = str(caught.value)
    for words in (
        "olumn 'person' looks like an identifier",
        "column 'gone' has no value at all",
        "the dtype of 'gain' (double[pyarrow])",
        "Column 'job' of the private table holds",
        "Column 'rich' of the private table holds",
    ):
        assert words in said
    assert "king" not in said
    assert "maybe" not in said
    assert spent(store) == 0


def test_every_role_with_a_gap_is_named_at_once() -> None:
    frame = table().astype({"rich": object, "sex": object})
    frame.loc[2, "rich"], frame.loc[4, "sex"] = None, None
    with pytest.raises(ValueError, match=r"label column 'rich' is .*column 'sex' is missing"):
        fit(frame=frame)


def test_half_a_plan_is_not_begun() -> None:
    store = MemoryStore()
    fit(schema=SCHEMA, store=store)
    before = spent(store)
    assert before > 0
    with pytest.raises(BudgetExceeded, match=r"has epsilon=0.000 left .* Nothing was charged"):
        fit(schema=SCHEMA, store=store)
    assert spent(store) == before


def test_an_account_that_holds_a_part_of_the_plan_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A fit that crashed after its first release: that one stays charged, and the next fit, for
    # which the rest would do until its last release, takes nothing more.
    store = MemoryStore()

    def crash(self: object, *given: object) -> None:
        raise RuntimeError("the machine went down")

    with monkeypatch.context() as patch:
        patch.setattr(MarginalSynthesizer, "_learn", crash)
        with pytest.raises(RuntimeError, match="went down"):
            fit(store=store)
    charged = spent(store)
    assert charged > 0
    with pytest.raises(BudgetExceeded):
        fit(store=store)
    assert spent(store) == charged


def test_of_two_processes_that_share_an_account_one_is_refused_before_it_draws(
    tmp_path: Path,
) -> None:
    # The second fit starts when the first has passed its checks, and has drawn nothing yet.
    path = tmp_path / "accounts.db"
    said: list[int] = []

    def other() -> None:
        with pytest.raises(BudgetExceeded, match=r"has epsilon=0.000 left"):
            fit(schema=SCHEMA, store=DatabaseStore(path))

    def progress(stage: str, done: int, total: int) -> None:
        if not said:
            said.append(os.waitstatus_to_exitcode(os.waitpid(in_child(other), 0)[1]))

    store = DatabaseStore(path)
    made = fit(schema=SCHEMA, store=store, progress=progress)
    assert said == [0]
    assert made.ledger_.spent == pytest.approx(BUDGET.mu_squared)
    entries = store.entries("default")
    assert all(entry.settled for entry in entries)
    assert {e.n_uses for e in entries if e.purpose != TILT} == {1}
    assert [e.purpose for e in entries] == [e.purpose for e in made.ledger_.entries]
    assert sum(e.mu_squared for e in entries) == pytest.approx(BUDGET.mu_squared)


def test_a_fit_that_ends_before_its_first_draw_gives_back_what_was_set_aside() -> None:
    store = MemoryStore()

    def stop(stage: str, done: int, total: int) -> None:
        assert spent(store) == pytest.approx(BUDGET.mu_squared * UNITS_PER_ONE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(schema=SCHEMA, store=store, progress=stop)
    assert spent(store) == 0
    fit(schema=SCHEMA, store=store)


def test_a_boolean_column_with_gaps_is_learnt_and_comes_back_as_it_was() -> None:
    rng = np.random.default_rng(0)
    draws = rng.choice([True, False, None], 4000, p=[0.5, 0.2, 0.3])
    frame = table().assign(member=pd.array(draws, dtype="boolean"))
    declared = Schema(
        columns=(
            *SCHEMA.columns,
            *Schema.declared({"member": {"categories": [False, True], "missing": True}}).columns,
        )
    )
    for schema in (None, declared):
        rows = fit(frame=frame, schema=schema).sample(20_000, balance=(), random_state=0)
        assert rows["member"].dtype == "boolean"
        # 4,000 rows: the noise of a rate is below .02, that of the draws .003.
        assert abs(rows["member"].isna().mean() - 0.3) < 0.05
        assert abs(rows["member"].dropna().mean() - 5 / 7) < 0.05


def rare(n_rare: int, n: int = 6000) -> pd.DataFrame:
    frame = table(n)
    frame["sex"] = frame["sex"].astype(object)
    frame.loc[: n_rare - 1, "sex"] = "X"
    return frame


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:categories of 'sex' below")
def test_a_group_that_is_not_named_is_told_by_a_noisy_number_of_records() -> None:
    # What is told is the number of records left out plus noise of the deviation that is told: of
    # 20 fits one is off by 4.5 deviations with a probability of 1.4e-4. Without the 65 records it
    # would be off by 65, and the sum of 20 fits would show it: 65 is two deviations here.
    errors = []
    for seed in range(20):
        made = fit(
            MarginalSynthesizer(pairs=False, noise=SeededNoise(seed), random_state=0),
            rare(65),
            budget=Budget(epsilon=3.0, delta=1e-6),
        )
        if "X" in made.conditions_.categories[1]:
            continue  # by the noise it was named
        said = [w for w in made.notes_ if "categories of 'sex' below" in w]
        if not said:
            continue  # by the noise there are none
        (words,) = said
        about, most = map(int, re.findall(r"about (\d+) of them, at most (\d+)", words)[0])
        if about:  # a negative estimate is told as 0
            errors.append((about - 65) / ((most - about) / 2))
    assert len(errors) >= 5
    assert max(map(abs, errors)) < 4.5
    assert abs(np.mean(errors)) < 4.5 / len(errors) ** 0.5


def test_many_records_that_are_left_out_warn_and_none_does_not() -> None:
    # Ten groups of 60 records, far below the threshold of about 120 each; together they are twelve
    # deviations above the noise.
    frame = rare(600)
    frame.loc[:599, "sex"] = [f"X{i % 10}" for i in range(600)]
    with pytest.warns(UserWarning, match="categories of 'sex' below about"):
        made = fit(frame=frame, budget=Budget(epsilon=2.0, delta=1e-6))
    assert made.conditions_.categories[1] == ("F", "M")
    assert "if there are any" not in " ".join(made.warnings_)
    plenty = fit(frame=table(20_000), budget=Budget(epsilon=8.0, delta=1e-6))
    assert not [words for words in plenty.notes_ if "left out" in words]


def test_what_the_noise_may_hide_is_a_note_and_no_warning() -> None:
    # No record is left out. Their number has noise of 66 records: with both columns of label and
    # group it is below the 2.5 deviations of a warning with a probability of .988.
    made = fit(
        MarginalSynthesizer(pairs=False, noise=SeededNoise(0), random_state=0),
        frame=table(6000),
        budget=Budget(epsilon=1.0, delta=1e-6),
    )
    said = [words for words in made.notes_ if "are left out, if there are any" in words]
    assert said
    assert not set(said) & set(made.warnings_)


@pytest.mark.parametrize(
    ("dtype", "bounds", "held"),
    [
        ("uint8", (0, 256), "0 to 255"),
        ("Int8", (-129, 9), "-128 to 127"),
        ("float16", (0, 1e6), ""),
    ],
)
def test_declared_bounds_beyond_the_dtype_are_refused_before_anything_is_charged(
    dtype: str, bounds: tuple[float, float], held: str
) -> None:
    store = MemoryStore()
    frame = table()
    frame["a"] = pd.array(np.random.default_rng(0).integers(0, 5, len(frame)), dtype=dtype)
    with pytest.raises(ValueError, match=f"column 'a' from .*{dtype} holds numbers.*{held}"):
        fit(frame=frame, schema=Schema.declared({"a": {"bounds": bounds}}), store=store)
    assert spent(store) == 0


@pytest.mark.parametrize(
    ("dtype", "categories", "wrong", "held"),
    [
        ("int64", ["0", "1", "unknown"], "'unknown'", "whole numbers from"),
        ("float64", ["0", "1", "other"], "'other'", " numbers from"),
        ("int8", ["0", "1", "300"], "'300'", "whole numbers from -128 to 127"),
        ("Int64", ["0", "1", "2.5"], "'2.5'", "whole numbers from"),
        ("boolean", ["True", "False", "unknown"], "'unknown'", "'True' and 'False' alone"),
    ],
)
def test_declared_categories_that_the_dtype_cannot_hold_are_refused_and_cost_nothing(
    dtype: str, categories: list[str], wrong: str, held: str
) -> None:
    store, frame = MemoryStore(), table()
    frame["c"] = pd.array(np.random.default_rng(0).integers(0, 2, len(frame)), dtype=dtype)
    words = f"the categories {wrong} of column 'c', .* {dtype} cannot hold .*{held}"
    with pytest.raises(ValueError, match=words):
        fit(frame=frame, schema=Schema.declared({"c": categories}), store=store)
    assert spent(store) == 0
    made = fit(frame=frame, schema=Schema.declared({"c": categories[:2]}))
    drawn = made.sample(200, random_state=0)["c"]
    assert drawn.dtype == frame["c"].dtype
    assert set(drawn) == set(frame["c"])


def test_whole_numbers_beyond_floats_are_drawn_as_they_are() -> None:
    frame, codes = table(), [2**60 + 1, 2**60 + 2]
    frame["c"] = np.random.default_rng(0).choice(codes, len(frame))
    made = fit(frame=frame, schema=Schema.declared({"c": codes}))
    assert set(made.sample(200, random_state=0)["c"]) == set(codes)


def test_a_category_dtype_of_booleans_may_have_a_category_more() -> None:
    frame = table()
    frame["c"] = pd.Categorical(np.random.default_rng(0).random(len(frame)) < 0.5)
    made = fit(frame=frame, schema=Schema.declared({"c": ["True", "False", "unknown"]}))
    assert {"True", "False"} <= set(made.sample(200, random_state=0)["c"])


def test_infinite_numbers_are_refused_unless_bounds_are_declared() -> None:
    store, frame, rng = MemoryStore(), table(), np.random.default_rng(0)
    numbers = rng.normal(size=len(frame))
    frame["a"] = np.where(rng.random(len(frame)) < 0.05, np.inf, numbers)
    frame["b"] = pd.array(np.where(numbers < -1.5, -np.inf, numbers), dtype="Float64")
    words = "'a' .*holds infinite numbers.*'b' .*holds infinite numbers"
    for keep in ((), ("a", "b")):
        with pytest.raises(ValueError, match=words):
            fit(frame=frame, store=store, keep=keep)
    assert spent(store) == 0
    declared = Schema.declared({"a": {"bounds": (-3, 3)}, "b": {"bounds": (-3, 3)}})
    drawn = fit(frame=frame, schema=declared).sample(500, random_state=0)
    assert drawn[["a", "b"]].abs().max().max() <= 3

"""A typed table reads each column once, whoever asks first."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand._numerals import natural_order, text_of
from evenhand.datasets import PublicEncoder, Schema, inspect
from evenhand.datasets.cells import CellColumn
from evenhand.datasets.columns import Column, TypedTable
from evenhand.generators import MarginalSynthesizer
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import ROLES, SCHEMA, table


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each column was converted, by name."""
    seen: Counter[str] = Counter()
    for kind in ("_coded", "numbers"):
        whole = Column.__dict__[kind]

        def counted(self: Column, read: Any = whole.func) -> Any:
            seen[self.name] += 1
            return read(self)

        monkeypatch.setattr(whole, "func", counted)
    return seen


def test_schema_inspection_encoder_and_check_convert_a_column_once(
    conversions: Counter[str],
) -> None:
    frame = table(300)
    typed = TypedTable.of(frame)
    read = inspect(typed, label="rich", sensitive="sex", public=typed).schema
    assert read is not None
    schema = Schema.of_public(typed)
    schema.check(typed)
    encoder = PublicEncoder(schema).fit(typed)
    encoded = encoder.transform(typed)
    assert set(conversions) == set(frame)
    assert set(conversions.values()) == {1}
    assert np.array_equal(encoded, PublicEncoder().fit(frame).transform(frame))


@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["declared", "released"])
@pytest.mark.filterwarnings("ignore:.*cannot be told from empty ones")
def test_a_generator_converts_a_column_once(
    conversions: Counter[str], schema: Schema | None
) -> None:
    frame = table(3000)
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, pairs=False)
    made.fit(frame, **ROLES, schema=schema, budget=Budget(epsilon=5.0, delta=1e-5))
    assert set(conversions) == set(frame)
    assert set(conversions.values()) == {1}


def test_a_column_that_is_popped_is_not_kept(conversions: Counter[str]) -> None:
    typed = TypedTable.of(table(50))
    assert typed["sex"] is typed.select(["sex"])["sex"]
    _ = typed.pop("sex").codes, typed.pop("sex").codes
    assert conversions["sex"] == 2


@given(
    st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from("ab1")), min_size=1
    )
)
def test_codes_texts_and_places_say_the_same(values: list[Any]) -> None:
    column = Column(pd.Series(values, dtype=object, name="x"))
    known = ["a", "1", "True", "2"]
    for row, value in enumerate(values):
        code, place = column.codes[row], column.places(known)[row]
        assert column.missing[row] == (value is None) == (code < 0)
        if value is not None:
            assert column.texts[code] == text_of(value)
            assert (known[place] if place >= 0 else None) == (
                text_of(value) if text_of(value) in known else None
            )


EQUAL_BUT_NOT_ALIKE: list[Any] = [
    *(1, 1.0, True, "1", Decimal("1"), Decimal("1.00"), Fraction(1), 1 + 0j, np.float32(1.0)),
    *(0, -0.0, False, Decimal("-0.0"), 2, 2.5, Decimal("2.0"), Decimal("2.50"), Decimal("2E+1")),
    *(date(2020, 1, 1), datetime(2020, 1, 1), pd.Timestamp(2020, 1, 1), "a", "2.0", b"a"),
    *(
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ),
    *(None, float("nan"), pd.NA, pd.NaT, Decimal("NaN")),
]


@given(st.lists(st.sampled_from(EQUAL_BUT_NOT_ALIKE), min_size=1, max_size=8))
@example([Decimal("2.00"), Decimal("2.0")])
@example([1, True])
def test_a_text_follows_from_its_own_value_and_no_other_row(values: list[Any]) -> None:
    column = Column(pd.Series(values, dtype=object, name="x"))
    assert len(set(column.texts)) == len(column.texts)
    for row, value in enumerate(values):
        alone = Column(pd.Series([value], dtype=object, name="x"))
        code = int(column.codes[row])
        assert (column.texts[code] if code >= 0 else None) == (alone.texts or (None,))[0]


def test_one_record_moves_no_code_of_another_in_a_column_of_decimals() -> None:
    schema = Schema.declared({"rate": ["2.0", "3.0"], "x": {"bounds": (-5, 5)}})
    rows = pd.DataFrame({"rate": [Decimal("2.0"), Decimal("3.0")] * 2, "x": [0.0, 1, 2, 3]})
    one = pd.DataFrame({"rate": [Decimal("2.00")], "x": [0.0]})
    encoder = PublicEncoder(schema).fit(None)
    more = encoder.transform(pd.concat([one, rows], ignore_index=True))
    assert np.array_equal(more[1:], encoder.transform(rows))
    assert encoder.transform(rows)[:, :2].sum() > 0


def test_a_typed_table_is_one_of_any_library_and_keeps_its_name() -> None:
    frame = pd.DataFrame({"a": [1, None], "b": ["x", "y"]})
    for given_table in (frame, pl.from_pandas(frame)):
        typed = TypedTable.of(given_table, "public table")
        assert (list(typed), len(typed), typed.where) == (["a", "b"], 2, "public table")
        assert [column.kind for column in typed.columns] == ["numeric", "categorical"]
        assert TypedTable.of(typed, "another") is typed
    assert list(TypedTable.of(np.zeros((2, 2)))) == ["x0", "x1"]


@pytest.mark.usefixtures("values_shown")
@pytest.mark.parametrize(
    ("where", "begins"), [("public table", "The label 'y'"), (Path("a.csv"), "a.csv: the label")]
)
def test_a_message_begins_with_the_file_or_with_the_column(where: str | Path, begins: str) -> None:
    bad = {
        "is missing in row 2 ": lambda c: c.refuse_missing("label", "Leave them out."),
        "has one class only": lambda c: c.refuse_one_class(),
        r"must hold classes, got a number that is not whole, 0\.5": lambda c: c.refuse_amounts(),
    }
    for (words, refuse), values in zip(
        bad.items(), ([1.0, None], ["a", "a"], [1.0, 0.5]), strict=True
    ):
        column = Column(pd.Series(values, name="y"), where)
        with pytest.raises(ValueError, match=words) as caught:
            refuse(column)
        assert str(caught.value).startswith(begins)


def test_a_trace_that_shows_a_table_shows_no_value() -> None:
    typed = TypedTable(pd.DataFrame({"age": [41_234]}))
    typed["age"].refuse_missing("label", "")
    _ = typed["age"].numbers, typed["age"].codes
    assert "41" not in repr(typed) + repr(typed["age"])


def test_names_that_are_no_columns_are_named_together_with_the_nearest() -> None:
    typed = TypedTable(pd.DataFrame({"age": [1], "sex": ["F"]}), Path("a.csv"))
    with pytest.raises(ValueError, match=r"^a\.csv has no column 'agee', which the model was"):
        typed.require(["sex", "agee", "job"], "which the model was trained on")
    with pytest.raises(ValueError, match=r"\(nor 'job'\)\. Did you mean 'age'\? Leave agee out\.$"):
        typed.require(["agee", "job"], "which it reads", way_out="Leave {name} out.")


@given(
    st.lists(st.sampled_from(["1", "1.0", "+1", "1e0", "2.50", "2.5", "007", "a"]), unique=True),
    st.lists(st.sampled_from(["1", "1.0", "2.5", "2.50", "3.0"]), min_size=1),
)
def test_a_category_is_found_however_the_column_is_read(
    known: list[str], written: list[str]
) -> None:
    as_text = Column(pd.Series(written, dtype=object, name="x")).places(known)
    as_numbers = Column(pd.Series(written, name="x").astype(float)).places(known)
    one_by_one = CellColumn(written).places(known)
    assert as_text.tolist() == one_by_one.tolist()
    for text, place, of_number in zip(written, as_text, as_numbers, strict=True):
        alike = [name for name in known if name != "007" and name != "a"]
        same = [name for name in alike if float(name) == float(text)]
        if not same:
            assert place == of_number == -1
            continue
        assert known[place] == (text if text in known else same[0])
        assert float(known[of_number]) == float(text)
    # What an encoder asks for says the same of all three.
    columns = (pd.Series(written, dtype=object), pd.Series(written).astype(float))
    readings = [Column(values.rename("x")) for values in columns]
    found = [c.places(known, as_numbers=True) for c in (*readings, CellColumn(written))]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_categories_have_one_order_with_words_that_float_reads_among_them() -> None:
    # "nan" is neither above nor below a number: as one it would leave the order to chance.
    numbers = [str(n) for n in range(12)]
    assert natural_order([*reversed(numbers), "nan", "NaN", "b", "-1"]) == (
        "-1",
        *numbers,
        "NaN",
        "b",
        "nan",
    )

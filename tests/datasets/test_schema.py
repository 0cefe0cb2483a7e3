import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import show_values
from evenhand.datasets import Schema
from evenhand.datasets.schema import ColumnSchema

PUBLIC = pd.DataFrame(
    {
        "age": [30, 41, 52],
        "score": [0.5, None, 2.0],
        "city": ["Ulm", "Bonn", None],
        "member": [True, True, True],
        "state": pd.Series([10, "x", 2], dtype=object),
    }
)


def test_the_kinds_are_read_off_public_rows() -> None:
    schema = Schema.of_public(PUBLIC)
    assert schema == Schema(
        columns=(
            ColumnSchema(name="age", kind="numeric", decimals=0),
            ColumnSchema(name="score", kind="numeric", missing=True, decimals=1),
            ColumnSchema(name="city", kind="categorical", categories=("Bonn", "Ulm"), missing=True),
            ColumnSchema(name="member", kind="categorical", categories=("False", "True")),
            ColumnSchema(name="state", kind="categorical", categories=("2", "10", "x")),
        )
    )


@pytest.mark.parametrize("dtype", ["str", "object", "category", "string[python]"])
def test_the_way_pandas_stores_text_makes_no_difference(dtype: str) -> None:
    column = pd.DataFrame({"a": pd.Series(["x", None, "y"], dtype=dtype)})
    (read,) = Schema.of_public(column).columns
    assert (read.kind, read.categories, read.missing) == ("categorical", ("x", "y"), True)


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "float32", "Float64", "object", "int64[pyarrow]"]
)
def test_the_way_pandas_stores_numbers_makes_no_difference(dtype: str) -> None:
    column = pd.DataFrame({"a": pd.Series([1, 3], dtype=dtype)})
    whole = ColumnSchema(name="a", kind="numeric", decimals=0)
    assert Schema.of_public(column).columns == (whole,)
    halves = pd.DataFrame({"a": pd.Series([1.5, 3, None], dtype="float32")})
    assert Schema.of_public(halves).columns[0].decimals == 1
    assert Schema.of_public(halves / 7).columns[0].decimals is None


def test_categories_of_rows_taken_away_are_not_read() -> None:
    # The dtype "category" remembers every value of the whole table, private rows among them.
    whole = pd.DataFrame({"illness": pd.Series(["flu", "cold", "rare"], dtype="category")})
    public = whole.iloc[:2]
    assert "rare" in public["illness"].cat.categories
    assert Schema.of_public(public).columns[0].categories == ("cold", "flu")


def test_numbers_are_categories_if_the_user_says_they_are_codes() -> None:
    schema = Schema.of_public(PUBLIC, categorical=["age"])
    assert schema.columns[0].categories == ("30", "41", "52")
    with pytest.raises(
        ValueError, match=r"no column 'agee', which categorical= names.*Did you mean 'age'\?"
    ):
        Schema.of_public(PUBLIC, categorical=["agee"])


def test_a_column_without_public_values_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Column 'a' has no value in the public rows.*declare"):
        Schema.of_public(pd.DataFrame({"a": [None, None]}))


def test_an_identifier_is_refused_as_a_category() -> None:
    names = pd.DataFrame({"name": [f"person {i}" for i in range(30)]})
    with pytest.raises(ValueError, match=r"'name' has 30 categories in 30 .*max_categories=20.*id"):
        Schema.of_public(names, max_categories=20)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), r"'a'.*dates or times.*dt\.days"),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], "dates or times"),
        (pd.to_timedelta([1, 2], unit="D"), "dates or times"),
        (pd.period_range("2020", periods=2, freq="Y"), "dates or times"),
        ([1 + 2j, 3 + 0j], "complex values"),
        ([[1], [2]], "mixed values"),
    ],
)
def test_what_is_neither_number_nor_text_is_refused(values: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Schema.of_public(pd.DataFrame({"a": values}))


@pytest.mark.parametrize(
    ("values", "number"),
    [
        (pd.to_datetime(["2020-01-03"]), 2),
        (pd.to_datetime(["2020-01-03"]).tz_localize("Asia/Tokyo"), 1),
        ([datetime.date(2020, 1, 3)], 2),
        (pd.period_range("2020-02", periods=1, freq="M"), 31),
        (pd.to_timedelta(["1 hour"]), 3600),
        (pd.Series([datetime.timedelta(hours=1)], dtype=object), 3600),
        ([datetime.time(1, 1)], 3660),
    ],
)
def test_the_number_that_a_message_makes_of_dates_is_one(values: Any, number: int) -> None:
    frame = pd.DataFrame({"a": values})
    with pytest.raises(TypeError, match="holds dates or times") as caught:
        Schema.of_public(frame)
    written = str(caught.value).partition("e.g. ")[2].partition(": ")[2].removesuffix(".")
    assert eval(written, {"pd": pd, "frame": frame}).tolist() == [number]


def test_lists_are_refused_in_a_declared_category_too() -> None:
    with pytest.raises(TypeError, match="'a' of the private table holds values that cannot be"):
        Schema.declared({"a": ["x"]}).check(pd.DataFrame({"a": [[1], [2]]}), where="private table")


def test_a_declaration_reads_no_row() -> None:
    schema = Schema.declared(
        {
            "age": {"bounds": (17, 90), "missing": True},
            "hours": "numeric",
            "sex": ["Female", "Male"],
            "state": {"categories": [1, 2.0, "3", True]},
        }
    )
    assert schema.names == ("age", "hours", "sex", "state")
    assert schema.columns[0].bounds == (17.0, 90.0)
    assert schema.columns[3].categories == ("1", "2", "3", "True")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "at least one column"),
        ({"a": "numerical"}, "kind of column 'a' must be one of 'numeric'.*Did you mean"),
        ({"a": []}, "'a' has no categories"),
        ({"a": ["x", "x"]}, "The category 'x' of column 'a' is named twice"),
        ({"a": {"bound": (0, 1)}}, "key of column 'a' must be one of.*Did you mean 'bounds'?"),
        ({"a": {"bounds": (1, 0)}}, r"bounds of column 'a' must be finite and low < high"),
        ({"a": {"bounds": (0, float("inf"))}}, "must be finite"),
        ({"a": {"kind": "numeric", "categories": ["x"]}}, "numeric column 'a' cannot have categ"),
        ({"a": {"categories": ["x"], "bounds": (0, 1)}}, "'a' cannot have bounds"),
        ({"a": {"kind": "id", "pattern": "C-"}}, "Column 'a': A pattern has places"),
        ({"a": {"kind": "id", "categories": ["x"]}}, "'a' is made anew.* takes a pattern alone"),
        ({"a": {"kind": "email", "missing": True}}, "'a' is made anew.* takes a pattern alone"),
        ({"a": {"kind": "postcode"}}, r'\{"kind": "postcode", "prefix": 3\}'),
        ({"a": {"prefix": 0}}, "prefix of column 'a' must be at least 1"),
        ({"a": {"prefix": 2, "pattern": "*"}}, "'a' follows a prefix"),
        ({"a": {"kind": "numeric", "prefix": 2}}, "numeric column 'a' cannot have a prefix"),
        ({"a": {"kind": "numeric", "pattern": "#"}}, "only the kinds id, email, phone, postcode"),
        ({"a": {"kind": "mail"}}, "must be one of .*'email'"),
        ({"a": {"categories": "FM"}}, r"categories of column 'a' must be a list.*got 'FM'"),
        ({"a": {"categories": None}}, "categories of column 'a' must be a list"),
        ({"a": {"categories": []}}, "'a' is declared by its categories, and none is named"),
        ({"a": {"categories": ["F", None]}}, r"text or a number, got None.*\{\"missing\": true\}"),
        ({"a": ["F", float("nan")]}, "text or a number, got nan"),
        ({"a": {"categories": ["F", ["M"]]}}, r"text or a number, got \['M'\]"),
        ({"a": {"bounds": (0, 80, 100)}}, r"bounds of column 'a' must be \[low, high\]"),
        ({"a": {"bounds": 80}}, r"bounds of column 'a' must be \[low, high\].*got 80"),
        ({"a": {"bounds": "09"}}, r"bounds of column 'a' must be \[low, high\].*got '09'"),
        ({"a": {"bounds": (False, 5)}}, r"bounds of column 'a' must be \[low, high\]"),
        ({"a": {"bounds": (0, 10**400)}}, "bound of column 'a' must be a number"),
        (
            {"a": {"kind": "numeric", "missing": "no"}},
            "missing of column 'a' must be true or false",
        ),
        ({"a": {"bounds": (0, 1), "integer": "false"}}, "integer of column 'a' must be true or f"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(said: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Schema.declared(said)


def test_the_json_file_holds_the_whole_schema(tmp_path: Path) -> None:
    schema = Schema.declared(
        {
            "z": {"bounds": (0.1, 1 / 3)},
            "a": ["ä", "b", "\udc80"],  # the last is half a pair: no file of UTF-8 has it
            "m": {"kind": "numeric", "missing": True},
            "id": {"kind": "id", "pattern": "C-###"},
            "mail": "email",
            "phone": "phone",
            "zip": {"kind": "postcode", "prefix": 3, "pattern": "##", "missing": True},
            "plz": {"prefix": 1, "categories": ["1", "2"]},
        }
    )
    schema.save(tmp_path / "schema.json")
    assert '"ä"' in (tmp_path / "schema.json").read_text(encoding="utf-8")  # to be edited by hand
    assert Schema.load(tmp_path / "schema.json") == schema
    # Sorting the keys, as some tools do, must not reorder the columns.
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict(), sort_keys=True))) == schema


NO_COLUMNS = (
    "[]",
    "{}",
    '{"columns": {"a": 1}}',
    '{"columns": [{"kind": "numeric"}]}',
    '{"columns": ["name"]}',
    '{"columns": [3]}',
    '{"columns": [{"name": null}]}',
)


def test_what_public_arrays_hold_is_declared() -> None:
    public = pd.Series(["x", "y"])
    said = {"categories": public.unique(), "missing": public.isna().any()}
    schema = Schema.declared({"a": said, "b": {"bounds": np.array([0, 1])}})
    assert schema == Schema.declared({"a": ["x", "y"], "b": {"bounds": (0, 1)}})


def test_a_file_that_is_no_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"schema\.json is not a JSON file"):
        Schema.load(path)
    for wrong in (
        "[]",
        "{}",
        '{"columns": {"a": 1}}',
        '{"columns": [{"kind": "numeric"}]}',
        *NO_COLUMNS,
    ):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="A schema is written as"):
            Schema.load(path)


# --- check --------------------------------------------------------------------------------------

SCHEMA = Schema.declared({"age": "numeric", "city": ["Bonn", "Ulm"]})


def private(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"age": [1, 2], "city": ["Bonn", "Rom"], **columns})


def test_the_columns_come_back_in_the_order_of_the_schema() -> None:
    assert list(SCHEMA.check(private()[["city", "age"]])) == ["age", "city"]


def test_an_absent_column_is_named_with_the_nearest() -> None:
    frame = private().rename(columns={"age": "Age"})
    with pytest.raises(ValueError, match=r"The private table has no column 'age'.*mean 'Age'\?"):
        SCHEMA.check(frame, where="private table")
    with pytest.raises(ValueError, match=r"has no column 'age'.*\(nor 'city'\)"):
        SCHEMA.check(pd.DataFrame({"x": [1]}))


def test_an_unknown_column_is_an_error_unless_it_is_to_be_passed_over() -> None:
    frame = private(name=["Ann", "Bob"])
    with pytest.raises(ValueError, match=r"does not name: 'name'.*drop.*ignore_extra=True"):
        SCHEMA.check(frame)
    assert list(SCHEMA.check(frame, ignore_extra=True)) == ["age", "city"]


def test_text_among_numbers_is_named_by_column_value_and_row() -> None:
    # The index may be private too, such as names of people: rows are named by their position.
    frame = private(age=pd.Series(["12", "12a"], dtype=object)).set_index(pd.Index([70, 71]))
    with (
        pytest.raises(ValueError, match=r"'age' of the private table.*the text '12a' in row 2 "),
        show_values(),
    ):
        SCHEMA.check(frame, where="private table")


def test_numbers_written_as_text_are_numbers() -> None:
    SCHEMA.check(private(age=["12", "13.5"]))


def test_an_unknown_category_is_no_error() -> None:
    assert SCHEMA.check(private())["city"].values.tolist() == ["Bonn", "Rom"]


def test_arrays_have_the_columns_x0_x1() -> None:
    assert Schema.of_public(np.eye(2)).names == ("x0", "x1")
    with pytest.raises(ValueError, match=r"two-dimensional array, got shape \(3,\)"):
        Schema.of_public(np.ones(3))


def test_whole_numbers_are_declared_and_come_back_from_json() -> None:
    schema = Schema.declared({"age": {"bounds": (17, 90), "integer": True}, "x": "numeric"})
    assert [column.integer for column in schema.columns] == [True, False]
    assert Schema.from_dict(schema.to_dict()) == schema
    assert "integer" not in schema.to_dict()["columns"][1]
    assert Schema.declared({"age": {"bounds": (17, 90), "decimals": 0}}).columns[0].integer
    with pytest.raises(ValueError, match="integer is said of numbers, and column 'a'"):
        Schema.declared({"a": {"categories": ["x"], "integer": True}})


def test_decimals_are_declared_and_come_back_from_json() -> None:
    schema = Schema.declared({"warm": {"bounds": (34.0, 42.5), "decimals": 1}, "x": "numeric"})
    assert [(c.decimals, c.integer) for c in schema.columns] == [(1, False), (None, False)]
    assert schema.to_dict()["columns"][0]["decimals"] == 1
    assert "decimals" not in schema.to_dict()["columns"][1]
    assert Schema.from_dict(schema.to_dict()) == schema
    # Saved models hold the arguments of a column: those of before are without decimals.
    before = {"name": "age", "kind": "numeric", "bounds": (17.0, 90.0), "integer": True}
    assert ColumnSchema(**before) == ColumnSchema(**(before | {"integer": False, "decimals": 0}))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"decimals": -1}, "decimals of column 'a' must be at least 0, got .*whole numbers"),
        ({"decimals": 10}, "decimals of column 'a' must be at most 9, got 10"),
        ({"decimals": True}, r"must be a whole number, got True \(bool\)"),
        ({"decimals": 1.0}, r"must be a whole number, got 1.0 \(float\)"),
        ({"decimals": "2"}, r"must be a whole number, got '2' \(str\)"),
        ({"decimals": 2, "integer": True}, "'a' is declared with integer and with decimals=2"),
        ({"decimals": 1, "categories": ["x"]}, "decimals is said of numbers, and column 'a'"),
        ({"decimals": 1, "kind": "date"}, "'a' holds dates, .* leave out decimals=1"),
        ({"decimals": 4, "bounds": (0, 1e12)}, "decimals=4 have more digits than a float holds"),
        ({"decimals": 0, "kind": "email"}, "'a' is made anew, and nothing of it is learnt"),
    ],
)
def test_decimals_that_no_number_has_are_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Schema.declared({"a": said})

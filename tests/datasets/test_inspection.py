"""What inspection finds is wrong with a column, and what it leaves alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import datasets
from evenhand.datasets import Dataset, Schema, inspect, load_acs_income, load_parkinsons
from evenhand.datasets.findings import FOR_THE_CURATOR, IN_PYTHON
from evenhand.datasets.problems import Problem, numbers_are_identifier, text_problem

N = 1000


def table(**more: Any) -> pd.DataFrame:
    """Return rows in which nothing is wrong, and these columns beside."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170.0, 10.0, N),  # a measurement, each value once
            "age": rng.integers(18, 90, N),
            "job": rng.choice(["clerk", "nurse", "smith"], N),
            "sex": rng.choice(["F", "M"], N),
            "loan": rng.choice(["no", "yes"], N),
        }
    )
    return frame.assign(**more)


def found(column: Any, public: Any = None, name: str = "odd") -> list[Problem]:
    """Return the problems of one more column, alone."""
    frame = table(**{name: column})
    known = None if public is None else table(**{name: public}).drop(columns="loan")
    result = inspect(frame, label="loan", sensitive="sex", public=known)
    assert [c.name for c in result.columns if c.findings] in ([], [name])
    return [f.problem for c in result.columns for f in c.findings]


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_a_sound_table_has_no_findings() -> None:
    result = inspect(table(), label="loan", sensitive="sex", public=table())
    assert not any(c.findings for c in result.columns)
    assert result.drop == ""
    result.require("table", IN_PYTHON)


ONE_EACH: dict[str, tuple[Any, Problem]] = {
    "no value": ([None] * N, Problem.EMPTY),
    "lists": ([[1]] * N, Problem.OBJECTS),
    "timestamps": (pd.Timestamp("2020-01-31"), Problem.DATE),
    "durations": (pd.Timedelta("2 days"), Problem.DURATION),
    "days": ([f"{d}.{m}.2020" for d in range(1, 26) for m in range(1, 11)] * 4, Problem.DATE),
    "iso": (["2020-01-31", "2021-12-01T10:00"] * (N // 2), Problem.DATE),
    "months": (["3 Mar 2020", "Sept 2021"] * (N // 2), Problem.DATE),
    "clock": (["23:59", "7:05:01"] * (N // 2), Problem.DATE),
    "decimal": (["1,5", "20", "-3,25"] * 333 + ["1"], Problem.COMMA_NUMBER),
    "thousands": (["1.234,50", "12"] * (N // 2), Problem.COMMA_NUMBER),
    "other thousands": (["1,234.50", "$12"] * (N // 2), Problem.COMMA_NUMBER),
    "numbers": ([str(i % 70) for i in range(N)], Problem.NUMBER_TEXT),
    "numbers and a slip": ([str(i % 70) for i in range(N - 1)] + ["forty"], Problem.NUMBER_TEXT),
    "shares": ([f"{i % 70} %" for i in range(N)], Problem.NUMBER_TEXT),
    "names": ([f"p{i}" for i in range(N)], Problem.IDENTIFIER),
    "names of two records": ([f"p{i // 2}" for i in range(N)], Problem.IDENTIFIER),
    "notes": ([f"called {i} times and paid late" for i in range(N)], Problem.FREE_TEXT),
    "from 1 to n": (range(1, N + 1), Problem.IDENTIFIER),
    "n to 1, as floats": ([float(N - i) for i in range(N)], Problem.IDENTIFIER),
    "in any order": (rng().permutation(N), Problem.IDENTIFIER),
    "ascending with gaps": (np.cumsum(rng().integers(1, 10**6, N)), Problem.IDENTIFIER),
    "mails": ([f"ann.{i}@firm.com" for i in range(N)], Problem.EMAIL),
    "few mails": (["ann@firm.com", "bob@home.co.uk", "d@e.fi"] * 333 + ["c@x.de"], Problem.EMAIL),
    "phones": ([f"+49 30 {i:06d}" for i in range(N)], Problem.PHONE),
    "phones of two": ([f"(212) 555-{i // 2:04d}" for i in range(N)], Problem.PHONE),
    "phones at home": ([f"030/{1234567 + i % 99}" for i in range(N)], Problem.PHONE),
    "phones without 1": ([f"212-555-{i:04d}" for i in range(N)], Problem.PHONE),
    "spellings": (["Private", "private ", "State", "x"] * (N // 4), Problem.SPELLINGS),
    "51 categories": ([f"c{i % 51}" for i in range(N)], Problem.MANY_CATEGORIES),
    "one value": ("same", Problem.CONSTANT),
    "one number": (7.5, Problem.CONSTANT),
    "no blood pressure": ([*rng().normal(120, 15, N - 9), *[-999] * 9], Problem.MISSING_CODE),
    "no age, or refused": (
        [18 + i % 70 for i in range(N - 9)] + [-8, 999, -99] * 3,
        Problem.MISSING_CODE,
    ),
}


@pytest.mark.parametrize("case", ONE_EACH)
def test_each_kind_of_problem_is_found_and_no_other(case: str) -> None:
    column, problem = ONE_EACH[case]
    if case == "lists":
        column = pd.Series(column)
    assert found(column) == [problem]


@pytest.mark.parametrize(
    "column",
    [
        [f"c{i % 50}" for i in range(N)],
        [f"{i % 300:05d}" for i in range(N)],  # postcodes: leading zeros make a code
        [str(i % 24) for i in range(N)],  # codes of a census
        ["1-4", "5-9", ">10", "2010-11"] * (N // 4),
        ["1,2", "a,b"] * (N // 2),
        [f"{10 * (i % 90)}-{10 * (i % 90) + 9}" for i in range(N)],  # ranges
        [f"{10**5 * (i % 90)}-{10**5 * (i % 90) + 99999}" for i in range(N)],
        [f"{1900 + i % 90}-{1901 + i % 90}" for i in range(N)],
        [f"{i % 90:05d}-{i % 90:04d}" for i in range(N)],  # ZIP+4
        [f"{1 + i % 90}.0.{i % 90}.1" for i in range(N)],
        [f"@user{i % 90}" for i in range(N)],
        ["10.0.0.1", "v1.2"] * (N // 2),
        rng().integers(0, 10**4, N),
        rng().normal(size=N).round(1),
        [18 + i % 82 for i in range(N)],  # 99 is an age
        [*rng().normal(120, 15, N - 1), -999.0],  # once
        [*rng().normal(120, 15, N - 2), 512, 512],
        np.where(np.arange(N) < 3, np.nan, 1.0 + np.arange(N) % 2),
        pd.array([True, None, False, True] * (N // 4), dtype="boolean"),
        [True, False] * (N // 2),
    ],
    ids=str,
)
def test_what_only_looks_a_little_like_it_is_left_alone(column: Any) -> None:
    assert [p for p in found(column) if p is not Problem.MANY_CATEGORIES] == []


def test_an_id_by_name_is_found_where_the_numbers_alone_do_not_say_it() -> None:
    far_apart = rng().choice(10**12, N, replace=False)
    assert found(far_apart, name="customer_id") == [Problem.IDENTIFIER]
    assert found(far_apart, name="amount") == []
    several = np.repeat(np.arange(N // 10), 10)
    assert found(several, name="subject#") == [Problem.REPEATED_ID]
    assert found(several, name="rooms") == []


def test_phones_and_postcodes_that_are_numbers_are_found_by_name() -> None:
    mobile = 4_915_110_000_000 + rng().integers(0, 10**6, N)
    assert found(mobile, name="mobilePhone") == [Problem.PHONE]
    assert found(mobile, name="amount") == []
    huge = pd.Series([*mobile[1:], 10**400], dtype=object)
    assert found(huge, name="phone") == [Problem.PHONE]
    assert found(rng().integers(1, 100, N), name="phone") == []  # phones that somebody has
    plz = rng().integers(10_000, 99_999, N)
    assert found(plz, name="plz") == [Problem.POSTCODE]
    assert found([f"{z:05d}" for z in plz % 300], name="zip_code") == [
        Problem.POSTCODE,
        Problem.MANY_CATEGORIES,
    ]


def test_the_lines_of_a_schema_have_odd_columns_without_their_values() -> None:
    odd = {
        "clé": [f"k{i}" for i in range(N)],
        "zip": [f"{i:05d}-{i:04d}" for i in range(N)],
        "mail": [f"a{i}@firm.com" for i in range(N)],
    }
    result = inspect(table(**odd), label="loan", sensitive="sex")
    lines = [json.loads(line) for line in result.lines()]
    assert lines == [
        {"name": "clé", "kind": "id"},
        {"name": "zip", "kind": "postcode", "prefix": 2},
        {"name": "mail", "kind": "email"},
    ]
    assert "clé" in result.lines()[0]
    assert all(line in str(result) for line in result.lines())
    assert result.lines(["mail"]) == result.lines()[2:]
    schema = Schema.from_dict({"columns": lines})
    assert inspect(table(**odd), label="loan", sensitive="sex", schema=schema).lines() == ()


@given(seed=st.integers(0, 2**32 - 1), wide=st.integers(3, 12))
def test_independent_whole_numbers_are_no_identifier(seed: int, wide: int) -> None:
    # By the bound, uniform numbers of any width that happen to be all different are named with a
    # probability of at most 2**-20; strictly ascending ones of 20 rows, of 2 / 20!.
    draws = np.random.default_rng(seed).integers(0, 10**wide, 200).astype(float)
    assert not numbers_are_identifier(draws)


def test_a_copy_of_the_label_is_found_in_any_words_and_no_near_copy() -> None:
    frame = table()
    codes = (frame["loan"] == "yes").astype(int)
    for copy in (codes, frame["loan"].str.upper(), codes + 0.5, codes == 1):
        assert inspect(frame.assign(odd=copy), label="loan").columns[-1].findings[0].problem is (
            Problem.LABEL_COPY
        )
    near = codes.copy()
    near.iloc[0] = 1 - near.iloc[0]
    finer = codes + 2 * (frame["sex"] == "F")
    for other in (near, finer):
        assert not inspect(frame.assign(odd=other), label="loan").columns[-1].findings
    few = frame.iloc[:12].assign(odd=codes)  # of so few rows probability agrees
    assert Problem.LABEL_COPY not in [
        f.problem for f in inspect(few, label="loan").columns[-1].findings
    ]


def test_the_public_table_is_compared_with() -> None:
    assert found(["a", "b"] * 500, public="a") == [Problem.NEW_CATEGORIES]
    assert found(["a"] * 999 + ["b"], public=1.5) == [Problem.OTHER_KIND]
    slip = [str(i % 70) for i in range(N - 1)] + ["forty"]
    assert found(slip, public=1.5) == [Problem.OTHER_KIND]  # whoever reads both knows the row
    frame = table(extra=1.5)
    result = inspect(frame, label="loan", public=table().drop(columns="loan"))
    assert result.columns[-1].findings[0].problem is Problem.NOT_PUBLIC


def wrong() -> pd.DataFrame:
    secret = [f"secret-{i}" for i in range(N)]
    return table(person=secret, born=["1.1.1970", "2.2.1980"] * 500, wage=["9,5", "7"] * 500)


def test_all_columns_are_named_at_once_and_no_value() -> None:
    result = inspect(wrong(), label="loan", sensitive="sex")
    assert result.drop == "--drop person --drop born --drop wage"
    with pytest.raises(ValueError, match="learnt wrong") as caught:
        result.require("private table", "Go on: {drop} {names}")
    said = str(caught.value)
    assert said.startswith(
        "Column 'person' looks like an identifier; column 'born' holds dates or times; column "
        "'wage' holds numbers with a comma: the private table"
    )
    assert said.endswith("Go on: --drop person --drop born --drop wage ['person', 'born', 'wage']")
    assert not any(value in said for value in ("secret-", "1970", "9,5", str(N)))
    with pytest.raises(ValueError, match=r"^Column 'born' holds dates or times: the") as caught:
        result.require("private table", "{drop}", keep=["person", "wage"])
    result.require("private table", "{drop}", keep=["person", "wage", "born"])


def test_what_is_declared_is_not_stopped_for_its_kind_but_for_being_the_label() -> None:
    frame = wrong().assign(copy=lambda f: (f["loan"] == "yes").astype(int))
    schema = Schema.declared(
        {
            "born": ["1.1.1970", "2.2.1980"],
            "wage": ["9,5", "7"],
            "copy": [0, 1],
            "person": "numeric",
        }
    )
    result = inspect(frame, label="loan", sensitive="sex", schema=schema)
    assert [c.name for c in result.grave] == ["copy"]


def test_roles_are_no_features_and_are_not_stopped() -> None:
    frame = table(person=range(N), born=["1.1.1970", "2.2.1980"] * 500)
    result = inspect(frame, label="loan", sensitive=["sex", "born"], unit="person")
    assert result.drop == ""
    with pytest.raises(ValueError, match=r"no column 'lone'.*Did you mean 'loan'"):
        inspect(frame, label="lone")


def test_labels_and_units_are_not_compared_with_those_of_public_rows() -> None:
    private = table(person=[f"p{i // 4}" for i in range(N)])
    public = table(person=[f"q{i // 4}" for i in range(N)], loan="granted", sex="F")
    result = inspect(private, label="loan", sensitive="sex", unit="person", public=public)
    found = {column.name for column in result.columns if column.findings}
    assert found == {"sex"}  # new groups are told; nobody reads public units and labels


def test_the_schema_is_of_public_rows_and_names_no_private_category() -> None:
    warm = 36.0 + np.arange(N) % 40 / 10
    public = table(job="nurse", age=np.arange(N) % 40 + 30, warm=warm)
    private = table(job="spy", warm=warm / 7)
    schema = inspect(private, label="loan", sensitive="sex", public=public).schema
    assert schema is not None
    known = {column.name: column for column in schema.columns}
    assert known["job"].categories == ("nurse",)
    assert (known["age"].bounds, known["age"].integer) == ((30.0, 69.0), True)
    assert (known["warm"].bounds, known["warm"].decimals) == ((36.0, 39.9), 1)
    alone = inspect(private, label="loan", sensitive="sex").schema
    assert alone is not None
    read = {column.name: column.decimals for column in alone.columns}
    assert (read["age"], read["warm"]) == (0, None)  # dtypes say which numbers are whole, no more
    assert "spy" not in str(schema)


def test_without_public_rows_the_schema_is_of_dtypes_alone() -> None:
    def read(frame: pd.DataFrame) -> Schema | None:
        return inspect(frame, label="loan", sensitive="sex").schema

    full = table(member=pd.array([True, None] * 500, dtype="boolean"))
    other = full.assign(
        age=full["age"] * 7, height=0.5, job="spy", member=full["member"].iloc[::-1]
    )
    schema = read(full)
    assert schema == read(other.astype(full.dtypes))
    assert schema is not None
    assert schema.names == ("height", "age", "member")
    assert {c.name: c.bounds for c in schema.columns} == {
        "height": None,
        "age": None,
        "member": None,
    }


def test_the_schema_of_dtypes_has_the_decimals_that_they_say() -> None:
    exact = pa.array([Decimal("1.5"), None] * 10, pa.decimal128(9, 2))
    stored = pa.table({"owed": exact, "n": [1] * 20, "x": [0.5] * 20, "loan": ["no", "yes"] * 10})
    schema = inspect(stored, label="loan").schema
    assert schema is not None
    assert {c.name: c.decimals for c in schema.columns} == {"owed": 2, "n": 0, "x": None}


def test_it_says_first_whom_it_is_for_and_can_be_read_and_sent() -> None:
    result = inspect(wrong().assign(**{"<b>": "1:30"}), label="loan")
    assert str(result).splitlines()[0] == FOR_THE_CURATOR
    assert (
        str(result).splitlines()[-1].endswith("--drop person --drop born --drop wage --drop '<b>'")
    )
    page = result._repr_html_()
    assert page.startswith(f"<p>{FOR_THE_CURATOR}")
    assert "<b>" not in page
    plain = result.to_dict()
    assert plain["for"] == FOR_THE_CURATOR
    assert [c["stops"] for c in plain["columns"]][-4:] == [True, True, True, True]
    with pytest.raises(AttributeError):
        result.n_rows = 3  # type: ignore[misc]


def test_a_data_set_can_be_inspected_when_it_is_made() -> None:
    frame = wrong()
    assert len(Dataset.from_frame(frame, label="loan", sensitive="sex")) == N
    with pytest.raises(ValueError, match=r"'born' holds dates.*drop\(columns=\['person', 'born'"):
        Dataset.from_frame(frame, label="loan", sensitive="sex", inspect=True)
    drop = ["person", "born", "wage"]
    Dataset.from_frame(frame, label="loan", sensitive="sex", drop=drop, inspect=True)


@pytest.mark.parametrize(
    "name", ["adult", "german", "credit_default", "bank", "acs_income", "parkinsons"]
)
def test_the_built_in_tables_pass_untouched(name: str, real_data: Callable[..., object]) -> None:
    real_data({"credit_default": "credit-default", "acs_income": "acs-income"}.get(name, name))
    made = {
        "acs_income": lambda: load_acs_income(sensitive="race"),
        "parkinsons": lambda: load_parkinsons(keep_motor_updrs=True),
    }
    data = made.get(name, getattr(datasets, f"load_{name}"))()
    frame = pd.concat([data.X, pd.DataFrame(data.groups), data.y.rename(data.label)], axis=1)
    result = inspect(frame, label=data.label, sensitive=data.sensitive)
    assert [(c.name, str(c.findings[0])) for c in result.columns if c.grave] == []


def test_every_number_is_a_comma_number_or_plain_in_the_form_that_it_is_written_in() -> None:
    values = np.random.default_rng(0).normal(0, 1e5, 200)
    english = [f"{v:,.2f}" for v in values]
    german = [text.translate(str.maketrans(",.", ".,")) for text in english]
    assert text_problem(english) is text_problem(german) is Problem.COMMA_NUMBER
    assert text_problem([f"{v:.2f}" for v in values]) is Problem.NUMBER_TEXT
    assert text_problem([f"{v:e}" for v in values]) is Problem.NUMBER_TEXT


@pytest.mark.parametrize(
    ("values", "example"),
    [
        ([*(f"{i}.5" for i in range(40)), "1,200.50"], "'1,200.50'"),
        (["?", *(f"{day}.1.2020" for day in range(1, 30))], "'1.1.2020'"),
    ],
)
def test_an_example_has_what_was_found(values: list[str], example: str) -> None:
    frame = pd.DataFrame({"x": values * 20, "y": ["no", "yes"] * (10 * len(values))})
    found = str(next(c for c in inspect(frame, label="y").columns if c.name == "x").findings[0])
    assert found.endswith(f"e.g. {example}")


STRANGE: dict[str, Callable[[random.Random, int], Any]] = {
    "Int64": lambda r, n: pd.array([r.choice([1, 2, None]) for _ in range(n)], dtype="Int64"),
    "boolean": lambda r, n: pd.array([r.choice([True, None]) for _ in range(n)], dtype="boolean"),
    "mixed": lambda r, n: pd.Series(
        [r.choice([1, "a", None, 2.5]) for _ in range(n)], dtype=object
    ),
    "lists": lambda r, n: pd.Series([r.choice([[1], {"a": 1}, None]) for _ in range(n)]),
    "decimals": lambda r, n: pd.Series([Decimal(r.randrange(99)) / 7 for _ in range(n)]),
    "days": lambda r, n: pd.Series([date(2020, 1, 1 + r.randrange(28)) for _ in range(n)]),
    "zone": lambda r, n: pd.Series(pd.date_range("2020", periods=n, tz="UTC")),
    "months": lambda r, n: pd.Series(pd.period_range("2020", periods=n, freq="M")),
    "category": lambda r, n: pd.Categorical([r.choice([None, 1, 2]) for _ in range(n)]),
    "category of days": lambda r, n: pd.Categorical(pd.date_range("2020", periods=n)),
    "complex": lambda r, n: np.arange(n) * 1j,
    "text": lambda r, n: [r.choice(["", "\x00", "  ", "\ud7ff", "İ", "1e999"]) for _ in range(n)],
    "infinite": lambda r, n: [float("inf")] * n,
    "nothing": lambda r, n: [None] * n,
    "arrow": lambda r, n: pd.array([str(i) for i in range(n)], dtype="string[pyarrow]"),
    "large": lambda r, n: [2**70 + i for i in range(n)],
    "intervals": lambda r, n: pd.interval_range(0, n, periods=n),
    "bytes": lambda r, n: [b"x"] * n,
    "unsigned": lambda r, n: np.arange(n, dtype="uint64") + 2**63,
    "forms": lambda r, n: [r.choice(["1,5", "2.5", "1.1.2020", None]) for _ in range(n)],
}


@pytest.mark.parametrize("n", [1, 25])
def test_every_column_beside_every_public_one_is_answered(n: int) -> None:
    rng = random.Random(n)
    for name, make in STRANGE.items():
        for other, theirs in STRANGE.items():
            frame = pd.DataFrame(
                {"c": pd.Series(make(rng, n)), "y": ["a", "b"] * (n // 2) + ["a"] * (n % 2)}
            )
            public = pd.DataFrame({"c": pd.Series(theirs(rng, n))})
            result = inspect(frame, label="y", public=public)
            assert str(result).startswith(FOR_THE_CURATOR), (name, other)
            assert result.to_dict()["n_rows"] == n


def test_a_copy_of_a_label_of_mixed_types_is_found_by_its_texts() -> None:
    text = np.random.default_rng(0).choice(["0", "1", "2"], N)
    spelt = [(str, int, float)[i % 3](value) for i, value in enumerate(text)]
    frame = table(code=[f"c{value}" for value in text]).assign(loan=pd.Series(spelt, dtype=object))
    found = {c.name: c for c in inspect(frame, label="loan", sensitive="sex").columns}
    assert [finding.problem for finding in found["code"].findings] == [Problem.LABEL_COPY]

"""Sensitive features of any shape become the same codes, or an error that says what to do."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.fairness.groups import GroupCodes, encode_groups, known_or_not, missing_groups

VALUES = ["M", "F", "F", "M"]


@pytest.mark.parametrize(
    "features",
    [
        VALUES,
        tuple(VALUES),
        np.array(VALUES),
        np.array(VALUES, dtype=object),
        np.array(VALUES)[:, None],
        pd.Series(VALUES, index=[9, 9, 3, 1], name="sex"),
        pd.Series(VALUES, dtype="category").cat.add_categories(["never seen"]),
        pd.DataFrame({"sex": VALUES}),
        [[value] for value in VALUES],
        [f" {value} " for value in VALUES],
    ],
    ids=lambda f: type(f).__name__,
)
def test_every_container_gives_the_same_codes(features: object) -> None:
    found = encode_groups(features)
    assert found.names == ("F", "M")
    assert found.codes.tolist() == [1, 0, 0, 1]
    assert found.codes.dtype == np.int64
    assert found.sizes.tolist() == [2, 2]
    assert (len(found), found.n_groups) == (4, 2)


def test_several_columns_are_combined_into_the_combinations_that_occur() -> None:
    frame = pd.DataFrame({"sex": ["M", "F", "M"], "age": [30, 9, 30]})
    found = encode_groups(frame)
    assert found.names == ("sex=F, age=9", "sex=M, age=30")
    assert found.codes.tolist() == [1, 0, 1]
    assert encode_groups(frame.to_numpy()).names == (
        "feature_0=F, feature_1=9",
        "feature_0=M, feature_1=30",
    )


def test_numbers_are_ordered_by_size_and_equal_ones_are_one_group() -> None:
    assert encode_groups([10, 2, 2.0, np.int64(10)]).names == ("2", "10")
    assert encode_groups(np.array([1.5, 1.0])).names == ("1", "1.5")
    assert encode_groups([True, False]).names == ("False", "True")
    assert encode_groups(["b", 3, "a"]).names == ("3", "a", "b")


@given(st.lists(st.integers(-3, 12), min_size=1), st.randoms())
def test_the_order_of_rows_changes_no_name_and_moves_codes_with_rows(
    values: list[int], random: object
) -> None:
    found = encode_groups(values)
    assert [found.names[code] for code in found.codes] == [str(value) for value in values]
    backwards = encode_groups(values[::-1])
    assert backwards.names == found.names == tuple(map(str, sorted(set(values))))
    assert backwards.codes.tolist() == found.codes.tolist()[::-1]


@pytest.mark.parametrize("rows", [[True, 1, 0], [1, True, 0], [1.0, False, True, 0, "a"]])
def test_true_and_1_are_two_groups_whichever_stands_first(rows: list[object]) -> None:
    found = encode_groups(rows)
    assert [found.names[code] for code in found.codes] == [
        str(int(row)) if isinstance(row, float) else str(row) for row in rows
    ]


@given(
    st.lists(
        st.sampled_from(
            [
                *(1, 1.0, True, "1", Decimal("1.00"), Decimal("2.0"), Decimal("2.00"), 2, np.nan),
                *(np.float32(0.1), float(np.float32(0.1)), date(2020, 1, 1)),
                pd.Timestamp(2020, 1, 1),
            ]
        ),
        min_size=1,
    )
)
@example([Decimal("2.00"), Decimal("2.0")])
def test_what_one_record_holds_renames_no_other_group(rows: list[Any]) -> None:
    known = sorted({name for row in rows if row == row for name in encode_groups([row]).names})
    codes = known_or_not(rows, names=tuple(known))
    for row, code in zip(rows, codes, strict=True):
        assert (known[code] if code >= 0 else None) == (
            encode_groups([row]).names[0] if row == row else None
        )


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, "", "  "])
def test_a_missing_value_is_an_error_that_names_its_rows_and_the_way_out(missing: object) -> None:
    with pytest.raises(ValueError, match=r"missing values, in row 2 .* and others.*\.fillna"):
        encode_groups(pd.Series(["F", missing, "M", missing], dtype=object))
    frame = pd.DataFrame({"sex": ["F", "M"], "race": ["B", missing]}, dtype=object)
    with pytest.raises(ValueError, match="missing values in column 'race', in row 2 "):
        encode_groups(frame)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", " a ", "", None]),
            st.sampled_from([2, 10, 2.0, np.nan]),
            st.sampled_from(["x", "y"]),
        ),
        min_size=1,
    )
)
def test_columns_are_read_value_by_value(rows: list[tuple[object, ...]]) -> None:
    """Against the definition: combine the values of each row, sort, look up."""
    frame = pd.DataFrame(rows, columns=["c", "n", "d"], dtype=object)
    missing = [not str(c or "").strip() or n != n for c, n, _ in rows]
    assert missing_groups(frame).tolist() == missing
    whole = [row for row, lacks in zip(rows, missing, strict=True) if not lacks]
    if not whole:
        return
    wanted = [(str(c).strip(), int(n), str(d)) for c, n, d in whole]
    names = tuple(f"c={c}, n={n}, d={d}" for c, n, d in sorted(set(wanted)))
    found = encode_groups(frame[~np.array(missing)])
    assert found.names == names
    assert [found.names[i] for i in found.codes] == [f"c={c}, n={n}, d={d}" for c, n, d in wanted]


@pytest.mark.usefixtures("values_shown")
def test_many_missing_rows_are_counted_for_the_curator() -> None:
    with pytest.raises(ValueError, match=r"missing values, in row 1 \(.*\) and 29 more"):
        encode_groups([None] * 30)


def test_the_groups_of_fit_time_keep_their_order_even_if_some_do_not_occur() -> None:
    found = encode_groups(["M", "M"], names=("F", "M", "X"))
    assert found.codes.tolist() == [1, 1]
    assert found.sizes.tolist() == [0, 2, 0]
    assert len(encode_groups([], names=("F", "M"))) == 0


@pytest.mark.usefixtures("values_shown")
def test_an_unseen_group_is_an_error_that_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(
        ValueError,
        match=r"'female', first in row 2 .* groups: 'Female', 'Male'\. Did you mean 'Female'",
    ):
        encode_groups(["Male", "female"], names=("Female", "Male"))


def test_codes_that_were_made_are_taken_as_they_are() -> None:
    found = encode_groups(["b", "a"], names=("b", "a"))
    again = encode_groups(found, names=found.names)
    assert again.codes.tolist() == found.codes.tolist() == [0, 1]


def test_what_is_no_column_is_refused() -> None:
    with pytest.raises(TypeError, match="Pass the column itself, not its name"):
        encode_groups("sex")
    with pytest.raises(TypeError, match="one row per record, got int"):
        encode_groups(3)
    with pytest.raises(ValueError, match=r"one or two dimensions, got shape \(2, 2, 2\)"):
        encode_groups(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="no rows, so there is no group to learn"):
        encode_groups([])
    with pytest.raises(ValueError, match="no column"):
        encode_groups(pd.DataFrame(index=[0, 1]))
    with pytest.raises(ValueError, match="names must differ"):
        GroupCodes(codes=np.array([0]), names=("a", "a"))
    with pytest.raises(ValueError, match="below 1"):
        GroupCodes(codes=np.array([1]), names=("a",))
    with pytest.raises(ValueError, match="at least one group"):
        GroupCodes(codes=np.array([], dtype=int), names=())


def test_codes_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        encode_groups(VALUES).codes[0] = 5

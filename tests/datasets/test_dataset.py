import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenhand.datasets import Dataset
from evenhand.datasets.dataset import Table


def people(n: int = 40) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": np.arange(n) + 20,
            "city": np.where(np.arange(n) % 3 == 0, "Bonn", "Ulm"),
            "sex": np.where(np.arange(n) % 2 == 0, "F", "M"),
            "race": np.where(np.arange(n) % 5 == 0, "A", "B"),
            "repaid": np.where(np.arange(n) % 4 == 0, "no", "yes"),
            "client": np.arange(n) // 4,
        }
    )


def made(frame: pd.DataFrame | None = None, **changes: Any) -> Dataset:
    named = {"label": "repaid", "sensitive": "sex", **changes}
    return Dataset.from_frame(people() if frame is None else frame, **named)


# --- from_frame ---------------------------------------------------------------------------------


def test_label_sensitive_unit_and_dropped_columns_are_no_features() -> None:
    data = made(sensitive=("sex", "race"), unit="client", drop=["city"])
    assert list(data.X) == ["age"]
    assert isinstance(data.groups, pd.DataFrame)
    assert list(data.groups) == ["sex", "race"]
    assert data.unit == "client"
    assert data.sensitive == ("sex", "race")


def test_the_sensitive_column_stays_a_feature_only_if_asked() -> None:
    assert "sex" not in made().X
    assert "sex" in made(keep_sensitive=True).X


def test_of_two_classes_the_last_is_positive_and_of_three_none() -> None:
    assert made().positive == "yes"
    assert made(positive="no").positive == "no"
    three = people().assign(repaid=np.arange(40) % 3)
    assert made(three).positive is None
    assert made(three).classes == (0, 1, 2)


def test_the_users_frame_is_left_as_it_was() -> None:
    frame = people()
    before = frame.copy(deep=True)
    made(frame).split()
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.usefixtures("values_shown")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "repayed"}, r"no column 'repayed', which label= names.*Did you mean 'repaid'\?"),
        ({"sensitive": "Sex"}, r"no column 'Sex', which sensitive= names.*Did you mean 'sex'\?"),
        ({"sensitive": ()}, "sensitive names no column"),
        ({"unit": "cliemt"}, r"no column 'cliemt', which unit= names.*Did you mean 'client'\?"),
        ({"drop": ["towm"]}, r"no column 'towm', which drop= names.*Its columns: 'age', 'city'"),
        ({"positive": "Yes"}, "positive must be one of.*'no', 'yes'; got 'Yes'. Did you mean"),
        ({"sensitive": "repaid"}, "label 'repaid' cannot be the sensitive attribute"),
        ({"drop": ["age", "city", "race", "client"]}, "No column is left for the features"),
    ],
)
def test_a_wrong_name_is_an_error_that_helps(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


@pytest.mark.usefixtures("values_shown")
def test_missing_labels_are_refused_with_rows_number_and_way_out() -> None:
    frame = people()
    frame.loc[[3, 7, 8, 9, 10, 11, 12], "repaid"] = None
    with pytest.raises(ValueError, match="label 'repaid' is missing in row 4 ") as caught:
        made(frame)
    assert "and 6 more" in str(caught.value)
    assert "dropna(subset=['repaid'])" in str(caught.value)


@pytest.mark.usefixtures("values_shown")
def test_missing_groups_and_units_are_refused() -> None:
    frame = people()
    frame.loc[5, "sex"] = None
    with pytest.raises(ValueError, match=r"'sex' is missing in row 6 .*fillna"):
        made(frame)
    frame = people().astype({"client": float})
    frame.loc[6, "client"] = np.nan
    with pytest.raises(ValueError, match=r"unit 'client' is missing in row 7 "):
        made(frame, unit="client")


@pytest.mark.usefixtures("values_shown")
def test_one_class_one_group_no_rows_and_repeated_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'repaid' has one class only, 'yes',"):
        made(people().assign(repaid="yes"))
    with pytest.raises(ValueError, match=r"sensitive attribute 'sex' has one group only, 'F',"):
        made(people().assign(sex="F"))
    with pytest.raises(ValueError, match="sensitive attribute 'sex' has one group only"):
        made(people().assign(sex="F"), sensitive=("race", "sex"))
    with pytest.raises(ValueError, match="The table has no rows"):
        made(people().head(0))
    with pytest.raises(ValueError, match="more than one column named 'age'"):
        made(people().rename(columns={"city": "age"}))


@pytest.mark.usefixtures("values_shown")
def test_a_label_of_amounts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"hold classes, got a number that is not whole, 0\.5"):
        made(people().assign(repaid=np.arange(40) / 2))


def test_a_label_that_cannot_be_sorted_is_refused() -> None:
    mixed = pd.Series(["yes", 1] * 20, dtype=object)
    with pytest.raises(TypeError, match=r"mixes values.*astype\(str\)"):
        made(people().assign(repaid=mixed))


# --- split --------------------------------------------------------------------------------------

fractions = st.floats(0.05, 0.8)


@given(n=st.integers(20, 120), public=fractions, test=fractions, seed=st.integers(0, 99))
def test_the_parts_are_disjoint_cover_all_and_have_the_stated_sizes(
    n: int, public: float, test: float, seed: int
) -> None:
    data = made(people(n))
    n_test = round(test * n)
    n_public = round(public * (n - n_test))
    assume(n_public > 0)  # else it is refused: see the test of impossible fractions
    split = data.split(public=public, test=test, random_state=seed)
    rows = [split.private.X.index, split.public.X.index, split.test.X.index]
    assert sorted(i for part in rows for i in part) == list(range(n))
    assert [len(part) for part in rows] == [n - n_test - n_public, n_public, n_test]


@given(
    sizes=st.lists(st.integers(1, 9), min_size=10, max_size=30),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_records_of_one_unit_stay_on_one_side(sizes: list[int], seed: int, data: Any) -> None:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    owner = np.array(data.draw(st.permutations(owner.tolist())))
    frame = people(len(owner)).assign(client=owner, sex=np.arange(len(owner)) % 2, repaid=owner % 2)
    try:
        split = made(frame, unit="client").split(public=0.3, test=0.3, random_state=seed)
    except ValueError as error:  # each client falls on a side of its own accord
        assume("leave no client" not in str(error))
        raise
    held = [set(part.units) for part in vars(split).values()]
    assert sum(map(len, held)) == len(sizes)
    assert set.union(*held) == set(range(len(sizes)))
    assert sum(len(t) for t in vars(split).values()) == len(owner)


def test_a_unit_that_leaves_moves_no_other_and_no_other_row() -> None:
    owner = np.arange(120) % 30
    frame = people(120).assign(client=owner, sex=np.arange(120) // 30 % 2, repaid=owner % 2)

    def rows(keep: np.ndarray) -> dict[str, list[int]]:
        split = made(frame[keep], unit="client").split(public=0.3, test=0.3, random_state=0)
        return {name: part.X.index.tolist() for name, part in vars(split).items()}

    everybody = rows(np.full(120, True))
    for client in range(30):
        gone = set(np.flatnonzero(owner == client))
        left = {name: [i for i in part if i not in gone] for name, part in everybody.items()}
        assert rows(owner != client) == left


def test_every_part_keeps_its_rows_together() -> None:
    frame = people(100)
    for part in vars(made(frame).split()).values():
        assert part.X["age"].tolist() == frame.loc[part.X.index, "age"].tolist()
        assert part.groups.tolist() == frame.loc[part.X.index, "sex"].tolist()
        if part.y is not None:
            assert part.y.tolist() == frame.loc[part.X.index, "repaid"].tolist()


def test_the_split_is_repeated_by_its_seed_and_changed_by_another() -> None:
    data = made(people(100))
    first, again, other = (data.split(random_state=seed) for seed in (1, 1, 2))
    assert list(first.private.X.index) == list(again.private.X.index)
    assert set(first.private.X.index) != set(other.private.X.index)


def test_the_order_of_rows_depends_on_their_number_and_the_seed_alone() -> None:
    # Records are dealt to teachers by position: a record's values must not move other records.
    frame = people(60)
    changed = frame.copy()
    changed.loc[17, ["age", "sex", "repaid"]] = [99, "M", "no"]
    before, after = made(frame).split(), made(changed).split()
    for part in ("private", "public", "test"):
        assert list(getattr(before, part).X.index) == list(getattr(after, part).X.index)


def test_rows_come_in_a_random_order() -> None:
    # In the order of the file, teachers by position would get one city, or one year, each.
    rows = np.asarray(made(people(200)).split().private.X.index)
    assert abs(np.corrcoef(rows, np.arange(len(rows)))[0, 1]) < 0.3


def test_the_public_part_has_no_labels_but_its_groups() -> None:
    split = made().split()
    assert split.public.y is None
    assert split.public.groups is not None
    assert "repaid" not in split.public.X
    assert split.private.y is not None
    assert split.test.y is not None


@pytest.mark.parametrize(
    ("fraction", "message"),
    [
        ({"public": 1.0}, "public must lie in [0, 1), got public=1.0"),
        ({"test": -0.1}, "test must lie in [0, 1), got test=-0.1"),
        ({"test": 0.001}, "test=0.001 of 40 records leaves none for the test part"),
        ({"public": 0.001}, "public=0.001 of 40 records leaves none for the public part"),
        ({"public": 0.99, "test": 0.99}, "leaves none for the public part"),
        ({"public": 0.99}, "leave none for the private part"),
    ],
)
def test_impossible_fractions_are_refused(fraction: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        made().split(**fraction)


def test_zero_leaves_a_part_out_on_purpose() -> None:
    split = made().split(public=0, test=0)
    assert (len(split.private), len(split.public), len(split.test)) == (40, 0, 0)


def letters(n: int) -> pd.DataFrame:
    return pd.DataFrame({"a": range(n), "b": list("xyzuvw")[:n]})


def test_take_picks_the_same_records_of_every_part() -> None:
    X = letters(4)
    table = Table(X=X, y=X["a"] * 10, groups=X["b"], units=X["a"] // 2).take([3, 1])
    assert len(table) == 2
    assert table.X["a"].tolist() == [3, 1]
    assert table.y is not None
    assert table.y.tolist() == [30, 10]
    assert table.groups is not None
    assert table.groups.tolist() == ["u", "y"]
    assert table.units is not None
    assert table.units.tolist() == [1, 0]


def test_a_table_without_labels_has_no_way_back_to_them() -> None:
    X = letters(3)
    table = Table(X=X, y=X["a"], groups=X["b"]).without_labels()
    assert table.y is None
    assert table.take([0]).y is None
    assert "y" not in table.X


def test_parts_of_different_lengths_are_refused() -> None:
    X = letters(3)
    with pytest.raises(ValueError, match="X has 3, y has 2"):
        Table(X=X, y=X["a"].head(2))


def test_parts_under_another_index_are_refused() -> None:
    X = letters(3)
    shuffled = X["a"].iloc[[2, 0, 1]]
    with pytest.raises(ValueError, match=r"y must have the same index as X.*y\.index = X\.index"):
        Table(X=X, y=shuffled)

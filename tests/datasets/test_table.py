import pandas as pd
import pytest

from evenhand.datasets.table import Table


def frame(n: int) -> pd.DataFrame:
    return pd.DataFrame({"a": range(n), "b": list("xyzuvw")[:n]})


def test_take_picks_the_same_records_of_every_part() -> None:
    X = frame(4)
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
    X = frame(3)
    table = Table(X=X, y=X["a"], groups=X["b"]).without_labels()
    assert table.y is None
    assert table.take([0]).y is None
    assert "y" not in table.X


def test_parts_of_different_lengths_are_refused() -> None:
    X = frame(3)
    with pytest.raises(ValueError, match="X has 3, y has 2"):
        Table(X=X, y=X["a"].head(2))


def test_parts_under_another_index_are_refused() -> None:
    X = frame(3)
    shuffled = X["a"].iloc[[2, 0, 1]]
    with pytest.raises(ValueError, match=r"y must have the same index as X.*y\.index = X\.index"):
        Table(X=X, y=shuffled)

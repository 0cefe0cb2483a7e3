"""Tables of many owners, and the pickles that they come out of."""

import lzma
import os
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Dataset
from evenhand.datasets.catalogue import KNOWN
from evenhand.datasets.pickled_frames import as_csv, read_frame_of
from evenhand.datasets.silos import (
    by_owner,
    load_chem97,
    load_math_achieve,
    load_rwm5yr,
    load_star,
)


class _Names:
    """Pickles as a call of the function that it is made with."""

    def __init__(self, function: object, *given: object) -> None:
        self.call = function, given

    def __reduce__(self) -> object:
        return self.call


@pytest.mark.parametrize("function", [os.system, eval, pd.read_pickle, np.load, np.save])
def test_a_pickle_that_names_anything_but_a_frame_is_refused(function: object) -> None:
    hostile = lzma.compress(pickle.dumps(_Names(function, "touch /tmp/never")))
    with pytest.raises(pickle.UnpicklingError, match="not admitted"):
        read_frame_of(hostile)


def test_what_is_no_table_or_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no table"):
        read_frame_of(lzma.compress(pickle.dumps([1, 2])))
    with pytest.raises(ValueError, match="larger than 64 MiB"):
        read_frame_of(lzma.compress(bytes((1 << 26) + 1), preset=0))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "load", "rows", "owners"),
    [
        ("star", load_star, 5782, 79),
        ("math-achieve", load_math_achieve, 7185, 160),
        ("chem97", load_chem97, 31022, 131),
        ("rwm5yr", load_rwm5yr, 19609, 6127),
    ],
)
def test_a_table_has_its_owners(
    name: str, load: Callable[[], Dataset], rows: int, owners: int
) -> None:
    if KNOWN[name].folder is None:
        pytest.skip(f"not on this machine: evenhand datasets fetch {name}")
    data, owner = by_owner(load())
    assert (len(data.X), owner.nunique()) == (rows, owners)
    assert "owner" not in data.X
    assert 0.4 < data.y.mean() < 0.7


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "share", "groups"),
    [("hmda", 2380, 285, ["Black", "other"]), ("resume", 4870, 392, ["Black", "White"])],
)
def test_decisions_that_people_took_are_read_out_of_the_package(
    name: str, rows: int, share: int, groups: list[str], real_data: Callable[..., Dataset]
) -> None:
    if KNOWN[name].folder is None:
        pytest.skip(f"not on this machine: evenhand datasets fetch {name}")
    data = real_data(name)
    assert (len(data.X), int(data.y.sum())) == (rows, share)
    assert sorted(data.groups.unique()) == groups
    assert not {"deny", "afam", "race", "received_callback"} & set(data.X)


def test_a_frame_of_this_pandas_names_other_parts_and_is_refused_not_misread() -> None:
    """The package was made by pandas 2.2; what another version writes is no table of it."""
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    try:
        made = as_csv("a", "b")(lzma.compress(pickle.dumps(frame)))
    except pickle.UnpicklingError:
        return
    assert made == b"a,b\n1,x\n2,y\n"

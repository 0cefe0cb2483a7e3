"""From sensitive features in any shape to one group code per record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from evenhand import _checks, _values
from evenhand._frames import as_pandas
from evenhand._numerals import natural_order, text_of
from evenhand.typing import BoolArray, IntArray

_ALIKE: Final = frozenset({"string", "boolean", "integer", "floating"})
"""Kinds of values, by ``infer_dtype``, of which equal ones have one name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupCodes:
    """One whole number per record, and what each number stands for."""

    codes: IntArray
    """Position of each record's group in ``names``. Stored read-only. Shape (n,)."""
    names: tuple[str, ...]
    """The groups, in the public order that every table of a run shares."""

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("names must hold at least one group, got none.")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"names must differ from each other, got {self.names!r}.")
        codes = _checks.codes("codes", self.codes, len(self.names)).copy()
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_groups(self) -> int:
        """Number of groups, those without a record included."""
        return len(self.names)

    @property
    def sizes(self) -> IntArray:
        """Records per group, shape (n_groups,)."""
        return np.bincount(self.codes, minlength=self.n_groups).astype(np.int64)


def encode_groups(
    sensitive_features: object,
    *,
    names: tuple[str, ...] | None = None,
    argument: str = "sensitive_features",
    at: IntArray | None = None,
) -> GroupCodes:
    """Turn sensitive features into group codes.

    Parameters
    ----------
    sensitive_features : list, array, Series or DataFrame (pandas, polars, ...) of n rows
        One column gives groups named by its values. Several columns are combined: the groups are
        the combinations that occur, named like ``"sex=Female, race=Black"``.
    names : tuple of str, optional
        The groups known from fit time, in their order. A value outside them is an error. Without
        it the groups are those that occur, sorted (numbers by size, the rest as text).
    argument : str
        What messages call ``sensitive_features``.
    at : array of int, shape (n,), optional
        Where each row stands in what the user gave, for messages.

    Returns
    -------
    GroupCodes

    Raises
    ------
    ValueError
        If a value is missing (None, NaN or blank), if a group is not among ``names``, or if there
        are no rows and no ``names`` to learn the groups from.

    Notes
    -----
    The *list* of groups is treated as public, as a column's codebook is.

    Examples
    --------
    >>> encode_groups(["M", "F", "M"])
    GroupCodes(codes=array([1, 0, 1]), names=('F', 'M'))
    >>> import pandas as pd
    >>> encode_groups(pd.DataFrame({"sex": ["F", "M"], "age": [30, 9]})).names
    ('sex=F, age=30', 'sex=M, age=9')
    """
    columns = _read(sensitive_features, argument)
    _refuse_missing(columns, argument, at)
    first, *more = columns
    codes, combinations = first.codes, np.arange(len(first.values))[:, None]
    for column in more:
        width = len(column.values)
        found, codes = np.unique(codes * width + column.codes, return_inverse=True)
        combinations = np.column_stack([combinations[found // width], found % width])
    seen = tuple(_named(columns, row) for row in combinations)
    if names is None:
        if not len(codes):
            raise ValueError(
                f"{argument} has no rows, so there is no group to learn. Pass the known groups as "
                f"names=."
            )
        return GroupCodes(codes=codes, names=seen)
    known = {name: i for i, name in enumerate(names)}
    for i, name in enumerate(seen):
        if name not in known:
            row = int(np.flatnonzero(codes == i)[0])
            row = row if at is None else int(at[row])
            raise ValueError(
                f"{argument} holds the group {_values.quoted(name)}, first in "
                f"{_values.row(row)}, which is not among the known groups: "
                f"{', '.join(map(repr, names))}."
                f"{_values.if_shown(_checks.did_you_mean(name, names))} Map it to a known group, "
                f"or leave its rows out."
            )
    to_known = np.array([known[name] for name in seen], dtype=np.int64)
    return GroupCodes(codes=to_known[codes], names=tuple(names))


def known_or_not(sensitive_features: object, names: tuple[str, ...]) -> IntArray:
    """Return codes of the groups of n rows, -1 where a group is none of ``names`` or is missing.

    Examples
    --------
    >>> known_or_not(["M", "X", None], names=("F", "M"))
    array([ 1, -1, -1])
    """
    columns = _read(sensitive_features)
    missing = np.any([column.missing for column in columns], axis=0)
    combinations = np.column_stack([column.codes for column in columns])
    known = {name: i for i, name in enumerate(names)}
    seen = {
        tuple(row): known.get(_named(columns, np.array(row)), -1)
        for row in np.unique(combinations[~missing], axis=0).tolist()
    }
    found = [seen.get(tuple(row), -1) for row in combinations.tolist()]
    return np.array(found, dtype=np.int64)


def missing_groups(sensitive_features: object) -> BoolArray:
    """Return which of n rows lack a value (None, NaN or blank) in some column, shape (n,)."""
    out: BoolArray = np.any([column.missing for column in _read(sensitive_features)], axis=0)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _Column:
    """One sensitive feature: code -1 where it is missing, and what the codes stand for."""

    name: str
    codes: IntArray
    values: tuple[str, ...]

    @property
    def missing(self) -> BoolArray:
        return self.codes < 0

    @classmethod
    def of(cls, name: str, column: pd.Series[Any]) -> _Column:
        found, uniques = pd.factorize(column)
        if infer_dtype(column) not in _ALIKE:
            # To pandas True is 1, and 2.00 is 2.0: the row that stands first would name the group.
            found, uniques = pd.factorize(column.map(text_of, na_action="ignore"))
        texts = [text_of(value).strip() for value in uniques]
        ordered = natural_order(text for text in texts if text)
        place = {text: j for j, text in enumerate(ordered)}
        # Missing values have the code -1, and find the last place here.
        places = np.array([*(place.get(text, -1) for text in texts), -1], dtype=np.int64)
        return cls(name=name, codes=places[found], values=ordered)


def _read(features: object, argument: str = "sensitive_features") -> list[_Column]:
    return [_Column.of(name, column) for name, column in sensitive_columns(features, argument)]


def _named(columns: list[_Column], row: IntArray) -> str:
    """Name a combination of values, one of each column."""
    texts: list[str] = [column.values[i] for column, i in zip(columns, row, strict=True)]
    if len(texts) == 1:
        return texts[0]
    return ", ".join(f"{c.name}={text}" for c, text in zip(columns, texts, strict=True))


def sensitive_columns(
    features: object, argument: str = "sensitive_features"
) -> list[tuple[str, pd.Series[Any]]]:
    """Return (name, values) per column, whatever the container."""
    if isinstance(features, GroupCodes):
        features = np.array(features.names, dtype=object)[features.codes]
    features = as_pandas(features)
    if isinstance(features, pd.DataFrame):
        frame = features
    elif isinstance(features, pd.Series):
        frame = features.to_frame()
    elif isinstance(features, str):
        raise TypeError(
            f"{argument} must hold one value per record, got the text {features!r}. "
            "Pass the column itself, not its name."
        )
    else:
        # As objects: a list of mixed values would otherwise become one array of text.
        array = features if isinstance(features, np.ndarray) else _object_array(features, argument)
        if array.ndim not in (1, 2):
            raise ValueError(
                f"{argument} must have one or two dimensions, got shape {array.shape}."
            )
        frame = pd.DataFrame(array.reshape(len(array), -1) if array.size else array)
        frame.columns = pd.Index([f"feature_{i}" for i in range(frame.shape[1])])
    if frame.shape[1] == 0:
        if len(frame):
            raise ValueError(f"{argument} has no column.")
        frame = pd.DataFrame({"feature_0": []})
    return [
        (str(name), frame.iloc[:, i].astype(object).reset_index(drop=True))
        for i, name in enumerate(frame.columns)
    ]


def _object_array(features: Any, argument: str) -> np.ndarray[Any, np.dtype[Any]]:
    if not hasattr(features, "__array__") and not hasattr(features, "__iter__"):
        raise TypeError(
            f"{argument} must be an array, a Series or a DataFrame with one row per record, got "
            f"{type(features).__name__}."
        )
    if hasattr(features, "__array__"):
        return np.asarray(features)
    rows = list(features)
    if rows and isinstance(rows[0], list | tuple | np.ndarray):
        return np.array([list(row) for row in rows], dtype=object)
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


def _refuse_missing(columns: list[_Column], argument: str, at: IntArray | None) -> None:
    for column in columns:
        rows = np.flatnonzero(column.missing)
        if rows.size:
            where = f" in column {column.name!r}" if len(columns) > 1 else ""
            said = _values.rows(rows if at is None else at[rows])
            raise ValueError(
                f"{argument} has missing values{where}, in {said}. Leave these rows out, or make "
                f"them a group of their own, as with .fillna('unknown')."
            )

"""Which public rows a vote is about: a digest of each column, so that a copy can be recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._frames import as_pandas
from evenhand._numerals import text_of


@dataclass(frozen=True, kw_only=True)
class PublicRows:
    """How many public rows there are, and a digest of each of their columns.

    Examples
    --------
    >>> rows = PublicRows.of(pd.DataFrame({"age": [31, 44], "town": ["a", None]}))
    >>> rows.n_rows, sorted(rows.digests)
    (2, ['age', 'town'])
    >>> rows.differences(PublicRows.of(pd.DataFrame({"age": [31.0, 45.0]})))
    "other values in the column 'age'"
    """

    n_rows: int
    digests: Mapping[str, str]
    """SHA-256 of every column by its name, of the texts of its cells in the order of the rows: 1,
    1.0 and "1" are one text, and a missing cell is none of them.
    """

    def __post_init__(self) -> None:
        _checks.at_least("n_rows", self.n_rows, 1)
        if not isinstance(self.digests, Mapping):
            raise TypeError("digests must be texts by the names of the columns.")
        for name, digest in self.digests.items():
            if not isinstance(name, str) or not isinstance(digest, str):
                raise TypeError("digests must be texts by the names of the columns.")

    @classmethod
    def of(cls, X: Any) -> PublicRows:
        """Return the digests of a table; columns of an array are called by their position."""
        X = as_pandas(X)
        if not hasattr(X, "columns"):
            rows = np.asarray(X)
            # Pictures: each is one long row.
            X = pd.DataFrame(rows.reshape(len(rows), -1))
        return cls(
            n_rows=len(X), digests={str(name): _digest(X.iloc[:, i]) for i, name in _named(X)}
        )

    def differences(self, known: PublicRows) -> str:
        """Say what of ``known`` these rows are not; empty where they are the same rows.

        Columns that ``known`` does not have are passed over: an owner may have been given more.
        """
        if self.n_rows != known.n_rows:
            return f"{self.n_rows} rows instead of {known.n_rows}"
        absent = [name for name in known.digests if name not in self.digests]
        if absent:
            return f"no column {', '.join(map(repr, absent[:5]))}"
        other = [name for name, found in known.digests.items() if self.digests[name] != found]
        if other:
            return f"other values in the column {', '.join(map(repr, other[:5]))}"
        return ""


def _named(X: pd.DataFrame) -> list[tuple[int, Any]]:
    names = [str(name) for name in X.columns]
    if len(set(names)) != len(names):
        raise ValueError("The public rows have two columns of one name. Rename one of them.")
    return list(enumerate(X.columns))


def _digest(column: pd.Series[Any]) -> str:
    """Hash the cells, each with its length in front: no two columns share a text."""
    found = hashlib.sha256()
    gone = column.isna().to_numpy(dtype=bool)
    for value, missing in zip(column.tolist(), gone, strict=True):
        text = b"" if missing else text_of(value).encode()
        found.update(b"-" if missing else b"%d:" % len(text))
        found.update(text)
    return found.hexdigest()

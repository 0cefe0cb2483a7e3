"""What a sweep trains and measures on: private, public and test rows of one data set and seed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, datasets
from evenhand.datasets import Dataset, read_table
from evenhand.frontier.run import DATA_KINDS

LOADERS: Final[Mapping[str, Callable[[], Dataset]]] = {
    "adult": datasets.load_adult,
    "acs-income": datasets.load_acs_income,
    "bank": datasets.load_bank,
    "credit-default": datasets.load_credit_default,
    "german": datasets.load_german,
    "parkinsons": datasets.load_parkinsons,
}
"""The built-in data sets by name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Three tables and their roles.

    Parameters
    ----------
    X, y, groups : private rows; ``groups`` is read by the methods that need it
    X_public, groups_public : public rows
    X_test, y_test, groups_test : rows to measure on
    positive : hashable or None
        The favourable class.
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    groups: Any
    X_public: pd.DataFrame
    groups_public: Any
    X_test: pd.DataFrame
    y_test: pd.Series[Any]
    groups_test: Any
    positive: Any


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where the rows are, and what their columns are for.

    Parameters
    ----------
    name : str
        A built-in data set, or a name for the files.
    private, public, test : str, optional
        Files, all three or none. Labels in the public file are not read.
    label : str
    sensitive : tuple of str
    drop : tuple of str
        Columns to leave out.
    positive : str or int, optional
    public_fraction, test_fraction : float
        How a built-in data set is split.
    kind : {"private", "public stand-in", "synthetic stand-in"}
        Whose rows they are: with a stand-in no release is made.

    Privacy
    -------
    ``fingerprint`` reads names alone. Rows are read where they are needed, by every process for
    itself: they do not travel through a scheduler.
    """

    name: str
    private: str | None = None
    public: str | None = None
    test: str | None = None
    label: str = ""
    sensitive: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    positive: str | int | None = None
    public_fraction: float = 0.2
    test_fraction: float = 0.25
    kind: str = "private"

    def __post_init__(self) -> None:
        _checks.one_of("kind", self.kind, DATA_KINDS[:3])
        files = {"private": self.private, "public": self.public, "test": self.test}
        absent = [name for name, file in files.items() if file is None]
        if not self.has_files:
            _checks.one_of("set", self.name, LOADERS)
            _checks.open_unit("public_fraction", self.public_fraction)
            _checks.open_unit("test_fraction", self.test_fraction)
            return
        if absent:
            raise ValueError(
                f"[data] names files, and {' and '.join(absent)} is missing. A frontier needs "
                f"private rows to learn from, public rows to ask about, and test rows to measure "
                f"on; or name a built-in set = {', '.join(map(repr, LOADERS))}."
            )
        if not self.label or not self.sensitive:
            raise ValueError(
                "[data] names files, and label or sensitive is missing. Name the column of the "
                'classes and those of the groups, for example label = "income", '
                'sensitive = ["sex"].'
            )

    @property
    def has_files(self) -> bool:
        """Whether the rows are the user's own."""
        return any((self.private, self.public, self.test))

    @property
    def fingerprint(self) -> str:
        """Public fingerprint: names of files and columns, roles and split. No row is in it."""
        said: list[Any] = [self.name, self.label, self.sensitive, self.drop, self.positive]
        said.append(self.kind)
        if self.private is not None:
            files = (self.private, self.public, self.test)
            said += [[Path(str(file)).name for file in files], list(_columns(self.private))]
        else:
            said += [self.public_fraction, self.test_fraction]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def load(self, seed: int) -> Material:
        """Read the rows; the seed decides the split of a built-in data set."""
        return _loaded(self, seed)


@functools.lru_cache(maxsize=4)
def _loaded(source: DataSource, seed: int) -> Material:
    if source.has_files:
        return _from_files(source)
    data = _built_in(source.name)
    split = data.split(public=source.public_fraction, test=source.test_fraction, random_state=seed)
    return Material(
        X=split.private.X,
        y=_labels(split.private.y),
        groups=split.private.groups,
        X_public=split.public.X,
        groups_public=split.public.groups,
        X_test=split.test.X,
        y_test=_labels(split.test.y),
        groups_test=split.test.groups,
        positive=data.positive,
    )


@functools.lru_cache(maxsize=2)
def _built_in(name: str) -> Dataset:
    return LOADERS[name]()


def _labels(y: pd.Series[Any] | None) -> pd.Series[Any]:
    assert y is not None
    return y


@functools.lru_cache(maxsize=8)
def _columns(file: str) -> tuple[str, ...]:
    return tuple(map(str, read_table(file).columns))


def _from_files(source: DataSource) -> Material:
    whole = {
        part: Dataset.from_frame(
            _with_label(read_table(str(file)), source)
            if part == "public"
            else read_table(str(file)),
            label=source.label,
            sensitive=source.sensitive,
            drop=source.drop,
            name=f"{file}",
        )
        for part, file in (
            ("private", source.private),
            ("public", source.public),
            ("test", source.test),
        )
    }
    private, public, test = whole["private"], whole["public"], whole["test"]
    classes = private.classes
    strange = [value for value in test.classes if value not in classes]
    if strange:
        raise ValueError(
            f"{source.test} holds the class {strange[0]!r}, which no private row has: "
            f"{', '.join(map(repr, classes))}.{_checks.did_you_mean(strange[0], classes)}"
        )
    positive = source.positive
    if positive is None and len(classes) == 2:
        positive = classes[1]  # type: ignore[assignment]  # classes are hashable, and shown as text
    return Material(
        X=private.X,
        y=private.y,
        groups=private.groups,
        X_public=public.X[list(private.X.columns)],
        groups_public=public.groups,
        X_test=test.X[list(private.X.columns)],
        y_test=test.y,
        groups_test=test.groups,
        positive=positive,
    )


def _with_label(frame: pd.DataFrame, source: DataSource) -> pd.DataFrame:
    """Put two made-up classes in the place of public labels, which are not read."""
    return frame.assign(**{source.label: np.arange(len(frame)) % 2})

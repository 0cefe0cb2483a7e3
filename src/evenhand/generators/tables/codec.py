"""A table as whole numbers and back: what a generator learns from, and what a user gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._checks import did_you_mean
from evenhand._frames import DAYS, OF_DAYS
from evenhand._numerals import text_of
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, TypedTable, some, the
from evenhand.datasets.dates import dates_of
from evenhand.datasets.patterns import Pattern
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.conditions import Conditions
from evenhand.generators.tables.bins import Bins, Cells
from evenhand.generators.tables.dtypes import category_dtype, dtype_text, frame_dtype, holds_missing
from evenhand.generators.tables.made_columns import MadeColumn
from evenhand.typing import Array, IntArray

OTHER: Final = "other"
"""The category of values that were not named, where a column holds text."""

BYTES_PER_CELL: Final = 100
"""Of a table that is drawn and written; 25 to 65 were measured for drawing alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCode:
    """One column: its states, numbered from 0; the last one is "missing" where there is one."""

    schema: ColumnSchema
    """What is public about it. A numeric column has bounds."""
    dtype: str
    """Of the user's column, to be given back."""
    bins: Bins | None = None
    """Of a numeric column."""

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.schema.name

    @property
    def has_missing(self) -> bool:
        """Whether a state stands for "missing"."""
        return self.schema.missing and holds_missing(self.dtype)

    @property
    def n_values(self) -> int:
        """States other than "missing"."""
        return len(self.schema.categories) if self.bins is None else self.bins.n_bins

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.n_values + self.has_missing

    def cells(self, column: Column, *, released: bool = False) -> IntArray:
        """Return the category or the cell of each row; what is missing is one more than these.

        A value that the schema does not allow is an error; of a ``released`` schema it is "other"
        or missing where there is such a state, and -1 where the row must be left out. Each looks
        at its own row alone.
        """
        if self.bins is None:
            n, places = len(self.schema.categories), column.places(self.schema.categories)
            gone, strange = column.codes < 0, (places < 0) & (column.codes >= 0)
            if released and OTHER in self.schema.categories:
                places = np.where(strange, self.schema.categories.index(OTHER), places)
            elif released:
                gone = gone | strange if self.schema.missing else gone & ~strange
            elif strange.any():
                self._refuse(column, int(np.flatnonzero(strange)[0]))
        else:
            numbers = self.schema.numbers(column)
            numbers = np.nan_to_num(numbers, nan=0.0, posinf=1e308, neginf=-1e308)
            n, places, gone = len(self.bins.cells), self.bins.cells.codes(numbers), column.missing
        if gone.any() and not self.has_missing:
            raise ValueError(
                f"Column {self.name!r} of {the(column.where)} has no value in "
                f"{_row(column, np.flatnonzero(gone)[0])}, and the schema does not say that values "
                f'may be missing. Declare it with {{"missing": true}}, or leave these rows out.'
            )
        cells: IntArray = np.where(gone, n, places)
        return cells

    def states(self, cells: IntArray) -> IntArray:
        """Return the states of these cells."""
        return (
            cells if self.bins is None else np.append(self.bins.bin_of_cell, self.n_values)[cells]
        )

    def _refuse(self, column: Column, position: int) -> None:
        """Raise ValueError for a value that is no category."""
        text, known = column.texts[column.codes[position]], self.schema.categories
        raise ValueError(
            f"Column {self.name!r} of {the(column.where)} holds {_values.quoted(text)} in "
            f"{_row(column, position)}, which is not a category of the schema: "
            f"{', '.join(map(repr, known[:12]))}{', ...' if len(known) > 12 else ''}."
            f"{_values.if_shown(did_you_mean(text, known))} Correct the value, or declare it."
        )

    @property
    def holds_days(self) -> bool:
        """Whether it is a column of days, of the dtype that stands for them."""
        return self.schema.date_unit == "day" and self.dtype == OF_DAYS

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pd.Series[Any]:
        """Return values of the user's dtype; numbers are drawn inside their bins."""
        missing = codes >= self.n_values
        known = np.where(missing, 0, codes)
        if self.bins is None:
            texts = np.array(self.schema.categories, dtype=object)[known]
            if self.schema.pattern is not None:
                rest = Pattern(self.schema.pattern)
                made = rest.made(rng.integers(0, rest.capacity, len(texts)))
                texts = np.where(texts == OTHER, texts, texts + made)
            return self._texts(texts, missing)
        numbers = self.bins.draw(known, rng)
        if missing.any():
            numbers = np.where(missing, np.nan, numbers)
        if self.schema.date_unit is not None:
            return dates_of(numbers, self.schema.date_unit, self.dtype).rename(self.name)
        if self.dtype.startswith(("int", "uint")):
            return pd.Series(np.round(numbers).astype(self.dtype), name=self.name)
        return pd.Series(numbers, name=self.name).astype(frame_dtype(self.dtype))

    def _texts(self, texts: Array, missing: Array) -> pd.Series[Any]:
        if self.dtype.startswith("category"):
            places = {text: i for i, text in enumerate(self.schema.categories)}
            at = [-1 if gone else places[t] for t, gone in zip(texts, missing, strict=True)]
            dtype = category_dtype(self.dtype, self.schema.categories)
            return pd.Series(pd.Categorical.from_codes(at, dtype=dtype), name=self.name)
        if self.dtype.lower().startswith("bool"):
            said = [None if g else t == "True" for t, g in zip(texts, missing, strict=True)]
            return pd.Series(said, name=self.name, dtype=frame_dtype(self.dtype))
        if self.dtype.lower().startswith(("int", "uint")):
            # No floats: beyond 2 ** 53 these would be other numbers.
            whole = [None if g else _whole(t) for t, g in zip(texts, missing, strict=True)]
            return pd.Series(whole, name=self.name, dtype=frame_dtype(self.dtype))
        if self.dtype.lower().startswith("float"):
            numbers = np.where(missing, np.nan, [float(text) for text in texts])
            return pd.Series(numbers, name=self.name).astype(frame_dtype(self.dtype))
        column = pd.Series(texts, name=self.name, dtype=object)
        column[missing] = None
        return column.astype(frame_dtype(self.dtype))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "schema": self.schema.to_dict(),
            "dtype": self.dtype,
            "bins": None if self.bins is None else self.bins.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ColumnCode:
        """Read what ``to_dict`` wrote."""
        (schema,) = Schema.from_dict({"columns": [values["schema"]]}).columns
        bins = None if values["bins"] is None else Bins.from_dict(values["bins"])
        return cls(schema=schema, dtype=str(values["dtype"]), bins=bins)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableCodec:
    """All columns of a table, in its order.

    Privacy
    -------
    Made of a public schema, the names and dtypes of the columns, which are taken as public, and,
    once ``with_bins`` was called, of noisy counts.
    """

    columns: tuple[ColumnCode, ...]
    given: tuple[str, ...]
    """The label's column, then the sensitive ones: what a generator is conditioned on. The others
    are the features.
    """
    made: tuple[MadeColumn, ...] = ()
    """Columns that are not learnt, in the table's order."""
    numbered: tuple[str, ...] = ()
    """Those whose names are whole numbers in the user's table."""

    @classmethod
    def of(cls, schema: Schema, table: TypedTable, given: Sequence[str]) -> TableCodec:
        """Start with one bin per cell; ``table`` gives the order of the columns and dtypes only."""
        known = {column.name: column for column in schema.columns}
        codes = []
        for name in table:
            column, dtype = known[name], dtype_text(table[name].dtype)
            if column.kind == "categorical":
                column = _in_order(column, table[name].dtype)
                codes.append(ColumnCode(schema=column, dtype=dtype))
                continue
            if column.bounds is None:
                raise ValueError(
                    f"The numeric column {name!r} needs bounds in the schema, such as "
                    f'{{"bounds": [0, 100]}}: its smallest and largest private value may not be '
                    f"read. Without a schema they are released from the budget."
                )
            whole = dtype.lower().startswith(("int", "uint")) or column.date_unit is not None
            cells = Cells.between(*column.bounds, decimals=0 if whole else column.decimals)
            codes.append(ColumnCode(schema=column, dtype=dtype, bins=Bins.single(cells)))
        return cls(columns=tuple(codes), given=tuple(given))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are learnt."""
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> Schema:
        """What is public about the columns, also of those that are made anew."""
        learnt, made = (tuple(c.schema for c in of) for of in (self.columns, self.made))
        return Schema(columns=(*learnt, *made))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns other than label and sensitive ones, in the table's order."""
        return tuple(name for name in self.names if name not in self.given)

    @property
    def conditions(self) -> Conditions:
        """The combinations of label and sensitive values."""
        return Conditions(
            names=self.given,
            categories=tuple(self[name].schema.categories for name in self.given),
        )

    @property
    def memory(self) -> tuple[str, float]:
        """Return what one record is, and the bytes that it needs."""
        n = len(self.columns) + len(self.made)
        return f"rows of {n} columns", float(n * BYTES_PER_CELL)

    def __getitem__(self, name: str) -> ColumnCode:
        return self.columns[self.names.index(name)]

    def require(self, names: Sequence[str]) -> None:
        """Raise ValueError for names that are no columns which are learnt."""
        absent = [name for name in dict.fromkeys(names) if name not in self.names]
        made = [name for name in absent if name in [column.name for column in self.made]]
        if made:
            raise ValueError(
                f"{some(made)} of this generator is made anew in each drawn table: nothing can be "
                f"asked of it. Ask for {some(self.names, 30)}."
            )
        if absent:
            raise ValueError(
                f"This generator has no column {some(absent)}; it has {some(self.names, 30)}."
                f"{did_you_mean(absent[0], self.names)}"
            )

    def with_bins(self, bins: Mapping[str, Bins]) -> TableCodec:
        """Return the same with cells joined."""
        return replace(
            self,
            columns=tuple(
                replace(c, bins=bins[c.name]) if c.name in bins else c for c in self.columns
            ),
        )

    @property
    def by_cell(self) -> TableCodec:
        """The same with one bin per cell."""
        return self.with_bins(
            {c.name: Bins.single(c.bins.cells) for c in self.columns if c.bins is not None}
        )

    def encode(
        self, frame: TypedTable | pd.DataFrame, names: Sequence[str] | None = None
    ) -> IntArray:
        """Return the states, shape (n_rows, n_columns), of all columns or of those of ``names``.

        A category that a column does not name is "other" where it has such a state.
        """
        table = TypedTable.of(frame, "private table")
        columns = [self[name] for name in (self.names if names is None else names)]
        cells = [c.cells(table[c.name], released=OTHER in c.schema.categories) for c in columns]
        return np.stack([c.states(some) for c, some in zip(columns, cells, strict=True)], axis=1)

    def decode(
        self, made: IntArray, conditions: IntArray, rng: np.random.Generator, index: Any = None
    ) -> pd.DataFrame:
        """Return what is learnt of rows, with the user's dtypes, from the states of the features.

        Columns that are made anew are added to all rows at once, by ``complete``.
        """
        parts = dict(zip(self.given, self.conditions.parts(conditions), strict=True))
        parts |= dict(zip(self.features, made.T, strict=True))
        frame = pd.concat([c.decode(parts[c.name], rng) for c in self.columns], axis=1)
        if days := [c.name for c in self.columns if c.holds_days]:
            frame.attrs[DAYS] = days
        return frame if index is None else frame.set_index(index)

    def complete(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with the columns that are made anew, and all names as the table had them.

        Each stands where it stood there.
        """
        _checks.together(partial(column.require, len(rows)) for column in self.made)
        for column in self.made:
            rows.insert(column.at, column.name, column.values(rows.index))
        whole = {name: int(name) for name in self.numbered}
        return rows.rename(columns=whole) if whole else rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        columns = [column.to_dict() for column in self.columns]
        made = [column.to_dict() for column in self.made]
        names = {"given": list(self.given), "numbered": list(self.numbered)}
        return {"columns": columns, "made": made} | names

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableCodec:
        """Read what ``to_dict`` wrote."""
        columns = tuple(ColumnCode.from_dict(c) for c in values["columns"])
        made = tuple(MadeColumn.from_dict(c) for c in values.get("made", ()))  # none before
        given, numbered = values["given"], values.get("numbered", ())
        given, numbered = (tuple(map(str, names)) for names in (given, numbered))
        return cls(columns=columns, given=given, made=made, numbered=numbered)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # "1.0", in a file of before such categories were refused
        return int(float(text))


def _row(column: Column, position: Any) -> str:
    """Name a row by its place in the table that was given, which its index keeps."""
    label = column.values.index[int(position)]
    return _values.row(int(label) if isinstance(label, int | np.integer) else int(position))


def _in_order(column: ColumnSchema, dtype: Any) -> ColumnSchema:
    """Return the categories in the order of the dtype, which is public, if it has one."""
    if not isinstance(dtype, pd.CategoricalDtype) or not dtype.ordered:
        return column
    place = {text_of(value): i for i, value in enumerate(dtype.categories)}
    last = len(place)  # a category that the dtype lacks
    return replace(
        column, categories=tuple(sorted(column.categories, key=lambda t: place.get(t, last)))
    )

"""What everybody may know about the columns: their kinds, categories and bounds."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._checks import at_least, one_of, together
from evenhand._stored import stored
from evenhand.datasets.columns import (
    SECONDS,
    Column,
    DateUnit,
    Kind,
    TypedTable,
    natural_order,
    refuse_repeated,
    some,
    text_of,
)
from evenhand.datasets.patterns import MADE, Pattern
from evenhand.typing import ArrayLike, FloatArray

KINDS = ("numeric", "categorical", "made")
POSTCODE: Final = "postcode"
"""The kind of a declaration that is a category by its first characters."""

DATES: Final[Mapping[str, DateUnit]] = {"date": "day", "datetime": "second"}
"""Kinds of a declaration that are numbers to all who learn, and what these count since 1970."""

_DECLARED: Final = ("numeric", "categorical", *DATES, POSTCODE, *MADE)
_EPOCH: Final = datetime(1970, 1, 1)


@stored
@dataclass(frozen=True, kw_only=True)
class ColumnSchema:
    """One column: what it holds.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : str
        "numeric", "categorical", or "made": no value of it is learnt, and generators of tables
        make it anew in the rows that they draw.
    categories : tuple of str
        All categories, as text (1, 1.0 and "1" are one category). Categorical only.
    bounds : (float, float), optional
        Smallest and largest value that counts; values beyond are moved to the end. Numeric only.
    missing : bool
        Whether "is missing" is worth a feature of its own.
    integer : bool
        Whether all values are whole numbers, so that drawn ones must be too. Numeric only.
    date_unit : "day" or "second", optional
        Of dates: what they, and the bounds, are counted in since 1970-01-01. Numeric only; for
        generators of tables.
    pattern : str, optional
        How values are made up, see ``Pattern``: all of a value that is made anew, and what follows
        the prefix of one that has a prefix (nothing, if not given).
    prefix : int, optional
        How many characters of a text are learnt, at least 1; categories are of these. Categorical
        only; for generators of tables, which may release the categories.
    """

    name: str
    kind: Kind | Literal["made"]
    categories: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    missing: bool = False
    integer: bool = False
    date_unit: DateUnit | None = None
    pattern: str | None = None
    prefix: int | None = None

    def __post_init__(self) -> None:
        one_of(f"kind of column {self.name!r}", self.kind, KINDS)
        self._check_pattern()
        if self.kind == "made":
            return
        if self.kind == "categorical":
            if not self.categories and self.prefix is None:
                raise ValueError(
                    f"The categorical column {self.name!r} has no categories. Name them, or leave "
                    f"the column out."
                )
            twice = [text for text, n in Counter(self.categories).items() if n > 1]
            if twice:
                raise ValueError(
                    f"The category {twice[0]!r} of column {self.name!r} is named twice. Categories "
                    f"are compared as text: 1, 1.0 and '1' are one."
                )
            if self.bounds is not None:
                raise ValueError(f"The categorical column {self.name!r} cannot have bounds.")
            if self.integer:
                raise ValueError(
                    f"integer is said of numbers, and column {self.name!r} is categorical."
                )
            if self.date_unit is not None:
                raise ValueError(f"The categorical column {self.name!r} cannot count dates.")
            return
        if self.categories:
            raise ValueError(f"The numeric column {self.name!r} cannot have categories.")
        if self.bounds is not None:
            low, high = self.bounds
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(
                    f"The bounds of column {self.name!r} must be finite and low < high, got "
                    f"{self.bounds if self.date_unit is None else self.bounds_said!r}."
                )
        if self.date_unit is not None:
            one_of(f"date_unit of column {self.name!r}", self.date_unit, SECONDS)

    def _check_pattern(self) -> None:
        """Refuse a pattern or a prefix that says nothing, or does not belong to the kind."""
        if self.prefix is not None:
            at_least(f"prefix of column {self.name!r}", self.prefix, 1)
        if self.pattern is not None:
            try:
                Pattern(self.pattern)
            except (TypeError, ValueError) as error:
                raise ValueError(f"Column {self.name!r}: {error}") from None
        if self.kind == "made":
            learnt = (self.categories, self.bounds, self.missing, self.integer, self.date_unit)
            if self.pattern is None or any(learnt) or self.prefix is not None:
                raise ValueError(
                    f"The column {self.name!r} is made anew, and nothing of it is learnt: it takes "
                    f"a pattern alone."
                )
        elif self.prefix is None and self.pattern is not None:
            raise ValueError(
                f"Column {self.name!r} has a pattern, and only the kinds "
                f"{', '.join((*MADE, POSTCODE))} do."
            )
        elif self.kind == "numeric" and self.prefix is not None:
            raise ValueError(f"The numeric column {self.name!r} cannot have a prefix.")
        elif "*" in (self.pattern or ""):
            raise ValueError(
                f"The pattern of column {self.name!r} follows a prefix, and has # and ? alone, "
                f"got {self.pattern!r}."
            )

    def shortened(self, column: Column) -> pd.Series[Any]:
        """Return the values by what is learnt of each: of text with a prefix, that alone.

        Raises
        ------
        TypeError
            For a dtype other than text: a number has lost its leading zeros.
        """
        if self.prefix is None:
            return column.values
        if column.is_category or column.is_bool or column.is_date or column.is_number:
            raise TypeError(
                f"Column {self.name!r} of the {column.where} is declared by its prefix, and its "
                f"dtype is {column.dtype}. Convert it with astype('str')."
            )
        known = set(self.categories)  # a value that was shortened before may be "other"
        short = {text: text if text in known else text[: self.prefix] for text in column.texts}
        texts = np.array([*(short[text] for text in column.texts), None], dtype=object)
        values: pd.Series[Any] = pd.Series(
            texts[column.codes], index=column.values.index, name=self.name, dtype=column.dtype
        )
        return values

    def numbers(self, column: Column) -> FloatArray:
        """Return the values as float64, dates as counted; NaN where missing."""
        if self.date_unit is None:
            return column.numbers
        return column.since_1970(self.date_unit)

    def said(self, number: float) -> float | str:
        """Return a number of this column as a user writes it: dates in ISO 8601."""
        if self.date_unit is None:
            return number
        moment = _EPOCH + timedelta(seconds=number * SECONDS[self.date_unit])
        return moment.date().isoformat() if self.date_unit == "day" else moment.isoformat()

    @property
    def bounds_said(self) -> tuple[float | str, ...]:
        """The bounds as a user writes them; empty if there are none."""
        return tuple(self.said(number) for number in self.bounds or ())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        if self.kind == "made":
            kind = next((k for k, pattern in MADE.items() if pattern == self.pattern), "id")
            return {"name": self.name, "kind": kind, "pattern": self.pattern}
        kind = next((k for k, unit in DATES.items() if unit == self.date_unit), self.kind)
        out: dict[str, Any] = {"name": self.name, "kind": kind, "missing": self.missing}
        if self.prefix is not None:
            rest = {} if self.pattern is None else {"pattern": self.pattern}
            out |= {"kind": POSTCODE, "prefix": self.prefix} | rest
        if self.kind == "categorical":
            out["categories"] = list(self.categories)
        elif self.bounds is not None:
            out["bounds"] = list(self.bounds_said)
        return out | ({"integer": True} if self.integer else {})


@stored
@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table, as public knowledge.

    Two sources are sound: a declaration made without looking at the private rows, and the public
    rows. A schema read from private rows would tell about them (a category that one person holds,
    the largest income), so there is no such door.

    Parameters
    ----------
    columns : tuple of ColumnSchema
        At least one; names are distinct.

    Examples
    --------
    >>> schema = Schema.declared({"age": {"bounds": (17, 90)}, "sex": ["Female", "Male"]})
    >>> schema.names
    ('age', 'sex')
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    columns: tuple[ColumnSchema, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("A schema needs at least one column.")
        refuse_repeated(self.names, "schema")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @classmethod
    def of_public(
        cls,
        frame: TypedTable | pd.DataFrame | ArrayLike,
        *,
        categorical: Iterable[str] = (),
        max_categories: int = 1000,
    ) -> Schema:
        """Read the columns off public rows.

        Parameters
        ----------
        frame : DataFrame or 2-D array
            Public rows only.
        categorical : iterable of str
            Columns whose numbers are codes without an order.
        max_categories : int
            A column with more categories is refused: it is an identifier more often than not.

        Returns
        -------
        Schema
            Numbers are numeric; text, booleans and the pandas category dtype are categorical.
            ``missing`` is set where a public value is missing.
        """
        at_least("max_categories", max_categories, 1)
        table = TypedTable.of(frame, "public table", keeps=False)
        forced = {categorical} if isinstance(categorical, str) else set(categorical)
        table.require(sorted(forced), "which categorical= names")
        columns = []
        for column in table.columns:
            name = column.name
            if column.kind is None:
                raise ValueError(
                    f"Column {name!r} has no value in the public rows, so nothing is known about "
                    f"it. Leave it out, or declare it: Schema.declared({{{name!r}: ...}})."
                )
            missing = bool(column.missing.any())
            if column.kind == "numeric" and name not in forced:
                columns.append(ColumnSchema(name=name, kind="numeric", missing=missing))
                continue
            found = ("False", "True") if column.inferred == "boolean" else column.texts
            if len(found) > max_categories:
                raise ValueError(
                    f"Column {name!r} has {len(found)} categories in {len(table)} public rows, "
                    f"more than max_categories={max_categories}. Leave it out if it is an "
                    f"identifier; else group its values, or raise max_categories."
                )
            columns.append(
                ColumnSchema(
                    name=name, kind="categorical", categories=natural_order(found), missing=missing
                )
            )
        return cls(columns=tuple(columns))

    @classmethod
    def declared(cls, columns: Mapping[str, str | Sequence[object] | Mapping[str, Any]]) -> Schema:
        """Declare the columns without looking at any row.

        Parameters
        ----------
        columns : mapping
            For each name: ``"numeric"``, ``"date"`` or ``"datetime"``; ``"id"``, ``"email"`` or
            ``"phone"``, which are made anew; or a list of categories; or a mapping with any of
            ``kind``, ``categories``, ``bounds``, ``missing``, ``integer``, ``pattern``, ``prefix``.
            Text of the kind "postcode" is learnt by its ``prefix``.
            Bounds may be dates: text in ISO 8601, or dates of Python, NumPy or pandas. Where they
            say no time, the kind is "date", and the time of day is not learnt; else "datetime".
            Without an offset they are UTC for a column with a time zone.

        Examples
        --------
        >>> Schema.declared({"seen": {"bounds": ("2020-01-01", "2024-12-31")}}).columns[0]
        ColumnSchema(name='seen', kind='numeric', categories=(), bounds=(18262.0, 20088.0), \
missing=False, integer=False, date_unit='day', pattern=None, prefix=None)
        """
        return cls(columns=tuple(_declared(name, said) for name, said in columns.items()))

    def check(
        self,
        frame: TypedTable | pd.DataFrame | ArrayLike,
        *,
        where: str = "table",
        ignore_extra: bool = False,
    ) -> TypedTable:
        """Return the schema's columns of ``frame``, in the schema's order, or say what is wrong.

        Parameters
        ----------
        frame : DataFrame, 2-D array or TypedTable
            What to check. Columns are matched by name; an array is x0, x1, ...
        where : str
            What to call it in messages, e.g. "private table".
        ignore_extra : bool
            Pass over columns that the schema does not have. By default they are an error, since
            they are a sign of two tables that do not belong together.

        Raises
        ------
        ValueError
            For an absent column, an unknown column, text where numbers belong.
        """
        given = TypedTable.of(frame, where, keeps=False)
        table = self.select(given, ignore_extra=ignore_extra)
        for column in self.columns:
            own = table[column.name]
            _ = column.numbers(own) if column.kind == "numeric" else own.codes
        return table

    def parse(self, frame: pd.DataFrame, where: str | Path = "table") -> pd.DataFrame:
        """Return the rows of a file as the schema has them: dates as dates, codes as text.

        A file has no dtypes: text in ISO 8601 becomes a date, and numbers become text where they
        are postcodes, or ids that are not whole.

        Raises
        ------
        ValueError
            For values that are no such text; all columns at once.
        """
        held = {c.name: Column(frame[c.name], where) for c in self.columns if c.name in frame}
        dates = [held[c.name] for c in self.columns if c.date_unit is not None and c.name in held]
        made = [column.name for column in self.made]
        read: dict[str, Any] = {}
        together(partial(_parse, column, read) for column in dates if not column.is_date)
        for column in (held[c.name] for c in (*self.shortened, *self.made) if c.name in held):
            # Whole numbers may stay so, if all of them is made anew.
            is_whole = str(column.dtype).lower().startswith(("int", "uint"))
            if column.is_number and not (is_whole and column.name in made):
                texts = np.array([*column.texts, None], dtype=object)
                read[column.name] = pd.Series(texts[column.codes], frame.index, dtype="str")
        return frame.assign(**read)

    @property
    def made(self) -> tuple[ColumnSchema, ...]:
        """The columns of which nothing is learnt, and that are made anew."""
        return tuple(column for column in self.columns if column.kind == "made")

    @property
    def shortened(self) -> tuple[ColumnSchema, ...]:
        """The columns of which a prefix is learnt."""
        return tuple(column for column in self.columns if column.prefix is not None)

    def refuse_for_models(self) -> None:
        """Raise ValueError for columns that generators of tables read, and models do not."""
        dates = [column.name for column in self.columns if column.date_unit is not None]
        if dates:
            raise ValueError(
                f"The schema says that {some(dates)} hold dates, which generators of tables read "
                f"and models do not. Make a number of what matters about them, e.g. days since a "
                f"fixed day, and declare that."
            )
        odd = [column.name for column in (*self.made, *self.shortened)]
        if odd:
            raise ValueError(
                f"The schema says that {some(odd)} are made anew or learnt by a prefix, which only "
                f"generators of tables do: models learn nothing from them. Leave them out: "
                f"drop(columns={odd!r}), or --drop."
            )

    @property
    def only_learnt(self) -> Schema | None:
        """The columns that are not made anew; None if there are no others."""
        columns = tuple(column for column in self.columns if column.kind != "made")
        return Schema(columns=columns) if columns else None

    def learnt_of(self, frame: pd.DataFrame, where: str = "table") -> pd.DataFrame:
        """Return what is learnt of rows: no column that is made anew, of text its prefix.

        Raises
        ------
        ValueError
            For dtypes of which there is no prefix; all columns at once.
        """
        short: dict[str, pd.Series[Any]] = {}

        def shorten(column: ColumnSchema) -> None:
            short[column.name] = column.shortened(Column(frame[column.name], where))

        together(partial(shorten, c) for c in self.shortened if c.name in frame)
        away = [column.name for column in self.made if column.name in frame]
        return frame.drop(columns=away).assign(**short)

    def as_measured(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return what is learnt of rows, with the dates of the schema as they are counted."""
        counted = {
            c.name: c.numbers(Column(frame[c.name]))
            for c in self.columns
            if c.date_unit is not None and c.name in frame
        }
        return self.learnt_of(frame).assign(**counted)

    def select(self, table: TypedTable, *, ignore_extra: bool = False) -> TypedTable:
        """Like ``check``, names only: values are not looked at."""
        extra = [name for name in table if name not in self.names]
        table.require(self.names, "which the schema names", spare=extra)
        if extra and not ignore_extra:
            raise ValueError(
                f"The {table.where} has columns that the schema does not name: {some(extra)}. "
                f"Leave them out with drop(columns=[...]), pass over them with ignore_extra=True, "
                f"or add them to the public table or the declared schema."
            )
        return table.select(self.names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """Read what ``to_dict`` wrote."""
        columns = values.get("columns") if isinstance(values, Mapping) else None
        if not isinstance(columns, list) or not all("name" in column for column in columns):
            raise ValueError('A schema is written as {"columns": [{"name": ..., "kind": ...}]}.')
        return cls(
            columns=tuple(
                _declared(str(column["name"]), {k: v for k, v in column.items() if k != "name"})
                for column in columns
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema to a JSON file."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema from a JSON file."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a JSON file: {error}.") from None
        return cls.from_dict(values)


def _declared(name: str, said: str | Sequence[object] | Mapping[str, Any]) -> ColumnSchema:
    """Make one column of what a user declared."""
    if isinstance(said, str):
        one_of(f"kind of column {name!r}", said, ("numeric", *DATES, *MADE))
        if said in MADE:
            return ColumnSchema(name=name, kind="made", pattern=MADE[said])
        return ColumnSchema(name=name, kind="numeric", date_unit=DATES.get(said))
    if not isinstance(said, Mapping):
        return ColumnSchema(
            name=name,
            kind="categorical",
            categories=tuple(text_of(value) for value in said),
        )
    known = ("kind", "categories", "bounds", "missing", "integer", "pattern", "prefix")
    for key in said:
        one_of(f"key of column {name!r}", key, known)
    categories = tuple(text_of(value) for value in said.get("categories", ()))
    bounds = said.get("bounds")
    ends = None if bounds is None else tuple(_date(name, end) for end in bounds[:2])
    prefix, pattern = said.get("prefix"), said.get("pattern")
    kind = said.get("kind", "categorical" if categories else None)
    if kind is None and prefix is not None:
        kind = POSTCODE
    if kind is None:
        days = {len(end) == len("2020-01-01") for end in ends or () if end is not None}
        kind = ("date" if all(days) else "datetime") if days else "numeric"
    one_of(f"kind of column {name!r}", kind, _DECLARED)
    if kind == POSTCODE and prefix is None:
        raise ValueError(
            f"Column {name!r} is a postcode, of which a public prefix is learnt. Say how many "
            f'characters that is: {{"kind": "postcode", "prefix": 3}}.'
        )
    if kind in MADE and pattern is None:
        pattern = MADE[kind]
    if ends is not None and (None in ends if kind in DATES else ends != (None, None)):
        raise ValueError(
            f"The bounds of column {name!r}, {bounds!r}, do not go with the kind {kind!r}: dates "
            f'have bounds such as ["2020-01-01", "2024-12-31"], and numbers numbers.'
        )
    return ColumnSchema(
        name=name,
        kind=_KIND_OF.get(kind, kind),
        categories=categories,
        bounds=None if bounds is None else _bounds(bounds, ends, DATES.get(kind)),
        missing=bool(said.get("missing", False)),
        integer=bool(said.get("integer", False)),
        date_unit=DATES.get(kind),
        pattern=pattern,
        prefix=prefix,
    )


_KIND_OF: Final[Mapping[str, Any]] = {
    **dict.fromkeys(DATES, "numeric"),
    **dict.fromkeys(MADE, "made"),
    POSTCODE: "categorical",
}


def _date(name: str, end: Any) -> str | None:
    """Return a bound as text in ISO 8601, without a time if it has none; None of a number."""
    if isinstance(end, np.datetime64):
        days = np.datetime_data(end)[0] in ("Y", "M", "W", "D")
        end = end.astype("datetime64[D]" if days else "datetime64[s]").item()
    if isinstance(end, datetime):
        return end.isoformat(sep="T")
    if isinstance(end, date):
        return end.isoformat()
    try:
        float(end)
    except (TypeError, ValueError):
        pass
    else:
        return None
    try:
        moment = datetime.fromisoformat(end)
        has_time = ":" in end or "T" in end
        return moment.isoformat() if has_time else moment.date().isoformat()
    except (TypeError, ValueError):
        raise ValueError(
            f"A bound of column {name!r} must be a number, or a date as 2020-01-31 or "
            f"2020-01-31T12:00, got {end!r}."
        ) from None


def _bounds(
    bounds: Sequence[Any], ends: Sequence[str | None] | None, unit: DateUnit | None
) -> tuple[float, float]:
    """Return bounds as numbers; dates in whole units since 1970."""
    if unit is None:
        return float(bounds[0]), float(bounds[1])
    counted = []
    for end in ends or ():
        moment = datetime.fromisoformat(str(end))
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        counted.append(float((moment - _EPOCH) // timedelta(seconds=SECONDS[unit])))
    return counted[0], counted[1]


def _parse(column: Column, read: dict[str, Any]) -> None:
    """Read the text of a column as dates, into ``read``."""
    said = f"Column {column.name!r} of {column.where} is declared as a date, and"
    if column.is_number:
        raise ValueError(f"{said} holds numbers. Write its dates as 2020-01-31, or 2020-01-31T12.")
    try:
        dates = pd.to_datetime(column.values, format="ISO8601", errors="coerce")
    except ValueError:  # with an offset, and without
        raise ValueError(f"{said} has several time zones. Write all of it in UTC.") from None
    wrong = np.flatnonzero(dates.isna() & ~column.missing)
    if wrong.size:
        raise ValueError(
            f"{said} holds {_values.quoted(column.values.iloc[int(wrong[0])])} in "
            f"{_values.rows(wrong)}. Dates are read as 2020-01-31, or 2020-01-31T12:00."
        )
    read[column.name] = dates.dt.as_unit("s")

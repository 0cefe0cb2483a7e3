"""What everybody may know about the columns: their kinds, categories and bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._checks import at_least, together
from evenhand._numerals import natural_order
from evenhand._stored import stored
from evenhand.datasets.column_schema import ColumnSchema, declared_column
from evenhand.datasets.columns import Column, TypedTable, refuse_repeated, some, the
from evenhand.typing import ArrayLike

__all__ = ["ColumnSchema", "Schema"]

HOW_TO_DECLARE: Final = "Of a mapping: Schema.declared({...}); of a file: Schema.load(FILE)."


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
            ``missing`` is set where a public value is missing, ``decimals`` are those that public
            numbers have at most, up to 4.
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
                columns.append(
                    ColumnSchema(
                        name=name, kind="numeric", missing=missing, decimals=column.decimals
                    )
                )
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
            ``kind``, ``categories``, ``bounds``, ``missing``, ``integer``, ``decimals``,
            ``pattern``, ``prefix``.
            Text of the kind "postcode" is learnt by its ``prefix``.
            Bounds may be dates: text in ISO 8601, or dates of Python, NumPy or pandas. Where they
            say no time, the kind is "date", and the time of day is not learnt; else "datetime".
            Without an offset they are UTC for a column with a time zone.

        Examples
        --------
        >>> Schema.declared({"seen": {"bounds": ("2020-01-01", "2024-12-31")}}).columns[0]
        ColumnSchema(name='seen', kind='numeric', categories=(), bounds=(18262.0, 20088.0), \
missing=False, integer=False, decimals=None, date_unit='day', pattern=None, prefix=None)
        """
        return cls(columns=tuple(declared_column(name, said) for name, said in columns.items()))

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
                f"fixed day, and declare that; or leave them out: drop(columns={dates!r}), or "
                f"--drop."
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
                f"{the(table.where, 'The')} has columns that the schema does not name: "
                f"{some(extra)}. Leave them out with drop(columns=[...]) (--drop), pass over them "
                f"with ignore_extra=True, or add them to the public table or the declared schema."
            )
        return table.select(self.names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """Read what ``to_dict`` wrote."""
        columns = values.get("columns") if isinstance(values, Mapping) else None
        named = isinstance(columns, list) and all(
            isinstance(column, Mapping) and isinstance(column.get("name"), str | int)
            for column in columns
        )
        if not isinstance(columns, list) or not named:
            raise ValueError('A schema is written as {"columns": [{"name": ..., "kind": ...}]}.')
        return cls(
            columns=tuple(
                declared_column(
                    str(column["name"]), {k: v for k, v in column.items() if k != "name"}
                )
                for column in columns
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema to a JSON file."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        # Half a surrogate pair is no UTF-8; a backslash in front makes it one of JSON's escapes.
        Path(path).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema from a JSON file."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a JSON file: {error}.") from None
        return cls.from_dict(values)


def _parse(column: Column, read: dict[str, Any]) -> None:
    """Read the text of a column as dates, into ``read``."""
    said = f"Column {column.name!r} of {the(column.where)} is declared as a date, and"
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

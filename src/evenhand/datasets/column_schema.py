"""What everybody may know about one column, and how a user declares it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from evenhand._checks import at_least, decimals, flag, one_of
from evenhand._numerals import text_of
from evenhand._stored import stored
from evenhand.datasets.columns import Column, Kind, holds_decimals, the
from evenhand.datasets.dates import SECONDS, DateUnit
from evenhand.datasets.patterns import MADE, Pattern
from evenhand.typing import FloatArray

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
    """One column: what it holds."""

    name: str
    """Name of the column."""
    kind: Kind | Literal["made"]
    """``"numeric"``, "categorical", or "made": no value of it is learnt, and generators of tables
    make it anew in the rows that they draw.
    """
    categories: tuple[str, ...] = ()
    """All categories, as text (1, 1.0 and "1" are one category). Categorical only."""
    bounds: tuple[float, float] | None = None
    """Smallest and largest value that counts; values beyond are moved to the end. Numeric only."""
    missing: bool = False
    """Whether "is missing" is worth a feature of its own."""
    integer: bool = False
    """Whether all values are whole numbers: ``decimals=0``, and stands above other decimals."""
    decimals: int | None = None
    """How many decimals values have at most, so that drawn ones have no more; 0 for whole numbers,
    None for any. Numeric only.
    """
    date_unit: DateUnit | None = None
    """Of dates: what they, and the bounds, are counted in since 1970-01-01. Numeric only; for
    generators of tables.
    """
    pattern: str | None = None
    """How values are made up, see ``Pattern``: all of a value that is made anew, and what follows
    the prefix of one that has a prefix (nothing, if not given).
    """
    prefix: int | None = None
    """How many characters of a text are learnt, at least 1; categories are of these. Categorical
    only; for generators of tables, which may release the categories.
    """

    def __post_init__(self) -> None:
        one_of(f"kind of column {self.name!r}", self.kind, KINDS)
        self._check_decimals()
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
            if self.decimals is not None:
                word = "integer" if self.integer else "decimals"
                raise ValueError(
                    f"{word} is said of numbers, and column {self.name!r} is categorical."
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

    def _check_decimals(self) -> None:
        """Make one of both words, and refuse decimals that no number can have."""
        if self.integer:
            object.__setattr__(self, "decimals", 0)
        if self.decimals is None:
            return
        decimals(f"decimals of column {self.name!r}", self.decimals)
        object.__setattr__(self, "integer", self.decimals == 0)
        if self.decimals and self.date_unit is not None:
            raise ValueError(
                f"Column {self.name!r} holds dates, which are counted whole: leave out "
                f"decimals={self.decimals}."
            )
        if self.bounds is not None and not holds_decimals(self.bounds, self.decimals):
            raise ValueError(
                f"Numbers of column {self.name!r} within {self.bounds_said!r} and with "
                f"decimals={self.decimals} have more digits than a float holds, about 15. Declare "
                f"fewer decimals, or narrower bounds."
            )

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
            learnt = (self.categories, self.bounds, self.missing, self.date_unit)
            counts = (self.decimals, self.prefix)
            if self.pattern is None or any(learnt) or any(n is not None for n in counts):
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
                f"Column {self.name!r} of {the(column.where)} is declared by its prefix, and its "
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
        if self.integer:
            return out | {"integer": True}
        return out | ({} if self.decimals is None else {"decimals": self.decimals})


def declared_column(name: str, said: str | Sequence[object] | Mapping[str, Any]) -> ColumnSchema:
    """Make one column of what a user declared; see ``Schema.declared``."""
    if isinstance(said, str):
        one_of(f"kind of column {name!r}", said, ("numeric", *DATES, *MADE))
        if said in MADE:
            return ColumnSchema(name=name, kind="made", pattern=MADE[said])
        return ColumnSchema(name=name, kind="numeric", date_unit=DATES.get(said))
    if not isinstance(said, Mapping):
        return ColumnSchema(
            name=name,
            kind="categorical",
            categories=_categories(name, said),
        )
    known = ("kind", "categories", "bounds", "missing", "integer", "decimals", "pattern", "prefix")
    for key in said:
        one_of(f"key of column {name!r}", key, known)
    prefix, pattern = said.get("prefix"), said.get("pattern")
    categories = _categories(name, said.get("categories", ()))
    if "categories" in said and not categories and prefix is None:
        raise ValueError(f"Column {name!r} is declared by its categories, and none is named.")
    bounds = _both_ends(name, said.get("bounds"))
    ends = None if bounds is None else tuple(_date(name, end) for end in bounds)
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
    integer, missing = (_flag(name, word, said) for word in ("integer", "missing"))
    places = said.get("decimals")
    if integer and places not in (None, 0):
        raise ValueError(
            f"Column {name!r} is declared with integer and with decimals={places!r}. Leave out one "
            f"of them: whole numbers have no decimals."
        )
    return ColumnSchema(
        name=name,
        kind=_KIND_OF.get(kind, kind),
        categories=categories,
        bounds=None if bounds is None else _bounds(bounds, ends, DATES.get(kind)),
        missing=missing,
        integer=integer,
        decimals=places,
        date_unit=DATES.get(kind),
        pattern=pattern,
        prefix=prefix,
    )


_KIND_OF: Final[Mapping[str, Any]] = {
    **dict.fromkeys(DATES, "numeric"),
    **dict.fromkeys(MADE, "made"),
    POSTCODE: "categorical",
}


def _flag(name: str, word: str, said: Mapping[str, Any]) -> bool:
    value = said.get(word, False)
    return flag(f"{word} of column {name!r}", bool(value) if isinstance(value, np.bool_) else value)


def _categories(name: str, said: Any) -> tuple[str, ...]:
    """Return categories as text: of a list of texts, numbers, True and False."""
    if isinstance(said, str | Mapping) or not isinstance(said, Iterable):
        raise TypeError(
            f'categories of column {name!r} must be a list such as ["F", "M"], got {said!r:.60}.'
        )
    values = list(said)
    for value in values:
        if not isinstance(value, str) and (not pd.api.types.is_scalar(value) or pd.isna(value)):
            raise ValueError(
                f"A category of column {name!r} must be a text or a number, got {value!r:.60}. "
                f'That values may be missing is said by {{"missing": true}}.'
            )
    return tuple(text_of(value) for value in values)


def _both_ends(name: str, bounds: Any) -> tuple[Any, ...] | None:
    """Return the two ends that were declared, if any were."""
    if bounds is None:
        return None
    is_list = isinstance(bounds, Iterable) and not isinstance(bounds, str | Mapping)
    ends = tuple(bounds) if is_list else ()
    if len(ends) != 2 or any(isinstance(end, bool) for end in ends):
        raise ValueError(
            f"bounds of column {name!r} must be [low, high], two numbers or dates, got "
            f"{bounds!r:.60}."
        )
    return ends


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
    except (TypeError, ValueError, OverflowError):
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

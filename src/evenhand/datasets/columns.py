"""A table whose columns are read once, as numbers or as texts with codes.

With ``dates`` the only place that looks at dtypes of pandas.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._checks import MOST_DECIMALS, did_you_mean
from evenhand._frames import DAYS, OF_DAYS, PLACES, as_pandas
from evenhand._numerals import numeral, text_of
from evenhand.datasets.dates import DateUnit, since_1970
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray

Kind: TypeAlias = Literal["numeric", "categorical"]

MOST_DECIMALS_READ: Final = 4
"""That are read off numbers, or released: of a column with more, none are said."""

_NUMERIC = frozenset({"integer", "floating", "mixed-integer-float", "decimal"})
_ALIKE = frozenset({"string", "boolean", "integer", "floating"})
_CATEGORICAL = frozenset({"string", "boolean", "mixed-integer", "categorical"})


def holds_decimals(bounds: tuple[float, float], n: int) -> bool:
    """Whether floats between these bounds tell numbers of so many decimals apart."""
    return n == 0 or max(map(abs, bounds)) * 10.0**n < 2.0**53


@dataclass(frozen=True, eq=False)
class Column:
    """One column; what was read of it is kept, so that it is converted once.

    Privacy
    -------
    As private as its rows. Messages quote a value only where ``show_values`` allows it.

    Examples
    --------
    >>> town = Column(pd.Series(["b", None, "a", "b"], name="town"))
    >>> town.kind, town.texts, town.codes.tolist(), town.places(["a", "c"]).tolist()
    ('categorical', ('b', 'a'), [0, -1, 1, 0], [-1, -1, 0, -1])
    >>> Column(pd.Series(["1", "2.5", None])).numbers
    array([1. , 2.5, nan])
    """

    values: pd.Series[Any] = field(repr=False)
    where: str | Path = "table"
    """What messages call the table, or the file that it is from."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def name(self) -> str:
        """Name of the column."""
        return str(self.values.name)

    @property
    def dtype(self) -> Any:
        """The dtype of pandas."""
        return self.values.dtype

    @property
    def is_category(self) -> bool:
        """Whether it is of the pandas category dtype."""
        return isinstance(self.dtype, pd.CategoricalDtype)

    @property
    def is_bool(self) -> bool:
        """Whether the dtype says that it holds booleans."""
        return bool(pd.api.types.is_bool_dtype(self.dtype)) and not self.is_category

    @property
    def is_object(self) -> bool:
        """Whether it holds Python objects, of which the dtype says nothing."""
        return bool(pd.api.types.is_object_dtype(self.dtype))

    @property
    def is_date(self) -> bool:
        """Whether the dtype says that it holds dates, with a time zone or without one."""
        return isinstance(self.dtype, pd.DatetimeTZDtype) or (
            isinstance(self.dtype, np.dtype) and self.dtype.kind == "M"
        )

    @property
    def date_unit(self) -> DateUnit | None:
        """What dates are counted in, by the dtype that they came with; None of other columns.

        Days of Parquet and polars are days; a column that was put in their place is none.
        """
        if not self.is_date:
            return None
        days = self.dtype == OF_DAYS and self.name in self.values.attrs.get(DAYS, ())
        return "day" if days else "second"

    @property
    def scale(self) -> int | None:
        """How many decimals numbers have by the type that they came with; None if it says none."""
        known = self.values.attrs.get(PLACES, {}).get(self.name)
        return known if self.dtype == np.float64 and known in range(MOST_DECIMALS + 1) else None

    @property
    def is_number(self) -> bool:
        """Whether the dtype says that it holds real numbers."""
        named = pd.api.types.is_numeric_dtype(self.dtype) and not self.is_bool
        return bool(named) and not pd.api.types.is_complex_dtype(self.dtype)

    @cached_property
    def missing(self) -> BoolArray:
        """Which rows have no value."""
        gone: BoolArray = self.values.isna().to_numpy(dtype=bool)
        return gone

    @cached_property
    def inferred(self) -> str:
        """What pandas finds in the values, such as "string", "boolean" or "datetime64"."""
        return str(pd.api.types.infer_dtype(self.values, skipna=True))

    @cached_property
    def kind(self) -> Kind | None:
        """What the column holds, or None if it holds no value at all.

        Numbers are numeric. Text, booleans, the pandas category dtype, and text mixed with whole
        numbers are categorical. Dates, durations, complex numbers and Python objects are refused.
        """
        if self.is_category or self.is_bool or isinstance(self.dtype, pd.StringDtype):
            return None if self.missing.all() else "categorical"
        if self.is_number:
            return None if self.missing.all() else "numeric"
        if self.inferred == "empty":
            return None
        if self.inferred in _NUMERIC:
            return "numeric"
        if self.inferred in _CATEGORICAL:
            return "categorical"
        if self.holds_dates:
            raise TypeError(
                f"Column {self.name!r} of {the(self.where)} holds dates or times ({self.dtype}). "
                f"Say what about them matters as a number, e.g. {self._as_number}."
            )
        raise TypeError(
            f"Column {self.name!r} of {the(self.where)} holds {self.inferred} values "
            f"({self.dtype}). Columns hold numbers, text or booleans: convert it, or leave it out."
        )

    @property
    def holds_dates(self) -> bool:
        """Whether the values are dates, times or durations, and no text of such."""
        return any(word in self.inferred for word in ("date", "time", "period"))

    @property
    def holds_durations(self) -> bool:
        """Whether the values are durations."""
        return "timedelta" in self.inferred

    @property
    def _as_number(self) -> str:
        """Return how a number is made of dates or times, in Python."""
        frame = f"frame[{self.name!r}]"
        if self.holds_durations:
            return f"the seconds: pd.to_timedelta({frame}).dt.total_seconds()"
        if self.inferred == "time":
            return f"the seconds: pd.to_timedelta({frame}.astype(str)).dt.total_seconds()"
        days = f"pd.to_datetime({frame}, utc=True) - pd.Timestamp('2020-01-01', tz='UTC')"
        if self.inferred == "period":
            days = f"{frame}.dt.to_timestamp() - pd.Timestamp('2020-01-01')"
        return f"the days since a fixed day: ({days}).dt.days"

    @property
    def kind_by_dtype(self) -> Kind:
        """What a private column is taken for: its dtype says it, and no value of it.

        A column of Python objects is categorical, also where each is a number: one more record
        could hold a text, and a kind that follows from it would tell.
        """
        if (self.is_number and not self.is_category) or self.is_date:
            return "numeric"
        if not self.is_object:
            _ = self.kind  # refuses durations and the like, by their dtype too
        return "categorical"

    @cached_property
    def numbers(self) -> FloatArray:
        """Values as float64, NaN where missing; text that is no number is an error that says where.

        Numbers written as text are read. Infinite values pass through; the caller decides on them.
        """
        if self.is_number or self.is_bool:
            return self.values.to_numpy(dtype=np.float64, na_value=np.nan)
        _ = self.kind  # refuses dates and objects in its own words
        values = self.values.astype(object)
        try:
            numbers: FloatArray = pd.to_numeric(values, errors="coerce").to_numpy(
                dtype=np.float64, na_value=np.nan
            )
        except OverflowError:  # whole numbers of hundreds of digits
            numbers = np.array([_nearest_float(value) for value in values], dtype=np.float64)
        wrong = np.flatnonzero(np.isnan(numbers) & ~self.missing)
        if wrong.size:
            raise ValueError(
                f"Column {self.name!r} of {the(self.where)} must hold numbers, got the text "
                f"{_values.quoted(self.values.iloc[int(wrong[0])])} in "
                f"{_values.rows(wrong)}. Correct the value or leave it empty. A column of text is "
                f"learnt where the schema of the training declares it as categorical."
            )
        return numbers

    @property
    def decimal_counts(self) -> IntArray:
        """How many numbers have 0, 1, ... decimals, as the dtype holds them; the last: more.

        Examples
        --------
        >>> Column(pd.Series([36.7, 36.0, 12.55, 0.1 + 0.2])).decimal_counts
        array([1, 1, 1, 0, 0, 1])
        """
        small = str(self.dtype).lower() in ("float16", "float32")
        own = np.dtype(str(self.dtype).lower() if small else np.float64)
        numbers = self.numbers[np.isfinite(self.numbers)]
        least = np.full(len(numbers), MOST_DECIMALS_READ + 1, dtype=np.int8)
        with np.errstate(over="ignore", invalid="ignore"):  # near the largest float all are whole
            for n in reversed(range(MOST_DECIMALS_READ + 1)):
                least[np.round(numbers, n).astype(own) == numbers.astype(own)] = n
        return np.bincount(least, minlength=MOST_DECIMALS_READ + 2).astype(np.int64)

    @property
    def decimals(self) -> int | None:
        """The decimals that its numbers have at most; None where they have more than 4.

        None too where floats of this size do not tell such numbers apart.
        """
        seen = np.flatnonzero(self.decimal_counts)
        if not len(seen) or seen[-1] > MOST_DECIMALS_READ:
            return None
        numbers, most = self.numbers[np.isfinite(self.numbers)], int(seen[-1])
        return most if holds_decimals((numbers.min(), numbers.max()), most) else None

    def since_1970(self, unit: DateUnit) -> FloatArray:
        """Whole days or seconds from 1970-01-01 to each date, NaN where missing.

        With a time zone seconds begin in UTC, and days change at midnight of that zone.

        Examples
        --------
        >>> dates = Column(pd.Series(pd.to_datetime(["1970-01-02T00", None, "1969-12-31T12"])))
        >>> dates.since_1970("day"), dates.since_1970("second")
        (array([ 1., nan, -1.]), array([ 86400.,     nan, -43200.]))
        """
        if not self.is_date:
            raise TypeError(
                f"Column {self.name!r} of {the(self.where)} must hold dates, got {self.dtype}. "
                f"Convert it: pd.to_datetime(frame[{self.name!r}])."
            )
        return since_1970(self.values, unit)

    @property
    def codes(self) -> IntArray:
        """Position in ``texts`` of each row's text; -1 is a missing value."""
        return self._coded[0]

    @property
    def texts(self) -> tuple[str, ...]:
        """The different texts, in the order in which they first occur.

        A pandas category dtype also remembers values of rows that were taken away, and those rows
        may have been private: only texts that occur are listed.
        """
        return self._coded[1]

    @cached_property
    def _coded(self) -> tuple[IntArray, tuple[str, ...]]:
        if pd.api.types.is_datetime64_any_dtype(self.dtype):
            _ = self.kind
        try:
            codes, values = pd.factorize(self.values, use_na_sentinel=True)
        except TypeError:
            raise TypeError(
                f"Column {self.name!r} of {the(self.where)} holds values that cannot be "
                f"categories, e.g. {_values.quoted(self.values.iloc[0])}. Columns hold numbers, "
                f"text or booleans."
            ) from None
        if self.is_object and self.inferred not in _ALIKE:
            # To pandas True is 1, and 2.00 is 2.0: a row's text would be that of an equal value
            # that came first, in the row of somebody else.
            codes, values = pd.factorize(self.values.map(text_of, na_action="ignore"))
        return codes.astype(np.int64, copy=False), tuple(text_of(value) for value in values)

    def places(self, categories: Sequence[str], *, as_numbers: bool = False) -> IntArray:
        """Return the position of each row's text in ``categories``; -1 is missing or none of them.

        ``codes < 0`` tells one from the other; ``as_numbers`` see :func:`place_among`.
        """
        # One more than texts: code -1, a missing value, reads the last one.
        place = place_among(categories, as_numbers=as_numbers)
        found = np.array([*map(place, self.texts), -1], dtype=np.int64)
        places: IntArray = found[self.codes]
        return places

    def refuse_missing(self, what: str, way_out: str, *, start: int = 0) -> None:
        """Raise ValueError that names the rows with a missing value; ``start`` rows are before."""
        gone = start + np.flatnonzero(self.missing)
        if gone.size:
            raise ValueError(f"{self._the(what)} is missing in {_values.rows(gone)}. {way_out}")

    def refuse_infinite(self, places: IntArray | None = None) -> None:
        """Raise ValueError that names the rows with an infinite number.

        ``places`` are the rows' positions in the table that people see, if that is a larger one.
        """
        found = np.flatnonzero(np.isinf(self.numbers))
        if found.size:
            rows = _values.rows(found if places is None else places[found])
            raise ValueError(
                f"Column {self.name!r} of {the(self.where)} must be finite, got an infinite number "
                f"in {rows}. Leave the value empty if it is not known."
            )

    def refuse_one_class(self) -> None:
        """Raise ValueError for a label from which nothing can be learnt."""
        if self.values.nunique() < 2:
            raise ValueError(
                f"{self._the('label')} has one class only, {self._first}, "
                f"so there is nothing to learn. At least two classes are needed."
            )

    def refuse_one_group(self, way_out: str) -> None:
        """Raise ValueError for a sensitive attribute that is the same in all rows."""
        if self.values.nunique() < 2:
            raise ValueError(
                f"{self._the('sensitive attribute')} has one group only, "
                f"{self._first}, so there is nothing to compare. {way_out}"
            )

    def refuse_amounts(self) -> None:
        """Raise ValueError for a label of numbers that are not whole."""
        if not pd.api.types.is_float_dtype(self.dtype):
            return
        broken = np.flatnonzero(self.numbers != np.floor(self.numbers))
        if broken.size:
            raise ValueError(
                f"{self._the('label')} must hold classes, got a number that is not whole, "
                f"{_values.quoted(float(self.numbers[broken[0]]))}, in {_values.rows(broken)}. "
                f"Make classes of the numbers first, for example by a threshold."
            )

    @property
    def _first(self) -> str:
        """The value of the first row, as a message may have it; a whole number without a dot."""
        value = self.values.iloc[0]
        return _values.quoted(int(value) if isinstance(value, float) and value % 1 == 0 else value)

    def _the(self, what: str) -> str:
        """How a sentence about the column begins."""
        is_file = isinstance(self.where, Path)
        return f"{f'{self.where}: the' if is_file else 'The'} {what} {self.name!r}"


@dataclass(frozen=True, eq=False)
class TypedTable:
    """A table of any library, whose columns are read when they are needed, and once.

    The command line, ``Schema``, ``PublicEncoder``, ``inspect`` and the generators read a user's
    rows through it; what any of them has read of a column, the next one does not read again.

    Privacy
    -------
    As private as its rows.
    """

    frame: pd.DataFrame = field(repr=False)
    """Its column names are text and distinct."""
    where: str | Path = "table"
    """What messages call it, such as "private table", or the file that it is from."""
    keeps: bool = True
    """Whether what is read of a column is kept; a reader that reads each once needs no room."""
    _kept: dict[str, Column] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, X: TypedTable | pd.DataFrame | ArrayLike, where: str = "table", *, keeps: bool = True
    ) -> TypedTable:
        """Take a frame of pandas, polars, pyarrow, ..., or a 2-D array with columns x0, x1, ..."""
        if isinstance(X, TypedTable):
            return X
        X = as_pandas(X)
        if isinstance(X, pd.DataFrame):
            names = [str(name) for name in X.columns]
            refuse_repeated(names, where)
            same = names == list(X.columns)
            return cls(X if same else X.set_axis(names, axis=1), where, keeps)
        if hasattr(X, "toarray"):
            raise TypeError(f"The {where} is a sparse matrix. Make it dense first: X.toarray().")
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"The {where} must be a DataFrame or a two-dimensional array, got shape "
                f"{array.shape}."
            )
        names = [f"x{i}" for i in range(array.shape[1])]
        return cls(pd.DataFrame(array, columns=names), where, keeps)

    def __len__(self) -> int:
        return len(self.frame)

    def __contains__(self, name: object) -> bool:
        return name in self.frame.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Column:
        """Return a column; what is read of it is kept as long as this table, if it keeps."""
        column = self._kept.get(name) or Column(self.frame[name], self.where)
        if self.keeps:
            self._kept[name] = column
        return column

    def pop(self, name: str) -> Column:
        """Return a column, and keep what is read of it no longer."""
        return self._kept.pop(name, None) or Column(self.frame[name], self.where)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.frame.columns)

    @property
    def columns(self) -> Iterator[Column]:
        """The columns, in order."""
        return (self[name] for name in self)

    def select(self, names: Iterable[str]) -> TypedTable:
        """Return these columns alone, in this order; what is read of one is read of both."""
        return TypedTable(self.frame[list(names)], self.where, self.keeps, self._kept)

    def require(
        self,
        names: Iterable[str],
        why: str,
        *,
        spare: Iterable[str] | None = None,
        way_out: str = "",
    ) -> None:
        """Raise ValueError for names that are no columns, with the nearest one to the first.

        Parameters
        ----------
        names : iterable of str
        why : str
            Who needs them, such as "which the schema names".
        spare : iterable of str, optional
            Among which the nearest name is looked for; all columns if not given.
        way_out : str, optional
            The last sentence, with ``{name}`` for the column; else it lists those that are there.
        """
        absent = [name for name in names if name not in self]
        if absent:
            known = self.names if spare is None else spare
            nor = f" (nor {some(absent[1:])})" if absent[1:] else ""
            # No str.format: a name may hold braces.
            last = way_out.replace("{name}", absent[0]) or f"Its columns: {some(self.names, 30)}."
            raise ValueError(
                f"{the(self.where, 'The')} has no column {absent[0]!r}, {why}{nor}."
                f"{did_you_mean(absent[0], known)} {last}"
            )


def the(table: str | Path, article: str = "the") -> str:
    """Return how a sentence names a table: a file by its path, anything else with an article."""
    return str(table) if isinstance(table, Path) else f"{article} {table}"


def refuse_repeated(names: Iterable[str], where: str) -> None:
    """Raise ValueError if a column name occurs twice."""
    repeated = sorted(name for name, n in Counter(names).items() if n > 1)
    if repeated:
        raise ValueError(
            f"The {where} has more than one column named {some(repeated)}. Columns are matched by "
            f"name: rename them so that each name occurs once."
        )


def _nearest_float(value: Any) -> float:
    """Return a number as a float, infinite beyond the largest; NaN for what is no number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def place_among(categories: Sequence[str], *, as_numbers: bool = False) -> Callable[[str], int]:
    """Return what says the position of a text among categories; -1 if it is none of them.

    A text that stands for a number is also the first category that is this number, written in any
    way. With ``as_numbers`` it always is: whether a file is read as numbers can hang on one row of
    it, and what becomes of a record may not.

    Examples
    --------
    >>> place, same = (place_among(["a", "1.0", "1"], as_numbers=n) for n in (False, True))
    >>> [(place(text), same(text)) for text in ("1", "1.0", "+1", "b")]
    [(2, 1), (1, 1), (1, 1), (-1, -1)]
    """
    exact = {} if as_numbers else {category: i for i, category in enumerate(categories)}
    number: dict[str, int] = {}
    for i, category in enumerate(categories):
        number.setdefault(numeral(category), i)

    def place(text: str) -> int:
        found = exact.get(text)
        return number.get(numeral(text), -1) if found is None else found

    return place


def some(names: Iterable[object], most: int = 5) -> str:
    """List at most five names, and how many there are beyond them."""
    return _values.first(map(repr, names), most)

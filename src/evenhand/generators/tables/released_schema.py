"""A schema released from the budget: categories, bounds and decimals that noisy counts show."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from scipy.special import ndtri

from evenhand._numerals import natural_order
from evenhand.datasets import Schema
from evenhand.datasets.columns import (
    MOST_DECIMALS_READ,
    Column,
    TypedTable,
    holds_decimals,
    some,
)
from evenhand.datasets.dates import SECONDS
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.codec import OTHER
from evenhand.generators.tables.dtypes import holds_missing, number_range
from evenhand.generators.tables.noisy_range import FEW, LOUD, MISTAKE, bounds_of, left_beyond
from evenhand.generators.tables.records import Records
from evenhand.typing import FloatArray, IntArray

PURPOSE: Final = "categories and bounds of the columns"
DECIMALS: Final = "decimals of the columns"
DELTA_SHARE: Final = 0.1
"""Share of delta that is set aside for categories; the Gaussian releases speak at the rest."""

_POWERS: Final = np.arange(-20, 51)
EDGES: Final[FloatArray] = np.concatenate([-(2.0 ** _POWERS[::-1]), [0.0], 2.0**_POWERS])
"""The public grid of bounds: powers of two, both signs, and zero."""

_IS_FLOAT: Final = re.compile(r"[Ff]loat\d+$")
_YEARS: Final = [f"{year}-01-01" for year in range(1900, 2101, 5)]
DAYS: Final[FloatArray] = np.array(_YEARS, dtype="datetime64[D]").astype(np.float64)
"""The public grid of bounds of dates, in days since 1970: years, five at a time."""

_DAY: Final = SECONDS["day"]
_SURE: Final = 3.0  # deviations, which noise exceeds with a probability of .0013
_LITTLE: Final = 0.01  # share of the records that may be left out without a warning


@dataclass(frozen=True, kw_only=True)
class ColumnHistograms:
    """Counts of each column's values: of those that occur, or over the grid of bounds.

    Privacy
    -------
    A record adds 1 to one count per column: L2 ``r sqrt(m)``, and ``r sqrt(2 m)`` for "replace
    one". Which categories occur at all is private: see ``threshold``.
    """

    n_columns: int
    per_unit: int = 1
    """Records that one unit may have."""
    unit = 1.0

    def l2_sensitivity(self, neighbors: str) -> float:
        """Largest L2 distance between the counts of neighbors."""
        moved = {"add or remove one": 1, "replace one": 2}[neighbors]
        return self.per_unit * math.sqrt(self.n_columns * moved)


def threshold(sigma: float, delta: float, n_columns: int, per_unit: int) -> float:
    """Return the noisy count from which a category may be named.

    Privacy
    -------
    A category that only one unit has would give it away. Such a category has at most r records,
    and there are at most ``r m`` of them, over m columns. It is named if ``r + N >= threshold``;
    that has a probability of at most ``delta / (r m)`` each, hence of ``delta`` in all, and where
    none is named the rest is the Gaussian release of the categories that neighbors share. So the
    whole is private at (epsilon, delta' + delta) if the Gaussian part is at (epsilon, delta').
    (Korolova et al. 2009; Wilson et al. 2020; the tail of discrete Gaussian noise is at most that
    of continuous noise from one step before, Canonne, Kamath and Steinke 2020, Proposition 25.)
    """
    quantile = -float(ndtri(delta / (n_columns * per_unit)))
    return per_unit + 1.0 + sigma * quantile


@dataclass(frozen=True, kw_only=True)
class ReleasedSchema:
    """A schema for all columns, and what the user must know about it."""

    schema: Schema
    notes: tuple[str, ...] = ()
    """What was released, and what may have fallen under the noise."""
    warnings: tuple[str, ...] = ()
    """What fell under the noise for sure. All are of released numbers alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UndeclaredColumns:
    """The counts of all columns that the schema does not declare, ready to be released at once."""

    records: Records
    known: Mapping[str, ColumnSchema]
    """What is declared."""
    wanted: tuple[str, ...]
    """Columns to release."""
    texts: Mapping[str, tuple[str, ...]]
    """Values of those that hold categories. Private."""
    counts: tuple[IntArray, ...]
    """Of each wanted column. Private."""
    infinite: tuple[str, ...] = ()
    """Columns of numbers some of which are infinite. Private."""
    decimals: Mapping[str, IntArray] = field(default_factory=dict)
    """Numbers of 0, 1, ... decimals, and of more than ``MOST_DECIMALS_READ``, in columns of floats
    whose decimals are not declared. Private.
    """

    @classmethod
    def of(
        cls, records: Records, declared: Schema | None, wanted: Sequence[str]
    ) -> UndeclaredColumns:
        """Count the undeclared columns; nothing is released."""
        known = {} if declared is None else {c.name: c for c in declared.columns}
        text = [name for name in wanted if _is_text(records, known, name)]
        grid = [name for name in wanted if name not in text]
        floats = fractional(records, declared, wanted)
        count = partial(_Counted.of, text, grid, floats)
        found = records.total(count, wanted) if wanted else _Counted()
        # In the order of the texts: the order of the rows must not show in what is released.
        texts = {name: natural_order(counted) for name, counted in found.texts.items()}
        counts = dict(found.grids) | {
            name: np.array([found.texts[name][t] for t in ordered], dtype=np.int64)
            for name, ordered in texts.items()
        }
        return cls(
            records=records,
            known=known,
            wanted=tuple(wanted),
            texts=texts,
            counts=tuple(counts[name] for name in wanted),
            infinite=tuple(name for name in wanted if name in found.infinite),
            decimals=found.decimals,
        )

    @property
    def empty(self) -> tuple[str, ...]:
        """Columns without any value."""
        return tuple(n for n, c in zip(self.wanted, self.counts, strict=True) if not c.any())

    @property
    def _conditions(self) -> tuple[str, ...]:
        return tuple(name for name in self.wanted if name in self.records.roles.conditions)

    @property
    def sums(self) -> tuple[IntArray, ...]:
        """What is released: the counts of each column, and perhaps the number of records."""
        all_records = np.array([len(self.records)], dtype=np.int64)
        return (*self.counts, *((all_records,) if self._conditions else ()))

    @property
    def counter(self) -> ColumnHistograms:
        """Sensitivity of the sums."""
        # Where groups are released, the number of all records is counted beside: what is not named
        # of a label or group is left out, and how much that is must not be passed over in silence.
        return ColumnHistograms(
            n_columns=len(self.wanted) + bool(self._conditions), per_unit=self.records.per_unit
        )

    def rare(self, plan: BudgetPlan, delta: float, keep: Collection[str]) -> dict[str, str]:
        """Return the columns that have no category which could be named, with words about each.

        Of a label, a group and a category dtype, for which nothing can stand in, some category
        must be common enough that noise cannot hide it. Other columns may be kept: all their
        values become "other".
        """
        if not self.wanted:
            return {}
        sigma = plan.mechanism(self.counter, PURPOSE).sigma
        least = threshold(sigma, delta, len(self.wanted), self.records.per_unit)
        words = f"has no category that stands out of the noise, about {least:.0f} records"
        found = {}
        for name, counted in zip(self.wanted, self.counts, strict=True):
            if name not in self.texts or self.records.table[name].is_bool:
                continue
            replaced = _has_other(self.records, name)
            if replaced and name in keep:
                continue
            if not (counted >= (least if replaced else least + _SURE * sigma)).any():
                known = self.known.get(name)
                prefix = (known and known.prefix) or 1
                found[name] = words + f': try "prefix": {prefix - 1}' * (prefix > 1)
        return found

    def release_schema(self, plan: BudgetPlan, delta: float) -> ReleasedSchema:
        """Return a schema for all columns: as declared where it is complete, else released.

        Parameters
        ----------
        plan : BudgetPlan
            With a share for ``PURPOSE`` if anything is to be released, and one for ``DECIMALS`` if
            columns are ``fractional``.
        delta : float
            For categories.
        """
        table, wanted = self.records.table, self.wanted
        columns = {
            name: _as_stored(self.known[name], table[name]) for name in table if name not in wanted
        }
        if not wanted:
            return ReleasedSchema(schema=Schema(columns=tuple(columns.values())))
        sums = self.sums
        released = plan.release(self.counter, np.concatenate(sums), PURPOSE)
        parts = np.split(released.values, np.cumsum([len(c) for c in sums])[:-1])
        least = threshold(released.sigma, delta, len(wanted), self.records.per_unit)
        decimals = self._release_decimals(plan)
        warnings: list[str] = []
        doubts: list[str] = []
        guessed: list[str] = []
        for name, noisy in zip(wanted, parts, strict=False):
            if name in self.texts:
                columns[name] = self._categories(name, noisy, least)
            else:
                n = float(parts[-1][0]) if self._conditions else 0.0
                column, sure, doubtful, beyond = self._range(name, noisy, released.sigma, n)
                columns[name] = _with_decimals(column, decimals.get(name))
                guessed += [] if sure else [name]
                warnings += doubtful
                (doubts if column.missing else warnings).extend(beyond)
            if name in self._conditions and not table[name].is_bool:
                # Of booleans nothing is left out: the dtype names both, also where one is not seen,
                # and how many are seen is private.
                named = np.isin(self.texts[name], columns[name].categories)
                left = float(parts[-1][0] - noisy[named].sum())
                spread = released.sigma * math.sqrt(1.0 + named.sum())
                if left >= LOUD * spread:
                    warnings.append(_left_out(name, least, left, spread, sure=True))
                elif left + 2.0 * spread >= _LITTLE * float(parts[-1][0]):
                    doubts.append(_left_out(name, least, left, spread, sure=False))
        if guessed:
            warnings.append(
                f"no range of {some(guessed, 30)} stands out of the noise: "
                f"{'it is' if len(guessed) == 1 else 'each is'} a guess. Declare bounds in a "
                f"schema, raise epsilon, or use more records"
            )
        for name in [n for n in wanted if columns[n].categories == (OTHER,)]:
            warnings.append(f"no category of {name!r} stands out of the noise: all are {OTHER!r}")
        for name in [n for n in wanted if n in self._conditions]:
            if len(columns[name].categories) == 1:
                warnings.append(
                    f"of {name!r} one category alone was named, and all drawn rows have it: there "
                    f"is nothing to compare or to learn. Declare its categories in a schema, "
                    f"raise epsilon, or use more records"
                )
        notes = (
            f"categories or bounds of {len(wanted)} column{'s'[: len(wanted) != 1]} were released "
            f"from the budget; a category below about {least:.0f} records was not named",
            "released were " + "; ".join(_domain(columns[name]) for name in wanted),
            *doubts,
        )
        schema = Schema(columns=tuple(columns[name] for name in table))
        return ReleasedSchema(schema=schema, notes=notes, warnings=tuple(warnings))

    def _release_decimals(self, plan: BudgetPlan) -> dict[str, int | None]:
        """Return how many decimals the numbers of each column have; None where they may have any.

        Privacy
        -------
        One Gaussian release of ``ColumnHistograms``: a number adds 1 to the count of its decimals,
        in each of these columns. Which these are dtypes and the declared schema say. What is
        declared, or the type of the column says, costs nothing.
        """
        told = {name: self.records.table[name].scale for name in self.wanted}
        told |= {n: c.decimals for n, c in self.known.items() if c.decimals is not None}
        if not self.decimals:
            return told
        counter = ColumnHistograms(n_columns=len(self.decimals), per_unit=self.records.per_unit)
        released = plan.release(counter, np.concatenate([*self.decimals.values()]), DECIMALS)
        each = np.split(released.values, len(self.decimals))
        shown = zip(self.decimals, each, strict=True)
        return told | {name: _decimals_shown(noisy, released.sigma) for name, noisy in shown}

    def _range(
        self, name: str, noisy: FloatArray, sigma: float, n: float
    ) -> tuple[ColumnSchema, bool, list[str], list[str]]:
        """Return bounds of numbers or dates, whether they are no guess, and what is left out.

        Of ``n`` records, by a noisy count; 0 where these were not counted.
        """
        column, unit, doubtful = self.records.table[name], None, []
        missing, edges = holds_missing(str(column.dtype)), _edges(column)
        low, high, sure = bounds_of(noisy, sigma, edges, 0.0 if missing else n)
        within = (edges[:-1] >= low) & (edges[1:] <= high)
        left = left_beyond(noisy[within], sigma, n) if sure else 0.0
        beyond = [_moved(name, left, n, gaps=missing)] if left else []
        if sure and {low, high} & {*edges[[0, -1]].tolist()}:
            doubtful = [_at_the_end(column)]
        if column.is_date:
            known = self.known.get(name)
            unit = (known and known.date_unit) or column.date_unit or "second"
            low, high = low * _DAY // SECONDS[unit], high * _DAY // SECONDS[unit] - 1.0
        elif str(column.dtype).lower().startswith(("int", "uint")):
            # The grid has cells below 1, and a guess may fall on one: no whole number.
            low, high = float(math.floor(low)), float(math.ceil(high))
        if (held := number_range(str(column.dtype))) is not None:
            # Powers of two lie beyond a small dtype, which is public; a guess may lie there whole.
            meets = low < held[1] and high > held[0]
            low, high = (max(low, held[0]), min(high, held[1])) if meets else held
        return (
            ColumnSchema(
                name=name, kind="numeric", bounds=(low, high), missing=missing, date_unit=unit
            ),
            sure,
            doubtful,
            beyond,
        )

    def _categories(self, name: str, noisy: FloatArray, least: float) -> ColumnSchema:
        named = [t for t, n in zip(self.texts[name], noisy, strict=True) if n >= least]
        column = self.records.table[name]
        if column.is_bool:
            named = ["False", "True"]  # public: the dtype says it
        more = (OTHER,) if _has_other(self.records, name) else ()
        if not named and not more:
            raise ValueError(
                f"No category of column {name!r} stands out of the noise, by bad luck: none has "
                f"about {least:.0f} records. What was released stays charged. Declare its "
                f"categories in a schema, raise epsilon, or leave the column out."
            )
        is_condition = name in self.records.roles.conditions
        known = self.known.get(name)
        return ColumnSchema(
            name=name,
            kind="categorical",
            categories=natural_order([*named, *more]),
            missing=not is_condition and holds_missing(str(column.dtype)),
            prefix=None if known is None else known.prefix,
            pattern=None if known is None else known.pattern,
        )


def _domain(column: ColumnSchema) -> str:
    """Say what was released of a column: who reads it sees a range that cannot be."""
    if column.bounds is not None:
        ends = (f"{end:.10g}" if isinstance(end, float) else end for end in column.bounds_said)
        places = "" if column.decimals is None else f", decimals {column.decimals}"
        return f"{column.name!r} from {' to '.join(ends)}{places}"
    named = [c for c in column.categories if c != OTHER]
    rest = f" and {OTHER!r}" if OTHER in column.categories else ""
    many = "1 category" if len(named) == 1 else f"{len(named)} categories"
    return f"{column.name!r} with {many}{rest}"


def _at_the_end(column: Column) -> str:
    """Say that a range which was released may be cut off: a function of its ends alone."""
    grid = f"{_YEARS[0]} to {_YEARS[-1]}" if column.is_date else "-2^50 to 2^50"
    return (
        f"the range of {column.name!r} ends where the public grid does that ranges are released "
        f"on, {grid}: values beyond, if there are any, were moved to its end. Declare the bounds "
        f"of {column.name!r} in a schema if there may be"
    )


def _moved(name: str, left: float, n: float, *, gaps: bool) -> str:
    """Say how many records lie beyond a range: a function of released numbers."""
    lack = "lack a value, or " if gaps else ""
    return (
        f"about {left:.0f} of {n:.0f} records {lack}have one beyond the range of {name!r} that "
        f"stands out of the noise, which is moved to its end. Declare the bounds of {name!r} in a "
        f"schema to keep these values"
    )


def _left_out(name: str, least: float, left: float, spread: float, *, sure: bool) -> str:
    """Say how many records have a label or group that was not named.

    A function of released numbers. The number of categories that were not named is itself private:
    one record can add one.
    """
    most = max(left + 2.0 * spread, 0.0)
    told = "" if sure else ", if there are any, which the noise hides"
    return (
        f"categories of {name!r} below about {least:.0f} records are not named, and their records "
        f"are left out{told}: about {max(left, 0.0):.0f} of them, at most {most:.0f}, by noisy "
        f"counts. "
        f"Declare the categories of {name!r} in a schema to keep them"
    )


def undeclared(records: Records, declared: Schema | None) -> tuple[str, ...]:
    """Return the columns for which the schema does not say enough."""
    if declared is not None:
        others = [name for name in declared.names if name != records.roles.unit]
        records.table.require(others, "which the schema names")
    known = {} if declared is None else {c.name: c for c in declared.columns}
    wanted = []
    for name in records.table:
        column = known.get(name)
        if name in records.roles.conditions and column is not None and column.kind == "numeric":
            raise ValueError(
                f"The column {name!r} is the label or sensitive, so the schema must list its "
                f"categories. For amounts make classes of them first."
            )
        if column is None or not (column.categories or column.bounds):
            wanted.append(name)
    return tuple(wanted)


def fractional(records: Records, declared: Schema | None, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose decimals are released: floats, where nothing public says them."""
    known = {} if declared is None else {c.name: c for c in declared.columns}
    return tuple(
        name
        for name in wanted
        if _IS_FLOAT.match(str(records.table[name].dtype))
        and not _is_text(records, known, name)
        and (name not in known or known[name].decimals is None)
        and records.table[name].scale is None
    )


def _is_text(records: Records, known: dict[str, ColumnSchema], name: str) -> bool:
    if name in records.roles.conditions:
        return True
    if name in known:
        return known[name].kind == "categorical"
    return records.table[name].kind_by_dtype == "categorical"


def _has_other(records: Records, name: str) -> bool:
    """Whether what was not named has a place: text columns get a category, conditions none."""
    dtype = str(records.table[name].dtype)
    if name in records.roles.conditions or dtype.lower().startswith(("int", "uint", "bool")):
        return False
    return dtype != "category"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counted:
    """How many rows have each text, and how many numbers lie in each cell of the grid."""

    texts: Mapping[str, Counter[str]] = field(default_factory=dict)
    grids: Mapping[str, IntArray] = field(default_factory=dict)
    infinite: frozenset[str] = frozenset()
    decimals: Mapping[str, IntArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, text: Sequence[str], grid: Sequence[str], floats: Sequence[str], table: TypedTable
    ) -> _Counted:
        return cls(
            texts={name: _text_counts(table[name]) for name in text},
            grids={name: _grid_counts(table[name]) for name in grid},
            infinite=frozenset(name for name in grid if _is_infinite(table[name])),
            decimals={name: table[name].decimal_counts for name in floats},
        )

    def __add__(self, other: _Counted) -> _Counted:
        return _Counted(
            texts={name: held + other.texts[name] for name, held in self.texts.items()},
            grids={name: held + other.grids[name] for name, held in self.grids.items()},
            infinite=self.infinite | other.infinite,
            decimals={name: held + other.decimals[name] for name, held in self.decimals.items()},
        )


def _text_counts(column: Column) -> Counter[str]:
    counted: Counter[str] = Counter()
    each = np.bincount(column.codes[column.codes >= 0], minlength=len(column.texts))
    for text, n in zip(column.texts, each.tolist(), strict=True):
        counted[text] += n
    return counted


def _grid_counts(column: Column) -> IntArray:
    numbers, edges = column.since_1970("day") if column.is_date else column.numbers, _edges(column)
    numbers = numbers[~np.isnan(numbers)]
    at = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(at, minlength=len(edges) - 1).astype(np.int64)


def _decimals_shown(noisy: FloatArray, sigma: float) -> int | None:
    """Return the most decimals that stand out of the noise, if it hides few numbers with more."""
    seen = np.flatnonzero(noisy > -sigma * float(ndtri(MISTAKE / len(noisy))))
    if not len(seen) or seen[-1] > MOST_DECIMALS_READ:
        return None
    most = int(seen[-1])
    hidden = max(float(noisy[most + 1 :].sum()), 0.0) + _SURE * sigma
    return most if hidden <= FEW * float(noisy.sum()) else None


def _as_stored(declared: ColumnSchema, column: Column) -> ColumnSchema:
    """Return declared numbers with the decimals of their type, where the schema says none."""
    scale, bounds = column.scale, declared.bounds
    if declared.decimals is not None or bounds is None or scale is None:
        return declared
    fits = math.ceil(bounds[0] * 10**scale) <= math.floor(bounds[1] * 10**scale)
    if declared.date_unit is not None or not (fits and holds_decimals(bounds, scale)):
        return declared
    return replace(declared, decimals=scale)


def _with_decimals(column: ColumnSchema, decimals: int | None) -> ColumnSchema:
    """Return a column with decimals and bounds that have no more, if floats hold such numbers."""
    assert column.bounds is not None
    if decimals is None or column.date_unit is not None:
        return column
    low, high = column.bounds
    if not holds_decimals((low, high), decimals):
        return column
    per_unit = 10**decimals
    ends = math.floor(low * per_unit) / per_unit, math.ceil(high * per_unit) / per_unit
    return replace(column, bounds=ends, decimals=decimals)


def _is_infinite(column: Column) -> bool:
    return not column.is_date and bool(np.isinf(column.numbers).any())


def _edges(column: Column) -> FloatArray:
    """Return the grid of a column, by its dtype."""
    return DAYS if column.is_date else EDGES

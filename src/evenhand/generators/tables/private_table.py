"""The private table as a payload: columns checked, released where undeclared, cut into states."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._numerals import text_of
from evenhand.datasets import Schema, inspect
from evenhand.datasets.columns import Column, TypedTable, some
from evenhand.datasets.problems import CODES, Problem, names_a_postcode
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.payload import Encoding, Payload
from evenhand.generators.tables.bins import Bins
from evenhand.generators.tables.codec import OTHER, ColumnCode, TableCodec
from evenhand.generators.tables.dtypes import frame_dtype, number_range
from evenhand.generators.tables.encoded import Clique, EncodedStream, EncodedTable
from evenhand.generators.tables.made_columns import MadeColumn
from evenhand.generators.tables.named_values import (
    LABELS,
    NAMES,
    name_values,
    told_apart,
    wide_columns,
    with_values,
)
from evenhand.generators.tables.predicted_groups import GroupsFromReference
from evenhand.generators.tables.records import Records
from evenhand.generators.tables.released_schema import (
    DECIMALS,
    DELTA_SHARE,
    UndeclaredColumns,
    fractional,
    undeclared,
)
from evenhand.generators.tables.released_schema import PURPOSE as SCHEMA
from evenhand.typing import FloatArray

BINS: Final = "counts along the numeric columns, for their bins"
DECLARED: Final = "the declared schema"
SCHEMA_SHARE: Final = 0.1
DECIMALS_SHARE: Final = 0.01
BINS_SHARE: Final = 0.05
NUMBERS: Final[Mapping[str, float]] = {NAMES: 0.02, LABELS: 0.02}
NUMBERS_FROM: Final = 1.0
"""mu squared from which on single numbers are named: below, few stand out of the noise."""

NUMBERS_DELTA: Final = 0.2
"""Of the delta that is set aside for names: for single numbers, where these are named."""


@dataclass(frozen=True, kw_only=True)
class KnownOfTable:
    """What is public of private rows before the first release."""

    n_states: int
    """States that all columns have at least."""
    n_groups: int | None
    """Combinations of sensitive values; None where their names are still to be released."""
    per_unit: int
    """Rows of one unit that are read; 1 without units."""


@dataclass(kw_only=True, eq=False)
class PrivateTable(Payload):
    """Private rows, their roles, and what is declared of their columns; see ``Payload``."""

    records: Records
    schema: Schema | None
    """What is declared of the columns that are learnt. All else is released."""
    keep: Sequence[str]
    """Columns that inspection is to let pass."""
    n_bins: int
    """Bins into which a numeric column is cut at most. At least 2."""
    made: tuple[MadeColumn, ...] = ()
    """Columns that are not among the records, and that drawn rows have."""
    keep_rare: bool = False
    """Let text columns pass of which no category can be named: all their values become "other"."""
    predictors: tuple[GroupsFromReference, ...] = ()
    """By which missing groups were predicted."""
    elsewhere: tuple[str, ...] = ()
    """Conditions whose categories another release of the same fit names; see ``encode``."""
    numbered: tuple[str, ...] = ()
    """Columns whose names are whole numbers in the user's table."""
    public_rows: TypedTable | None = None
    """Public rows by which the columns of numbers are cut to bins, at no cost; None where noisy
    counts cut them.
    """
    wanted: tuple[str, ...] = field(init=False)
    _columns: UndeclaredColumns | None = None

    def __post_init__(self) -> None:
        missing = undeclared(self.records, self.schema)
        self.wanted = tuple(name for name in missing if name not in self.elsewhere)

    @property
    def known(self) -> KnownOfTable:
        """What a method may know before the first release."""
        sensitive = self.records.roles.sensitive
        released = any(name in (*self.wanted, *self.elsewhere) for name in sensitive)
        return KnownOfTable(
            n_states=sum(
                self.n_bins if self._kind(name) == "numeric" else max(2, self._n_declared(name))
                for name in self.records.table
            ),
            n_groups=None if released else math.prod(map(self._n_declared, sensitive)),
            per_unit=self.records.per_unit,
        )

    @property
    def least_states(self) -> tuple[int, ...]:
        """States that each column beside label and groups has at the least, where it differs."""
        names = (n for n in self.records.table.names if n not in self.records.roles.conditions)
        return tuple(max(2, self._n_declared(name)) for name in names)

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""
        return (
            "the names, the order and the dtypes of the columns",
            *(() if self.schema is None and not self.made else (DECLARED,)),
            *((self._made,) if self.made else ()),
            *(
                ("the reference rows from which missing groups are predicted",)
                if self.predictors
                else ()
            ),
        )

    @property
    def delta_aside(self) -> tuple[float, str]:
        """Categories and numbers are named with a probability of failure of their own."""
        return (DELTA_SHARE if self.wanted else 0.0), "naming values"

    def check(self, plan: BudgetPlan, delta: float) -> None:
        """Refuse columns that cannot be learnt, all at once."""
        keep = (*self.keep, *self.elsewhere)
        keep_rare = list(self.records.table) if self.keep_rare else keep
        of_schema = _of_schema(plan, delta)
        self._columns = _ready(
            self.records, self.schema, self.wanted, plan, of_schema, keep, keep_rare
        )
        _checks.at_least("n_bins", self.n_bins, 2)

    def shares(self, of_method: Mapping[str, float], mu_squared: float) -> dict[str, float]:
        """Return the public plan: what is not released leaves its part to the method."""
        first: dict[str, float] = {SCHEMA: SCHEMA_SHARE} if self.wanted else {}
        if fractional(self.records, self.schema, self.wanted):
            first |= {DECIMALS: DECIMALS_SHARE}
        if any(self._kind(name) == "numeric" for name in self.records.table):
            first |= NUMBERS if self.wanted and mu_squared >= NUMBERS_FROM else {}
            first |= {BINS: BINS_SHARE} if self.public_rows is None else {}
        left = 1.0 - sum(first.values())
        return first | {purpose: left * part for purpose, part in of_method.items()}

    def encode(
        self, plan: BudgetPlan, delta: float, named: Sequence[ColumnSchema] = ()
    ) -> Encoding:
        """Release the schema and the bins, and read the rows by them.

        ``named`` are the columns of ``elsewhere``; rows with other values of theirs are left out.
        """
        assert self._columns is not None
        known = {**self._columns.known, **{column.name: column for column in named}}
        of_schema = _of_schema(plan, delta)
        found = replace(self._columns, known=known).release_schema(plan, of_schema)
        records, released = self.records, (*self.wanted, *self.elsewhere)
        codec = TableCodec.of(found.schema, records.table, records.roles.conditions)
        values: dict[str, FloatArray] = {}
        unspent: set[str] = {*NUMBERS} & {*plan.shares}
        if unspent and (wide := wide_columns(codec)):
            values = name_values(records, wide, plan, delta - of_schema)
            unspent = set() if values else {LABELS}
        # Rows are encoded once: the cells of before are sums of the finer ones.
        fine = with_values(codec, values)
        data = records.encoded(fine.by_cell, released)
        if self.public_rows is None:
            codec = _with_bins(codec, fine, data, plan.joined(BINS, unspent), self.n_bins)
        else:
            codec = _with_public_bins(codec, self.public_rows, self.n_bins)
        if values:
            codec = with_values(codec, values)
            codec = told_apart(codec, data, plan, list(values), most=self.n_bins)
        return Encoding(
            codec=replace(codec, made=self.made, numbered=self.numbered),
            data=data.joined(codec),
            notes=(
                *found.notes,
                *_named(values),
                *self._postcodes(),
                *(predictor.words for predictor in self.predictors),
                *((self._made,) if self.made else ()),
            ),
            warnings=(*found.warnings, *self._never_predicted(found.schema)),
        )

    def _never_predicted(self, schema: Schema) -> list[str]:
        """Name the groups of which the reference has no row; both are public or released."""
        groups = {column.name: column.categories for column in schema.columns}
        return [
            f"no reference row has {predictor.name}={group}: rows whose group is missing are never "
            f"taken to be of it, so drawn rows have it too seldom, if private ones of it lack "
            f"their group. Add public rows of it, or leave rows without a group out"
            for predictor in self.predictors
            for group in groups[predictor.name]
            if group not in map(text_of, predictor.values)
        ]

    def _postcodes(self) -> list[str]:
        """Say how undeclared columns named as postcodes are learnt: names and dtypes are public."""
        how = {
            "numeric": "as amounts, and drawn ones need be no postcodes",
            "categorical": f"as categories, and rare ones are {OTHER!r}",
        }
        columns = () if self.schema is None else self.schema.columns
        declared = [column.name for column in columns if column.prefix is not None]
        passed = {*self.records.roles.conditions, *self.keep, *declared}
        return [
            f"{name!r} is named as postcodes are, and was learnt {how[self._kind(name)]}. To learn "
            f"its first characters, and make up the others by a pattern, declare "
            f"{json.dumps({'name': name, **(Problem.POSTCODE.declared or {}), 'pattern': '###'})}"
            for name in self.wanted
            if names_a_postcode(name) and name not in passed
        ]

    @property
    def _made(self) -> str:
        """Which columns are made anew, in words."""
        return f"columns made up and not learnt ({', '.join(repr(c.name) for c in self.made)})"

    def _kind(self, name: str) -> str:
        """Kind of a column; label and groups are categories."""
        if name in self.records.roles.conditions:
            return "categorical"
        declared = {} if self.schema is None else {c.name: c.kind for c in self.schema.columns}
        return declared.get(name) or self.records.table[name].kind_by_dtype

    def _n_declared(self, name: str) -> int:
        columns = () if self.schema is None else self.schema.columns
        return next((len(c.categories) for c in columns if c.name == name), 0)


def _of_schema(plan: BudgetPlan, delta: float) -> float:
    """Return the part of delta that is for categories; the rest is for single numbers."""
    return delta * (1.0 - NUMBERS_DELTA if NAMES in plan.shares else 1.0)


def _named(values: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """Say how many single numbers were named."""
    each = ", ".join(f"{len(found)} of {name!r}" for name, found in values.items())
    return (f"single numbers that many records have were named: {each}",) if each else ()


def _with_bins(
    codec: TableCodec,
    fine: TableCodec,
    data: EncodedTable | EncodedStream,
    plan: BudgetPlan,
    n_bins: int,
) -> TableCodec:
    """Join the cells of numeric columns by noisy counts.

    ``data`` are the rows by the cells of ``fine``, whose bins are the cells of ``codec``.
    """
    numeric = {c: c.bins.cells for c in codec.columns if c.bins is not None}
    if not numeric:
        return codec
    widths = tuple((1, len(cells) + c.has_missing) for c, cells in numeric.items())
    counter = TableCounts(shapes=widths, per_unit=data.per_unit)
    everywhere = np.zeros(codec.conditions.n, dtype=np.int64)
    at = [codec.features.index(column.name) for column in numeric]
    counted = data.counts([Clique(columns=(i,), parts=everywhere) for i in at])
    sums = [
        np.bincount(fine[column.name].states(np.arange(held.size)), held[0]).astype(np.int64)
        for column, held in zip(numeric, counted, strict=True)
    ]
    released = plan.release(counter, np.concatenate(sums), BINS)
    bins = {}
    for (column, cells), noisy in zip(numeric.items(), counter.apart(released.values), strict=True):
        bins[column.name] = Bins.from_noisy(
            cells, noisy[0, : len(cells)], sigma=released.sigma, n_bins=n_bins
        )
    return codec.with_bins(bins)


def _with_public_bins(codec: TableCodec, public: TypedTable, n_bins: int) -> TableCodec:
    """Join the cells of numeric columns by counts of public rows."""
    bins = {}
    for column in codec.columns:
        if column.bins is not None:
            cells, numbers = column.bins.cells, public[column.name].numbers
            counts = np.bincount(cells.codes(numbers[~np.isnan(numbers)]), minlength=len(cells))
            bins[column.name] = Bins.from_noisy(cells, counts, sigma=0.0, n_bins=n_bins)
    return codec.with_bins(bins)


def _ready(
    records: Records,
    schema: Schema | None,
    wanted: Sequence[str],
    plan: BudgetPlan,
    delta: float,
    keep: Collection[str],
    keep_rare: Collection[str],
) -> UndeclaredColumns:
    """Return what is to be released; nothing is spent.

    Parameters
    ----------
    records : Records
    schema : Schema or None
        What is declared.
    wanted : sequence of str
        Columns that are to be released.
    plan : BudgetPlan
        That the columns will be released from.
    delta : float
        For naming categories.
    keep : collection of str
        Columns that inspection is to let pass.
    keep_rare : collection of str
        Columns whose values may all become "other".

    Raises
    ------
    ValueError
        For columns that cannot be learnt, would be learnt wrong, hold what the schema does not
        allow, or of which nothing could be released: all of these at once.

    Privacy
    -------
    It reads private rows, and its messages are for the curator: columns and kinds, no value. That
    a fit was not refused is not covered by its claim.
    """
    table, roles = records.table, records.roles
    table.require(sorted(keep), "which keep= names")
    found = inspect(table, label=roles.label, sensitive=roles.sensitive, schema=schema)
    # Whether a column is empty all rows say, of which ``table`` may be some.
    unseen = {c.name for c in found.grave if c.grave[0].problem is Problem.EMPTY}
    dates = [c.name for c in table.columns if c.is_date and c.name not in roles.conditions]
    passed = {*keep, *dates, *unseen}
    wrong = {column.name for column in found.grave} - passed
    known = {} if schema is None else {column.name: column for column in schema.columns}
    strange = [column.name for column in table.columns if not _comes_back(column.dtype)]
    learnt = {*table} - {*dates, *strange}
    texts = [n for n, c in known.items() if c.date_unit and n in learnt]
    wrong |= set(texts)
    readable = [name for name in wanted if name not in {*wrong, *strange}]
    columns = UndeclaredColumns.of(records, schema, readable)
    unfit = dict.fromkeys(columns.empty, Problem.EMPTY.words) | dict.fromkeys(texts, _NO_DATES)
    unfit |= dict.fromkeys(columns.infinite, _INFINITE)
    wrong |= set(unfit)
    also = columns.rare(plan, delta, keep_rare) | unfit
    for name in set(columns.texts) - set(also) - set(keep) - set(roles.conditions):
        if _are_numbers(table[name]) and len(columns.texts[name]) > CODES:
            also[name] = "holds numbers as Python objects, each of which would be a category"
    features = (wrong | set(also)) - set(roles.conditions)
    way_out = f"{_LEAVE_OUT} {_DECLARE}" if features else _DECLARE
    lines = found.lines(features)
    if lines:
        way_out = f"{_ANEW} {', '.join(lines)}. {way_out}"
    if any(f.problem is Problem.DATE for c in found.grave if c.name in wrong for f in c.findings):
        way_out = f"{_DATES} {way_out}"
    declared = [n for n in table if n in known and n not in {*wanted, *strange, *wrong}]
    held = [known[name] for name in declared]
    _checks.together(
        [
            lambda: found.require("private table", way_out, keep=passed, also=also),
            lambda: _refuse_dtypes(table, strange),
            lambda: declared and records.total(partial(_refuse_values, held), declared),
        ]
    )
    return columns


def _refuse_dtypes(table: TypedTable, strange: Sequence[str]) -> None:
    if strange:
        long = any(table[name].holds_durations for name in strange)
        raise ValueError(
            f"Rows cannot be drawn with the dtype of {', '.join(map(repr, strange))} "
            f"({', '.join(str(table[name].dtype) for name in strange)}). Convert these columns"
            f"{', durations with .dt.total_seconds(), others' * long} with astype, for example to "
            f"'float64', 'Int64', 'boolean' or 'str'."
        )


def _refuse_values(declared: Sequence[ColumnSchema], table: TypedTable) -> int:
    """Raise for the first value of each column that its schema does not allow."""
    _checks.together(partial(_refuse_values_of, column, table) for column in declared)
    return 0


def _refuse_values_of(declared: ColumnSchema, table: TypedTable) -> None:
    only = table.select([declared.name])
    _refuse_bounds(declared, only[declared.name])
    (code,) = TableCodec.of(Schema(columns=(declared,)), only, ()).columns
    _refuse_categories(code, only[declared.name])
    code.cells(only[declared.name])


def _refuse_bounds(declared: ColumnSchema, column: Column) -> None:
    """Raise for declared bounds beyond what the dtype holds: rows could not be drawn with it."""
    held = number_range(str(column.dtype))
    if declared.bounds is None or held is None:
        return
    if declared.bounds[0] < held[0] or declared.bounds[1] > held[1]:
        low, high = (f"{end:.10g}" for end in declared.bounds)
        least, most = (f"{end:.10g}" for end in held)
        raise ValueError(
            f"The schema declares bounds of column {declared.name!r} from {low} to {high}, and its "
            f"dtype {column.dtype} holds numbers from {least} to {most}. Declare bounds within "
            f"these, or convert the column with astype to a larger dtype."
        )


def _refuse_categories(code: ColumnCode, column: Column) -> None:
    """Raise for declared categories that would not come back from the dtype as they are."""
    if code.bins is not None or not (column.is_number or column.is_bool or column.is_category):
        return
    strange = [text for i, text in enumerate(code.schema.categories) if not _is_drawn(code, i)]
    if strange:
        held = number_range(str(column.dtype))
        kind = "numbers" if "float" in str(column.dtype).lower() else "whole numbers"
        said = "values that are written otherwise"
        if column.is_bool:
            said = "'True' and 'False' alone"
        elif held is not None:
            said = f"{kind} from {held[0]:.10g} to {held[1]:.10g} alone"
        raise ValueError(
            f"The schema declares the categories {some(strange)} of column "
            f"{column.name!r}, which its dtype {column.dtype} cannot hold as they are written: "
            f"it holds {said}. Leave these categories out, or convert the column with "
            f"astype('str')."
        )


def _is_drawn(code: ColumnCode, state: int) -> bool:
    """Whether a category is itself where it is drawn, as the text of a value of the dtype."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a cast that overflows
            (drawn,) = code.decode(np.array([state]), np.random.default_rng(0))
    except (ValueError, TypeError, OverflowError):
        return False
    return text_of(drawn) == code.schema.categories[state]


_LEAVE_OUT: Final = (
    "Leave features out with {drop}, in Python drop(columns={names}); or learn them as they are "
    "with --keep, in Python keep={names}."
)
_ANEW: Final = (
    "Ids, e-mail addresses and phone numbers are made anew in drawn rows, and of postcodes the "
    "first characters are learnt, by these lines of the schema of --schema:"
)
_NO_DATES: Final = "is declared as a date, which its dtype does not say: use pd.to_datetime"
_INFINITE: Final = (
    "holds infinite numbers, which no range that is released can hold: make them missing, or "
    'declare {"bounds": [low, high]}, to whose ends they are moved'
)
_DATES: Final = (
    'Dates in text are learnt as such by pd.to_datetime, or by {"kind": "date"} in the schema of '
    "--schema."
)
_DECLARE: Final = (
    "Declare what is public of columns, such as their categories, in a schema; a larger epsilon "
    "names rarer ones. Nothing was spent."
)


def _are_numbers(column: Column) -> bool:
    return column.is_object and column.kind == "numeric"


def _comes_back(dtype: object) -> bool:
    try:
        frame_dtype(str(dtype))
    except ValueError:
        return False
    return not isinstance(dtype, pd.SparseDtype)

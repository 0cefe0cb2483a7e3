"""All columns of a table looked at once: what is wrong with each, and the way on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand._numerals import natural_order, text_of
from evenhand.datasets.columns import Column, TypedTable, some
from evenhand.datasets.findings import Finding, InspectedColumn, Inspection
from evenhand.datasets.problems import (
    MANY,
    TOO_MANY,
    Problem,
    example_of,
    first_that_is_no_number,
    is_copy,
    missing_codes,
    names_a_postcode,
    names_an_id,
    names_phones,
    numbers_are_identifier,
    numbers_are_phones,
    spellings,
    text_is_identifier,
    text_problem,
    unlike_text,
)
from evenhand.datasets.schema import ColumnSchema, Schema
from evenhand.typing import IntArray

_ORDER: Final = tuple(Problem)
_PROBED: Final = 20_000  # rows that show whether a column has many values
_READ: Final = 5_000  # different values whose form is looked at


def inspect(
    frame: TypedTable | pd.DataFrame,
    *,
    label: str | None = None,
    sensitive: str | Sequence[str] = (),
    unit: str | None = None,
    public: TypedTable | pd.DataFrame | None = None,
    schema: Schema | None = None,
) -> Inspection:
    """Look at all columns of a private table for what would be learnt wrong.

    Parameters
    ----------
    frame : DataFrame
        Private rows.
    label, sensitive, unit : str, optional
        Roles of columns; all others are features. ``sensitive`` may be several.
    public : DataFrame, optional
        Public rows, to compare with and to read a schema from.
    schema : Schema, optional
        Declared columns: a run does not stop for their kind.

    Returns
    -------
    Inspection
        Findings per column, the columns to drop and a schema; ``str()`` of it is for reading.

    Privacy
    -------
    None: the result is read from private rows without noise, and quotes values. It is for whoever
    may see the rows. ``schema`` alone is made of public rows, or of dtypes.

    Examples
    --------
    >>> frame = pd.DataFrame({"person": range(40), "born": ["1970-01-31", "1981-12-24"] * 20,
    ...                       "wage": ["1.200,50", "900", "75,5", "3"] * 10})
    >>> found = inspect(frame)
    >>> found.drop
    '--drop person --drop born --drop wage'
    >>> [str(column.findings[0].problem.words) for column in found.columns[:2]]
    ['looks like an identifier', 'holds dates or times']
    """
    table = TypedTable.of(frame, "private table", keeps=False)
    theirs = None if public is None else TypedTable.of(public, "public table", keeps=False)
    several = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    roles = {**dict.fromkeys(several, "sensitive")}
    roles |= {name: role for name, role in ((label, "label"), (unit, "unit")) if name is not None}
    for name, role in roles.items():
        table.require([name], f"which {role}= names")
    labels = None
    if label is not None:  # by their texts, as categories are: dates have no codes
        texts = table[label].values.astype(object).map(text_of, na_action="ignore")
        labels = pd.factorize(texts)[0].astype(np.int64)
    declared = () if schema is None else schema.names
    columns = []
    for column in table.columns:
        name, role = column.name, roles.get(column.name, "feature")
        known = None if theirs is None or name not in theirs else theirs[name]
        found = _inspected(column, role, labels, known)
        if theirs is not None and known is None and role in ("feature", "sensitive"):
            found = replace(found, findings=(*found.findings, Finding(problem=Problem.NOT_PUBLIC)))
        in_order = tuple(sorted(found.findings, key=lambda f: _ORDER.index(f.problem)))
        columns.append(replace(found, declared=name in declared, findings=in_order))
    made = Inspection(n_rows=len(table), columns=tuple(columns), schema=None, schema_from="")
    wrong = {column.name for column in made.grave}
    kept = table.select(name for name in table if name not in wrong and name != unit)
    read, source = _schema(kept, theirs, roles)
    return replace(made, schema=read, schema_from=source)


def _inspected(
    column: Column, role: str, labels: IntArray | None, public: Column | None
) -> InspectedColumn:
    """Look at one column; ``labels`` are codes of all rows."""
    there = ~column.missing
    missing = 1.0 - float(there.mean()) if len(there) else 0.0

    def result(
        holds: str, n_different: int | None, found: Sequence[Finding | Problem | None]
    ) -> InspectedColumn:
        known = (Finding(problem=f) if isinstance(f, Problem) else f for f in found)
        return InspectedColumn(
            name=column.name,
            role=role,
            holds=holds,
            missing=missing,
            n_different=n_different,
            findings=tuple(f for f in known if f is not None),
        )

    if not there.any():
        return result("nothing", None, [Problem.EMPTY])
    try:
        kind = column.kind
    except TypeError:
        wrong = Problem.DATE if column.holds_dates else Problem.OBJECTS
        return result("nothing", None, [Problem.DURATION if column.holds_durations else wrong])
    values = column.values[there]
    if role in ("label", "unit"):  # of public rows nobody reads these
        public = None
    other = [] if public is None else [_other_kind(kind, public)]
    if kind == "numeric":
        found = _of_numbers(values, column.name, role)
        found += [*other, _copy(column, values, labels, role)]
        return result("numbers", None, found)
    many = text_is_identifier(values.iloc[:: _stride(values)].nunique(), min(len(values), _PROBED))
    # Of very many values some are looked at; few are read all, and kept for the next reader.
    texts = Column(values.iloc[:: _stride(values)]).texts if many else column.texts
    found = other + _of_texts(texts, role, column.is_category)
    if any(f is not None for f in other):  # numbers among the public rows: these are slips
        found = [f for f in found if f is None or f.problem is not Problem.NUMBER_TEXT]
    plain = not any(f is not None and f.problem.stops for f in found) and role != "unit"
    if role == "feature" and names_a_postcode(column.name) and len(texts) > MANY:
        found.append(Finding(problem=Problem.POSTCODE))
    if many or text_is_identifier(len(texts), len(values)):
        found += [Finding(problem=unlike_text(texts))] if plain else []
        return result("categories", None if many else len(texts), found)
    if plain and len(texts) > MANY:
        found.append(Finding(problem=Problem.MANY_CATEGORIES))
    if role == "feature":
        if names_an_id(column.name) and len(texts) > MANY:
            found.append(Finding(problem=Problem.REPEATED_ID))
        found.append(_copy(column, values, labels, role))
    found.append(_constant(len(texts)))
    if public is not None and not any(f is not None for f in other):
        found.append(_new(texts, public))
    return result("categories", len(texts), found)


def _of_numbers(values: pd.Series[Any], name: str, role: str) -> list[Finding | None]:
    if role != "feature":
        return [_constant(2 if role == "unit" else values.iloc[:_PROBED].nunique())]
    probe = values.iloc[:: _stride(values)]
    n = probe.nunique()
    if names_phones(name) and numbers_are_phones(Column(probe).numbers):
        return [Finding(problem=Problem.PHONE)]
    if names_a_postcode(name) and n > MANY:
        return [Finding(problem=Problem.POSTCODE)]
    if n == len(probe):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if numbers_are_identifier(numbers, name):
            return [Finding(problem=Problem.IDENTIFIER)]
    elif n > 1 and names_an_id(name) and n <= len(probe) / 2:
        return [Finding(problem=Problem.REPEATED_ID)]
    of_objects = probe.dtype == object  # whole numbers of hundreds of digits, for one
    numbers = Column(probe).numbers if of_objects else probe.to_numpy(np.float64, na_value=np.nan)
    codes = missing_codes(numbers)
    far = Finding(problem=Problem.MISSING_CODE, detail=some(codes)) if codes else None
    return [_constant(2 if n > 1 else values.nunique()), far]


def _of_texts(texts: Sequence[str], role: str, coded: bool) -> list[Finding | None]:
    """Read the different values of a text column; ``coded``: they are categories by dtype."""
    if role == "unit":
        return []
    found: list[Finding | None] = []
    problem = None if coded else text_problem(texts[:_READ])
    if problem is not None:
        slip = first_that_is_no_number(texts[:_READ]) if problem is Problem.NUMBER_TEXT else None
        detail = f"e.g. {example_of(problem, texts)!r}" if slip is None else f"{slip!r} is none"
        found.append(Finding(problem=problem, detail=detail))
    alike = spellings(texts[:_READ])
    if alike:
        shown = "; ".join(", ".join(map(repr, written)) for written in alike[:3])
        more = f"; and {len(alike) - 3} more" if len(alike) > 3 else ""
        found.append(Finding(problem=Problem.SPELLINGS, detail=shown + more))
    return found


def _constant(n_different: int) -> Finding | None:
    return Finding(problem=Problem.CONSTANT) if n_different == 1 else None


def _other_kind(kind: str | None, public: Column) -> Finding | None:
    try:
        theirs = public.kind
    except TypeError:
        return Finding(problem=Problem.OTHER_KIND, detail="neither in the public table")
    if theirs is None or theirs == kind:
        return None
    return Finding(problem=Problem.OTHER_KIND, detail=f"{_HOLDS[theirs]} in the public table")


_HOLDS: Final = {"numeric": "numbers", "categorical": "text"}


def _new(texts: Sequence[str], public: Column) -> Finding | None:
    new = natural_order(set(texts) - set(public.texts))
    return Finding(problem=Problem.NEW_CATEGORIES, detail=some(new)) if new else None


def _copy(
    column: Column, values: pd.Series[Any], labels: IntArray | None, role: str
) -> Finding | None:
    """Say whether a feature repeats the label; ``values`` are those that are there."""
    if labels is None or role != "feature":
        return None
    ours = labels[~column.missing]
    known = ours >= 0
    n_classes = int(labels.max()) + 1
    # A copy has as many values as there are classes: most columns are passed over by a few rows.
    if values.iloc[:1000].nunique() > n_classes:
        return None
    if known.mean() < 0.5 or not known.any() or len(values) <= 0.5 * len(column):
        return None
    same = is_copy(column.codes[~column.missing][known], ours[known])
    return Finding(problem=Problem.LABEL_COPY) if same else None


def _stride(values: pd.Series[Any]) -> int:
    return max(1, len(values) // _PROBED)


def _schema(
    table: TypedTable, public: TypedTable | None, roles: dict[str, str]
) -> tuple[Schema | None, str]:
    """Return a schema of these columns that holds nothing private, and where it is from."""
    if public is not None:
        shared = [name for name in table if name in public]
        usable = [name for name in shared if _is_usable(public[name])]
        if not usable:
            return None, "no public column could be read"
        read = Schema.of_public(
            public.select(usable), categorical=[n for n in usable if n in roles]
        )
        whole = tuple(_with_bounds(c, public[c.name]) for c in read.columns)
        return Schema(columns=whole), "the public rows: categories, smallest and largest values"
    columns = [_by_dtype(column) for column in table.columns if column.name not in roles]
    known = tuple(column for column in columns if column is not None)
    said = "the dtypes alone: no category of text and no bound, which would be read from private"
    return (Schema(columns=known) if known else None), f"{said} rows"


def _is_usable(column: Column) -> bool:
    try:
        kind = column.kind
    except TypeError:
        return False
    return kind == "numeric" or (kind is not None and column.values.nunique() <= TOO_MANY)


def _with_bounds(column: ColumnSchema, public: Column) -> ColumnSchema:
    if column.kind != "numeric":
        return column
    numbers = public.numbers[~public.missing]
    low, high = float(numbers.min()), float(numbers.max())
    bounds = (low, high) if np.isfinite([low, high]).all() and low < high else None
    return replace(column, bounds=bounds)


def _by_dtype(column: Column) -> ColumnSchema | None:
    """Return what a dtype says; of text it does not say the categories."""
    dtype, name = column.dtype, column.name
    if pd.api.types.is_bool_dtype(dtype):
        may_miss = str(dtype) != "bool"
        return ColumnSchema(
            name=name, kind="categorical", categories=("False", "True"), missing=may_miss
        )
    if not pd.api.types.is_numeric_dtype(dtype) or column.is_category:
        return None
    decimals = 0 if pd.api.types.is_integer_dtype(dtype) else column.scale
    return ColumnSchema(
        name=name, kind="numeric", missing=str(dtype)[:1] not in "iu", decimals=decimals
    )

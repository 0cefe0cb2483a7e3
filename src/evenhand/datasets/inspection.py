"""All columns of a table looked at once: what is wrong with each, and the way on."""

from __future__ import annotations

import html
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand._checks import did_you_mean
from evenhand.datasets.columns import (
    Column,
    as_frame,
    kind_of,
    natural_order,
    some,
    to_numbers,
    to_texts,
)
from evenhand.datasets.problems import (
    MANY,
    TOO_MANY,
    Problem,
    first_that_is_no_number,
    is_copy,
    names_an_id,
    numbers_are_identifier,
    spellings,
    text_is_identifier,
    text_problem,
)
from evenhand.datasets.schema import ColumnSchema, Schema
from evenhand.typing import IntArray

FOR_THE_CURATOR: Final = (
    "For the curator alone: this was read from private rows, exactly and without noise."
)

IN_PYTHON: Final = (
    "Go on without them: drop(columns={names}); or correct them; or declare "
    "them in a schema; or pass inspect=False to go on as it is. evenhand.datasets.inspect(frame) "
    "says more."
)
"""The way out of ``Inspection.require`` for callers in Python."""

_OF_TWO_TABLES: Final = frozenset({Problem.OTHER_KIND, Problem.NOT_PUBLIC})
_ORDER: Final = tuple(Problem)
_PROBED: Final = 20_000  # rows from which it is told whether a column has many values
_READ: Final = 5_000  # different values whose form is looked at


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One problem of one column; ``detail`` may quote private values."""

    problem: Problem
    detail: str = ""

    def __str__(self) -> str:
        return self.problem.words + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True, kw_only=True)
class InspectedColumn:
    """What was found about one column.

    Parameters
    ----------
    name : str
        Name of the column.
    role : str
        "feature", "label", "sensitive" or "unit".
    holds : str
        "numbers", "categories", or "nothing" that can be read.
    missing : float
        Share of the rows without a value, in [0, 1].
    n_different : int or None
        Different values; None for numbers, and above 1,000.
    findings : tuple of Finding
        Its problems, the grave ones first.
    declared : bool
        Whether a schema says what it holds.
    """

    name: str
    role: str
    holds: str
    missing: float
    n_different: int | None
    findings: tuple[Finding, ...]
    declared: bool = False

    @property
    def grave(self) -> tuple[Finding, ...]:
        """Findings that stop a run: of a feature, and about a kind that no schema declares."""
        if self.role != "feature":
            return ()
        undeclared = (Problem.LABEL_COPY, Problem.NOT_PUBLIC)
        return tuple(
            f
            for f in self.findings
            if f.problem.stops and (not self.declared or f.problem in undeclared)
        )


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What ``inspect`` found. For the curator alone: it is read from private rows.

    Parameters
    ----------
    n_rows : int
        Number of private rows.
    columns : tuple of InspectedColumn
        In the table's order.
    schema : Schema or None
        Of the columns that are not to be dropped, from public rows, or from dtypes alone.
    schema_from : str
        Where it is from, in words.
    """

    n_rows: int
    columns: tuple[InspectedColumn, ...]
    schema: Schema | None
    schema_from: str

    @property
    def grave(self) -> tuple[InspectedColumn, ...]:
        """Columns on which ``train`` and ``synthesize`` stop."""
        return tuple(column for column in self.columns if column.grave)

    @property
    def drop(self) -> str:
        """Words of a command that leave these columns out; empty if there is none."""
        return options("--drop", [column.name for column in self.grave])

    def require(
        self,
        where: str,
        way_out: str,
        *,
        keep: Collection[str] = (),
        also: Mapping[str, str] | None = None,
    ) -> None:
        """Raise ValueError if a column would silently be learnt wrong, and name all of them.

        The message names columns and kinds of problems, and no value.

        Parameters
        ----------
        where : str
            What to call the table.
        way_out : str
            How to go on, with ``{drop}`` for the options that drop the columns and ``{names}`` for
            their names.
        keep : collection of str
            Columns that are learnt as they are.
        also : mapping of str to str, optional
            Further columns with what is wrong with them, found elsewhere.
        """
        wrong = {c.name: c.grave[0].problem for c in self.grave if c.name not in keep}
        # Where two tables do not match, the reader of both knows the row and the nearest name.
        if not also and set(wrong.values()) <= _OF_TWO_TABLES:
            return
        words = {name: problem.words for name, problem in wrong.items()} | dict(also or {})
        names = [column.name for column in self.columns if column.name in words]
        said = "; ".join(f"column {name!r} {words[name]}" for name in names)
        away = [c.name for c in self.columns if c.name in words and c.role == "feature"]
        # No str.format: names of files and columns may hold braces.
        way = way_out.replace("{drop}", options("--drop", away)).replace("{names}", repr(away))
        raise ValueError(
            f"{said[0].upper()}{said[1:]}: the {where} would be learnt wrong without a word. {way}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; they are as private as the rows."""
        return {
            "for": FOR_THE_CURATOR,
            "n_rows": self.n_rows,
            "columns": [
                {
                    "name": c.name,
                    "role": c.role,
                    "holds": c.holds,
                    "missing": c.missing,
                    "n_different": c.n_different,
                    "declared": c.declared,
                    "stops": bool(c.grave),
                    "findings": [
                        {"problem": f.problem.kind, "detail": f.detail, "then": f.problem.then}
                        for f in c.findings
                    ],
                }
                for c in self.columns
            ],
            "drop": self.drop,
            "schema": None if self.schema is None else self.schema.to_dict(),
            "schema_from": self.schema_from,
        }

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return column, what it holds, missing share, what was found, and what follows."""
        out = []
        for c in self.columns:
            role = "" if c.role == "feature" else f" ({c.role})"
            many = {None: c.holds, 1: "1 category"}.get(c.n_different, f"{c.n_different} {c.holds}")
            head = (f"{c.name}{role}", many, f"{c.missing:.1%}")
            for i, f in enumerate(c.findings):
                goes_on = f.problem.stops and f not in c.grave
                then = "go on: it is declared, or no feature" if goes_on else f.problem.then
                out.append((*(head if not i else ("", "", "")), str(f), then))
            if not c.findings:
                out.append((*head, "", ""))
        return out

    def __str__(self) -> str:
        told = [
            f"  {column or '  and'}: {found}\n      then: {then}"
            for column, _, _, found, then in self.rows()
            if found
        ]
        n = len(self.columns)
        lines = [FOR_THE_CURATOR, f"{self.n_rows:,} rows, {n} columns.", *told]
        if not told:
            lines.append("Nothing was found.")
        if self.drop:
            lines.append(f"Leave out what would be learnt wrong: {self.drop}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = ("column", "holds", "missing", "found", "train and synthesize")
        cells = [
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        ]
        head = "".join(f"<th>{name}</th>" for name in heads)
        drop = f"<p><code>{html.escape(self.drop)}</code></p>" if self.drop else ""
        return f"<p>{FOR_THE_CURATOR}</p><table><tr>{head}</tr>{''.join(cells)}</table>{drop}"


def inspect(
    frame: pd.DataFrame,
    *,
    label: str | None = None,
    sensitive: str | Sequence[str] = (),
    unit: str | None = None,
    public: pd.DataFrame | None = None,
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
    frame = as_frame(frame, "private table")
    public = None if public is None else as_frame(public, "public table")
    several = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    roles = {**dict.fromkeys(several, "sensitive")}
    roles |= {name: role for name, role in ((label, "label"), (unit, "unit")) if name is not None}
    for name in roles:
        if name not in frame.columns:
            raise ValueError(
                f"The private table has no column {name!r}.{did_you_mean(name, frame.columns)} "
                f"Its columns: {some(frame.columns, 30)}."
            )
    labels = None if label is None else pd.factorize(frame[label])[0].astype(np.int64)
    declared = () if schema is None else schema.names
    columns = []
    for name in frame.columns:
        role = roles.get(name, "feature")
        known = None if public is None or name not in public.columns else public[name]
        found = _inspected(frame[name], role, labels, known)
        if public is not None and known is None and role in ("feature", "sensitive"):
            found = replace(found, findings=(*found.findings, Finding(problem=Problem.NOT_PUBLIC)))
        in_order = tuple(sorted(found.findings, key=lambda f: _ORDER.index(f.problem)))
        columns.append(replace(found, declared=name in declared, findings=in_order))
    made = Inspection(n_rows=len(frame), columns=tuple(columns), schema=None, schema_from="")
    wrong = {column.name for column in made.grave}
    kept = frame[[name for name in frame.columns if name not in wrong and name != unit]]
    read, source = _schema(kept, public, roles)
    return replace(made, schema=read, schema_from=source)


def options(option: str, names: Sequence[str]) -> str:
    """Return the words of a command that name these columns, ready for a shell."""
    return " ".join(f"{option} {shlex.quote(name)}" for name in names)


def _inspected(
    column: Column, role: str, labels: IntArray | None, public: Column | None
) -> InspectedColumn:
    """Look at one column; ``labels`` are codes of all rows."""
    name = str(column.name)
    there = column.notna().to_numpy(dtype=bool)
    missing = 1.0 - float(there.mean()) if len(there) else 0.0

    def result(
        holds: str, n_different: int | None, found: Sequence[Finding | Problem | None]
    ) -> InspectedColumn:
        told = (Finding(problem=f) if isinstance(f, Problem) else f for f in found)
        return InspectedColumn(
            name=name,
            role=role,
            holds=holds,
            missing=missing,
            n_different=n_different,
            findings=tuple(f for f in told if f is not None),
        )

    if not there.any():
        return result("nothing", None, [Problem.EMPTY])
    try:
        kind = kind_of(column)
    except TypeError:
        dates = pd.api.types.infer_dtype(column, skipna=True)
        is_date = any(word in dates for word in ("date", "time", "period"))
        return result("nothing", None, [Problem.DATE if is_date else Problem.OBJECTS])
    values = column[there]
    other = [] if public is None else [_other_kind(kind, public)]
    if kind == "numeric":
        found = _of_numbers(values, name, role)
        found += [*other, _copy(values, there, labels, role)]
        return result("numbers", None, found)
    many = text_is_identifier(values.iloc[:: _stride(values)].nunique(), min(len(values), _PROBED))
    probed = values.iloc[:: _stride(values)] if many else values
    codes, texts = to_texts(probed)
    found = other + _of_texts(texts, role, isinstance(column.dtype, pd.CategoricalDtype))
    if any(f is not None for f in other):  # numbers among the public rows: these are slips
        found = [f for f in found if f is None or f.problem is not Problem.NUMBER_TEXT]
    plain = not any(f is not None and f.problem.stops for f in found) and role != "unit"
    if many or text_is_identifier(len(texts), len(values)):
        found += [Finding(problem=Problem.IDENTIFIER)] if plain else []
        return result("categories", None if many else len(texts), found)
    if plain and len(texts) > MANY:
        found.append(Finding(problem=Problem.MANY_CATEGORIES))
    if role == "feature":
        if names_an_id(name) and len(texts) > MANY:
            found.append(Finding(problem=Problem.REPEATED_ID))
        found.append(_copy(values, there, labels, role, codes))
    found.append(_constant(len(texts)))
    if public is not None and not any(f is not None for f in other):
        found.append(_new(texts, public))
    return result("categories", len(texts), found)


def _of_numbers(values: Column, name: str, role: str) -> list[Finding | None]:
    if role != "feature":
        return [_constant(2 if role == "unit" else values.iloc[:_PROBED].nunique())]
    probe = values.iloc[:: _stride(values)]
    n = probe.nunique()
    if n == len(probe):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if numbers_are_identifier(numbers, name):
            return [Finding(problem=Problem.IDENTIFIER)]
    elif n > 1 and names_an_id(name) and n <= len(probe) / 2:
        return [Finding(problem=Problem.REPEATED_ID)]
    return [_constant(2 if n > 1 else values.nunique())]


def _of_texts(texts: Sequence[str], role: str, coded: bool) -> list[Finding | None]:
    """Read the different values of a text column; ``coded``: they are categories by dtype."""
    if role == "unit":
        return []
    found: list[Finding | None] = []
    problem = None if coded else text_problem(texts[:_READ])
    if problem is not None:
        slip = first_that_is_no_number(texts[:_READ]) if problem is Problem.NUMBER_TEXT else None
        detail = f"e.g. {texts[0]!r}" if slip is None else f"{slip!r} is none"
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
        theirs = kind_of(public)
    except TypeError:
        return Finding(problem=Problem.OTHER_KIND, detail="neither in the public table")
    if theirs is None or theirs == kind:
        return None
    return Finding(problem=Problem.OTHER_KIND, detail=f"{_HOLDS[theirs]} in the public table")


_HOLDS: Final = {"numeric": "numbers", "categorical": "text"}


def _new(texts: Sequence[str], public: Column) -> Finding | None:
    new = natural_order(set(texts) - set(to_texts(public)[1]))
    return Finding(problem=Problem.NEW_CATEGORIES, detail=some(new)) if new else None


def _copy(
    values: Column,
    there: np.ndarray[Any, np.dtype[np.bool_]],
    labels: IntArray | None,
    role: str,
    codes: IntArray | None = None,
) -> Finding | None:
    """Say whether a feature repeats the label."""
    if labels is None or role != "feature":
        return None
    ours = labels[there]
    known = ours >= 0
    n_classes = int(labels.max()) + 1
    # A copy has as many values as there are classes: most columns are passed over by a few rows.
    if values.iloc[:1000].nunique() > n_classes:
        return None
    if codes is None:
        codes = pd.factorize(values)[0].astype(np.int64)
    if known.mean() < 0.5 or not known.any():
        return None
    same = is_copy(codes[known], ours[known])
    return Finding(problem=Problem.LABEL_COPY) if same and there.mean() > 0.5 else None


def _stride(values: Column) -> int:
    return max(1, len(values) // _PROBED)


def _schema(
    frame: pd.DataFrame, public: pd.DataFrame | None, roles: dict[str, str]
) -> tuple[Schema | None, str]:
    """Return a schema of these columns that holds nothing private, and where it is from."""
    if public is not None:
        shared = [name for name in frame.columns if name in public.columns]
        usable = [name for name in shared if _is_usable(public[name])]
        if not usable:
            return None, "no public column could be read"
        read = Schema.of_public(public[usable], categorical=[n for n in usable if n in roles])
        whole = tuple(_with_bounds(c, public[c.name]) for c in read.columns)
        return Schema(columns=whole), "the public rows: categories, smallest and largest values"
    columns = [_by_dtype(frame[name]) for name in frame.columns if name not in roles]
    known = tuple(column for column in columns if column is not None)
    said = "the dtypes alone: no category of text and no bound, which would be read from private"
    return (Schema(columns=known) if known else None), f"{said} rows"


def _is_usable(column: Column) -> bool:
    try:
        kind = kind_of(column)
    except TypeError:
        return False
    return kind == "numeric" or (kind is not None and column.nunique() <= TOO_MANY)


def _with_bounds(column: ColumnSchema, public: Column) -> ColumnSchema:
    if column.kind != "numeric":
        return column
    numbers = to_numbers(public[public.notna()])
    low, high = float(numbers.min()), float(numbers.max())
    whole = pd.api.types.is_integer_dtype(public.dtype)
    bounds = (low, high) if np.isfinite([low, high]).all() and low < high else None
    return replace(column, bounds=bounds, integer=whole)


def _by_dtype(column: Column) -> ColumnSchema | None:
    """Return what a dtype says; of text it does not say the categories."""
    dtype, name = column.dtype, str(column.name)
    if pd.api.types.is_bool_dtype(dtype):
        may_miss = str(dtype) != "bool"
        return ColumnSchema(
            name=name, kind="categorical", categories=("False", "True"), missing=may_miss
        )
    if not pd.api.types.is_numeric_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return None
    whole = pd.api.types.is_integer_dtype(dtype)
    return ColumnSchema(
        name=name, kind="numeric", missing=str(dtype)[:1] not in "iu", integer=whole
    )

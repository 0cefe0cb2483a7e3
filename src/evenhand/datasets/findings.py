"""What was found in the columns of a table: values, in words, and the refusal to go on."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evenhand.datasets.problems import Problem
from evenhand.datasets.schema import Schema

FOR_THE_CURATOR: Final = (
    "For the curator alone: this was read from private rows, exactly and without noise."
)

ANEW: Final = "Rows of synthesize have such columns without their values, by lines of a schema:"
"""Before ``Inspection.lines``."""

IN_PYTHON: Final = (
    "Go on without them: drop(columns={names}); or correct them; or declare "
    "them in a schema; or pass inspect=False to go on as it is. evenhand.datasets.inspect(frame) "
    "says more."
)
"""The way out of ``Inspection.require`` for callers in Python."""

_OF_TWO_TABLES: Final = frozenset({Problem.OTHER_KIND, Problem.NOT_PUBLIC})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One problem of one column; ``detail`` may quote private values."""

    problem: Problem
    detail: str = ""

    def __str__(self) -> str:
        return self.problem.words + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True, kw_only=True)
class InspectedColumn:
    """What was found about one column."""

    name: str
    """Name of the column."""
    role: str
    """``"feature"``, "label", "sensitive" or "unit"."""
    holds: str
    """``"numbers"``, "categories", or "nothing" that can be read."""
    missing: float
    """Share of the rows without a value, in [0, 1]."""
    n_different: int | None
    """Different values; None for numbers, and above 1,000."""
    findings: tuple[Finding, ...]
    """Its problems, the grave ones first."""
    declared: bool = False
    """Whether a schema says what it holds."""

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
    """What ``inspect`` found. For the curator alone: it is read from private rows."""

    n_rows: int
    """Number of private rows."""
    columns: tuple[InspectedColumn, ...]
    """In the table's order."""
    schema: Schema | None
    """Of the columns that are not to be dropped, from public rows, or from dtypes alone."""
    schema_from: str
    """Where it is from, in words."""

    @property
    def grave(self) -> tuple[InspectedColumn, ...]:
        """Columns on which ``train`` and ``synthesize`` stop."""
        return tuple(column for column in self.columns if column.grave)

    @property
    def drop(self) -> str:
        """Words of a command that leave these columns out; empty if there is none."""
        return options("--drop", [column.name for column in self.grave])

    def lines(self, names: Collection[str] | None = None) -> tuple[str, ...]:
        """Return the lines of a schema that have these columns in drawn rows without their values.

        Of names and kinds, and no value; all columns that have such a line, if none are given.
        """
        made = []
        for column in self.columns:
            known = [f.problem for f in column.findings if f.problem.declared is not None]
            if known and not column.declared and (names is None or column.name in names):
                problem = Problem.POSTCODE if Problem.POSTCODE in known else known[0]
                line = {"name": column.name, **(problem.declared or {})}
                made.append(json.dumps(line, ensure_ascii=False))
        return tuple(made)

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
            "lines": list(self.lines()),
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
        listed = [
            f"  {column or '  and'}: {found}\n      then: {then}"
            for column, _, _, found, then in self.rows()
            if found
        ]
        n = len(self.columns)
        lines = [FOR_THE_CURATOR, f"{self.n_rows:,} rows, {n} columns.", *listed]
        if not listed:
            lines.append("Nothing was found.")
        if self.lines():
            lines.append(f"{ANEW} {', '.join(self.lines())}")
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
        if self.lines():
            drop = f"<p>{ANEW} <code>{html.escape(', '.join(self.lines()))}</code></p>{drop}"
        return f"<p>{FOR_THE_CURATOR}</p><table><tr>{head}</tr>{''.join(cells)}</table>{drop}"


def options(option: str, names: Sequence[str]) -> str:
    """Return the words of a command that name these columns, ready for a shell."""
    return " ".join(f"{option} {shlex.quote(name)}" for name in names)

"""Rows of which more is asked than label and group: values of other columns, and constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._checks import of_type, together
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column
from evenhand.generators.conditions import Conditions, Request
from evenhand.generators.tables.codec import ColumnCode, TableCodec
from evenhand.generators.tables.constraints import Constraint
from evenhand.typing import FloatArray, IntArray

Draw = Callable[[IntArray, np.random.Generator], IntArray]
"""Draws the states of the features, one row per combination of label and group."""

MOST_DRAWS: Final = 50_000
"""Of one combination of label and group, at least; or ``DRAWS_PER_ROW`` if that is more."""

DRAWS_PER_ROW: Final = 100
FIRST_LOT: Final = 20_000
_AT_ONCE: Final = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Wanted:
    """What is asked of the rows beside label and group."""

    codec: TableCodec
    """Whose numeric columns hold what is wanted alone."""
    likelihoods: Mapping[int, FloatArray]
    """Of features, by position: the chance that a state gives a value that is wanted."""
    constraints: tuple[Constraint, ...]
    words: str
    """All of it, for messages."""

    @classmethod
    def of(
        cls,
        codec: TableCodec,
        conditions: Mapping[str, object],
        constraints: Sequence[Constraint],
    ) -> Self:
        """Read what is asked of the features; label and groups in ``conditions`` are left alone."""
        hint = "Give a list, such as [Constraint.order('from', 'to')]."
        if isinstance(constraints, Constraint):
            raise TypeError(f"constraints must be a list, got the rule {constraints.words}. {hint}")
        several = isinstance(constraints, Iterable) and not isinstance(constraints, str)
        for rule in constraints if several else (constraints,):
            of_type("constraints", rule, Constraint, hint)
        codec.require([*conditions, *(name for rule in constraints for name in rule.columns)])
        likelihoods, columns = {}, {column.name: column for column in codec.columns}

        def read(name: str) -> None:
            columns[name], likelihood = _given(codec[name], conditions[name])
            likelihoods[codec.features.index(name)] = likelihood

        together(partial(read, name) for name in conditions if name in codec.features)
        said = [f"{n}={_values.plain(v)}" for n, v in conditions.items() if n in codec.features]
        return cls(
            codec=replace(codec, columns=tuple(columns.values())),
            likelihoods=likelihoods,
            constraints=tuple(constraints),
            words=", ".join([*said, *(rule.words for rule in constraints)]),
        )

    def __bool__(self) -> bool:
        return bool(self.likelihoods or self.constraints)


@dataclass(kw_only=True, eq=False)
class Stock:
    """Rows that were drawn and are as wanted; how often that was so estimates its chance."""

    wanted: Wanted
    draw: Draw
    likelihoods: Mapping[int, FloatArray]
    """Of ``wanted``, unless ``draw`` keeps them by itself."""
    rng: np.random.Generator

    drawn: IntArray = field(init=False)
    kept: IntArray = field(init=False)
    frames: list[pd.DataFrame] = field(init=False, default_factory=list)
    cells: list[IntArray] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.drawn, self.kept = np.zeros((2, self.wanted.codec.conditions.n), dtype=np.int64)

    def add(self, counts: IntArray) -> None:
        """Draw so many rows of each combination, and keep those that are as wanted."""
        todo = np.repeat(np.arange(len(counts)), counts)
        for cells in np.split(todo, range(_AT_ONCE, len(todo), _AT_ONCE)):
            states = self.draw(cells, self.rng)
            good = np.ones(len(cells), dtype=np.bool_)
            for i, likelihood in self.likelihoods.items():
                good &= self.rng.random(len(cells)) < likelihood[states[:, i]]
            rows = self.wanted.codec.decode(states[good], cells[good], self.rng)
            left = np.ones(len(rows), dtype=np.bool_)
            for rule in self.wanted.constraints:
                left &= np.asarray(rule.keeps(rows), dtype=np.bool_)
            self.frames.append(rows[left])
            self.cells.append(cells[good][left])
            self.drawn += np.bincount(cells, minlength=len(counts))
            self.kept += np.bincount(self.cells[-1], minlength=len(counts))

    def add_lot(self, request: Request) -> None:
        """Draw as many rows as are asked for, or ``FIRST_LOT``, and some of each combination."""
        shares = request.probabilities / request.probabilities.sum()
        lot = np.ceil(shares * max(FIRST_LOT, request.counts.sum()))
        self.add(np.where(shares > 0, np.maximum(lot, 200), 0).astype(np.int64))

    @property
    def rejects(self) -> bool:
        """Whether a row that is drawn may not be kept."""
        return bool(self.likelihoods or self.wanted.constraints)

    @property
    def chances(self) -> FloatArray:
        """How often a row of each combination was as wanted."""
        return self.kept / np.maximum(self.drawn, 1)

    def take(self, cells: IntArray) -> pd.DataFrame:
        """Return a row of each of these combinations, drawn in turn until there are enough.

        Raises
        ------
        ValueError
            If there are too few after ``MOST_DRAWS`` of a combination, with the estimated chance.
        """
        wanted = np.bincount(cells, minlength=len(self.drawn))
        most = np.maximum(MOST_DRAWS, DRAWS_PER_ROW * wanted)
        while (short := np.maximum(wanted - self.kept, 0)).any():
            self._refuse(np.flatnonzero((short > 0) & (self.drawn >= most)))
            # What is short at the rate so far, and a little more where some were not kept.
            more = np.ceil(
                short * (self.drawn + 1) / (self.kept + 1) * np.where(self.drawn, 1.2, 1)
            )
            more = np.minimum(more, np.minimum(most - self.drawn, _AT_ONCE))
            self.add(np.where(short > 0, more, 0).astype(np.int64))
        held = np.concatenate(self.cells)
        by_cell = np.argsort(held, kind="stable")
        first = np.cumsum(self.kept) - self.kept
        place = np.empty(len(cells), dtype=np.int64)
        order = np.argsort(cells, kind="stable")
        start = np.cumsum(wanted) - wanted
        place[order] = by_cell[first[cells[order]] + np.arange(len(cells)) - start[cells[order]]]
        return pd.concat(self.frames, ignore_index=True).iloc[place].reset_index(drop=True)

    def _refuse(self, cells: IntArray) -> None:
        if not len(cells):
            return
        known = self.wanted.codec.conditions
        said = [
            f"{known.words(int(c))}: {self.kept[c]} of {self.drawn[c]:,} draws, a chance of "
            + (
                f"about {self.chances[c]:.1g}"
                if self.kept[c]
                else f"at most {3 / self.drawn[c]:.1g}"
            )
            for c in cells
        ]
        raise ValueError(
            f"Too few rows are drawn with {self.wanted.words} ({'; '.join(said[:5])}"
            f"{'; ...' if said[5:] else ''}). Ask for fewer rows or wider conditions, leave out "
            f"these labels and groups with conditions=, balance=() (--fairness none --balance "
            f"none) or shares of 0, or drop a constraint."
        )


def _given(column: ColumnCode, value: object) -> tuple[ColumnCode, FloatArray]:
    """Return the column with such values alone, and the chance of one in each of its states."""
    likelihood = np.zeros(column.n_states)
    values: Any = value if isinstance(value, tuple) else (value,)
    given = Column(pd.Series(list(values), name=column.name, dtype=object), "conditions")
    if given.missing.all() and len(values) == 1:
        if not column.has_missing:
            raise ValueError(f"Column {column.name!r} is never missing: ask for a value.")
        likelihood[-1] = 1.0
    elif column.bins is None:
        text = given.texts[0] if len(values) == 1 else _values.plain(value)
        known = Conditions(names=(column.name,), categories=(column.schema.categories,))
        likelihood[known.position(column.name, text)] = 1.0
    else:
        schema, kind = column.schema, "number" if column.schema.date_unit is None else "date"
        try:
            frame = pd.DataFrame({column.name: list(values)})
            dated = Schema(columns=(schema,)).parse(frame, "the conditions")
            numbers = schema.numbers(Column(dated[column.name]))
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        if len(values) > 2 or not numbers[0] <= numbers[-1]:
            raise ValueError(
                f"The condition {column.name}={_values.plain(value)} must be a {kind}, or a range "
                f"(low, high) with low <= high."
            )
        bins, likelihood[: column.n_values] = column.bins.between(numbers[0], numbers[-1])
        if not likelihood.any():
            low, high = column.bins.cells.bounds
            places = None if kind == "date" else column.bins.cells.decimals
            kinds = {None: f"{kind}s", 0: "whole numbers"}
            held = kinds.get(places, f"numbers of {places} decimal{'s'[: places != 1]}")
            raise ValueError(
                f"No row is drawn with {column.name}={_values.plain(value)}: the column holds "
                f"{held} from {schema.said(low)} to {schema.said(high)}, and none there. Ask for "
                f"a range (low, high), or a wider one."
            )
        column = replace(column, bins=bins)
    return column, likelihood

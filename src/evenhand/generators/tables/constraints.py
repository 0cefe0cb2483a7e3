"""What is publicly known to hold in every row of a table, and rows that are drawn keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand.datasets.columns import Column
from evenhand.typing import BoolArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Constraint:
    """A rule that every row keeps, such as "begin is at most end".

    Declare what is public knowledge: a rule that was read off the private rows tells about them,
    and no claim covers that.

    Parameters
    ----------
    words : str
        The rule in words, for messages.
    columns : tuple of str
        The columns that it reads.
    keeps : callable
        Takes rows, a DataFrame, and returns for each whether it keeps the rule.

    Examples
    --------
    >>> rows = pd.DataFrame({"begin": [1, 5, None], "end": [2, 3, 3]})
    >>> Constraint.order("begin", "end").keeps(rows).tolist()
    [True, False, True]
    >>> Constraint.range("end", 3, 9).keeps(rows).tolist()
    [False, True, True]
    >>> Constraint.range("begin", None, 4).keeps(rows).tolist()
    [True, False, True]
    """

    words: str
    columns: tuple[str, ...]
    keeps: Callable[[pd.DataFrame], BoolArray]

    @classmethod
    def order(cls, low: str, high: str) -> Self:
        """Return the rule that ``low <= high``; a missing value breaks no order."""
        if low == high:
            raise ValueError(f"An order is one of two columns, got {low!r} twice. Name another.")

        def keeps(rows: pd.DataFrame) -> BoolArray:
            above = _ordered(rows, low) > _ordered(rows, high)
            return ~above.fillna(False).to_numpy(dtype=np.bool_)

        return cls(words=f"{low} <= {high}", columns=(low, high), keeps=keeps)

    @classmethod
    def range(cls, column: str, low: Any, high: Any) -> Self:
        """Return the rule that a column lies in [low, high]; a missing value is no breach.

        None is no end; one of the two is given.

        For a rare range ``conditions={column: (low, high)}`` is faster: nothing is thrown away.
        """
        ends = [end for end in (low, high) if end is not None]
        try:
            right = all(end == end for end in ends) and bool(ends and ends[0] <= ends[-1])
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(
                f"A range is (low, high) with low <= high, and None for one end at most; got "
                f"{_values.plain((low, high))}."
            )

        def keeps(rows: pd.DataFrame) -> BoolArray:
            values = _ordered(rows, column)
            beyond = np.zeros(len(rows), dtype=np.bool_)
            if low is not None:
                beyond |= (values < low).fillna(False).to_numpy(dtype=np.bool_)
            if high is not None:
                beyond |= (values > high).fillna(False).to_numpy(dtype=np.bool_)
            return ~beyond

        words = [f"{low} <= "] * (low is not None) + [column] + [f" <= {high}"] * (high is not None)
        return cls(words="".join(words), columns=(column,), keeps=keeps)

    @classmethod
    def combinations(cls, allowed: pd.DataFrame) -> Self:
        """Return the rule that the columns of a table are together as in one of its lines.

        A missing value is a value like others: it is allowed where a line has it.
        """
        if not len(allowed) or not allowed.shape[1]:
            raise ValueError("The table of allowed combinations is empty: give a line for each.")
        names = tuple(map(str, allowed.columns))
        texts = {name: Column(allowed[name]).texts for name in names}

        def codes(rows: pd.DataFrame) -> IntArray:
            at = []
            for name in names:
                column = Column(rows[name])
                place = column.places(texts[name]) + 2
                # 0 is no value of the table, 1 is missing.
                at.append(np.where(column.missing, 1, np.where(place < 2, 0, place)))
            sizes = [len(texts[name]) + 2 for name in names]
            joined: IntArray = np.ravel_multi_index(tuple(at), sizes).astype(np.int64)
            return joined

        known = codes(allowed)

        def keeps(rows: pd.DataFrame) -> BoolArray:
            return np.isin(codes(rows), known)

        words = f"{', '.join(names)} as in one of {len(allowed)} lines"
        return cls(words=words, columns=names, keeps=keeps)


def _ordered(rows: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a column that has an order."""
    column = Column(rows[name])
    if not (column.is_number or column.is_date):
        raise ValueError(
            f"Column {name!r} is {column.dtype}: an order or a range is one of numbers or "
            f"dates. Dates in text are read by pd.to_datetime, or by a schema with "
            f'{{"name": {json.dumps(name)}, "kind": "date"}}; for other text give the combinations '
            f"that there may be (--constraint FILE, in Python Constraint.combinations)."
        )
    return column.values

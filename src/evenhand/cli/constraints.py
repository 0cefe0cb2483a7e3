"""Rules that every drawn row keeps, as ``evenhand synthesize --constraint`` takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from evenhand._checks import did_you_mean, together

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets import Schema
    from evenhand.datasets.schema import ColumnSchema
    from evenhand.generators.tables.constraints import Constraint

_KNOWN: Final = (
    "--constraint is an order such as 'begin <= end', a range such as '10 <= hours <= 60', or a "
    "file whose lines are the combinations of its columns that there may be"
)


def constraints_of(
    texts: Sequence[str], rows: pd.DataFrame, schema: Schema | None
) -> list[Constraint]:
    """Read the rules about columns that are learnt; all that can be wrong of them is refused.

    ``rows`` have these columns with their dtypes; none of them is looked at.
    """
    none = rows.iloc[:0]
    declared = {} if schema is None else {column.name: column for column in schema.columns}
    found: list[Constraint] = []

    def read(text: str) -> None:
        for rule in _rules(text.strip(), none, declared):
            try:
                rule.keeps(none)
            except TypeError:
                raise ValueError(
                    f"--constraint {text!r} compares values that have no common order: "
                    f"{', '.join(f'{name} is {rows[name].dtype}' for name in rule.columns)}."
                ) from None
            found.append(rule)

    together(partial(read, text) for text in texts)
    return found


def _rules(
    text: str, rows: pd.DataFrame, declared: Mapping[str, ColumnSchema]
) -> Iterator[Constraint]:
    from evenhand.generators.tables.constraints import Constraint

    parts = [part.strip() for part in re.split(r"(<=|>=)", text)]
    if len(parts) == 1 and re.search(r"[<>=]", text) is None:
        yield Constraint.combinations(_allowed(text, rows))
        return
    if len(parts) == 1 or not all(parts) or re.search(r"[<>=]", "".join(parts[::2])):
        raise ValueError(f"{_KNOWN}; it compares by <= and >= alone, got {text!r}.")
    if [part in rows for part in parts[::2]] == [False, True, False] and parts[1] == parts[3]:
        first, last = (_value(parts[i], parts[2], rows) for i in (0, 4))
        low, high = (first, last) if parts[1] == "<=" else (last, first)
        yield _range(parts[2], low, high, declared)
        return
    for (left, right), sign in zip(pairwise(parts[::2]), parts[1::2], strict=True):
        low, high = (left, right) if sign == "<=" else (right, left)
        if low in rows and high in rows:
            yield Constraint.order(low, high)
        elif high in rows:
            yield _range(high, _value(low, high, rows), None, declared)
        elif low in rows:
            yield _range(low, None, _value(high, low, rows), declared)
        else:
            _refuse(low if _number(low) is None else high, rows)


def _range(name: str, low: Any, high: Any, declared: Mapping[str, ColumnSchema]) -> Constraint:
    """Return a range of a column, which must meet the bounds that the schema declares for it."""
    import pandas as pd

    from evenhand.datasets.columns import Column
    from evenhand.generators.tables.constraints import Constraint

    rule, column = Constraint.range(name, low, high), declared.get(name)
    if column is None or column.bounds is None:
        return rule
    given = [end for end in (low, high) if end is not None]
    numbers = column.numbers(Column(pd.Series(given, name=name)))
    above = low is not None and numbers[0] > column.bounds[1]
    below = high is not None and numbers[-1] < column.bounds[0]
    if above or below:
        first, last = column.bounds_said
        raise ValueError(
            f"--constraint: no value of {name!r} keeps {rule.words!r}, for the schema says that "
            f"all are from {first} to {last}. Correct one of the two."
        )
    return rule


def _allowed(text: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the combinations that there may be."""
    from evenhand.datasets import read_table

    if not Path(text).is_file():
        raise ValueError(f"{_KNOWN}; there is no file {text!r}.")
    allowed = read_table(Path(text))
    for name in allowed.columns:
        if name not in rows:
            _refuse(name, rows, f", which {text} names")
    return allowed


def _value(text: str, name: str, rows: pd.DataFrame) -> Any:
    """Return an end of the range of a column: a number or a date."""
    import pandas as pd

    from evenhand.datasets.columns import Column

    column = Column(rows[name])
    value: Any = None
    if not column.is_date:
        value = _number(text)
    elif text[:1].isdigit():
        try:
            value = pd.Timestamp(text)
        except ValueError:
            value = None
        zone = getattr(column.dtype, "tz", None)
        if value is not None and zone is not None and value.tz is None:
            value = value.tz_localize(zone)
    if value is None:
        _refuse(text, rows, f" and no {'date' if column.is_date else 'number'} {text!r}")
    return value


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def _refuse(name: Any, rows: pd.DataFrame, more: str = "") -> NoReturn:
    names = [str(column) for column in rows.columns]
    raise ValueError(
        f"--constraint: there is no column {name!r} that is learnt{more}. There are "
        f"{', '.join(names[:30])}.{did_you_mean(str(name), names)}"
    )

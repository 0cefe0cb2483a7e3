"""Rules that every drawn row keeps, as ``evenhand synthesize --constraint`` takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from evenhand._checks import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.generators.tables.constraints import Constraint

_KNOWN: Final = (
    "--constraint is an order such as 'begin <= end', a range such as '10 <= hours <= 60', or a "
    "file whose lines are the combinations of its columns that there may be"
)


def constraints_of(texts: Sequence[str], rows: pd.DataFrame) -> list[Constraint]:
    """Read the rules about columns that are learnt; all that can be wrong of them is refused.

    ``rows`` have these columns with their dtypes; none of them is looked at.
    """
    none = rows.iloc[:0]
    found = []
    for text in texts:
        for rule in _rules(text.strip(), none):
            try:
                rule.keeps(none)
            except TypeError:
                raise ValueError(
                    f"--constraint {text!r} compares values that have no common order: "
                    f"{', '.join(f'{name} is {rows[name].dtype}' for name in rule.columns)}."
                ) from None
            found.append(rule)
    return found


def _rules(text: str, rows: pd.DataFrame) -> Iterator[Constraint]:
    from evenhand.generators.tables.constraints import Constraint

    parts = [part.strip() for part in re.split(r"(<=|>=)", text)]
    if len(parts) == 1 and re.search(r"[<>=]", text) is None:
        yield Constraint.combinations(_allowed(text, rows))
        return
    if len(parts) == 1 or not all(parts) or re.search(r"[<>=]", "".join(parts[::2])):
        raise ValueError(f"{_KNOWN}; it compares by <= and >= alone, got {text!r}.")
    if [part in rows for part in parts[::2]] == [False, True, False] and parts[1] == parts[3]:
        ends = [_value(parts[i], parts[2], rows) for i in (0, 4)]
        yield Constraint.range(parts[2], *(ends if parts[1] == "<=" else ends[::-1]))
        return
    for (left, right), sign in zip(pairwise(parts[::2]), parts[1::2], strict=True):
        low, high = (left, right) if sign == "<=" else (right, left)
        if low in rows and high in rows:
            yield Constraint.order(low, high)
        elif high in rows:
            yield Constraint.range(high, _value(low, high, rows), None)
        elif low in rows:
            yield Constraint.range(low, None, _value(high, low, rows))
        else:
            _refuse(low if _number(low) is None else high, rows)


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

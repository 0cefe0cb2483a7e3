"""Columns of a table that are not learnt, and made anew by a public pattern in drawn rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.patterns import Pattern
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.tables.dtypes import dtype_text, frame_dtype

_TEXT: Final = ("str", "string", "object", "large_string")
_NUMBER: Final = ("int", "uint", "float")


@dataclass(frozen=True, kw_only=True)
class MadeColumn:
    """A column whose values are numbered by a pattern from row to row: 1, 2, 3, ...

    Privacy
    -------
    Of the user's column the name, the place and the dtype are known, which are taken as public. No
    value of it is learnt.
    """

    schema: ColumnSchema
    """Of the kind "made"."""
    dtype: str
    """Of the user's column, to be given back: of text or of numbers."""
    at: int
    """Position among the columns that are drawn."""

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.schema.name

    @property
    def _is_number(self) -> bool:
        return self.dtype.lower().startswith(_NUMBER)

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern, as a column of this dtype has it."""
        pattern = Pattern(str(self.schema.pattern))
        return pattern.of_numbers() if self._is_number else pattern

    def require(self, n: int = 1) -> None:
        """Raise ValueError for more rows than there are values, or values that no dtype holds."""
        said = f"Column {self.name!r} is made anew, and"
        if not self.dtype.startswith(_TEXT) and not self._is_number:
            raise ValueError(
                f"{said} its dtype is {self.dtype}. Values are made as text or whole numbers: "
                f"convert it with astype('str')."
            )
        try:
            pattern = self.pattern
        except ValueError as error:
            raise ValueError(
                f"{said} its dtype is {self.dtype}, but {error}. Convert the column with "
                f"astype('str'), or declare a pattern of digits such as '#####'."
            ) from None
        pattern.require_room(n, self.name)
        if self._is_number:
            last = int(pattern.text.replace("#", "9").replace("*", str(n)))
            plain = np.dtype(self.dtype.lower())
            exact = 2 ** (np.finfo(plain).nmant + 1) if plain.kind == "f" else np.iinfo(plain).max
            most = int(exact)
            if last > most:
                raise ValueError(
                    f"{said} its pattern makes numbers up to {last}, and {self.dtype} ends at "
                    f"{most}. Declare a shorter pattern, or convert the column to 'int64' or 'str'."
                )

    def values(self, index: pd.Index[Any]) -> pd.Series[Any]:
        """Return a value for each row, all different."""
        made = self.pattern.made(np.arange(1, len(index) + 1, dtype=np.int64))
        values = pd.Series(made, index=index, name=self.name, dtype=object)
        if self._is_number:
            values = values.map(int)
        return values.astype(frame_dtype(self.dtype))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"schema": self.schema.to_dict(), "dtype": self.dtype, "at": self.at}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MadeColumn:
        """Read what ``to_dict`` wrote."""
        (schema,) = Schema.from_dict({"columns": [values["schema"]]}).columns
        return cls(schema=schema, dtype=str(values["dtype"]), at=int(values["at"]))


def made_columns(
    table: TypedTable, schema: Schema, conditions: Sequence[str], unit: str | None
) -> tuple[MadeColumn, ...]:
    """Return the columns of a table that a schema says to make anew, in the table's order.

    Raises
    ------
    ValueError
        For columns that are not there, label and group, and dtypes that no pattern fits; all at
        once. No value is read.
    """
    known = {column.name: column for column in schema.made}
    drawn = [name for name in table if name != unit or name in known]
    table.require(known, "which the schema names")
    made = tuple(
        MadeColumn(schema=known[name], dtype=dtype_text(table[name].dtype), at=at)
        for at, name in enumerate(drawn)
        if name in known
    )
    _checks.together(
        [
            *(partial(column.require) for column in made),
            *(
                partial(_refuse_role, column)
                for column in schema.columns
                if column.name in conditions
            ),
        ]
    )
    return made


def _refuse_role(column: ColumnSchema) -> None:
    """Raise ValueError for a label or group that is made up, whole or in part."""
    if column.pattern is not None:
        raise ValueError(
            f"Column {column.name!r} is the label or sensitive, so its values cannot be made up. "
            f"Declare its categories, or release them."
        )

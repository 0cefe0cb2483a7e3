"""What is wrong with the columns of a private table, found before anything is paid for them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pandas as pd

from evenhand.datasets import Schema, inspect
from evenhand.datasets.columns import Column, kind_of
from evenhand.datasets.problems import CODES
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.codec import TableCodec, frame_dtype
from evenhand.generators.tables.records import Records
from evenhand.generators.tables.released_schema import UndeclaredColumns, undeclared


def ready(
    records: Records,
    schema: Schema | None,
    plan: BudgetPlan,
    delta: float,
    keep: Collection[str],
) -> UndeclaredColumns:
    """Return what is to be released; nothing is spent.

    Parameters
    ----------
    records : Records
    schema : Schema or None
        What is declared.
    plan : BudgetPlan
        That the columns will be released from.
    delta : float
        For naming categories.
    keep : collection of str
        Columns that inspection is to let pass.

    Raises
    ------
    ValueError
        For columns that cannot be learnt, would be learnt wrong, or of which nothing could be
        released: all of these at once.

    Privacy
    -------
    It reads private rows, and its messages are for the curator: columns and kinds, no value. That
    a fit was not refused is not covered by its claim.
    """
    frame, roles = records.frame, records.roles
    unknown = sorted(set(keep) - set(frame.columns))
    if unknown:
        raise ValueError(f"keep names the column {unknown[0]!r}, which the private table lacks.")
    wanted = undeclared(records, schema)
    found = inspect(frame, label=roles.label, sensitive=roles.sensitive, schema=schema)
    wrong = {column.name for column in found.grave} - set(keep)
    columns = UndeclaredColumns.of(records, schema, [name for name in wanted if name not in wrong])
    also = columns.rare(plan, delta, keep)
    for name in set(columns.texts) - set(also) - set(keep) - set(roles.conditions):
        if _are_numbers(frame[name]) and len(columns.texts[name]) > CODES:
            also[name] = "holds numbers as Python objects, each of which would be a category"
    features = (wrong | set(also)) - set(roles.conditions)
    way_out = f"{_LEAVE_OUT} {_DECLARE}" if features else _DECLARE
    found.require("private table", way_out, keep=keep, also=also)
    strange = [name for name in frame.columns if not _comes_back(frame[name].dtype)]
    if strange:
        raise ValueError(
            f"Rows cannot be drawn with the dtype of {', '.join(map(repr, strange))} "
            f"({', '.join(str(frame[name].dtype) for name in strange)}). Convert these columns "
            f"with astype, for example to 'float64', 'Int64', 'boolean' or 'str'."
        )
    known = {} if schema is None else {column.name: column for column in schema.columns}
    declared = [name for name in frame.columns if name not in wanted]
    if declared:
        complete = Schema(columns=tuple(known[name] for name in declared))
        TableCodec.of(complete, frame[declared], ()).encode(frame[declared])
    return columns


_LEAVE_OUT: Final = (
    "Leave features out with {drop}, in Python drop(columns={names}); or learn them as they are "
    "with --keep, in Python keep={names}."
)
_DECLARE: Final = (
    "Declare what is public of columns, such as their categories, in a schema; a larger epsilon "
    "names rarer ones. Nothing was spent."
)


def _are_numbers(column: Column) -> bool:
    return pd.api.types.is_object_dtype(column.dtype) and kind_of(column) == "numeric"


def _comes_back(dtype: object) -> bool:
    try:
        frame_dtype(str(dtype))
    except ValueError:
        return False
    return not isinstance(dtype, pd.SparseDtype)

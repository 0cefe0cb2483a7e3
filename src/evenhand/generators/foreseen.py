"""What is wrong with the columns of a private table, found before anything is paid for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from evenhand.datasets import Schema, inspect
from evenhand.generators.codec import TableCodec, frame_dtype
from evenhand.generators.records import Records


def refuse_unreadable(
    records: Records, schema: Schema | None, wanted: Sequence[str], keep: Collection[str]
) -> None:
    """Raise ValueError for columns that cannot be learnt, or would be learnt wrong.

    Parameters
    ----------
    records : Records
    schema : Schema or None
        What is declared.
    wanted : sequence of str
        Columns that are to be bought.
    keep : collection of str
        Columns that inspection is to let pass.

    Privacy
    -------
    It reads private rows, and its messages are for the curator: columns and kinds, no value. That
    a fit was not refused is not covered by its claim.
    """
    frame, roles = records.frame, records.roles
    unknown = sorted(set(keep) - set(frame.columns))
    if unknown:
        raise ValueError(f"keep names the column {unknown[0]!r}, which the private table lacks.")
    found = inspect(frame, label=roles.label, sensitive=roles.sensitive, schema=schema)
    found.require("private table", _WAY_OUT, keep=keep)
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
        TableCodec.of(complete, frame[declared]).encode(frame[declared])


_WAY_OUT = (
    "Go on without them: drop(columns={names}); or correct them; or declare them in a schema; or "
    "learn them as they are with keep={names}. evenhand.datasets.inspect(frame) says more."
)


def _comes_back(dtype: object) -> bool:
    try:
        frame_dtype(str(dtype))
    except ValueError:
        return False
    return not isinstance(dtype, pd.SparseDtype)

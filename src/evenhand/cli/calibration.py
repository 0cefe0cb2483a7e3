"""The table of ``--calibration``: public rows with labels and groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand.cli.failures import as_bad_input

if TYPE_CHECKING:
    from evenhand.cli.tables import Roles, TrainingTables
    from evenhand.datasets.columns import TypedTable


def read_calibration(path: Path, roles: Roles, tables: TrainingTables) -> dict[str, Any]:
    """Read the calibration rows, as the arguments of ``fit`` that they are.

    Raises
    ------
    ValueError
        For a column that is not there, a missing or unknown label, a missing group, and text where
        the private table has numbers.
    """
    from evenhand.cli import tables as read
    from evenhand.datasets import Schema

    table = read.read(path)
    table.require([roles.label], "which --label names")
    table.require(
        tables.X.columns,
        "which the private table has",
        spare=[name for name in table if name not in tables.X.columns],
        way_out="The calibration rows need the same features.",
    )
    X = table.select(tables.X.columns)
    known = Schema.of_public(tables.X) if tables.schema is None else tables.schema
    with as_bad_input(TypeError):
        known.check(X)
    return {
        "X_calibration": X.frame,
        "y_calibration": _classes(table, roles, tables),
        "sensitive_features_calibration": read.sensitive_features(
            read.group_columns(table, roles.sensitive), tables.grouping, path
        ),
    }


def _classes(table: TypedTable, roles: Roles, tables: TrainingTables) -> list[Any]:
    """Return the labels as the private table writes them; 1, 1.0 and "1" are one class."""
    from evenhand.cli.tables import labels
    from evenhand.datasets.columns import text_of

    written = {text_of(value): value for value in tables.y.unique().tolist()}
    found = []
    for row, value in enumerate(labels(table, roles.label).tolist()):
        text = text_of(value)
        if text not in written:
            raise ValueError(
                f"{table.where}: the label in {_values.row(row)} is {_values.quoted(text)}, which "
                f"is not a class of the private table: {_values.listed(written, 20)}."
                f"{_values.if_shown(did_you_mean(text, written))}"
            )
        found.append(written[text])
    return found

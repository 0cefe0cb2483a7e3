"""The table of ``--calibration``: public rows with labels and groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand.cli.failures import as_bad_input

if TYPE_CHECKING:
    from evenhand.cli.tables import Roles, TrainingTables


def read_calibration(path: Path, roles: Roles, tables: TrainingTables) -> dict[str, Any]:
    """Read the calibration rows, as the arguments of ``fit`` that they are.

    Raises
    ------
    ValueError
        For a column that is not there, a missing or unknown label, a missing group, and text where
        the private table has numbers.
    """
    from evenhand.cli import tables as read
    from evenhand.datasets import Schema, read_table

    frame = read_table(path)
    read.require(frame, path, "--label", roles.label)
    spare = [name for name in frame.columns if name not in tables.X.columns]
    for name in tables.X.columns:
        if name not in frame.columns:
            raise ValueError(
                f"{path} has no column {name!r}, which the private table has."
                f"{did_you_mean(name, spare)} The calibration rows need the same features."
            )
    X = frame[list(tables.X.columns)]
    known = Schema.of_public(tables.X) if tables.schema is None else tables.schema
    with as_bad_input(TypeError):
        known.check(X, where=str(path))
    return {
        "X_calibration": X,
        "y_calibration": _classes(frame, path, roles, tables),
        "sensitive_features_calibration": read.sensitive_features(
            read.group_columns(frame, path, roles.sensitive), tables.grouping, path
        ),
    }


def _classes(frame: Any, path: Path, roles: Roles, tables: TrainingTables) -> list[Any]:
    """Return the labels as the private table writes them; 1, 1.0 and "1" are one class."""
    from evenhand.cli.tables import labels
    from evenhand.datasets.columns import text_of

    written = {text_of(value): value for value in tables.y.unique().tolist()}
    found = []
    for row, value in enumerate(labels(frame, path, roles.label).tolist()):
        text = text_of(value)
        if text not in written:
            raise ValueError(
                f"{path}: the label in {_values.row(row)} is {_values.quoted(text)}, which is not "
                f"a class of the "
                f"private table: {_values.listed(written, 20)}."
                f"{_values.if_shown(did_you_mean(text, written))}"
            )
        found.append(written[text])
    return found

"""The user's files as the tables that ``fit``, ``predict`` and the measurements need."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand.cli.failures import as_bad_input
from evenhand.cli.grouping import grouped

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.cli.grouping import GroupingOptions
    from evenhand.datasets import Schema
    from evenhand.fairness import Grouping


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What the columns of the user's tables are for. All that are not named are features.

    Parameters
    ----------
    label : str
        Column of the classes.
    sensitive : tuple of str
        Columns of the sensitive attribute, in the order in which groups are named.
    unit : str, optional
        Column that says whose record a row is.
    drop : tuple of str
        Columns to leave out.
    keep : tuple of str
        Features to learn as they are, although inspection would stop at them.
    """

    label: str
    sensitive: tuple[str, ...]
    unit: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = [
            ("--label", self.label),
            *(("--sensitive", column) for column in self.sensitive),
            *([] if self.unit is None else [("--unit", self.unit)]),
            *(("--drop", column) for column in self.drop),
            *(("--keep", column) for column in self.keep),
        ]
        first: dict[str, str] = {}
        for option, column in named:
            if column in first:
                raise ValueError(
                    f"The column {column!r} is named by {first[column]} and by {option}. Name it "
                    f"once: one column has one role."
                )
            first[column] = option

    @property
    def not_features(self) -> frozenset[str]:
        """Columns that no model reads."""
        unit = () if self.unit is None else (self.unit,)
        return frozenset((self.label, *self.sensitive, *unit, *self.drop))


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingTables:
    """What ``fit`` is given.

    ``X_public`` is None where rows of the private table are to be set aside as public; ``groups``
    are then those of the private rows, and else those of the public rows. ``private_groups`` are
    read for a training that keeps a margin between the private rows.
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    units: pd.Series[Any] | None
    X_public: pd.DataFrame | None
    groups: pd.DataFrame | None
    private_groups: pd.DataFrame | None
    columns: tuple[str, ...]
    schema: Schema | None
    grouping: Grouping | None = None


def read_training(
    private: Path,
    public: Path | None,
    roles: Roles,
    schema: Path | None,
    *,
    groups_of: Sequence[str] = ("public",),
    groups_are_all: bool = False,
    regrouping: GroupingOptions | None = None,
) -> TrainingTables:
    """Read the private table and, if there is one, the public table, and check that they match.

    ``groups_of`` says whose groups are needed: "public", "private", both or neither;
    ``groups_are_all``, that nothing but them is private; ``regrouping``, what becomes of them.

    Raises
    ------
    ValueError
        For a column that is not there (with the nearest name), a missing label, group or unit
        (with the rows), one group only, two tables that do not belong together, and text where
        numbers belong.
    """
    from evenhand.datasets import Schema, read_table

    table = read_table(private)
    asked = None if public is None else read_table(public)
    named = {roles.label: "--label"} | ({roles.unit: "--unit"} if roles.unit else {})
    others = () if asked is None else tuple(asked.columns)
    named |= {column: "--drop" for column in roles.drop if column not in others}
    for column, option in named.items():
        require(table, private, option, column)
    X = features(table, private, roles)
    y = labels(table, private, roles.label)
    _refuse_one_class(y, private)
    units = None if roles.unit is None else _units(table[roles.unit], private)
    declared = None if schema is None else _declared(schema, roles)
    used = table.drop(columns=[c for c in roles.drop if c in table.columns])
    refuse_wrong(used, private, roles, public=asked, schema=declared)
    X_public = None
    where, holder = private, table
    if asked is not None and public is not None:
        where, holder = public, asked
        X_public = _matching(features(asked, public, roles), public, X, private)
        X_public = X_public[list(X.columns)]
        if declared is None:
            _refuse_other_kinds(X, private, X_public, public)
    grouping = None
    if regrouping is not None:
        counted = None
        if asked is not None and public is not None and regrouping.counts_rows:
            counted = group_columns(asked, public, roles.sensitive)
        grouping = regrouping.read(counted, public)
    groups = _groups(holder, where, roles, grouping, needed="public" in groups_of)
    private_groups = _groups(
        table,
        private,
        roles,
        grouping,
        needed="private" in groups_of,
        all_that_is_private=groups_are_all,
    )
    with as_bad_input(TypeError):
        if declared is not None:
            declared.check(X, where=str(private))
        if X_public is not None:
            known = Schema.of_public(X_public) if declared is None else declared
            known.check(X_public, where=str(public))
            known.check(X, where=str(private))
    return TrainingTables(
        X=X,
        y=y,
        units=units,
        X_public=X_public,
        groups=groups,
        private_groups=private_groups,
        columns=tuple(table.columns),
        schema=declared,
        grouping=grouping,
    )


def refuse_wrong(
    frame: pd.DataFrame,
    private: Path,
    roles: Roles,
    *,
    public: pd.DataFrame | None = None,
    schema: Schema | None = None,
) -> None:
    """Raise ValueError for all features at once that would silently be learnt wrong."""
    from evenhand.datasets import inspect

    for column in roles.keep:
        require(frame, private, "--keep", column)
    found = inspect(
        frame,
        label=roles.label,
        sensitive=[c for c in roles.sensitive if c in frame.columns],  # some may be public alone
        unit=roles.unit,
        public=public,
        schema=schema,
    )
    found.require(
        f"table {private}",
        f"Go on without: {{drop}}. Or learn a column as it is with --keep COLUMN, or declare it "
        f"with --schema. More about each: evenhand inspect {shlex.quote(str(private))}.",
        keep=roles.keep,
    )


def sharing(allowed: bool) -> AbstractContextManager[None]:
    """Let ``fit`` take public rows that are private ones too, where that was asked for."""
    from evenhand.estimators import allow_shared_rows

    return allow_shared_rows() if allowed else nullcontext()


def require(frame: pd.DataFrame, path: Path, option: str, column: str) -> None:
    """Raise ValueError if ``frame`` has no such column, and name the nearest one."""
    if column not in frame.columns:
        raise ValueError(
            f"{path} has no column {column!r}, which {option} names."
            f"{did_you_mean(column, frame.columns)} Its columns: {', '.join(frame.columns)}."
        )


def refuse_missing(column: pd.Series[Any], path: Path, what: str, way_out: str) -> None:
    """Raise ValueError if a value is missing, and name the rows."""
    gone = column.isna().to_numpy().nonzero()[0]
    if gone.size:
        raise ValueError(
            f"{path}: the {what} {column.name!r} is missing in {_values.rows(gone)}. {way_out}"
        )


def features(frame: pd.DataFrame, path: Path, roles: Roles) -> pd.DataFrame:
    """Return the columns that have no other role."""
    X = frame[[column for column in frame.columns if column not in roles.not_features]]
    if not X.shape[1]:
        raise ValueError(
            f"{path} has no column left for the features beside "
            f"{', '.join(sorted(roles.not_features))}. Drop fewer columns."
        )
    return X


def labels(frame: pd.DataFrame, path: Path, label: str) -> pd.Series[Any]:
    """Return the labels as whole numbers, booleans or text; none is missing."""
    import pandas as pd

    y = frame[label]
    refuse_missing(
        y, path, "label", "Leave these rows out: a record without a label cannot teach or test."
    )
    if pd.api.types.is_float_dtype(y.dtype):
        whole = y.astype("int64")
        if (whole != y).any():
            broken = (whole != y).to_numpy().nonzero()[0]
            raise ValueError(
                f"{path}: the label {label!r} must hold classes, got a number that is not whole, "
                f"{_values.quoted(float(y.iloc[broken[0]]))}, in {_values.rows(broken)}. Make "
                f"classes of the numbers first, for example by a threshold."
            )
        return whole
    return y


def group_columns(
    frame: pd.DataFrame,
    path: Path,
    sensitive: Sequence[str],
    *,
    all_that_is_private: bool = False,
) -> pd.DataFrame:
    """Return the sensitive columns; no value is missing."""
    if all_that_is_private:
        for column in sensitive:
            require(frame, path, "--sensitive", column)
            if frame[column].isna().any():
                raise ValueError(
                    f"{path}: the sensitive attribute {column!r} is missing for some rows. To "
                    f"leave them out would tell who did not say, which is a part of what is "
                    f"protected here. Fill in a group of their own such as 'unknown'."
                )
    for column in sensitive:
        require(frame, path, "--sensitive", column)
        refuse_missing(
            frame[column],
            path,
            "sensitive attribute",
            "Whether a margin is kept cannot be said about an unknown group: leave these rows "
            "out, or fill in a group of their own such as 'unknown'.",
        )
    return frame[list(sensitive)]


def sensitive_features(
    groups: pd.DataFrame, grouping: Grouping | None = None, path: Path | None = None
) -> Any:
    """Return one column as a Series and several as a DataFrame: group names depend on it.

    With ``grouping`` they are those of ``path`` that it makes of the columns.
    """
    if grouping and path is not None:
        groups = grouped(groups, grouping, path)
    return groups.iloc[:, 0] if groups.shape[1] == 1 else groups


def features_of(model: Any, frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the columns that the model was trained on; others are passed over."""
    known = [str(name) for name in model.feature_names_in_]
    for name in known:
        if name not in frame.columns:
            spare = [column for column in frame.columns if column not in known]
            raise ValueError(
                f"{path} has no column {name!r}, which the model was trained on."
                f"{did_you_mean(name, spare)} The model reads {', '.join(known)}."
            )
    return frame[known]


def _declared(path: Path, roles: Roles) -> Schema:
    """Read a declared schema; columns that are no features may stand in it."""
    from evenhand.datasets import Schema

    with as_bad_input(TypeError, KeyError, where=str(path)):
        schema = Schema.load(path)
    return Schema(columns=tuple(c for c in schema.columns if c.name not in roles.not_features))


def _matching(X_public: pd.DataFrame, public: Path, X: pd.DataFrame, private: Path) -> pd.DataFrame:
    """Refuse two tables whose features have different names."""
    for there, here, frame, other in (
        (private, public, X_public, X),
        (public, private, X, X_public),
    ):
        absent = [name for name in other.columns if name not in frame.columns]
        if absent:
            spare = [name for name in frame.columns if name not in other.columns]
            raise ValueError(
                f"{here} has no column {absent[0]!r}, which {there} has."
                f"{did_you_mean(absent[0], spare)} Both need the same features: rename it, or "
                f"leave it out with --drop {absent[0]}."
            )
    return X_public


def _refuse_other_kinds(
    X: pd.DataFrame, private: Path, X_public: pd.DataFrame, public: Path
) -> None:
    """Refuse numbers in one table that are text in the other: mostly a slip in one cell."""
    import pandas as pd

    from evenhand.datasets.columns import Column

    for column in X.columns:
        with as_bad_input(TypeError):
            kinds = Column(X[column], str(private)).kind, Column(X_public[column], str(public)).kind
        if set(kinds) != {"numeric", "categorical"}:
            continue
        text, where = (X[column], private) if kinds[1] == "numeric" else (X_public[column], public)
        odd = text.notna() & pd.to_numeric(text.astype(object), errors="coerce").isna()
        row = int((odd if odd.any() else text.notna()).to_numpy().argmax())
        value = _values.quoted(text.iloc[row])
        raise ValueError(
            f"{where}: column {column!r} holds the text {value} in "
            f"{_values.row(row)}, where the other table holds numbers. Correct the value or "
            f"leave it empty; if these are categories, declare them with --schema."
        )


def _groups(
    frame: pd.DataFrame,
    path: Path,
    roles: Roles,
    grouping: Grouping | None,
    *,
    needed: bool,
    all_that_is_private: bool = False,
) -> pd.DataFrame | None:
    if not needed or not roles.sensitive:
        return None
    groups = group_columns(frame, path, roles.sensitive, all_that_is_private=all_that_is_private)
    groups = grouped(groups, grouping, path)
    _refuse_one_group(groups, path)
    return groups


def _units(ids: pd.Series[Any], path: Path) -> pd.Series[Any]:
    """Return whose record each row is; no id is missing."""
    import pandas as pd

    from evenhand.datasets.columns import text_of

    refuse_missing(ids, path, "unit", "Give each of these rows an id of its own.")
    # 7.0 is the id 7, as it stood in the file.
    return ids.map(text_of) if pd.api.types.is_float_dtype(ids.dtype) else ids


def _refuse_one_class(y: pd.Series[Any], path: Path) -> None:
    if y.nunique() < 2:
        only = _values.quoted(y.tolist()[0])
        raise ValueError(
            f"{path}: the label {y.name!r} has one class only ({only}), so there is "
            f"nothing to learn. At least two classes are needed."
        )


def _refuse_one_group(groups: pd.DataFrame, path: Path) -> None:
    for column in groups:
        if groups[column].nunique() < 2:
            raise ValueError(
                f"{path}: the sensitive attribute {column!r} has one group only "
                f"({_values.quoted(groups[column].tolist()[0])}), so there is nothing to compare. "
                f"Name another column, or train without a margin: --method pate without "
                f"--sensitive."
            )

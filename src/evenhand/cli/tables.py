"""The user's files as the tables that ``fit``, ``predict`` and the measurements need."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from evenhand import _values
from evenhand._checks import did_you_mean
from evenhand._roles import Roles
from evenhand.cli.failures import as_bad_input
from evenhand.cli.grouping import grouped

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.cli.grouping import GroupingOptions
    from evenhand.datasets import Schema
    from evenhand.datasets.columns import Column, TypedTable
    from evenhand.datasets.images.files import PictureFiles
    from evenhand.datasets.images.manifest import Manifest
    from evenhand.datasets.parquet import ParquetRows
    from evenhand.fairness import Grouping
    from evenhand.typing import IntArray

_OF_THEIR_OWN: Final = "a group of their own such as 'unknown'"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingTables:
    """What ``fit`` is given.

    ``X_public`` is None where rows of the private table are to be set aside as public; ``groups``
    are then those of the private rows, and else those of the public rows. ``private_groups`` are
    read for a training that keeps a margin between the private rows. Where the tables list pictures
    ``X`` and ``X_public`` are what they list, and later what is learnt of it; ``side`` is height
    and width of the pictures, and ``public_pictures`` may be shown. Where rows stream, ``X`` reads
    them, ``y`` are the different classes and ``units`` the name of a column.
    """

    X: Any
    y: pd.Series[Any]
    units: pd.Series[Any] | str | None
    X_public: Any
    groups: pd.DataFrame | None
    private_groups: pd.DataFrame | None
    columns: tuple[str, ...]
    schema: Schema | None
    grouping: Grouping | None = None
    side: tuple[int, int] | None = None
    public_pictures: PictureFiles | None = None
    streams: bool = False

    @property
    def like(self) -> Any:
        """Rows of the features that the training reads: public ones, where there are any."""
        return self.X if self.X_public is None else self.X_public


def stream_of(
    source: Path, rows_per_teacher: int | None, scratch: Path | None
) -> ParquetRows | None:
    """Return the rows of a folder, of a URL, or of a file that shall stream; None of others."""
    from evenhand.datasets.parquet import ParquetRows

    # A path has lost one of the two slashes of a URL.
    system, _, rest = str(source).partition(":/")
    is_url = bool(rest) and len(system) > 1 and system.isalnum() and not source.exists()
    if not (is_url or source.is_dir() or rows_per_teacher is not None or scratch is not None):
        return None
    address = f"{system}://{'/' if system == 'file' else ''}{rest}" if is_url else source
    rows = ParquetRows(address, scratch=scratch)
    return rows if rows_per_teacher is None else replace(rows, rows_per_teacher=rows_per_teacher)


def require_outside(private: Path, *written: Path | None) -> None:
    """Refuse to write into a folder whose files are all read, also where a URL names it."""
    system, _, rest = str(private).partition(":/")
    folder = Path(f"/{unquote(rest)}") if system == "file" and not private.exists() else private
    for file in written:
        if file and folder.is_dir() and file.resolve().is_relative_to(folder.resolve()):
            raise FileExistsError(
                f"{file} would lie in {private}, whose files are all read as private rows. Choose "
                f"a place outside."
            )


def read_stream(
    rows: ParquetRows, where: Path, public: Path | None, roles: Roles, *given: Any, **more: Any
) -> TrainingTables:
    """Read the public table, and check that it goes with rows that stream, by some of these.

    The arguments are those of ``read_training``.
    """
    import pandas as pd

    from evenhand.datasets.columns import TypedTable

    used = {roles.label: "--label"} | ({roles.unit: "--unit"} if roles.unit else {})
    rows.require(used.items())
    seen = rows.sample(rows.names).dropna(subset=list(used))  # which row it is, fit says
    tables = read_training(TypedTable(seen, where), public, roles, *given, some=True, **more)
    return replace(
        tables, X=rows, y=pd.Series(rows.classes(roles.label)), units=roles.unit, streams=True
    )


def read_training(
    private: Path | TypedTable,
    public: Path | None,
    roles: Roles,
    schema: Path | None,
    *,
    groups_of: Sequence[str] = ("public",),
    groups_are_all: bool = False,
    regrouping: GroupingOptions | None = None,
    images: bool = False,
    some: bool = False,
) -> TrainingTables:
    """Read the private table and, if there is one, the public table, and check that they match.

    ``groups_of`` says whose groups are needed: "public", or "public if known" where a public table
    without a sensitive column will do, "private", both or neither;
    ``groups_are_all``, that nothing but them is private; ``regrouping``, what becomes of them;
    ``images``, that the tables list pictures; ``some``, that the private rows are not all.

    Raises
    ------
    ValueError
        For a column that is not there (with the nearest name), a missing label, group or unit
        (with the rows), one group only, two tables that do not belong together, and text where
        numbers belong.
    """
    table = read(private) if isinstance(private, Path) else private
    others = None if public is None else read(public)
    named = {roles.label: "--label"} | ({roles.unit: "--unit"} if roles.unit else {})
    named |= {c: "--drop" for c in roles.drop if others is None or c not in others}
    for column, option in named.items():
        table.require([column], f"which {option} names")
    y = labels(table, roles.label)
    if not some:  # which may be of one class
        table[roles.label].refuse_one_class()
    units = None if roles.unit is None else unit_ids(table[roles.unit])
    declared = None if schema is None else declared_schema(schema, roles)
    X, X_public = (
        (listed(table), None if others is None else listed(others))
        if images
        else _learnt(table, others, roles, declared)
    )
    grouping = None
    if regrouping is not None:
        counted = None
        if others is not None and regrouping.counts_rows:
            counted = group_columns(others, roles.sensitive)
        grouping = regrouping.read(counted, public)
    groups = private_groups = None
    known = others is None or any(column in others for column in roles.sensitive)
    if roles.sensitive and ("public" in groups_of or (known and "public if known" in groups_of)):
        groups = _groups(table if others is None else others, roles, grouping)
    if roles.sensitive and "private" in groups_of:
        private_groups = _groups(table, roles, grouping, all_that_is_private=groups_are_all)
    return TrainingTables(
        X=X,
        y=y,
        units=units,
        X_public=X_public,
        groups=groups,
        private_groups=private_groups,
        columns=tuple(table),
        schema=declared,
        grouping=grouping,
    )


def _learnt(
    table: TypedTable, others: TypedTable | None, roles: Roles, declared: Schema | None
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the features of the private and the public table, which belong together."""
    from evenhand.datasets import Schema

    X = features(table, roles)
    _refuse_pictures(X)
    refuse_wrong(table, roles, public=others, schema=declared)
    known, X_public = declared, None
    if others is not None:
        X_public = features(others, roles)
        for here, there in ((X_public, X), (X, X_public)):
            here.require(
                there,
                f"which {there.where} has",
                spare=[name for name in here if name not in there],
                way_out="Both need the same features: rename it, or leave it out with --drop "
                "{name}.",
            )
        X_public = X_public.select(X)
        if declared is None:
            _refuse_other_kinds(X, X_public)
    with as_bad_input(TypeError):
        if X_public is not None:
            known = Schema.of_public(X_public) if declared is None else declared
            known.check(X_public)
        if known is not None:
            known.check(X)
    return X.frame, None if X_public is None else X_public.frame


def listed(table: TypedTable) -> Manifest:
    """Return the pictures that a table lists."""
    from evenhand.datasets.images.manifest import Manifest

    return Manifest.of(table.frame, Path(table.where))


def _refuse_pictures(table: TypedTable) -> None:
    """Refuse names of files as a feature: they were meant to be looked at."""
    from evenhand.datasets.images.manifest import PATH, lists_pictures

    name = lists_pictures(table.frame)
    if name is not None:
        renamed = "" if name == PATH else f", after calling the column {PATH!r}"
        raise ValueError(
            f"{table.where}: the column {name!r} names files of pictures. To learn from the "
            f"pictures add --images{renamed}; to learn from the other columns alone, --drop "
            f"{shlex.quote(name)}."
        )


def read(path: Path) -> TypedTable:
    """Read a file as a table that messages call by its path."""
    from evenhand.datasets import read_table
    from evenhand.datasets.columns import TypedTable

    return TypedTable(read_table(path), path)


def refuse_wrong(
    table: TypedTable,
    roles: Roles,
    *,
    public: TypedTable | None = None,
    schema: Schema | None = None,
) -> None:
    """Raise ValueError for all features at once that would silently be learnt wrong."""
    from evenhand.datasets import inspect

    used = table.select(name for name in table if name not in roles.drop)
    used.require(roles.keep, "which --keep names")
    found = inspect(
        used,
        label=roles.label,
        sensitive=[c for c in roles.sensitive if c in used],  # some may be public alone
        unit=roles.unit,
        public=public,
        schema=schema,
    )
    found.require(
        f"table {table.where}",
        f"Go on without: {{drop}}. Or learn a column as it is with --keep COLUMN, or declare it "
        f"with --schema. More about each: evenhand inspect {shlex.quote(str(table.where))}.",
        keep=roles.keep,
    )


def sharing(allowed: bool) -> AbstractContextManager[None]:
    """Let ``fit`` take public rows that are private ones too, where that was asked for."""
    from evenhand.estimators import allow_shared_rows

    return allow_shared_rows() if allowed else nullcontext()


def features(table: TypedTable, roles: Roles) -> TypedTable:
    """Return the columns that have no other role."""
    names = [name for name in table if name not in roles.not_features]
    if not names:
        raise ValueError(
            f"{table.where} has no column left for the features beside "
            f"{', '.join(sorted(roles.not_features))}. Drop fewer columns."
        )
    return table.select(names)


def labels(
    table: TypedTable,
    label: str,
    what: str = "label",
    way_out: str = "Leave these rows out: a record without a label cannot teach or test.",
) -> pd.Series[Any]:
    """Return the labels, or what else they are, as whole numbers, booleans or text.

    Where one is missing, ``way_out`` says what to do.
    """
    import pandas as pd

    column = table[label]
    column.refuse_missing(what, way_out)
    column.refuse_amounts()
    is_float = pd.api.types.is_float_dtype(column.dtype)
    return column.values.astype("int64") if is_float else column.values


def class_codes(y: pd.Series[Any], names: Sequence[str], *, where: str) -> IntArray:
    """Return the position of each label among the model's classes; 1, 1.0 and "1" are one class."""
    import numpy as np

    from evenhand._numerals import text_of

    place = {name: code for code, name in enumerate(names)}
    texts = [text_of(value) for value in y.tolist()]
    for row, text in enumerate(texts):
        if text not in place:
            raise ValueError(
                f"{where}: the label in {_values.row(row)}, {_values.quoted(text)}, is not a class "
                f"of the model: {', '.join(map(repr, names))}."
                f"{_values.if_shown(did_you_mean(text, names))}"
            )
    return np.array([place[text] for text in texts], dtype=np.int64)


def group_columns(
    table: TypedTable,
    sensitive: Sequence[str],
    *,
    are_known: bool = False,
    all_that_is_private: bool = False,
    option: str = "--sensitive",
) -> pd.DataFrame:
    """Return the sensitive columns, which an option names; no value is missing.

    A model has groups that ``are_known``.
    """
    filled = "one that the model knows" if are_known else _OF_THEIR_OWN
    for name in sensitive:
        table.require([name], f"which {option} names")
        if all_that_is_private and table[name].missing.any():
            raise ValueError(
                f"{table.where}: the sensitive attribute {name!r} is missing for some rows. To "
                f"leave them out would tell who did not say, which is a part of what is "
                f"protected here. Fill in {_OF_THEIR_OWN}."
            )
        table[name].refuse_missing(
            "sensitive attribute",
            f"Whether a margin is kept cannot be said about an unknown group: leave these rows "
            f"out, or fill in {filled}.",
        )
    return table.frame[list(sensitive)]


def sensitive_features(
    groups: pd.DataFrame, grouping: Grouping | None = None, path: Path | None = None
) -> Any:
    """Return one column as a Series and several as a DataFrame: group names depend on it.

    With ``grouping`` they are those of ``path`` that it makes of the columns.
    """
    if grouping and path is not None:
        groups = grouped(groups, grouping, path)
    return groups.iloc[:, 0] if groups.shape[1] == 1 else groups


def features_of(model: Any, table: TypedTable) -> pd.DataFrame:
    """Return the columns that the model was trained on; others are passed over.

    Raises
    ------
    ValueError
        For a column that is not there, and text or dates where numbers belong.
    """
    known = list(model.fitted_.columns)
    if not known:
        raise ValueError(
            "This model was trained on an array, and knows no names of columns. Predict in Python: "
            "evenhand.load(folder).predict(array)."
        )
    table.require(
        known,
        "which the model was trained on",
        spare=[name for name in table if name not in known],
        way_out=f"The model reads {', '.join(map(repr, known))}; values that nobody knows may be "
        f"left empty.",
    )
    with as_bad_input(TypeError):
        model.fitted_.core.encoder.require(table)
    return table.frame[known]


def same_features(
    table: TypedTable, like: pd.DataFrame, schema: Schema | None, *, whose: str
) -> pd.DataFrame:
    """Return the features that the training reads, which ``whose`` rows need as well.

    Raises
    ------
    ValueError
        For a column that is not there, and text where numbers belong.
    """
    from evenhand.datasets import Schema

    table.require(
        like.columns,
        "which the private table has",
        spare=[name for name in table if name not in like.columns],
        way_out=f"The {whose} rows need the same features.",
    )
    X = table.select(like.columns)
    known = Schema.of_public(like) if schema is None else schema
    with as_bad_input(TypeError):
        known.check(X)
    return X.frame


def declared_schema(path: Path, roles: Roles) -> Schema:
    """Read a declared schema; columns that are no features may stand in it."""
    from evenhand.datasets import Schema

    with as_bad_input(TypeError, KeyError, where=str(path)):
        schema = Schema.load(path)
    features = tuple(c for c in schema.columns if c.name not in roles.not_features)
    if not features:
        raise ValueError(
            f"{path} declares no feature: what it declares is the label, the groups or the unit, "
            f"or left out by --drop ({', '.join(schema.names)}). Declare a feature there, or go "
            f"without --schema."
        )
    learnt = Schema(columns=features)
    learnt.refuse_for_models()
    return learnt


def _refuse_other_kinds(X: TypedTable, X_public: TypedTable) -> None:
    """Refuse numbers in one table that are text in the other: mostly a slip in one cell."""
    import pandas as pd

    for name in X:
        both = X[name], X_public[name]
        with as_bad_input(TypeError):
            kinds = [column.kind for column in both]
        if set(kinds) != {"numeric", "categorical"}:
            continue
        column = both[kinds.index("categorical")]
        odd = ~column.missing & pd.to_numeric(
            column.values.astype(object), errors="coerce"
        ).isna().to_numpy(dtype=bool)
        row = int((odd if odd.any() else ~column.missing).argmax())
        raise ValueError(
            f"{column.where}: column {name!r} holds the text "
            f"{_values.quoted(column.values.iloc[row])} in {_values.row(row)}, where the other "
            f"table holds numbers. Correct the value or leave it empty; if these are categories, "
            f"declare them with --schema."
        )


def _groups(
    table: TypedTable,
    roles: Roles,
    grouping: Grouping | None,
    *,
    all_that_is_private: bool = False,
) -> pd.DataFrame:
    from evenhand.datasets.columns import TypedTable

    groups = group_columns(table, roles.sensitive, all_that_is_private=all_that_is_private)
    groups = grouped(groups, grouping, Path(table.where))
    for column in TypedTable(groups, table.where).columns:
        column.refuse_one_group(
            "Name another column, or train without a margin: --method pate without --sensitive."
        )
    return groups


def unit_ids(ids: Column) -> pd.Series[Any]:
    """Return whose record each row is; no id is missing."""
    import pandas as pd

    from evenhand._numerals import text_of

    ids.refuse_missing("unit", "Give each of these rows an id of its own.")
    if not pd.api.types.is_float_dtype(ids.dtype):
        return ids.values
    # Whole numbers are left to ids_of, which knows how many digits of them are right.
    return ids.values.astype(object).map(lambda n: n if n.is_integer() else text_of(n))

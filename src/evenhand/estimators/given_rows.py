"""Rows and labels as they were given: checked, picked and encoded, whoever trains on them."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from evenhand import _checks, _values
from evenhand._frames import as_pandas, without_nulls
from evenhand.datasets.cells import CellTable
from evenhand.datasets.columns import TypedTable, some
from evenhand.datasets.encoder import PublicEncoder
from evenhand.datasets.images.files import PictureFiles
from evenhand.datasets.parquet import ParquetRows
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.fitted import columns_of
from evenhand.typing import Array, ArrayLike, IntArray

PICTURES: Final = 4
"""Sides of an array of pictures: (n, channels, height, width)."""

FEWEST_VALUES: Final = 20
"""Of a column with fewer values it may be chance that the model knows none of them."""


class UnknownCategories(UserWarning):
    """A model decides about rows of which a column has no category that it learned."""


def encoded(
    X_public: Any, schema: Any, *, degree: int = 0
) -> tuple[PublicEncoder | PixelEncoder, Any]:
    """Return what turns rows into numbers, learned from public rows alone, and these rows.

    With curves of a ``degree`` beside numbers. Pictures stay what they are: networks read them.
    """
    if not isinstance(X_public, np.ndarray) or X_public.ndim == 2:
        public = TypedTable.of(X_public, "public table")
        encoder = PublicEncoder(schema, degree=degree).fit(public)
        return encoder, encoder.transform(public)
    if schema is not None:
        raise ValueError("Pictures have no columns, and schema= describes columns: leave it.")
    return PixelEncoder(X_public.shape[1:], str(X_public.dtype)), X_public


def encoded_to_decide(encoder: PublicEncoder | PixelEncoder, X: Any) -> Any:
    """Return checked rows as the model reads them, and warn of columns that say nothing to it."""
    if not (isinstance(encoder, PublicEncoder) and isinstance(X, pd.DataFrame)):
        return encoder.transform(X)
    table = TypedTable.of(X, "table to encode")
    for column in encoder.unknown(table, least=FEWEST_VALUES):
        warnings.warn(
            f"No value of column {column.name!r} is one of the categories that the model knows, "
            f"{some(column.categories)}, so that it decides without this column. Write the values "
            f"as they were in training.",
            UnknownCategories,
            stacklevel=4,
        )
    return encoder.transform(table)


def checked_features(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> Any:
    """Return ``X`` as a pandas DataFrame, or as a 2-D float array, where NaN is "missing".

    An estimator that reads pictures gets them as they are, (n, channels, height, width); those in
    files are decoded. A ``CellTable`` is what it is.

    Raises
    ------
    ValueError
        Also for pictures that the estimator does not read, with what it reads of them.
    """
    if isinstance(X, ParquetRows):
        raise TypeError(
            f"{name} is ParquetRows, which stream to the teachers of FairSharesClassifier, "
            f"FairPATEClassifier and PATEClassifier; {type(estimator).__name__} needs {name} in "
            f"memory: pandas.read_parquet(...)."
        )
    if isinstance(X, CellTable) and not reset:
        return X
    X = as_pandas(X)
    if may_be_pictures(X):
        if not getattr(estimator, "_reads_pictures", False):
            raise ValueError(
                f"{name} holds pictures, and {type(estimator).__name__} reads rows of numbers. "
                f"Pass their features, made by a public extractor: extract(pictures, "
                f"EfficientNetLite0.load()) of evenhand.datasets.features."
            )
        if isinstance(X, PictureFiles):
            X = np.asarray(X.channels_in_front())
        pictures = _checks.rows(name, X)
        validate_data(estimator, pictures, reset=reset, skip_check_array=True)
        return pictures
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        for n, what in zip(X.shape, ("row", "column"), strict=True):
            if not n:
                raise ValueError(f"{name} has 0 {what}s: at least one {what} is needed.")
        try:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise ValueError(f"{name}: {error}{_nearest(estimator, X)}") from None
        return X
    if not reset and (known := columns_of(estimator)):
        raise ValueError(
            f"{name} is an array, and {type(estimator).__name__} knows its columns by name, "
            f"{some(known)}. Pass a DataFrame with these columns."
        )
    try:
        array = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", input_name=name, estimator=estimator
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise _unquoted(name, error) from _values.cause(error)
        raise ValueError(
            f"{name} must hold numbers: could not convert string to float. Pass a DataFrame, whose "
            f"columns may hold text."
        ) from _values.cause(error)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return array


def may_be_pictures(X: Any) -> bool:
    """Whether rows look like pictures, each (channels, height, width): files, array or list."""
    if isinstance(X, np.ndarray | PictureFiles):
        return isinstance(X, PictureFiles) or X.ndim == PICTURES
    # A list of pictures, of different sizes perhaps: those have no shape together.
    return isinstance(X, list | tuple) and bool(len(X)) and np.ndim(X[0]) == 3


def take(rows: Any, index: IntArray) -> Any:
    """Return the rows ``index`` of a DataFrame, Series or array."""
    return rows.iloc[index] if hasattr(rows, "iloc") else rows[index]


def frame_or_array(values: Any) -> Any:
    """Return values whose rows ``take`` can read."""
    values = as_pandas(values)
    return values if hasattr(values, "iloc") else np.asarray(values)


def coded_labels(estimator: Any, y: ArrayLike) -> tuple[IntArray, Array]:
    """Return the codes of the labels, and the classes that these stand for."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    values = _one_column("y", y, warn=True)
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise ValueError(
            f"y has no label in {_values.rows(missing)}: input y contains NaN. Leave these rows "
            f"out: a teacher cannot learn from them."
        )
    labels = _of_one_type(np.asarray(values))
    check_classification_targets(labels)
    found = np.unique(labels)
    if estimator.classes is None and len(found) > _checks.MOST_CLASSES:
        raise ValueError(
            f"y has more than {_checks.MOST_CLASSES} different values, and each would be a class "
            f"with a name that is published. Make classes of an amount first; or name the classes, "
            f"which are public then: classes=."
        )
    known = found if estimator.classes is None else np.unique(np.asarray(estimator.classes))
    strange = [value for value in found if value not in known]
    if strange:
        raise ValueError(
            f"y holds {_values.quoted(strange[0])}, which is not among classes={known.tolist()}."
            f"{_values.if_shown(_checks.did_you_mean(strange[0], known.tolist()))}"
        )
    return np.searchsorted(known, labels).astype(np.int64), known


def class_codes(y: ArrayLike | None, classes: Array, name: str) -> IntArray:
    """Return the codes of the labels of further rows; one that is no class is refused."""
    values = np.asarray(_one_column(name, y))
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise ValueError(
            f"{name} has no label in {_values.rows(missing)}. True classes are read of every row: "
            f"leave these rows out."
        )
    place = {value: code for code, value in enumerate(classes.tolist())}
    found = values.tolist()
    for row, value in enumerate(found):
        if value not in place:
            raise ValueError(
                f"{name} holds {_values.quoted(value)}, first in {_values.row(row)}, which is not "
                f"among the classes, {_values.listed(place, 20)}."
                f"{_values.if_shown(_checks.did_you_mean(value, place))}"
            )
    return np.array([place[value] for value in found], dtype=np.int64)


def _one_column(name: str, y: Any, *, warn: bool = False) -> Any:
    """Return labels as one column."""
    try:
        return column_or_1d(without_nulls(as_pandas(y)), warn=warn)
    except ValueError as error:
        raise _unquoted(name, error) from _values.cause(error)


def _unquoted(name: str, error: ValueError) -> ValueError:
    """Return an error of scikit-learn without the values that it quotes below its first line."""
    first, *more = str(error).splitlines()
    way_out = "".join(f" {line}" for line in more if line.startswith("Reshape your data"))
    said = f"{name}: {first.rstrip(':.')}.{way_out}"
    return error if _values.are_shown() else ValueError(said)


def _of_one_type(labels: Array) -> Array:
    """Return labels that came as objects as what they are: numbers, true and false, or texts."""
    if labels.dtype != object:
        return labels
    plain = pd.Series(labels).infer_objects().to_numpy()
    if plain.dtype.kind in "biuf":
        return plain
    kinds = sorted({type(value).__name__ for value in labels if not isinstance(value, str)})
    if not kinds:
        return labels
    beside = " beside texts" if any(isinstance(value, str) for value in labels) else ""
    raise TypeError(
        f"y holds values of type {' and '.join(kinds)}{beside}. Labels are all texts, all numbers, "
        f"or all true and false: write them alike, as with y.astype(str)."
    )


def _nearest(estimator: Any, X: Any) -> str:
    known = columns_of(estimator)
    given = [str(c) for c in X.columns]
    for name in given:
        if name not in known and (hint := _checks.did_you_mean(name, set(known) - set(given))):
            return f" Column {name!r}:{hint}"
    return ""

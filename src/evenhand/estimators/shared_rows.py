"""Private rows that were passed as public ones: noticed before anything is learnt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from evenhand._arrow import pa, pc
from evenhand._frames import as_pandas
from evenhand.datasets.parquet import ParquetRows
from evenhand.typing import Array

if TYPE_CHECKING:
    from evenhand.estimators.inputs import FitInputs

FEW: Final = 0.05
"""Share of public rows that may be private ones beyond what independent samples share."""

SIGMAS: Final = 4.0
"""Standard deviations of that share that are allowed besides."""

FEWEST: Final = 20
"""Public rows below which nothing can be said."""

PROBES: Final = 1000
"""Public rows that are looked for in a stream."""

_allowed: ContextVar[bool] = ContextVar("allow_shared_rows", default=False)


class PrivateRowsAsPublic(ValueError):
    """More public rows are rows of the private table than two samples of people would share."""


@contextmanager
def allow_shared_rows() -> Iterator[None]:
    """Let ``fit`` take public rows that are private ones too, inside the ``with`` block.

    Privacy
    -------
    The guarantee takes the features and groups of public rows as known to everybody: it does not
    cover those of private rows that are among them.

    Examples
    --------
    >>> with allow_shared_rows():
    ...     pass  # model.fit(X, y, X_public=X)
    """
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def refuse_shared_rows(X_private: Any, X_public: Any) -> None:
    """Refuse public rows that are private rows, unless ``allow_shared_rows`` says otherwise.

    Tables of few values share many rows by chance. For two samples of one population a public row
    is found among the private rows about as often as a private row has a twin among the others, so
    the first share may exceed the second by 5 % and four standard deviations.

    Raises
    ------
    PrivateRowsAsPublic
        Without any count: it would be one of private rows.

    Privacy
    -------
    Reads private rows. What comes of it is an error for the curator, and no part of a model.
    """
    if not _allowed.get() and passed_as_public(X_private, X_public):
        raise PrivateRowsAsPublic(_REFUSAL)


def refuse_shared(data: FitInputs, X_public: Any) -> None:
    """Refuse rows, public or for calibration, that are the private rows of a fit."""
    if data.stream is not None:
        refuse_shared_stream(data.stream.rows, X_public)
    elif data.cast is None:  # else the private rows are elsewhere
        refuse_shared_rows(data.X_private, X_public)


def refuse_shared_stream(rows: ParquetRows, X_public: pd.DataFrame) -> None:
    """Refuse public rows that are rows of the files, as ``refuse_shared_rows`` does; by a sample.

    Up to 1,000 public rows are looked for. A pass over the column of the most values decides for
    most tables; only where these values are common are more columns read, and at last all.
    """
    if _allowed.get() or len(X_public) < FEWEST:
        return
    columns = [str(name) for name in X_public.columns]
    rng = np.random.default_rng(0)
    public = X_public.iloc[rng.permutation(len(X_public))[:PROBES]]
    private = rows.sample(columns, PROBES)
    by_values = sorted(columns, key=lambda name: -public[name].nunique())
    for some in (by_values[:1], by_values[:4], columns):
        times = _times(rows, some, pd.concat([public[some], private[some]], ignore_index=True))
        found, twins = (times[: len(public)] > 0).mean(), (times[len(public) :] > 1).mean()
        if found <= FEW:
            return
    if found > _most_shared(float(twins), len(public), len(private)):
        raise PrivateRowsAsPublic(_REFUSAL)


def _times(rows: ParquetRows, columns: list[str], probes: pd.DataFrame) -> Array:
    """Return how many rows of the files hold the values of each of these."""
    times = np.zeros(len(probes), dtype=np.int64)
    for _, batch in rows.batches(columns):
        for name in columns:
            batch = batch.filter(_may_be_among(batch[name], probes[name]))
        if batch.num_rows:
            private, public = _hashes(as_pandas(batch), probes)
            values, at = np.unique(private, return_counts=True)
            place = np.minimum(np.searchsorted(values, public), len(values) - 1)
            times += np.where(values[place] == public, at[place], 0)
    return times


def _may_be_among(column: Any, probes: pd.Series[Any]) -> Any:
    """Say quickly which values may be among some; those that are missing may."""
    missing = pc.is_null(column, nan_is_null=True)
    try:
        known = pa.array(probes.dropna().unique()).cast(column.type)
    except pa.ArrowException:  # of other types: they are compared as texts
        return pc.is_valid(missing)
    return pc.or_(missing, pc.is_in(column, value_set=known))


_REFUSAL: Final = (
    "Public rows, or calibration rows, are the same as private rows, value for value, more often "
    "than in two samples of such a table: was the private table, or a part of it, passed as "
    "public? The guarantee does not cover the features of public rows. Give rows of other people; "
    "or set rows aside with public_fraction= (--public-fraction), which the guarantee then says; "
    "or, if these rows are public, go on with evenhand.estimators.allow_shared_rows() "
    "(--allow-shared-rows)."
)


def passed_as_public(X_private: Any, X_public: Any) -> bool:
    """Whether the public rows look like rows of the private table."""
    if X_public is X_private:
        return True
    hashes = _of_pictures if np.ndim(X_public) == 4 else _hashes
    private, public = hashes(X_private, X_public)
    n = len(public)
    if n < FEWEST:
        return False
    if len(private) == n and np.array_equal(private, public):
        return True  # the same table, however few values it has
    found = float(np.isin(public, private).mean())
    _, place, times = np.unique(private, return_inverse=True, return_counts=True)
    twins = float((times[place] > 1).mean())
    return found > _most_shared(twins, n, len(private))


def _most_shared(twins: float, n_public: int, n_private: int) -> float:
    """Return the share of public rows that two samples of people may share."""
    variance = max(twins * (1 - twins), 1 / n_public) * (1 / n_public + 1 / n_private)
    return twins + FEW + SIGMAS * math.sqrt(variance)


def _of_pictures(X_private: Any, X_public: Any) -> tuple[Array, Array]:
    """Return one number per picture, the same for the same pixels."""
    private, public = (
        np.array([hash(row.tobytes()) for row in np.asarray(pictures)], dtype=np.int64)
        for pictures in (X_private, X_public)
    )
    return private, public


def _hashes(X_private: Any, X_public: Any) -> tuple[Array, Array]:
    """Return one number per row, the same for rows that hold the same values."""
    frames = [x if isinstance(x, pd.DataFrame) else pd.DataFrame(x) for x in (X_private, X_public)]
    columns = [column for column in frames[1].columns if column in frames[0].columns]
    made: list[dict[int, Any]] = [{}, {}]  # a frame that grows by columns is slow, and warns
    for i, column in enumerate(columns):
        parts = [frame[column].reset_index(drop=True) for frame in frames]
        if all(pd.api.types.is_numeric_dtype(part) for part in parts):
            parts = [part.astype("float64") for part in parts]
        else:
            parts = [part.astype(str) for part in parts]
        for values, part in zip(made, parts, strict=True):
            values[i] = part
    private, public = (
        pd.util.hash_pandas_object(pd.DataFrame(values, index=range(len(frame))), index=False)
        for values, frame in zip(made, frames, strict=True)
    )
    return private.to_numpy(), public.to_numpy()

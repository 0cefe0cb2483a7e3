"""Private rows that were passed as public ones: noticed before anything is learnt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand.typing import Array

FEW: Final = 0.05
"""Share of public rows that may be private ones beyond what independent samples share."""

SIGMAS: Final = 4.0
"""Standard deviations of that share that are allowed besides."""

FEWEST: Final = 20
"""Public rows below which nothing can be said."""

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
    if _allowed.get() or not passed_as_public(X_private, X_public):
        return
    raise PrivateRowsAsPublic(
        "Public rows are the same as private rows, value for value, more often than in two samples "
        "of such a table: was the private table, or a part of it, passed as public? The guarantee "
        "does not cover the features of public rows. Give rows of other people; or set rows aside "
        "with public_fraction= (--public-fraction), which the guarantee then says; or, if these "
        "rows are public, go on with evenhand.estimators.allow_shared_rows() (--allow-shared-rows)."
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
    spread = math.sqrt(max(twins * (1 - twins), 1 / n) * (1 / n + 1 / len(private)))
    return found > twins + FEW + SIGMAS * spread


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

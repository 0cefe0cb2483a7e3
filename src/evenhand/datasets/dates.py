"""Dates as whole days or seconds from 1970-01-01, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from evenhand.typing import FloatArray

DateUnit: TypeAlias = Literal["day", "second"]

SECONDS: Final[Mapping[str, int]] = {"day": 86_400, "second": 1}
"""What dates are counted in, and the seconds that it has."""

_LAST: Final = 253_402_300_799  # the end of the year 9999


def since_1970(dates: pd.Series[Any], unit: DateUnit) -> FloatArray:
    """Return what ``Column.since_1970`` does, of a column of dates."""
    gone = dates.isna().to_numpy(dtype=bool)
    if isinstance(dates.dtype, pd.DatetimeTZDtype):
        there = dates if unit == "day" else dates.dt.tz_convert("UTC")
        dates = there.dt.tz_localize(None)
    whole = dates.to_numpy().astype("datetime64[D]" if unit == "day" else "datetime64[s]")
    counted: FloatArray = whole.astype(np.int64).astype(np.float64)
    counted[gone] = np.nan
    return counted


def dates_of(numbers: FloatArray, unit: DateUnit, dtype: str) -> pd.Series[Any]:
    """Return the dates of a dtype that ``since_1970`` reads as these numbers.

    What the dtype cannot hold becomes its first or last day; datetime64[ns] ends in 2262.

    Examples
    --------
    >>> dates_of(np.array([1.0, np.nan]), "day", "datetime64[s, Europe/Berlin]").tolist()
    [Timestamp('1970-01-02 00:00:00+0100', tz='Europe/Berlin'), NaT]
    """
    known: Any = pd.api.types.pandas_dtype(dtype)
    zone = getattr(known, "tz", None)
    step = np.datetime_data(known if zone is None else f"M8[{known.unit}]")[0]
    most = np.iinfo(np.int64).max // {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[step]
    most = min(most, _LAST) - 2 * SECONDS["day"]  # room for a zone
    gone = np.isnan(numbers)
    seconds = np.clip(np.where(gone, 0.0, numbers) * SECONDS[unit], -most, most)
    moments = seconds.astype(np.int64).astype("datetime64[s]")
    moments[gone] = np.datetime64("NaT")
    made: pd.Series[Any] = pd.Series(moments.astype(f"datetime64[{step}]"))
    if zone is None:
        return made
    if unit == "second":
        made = made.dt.tz_localize("UTC").dt.tz_convert(zone)
    else:  # a clock that is set at midnight shows it twice, or passes over it
        first = np.ones(len(made), dtype=np.bool_)
        made = made.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return made

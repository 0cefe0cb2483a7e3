"""Frames of any library as pandas: the one door through which tables come in."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd

OF_DAYS: Final = "datetime64[s]"
"""The dtype of days, which pandas has none for."""

DAYS: Final = "evenhand days"
"""Where ``attrs`` of a DataFrame list the columns whose dtype said that they hold days."""

PLACES: Final = "evenhand decimals"
"""Where ``attrs`` of a DataFrame say how many decimals columns have, by their type in the file."""

# Types that pandas would choose by the values: whether some are missing must not change a column's
# kind, which may be read from private rows. Of days it would make Python objects.
_NULLABLE: Final[dict[type, str]] = {
    nw.Date: OF_DAYS,
    nw.Boolean: "boolean",
    nw.String: "string",
    **{kind: kind.__name__ for kind in (nw.Int8, nw.Int16, nw.Int32, nw.Int64)},
    **{kind: kind.__name__ for kind in (nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)},
}


EXACT_DIGITS: Final = 15
"""Decimal digits up to which a float64 tells all numbers apart."""


def without_nulls(values: Any) -> Any:
    """Return a nullable or categorical column of truth values or whole numbers as a plain array.

    Scikit-learn makes floats of such a column. One that does miss a value, or is of another kind,
    stays as it is.

    Examples
    --------
    >>> without_nulls(pd.Series([True, False], dtype="boolean"))
    array([ True, False])
    """
    if not isinstance(values, pd.Series) or values.isna().any():
        return values
    of = values.dtype
    kind = (of.categories.dtype if isinstance(of, pd.CategoricalDtype) else of).kind
    plain = {"b": np.bool_, "i": np.int64, "u": np.uint64}.get(kind)
    return values if plain is None or isinstance(of, np.dtype) else values.to_numpy(dtype=plain)


def refuse_other_order(**named: Any) -> None:
    """Refuse values of the same records whose pandas indexes have the same labels in other orders.

    Rows are matched by position. Whoever numbered a table anew has an index that says nothing.

    Examples
    --------
    >>> rows = pd.Series(["F", "M"], index=["p7", "p3"])
    >>> refuse_other_order(y_pred=rows, sensitive_features=rows.reset_index(drop=True))
    >>> refuse_other_order(y_pred=rows, sensitive_features=rows.sort_index())
    Traceback (most recent call last):
    ValueError: The index of sensitive_features has the labels of that of y_pred in another order, \
and rows are matched by position: each would be taken for another record's. Pass \
sensitive_features=sensitive_features.loc[y_pred.index]; or sensitive_features.to_numpy(), if \
positions are right.
    """
    known = {
        name: values.index
        for name, values in named.items()
        if isinstance(values, pd.DataFrame | pd.Series)
        and not isinstance(values.index, pd.RangeIndex)
    }
    for (first, ours), (name, theirs) in combinations(known.items(), 2):
        if len(ours) != len(theirs) or ours.equals(theirs) or not ours.is_unique:
            continue
        if theirs.is_unique and ours.isin(theirs).all():
            raise ValueError(
                f"The index of {name} has the labels of that of {first} in another order, and rows "
                f"are matched by position: each would be taken for another record's. Pass "
                f"{name}={name}.loc[{first}.index]; or {name}.to_numpy(), if positions are right."
            )


def as_pandas(values: Any) -> Any:
    """Return a frame or column of polars, pyarrow, ... as one of pandas; anything else as it is.

    Raises
    ------
    TypeError
        For a frame that has no rows yet, such as a lazy one of polars.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_pandas(pa.table({"age": [30, None], "sex": ["F", "M"]})).dtypes.astype(str).to_list()
    ['Int64', 'string']
    >>> as_pandas([1, 2])
    [1, 2]
    """
    if isinstance(values, pd.DataFrame | pd.Series):
        return values
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise TypeError(
            f"A {type(values).__module__.split('.')[0]} {type(values).__name__} has no rows yet. "
            f"Pass frame.collect()."
        )
    if isinstance(native, nw.Series):
        frame = _frame(native.to_frame())
        return frame[frame.columns[0]]
    return _frame(native) if isinstance(native, nw.DataFrame) else values


def _frame(frame: nw.DataFrame[Any]) -> pd.DataFrame:
    # Of decimals pandas makes Python objects, which are numbers by no dtype.
    exact = {
        name: kind.scale
        for name, kind in frame.schema.items()
        if isinstance(kind, nw.Decimal) and getattr(kind, "precision", 99) <= EXACT_DIGITS
    }
    frame = frame.with_columns(nw.col(name).cast(nw.Float64) for name in exact)
    kinds = {name: _NULLABLE.get(type(kind)) for name, kind in frame.schema.items()}
    # Of whole numbers with gaps pandas makes floats, which do not hold them beyond 2 ** 53.
    gaps = [name for name in frame.columns if _is_whole(frame[name]) and frame[name].null_count()]
    whole = {name: _with_gaps(frame[name]) for name in gaps}
    known = frame.to_pandas().assign(**whole)
    known = known.astype({name: kind for name, kind in kinds.items() if kind})
    known.attrs[DAYS] = [name for name, kind in kinds.items() if kind == OF_DAYS]
    known.attrs[PLACES] = exact
    return known


def _is_whole(column: nw.Series[Any]) -> bool:
    return bool(column.dtype.is_integer())


def _with_gaps(column: nw.Series[Any]) -> pd.arrays.IntegerArray:
    numbers = column.fill_null(0).to_numpy()
    return pd.arrays.IntegerArray(numbers, column.is_null().to_numpy().astype(np.bool_))

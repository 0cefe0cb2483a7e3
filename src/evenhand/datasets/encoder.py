"""Features as numbers, by an encoder that has seen public rows only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.polynomial.legendre import legvander
from sklearn.base import TransformerMixin
from sklearn.exceptions import NotFittedError

from evenhand import _values
from evenhand._checks import at_least, of_type, positive
from evenhand._display import Shown
from evenhand.datasets.cells import CellColumn, CellTable
from evenhand.datasets.columns import Column, TypedTable
from evenhand.datasets.schema import HOW_TO_DECLARE, ColumnSchema, Schema
from evenhand.typing import Array, ArrayLike, FloatArray

FORMAT = 2
N_QUANTILES = 100
"""Of the public values, at which ranks are kept; a value of more than a hundredth is an atom."""
FEWEST_VALUES = 3
"""Distinct public values of a column that has curves, at the least."""
LARGEST = 1e150
"""Largest number that a column is scaled by: the squares of larger ones are none."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Mean, standard deviation and median of one numeric column over the public rows."""

    mean: float
    sd: float
    median: float
    values: tuple[float, ...] = ()
    ranks: tuple[float, ...] = ()
    """``values`` and ``ranks``: some of the distinct public values, increasing, and the part of the
    public rows below each, plus half of those that are equal to it. Empty where no curves are
    drawn.
    """

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.mean, self.sd, self.median))) or self.sd <= 0:
            raise ValueError(f"A scale must be finite with sd > 0, got {self}.")
        if len(self.values) != len(self.ranks) or not np.isfinite(self.values).all():
            raise ValueError(f"A scale has one rank for each of its finite values, got {self}.")
        if (np.diff(self.values) <= 0).any() or (np.diff([0.0, *self.ranks, 1.0]) < 0).any():
            raise ValueError(f"The values and ranks of a scale must increase, got {self}.")

    def curves(self, numbers: FloatArray, degree: int) -> FloatArray:
        """Return the Legendre polynomials of degrees 1 to ``degree`` of the numbers' ranks.

        Between two known values a rank is interpolated. A polynomial has mean 0 and variance 1
        where the ranks are uniform.

        Returns
        -------
        ndarray, shape (n, degree)
        """
        ranks = np.interp(numbers, self.values, self.ranks)
        sizes = np.sqrt(2.0 * np.arange(1, degree + 1) + 1.0)
        return np.asarray(legvander(2.0 * ranks - 1.0, degree)[:, 1:] * sizes, dtype=np.float64)


class PublicEncoder(TransformerMixin, Shown):  # type: ignore[misc]  # scikit-learn has no types
    """Turn a table into a float64 matrix; everything it knows comes from public rows or a schema.

    A numeric column becomes ``(value - mean) / sd``, with both numbers taken over the public rows,
    then moved into [-clip, clip]. A categorical column becomes one 0/1 feature per category.

    Categories that are one number, such as "1" and "1.0", are the first of them: whether a file is
    read as numbers or as text can hang on one record.

    What is not there: a missing number becomes the public median; a missing category and a
    category that the schema does not name become zeros throughout. Where the public rows had
    missing values (or the schema says so), a further feature "... is missing" is 1.

    Infinite values are refused in public rows and moved to the end of the range in others, so
    that no value of a private record can stop a run or grow beyond ``clip``.

    Parameters
    ----------
    schema : Schema, optional
        What is known about the columns. Default: read from the public rows.
    clip : float
        Largest size of a scaled number, > 0.
    ignore_extra : bool
        Pass over columns that the schema does not have, instead of refusing them.
    degree : int
        With 1 or more, curves: beside a number with three or more public values stand the Legendre
        polynomials, up to this degree, of its rank among them (a polynomial basis of its quantile
        transform), so that a linear model can bend.
        Every feature then has half of its usual size, a number a quarter and a curve an eighth:
        a descent that clips gradients cuts off more of these where rows are longer, and what is
        small bends only where many records say so.

    Attributes
    ----------
    schema_ : Schema
        The columns.
    scales_ : dict of str to Scale
        Mean, standard deviation and median of each numeric column, and ranks where there are
        curves. All public.
    feature_names_ : tuple of str
        Names of the features, e.g. ``age``, ``age, curve 1``, ``sex=Female``, ``age is missing``.
    n_features_out_ : int
        Number of features.

    Privacy
    -------
    ``fit`` sees what it is given: give it public rows, never private ones. The fitted state is
    then public, and ``transform`` works on each row alone: what becomes of a record depends on no
    other record, so a teacher's share of the encoded rows depends on its own records only.

    Examples
    --------
    >>> public = pd.DataFrame({"age": [20.0, 40.0], "sex": ["F", "M"]})
    >>> encoder = PublicEncoder().fit(public)
    >>> encoder.transform(pd.DataFrame({"sex": ["M", "X"], "age": [1e9, None]}))
    array([[10.,  0.,  1.],
           [ 0.,  0.,  0.]])
    >>> encoder.feature_names_
    ('age', 'sex=F', 'sex=M')
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        clip: float = 10.0,
        ignore_extra: bool = False,
        degree: int = 0,
    ) -> None:
        self.schema = schema
        self.clip = clip
        self.ignore_extra = ignore_extra
        self.degree = degree

    def fit(
        self, X_public: TypedTable | pd.DataFrame | ArrayLike | None, y: object = None
    ) -> PublicEncoder:
        """Learn the columns and their scales from public rows.

        Parameters
        ----------
        X_public : DataFrame, 2-D array, TypedTable or None
            Public rows. None if the schema has bounds for every numeric column: then the scales
            are those of a uniform distribution between the bounds.
        y : ignored
            For scikit-learn's pipelines.
        """
        positive("clip", self.clip)
        at_least("degree", self.degree, 0)
        if self.schema is not None:
            of_type("schema", self.schema, Schema, HOW_TO_DECLARE)
            self.schema.refuse_for_models()
        if X_public is None:
            if self.schema is None:
                raise ValueError("Without public rows the encoder needs a schema.")
            schema = self.schema
            scales = {
                c.name: _scale_of_bounds(c, ranked=self.degree > 0)
                for c in schema.columns
                if c.kind == "numeric"
            }
        else:
            # A schema that is read off the rows fits them, so that these are read once without it.
            public = TypedTable.of(X_public, "public table", keeps=self.schema is not None)
            schema = self.schema or Schema.of_public(public)
            if self.schema is not None:
                public = schema.check(public, ignore_extra=self.ignore_extra)
            if not len(public):
                raise ValueError("The public table has no rows, so there is nothing to scale by.")
            scales = {
                c.name: _scale_of_rows(c, public[c.name], ranked=self.degree > 0)
                for c in schema.columns
                if c.kind == "numeric"
            }
        return self._set(schema, scales)

    def _set(self, schema: Schema, scales: dict[str, Scale]) -> PublicEncoder:
        """Set the fitted state; the only place that does."""
        self.schema_ = schema
        self.scales_ = scales
        self.feature_names_ = tuple(name for c in schema.columns for name in self._features(c))
        self.n_features_out_ = len(self.feature_names_)
        self.n_features_in_ = len(schema.columns)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self

    def transform(self, X: TypedTable | CellTable | pd.DataFrame | ArrayLike) -> FloatArray:
        """Encode rows, each by itself.

        Parameters
        ----------
        X : DataFrame, 2-D array, TypedTable or CellTable, shape (n, ``n_features_in_``)
            Columns are matched by name, in any order; an array is x0, x1, ...

        Returns
        -------
        ndarray of float64, shape (n, ``n_features_out_``)
            Finite; scaled numbers lie in [-clip, clip], all others are 0 or 1, without curves.
        """
        self._require_fitted()
        table: TypedTable | CellTable
        if isinstance(X, CellTable):
            table = X
        else:
            given = TypedTable.of(X, "table to encode", keeps=False)
            table = self.schema_.select(given, ignore_extra=self.ignore_extra)
        out = np.zeros((len(table), self.n_features_out_))
        start = 0
        for column in self.schema_.columns:
            width = len(self._features(column))
            block = out[:, start : start + width]
            if column.kind == "numeric":
                self._encode_numbers(column, table.pop(column.name), block)
            else:
                _encode_categories(column, table.pop(column.name), block)
            start += width
        return out / 2.0 if self.degree else out

    def require(self, table: TypedTable) -> None:
        """Raise ValueError or TypeError for a column that holds other kinds of values than known.

        Parameters
        ----------
        table : TypedTable
            With all columns of the schema.
        """
        self._require_fitted()
        for column in self.schema_.columns:
            own = table[column.name]
            _ = own.numbers if column.kind == "numeric" else own.kind

    def unknown(self, table: TypedTable, *, least: int = 1) -> list[ColumnSchema]:
        """Return the columns of categories in which the table has values, and no known one.

        Parameters
        ----------
        table : TypedTable
        least : int
            Values that a column of it has at least; of fewer nothing is said.
        """
        self._require_fitted()
        named = [c for c in self.schema_.columns if c.kind == "categorical" and c.name in table]
        return [
            column
            for column in named
            if (~table[column.name].missing).sum() >= least
            and (table[column.name].places(column.categories, as_numbers=True) < 0).all()
        ]

    def _encode_numbers(
        self, column: ColumnSchema, values: Column | CellColumn, block: FloatArray
    ) -> None:
        """Write the scaled numbers, and the missing mark if there is one, into ``block``."""
        scale, numbers = self.scales_[column.name], values.numbers
        missing = np.isnan(numbers)
        numbers = np.where(missing, scale.median, numbers)
        if column.bounds is not None:
            numbers = np.clip(numbers, *column.bounds)
        if curves := self._n_curves(column):
            block[:, 1 : 1 + curves] = scale.curves(numbers, curves) / 4.0
        # Move into the range before subtracting: inf - mean, or 1e308 / sd, would overflow.
        far = self.clip * scale.sd
        numbers = np.clip(numbers, scale.mean - far, scale.mean + far)
        block[:, 0] = np.clip((numbers - scale.mean) / scale.sd, -self.clip, self.clip)
        if self.degree:
            block[:, 0] /= 2.0
        if column.missing:
            block[:, -1] = missing

    def _n_curves(self, column: ColumnSchema) -> int:
        """How many curves a column has: as many as its degree, and fewer than public values."""
        scale = self.scales_.get(column.name)
        known = 0 if scale is None else len(scale.values)
        return min(self.degree, known - 1) if known >= FEWEST_VALUES else 0

    def _features(self, column: ColumnSchema) -> tuple[str, ...]:
        """Names of the features that one column becomes."""
        own: tuple[str, ...]
        if column.kind == "numeric":
            curves = range(1, self._n_curves(column) + 1)
            own = (column.name, *(f"{column.name}, curve {k}" for k in curves))
        else:
            own = tuple(f"{column.name}={category}" for category in column.categories)
        return (*own, f"{column.name} is missing") if column.missing else own

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the features, as scikit-learn wants them."""
        self._require_fitted()
        return np.array(self.feature_names_, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as plain values for JSON; floats survive bit for bit."""
        self._require_fitted()
        return {
            "format": FORMAT,
            "clip": float(self.clip),
            "ignore_extra": bool(self.ignore_extra),
            "degree": int(self.degree),
            "schema": self.schema_.to_dict(),
            "scales": {name: [s.mean, s.sd, s.median] for name, s in self.scales_.items()},
            "ranks": {
                name: [list(s.values), list(s.ranks)]
                for name, s in self.scales_.items()
                if self.degree
            },
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PublicEncoder:
        """Read what ``to_dict`` wrote."""
        if values.get("format") not in (1, FORMAT):
            raise ValueError(
                f"An encoder of format 1 or {FORMAT} is needed, got "
                f"format={values.get('format')!r}. Fit it again, or read it with the version that "
                f"wrote it."
            )
        schema = Schema.from_dict(values["schema"])
        ranks = {
            name: dict(zip(("values", "ranks"), map(tuple, pair), strict=True))
            for name, pair in values.get("ranks", {}).items()
        }
        scales = {
            name: Scale(mean=float(mean), sd=float(sd), median=float(median), **ranks.get(name, {}))
            for name, (mean, sd, median) in values["scales"].items()
        }
        numeric = {column.name for column in schema.columns if column.kind == "numeric"}
        if numeric != set(scales):
            raise ValueError(
                f"The encoder's scales are those of {sorted(scales)}, its numeric columns are "
                f"{sorted(numeric)}. The file is damaged."
            )
        made = cls(
            schema,
            clip=values["clip"],
            ignore_extra=values["ignore_extra"],
            degree=values.get("degree", 0),
        )
        positive("clip", made.clip)
        at_least("degree", made.degree, 0)
        return made._set(schema, scales)

    def _require_fitted(self) -> None:
        if not hasattr(self, "schema_"):
            raise NotFittedError("This PublicEncoder is not fitted. Call fit(X_public) first.")


def _encode_categories(
    column: ColumnSchema, values: Column | CellColumn, block: FloatArray
) -> None:
    """Write the one-hot code, and the missing mark if there is one, into ``block``."""
    places = values.places(column.categories, as_numbers=True)
    known = np.flatnonzero(places >= 0)
    block[known, places[known]] = 1.0
    if column.missing:
        block[:, -1] = values.missing


def _scale_of_rows(column: ColumnSchema, values: Column, *, ranked: bool) -> Scale:
    """Mean, standard deviation and median of the public values that are there."""
    values.refuse_infinite()
    numbers = values.numbers[~np.isnan(values.numbers)]
    if not numbers.size:
        if column.bounds is not None:
            return _scale_of_bounds(column, ranked=ranked)
        raise ValueError(
            f"Column {column.name!r} has no value in the public rows, so there is nothing to scale "
            f"by. Leave it out, or declare its bounds in the schema."
        )
    if column.bounds is not None:
        numbers = np.clip(numbers, *column.bounds)
    if np.abs(numbers).max() > LARGEST:
        rows = _values.rows(np.flatnonzero(np.abs(values.numbers) > LARGEST))
        raise ValueError(
            f"Column {column.name!r} of the public rows holds a number beyond {LARGEST:g} in "
            f"{rows}, by which nothing can be scaled. Correct it, leave it empty, or declare the "
            f"column's bounds in the schema."
        )
    sd = float(numbers.std())
    # A constant column: rounding may leave a tiny sd that would blow up every other value.
    if sd <= 1e-12 * float(np.abs(numbers).max()):
        sd = 1.0
    knots = _ranks(numbers) if ranked else {}
    return Scale(mean=float(numbers.mean()), sd=sd, median=float(np.median(numbers)), **knots)


def _ranks(numbers: FloatArray) -> dict[str, tuple[float, ...]]:
    """Return quantiles, the atoms and the values beside these, with their ranks."""
    values, counts = np.unique(numbers, return_counts=True)
    until = np.cumsum(counts) / counts.sum()
    evenly = np.searchsorted(until, np.linspace(0.0, 1.0, N_QUANTILES + 1) * (1 - 1e-12))
    atoms = np.flatnonzero(counts * N_QUANTILES > counts.sum())
    at = np.unique(np.concatenate([evenly, atoms - 1, atoms, atoms + 1]))
    at = at[(at >= 0) & (at < len(values))]
    ranks = until - counts / (2.0 * counts.sum())
    return {"values": tuple(values[at].tolist()), "ranks": tuple(ranks[at].tolist())}


def _scale_of_bounds(column: ColumnSchema, *, ranked: bool) -> Scale:
    """Scale of a uniform distribution between the declared bounds."""
    if column.bounds is None:
        raise ValueError(
            f"Without public values the numeric column {column.name!r} needs bounds in the schema."
        )
    low, high = column.bounds
    middle, knots = (low + high) / 2, {}
    if ranked:
        knots = {
            "values": tuple(np.linspace(low, high, N_QUANTILES + 1).tolist()),
            "ranks": tuple(np.linspace(0.0, 1.0, N_QUANTILES + 1).tolist()),
        }
    return Scale(mean=middle, sd=(high - low) / math.sqrt(12), median=middle, **knots)

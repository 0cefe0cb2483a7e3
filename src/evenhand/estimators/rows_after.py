"""Rows on which decisions are moved after training: checked before it, taken once it is over."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from evenhand import _checks
from evenhand._frames import as_pandas
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.parquet import ParquetRows
from evenhand.datasets.schema import ColumnSchema
from evenhand.estimators.blind_rule import read_public_rows
from evenhand.estimators.inputs import checked_features, frame_or_array, take
from evenhand.estimators.shared_rows import refuse_shared_rows, refuse_shared_stream
from evenhand.estimators.threshold_rows import check_rows
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.students.confident import MarginNotSupported
from evenhand.typing import Array, ArrayLike


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsAfter:
    """Public rows for thresholds by group or a blind rule, which training reads nothing of.

    Parameters
    ----------
    X : DataFrame or array-like, shape (n, n_columns)
    groups : array-like or DataFrame, n rows
    y : array-like, shape (n,), optional
        Their true classes.
    public_fraction : float, optional
        Share of these rows, which are then those of the private table, that training sets aside.
    """

    X: Any
    groups: Any
    y: ArrayLike | None = None
    public_fraction: float | None = None

    def check(
        self,
        X: Any,
        fairness: Any,
        classes: Array,
        *,
        X_public: Any = None,
        schema: Schema | None = None,
        blind: bool = False,
        counted: bool = False,
        private_groups: Any = None,
    ) -> None:
        """Refuse rows that decisions cannot be moved on, before anything is spent.

        ``X`` and ``X_public`` are what the model will be trained on, ``counted`` says that it
        counts scores by group, and ``private_groups`` are the groups of its rows, where known.

        Raises
        ------
        ValueError
            As ``with_group_thresholds`` and ``with_blind_rule`` raise it, and for groups of the
            private rows of which there would be no threshold.
        PrivateRowsAsPublic
        """
        groups = self.groups
        if self.y is not None:
            rows = _same_features(self.X, X if X_public is None else X_public, schema)
            if isinstance(X, ParquetRows):
                refuse_shared_stream(X, rows)
            else:
                refuse_shared_rows(as_pandas(X), rows)
        if groups is not None:
            groups = encode_groups(groups)
            _checks.same_length(X=self.X, sensitive_features=groups)
        with warnings.catch_warnings():
            if self.public_fraction is not None:  # of sizes that are private, and not the last word
                warnings.simplefilter("ignore", MarginNotSupported)
                groups = None if groups is None else _share_of(groups, self.public_fraction)
            if blind:
                nothing = np.zeros((0 if groups is None else len(groups), 1))
                read_public_rows(nothing, groups, self.y, fairness, classes)
                return
            private = () if private_groups is None else encode_groups(private_groups).names
            known = {"counted": private} if counted and self.y is None else {"private": private}
            check_rows(groups, fairness, self.y, classes, **known)

    def around(self, model: Any, fairness: Any, tightening: float) -> Any:
        """Return a fitted model with thresholds by group that are set on these rows."""
        X, groups = self._of(model)
        with self._told_before():
            return model.with_group_thresholds(
                X, groups, fairness=fairness, y_public=self.y, tightening=tightening
            )

    def blind_around(self, model: Any, fairness: Any) -> Any:
        """Return a fitted model with a blind rule that is set on these rows."""
        X, groups = self._of(model)
        with self._told_before():
            return model.with_blind_rule(X, groups, fairness=fairness, y_public=self.y)

    def _of(self, model: Any) -> tuple[Any, Any]:
        """Return the rows and their groups; of those that were set aside, by the names of all."""
        if self.public_fraction is None:
            return self.X, self.groups
        aside, groups = model.rows_set_aside_, encode_groups(self.groups)
        own = GroupCodes(codes=groups.codes[aside], names=groups.names)
        return take(frame_or_array(self.X), aside), own

    @contextmanager
    def _told_before(self) -> Iterator[None]:
        """Leave out what ``check`` has warned of already."""
        with warnings.catch_warnings():
            if self.public_fraction is None:
                said = ".* may not be able to say with"
                warnings.filterwarnings("ignore", said, category=MarginNotSupported)
            yield


class _Reader(BaseEstimator):  # type: ignore[misc]  # untyped base
    """Knows the columns of rows; what ``checked_features`` asks of a classifier."""

    _reads_pictures = True


def _same_features(rows: Any, like: Any, schema: Schema | None) -> Any:
    """Return rows that a model of rows like these can read, checked."""
    reader = _Reader()
    like = checked_features(reader, like, reset=True)
    rows = checked_features(reader, rows, reset=False, name="X_calibration")
    if hasattr(rows, "columns"):
        if schema is None:
            numbers = [c for c in TypedTable.of(like, "X").columns if c.kind == "numeric"]
            schema = Schema(
                columns=tuple(
                    ColumnSchema(name=c.name, kind="numeric", missing=True) for c in numbers
                )
            )
        schema.check(rows, where="calibration rows", ignore_extra=True)
    return rows


def _share_of(groups: GroupCodes, share: float) -> GroupCodes:
    """Return about as many records of each group as a share that is drawn will have."""
    step = max(1, round(1.0 / _checks.open_unit("public_fraction", share)))
    return GroupCodes(codes=np.sort(groups.codes)[::step], names=groups.names)

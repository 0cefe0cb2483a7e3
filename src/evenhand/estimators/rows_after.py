"""Public rows that are used after training: checked, before it where they are known by then."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator

from evenhand import _checks, _values
from evenhand._frames import as_pandas, refuse_other_order
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.parquet import ParquetRows
from evenhand.datasets.schema import ColumnSchema
from evenhand.estimators.given_rows import (
    checked_features,
    class_codes,
    frame_or_array,
    take,
)
from evenhand.estimators.shared_rows import refuse_shared_rows, refuse_shared_stream
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import require_notion
from evenhand.students.confident import MarginNotSupported, check_confidence
from evenhand.students.thresholds import within_of
from evenhand.students.within import SOURCES, Within
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

WAY_OUT: Final = (
    "Say how far apart the groups may be, for example fairness=DemographicParity(margin=0.05)."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRows:
    """Public rows that a rule is set on: encoded, with their groups and maybe their classes."""

    X: FloatArray
    groups: GroupCodes
    labels: IntArray | None

    @property
    def said(self) -> str:
        """What of them is public, for the claim."""
        what = "features and groups" if self.labels is None else "features, groups and labels"
        return f"the {what} of the {len(self.X)} public rows that set the blind rule"

    def within(self, fairness: RateNotion) -> Within:
        """Return the margin as it is read on these rows."""
        return Within(
            notion=fairness,
            groups=self.groups.codes,
            n_groups=self.groups.n_groups,
            labels=self.labels if fairness.needs_labels else None,
            source="calibration rows" if fairness.needs_labels else "public rows",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsAfter:
    """Public rows for thresholds by group or a blind rule, which training reads nothing of."""

    X: Any
    """Shape (n, n_columns)."""
    groups: Any
    """Of n rows."""
    y: ArrayLike | None = None
    """Their true classes. Shape (n,)."""
    public_fraction: float | None = None
    """Share of these rows, which are then those of the private table, that training sets aside."""

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
        refuse_other_order(X=self.X, y=self.y, sensitive_features=self.groups)
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


def require_two_classes(classes: Array) -> None:
    """Refuse thresholds by group of a model of more than two classes."""
    if len(classes) != 2:
        raise ValueError(
            f"Group thresholds are for two classes, and the model has {len(classes)}. Use a margin "
            f"in training instead: FairSharesClassifier, or DPSGDClassifier with fairness=."
        )


def check_rows(
    sensitive_features_public: Any,
    fairness: object,
    y_public: ArrayLike | None,
    classes: Array,
    *,
    counted: tuple[str, ...] = (),
    private: tuple[str, ...] = (),
) -> tuple[GroupCodes, IntArray | None]:
    """Check what is public of the rows that thresholds are set on; it needs no model yet.

    ``counted`` are groups of which scores are counted, which need no row; ``private`` are those of
    the private rows, where they are known.

    Returns
    -------
    GroupCodes, ndarray of int64 or None
        The groups of the rows, and the codes of their labels where there are any.

    Raises
    ------
    ValueError
        For more than two classes, fewer than two groups, groups that are missing, labels that the
        notion does not read or whose confidence misses them, too few rows for a confidence, and a
        group of which the labels have no record that a rate is taken among.
    """
    notion = require_notion(fairness, WAY_OUT)
    require_two_classes(classes)
    if sensitive_features_public is None:
        raise ValueError(
            "Thresholds by group are set on rows whose groups are known, and "
            "sensitive_features_public is missing. Pass the group of every public row."
        )
    groups = sensitive_features_public
    if not isinstance(groups, GroupCodes):  # else one group may have no row
        groups = encode_groups(groups, argument="sensitive_features_public")
    _require_groups({*groups.names, *counted}, private)
    labels = _labels(y_public, classes, notion)
    nothing = np.zeros(len(groups))  # labels say what the scores would
    if labels is not None:
        _checks.same_length(sensitive_features_public=groups, y_public=labels)
    within = within_of(notion, nothing, groups.codes, groups.n_groups, labels)
    if labels is not None:
        _require_records(within, groups.names, classes)
    if notion.confidence is not None:
        check_confidence(within, groups.names)
    return groups, labels


def _require_groups(known: set[str], private: tuple[str, ...]) -> None:
    """Refuse fewer than two groups, and private rows of a group that would have no threshold."""
    if len(known) < 2:
        raise ValueError(
            f"The rows that thresholds are set on hold one group only "
            f"({', '.join(map(repr, known))}): there is nothing to compare it with. Check the "
            f"sensitive column, or give rows of every group."
        )
    for name in private:
        if name not in known:
            raise ValueError(
                f"The private rows have the group {_values.quoted(name)}, and the rows that "
                f"thresholds are set on do not, so nobody of it could be decided on: they have "
                f"{', '.join(map(repr, sorted(known)))}."
                f"{_values.if_shown(_checks.did_you_mean(name, known))} Give public rows of it, "
                f"merge it with another group, or have scores counted by group "
                f"(score_counts=True), without calibration rows."
            )


def _labels(y_public: ArrayLike | None, classes: Array, fairness: RateNotion) -> IntArray | None:
    """Return the codes of the labels of public rows, where the notion and the rows have any."""
    if y_public is not None and not fairness.needs_labels:
        raise ValueError(
            f"y_public are true classes, and {type(fairness).__name__} is about decisions alone. "
            f"Leave it out, or take a notion about true classes: EqualizedOdds(margin=0.05)."
        )
    if y_public is None and fairness.needs_labels and fairness.confidence is not None:
        raise ValueError(
            f"confidence={fairness.confidence:g} of {type(fairness).__name__} needs true classes, "
            f"and y_public is missing. Give the labels of the public rows, or leave confidence out."
        )
    return None if y_public is None else class_codes(y_public, classes, "y_public")


def _require_records(within: Within, names: tuple[str, ...], classes: Array) -> None:
    """Refuse rows with labels of which a group has no record that a rate is taken among."""
    if said := ", ".join(within.unread_in_words(names, classes.tolist())):
        raise ValueError(
            f"{SOURCES[within.source].capitalize()} there is less than one record of {said}, and "
            f"{within.notion.title} compares a rate among these. Give more public rows, or merge "
            f"the group with another one."
        )


def read_public_rows(
    X: FloatArray,
    sensitive_features: Any,
    y: ArrayLike | None,
    fairness: RateNotion,
    classes: Array,
    *,
    name: str = "y_public",
) -> PublicRows:
    """Check public rows for a rule, and warn where so many cannot say that it holds on new ones.

    ``name`` is what the caller calls ``y``; their groups are ``sensitive_features`` with its end.
    """
    end = name.removeprefix("y")
    argument = f"sensitive_features{end}"
    notion = require_notion(fairness, WAY_OUT)
    rates_of(notion, len(classes))
    if X.ndim != 2:
        raise ValueError(
            f"The groups are inferred from rows of numbers, and this model reads pictures, of "
            f"shape {X.shape[1:]}. Train it on features of pictures "
            f"(evenhand.datasets.features.extract), or keep a margin in training."
        )
    if sensitive_features is None:
        raise ValueError(
            f"A blind rule is set on public rows whose groups are known, and {argument} is "
            f"missing. Pass the group of every public row; predictions then need none."
        )
    if notion.needs_labels and y is None:
        raise ValueError(
            f"{type(notion).__name__} is about records of a true class, and the classes of the "
            f"public rows are missing. Pass {name}, public labels of these rows, or take "
            f"DemographicParity, which needs none."
        )
    groups = encode_groups(sensitive_features, argument=argument)
    each: dict[str, Sized] = {f"X{end}": X, argument: groups}
    _checks.same_length(**each)
    if groups.n_groups < 2:
        raise ValueError(
            f"The public rows hold one group only, {_values.quoted(groups.names[0])}: there is "
            f"nothing to compare it with. Check the sensitive column."
        )
    if (groups.sizes >= 2).sum() < 2:  # one is held out, to choose how the groups are inferred
        sizes = zip(groups.names, groups.sizes.tolist(), strict=True)
        raise ValueError(
            f"A blind rule needs two groups with 2 public rows or more, got "
            f"{', '.join(f'{name!r} ({n})' for name, n in sizes)}. Give more public "
            f"rows: hundreds of each group say more than tens."
        )
    labels = None if y is None else class_codes(y, classes, name)
    if labels is not None:
        _checks.same_length(**{f"X{end}": X, name: labels})
    rows = PublicRows(X=X, groups=groups, labels=labels)
    if notion.confidence is not None:
        check_confidence(rows.within(notion), groups.names)
    return rows

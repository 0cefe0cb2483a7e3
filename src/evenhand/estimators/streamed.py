"""Fits whose private rows stream from Parquet files to their teachers: nothing holds the table."""

from __future__ import annotations

import copy
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.utils.multiclass import check_classification_targets

from evenhand import _values
from evenhand._arrow import pa, pc
from evenhand._frames import as_pandas
from evenhand._numerals import numeral
from evenhand._units import ids_of
from evenhand.datasets.encoder import PublicEncoder
from evenhand.datasets.parquet import ParquetRows, Piece, divided
from evenhand.estimators.callers import check_callers
from evenhand.estimators.given_rows import checked_features
from evenhand.estimators.inputs import FitArguments, FitInputs, Stream
from evenhand.estimators.reading import groups_of_public
from evenhand.teachers.bounded import BoundedParts, Rows, enough
from evenhand.teachers.ensemble import Teachers
from evenhand.teachers.partition import Partition, hashed
from evenhand.typing import Array, FloatArray, IntArray

VOTES_AT_ONCE: Final = 8_000_000
"""Single votes that are held at a time: they are counted row by row."""


def read_streamed_inputs(
    estimator: Any, given: FitArguments, *, needs_groups: bool, public_fraction: float | None
) -> FitInputs:
    """Check what can be checked without a pass over the rows, and read their labels.

    Raises
    ------
    TypeError, ValueError
        For arguments that a stream does not have, and columns that are not there.
    """
    assert isinstance(given.X, ParquetRows)
    check_callers(type(estimator).__name__, features_are_private=True)
    rows, name = given.X, type(estimator).__name__
    if not isinstance(given.y, str):
        raise TypeError(
            f"With X=ParquetRows(...) y is the name of the column of labels, got "
            f"{type(given.y).__name__}. For example {name}(...).fit(rows, 'income', X_public=...)."
        )
    if given.unit_ids is not None and not isinstance(given.unit_ids, str):
        raise TypeError(
            f"With X=ParquetRows(...) unit_ids is the name of a column, got "
            f"{type(given.unit_ids).__name__}."
        )
    if given.X_public is None or public_fraction is not None or estimator.public is not None:
        raise ValueError(
            "Of a stream no rows are set aside as public, and none are drawn. Leave "
            "public_fraction= and public= out, and pass X_public=: a table of public rows that "
            "fits into memory."
        )
    if given.sensitive_features is not None:
        raise TypeError(
            "Teachers of a stream read no groups of private rows. Leave sensitive_features out; "
            "those of the public rows are sensitive_features_public=."
        )
    public = checked_features(estimator, given.X_public, reset=True, name="X_public")
    if not isinstance(public, pd.DataFrame):
        raise TypeError(
            "With X=ParquetRows(...) the features are the columns of X_public, matched by name. "
            "Pass a DataFrame."
        )
    columns = tuple(map(str, public.columns))
    roles = [(given.y, "y"), *([] if given.unit_ids is None else [(given.unit_ids, "unit_ids")])]
    for column, role in roles:
        if column in columns:
            raise ValueError(
                f"{column!r} is the column of {role}, and X_public has it as a feature. Leave it "
                f"out of X_public."
            )
    rows.require([*roles, *((column, "X_public") for column in columns)])
    PublicEncoder(estimator.schema).fit(public).transform(rows.sample(columns, 2000))
    groups = given.sensitive_features_public
    nobody = np.zeros(0, dtype=np.int64)
    return FitInputs(
        X_private=None,
        y_private=nobody,
        X_public=public,
        classes=_classes(estimator, rows.classes(given.y)),
        groups_public=groups_of_public(
            public, None if groups is None else as_pandas(groups), needs_groups
        ),
        units=None,
        set_aside=0,
        private_rows=nobody,
        stream=Stream(rows=rows, label=given.y, unit=given.unit_ids, columns=columns),
    )


def _classes(estimator: Any, found: Array) -> Array:
    """Return the classes: those that were found, or the declared ones, which must cover them."""
    if len(found) < 2:
        raise ValueError(
            f"y holds one class only: {_values.listed(found)}; a classifier needs at least two."
        )
    check_classification_targets(np.repeat(found, 2))  # one of each looks like an amount
    if estimator.classes is None:
        return found
    known: Array = np.unique(np.asarray(estimator.classes))
    strange = [value for value in found if value not in known]
    if strange:
        raise ValueError(
            f"y holds {_values.listed(strange)}, which is not among classes={known.tolist()}."
        )
    return known


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """All that a worker needs to deal rows of a stream, and to train some of its teachers."""

    stream: Stream
    classes: Array
    encoder: PublicEncoder
    """Fitted on public rows."""
    partition: Partition
    """Its key and number of teachers; it lists no record."""
    teachers: Teachers
    rng: np.random.Generator = field(repr=False)
    """Of the teachers; each worker takes a copy, so that teacher ``t`` draws the same anywhere."""
    asked: FloatArray = field(repr=False)
    """Encoded public rows. Shape (n_queries, n_features)."""

    def votes(self, progress: Callable[[int, int], None] | None = None) -> IntArray:
        """Train all teachers, and count their votes: shape (n_queries, n_classes). Private."""
        rows = self.stream.rows
        if rows.scratch is None:
            return self.cast(self.deal(rows.pieces, progress), range(self.partition.n_teachers))
        folder = Path(rows.scratch).absolute() / f"evenhand-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        try:
            return self._votes_by_tasks(folder, progress)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _votes_by_tasks(
        self, folder: Path, progress: Callable[[int, int], None] | None
    ) -> IntArray:
        """Let workers deal the rows to files, and others train the teachers from them."""
        n_teachers, tasks = self.partition.n_teachers, self.stream.rows.tasks
        reading = self.stream.rows.stretches
        ranges = [own for own in divided(range(n_teachers), tasks) if own]
        dealt = (delayed(_deal)(self, i, some, ranges, folder) for i, some in enumerate(reading))
        for _ in Parallel(return_as="generator_unordered")(dealt):
            pass
        counts = np.zeros((len(self.asked), len(self.classes)), dtype=np.int64)
        done = 0
        taught = (
            delayed(_teach)(self, j, own, len(reading), folder) for j, own in enumerate(ranges)
        )
        for n, some in Parallel(return_as="generator_unordered")(taught):
            counts += some
            done += n
            if progress is not None:
                progress(done, n_teachers)
        return counts

    def deal(
        self, pieces: Sequence[Piece], progress: Callable[[int, int], None] | None = None
    ) -> Rows:
        """Read some row groups once, and keep of every teacher's rows at most so many."""
        stream = self.stream
        parts = self.parts(sum(piece.n_rows for piece in pieces))
        named = [stream.label, *stream.columns, *([] if stream.unit is None else [stream.unit])]
        for done, piece in enumerate(pieces):
            for start, batch in stream.rows.batches(named, [piece]):
                self._add(parts, start, batch)
            if progress is not None:
                progress(done + 1, len(pieces))
        return parts.rows()

    def parts(self, n_rows: int) -> BoundedParts:
        """Return empty parts of the teachers, for so many rows at the most."""
        n_teachers, most = self.partition.n_teachers, self.stream.rows.rows_per_teacher
        open_number = self.partition.neighbors == "replace one"  # else that of rows is private
        return BoundedParts(
            n_teachers,
            most,
            n_features=self.asked.shape[1],
            n_rows=n_rows,
            below=enough(len(self.stream.rows), n_teachers, most) if open_number else 1.0,
        )

    def _add(self, parts: BoundedParts, start: int, batch: pa.Table) -> None:
        """Take the rows of a batch that may be kept; the others are not even encoded."""
        stream, key = self.stream, self.partition.key
        assert key is not None
        place = np.arange(start, start + batch.num_rows)
        names: Sequence[str] = list(map(str, place.tolist()))
        at = np.arange(batch.num_rows)
        if stream.unit is not None:
            names, at = _ids(batch[stream.unit], stream.unit, start)
        hashes = hashed(names, key)
        teacher = hashes.modulo(self.partition.n_teachers)[at]
        priority = hashes.high[at]
        wanted = np.flatnonzero(parts.wanted(teacher, priority))
        some = batch.take(pa.array(wanted))
        frame = as_pandas(some.select(list(stream.columns)))
        labels = np.asarray(as_pandas(some[stream.label]))
        parts.add(
            Rows(
                X=self.encoder.transform(frame),
                y=np.searchsorted(self.classes, labels.astype(self.classes.dtype)),
                teacher=teacher[wanted],
                priority=priority[wanted],
                place=place[wanted],
            )
        )

    def cast(self, rows: Rows, own: Sequence[int]) -> IntArray:
        """Train the teachers ``own`` on their rows, and count their votes by query and class.

        A teacher is a function of its own rows and of ``(rng, t)``: it is the same, bit for bit,
        whichever others are trained beside it.
        """
        partition = Partition(
            teacher=rows.teacher,
            n_teachers=self.partition.n_teachers,
            unit=self.partition.unit,
            neighbors=self.partition.neighbors,
        )
        n_classes = len(self.classes)
        ensemble = self.teachers.fit(rows.X, rows.y, partition, n_classes, copy.deepcopy(self.rng))
        counts = np.zeros((len(self.asked), n_classes), dtype=np.int64)
        step = max(1, VOTES_AT_ONCE // self.partition.n_teachers)
        for start in range(0, len(self.asked), step):
            said = ensemble.vote(self.asked[start : start + step])[own[0] : own[-1] + 1]
            for k in range(n_classes):
                counts[start : start + step, k] = (said == k).sum(axis=0)
        return counts


def require_streamable(teachers: Any) -> None:
    """Refuse teachers that read more than rows and labels.

    Raises
    ------
    ValueError
        With the way out.
    """
    reads_groups = getattr(teachers, "reads_groups", False)
    if reads_groups or not getattr(teachers, "reads_rows", True):
        raise ValueError(
            f"{type(teachers).__name__} reads {'groups' if reads_groups else 'no rows'}, and a "
            f"stream gives teachers their rows and labels alone. Use LogisticTeachers, MLPTeachers "
            f"or SklearnTeachers, or read the rows into memory."
        )


def _ids(column: Any, name: str, start: int) -> tuple[Sequence[str], IntArray]:
    """Return the different ids of a batch as texts, and which of them each row has.

    Raises
    ------
    ValueError
        For rows without an id.
    """
    coded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    at = coded.indices.to_numpy(zero_copy_only=False)
    values = coded.dictionary
    gone = np.isnan(at) if at.dtype.kind == "f" else np.zeros(len(at), dtype=np.bool_)
    at = np.where(gone, 0, at).astype(np.int64)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = [numeral(text) for text in values.to_pylist()]
        gone |= np.array([text == "" for text in texts], dtype=np.bool_)[at] if texts else True
    elif pa.types.is_integer(values.type):
        texts = list(map(str, values.to_pylist()))
    else:
        texts = list(ids_of(np.array(values.to_pylist(), dtype=object)))
    if gone.any():
        raise ValueError(
            f"unit_ids must name a unit for every record, and {name!r} is empty in "
            f"{_values.rows(start + np.flatnonzero(gone))}. Drop these records, or give each an id "
            f"of its own."
        )
    return texts, at


def _deal(
    lesson: Lesson, i: int, pieces: Sequence[Piece], ranges: Sequence[range], folder: Path
) -> None:
    """Deal some row groups to one file for each range of teachers; again, if it was cut off."""
    rows = lesson.deal(pieces)
    for j, own in enumerate(ranges):
        some = rows.of((rows.teacher >= own[0]) & (rows.teacher <= own[-1]))
        # Whole or not at all: a task that lost its machine is run once more by another.
        path = folder / f"{i}-{j}.npz"
        unfinished = folder / f"{i}-{j}-{secrets.token_hex(4)}.part"
        with unfinished.open("wb") as file:
            np.savez(file, *some.columns)
        os.replace(unfinished, path)


def _teach(lesson: Lesson, j: int, own: range, n_files: int, folder: Path) -> tuple[int, IntArray]:
    """Train a range of teachers from what was dealt to them, and return their votes alone."""
    files = [folder / f"{i}-{j}.npz" for i in range(n_files)]
    found = []
    for file in files:
        with np.load(file, allow_pickle=False) as arrays:
            X, y, teacher, priority, place = (arrays[name] for name in arrays.files)
        found.append(Rows(X=X, y=y, teacher=teacher, priority=priority, place=place))
    parts = lesson.parts(sum(map(len, found)))
    while found:
        parts.add(found.pop(0))
    return len(own), lesson.cast(parts.rows(), own)

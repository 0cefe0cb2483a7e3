"""Bounded parts of a stream: the smallest hashes of every teacher, whatever comes first."""

import numpy as np
import pytest

from evenhand.teachers.bounded import BoundedParts, Rows, enough


def stream(n: int, n_teachers: int, seed: int, *, units: int | None = None) -> Rows:
    """Rows whose units share teacher and hash; each a unit of its own by default."""
    rng = np.random.default_rng(seed)
    unit = np.arange(n) if units is None else rng.integers(units, size=n)
    high = int(unit.max()) + 1
    return Rows(
        X=rng.integers(5, size=(n, 3)).astype(float) + rng.normal(size=(n, 3)).round(1),
        y=rng.integers(2, size=n),
        teacher=rng.integers(n_teachers, size=high)[unit],
        priority=rng.integers(2**62, size=high)[unit].astype(np.uint64),
        place=np.arange(n),
    )


def kept(rows: Rows, most: int, n_teachers: int, step: int) -> Rows:
    """What stays of a stream that comes in batches of ``step`` rows."""
    parts = BoundedParts(n_teachers, most, n_features=3, n_rows=len(rows))
    for start in range(0, len(rows), step):
        batch = rows.of(slice(start, start + step))
        parts.add(batch.of(parts.wanted(batch.teacher, batch.priority)))
    return parts.rows()


@pytest.mark.parametrize("step", [1, 37, 5000])
def test_the_smallest_hashes_of_each_teacher_stay_in_the_order_of_the_stream(step: int) -> None:
    rows = stream(6000, 7, 0)
    found = kept(rows, 40, 7, step)
    assert (np.diff(found.place) > 0).all()
    for t in range(7):
        own = np.flatnonzero(rows.teacher == t)
        smallest = np.sort(own[np.argsort(rows.priority[own])[:40]])
        assert found.place[found.teacher == t].tolist() == smallest.tolist()
        assert (found.X[found.teacher == t] == rows.X[smallest]).all()
        assert (found.y[found.teacher == t] == rows.y[smallest]).all()


def test_all_rows_stay_where_there_is_room() -> None:
    rows = stream(500, 3, 1)
    for one, other in zip(kept(rows, 500, 3, 64).columns, rows.columns, strict=True):
        assert (one == other).all()


def in_order(rows: Rows) -> list[list[float]]:
    """Rows without their places, sorted."""
    return sorted(np.column_stack([rows.teacher, rows.X, rows.y]).tolist())


@pytest.mark.parametrize("units", [None, 60])
def test_another_order_of_the_rows_keeps_the_same_rows(units: int | None) -> None:
    """Units of 100 rows, of which half must go: which half does not depend on what came first."""
    rows = stream(6000, 7, 2, units=units)
    shuffled = rows.of(np.random.default_rng(3).permutation(len(rows)))
    again = Rows(
        X=shuffled.X,
        y=shuffled.y,
        teacher=shuffled.teacher,
        priority=shuffled.priority,
        place=np.arange(6000),
    )
    assert in_order(kept(rows, 50, 7, 41)) == in_order(kept(again, 50, 7, 97))


@pytest.mark.parametrize("units", [None, 60])
def test_without_one_unit_all_other_teachers_keep_their_rows(units: int | None) -> None:
    rows = stream(6000, 7, 4, units=units)
    gone = rows.priority == rows.priority[0]
    rest = rows.of(~gone)
    before, after = kept(rows, 50, 7, 41), kept(rest, 50, 7, 41)
    moved = rows.teacher[0]
    others = [found.of(found.teacher != moved) for found in (before, after)]
    assert len(others[0]) == len(others[1]) > 100
    assert (others[0].X == others[1].X).all()


def test_memory_does_not_grow_with_the_stream() -> None:
    parts = BoundedParts(10, 100, n_features=3, n_rows=10**9)
    assert len(parts._held) < 2 * 10 * 100 + 1024


def test_of_a_known_number_of_rows_most_need_not_be_looked_at() -> None:
    """Fewer than ``most`` below the limit: 6 standard deviations, so once in 1e9 teachers."""
    n, n_teachers, most = 200_000, 10, 100
    rng = np.random.default_rng(5)
    rows = Rows(
        X=rng.normal(size=(n, 1)),
        y=np.zeros(n, dtype=np.int64),
        teacher=rng.integers(n_teachers, size=n),
        priority=rng.integers(2**64 - 1, size=n, dtype=np.uint64),
        place=np.arange(n),
    )
    found = []
    for below in (1.0, enough(n, n_teachers, most)):
        parts = BoundedParts(n_teachers, most, n_features=1, n_rows=n, below=below)
        looked_at = int(parts.wanted(rows.teacher, rows.priority).sum())
        parts.add(rows.of(parts.wanted(rows.teacher, rows.priority)))
        found.append(parts.rows().place.tolist())
    assert looked_at < 3 * n_teachers * most
    assert found[0] == found[1]
    assert len(found[0]) == n_teachers * most

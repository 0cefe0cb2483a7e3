"""Strata: which teacher a picture goes to, and how far one neighbor moves the sum of teachers."""

import itertools

import numpy as np
import pytest

from evenhand.baselines.pfguard import by_group, most_moved
from evenhand.generators.teacher_sums import GradientSum, SeveralTeachers
from evenhand.teachers.partition import Partition
from evenhand.typing import IntArray

N_GROUPS, TEACHERS, KINDS = 2, 4, 2
Record = tuple[int, int]  # its group, and what is on it
RECORDS: list[Record] = list(itertools.product(range(N_GROUPS), range(KINDS)))


def deal(records: tuple[Record, ...], units: IntArray | None = None) -> Partition:
    groups = np.array([group for group, _ in records], dtype=np.int64)
    return by_group(groups, N_GROUPS, TEACHERS, units=units, rng=np.random.default_rng(0))


def held(records: tuple[Record, ...]) -> list[list[tuple[int, Record]]]:
    """What every teacher holds: positions and records."""
    return [[(int(i), records[i]) for i in rows] for rows in deal(records).all_rows]


def said(records: tuple[Record, ...]) -> IntArray:
    """Sum of teachers that turn round completely whenever anything of theirs changes."""
    signs = [1.0 if sum(1 + kind for _, (_, kind) in mine) % 2 else -1.0 for mine in held(records)]
    return GradientSum(clip_norm=1.0).total(np.array(signs)[:, None])


def test_no_neighbor_moves_more_teachers_or_moves_the_sum_further_than_declared() -> None:
    # Brute force: all sets of 4 records, and every replacement of every record in them.
    every = list(itertools.product(RECORDS, repeat=4))
    holding = {records: held(records) for records in every}
    sums = {records: said(records) for records in every}
    teachers_moved, distances = {True: set[int](), False: set[int]()}, {True: [0.0], False: [0.0]}
    for records in every:
        for i, other in itertools.product(range(4), RECORDS):
            if other == records[i]:
                continue
            after = (*records[:i], other, *records[i + 1 :])
            pairs = zip(holding[records], holding[after], strict=True)
            moved = sum(a != b for a, b in pairs)
            same = other[0] == records[i][0]
            teachers_moved[same].add(moved)
            distances[same].append(float(np.abs(sums[after] - sums[records]).max()))
    assert teachers_moved == {True: {1}, False: {2}}
    assert most_moved("replace one", N_GROUPS) == 2
    of_one = GradientSum(clip_norm=1.0)
    declared = SeveralTeachers(of_one=of_one, n_moved=2).l2_sensitivity("replace one")
    assert max(distances[False]) <= declared
    assert max(distances[False]) == pytest.approx(declared, rel=1e-5)  # no less would do
    assert max(distances[True]) <= of_one.l2_sensitivity("replace one")


def test_a_picture_stays_with_its_teacher_whatever_the_groups_of_others_are() -> None:
    base = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 0))
    for groups in itertools.product((0, 1), repeat=4):
        others = tuple((g, kind) for g, (_, kind) in zip(groups, base[1:], strict=True))
        assert deal((base[0], *others)).teacher[0] == deal(base).teacher[0]
    assert (deal(base).teacher % 2).tolist() == [0, 1, 0, 1, 0]
    assert set(deal(tuple((0, 0) for _ in range(8))).teacher.tolist()) == {0, 2}


def test_pictures_of_a_unit_sit_with_one_teacher_for_each_of_its_groups() -> None:
    # A unit of r pictures is in at most r groups: so many teachers come and go with it.
    units = np.repeat(np.arange(6), 3)
    groups = np.arange(18) % 3
    dealt = by_group(groups, 3, 12, units=units, rng=np.random.default_rng(0))
    for unit in range(6):
        mine = dealt.teacher[units == unit]
        assert len(set(mine.tolist())) == 3 == most_moved("add or remove one", 3, per_unit=3)
        assert len(set((mine // 3).tolist())) == 1
    assert most_moved("add or remove one", 3, per_unit=2) == 2
    assert most_moved("add or remove one", 3, per_unit=9) == 3
    assert most_moved("replace one", 1) == 1


@pytest.mark.parametrize("n_teachers", [5, 7])
def test_groups_have_as_many_teachers_or_the_fit_is_refused(n_teachers: int) -> None:
    way = f"Use {n_teachers - 1} or {n_teachers + 1}"
    with pytest.raises(ValueError, match=rf"multiple of 2, got n_teachers={n_teachers}. {way}"):
        by_group(np.zeros(20, dtype=np.int64), 2, n_teachers, rng=np.random.default_rng(0))

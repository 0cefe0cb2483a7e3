"""Resampling, training and voting under a margin, each within one partition: whom it reads."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier

from evenhand.fairness import DemographicParity
from evenhand.fairness.notions import exact_gap
from evenhand.teachers import (
    KeepWithin,
    LogisticTeachers,
    MLPTeachers,
    ParityTeachers,
    ResampledTeachers,
    SklearnTeachers,
    Undersample,
    by_position,
)
from evenhand.teachers.partition import Partition
from evenhand.testing.teachers import TeachersContract, TrainedTeachersContract
from evenhand.typing import FloatArray, IntArray

MARGIN = DemographicParity(margin=0.1)
N, N_TEACHERS = 400, 8


class GroupInColumn(BaseEstimator):
    """Take the group of each record from its second column: so it is replaced with the record."""

    def __init__(self, teachers: Any) -> None:
        self.teachers = teachers

    def fit(self, X: Any, y: Any, partition: Any, n_classes: int, rng: Any, progress: Any = None):
        groups = (np.asarray(X)[:, 1] > 0).astype(np.int64)
        return self.teachers.fit(
            X, y, partition, n_classes, rng, progress, groups=groups, n_groups=2
        )


class TestUndersampledTeachers(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> Any:
        return ResampledTeachers(Undersample())


class TestUndersampledTreesOfThreeClasses(TrainedTeachersContract):
    def teachers(self) -> Any:
        trees = SklearnTeachers(DecisionTreeClassifier(max_features=3, splitter="random"))
        return ResampledTeachers(Undersample(), trees)


class TestTeachersOfBalancedCells(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> Any:
        return GroupInColumn(ResampledTeachers(Undersample(balance="cells")))


class TestTeachersOfRecordsWithinTheMargin(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> Any:
        return GroupInColumn(ResampledTeachers(KeepWithin(fairness=MARGIN)))


class TestTeachersOfRecordsWithinTheMarginOfThreeClasses(TeachersContract):
    def teachers(self) -> Any:
        return GroupInColumn(ResampledTeachers(KeepWithin(fairness=MARGIN)))


class TestParityTeachers(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> Any:
        return GroupInColumn(ParityTeachers(MARGIN))


class TestParityTeachersOfThreeClasses(TrainedTeachersContract):
    def teachers(self) -> Any:
        return GroupInColumn(ParityTeachers(MARGIN, C=1.0))


class TestParityTeachersOfBalancedClasses(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> Any:
        return GroupInColumn(ResampledTeachers(Undersample(), ParityTeachers(MARGIN)))


class Recording(LogisticTeachers):
    """Logistic teachers that leave what each was given where a test can see it."""

    def fit(self, X: Any, y: Any, partition: Any, *rest: Any, **more: Any) -> Any:
        self.seen_ = [(X[rows].copy(), y[rows].copy()) for rows in partition.all_rows]
        self.fitted_ = super().fit(X, y, partition, *rest, **more)
        return self.fitted_


def private(seed: int = 0) -> tuple[FloatArray, IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    groups = (rng.random(N) < 0.35).astype(np.int64)
    X = rng.normal(size=(N, 3))
    X[:, 0] -= groups
    return X, (X[:, 0] + rng.normal(size=N) / 2 > 0.4).astype(np.int64), groups


def given_to(resample: Any, X: Any, y: Any, groups: Any, deal: Partition) -> tuple[Any, Any]:
    """What each teacher learns from, and the models."""
    inner = Recording()
    teachers = ResampledTeachers(resample, inner)
    teachers.fit(X, y, deal, 2, np.random.default_rng(3), groups=groups, n_groups=2)
    return inner.seen_, inner.fitted_.model


@pytest.mark.parametrize(
    "resample",
    [Undersample(), Undersample(balance="cells"), KeepWithin(fairness=MARGIN)],
    ids=["classes", "cells", "margin"],
)
def test_one_record_changes_one_training_set_and_one_model(resample: Any) -> None:
    # The privacy of partitions: everything of every other teacher is the same, bit for bit.
    X, y, groups = private()
    deal = by_position(N, N_TEACHERS, 0)
    before, models = given_to(resample, X, y, groups, deal)
    moved = set()
    for row in range(0, N, 29):
        X_other, y_other, z_other = X.copy(), y.copy(), groups.copy()
        X_other[row], y_other[row], z_other[row] = -5.0, 1 - y[row], 1 - groups[row]
        after, models_after = given_to(resample, X_other, y_other, z_other, deal)
        for t in range(N_TEACHERS):
            if t == deal.teacher[row]:
                moved.add(t)
                continue
            assert np.array_equal(before[t][0], after[t][0])
            assert np.array_equal(before[t][1], after[t][1])
            assert np.array_equal(models.coef[t], models_after.coef[t])
            assert np.array_equal(models.intercept[t], models_after.intercept[t])
    assert len(moved) > 3


def test_a_rule_is_shown_one_partition_and_never_the_table() -> None:
    # So shares of the whole table cannot be used: there is no way to hand them over.
    seen: list[tuple[IntArray, IntArray]] = []

    class Watching(Undersample):
        def keep(self, labels: IntArray, groups: IntArray, rng: Any, **sizes: Any) -> IntArray:
            seen.append((labels.copy(), groups.copy()))
            assert sizes == {"n_classes": 2, "n_groups": 2}
            return super().keep(labels, groups, rng, **sizes)

    X, y, groups = private()
    deal = by_position(N, N_TEACHERS, 0)
    given_to(Watching(), X, y, groups, deal)
    assert len(seen) == N_TEACHERS
    for t, (labels, own_groups) in enumerate(seen):
        assert np.array_equal(labels, y[deal.rows(t)])
        assert np.array_equal(own_groups, groups[deal.rows(t)])


@given(
    labels=st.lists(st.integers(0, 2), max_size=30),
    data=st.data(),
    balance=st.sampled_from(["classes", "cells"]),
)
def test_undersampling_keeps_as_many_of_each_as_there_are_of_the_rarest(
    labels: list[int], data: st.DataObject, balance: str
) -> None:
    y = np.array(labels, dtype=np.int64)
    z = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(y), max_size=len(y))), int)
    rule = Undersample(balance=balance)
    kept = rule.keep(y, z, np.random.default_rng(0), n_classes=3, n_groups=2)
    cell = y if balance == "classes" else z * 3 + y
    rarest = min(np.unique(cell, return_counts=True)[1], default=0)
    assert np.unique(cell[kept], return_counts=True)[1].tolist() == [rarest] * len(np.unique(cell))
    assert kept.tolist() == sorted(set(kept.tolist()))


def test_which_records_of_the_larger_class_are_kept_is_uniform() -> None:
    # Probability over seeds that right code fails: below 1e-6, by a chi-squared bound of 9 degrees.
    y = np.array([0] * 10 + [1] * 3)
    z = np.zeros(13, dtype=np.int64)
    seeds = np.random.default_rng(1).spawn(3000)
    kept = [Undersample().keep(y, z, rng, n_classes=2, n_groups=1) for rng in seeds]
    times = np.bincount(np.concatenate(kept), minlength=13)
    assert times[10:].tolist() == [3000] * 3
    # Without replacement the statistic is smaller than chi-squared; its 1 - 1e-6 quantile is 46.
    assert ((times[:10] - 900) ** 2 / 900).sum() < 46
    first = np.bincount(np.arange(9000) % 9, minlength=10)  # a build that never keeps the last
    assert ((first - 900) ** 2 / 900).sum() > 46


@given(data=st.data(), margin=st.sampled_from([0.0, 0.05, 0.1, 0.3]))
def test_the_kept_records_of_a_partition_are_within_the_margin(
    data: st.DataObject, margin: float
) -> None:
    reference = data.draw(st.sampled_from(["rest", "pairwise", "overall"]))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=40))
    z = np.array([a for a, _ in rows], dtype=np.int64)
    y = np.array([b for _, b in rows], dtype=np.int64)
    rule = KeepWithin(fairness=DemographicParity(margin=margin, reference=reference))
    kept = rule.keep(y, z, np.random.default_rng(0), n_classes=3, n_groups=3)
    counts = np.zeros((3, 3), dtype=int)
    np.add.at(counts, (z[kept], y[kept]), 1)
    assert exact_gap(counts.tolist(), reference) <= Fraction(str(margin))
    assert len(kept) > 0 or not rows


def test_a_partition_within_the_margin_loses_nothing_it_need_not() -> None:
    # Both groups alternate between the classes: all records fit.
    z = np.tile([0, 1], 40)
    y = np.tile([0, 0, 1, 1], 20)
    kept = KeepWithin(fairness=MARGIN).keep(y, z, np.random.default_rng(0), n_classes=2, n_groups=2)
    assert len(kept) >= 76


def test_parity_teachers_keep_the_margin_on_their_own_records_where_they_can() -> None:
    X, y, groups = private()
    deal = by_position(N, N_TEACHERS, 0)

    def gaps(fairness: DemographicParity) -> list[float]:
        ensemble = ParityTeachers(fairness, C=0.1).fit(
            X, y, deal, 2, np.random.default_rng(0), groups=groups, n_groups=2
        )
        votes = ensemble.vote(X)
        out = []
        for t in range(N_TEACHERS):
            own = deal.rows(t)
            counts = np.zeros((2, 2), dtype=int)
            np.add.at(counts, (groups[own], votes[t, own]), 1)
            out.append(fairness.gap(counts))
        return out

    free = max(gaps(DemographicParity(margin=1.0)))
    margin = round(free / 2, 3)  # so that it binds
    assert 0 < max(gaps(DemographicParity(margin=margin))) <= margin


def test_a_wide_margin_leaves_logistic_teachers_bit_for_bit() -> None:
    X, y, groups = private()
    deal = by_position(N, N_TEACHERS, 0)
    wide = ParityTeachers(DemographicParity(margin=1.0)).fit(
        X, y, deal, 2, np.random.default_rng(0), groups=groups, n_groups=2
    )
    plain = LogisticTeachers().fit(X, y, deal, 2, np.random.default_rng(0))
    assert np.array_equal(wide.scores(X), plain.scores(X))


def test_the_votes_need_no_group() -> None:
    X, y, groups = private()
    ensemble = ParityTeachers(MARGIN).fit(
        X, y, by_position(N, 4, 0), 2, np.random.default_rng(0), groups=groups, n_groups=2
    )
    assert np.array_equal(ensemble.vote(X[:50]), (ensemble.scores(X[:50]) > 0).astype(int))


@pytest.mark.parametrize(
    "teachers",
    [
        ResampledTeachers(Undersample(balance="cells")),
        ResampledTeachers(KeepWithin(fairness=MARGIN)),
        ResampledTeachers(Undersample(), ParityTeachers(MARGIN)),
        ParityTeachers(MARGIN),
    ],
    ids=["cells", "margin", "nested", "parity"],
)
def test_missing_groups_are_asked_for(teachers: Any) -> None:
    X, y, _ = private()
    assert teachers.reads_groups
    with pytest.raises(
        ValueError, match=r"reads the group of every private record, and groups= is"
    ):
        teachers.fit(X, y, by_position(N, 4, 0), 2, np.random.default_rng(0))


def test_groups_are_checked() -> None:
    X, y, groups = private()
    deal, rng = by_position(N, 4, 0), np.random.default_rng(0)
    with pytest.raises(ValueError, match="groups must have one code for each of 400 rows, got 399"):
        ParityTeachers(MARGIN).fit(X, y, deal, 2, rng, groups=groups[1:], n_groups=2)
    with pytest.raises(ValueError, match="groups must be at least 0 and below 1"):
        ParityTeachers(MARGIN).fit(X, y, deal, 2, rng, groups=groups)


def test_undersampling_by_classes_needs_no_groups() -> None:
    assert not ResampledTeachers(Undersample()).reads_groups


def test_an_unknown_balance_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"balance must be one of .*Did you mean 'classes'"):
        Undersample(balance="class")


def test_scores_rank_as_votes_decide() -> None:
    X, y, _ = private()
    deal = by_position(N, 5, 0)
    trees = SklearnTeachers(DecisionTreeClassifier())
    for teachers in (LogisticTeachers(), SklearnTeachers(), trees):
        ensemble = teachers.fit(X, y, deal, 2, np.random.default_rng(0))
        assert np.array_equal(ensemble.scores(X) > 0, ensemble.vote(X) == 1)
    y[deal.rows(2)] = 1
    for teachers in (LogisticTeachers(), SklearnTeachers()):
        assert np.all(teachers.fit(X, y, deal, 2, np.random.default_rng(0)).scores(X)[2] > 0)


def test_teachers_without_scores_say_so() -> None:
    from sklearn.linear_model import RidgeClassifier

    X, y, _ = private()
    deal, rng = by_position(N, 4, 0), np.random.default_rng(0)
    with pytest.raises(ValueError, match="RidgeClassifier gives votes and no scores"):
        SklearnTeachers(RidgeClassifier()).fit(X, y, deal, 2, rng).scores(X)
    y[::7] = 2
    with pytest.raises(ValueError, match="for two classes only; these teachers have 3"):
        SklearnTeachers().fit(X, y, deal, 3, rng).scores(X)
    with pytest.raises(ValueError, match="for two classes only; these models have 3"):
        LogisticTeachers().fit(X, y, deal, 3, rng).scores(X)


@pytest.mark.torch
def test_networks_have_no_scores_here() -> None:
    pytest.importorskip("torch", reason="needs the extra torch")
    X, y, _ = private()
    networks = MLPTeachers(hidden=(4,), epochs=1)
    ensemble = networks.fit(X, y, by_position(N, 4, 0), 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="gives votes and no scores"):
        ensemble.scores(X)

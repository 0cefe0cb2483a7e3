"""Every kind of teachers meets the published contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand.learners.nets.architectures import Dense
from evenhand.teachers import LogisticTeachers, MLPTeachers, OutsideVotes, SklearnTeachers
from evenhand.teachers.stacked import NetworkTeachers
from evenhand.testing.teachers import (
    N_QUERIES,
    N_TEACHERS,
    TeachersContract,
    TrainedTeachersContract,
)


class TestLogisticTeachers(TrainedTeachersContract):
    def teachers(self) -> LogisticTeachers:
        return LogisticTeachers()


class TestLogisticTeachersOfTwoClasses(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> LogisticTeachers:
        return LogisticTeachers(C=1.0)


@pytest.mark.torch
class TestMLPTeachers(TrainedTeachersContract):
    def teachers(self) -> MLPTeachers:
        pytest.importorskip("torch", reason="needs the extra torch")
        return MLPTeachers(hidden=(16,), epochs=5, batch_size=8, learning_rate=0.02)


@pytest.mark.torch
class TestDeepMLPTeachersOfTwoClasses(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> MLPTeachers:
        pytest.importorskip("torch", reason="needs the extra torch")
        return MLPTeachers(hidden=(9, 7), epochs=6, batch_size=10, learning_rate=0.02)


@pytest.mark.torch
class TestNetworkTeachers(TrainedTeachersContract):
    def teachers(self) -> NetworkTeachers:
        pytest.importorskip("torch", reason="needs the extra torch")
        return NetworkTeachers(Dense(hidden=(16,)), epochs=5, batch_size=8, learning_rate=0.02)


class TestRandomisedTrees(TrainedTeachersContract):
    def teachers(self) -> SklearnTeachers:
        return SklearnTeachers(DecisionTreeClassifier(max_features=3, splitter="random"))


class TestPipelines(TrainedTeachersContract):
    def teachers(self) -> SklearnTeachers:
        return SklearnTeachers(make_pipeline(StandardScaler(), KNeighborsClassifier(3)))


class TestSklearnDefault(TrainedTeachersContract):
    n_classes = 2

    def teachers(self) -> SklearnTeachers:
        return SklearnTeachers()


class TestOutsideVotes(TeachersContract):
    def teachers(self) -> OutsideVotes:
        rng = np.random.default_rng(0)
        return OutsideVotes(rng.integers(self.n_classes, size=(N_TEACHERS, N_QUERIES)))


class OfAllRecords(LogisticTeachers):
    """Centres all rows by their mean: one record moves every teacher."""

    def fit(self, X: Any, y: Any, *others: Any, **more: Any) -> Any:
        return super().fit(X - np.mean(X, axis=0), y, *others, **more)


class Deaf(LogisticTeachers):
    """Votes for class 0, whatever its records are: nothing can leak, and nothing is learnt."""

    def fit(self, X: Any, y: Any, *others: Any, **more: Any) -> Any:
        return super().fit(X, np.zeros_like(y), *others, **more)


BROKEN = {
    OfAllRecords: "replacing_one_record_moves_the_votes_of_its_teacher_only",
    Deaf: "teachers_learn",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_teachers_fail_the_contract(broken: Any) -> None:
    class Contract(TrainedTeachersContract):
        def teachers(self) -> Any:
            return broken()

    with pytest.raises(AssertionError):
        getattr(Contract(), f"test_{BROKEN[broken]}")()

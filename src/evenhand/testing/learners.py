"""What every learner of many models must keep: subclass the contract and name your own.

Models are compared bit for bit: that one private record moves one vote holds for the program that
runs, not only for the formula behind it.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from evenhand.learners.learner import FittedModels, Learner
from evenhand.typing import FloatArray, IntArray

N_MODELS: Final = 5
N_RECORDS: Final = 300
N_FEATURES: Final = 4


@pytest.mark.parametrize("n_classes", [2, 3])
class LearnerContract:
    """What holds of the protocol ``Learner``; subclass it and write :meth:`learner`."""

    def learner(self) -> Learner:
        """Return a new learner."""
        raise NotImplementedError("Return the learner to check, for example StackedLogistic().")

    def fit(
        self, X: FloatArray, y: IntArray, rows: list[IntArray], n_classes: int, seed: int = 0
    ) -> FittedModels:
        """Fit new models with the given seed."""
        rng = np.random.default_rng(seed)
        return self.learner().fit(X, y, rows, n_classes=n_classes, rng=rng)

    def answers(
        self, X: FloatArray, y: IntArray, rows: list[IntArray], n_classes: int, seed: int = 0
    ) -> IntArray:
        """Return what new models answer on rows that none of them has seen."""
        return self.fit(X, y, rows, n_classes, seed).predict(records(n_classes, seed=11)[0])

    def test_answers_are_one_code_for_each_model_and_row(self, n_classes: int) -> None:
        models = self.fit(*records(n_classes), dealt(), n_classes)
        answers = models.predict(records(n_classes, seed=11)[0])
        assert models.n_models == N_MODELS
        assert answers.shape == (N_MODELS, N_RECORDS)
        assert answers.dtype == np.int64
        assert answers.min() >= 0
        assert answers.max() < n_classes
        assert np.array_equal(answers, models.predict(records(n_classes, seed=11)[0]))

    def test_a_model_reads_its_own_rows_alone(self, n_classes: int) -> None:
        X, y = records(n_classes)
        before = self.answers(X, y, dealt(), n_classes)
        for t in range(N_MODELS):
            X_other, y_other = X.copy(), y.copy()
            own = dealt()[t]
            X_other[own] += 3.0
            y_other[own] = (y[own] + 1) % n_classes
            after = self.answers(X_other, y_other, dealt(), n_classes)
            moved = np.flatnonzero((before != after).any(axis=1))
            assert moved.tolist() == [t], "and it does read its own"

    def test_how_many_rows_others_have_moves_no_bit_of_a_model(self, n_classes: int) -> None:
        X, y = records(n_classes)
        before = self.answers(X, y, dealt(), n_classes)
        fewer = [rows if t == 2 else rows[: len(rows) // (t + 2)] for t, rows in enumerate(dealt())]
        assert np.array_equal(before[2], self.answers(X, y, fewer, n_classes)[2])

    def test_the_same_seed_gives_the_same_models(self, n_classes: int) -> None:
        X, y = records(n_classes)
        one, same = (self.answers(X, y, dealt(), n_classes, seed=3) for _ in range(2))
        assert np.array_equal(one, same)

    def test_models_learn(self, n_classes: int) -> None:
        # Weak learners of 60 rows are right on .8 of two and .7 of three classes and more.
        right = self.answers(*records(n_classes), dealt(), n_classes)
        assert (right == records(n_classes, seed=11)[1]).mean() > 1.3 / n_classes

    def test_a_model_of_one_class_answers_it_and_one_of_no_rows_answers_class_0(
        self, n_classes: int
    ) -> None:
        X, y = records(n_classes)
        y[dealt()[1]] = n_classes - 1
        rows = [np.array([], dtype=np.int64) if t == 3 else own for t, own in enumerate(dealt())]
        answers = self.answers(X, y, rows, n_classes)
        assert (answers[1] == n_classes - 1).all()
        assert (answers[3] == 0).all()
        assert np.array_equal(
            np.delete(answers, 3, axis=0),
            np.delete(self.answers(X, y, dealt(), n_classes), 3, axis=0),
        )

    def test_what_it_is_given_is_not_written_to(self, n_classes: int) -> None:
        X, y = records(n_classes)
        self.fit(X, y, dealt(), n_classes).predict(X)
        assert np.array_equal(X, records(n_classes)[0])
        assert np.array_equal(y, records(n_classes)[1])

    def test_progress_rises_to_all_of_the_work(self, n_classes: int) -> None:
        seen: list[tuple[int, int]] = []
        X, y = records(n_classes)
        self.learner().fit(
            X,
            y,
            dealt(),
            n_classes=n_classes,
            rng=np.random.default_rng(0),
            progress=lambda done, total: seen.append((done, total)),
        )
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1]


def records(n_classes: int, seed: int = 7) -> tuple[FloatArray, IntArray]:
    """Return rows, and classes by which of their first numbers is the largest."""
    X = np.random.default_rng(seed).normal(size=(N_RECORDS, N_FEATURES))
    y: IntArray = X[:, :n_classes].argmax(axis=1).astype(np.int64)
    return X, y


def dealt() -> list[IntArray]:
    """Return the rows of each model: all, dealt in turn."""
    return [np.arange(t, N_RECORDS, N_MODELS) for t in range(N_MODELS)]

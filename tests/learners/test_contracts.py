"""Every learner of many models meets the published contract, and a broken one does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.learners import Learner
from evenhand.learners.linear import StackedLogistic
from evenhand.testing.learners import LearnerContract


class TestStackedLogistic(LearnerContract):
    def learner(self) -> Learner:
        return StackedLogistic()


@pytest.mark.torch
class TestStackedMLP(LearnerContract):
    def learner(self) -> Learner:
        pytest.importorskip("torch", reason="needs the extra torch")
        from evenhand.learners.nets.mlp import StackedMLP

        return StackedMLP(hidden=(8,), epochs=8, batch_size=8, learning_rate=0.05)


class OfAllRows(StackedLogistic):
    """Centres each model's rows by the mean over all: it reads the others' records."""

    def fit(self, X: Any, y: Any, rows: Any, **options: Any) -> Any:
        everybody = np.concatenate(rows)
        return super().fit(X - X[everybody].mean(axis=0), y, rows, **options)


class Blind(StackedLogistic):
    """Answers class 0 whatever it is shown: nothing is learnt, and nothing can leak."""

    def fit(self, X: Any, y: Any, rows: Any, **options: Any) -> Any:
        return super().fit(X, np.zeros_like(y), rows, **options)


BROKEN = {
    OfAllRows: "how_many_rows_others_have_moves_no_bit_of_a_model",
    Blind: "models_learn",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_learner_fails_the_contract(broken: Any) -> None:
    class Contract(LearnerContract):
        def learner(self) -> Learner:
            return broken()

    with pytest.raises(AssertionError):
        getattr(Contract(), f"test_{BROKEN[broken]}")(2)

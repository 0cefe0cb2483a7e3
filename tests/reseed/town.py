"""Rows of a town in which a margin about true classes has something to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand import Budget, FairSharesClassifier
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.tally import JointTally
from evenhand.privacy import SeededNoise


class Town:
    """Private, public, calibration and new rows of one population; the groups differ in a feature
    that tells the class, so that a student without a margin has a gap in every notion."""

    def __init__(self, n: int = 7000, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.groups = rng.choice(["men", "women"], n)
        men = self.groups == "men"
        self.X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
        self.X["a"] += men * 1.2
        told = self.X["a"] + self.X["b"] + rng.normal(0, np.where(men, 0.4, 1.6), n)
        self.y = np.where(told > 0.8, "yes", "no")
        self.private, self.public = slice(0, 4000), slice(4000, 5500)
        self.calibration, self.new = slice(5500, 6300), slice(6300, None)

    def fit(self, model: Any, **changes: Any) -> Any:
        given = {
            "X": self.X[self.private],
            "y": self.y[self.private],
            "X_public": self.X[self.public],
            "sensitive_features_public": self.groups[self.public],
        }
        return model.fit(**(given | changes))

    @property
    def labelled(self) -> dict[str, Any]:
        return {
            "X_calibration": self.X[self.calibration],
            "y_calibration": self.y[self.calibration],
            "sensitive_features_calibration": self.groups[self.calibration],
        }

    def joint(self, model: Any, rows: slice) -> JointTally:
        codes = [
            np.searchsorted(["no", "yes"], v) for v in (self.y[rows], model.predict(self.X[rows]))
        ]
        z = encode_groups(self.groups[rows], names=("men", "women"))
        return JointTally.of(z.codes, *codes, 2, 2)


def classifier(fairness: Any, kind: Any = FairSharesClassifier, **changes: Any) -> Any:
    settings = {
        "budget": Budget(epsilon=8.0, delta=1e-5),
        "fairness": fairness,
        "n_teachers": 50,
        "noise": SeededNoise(1),
        "random_state": 0,
    }
    return kind(**(settings | changes))

"""SF-PATE with 300 network teachers on Adult, beside one network on all the data.

The plain version is one network of the same size trained on all rows, for as many passes as the
whole of SF-PATE takes over samples: those of the teachers (each over its own part, so one pass of
all teachers is one of the data), those of theta*, and those of the student under the constraint. A
second plain version takes the passes of the teachers alone. Both use the batch that a network on
all the data is fastest with.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from _harness import run

from evenhand.datasets import load_adult
from evenhand.estimators import SFPATEClassifier
from evenhand.learners.mlp import StackedMLP
from evenhand.privacy import Budget, SeededNoise
from evenhand.students import NetworkStudent
from evenhand.teachers import MLPTeachers

SEED, EPOCHS, FREE, FAIR, BATCH = 0, 20, 10, 10, 1024
STUDENT = NetworkStudent(hidden=(64, 64), epochs=FREE, fair_epochs=FAIR, batch_size=BATCH)

data = load_adult()
part = data.split(test=0.25, random_state=SEED).private


def fitted(variant: str) -> SFPATEClassifier:
    model = SFPATEClassifier(
        Budget(epsilon=1.0, delta=1e-6),
        variant,
        alpha=0.05,
        n_teachers=300,
        teachers=MLPTeachers(hidden=(64, 64), epochs=EPOCHS),
        student=STUDENT,
        n_queries=2000,
        noise=SeededNoise(SEED),
        random_state=SEED,
    )
    return model.fit(part.X, part.y, sensitive_features=part.groups)


def one(epochs: int) -> None:
    learner = StackedMLP(hidden=(64, 64), epochs=epochs, batch_size=BATCH)
    learner.fit(X, y, [np.arange(len(X))], n_classes=2, rng=np.random.default_rng(SEED))


def check() -> None:
    """Both variants learn something: better than always the majority class."""
    test = data.split(test=0.25, random_state=SEED).test
    guess = max((test.y == name).mean() for name in data.classes)
    for variant in ("student", "teachers"):
        score = fitted(variant).score(test.X, test.y)
        assert score > guess, (variant, score, guess)


if __name__ == "__main__":
    torch.set_num_threads(1)
    encoder = fitted("teachers").encoder_
    X = encoder.transform(part.X)
    y = np.unique(part.y, return_inverse=True)[1].astype(np.int64)
    sizes = {"records": len(X), "columns": X.shape[1], "layers": "64-64", "teachers": 300}
    for variant in ("student", "teachers"):
        passes = EPOCHS + FREE + FAIR
        for epochs, meant in ((passes, "all passes"), (EPOCHS, "the passes of the teachers")):
            run(
                f"sf_pate, {variant}, plain: one network, {meant}",
                ours=lambda variant=variant: fitted(variant),
                plain=lambda epochs=epochs: one(epochs),
                check=check if (variant, epochs) == ("student", passes) else lambda: None,
                sizes={**sizes, "epochs": epochs, "batch_of_one": BATCH},
                repeats=3,
                seed=SEED,
                target="at most 1.5 times the time of one network (ratio above 0.67)",
            )
    sys.exit(0)

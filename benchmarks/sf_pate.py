"""SF-PATE with 300 network teachers on Adult, beside one network on all the data, and PF-LD.

The plain version is one network of the same size trained on all rows, for as many passes as the
whole of SF-PATE takes over samples: those of the teachers (each over its own part, so one pass of
all teachers is one of the data), those of theta*, and those of the student under the constraint. It
uses the batch that a network on all the data is fastest with. PF-LD trains a network of that size
too, with its defaults. Processor time, one thread.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from _harness import run

from evenhand import DemographicParity
from evenhand.datasets import load_adult
from evenhand.estimators import PFLDClassifier, SFPATEClassifier
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
        noise=SeededNoise(SEED),
        random_state=SEED,
    )
    return model.fit(part.X, part.y, sensitive_features=part.groups)


def one(epochs: int) -> None:
    learner = StackedMLP(hidden=(64, 64), epochs=epochs, batch_size=BATCH)
    learner.fit(X, y, [np.arange(len(X))], n_classes=2, rng=np.random.default_rng(SEED))


def pf_ld() -> None:
    model = PFLDClassifier(
        Budget(epsilon=1.0, delta=1e-6),
        DemographicParity(margin=0.05, reference="overall"),
        hidden=(64, 64),
        random_state=SEED,
    )
    model.fit(part.X, part.y, sensitive_features=part.groups)


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
    passes = EPOCHS + FREE + FAIR
    network = "at most 1.5 times the time of one network (ratio above 0.67)"
    beside = (
        ("one network, all passes", lambda: one(passes), network),
        ("PF-LD", pf_ld, "20 times faster"),
    )
    for variant in ("student", "teachers"):
        for name, plain, target in beside:
            run(
                f"sf_pate, {variant}, plain: {name}",
                ours=lambda variant=variant: fitted(variant),
                plain=plain,
                check=check if (variant, name) == ("student", beside[0][0]) else lambda: None,
                sizes={**sizes, "epochs": passes, "batch_of_one": BATCH},
                repeats=3 if plain is not pf_ld else 1,
                seed=SEED,
                target=target,
                clock=time.process_time,
            )
    sys.exit(0)

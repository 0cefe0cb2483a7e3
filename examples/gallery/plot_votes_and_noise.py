"""
Votes and noise
===============

A few hundred teachers vote on every public row. The noise that hides one record decides only
where their vote is close; with more teachers the same noise decides less often.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.displays import VotesDisplay
from evenhand.teachers import LogisticTeachers, by_position
from evenhand.voting import Votes

rng = np.random.default_rng(0)
X, X_public = rng.normal(size=(12_000, 5)), rng.normal(size=(600, 5))
y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)

_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, n_teachers in zip(axes, (60, 240), strict=True):
    parts = by_position(len(X), n_teachers, random_state=0)
    ensemble = LogisticTeachers().fit(X, y, parts, 2, np.random.default_rng(0))
    VotesDisplay.from_votes(Votes.of(ensemble.vote(X_public), n_classes=2), sigma=20.0, ax=ax)

# %%
# These figures are made of exact votes. They are for the curator's own eyes: what may be shown to
# others is what went through the ledger, such as the shares that a student learns from.

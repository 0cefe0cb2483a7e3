"""
Who gets an answer
==================

A margin that is kept by refusing is paid by those who are refused. Coverage by group and true
class says who they are.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand import RejectOptionClassifier
from evenhand.displays import CoverageDisplay

rng = np.random.default_rng(0)
group = np.where(rng.random(6000) < 0.32, "women", "men")
X = rng.normal(size=(6000, 1)) + 0.6 * (group == "men")[:, None]
y = np.where(X[:, 0] + rng.normal(size=6000) > 1, "yes", "no")
model = LogisticRegression().fit(X[:2000], y[:2000])

option = RejectOptionClassifier(model, margin=0.02, groups=["women", "men"], cold_start=100)
labels = option.predict(X[2000:], sensitive_features=group[2000:])
CoverageDisplay.from_predictions(labels, group[2000:], y_true=y[2000:])

"""
Teachers that are black boxes
=============================

A teacher may be anything that gives labels: a rule, a vendor's service, a forest. No gradient is
needed, and nothing about its inside enters the claim.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.students import NetworkStudent
from evenhand.teachers import LogisticTeachers, SklearnTeachers

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(14_000, 2))
group = rng.choice(["a", "b"], len(X))
y = (np.sign(X[:, 0]) == np.sign(X[:, 1])).astype(int)  # no straight line tells these apart
private, public, test = slice(0, 9000), slice(9000, 11_000), slice(11_000, None)

kinds = {
    "logistic": LogisticTeachers(),
    "trees": SklearnTeachers(DecisionTreeClassifier(max_depth=6)),
    "forests": SklearnTeachers(RandomForestClassifier(n_estimators=10, max_depth=6)),
}
errors = {}
for name, teachers in kinds.items():
    model = FairSharesClassifier(
        Budget(epsilon=3.0, delta=1e-5),
        DemographicParity(margin=0.05),
        student=NetworkStudent(),
        teachers=teachers,
        n_teachers=60,
        random_state=0,
    ).fit(X[private], y[private], X_public=X[public], sensitive_features_public=group[public])
    errors[name] = float((model.predict(X[test]) != y[test]).mean())

_, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
ax.bar_label(ax.bar(list(errors), list(errors.values())), fmt="%.3f")
ax.set(ylabel="error on new rows")

"""
Where the budget went
=====================

Every release is charged before its noise is drawn, and the ledger's lines can be read afterwards.
"""

import numpy as np

from evenhand import Budget, DemographicParity, FairPATEClassifier
from evenhand.displays import BudgetDisplay

rng = np.random.default_rng(0)
group = rng.choice(["a", "b"], 9000)
X = rng.normal(size=(9000, 3)) + 0.3 * (group == "a")[:, None]
y = (X.sum(axis=1) + rng.normal(size=9000) > 0.5).astype(int)

model = FairPATEClassifier(
    Budget(epsilon=3.0, delta=1e-5), DemographicParity(margin=0.05), n_teachers=100, random_state=0
)
model.fit(X[:7000], y[:7000], X_public=X[7000:], sensitive_features_public=group[7000:])
print(model.answers_)
BudgetDisplay.from_estimator(model)

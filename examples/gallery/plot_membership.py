"""
Membership inference, with and without privacy
==============================================

Was this person in the table? A tree that was fitted without noise gives many away; a private
model keeps the attacker near a coin.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve
from sklearn.tree import DecisionTreeClassifier

from evenhand import Budget, DemographicParity, FairSharesClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(9000, 6))
group = rng.choice(["a", "b"], 9000)
y = (X[:, 0] + rng.normal(size=9000) > 0).astype(int)
members, others, public = slice(0, 3000), slice(3000, 6000), slice(6000, None)

models = {
    "a tree, no privacy": DecisionTreeClassifier(min_samples_leaf=3, random_state=0).fit(
        X[members], y[members]
    ),
    "shares, epsilon 1": FairSharesClassifier(
        Budget(epsilon=1.0, delta=1e-5), DemographicParity(margin=0.1), n_teachers=60
    ).fit(X[members], y[members], X_public=X[public], sensitive_features_public=group[public]),
}
_, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
for name, model in models.items():
    sure = [model.predict_proba(X[rows])[np.arange(3000), y[rows]] for rows in (members, others)]
    wrong, right, _ = roc_curve(np.repeat([1, 0], 3000), np.concatenate(sure))
    ax.plot(wrong, right, label=name)
ax.plot([0, 1], [0, 1], color="black", lw=1, ls="--", label="a coin")
ax.set(xlabel="others who are taken for members", ylabel="members who are found", aspect="equal")
ax.legend(frameon=False)

"""
Where the group alone is private
================================

SF-PATE protects the sensitive attribute, not the whole record: labels and features are public to
the one who trains. That buys accuracy, and it is another promise, which the claim says in words.
"""

import numpy as np

from evenhand import Budget, DemographicParity, SFPATEClassifier
from evenhand.displays import GapDisplay

rng = np.random.default_rng(0)
sex = rng.choice(["F", "M"], 8000)
X = rng.normal(size=(8000, 4)) + 0.5 * (sex == "M")[:, None]
y = (X[:, :2].sum(axis=1) + rng.normal(size=8000) > 1).astype(int)
own, new = slice(0, 6000), slice(6000, None)

model = SFPATEClassifier(
    budget=Budget(epsilon=1.0, delta=1e-5),
    fairness=DemographicParity(margin=0.02, reference="overall"),
    variant="student",
    random_state=0,
)
model.fit(X[own], y[own], sensitive_features=sex[own])
print(model.guarantee_)
GapDisplay.from_estimator(model, X[new], y[new], sex[new], metric="demographic_parity_overall")

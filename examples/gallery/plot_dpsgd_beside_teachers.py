"""
DP-SGD beside teachers
======================

One table, one owner, a model with gradients: DP-SGD is as good or better, and this library says
so. Teachers are for records that cannot be pooled, for models without gradients, and where only
answers may leave.
"""

import matplotlib.pyplot as plt

from evenhand import Budget, DemographicParity, DPSGDClassifier, FairSharesClassifier
from evenhand.datasets import load_adult

data = load_adult().split(public=0.2, test=0.25, random_state=0)
epsilons = (0.5, 1.0, 3.0)
errors: dict[str, list[float]] = {}
for kind in (FairSharesClassifier, DPSGDClassifier):
    for epsilon in epsilons:
        fairness = {} if kind is DPSGDClassifier else {"fairness": DemographicParity(margin=1.0)}
        model = kind(Budget(epsilon=epsilon, delta=1e-5), random_state=0, **fairness)
        public = {"X_public": data.public.X}
        if kind is FairSharesClassifier:
            public["sensitive_features_public"] = data.public.groups
        model.fit(data.private.X, data.private.y, **public)
        error = float((model.predict(data.test.X) != data.test.y).mean())
        errors.setdefault(kind.__name__, []).append(error)

_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, values in errors.items():
    ax.plot(epsilons, values, "o-", label=name)
ax.set(xscale="log", xlabel="epsilon", ylabel="error on test rows")
ax.set_xticks(epsilons, map(str, epsilons))
ax.minorticks_off()
ax.legend(frameon=False)

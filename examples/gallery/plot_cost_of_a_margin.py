"""
What a margin costs
===================

The error of ``FairSharesClassifier`` on Adult against the gap between women and men, from no
margin to a hundredth, at epsilon 3.
"""

import matplotlib.pyplot as plt

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.datasets import load_adult
from evenhand.fairness import fairness_report

data = load_adult().split(public=0.2, test=0.25, random_state=0)
found = []
for margin in (1.0, 0.1, 0.05, 0.02, 0.01):
    model = FairSharesClassifier(
        Budget(epsilon=3.0, delta=1e-5),
        DemographicParity(margin=margin),
        random_state=0,
    )
    model.fit(
        data.private.X,
        data.private.y,
        X_public=data.public.X,
        sensitive_features_public=data.public.groups,
    )
    report = fairness_report(data.test.y, model.predict(data.test.X), data.test.groups)
    found.append((margin, report["demographic_parity_rest"], report["error_rate"]))

_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
gaps = [gap.value for _, gap, _ in found]
errors = [error.value for _, _, error in found]
ax.plot(gaps, errors, "o-")
for margin, gap, error in found:
    ax.vlines(gap.value, error.low, error.high, lw=1)
    ax.annotate(f"  {'no margin' if margin == 1 else margin}", (gap.value, error.value))
ax.set(xlabel="gap between women and men on test rows", ylabel="error on test rows", xlim=(0, 0.22))

# %%
# The price of the margin is what lies between the ends.
print(f"error from {min(errors):.3f} to {max(errors):.3f}")

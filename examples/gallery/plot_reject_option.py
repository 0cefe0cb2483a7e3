"""
The reject option: a margin against coverage
============================================

Around any model: an answer that would take the answers out of the margin is refused, and goes to
a person. The narrower the margin, the more people are needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand import REJECTED, RejectOptionClassifier

rng = np.random.default_rng(0)
group = np.where(rng.random(6000) < 0.4, "women", "men")
X = rng.normal(size=(6000, 1)) + 0.5 * (group == "men")[:, None]
y = np.where(X[:, 0] + rng.normal(size=6000) > 1, "yes", "no")
model = LogisticRegression().fit(X[:2000], y[:2000])

margins, coverage, gaps = (0.01, 0.02, 0.05, 0.1, 0.15), [], []
for margin in margins:
    option = RejectOptionClassifier(model, margin=margin, groups=["women", "men"], cold_start=200)
    labels = option.predict(X[2000:], sensitive_features=group[2000:])
    coverage.append(float((labels != REJECTED).mean()))
    gaps.append(option.gap_)

_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(margins, coverage, "o-", label="share that is answered by the model")
ax.plot(margins, gaps, "s-", label="gap among its answers")
ax.plot(margins, margins, color="black", lw=1, ls="--", label="margin")
ax.set(xlabel="margin", ylim=(0, 1.02))
ax.legend(frameon=False)

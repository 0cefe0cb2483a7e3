"""
Equalized odds with few labels
==============================

A margin about true classes needs true classes. Public rows have none, so answers about them are
bought for some rows, charged like all others, and the interval says how much they can tell.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.displays import GapDisplay

rng = np.random.default_rng(0)
_, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
for ax, n in zip(axes, (60, 400, 4000), strict=True):
    group = rng.choice(["a", "b"], n, p=[0.25, 0.75])
    y = rng.integers(2, size=n)
    predicted = np.where(rng.random(n) < np.where(group == "a", 0.25, 0.15), 1 - y, y)
    shown = GapDisplay.from_predictions(y, predicted, group, metric="equalized_odds_rest", ax=ax)
    gap = shown.gap
    ax.set_title(f"{n:,} labelled rows: gap {gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]")

# %%
# The intervals are exact, and no margin narrower than they are can be shown to hold.

"""
A gate over time
================

FairPATE refuses an answer that would take the answered set out of the margin. The gate of the
paper tests the candidate's own class alone and can leave its margin; ours tests every class of
every group.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.published import PublishedGate

rng = np.random.default_rng(0)
groups = rng.integers(2, size=3000)
labels = (rng.random(3000) < np.where(groups == 1, 0.35, 0.15)).astype(int)

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for kind, name in ((PublishedGate, "as published"), (DemographicParityGate, "ours")):
    gate, trace, given = kind(0.05, n_groups=2, n_classes=2, cold_start=100), [], 0
    for group, label in zip(groups, labels, strict=True):
        given += gate.offer(int(group), int(label)).given
        trace.append(gate.gap)
    ax.plot(trace, label=f"{name}: {given:,} of {len(groups):,} answered")
ax.axhline(0.05, color="black", lw=1, ls="--", label="margin")
ax.set(xlabel="queries so far", ylabel="gap of the answered set", ylim=(0, 0.15))
ax.legend(frameon=False)

"""
A frontier in four dimensions
=============================

Epsilon, gap, error and coverage at once: a point is on the front if no other is as good in all
four. The page that ``evenhand frontier`` writes lets you choose on it; this is the same as one
picture.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.frontier import front
from evenhand.testing.frontier import synthetic_runs

runs = synthetic_runs(60, n_seeds=1)  # made up; yours come from RunStore("runs.db").runs()
best = front(runs)
columns = {name: np.array([getattr(run, name) for run in runs]) for name in ("gap", "error")}

_, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for kept, alpha in ((~best, 0.25), (best, 1.0)):
    drawn = ax.scatter(
        columns["gap"][kept],
        columns["error"][kept],
        c=np.log10([run.epsilon for run, keep in zip(runs, kept, strict=True) if keep]),
        s=[20 + 120 * run.coverage**4 for run, keep in zip(runs, kept, strict=True) if keep],
        alpha=alpha,
        vmin=-0.5,
        vmax=1.0,
    )
plt.colorbar(drawn, label="log10 of epsilon")
ax.set(xlabel="gap", ylabel="error", title="size: coverage; pale: beaten by another")

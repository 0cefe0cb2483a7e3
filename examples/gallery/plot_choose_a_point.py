"""
Choosing a point
================

A regulator says what is acceptable; a specification says which runs are, with which certainty.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.frontier import Specification, check
from evenhand.testing.frontier import synthetic_runs

runs = synthetic_runs(60, n_seeds=3)
asked = Specification(epsilon=3.0, gap=0.08, coverage=0.6)
found = check(asked, runs)
print("feasible:", found.feasible, "· acceptable settings:", len(found.acceptable))

_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
gap, error = (np.array([getattr(run, name) for run in runs]) for name in ("gap", "error"))
private = np.array([run.epsilon <= 3.0 for run in runs])
ax.plot(gap[~private], error[~private], "x", color="0.7", label="epsilon above 3")
ax.plot(gap[private], error[private], "o", label="epsilon up to 3")
ax.axvspan(0, 0.08, color="tab:green", alpha=0.15, lw=0, label="gap that is acceptable")
ax.set(xlabel="gap", ylabel="error", xlim=(0, None))
ax.legend(frameon=False)

"""
How epsilon feels
=================

What an attacker gains who knows everything but one record: how often a guess about that record is
right, where a coin has 50 %. The curve is exact for a given ``mu`` (Dong, Roth and Su 2019).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from evenhand.privacy.gaussian import mu_from_epsilon

epsilons = np.geomspace(0.1, 10, 60)
mu = np.array([mu_from_epsilon(epsilon, delta=1e-5) for epsilon in epsilons])

_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].plot(epsilons, norm.cdf(mu / 2))
axes[0].axhline(0.5, color="black", lw=1, ls="--")
axes[0].set(
    xscale="log", xlabel="epsilon (delta 1e-5)", ylabel="right guesses of the best attacker"
)
false = np.linspace(1e-4, 1, 400)
for epsilon in (0.5, 1, 3, 10):
    curve = norm.cdf(norm.ppf(false) + mu_from_epsilon(epsilon, delta=1e-5))
    axes[1].plot(false, curve, label=f"epsilon {epsilon:g}")
axes[1].plot([0, 1], [0, 1], color="black", lw=1, ls="--", label="a coin")
axes[1].set(xlabel="false alarms", ylabel="hits, at most", aspect="equal")
axes[1].legend(frameon=False)

"""
Reconstruction from exact counts
================================

Enough exact counts about random subsets give away every person's answer (Dinur and Nissim 2003).
The same counts with the noise of a budget do not.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.privacy import FloatNoise
from evenhand.privacy.gaussian import mu_from_epsilon, sigma_for

rng = np.random.default_rng(0)
n = 200
secret = rng.integers(2, size=n)
_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
asked = (50, 100, 200, 400, 800)
for name, epsilon in (("exact counts", None), ("epsilon 3 for all counts", 3.0)):
    found = []
    for n_counts in asked:
        subsets = rng.integers(2, size=(n_counts, n)).astype(float)
        counts = subsets @ secret
        if epsilon is not None:  # one person moves each count by one at most
            mu = mu_from_epsilon(epsilon, delta=1e-5)
            sigma = sigma_for(mu**2, n_counts, l2_sensitivity=1.0)
            counts = counts + FloatNoise().gaussian(sigma, (n_counts,))
        guess = np.linalg.lstsq(subsets, counts, rcond=None)[0] > 0.5
        found.append(float((guess == secret).mean()))
    ax.plot(asked, found, "o-", label=name)
ax.axhline(0.5, color="black", lw=1, ls="--", label="a coin")
ax.set(
    xlabel="counts that are published", ylabel="answers that are guessed right", ylim=(0.4, 1.02)
)
ax.legend(frameon=False)

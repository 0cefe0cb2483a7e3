"""
Does privacy magnify bias?
==========================

A known notebook of NIST says so: noise hurts small groups more. It does, where their rates are
*counted* with noise; here is how wide that is, and what pooling and a margin on the model do
instead.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.privacy import FloatNoise
from evenhand.privacy.gaussian import mu_from_epsilon

mu = mu_from_epsilon(0.5, delta=1e-6)
sizes = np.array([30, 100, 300, 1000, 3000, 10_000])
rate = 0.3
rng, noise = np.random.default_rng(0), FloatNoise()

_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
sampled = np.sqrt(rate * (1 - rate) / sizes)
both = []
for n in sizes:
    counts = rng.binomial(n, rate, 4000) + noise.gaussian(1 / mu, (4000,))
    both.append(float(np.std(counts / n)))
ax.plot(sizes, sampled, "o-", label="sampling alone: with or without privacy")
ax.plot(sizes, both, "s-", label="with the noise of epsilon 0.5")
ax.set(xscale="log", yscale="log", xlabel="people in the group", ylabel="error of its rate (sd)")
ax.legend(frameon=False)

# %%
# From a few hundred people on, the sample itself is what is uncertain; below that the interval of
# every gap says so, in reports of this library, whether noise was added or not.

"""
How epsilon feels
=================

Epsilon bounds what an attacker gains who knows everything but one record, and guesses which of two
possible ones it is. Here that is in numbers that can be felt: how often the guess is right where a
coin is right 50 %, and how many people are found at the price of how many false alarms. The numbers
are those of a library of others, ``riskcal`` (Kulynych et al.
2024); the report's own, "is right at most 64.1 % of the time", is checked against it.
"""

import matplotlib.pyplot as plt
import numpy as np
from riskcal.analysis import (
    get_advantage_from_adp,
    get_advantage_from_gdp,
    get_bayes_risk_from_gdp,
    get_beta_from_gdp,
)

from evenhand import Budget
from evenhand.privacy import Ledger
from evenhand.privacy.gaussian import mu_from_epsilon
from evenhand.privacy.trade_off import TradeOff
from evenhand.report import claim

DELTA = 1e-5
epsilons = np.geomspace(0.1, 10, 40)
mus = np.array([mu_from_epsilon(epsilon, DELTA) for epsilon in epsilons])

# What the report says of the default claim is what riskcal computes of it.
guarantee = Ledger(Budget(epsilon=3.0, delta=DELTA)).guarantee()
assert np.isclose(
    TradeOff.of(guarantee).best_guess, (1 + get_advantage_from_gdp(mu_from_epsilon(3.0, DELTA))) / 2
)
print(claim.gain(guarantee))

_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
plain = [get_advantage_from_adp(epsilon, DELTA) for epsilon in epsilons]
ax.plot(epsilons, (1 + np.array(plain)) / 2, label="by epsilon and delta alone", ls=":")
ax.plot(epsilons, (1 + get_advantage_from_gdp(mus)) / 2, label="as our ledger counts")
ax.axhline(0.5, color="black", lw=1, ls="--", label="a coin")
ax.set(xscale="log", xlabel="epsilon (delta 1e-5)", ylabel="right guesses, at most")
ax.legend(frameon=False)

# %%
# Two attackers: one who may accuse few people wrongly, and one who looks for something rare.

_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
false = np.linspace(0.001, 0.999, 300)
rare = np.linspace(0.01, 0.5, 50)
for epsilon in (0.5, 1, 3, 10):
    mu = mu_from_epsilon(epsilon, DELTA)
    hits = 1 - get_beta_from_gdp(mu=mu, alpha=false)
    axes[0].plot(false, hits, label=f"epsilon {epsilon:g}")
    axes[1].plot(rare, 1 - get_bayes_risk_from_gdp(mu, rare), label=f"epsilon {epsilon:g}")
axes[0].plot([0, 1], [0, 1], color="black", lw=1, ls="--", label="a coin")
axes[0].set(xlabel="false alarms", ylabel="hits, at most", aspect="equal")
axes[0].legend(frameon=False)
axes[1].plot(rare, 1 - rare, color="black", lw=1, ls="--", label="always the frequent one")
axes[1].set(xlabel="how frequent the rarer record is", ylabel="right guesses, at most")
axes[1].legend(frameon=False)

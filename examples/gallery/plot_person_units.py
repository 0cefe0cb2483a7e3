"""
Persons with many records
=========================

A claim about *records* says little to a person who has ten of them. Deal by person, and the claim
is about the person: every record of hers is with one teacher.
"""

import matplotlib.pyplot as plt
import numpy as np

from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.teachers import by_unit

rng = np.random.default_rng(0)
people = np.repeat(np.arange(800), rng.geometric(0.3, 800))
visits = by_unit(people, 40, unit="patient")
print(visits.statement)

records = np.arange(1, 11)
mu = 0.35  # of one record
_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
said = "claim per record: what it means for a person with so many"
ax.plot(records, [epsilon_from_mu(mu * k, delta=1e-5) for k in records], "o-", label=said)
ax.axhline(
    epsilon_from_mu(mu, delta=1e-5), color="tab:orange", label="dealt by person: the same for all"
)
ax.set(xlabel="records of a person", ylabel="epsilon for that person", ylim=(0, None))
ax.legend(frameon=False)

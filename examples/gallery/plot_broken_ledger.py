"""
An attack that convicts half the noise
======================================

A claim is about a program, so the program is tried: a method is run a thousand times on two
neighboring tables, and the best attack on its outputs must not beat what the claim allows. With
half the noise it does.
"""

import matplotlib.pyplot as plt

from evenhand.testing.attack import HalfNoise, attack_noise
from evenhand.testing.cases import cases

case = cases()["dpsgd"]
honest = attack_noise(case, runs=1000)
broken = attack_noise(case, runs=1000, noise=HalfNoise())
assert not honest.refuted
assert broken.refuted
print(honest, broken, sep="\n")

_, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
for at, (found, name) in enumerate(((honest, "as released"), (broken, "half the noise"))):
    ax.barh(at, found.mu_shown, color="tab:red" if found.refuted else "tab:blue")
    ax.text(found.mu_shown, at, f"  {name}: mu is at least {found.mu_shown:.2f}", va="center")
ax.axvline(honest.mu_claimed, color="black", ls="--", lw=1)
ax.set(xlabel="privacy loss that the attack proves (dashed: what is claimed)", yticks=[])
ax.set_xlim(0, 2.4 * max(honest.mu_claimed, broken.mu_shown))

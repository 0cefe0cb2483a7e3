"""
Owners that do not pool
=======================

Sixty houses, none of which shows a record to anybody. Each votes on public rows with a model of
its own; what leaves is a signed file of votes, and then a model under one claim.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.vote_file import PrivateKey, VoteFile

rng = np.random.default_rng(0)


def people(n: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features, truth and sex of n people."""
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "stay", "dose"])
    return X, X.sum(axis=1).to_numpy() + rng.normal(0, 0.7, n) > 0, rng.choice(["F", "M"], n)


public, _, sex = people(800)
test, truth, _ = people(3000)
files, alone = [], []
for house in range(60):
    X, y, _ = people(int(rng.integers(40, 200)))
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    alone.append(float((tree.predict(test) != truth).mean()))
    said, key = tree.predict(public), PrivateKey.make()
    files.append(VoteFile.cast(f"house {house}", said, public, classes=[False, True], key=key))

model = FairSharesClassifier.from_votes(
    OwnerVotes.of(files),
    public,
    sex,
    budget=Budget(epsilon=2.0, delta=1e-3),
    fairness=DemographicParity(margin=0.05),
)
print(model.guarantee_)

said = model.predict(test).astype(str) == "True"
together = float((said != truth).mean())
_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.hist(alone, bins=20, label="each house alone, no privacy")
ax.axvline(together, color="tab:orange", lw=2, label="votes of all, epsilon 2 per owner")
ax.set(xlabel="error on new people", ylabel="houses")
ax.legend(frameon=False)

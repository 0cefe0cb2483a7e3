"""Owners that do not pool their records: each votes, and only noisy answers leave.

Here they are 160 schools with about 45 pupils each (MathAchieve); hospitals or banks would do the
same. The table is had by `evenhand datasets fetch math-achieve`; without it, 80 hospitals are
made up. Who sees what:

    a school        its own records, its own model of any kind, the public rows
        | one vote on each public row, signed
    the aggregator  votes; no record and no model. It is trusted with the votes: with
        |           evenhand.owners.noisy_sums it would hold their noisy sum alone
        | noisy shares of the votes, within the budget
    everybody       the model, its claim and its report

The same at the command line: evenhand owner keys, owner train, owner vote, aggregate.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.datasets import Dataset, PublicEncoder
from evenhand.datasets.catalogue import KNOWN
from evenhand.datasets.silos import by_owner, load_math_achieve
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.vote_file import PrivateKey, VoteFile


def records() -> tuple[Dataset, pd.Series]:
    """Return a table whose records have owners, and the owner of each."""
    if KNOWN["math-achieve"].folder is not None:
        return by_owner(load_math_achieve())
    return made_up(np.random.default_rng(0), n=80 * 60)


def made_up(rng: np.random.Generator, n: int) -> tuple[Dataset, pd.Series]:
    """Patients of 80 hospitals: measurements, outcome and sex."""
    sex = rng.choice(["female", "male"], n)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    score = frame["a"] + 0.8 * frame["b"] - 0.6 * frame["c"] + 0.6 * (sex == "male")
    frame["outcome"] = (score + rng.normal(0, 0.7, n) > 0.4).astype(int)
    data = Dataset.from_frame(frame.assign(sex=sex), label="outcome", sensitive="sex")
    return data, pd.Series(rng.integers(80, size=n).astype(str), index=data.X.index)


def main() -> None:
    """Vote in every house, aggregate within a margin, and compare with an owner alone."""
    data, owner = records()
    split = data.split(public=0.2, test=0.25, random_state=0)
    encoder = PublicEncoder().fit(split.public.X)
    X, y = encoder.transform(split.private.X), split.private.y.to_numpy()
    X_public, X_test = encoder.transform(split.public.X), encoder.transform(split.test.X)
    holder = owner.loc[split.private.X.index].to_numpy()

    # In each house, on its own machines: a model of its own choice, and a key of its own.
    kinds = (LogisticRegression(), RandomForestClassifier(20, min_samples_leaf=5, random_state=0))
    files, alone = [], []
    for i, name in enumerate(np.unique(holder)):
        own = holder == name
        several = len(np.unique(y[own])) > 1
        model = (kinds[i % 2] if several else DummyClassifier()).fit(X[own], y[own])
        alone.append((model.predict(X_test) != split.test.y).mean())
        files.append(
            VoteFile.cast(
                str(name),
                model.predict(X_public),
                split.public.X,
                classes=data.classes,
                key=PrivateKey.make(),
            )
        )

    # At the aggregator: files of votes, checked together, and nothing else.
    votes = OwnerVotes.of(files, X_public=split.public.X)
    model = FairSharesClassifier.from_votes(
        votes,
        split.public.X,
        split.public.groups,
        budget=Budget(epsilon=3.0, delta=1e-3),
        fairness=DemographicParity(margin=0.1),
        random_state=0,
    )
    print(model.guarantee_)
    error = (model.predict(split.test.X) != split.test.y).mean()
    free = (model.without_margin().predict(split.test.X) != split.test.y).mean()
    print(f"error of the votes' model: {error:.3f}, without its margin: {free:.3f}")
    print(f"error of the median owner's own model: {np.median(alone):.3f}")


if __name__ == "__main__":
    main()
